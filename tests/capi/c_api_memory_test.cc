// DRAM cannot be allocated, once, at any place of the C API: an error where there is an errptr, NULL of what makes an object, and
// otherwise what was asked for is not used as if it were whole. The process goes on, and no acknowledged write is lost.
//
// This program has an operator new of its own.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/capi/c_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/failing_new.h"

namespace braiddb::test {
namespace {

class CApiMemoryTest : public CApiTest {
 protected:
  void SetUp() override {
    braiddb_options_set_regions(options_, 1);
    Open();
    Put("a", "1");
    Put("b", "2");
    this_thread = true;
  }
  void TearDown() override { this_thread = false; }

  // An open makes some thousand allocations; it lists all options in the LOG.
  static constexpr int64_t kMostAllocations = 20'000;
  // Calls `body` until no allocation of it fails any more.
  template <class Body>
  void ForEachFailure(const Body& body) {
    int64_t at = 0;
    do {
      SCOPED_TRACE(at);
      {
        const Failing failing(Who::kThisThread, at);
        body();
      }
      ASSERT_EQ("1", Get("a"));
      ++at;
    } while (failed.load() != 0 && !HasFailure() && at < kMostAllocations);
    EXPECT_GT(at, 1);
    EXPECT_LT(at, kMostAllocations);
  }
  // Whether there was none. Allocates nothing.
  bool DropError() {
    char** const error = error_.pointer();
    const bool was_none = *error == nullptr;
    braiddb_free(*error);
    *error = nullptr;
    return was_none;
  }
  // "" or an error of no memory; nothing else is told.
  std::string TakeError() {
    whose = Who::kNobody;
    const std::string text = error_.Take();
    EXPECT_TRUE(text.empty() || text.find("Operation aborted: Memory limit reached") == 0) << text;
    return text;
  }
};

const std::string kLong(100, 'k');  // of no small string

TEST_F(CApiMemoryTest, OptionsThatCouldNotBeStoredOpenNothing) {
  const std::string other = directory_.Sub("other");
  ForEachFailure([&] {
    braiddb_options_t* const options = braiddb_options_create();
    if (options == nullptr) return;
    braiddb_options_set_create_if_missing(options, 1);
    const char* const paths[] = {kLong.c_str()};
    braiddb_options_set_wal_dir(options, kLong.c_str());
    braiddb_options_set_db_log_dir(options, kLong.c_str());
    braiddb_options_set_region_paths(options, paths, 1);
    braiddb_options_set_region_paths(options, paths, 0);
    const int nodes[] = {-1};
    braiddb_options_set_region_nodes(options, nodes, 1);
    braiddb_options_set_region_nodes(options, nodes, 0);
    braiddb_options_set_compression_options(options, 1, 2, 3, 4);
    braiddb_options_add_compact_on_deletion_collector_factory(options, 1, 2);
    const bool stored = failed.load() == 0;
    braiddb_options_t* const copy = braiddb_options_create_copy(options);
    braiddb_slicetransform_t* const transform = braiddb_slicetransform_create_fixed_prefix(3);
    braiddb_options_set_prefix_extractor(options, transform);
    braiddb_t* const db = braiddb_open(options, other.c_str(), error_.pointer());
    EXPECT_EQ(db == nullptr, !TakeError().empty());
    EXPECT_TRUE(stored || db == nullptr);
    if (db != nullptr) braiddb_close(db);
    braiddb_options_destroy(copy);
    braiddb_options_destroy(options);
  });
  this_thread = false;
  braiddb_destroy_db(options_, other.c_str(), error_.pointer());
  EXPECT_EQ("", error_.Take());
}

TEST_F(CApiMemoryTest, IteratorsWithoutTheirBoundsShowNothing) {
  const std::string lower = "a" + kLong;
  std::string keys;
  keys.reserve(100);
  ForEachFailure([&] {
    braiddb_readoptions_t* const read = braiddb_readoptions_create();
    if (read == nullptr) return;
    braiddb_readoptions_set_iterate_lower_bound(read, lower.data(), lower.size());
    braiddb_readoptions_set_iterate_upper_bound(read, kLong.data(), kLong.size());
    braiddb_writebatch_wi_t* const batch = braiddb_writebatch_wi_create(0, 1);
    if (batch != nullptr) braiddb_writebatch_wi_put(batch, "c", 1, kLong.data(), kLong.size());
    braiddb_iterator_t* iterator = braiddb_create_iterator(db_, read);
    if (batch != nullptr) iterator = braiddb_writebatch_wi_create_iterator_with_base(batch, iterator);
    keys.clear();
    if (iterator != nullptr) {
      for (braiddb_iter_seek_to_first(iterator); braiddb_iter_valid(iterator); braiddb_iter_next(iterator)) {
        size_t length = 0;
        const char* const key = braiddb_iter_key(iterator, &length);
        keys.append(key, length);
      }
      braiddb_iter_get_error(iterator, error_.pointer());
      EXPECT_TRUE(!TakeError().empty() || failed.load() != 0 || keys == "bc") << keys;
      EXPECT_EQ(std::string::npos, keys.find('a'));  // is below the bound
      braiddb_iter_destroy(iterator);
    }
    braiddb_writebatch_wi_destroy(batch);
    braiddb_readoptions_destroy(read);
  });
}

TEST_F(CApiMemoryTest, BatchesAreWrittenWholeOrNotAtAll) {
  const char* const parts[] = {"k", kLong.c_str()};
  const size_t lengths[] = {1, kLong.size()};
  const auto work = [&](auto* batch, auto set_save_point, auto putv, auto deletev, auto roll_back, auto write) {
    if (batch == nullptr) return;
    putv(batch, 2, parts, lengths, 2, parts, lengths);
    set_save_point(batch);
    deletev(batch, 2, parts, lengths);
    roll_back(batch, error_.pointer());
    const bool rolled_back = DropError();
    write(db_, write_, batch, error_.pointer());
    const bool written = TakeError().empty();
    EXPECT_TRUE(written || failed.load() != 0);
    // There is no half of it: nothing was written, or everything but for what was rolled back.
    const bool is_there = written && rolled_back;
    EXPECT_EQ(is_there ? std::optional<std::string>("k" + kLong) : std::nullopt, Get("k" + kLong));
    if (written) Delete("k" + kLong);
  };
  ForEachFailure([&] {
    braiddb_writebatch_t* const batch = braiddb_writebatch_create();
    work(batch, braiddb_writebatch_set_save_point, braiddb_writebatch_putv, braiddb_writebatch_deletev,
         braiddb_writebatch_rollback_to_save_point, braiddb_write);
    braiddb_writebatch_destroy(batch);
  });
  ForEachFailure([&] {
    braiddb_writebatch_wi_t* const batch = braiddb_writebatch_wi_create(0, 1);
    work(batch, braiddb_writebatch_wi_set_save_point, braiddb_writebatch_wi_putv, braiddb_writebatch_wi_deletev,
         braiddb_writebatch_wi_rollback_to_save_point, braiddb_write_writebatch_wi);
    braiddb_writebatch_wi_destroy(batch);
  });
  ForEachFailure([&] {
    braiddb_writebatch_t* const from = braiddb_writebatch_create();
    braiddb_writebatch_t* const to = braiddb_writebatch_create();
    if (from != nullptr && to != nullptr) {
      braiddb_writebatch_put(from, "k", 1, kLong.data(), kLong.size());
      braiddb_writebatch_delete_range(from, kLong.data(), kLong.size(), "l", 1);
      braiddb_writebatch_append(to, from);
      braiddb_write(db_, write_, to, error_.pointer());
      const bool written = TakeError().empty();
      EXPECT_EQ(written ? std::optional<std::string>(kLong) : std::nullopt, Get("k"));
      Delete("k");
    }
    braiddb_writebatch_destroy(from);
    braiddb_writebatch_destroy(to);
  });
}

TEST_F(CApiMemoryTest, BatchesOfAFamilyAreWrittenWholeOrNotAtAll) {
  this_thread = false;
  braiddb_options_t* const adding = braiddb_options_create();
  braiddb_options_set_uint64add_merge_operator(adding);
  braiddb_column_family_handle_t* const family = braiddb_create_column_family(db_, adding, "sums", error_.pointer());
  ASSERT_EQ("", error_.Take());
  this_thread = true;
  const char* const parts[] = {"k", kLong.c_str()};
  const size_t lengths[] = {1, kLong.size()};
  const auto work = [&](auto* batch, auto putv, auto mergev, auto deletev, auto write) {
    if (batch == nullptr) return;
    putv(batch, family, 2, parts, lengths, 2, parts, lengths);
    mergev(batch, family, 2, parts, lengths, 2, parts, lengths);
    deletev(batch, family, 1, parts, lengths);
    write(db_, write_, batch, error_.pointer());
    const bool written = TakeError().empty();
    EXPECT_TRUE(written || failed.load() != 0);
    // Put and merged into, and by that a number, or neither.
    const std::string key = "k" + kLong;
    size_t length = 0;
    char* const value = braiddb_get_cf(db_, read_, family, key.data(), key.size(), &length, error_.pointer());
    EXPECT_EQ("", error_.Take());
    EXPECT_EQ(written, value != nullptr);
    EXPECT_EQ(written ? sizeof(uint64_t) : 0, length);
    braiddb_free(value);
    braiddb_delete_cf(db_, write_, family, key.data(), key.size(), error_.pointer());
    EXPECT_EQ("", error_.Take());
  };
  ForEachFailure([&] {
    braiddb_writebatch_t* const batch = braiddb_writebatch_create();
    work(batch, braiddb_writebatch_putv_cf, braiddb_writebatch_mergev_cf, braiddb_writebatch_deletev_cf, braiddb_write);
    braiddb_writebatch_destroy(batch);
  });
  ForEachFailure([&] {
    braiddb_writebatch_wi_t* const batch = braiddb_writebatch_wi_create(0, 1);
    work(batch, braiddb_writebatch_wi_putv_cf, braiddb_writebatch_wi_mergev_cf, braiddb_writebatch_wi_deletev_cf,
         braiddb_write_writebatch_wi);
    braiddb_writebatch_wi_destroy(batch);
  });
  this_thread = false;
  braiddb_column_family_handle_destroy(family);
  braiddb_options_destroy(adding);
}

TEST_F(CApiMemoryTest, ObjectsAreThereOrNull) {
  ForEachFailure([&] {
    braiddb_comparator_destroy(braiddb_comparator_create(nullptr, nullptr, nullptr, nullptr));
    braiddb_mergeoperator_destroy(braiddb_mergeoperator_create(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));
    braiddb_filterpolicy_destroy(braiddb_filterpolicy_create_bloom(10));
    braiddb_slicetransform_destroy(braiddb_slicetransform_create_noop());
    braiddb_slicetransform_destroy(braiddb_slicetransform_create_capped_prefix(3));
    braiddb_dbpath_destroy(braiddb_dbpath_create(kLong.c_str(), 5));
    braiddb_ratelimiter_destroy(braiddb_ratelimiter_create(1, 2, 3));
    braiddb_writeoptions_destroy(braiddb_writeoptions_create());
    braiddb_flushoptions_destroy(braiddb_flushoptions_create());
    braiddb_compactoptions_destroy(braiddb_compactoptions_create());
    braiddb_block_based_options_destroy(braiddb_block_based_options_create());
    braiddb_env_destroy(braiddb_create_default_env());
    braiddb_envoptions_destroy(braiddb_envoptions_create());
    braiddb_restore_options_destroy(braiddb_restore_options_create());
    braiddb_backup_engine_options_destroy(braiddb_backup_engine_options_create(kLong.c_str()));
    braiddb_sstfilewriter_destroy(braiddb_sstfilewriter_create(nullptr, options_));
    braiddb_writebatch_destroy(braiddb_writebatch_create_from("\0\1\0\0\0\0\0\0\0k", 10));
    braiddb_writebatch_wi_destroy(braiddb_writebatch_wi_create_from("\0\1\0\0\0\0\0\0\0k", 10));
    if (braiddb_cache_t* const cache = braiddb_cache_create_lru(1 << 20); cache != nullptr) {
      (void)braiddb_cache_get_usage(cache);
      braiddb_cache_destroy(cache);
    }
    braiddb_free(braiddb_env_get_test_directory(nullptr));
    braiddb_release_snapshot(db_, braiddb_create_snapshot(db_));
    braiddb_checkpoint_object_destroy(braiddb_checkpoint_object_create(db_, error_.pointer()));
    braiddb_pinnableslice_destroy(braiddb_get_pinned(db_, read_, "a", 1, error_.pointer()));
    braiddb_free(braiddb_property_value(db_, "rocksdb.stats"));
    uint64_t number = 0;
    (void)braiddb_property_int(db_, "rocksdb.estimate-num-keys", &number);
    TakeError();
  });
}

}  // namespace
}  // namespace braiddb::test
