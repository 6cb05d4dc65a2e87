// Compaction filters, their factories, and databases whose keys expire, through the C API.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

struct Filter {
  int asked = 0;
  int destroyed = 0;
  int level = -1;

  static unsigned char Ask(void* state, int level, const char* key, size_t key_length, const char* value, size_t value_length,
                           char** new_value, size_t* new_value_length, unsigned char* value_changed) {
    auto* const filter = static_cast<Filter*>(state);
    ++filter->asked;
    filter->level = level;
    const std::string_view name(key, key_length);
    if (name == "gone") return 1;
    if (name != "changed" && name != "emptied") return 0;
    if (std::string_view(value, value_length) != "value") return 0;
    static char replacement[] = "replacement";  // stays this program's
    *value_changed = 1;
    *new_value = name == "changed" ? replacement : nullptr;
    *new_value_length = name == "changed" ? sizeof(replacement) - 1 : 0;
    return 0;
  }
  static void Destroy(void* state) { ++static_cast<Filter*>(state)->destroyed; }
  static const char* Name(void*) { return "filter"; }
};

class CApiCompactionFilterTest : public CApiTest {
 protected:
  void PutAll() {
    for (const char* key : {"changed", "emptied", "gone", "kept"}) Put(key, "value");
  }
  void ExpectFiltered() {
    EXPECT_EQ(Get("changed"), "replacement");
    EXPECT_EQ(Get("emptied"), "");
    EXPECT_EQ(Get("gone"), std::nullopt);
    EXPECT_EQ(Get("kept"), "value");
  }
  void Compact() { braiddb_compact_range(db_, nullptr, 0, nullptr, 0); }

  Filter filter_;
};

TEST_F(CApiCompactionFilterTest, AFilterIsAskedAndStaysTheCallers) {
  braiddb_compactionfilter_t* const handle =
      braiddb_compactionfilter_create(&filter_, Filter::Destroy, Filter::Ask, Filter::Name);
  braiddb_options_set_compaction_filter(options_, handle);
  Open();
  PutAll();
  Compact();
  ExpectFiltered();
  EXPECT_EQ(filter_.asked, 4);
  EXPECT_EQ(filter_.level, 1);
  Close();
  EXPECT_EQ(filter_.destroyed, 0);
  braiddb_options_set_compaction_filter(options_, nullptr);
  braiddb_compactionfilter_destroy(handle);
  EXPECT_EQ(filter_.destroyed, 1);
  Open();
  Compact();
  ExpectFiltered();
  EXPECT_EQ(filter_.asked, 4);
}

TEST_F(CApiCompactionFilterTest, SnapshotsAreRespectedIfTheFilterSaysSo) {
  for (const unsigned char ignores : {0, 1}) {
    braiddb_compactionfilter_t* const handle =
        braiddb_compactionfilter_create(&filter_, Filter::Destroy, Filter::Ask, Filter::Name);
    braiddb_compactionfilter_set_ignore_snapshots(handle, ignores);
    braiddb_options_set_compaction_filter(options_, handle);
    Open();
    Put("gone", "value");
    const braiddb_snapshot_t* const snapshot = braiddb_create_snapshot(db_);
    Compact();
    EXPECT_EQ(Get("gone"), std::nullopt);
    braiddb_readoptions_set_snapshot(read_, snapshot);
    EXPECT_EQ(Get("gone").has_value(), ignores == 0);
    braiddb_readoptions_set_snapshot(read_, nullptr);
    braiddb_release_snapshot(db_, snapshot);
    Close();
    braiddb_options_set_compaction_filter(options_, nullptr);
    braiddb_compactionfilter_destroy(handle);
  }
}

struct Factory {
  Filter filter;
  int made = 0;
  int destroyed = 0;
  bool full = false;
  bool manual = false;

  static braiddb_compactionfilter_t* Make(void* state, braiddb_compactionfiltercontext_t* context) {
    auto* const factory = static_cast<Factory*>(state);
    ++factory->made;
    factory->full = braiddb_compactionfiltercontext_is_full_compaction(context) != 0;
    factory->manual = braiddb_compactionfiltercontext_is_manual_compaction(context) != 0;
    return braiddb_compactionfilter_create(&factory->filter, Filter::Destroy, Filter::Ask, Filter::Name);
  }
  static void Destroy(void* state) { ++static_cast<Factory*>(state)->destroyed; }
  static const char* Name(void*) { return "factory"; }
};

TEST_F(CApiCompactionFilterTest, AFactoryBelongsToTheOptionsAndItsFiltersToTheDatabase) {
  Factory factory;
  braiddb_options_set_compaction_filter_factory(
      options_, braiddb_compactionfilterfactory_create(&factory, Factory::Destroy, Factory::Make, Factory::Name));
  Open();
  PutAll();
  Compact();
  ExpectFiltered();
  EXPECT_GT(factory.made, 0);
  EXPECT_EQ(factory.filter.destroyed, factory.made);
  EXPECT_TRUE(factory.full && factory.manual);
  braiddb_options_set_compaction_filter_factory(options_, nullptr);
  EXPECT_EQ(factory.destroyed, 0) << "the open database has it, too";
  Put("gone", "value");
  Compact();
  EXPECT_EQ(Get("gone"), std::nullopt);
  Close();
  EXPECT_EQ(factory.destroyed, 1);
}

TEST_F(CApiCompactionFilterTest, OpenWithTtl) {
  Close();
  db_ = braiddb_open_with_ttl(options_, path().c_str(), 3600, error_.pointer());
  ASSERT_EQ(error_.Take(), "");
  ASSERT_NE(db_, nullptr);
  Put("key", "value");
  EXPECT_EQ(Get("key"), "value");
  Compact();
  EXPECT_EQ(Get("key"), "value");
  Close();
  // The time is there when the database is opened as another one.
  Open();
  ASSERT_TRUE(Get("key").has_value());
  EXPECT_EQ(Get("key")->size(), std::string("value").size() + 4);
  // What was written long ago.
  Put("key", std::string("value") + std::string(4, '\0'));
  Close();
  const char* const families[] = {"default"};
  const braiddb_options_t* const family_options[] = {options_};
  braiddb_column_family_handle_t* family = nullptr;
  for (const int ttl : {0, 3600}) {
    db_ = braiddb_open_column_families_with_ttl(options_, path().c_str(), 1, families, family_options, &family, &ttl,
                                                error_.pointer());
    ASSERT_EQ(error_.Take(), "");
    if (ttl == 0) {
      EXPECT_EQ(Get("key"), "value") << "nothing expires";
      braiddb_column_family_handle_destroy(family);
      Close();
      continue;
    }
    // The merge that follows each open may have removed it by now.
    Compact();
    EXPECT_EQ(Get("key"), std::nullopt);
  }
  braiddb_column_family_handle_destroy(family);
}

TEST_F(CApiCompactionFilterTest, EachColumnFamilyHasATimeToLive) {
  Close();
  braiddb_options_set_create_missing_column_families(options_, 1);
  const char* const names[] = {"default", "hours", "ever"};
  const braiddb_options_t* const family_options[] = {options_, options_, options_};
  const int ttls[] = {0, 3600, -1};
  braiddb_column_family_handle_t* families[3] = {};
  db_ =
      braiddb_open_column_families_with_ttl(options_, path().c_str(), 3, names, family_options, families, ttls, error_.pointer());
  ASSERT_EQ(error_.Take(), "");
  braiddb_column_family_handle_t* const late =
      braiddb_create_column_family_with_ttl(db_, options_, "late", 3600, error_.pointer());
  ASSERT_EQ(error_.Take(), "");
  const auto put = [&](braiddb_column_family_handle_t* family) {
    braiddb_put_cf(db_, write_, family, "key", 3, "value", 5, error_.pointer());
    EXPECT_EQ(error_.Take(), "");
  };
  for (auto* const family : {families[0], families[1], families[2], late}) put(family);
  for (auto* const family : {families[0], families[1], families[2], late}) braiddb_column_family_handle_destroy(family);
  Close();
  // Values that were written long ago.
  const char* const all[] = {"default", "hours", "ever", "late"};
  const braiddb_options_t* const all_options[] = {options_, options_, options_, options_};
  braiddb_column_family_handle_t* opened[4] = {};
  db_ = braiddb_open_column_families(options_, path().c_str(), 4, all, all_options, opened, error_.pointer());
  ASSERT_EQ(error_.Take(), "");
  const std::string old = std::string("value") + std::string(4, '\0');
  for (auto* const family : opened) {
    braiddb_put_cf(db_, write_, family, "key", 3, old.data(), old.size(), error_.pointer());
    EXPECT_EQ(error_.Take(), "");
    braiddb_column_family_handle_destroy(family);
  }
  Close();
  const int all_ttls[] = {0, 3600, -1, 7200};
  db_ = braiddb_open_column_families_with_ttl(options_, path().c_str(), 4, all, all_options, opened, all_ttls, error_.pointer());
  ASSERT_EQ(error_.Take(), "");
  for (int i = 0; i < 4; ++i) {
    braiddb_compact_range_cf(db_, opened[i], nullptr, 0, nullptr, 0);
    size_t length = 0;
    char* const value = braiddb_get_cf(db_, read_, opened[i], "key", 3, &length, error_.pointer());
    EXPECT_EQ(error_.Take(), "");
    EXPECT_EQ(value != nullptr, all_ttls[i] <= 0) << all[i];
    braiddb_free(value);
    braiddb_column_family_handle_destroy(opened[i]);
  }
  Close();
  // In a database without there is no time to live.
  braiddb_destroy_db(options_, path().c_str(), error_.pointer());
  ASSERT_EQ(error_.Take(), "");
  Open();
  EXPECT_EQ(braiddb_create_column_family_with_ttl(db_, options_, "more", 3600, error_.pointer()), nullptr);
  EXPECT_EQ(error_.Take().find("Not implemented: "), 0u);
}

// The time to live is that of the families that were opened.
TEST_F(CApiCompactionFilterTest, AFamilyThatIsCreatedWithoutATimeLivesForEver) {
  Close();
  db_ = braiddb_open_with_ttl(options_, path().c_str(), 1, error_.pointer());
  ASSERT_EQ(error_.Take(), "");
  const char* const name = "listed";
  size_t created = 0;
  braiddb_column_family_handle_t** const list =
      braiddb_create_column_families(db_, options_, 1, &name, &created, error_.pointer());
  ASSERT_EQ(error_.Take(), "");
  braiddb_column_family_handle_t* const families[] = {list[0],
                                                      braiddb_create_column_family(db_, options_, "family", error_.pointer())};
  ASSERT_EQ(error_.Take(), "");
  Put("key", "value");
  for (auto* const family : families) braiddb_put_cf(db_, write_, family, "key", 3, "value", 5, error_.pointer());
  for (int i = 0; i < 100 && Get("key").has_value(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    Compact();
  }
  EXPECT_EQ(Get("key"), std::nullopt);
  for (auto* const family : families) {
    braiddb_compact_range_cf(db_, family, nullptr, 0, nullptr, 0);
    size_t length = 0;
    char* const value = braiddb_get_cf(db_, read_, family, "key", 3, &length, error_.pointer());
    EXPECT_EQ(error_.Take(), "");
    EXPECT_EQ(length, 5u);
    braiddb_free(value);
    braiddb_column_family_handle_destroy(family);
  }
  braiddb_create_column_families_destroy(list);
}

TEST_F(CApiCompactionFilterTest, WithoutATimeKeysLiveForEver) {
  db_ = braiddb_open_with_ttl(options_, path().c_str(), 0, error_.pointer());
  ASSERT_EQ(error_.Take(), "");
  Put("key", "value");
  Compact();
  EXPECT_EQ(Get("key"), "value");
}

}  // namespace
}  // namespace braiddb::test
