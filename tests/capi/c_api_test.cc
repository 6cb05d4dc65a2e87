// The C API: what is put, got and iterated, errors, objects that come and go.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/capi/c_fixture.h"
#include "tests/support/file_cut.h"

namespace braiddb::test {
namespace {

using std::string_literals::operator""s;

TEST_F(CApiTest, OpenErrorsBeginAsRocksDBs) {
  braiddb_options_set_create_if_missing(options_, 0);
  EXPECT_EQ(nullptr, braiddb_open(options_, path().c_str(), error_.pointer()));
  EXPECT_EQ("Invalid argument: " + path() + "/CURRENT: does not exist (create_if_missing is false)", error_.Take());
  braiddb_options_set_create_if_missing(options_, 1);
  Open();
  braiddb_options_set_error_if_exists(options_, 1);
  EXPECT_EQ(nullptr, braiddb_open(options_, path().c_str(), error_.pointer()));
  EXPECT_EQ("Invalid argument: " + path() + ": exists (error_if_exists is true)", error_.Take());
  braiddb_options_set_error_if_exists(options_, 0);
  const std::string locked = "IO error: lock hold by current process: " + path() + "/LOCK: No locks available: ";
  EXPECT_EQ(nullptr, braiddb_open(options_, path().c_str(), error_.pointer()));
  EXPECT_EQ(0u, error_.Take().find(locked));
  braiddb_t* const reader = braiddb_open_for_read_only(options_, path().c_str(), 0, error_.pointer());
  EXPECT_EQ("", error_.Take());
  ASSERT_NE(nullptr, reader);
  braiddb_close(reader);
  braiddb_destroy_db(options_, path().c_str(), error_.pointer());
  EXPECT_EQ(0u, error_.Take().find(locked));
}

TEST_F(CApiTest, OneDirectoryIsMadeAndNotThoseAboveIt) {
  const std::string deep = directory_.Sub("no/such/place");
  for (const std::string suffix : {"", "/", "/."}) {
    EXPECT_EQ(nullptr, braiddb_open(options_, (deep + suffix).c_str(), error_.pointer())) << suffix;
    EXPECT_EQ(0u, error_.Take().find("IO error: No such file or directory: While mkdir if missing: " + deep)) << suffix;
  }
  std::ofstream(directory_.Sub("file")) << "x";
  for (const char* wrong : {"file", "file/db"}) {
    EXPECT_EQ(nullptr, braiddb_open(options_, directory_.Sub(wrong).c_str(), error_.pointer())) << wrong;
    EXPECT_EQ(0u, error_.Take().find("IO error: ")) << wrong;
  }
  for (const std::string suffix : {"/", "/."}) {
    braiddb_t* const db = braiddb_open(options_, (path() + suffix).c_str(), error_.pointer());
    EXPECT_EQ("", error_.Take()) << suffix;
    braiddb_close(db);
  }
}

TEST_F(CApiTest, WritesThatAreSyncedNeedTheLog) {
  Open();
  braiddb_writeoptions_disable_WAL(write_, 1);
  Put("a", "1");
  braiddb_writeoptions_set_sync(write_, 1);
  const std::string expected = "Invalid argument: Sync writes has to enable WAL.";
  braiddb_put(db_, write_, "b", 1, "2", 1, error_.pointer());
  EXPECT_EQ(expected, error_.Take());
  braiddb_delete(db_, write_, "a", 1, error_.pointer());
  EXPECT_EQ(expected, error_.Take());
  braiddb_delete_range(db_, write_, "a", 1, "z", 1, error_.pointer());
  EXPECT_EQ(expected, error_.Take());
  braiddb_writebatch_t* const batch = braiddb_writebatch_create();
  braiddb_writebatch_put(batch, "b", 1, "2", 1);
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_EQ(expected, error_.Take());
  braiddb_writebatch_destroy(batch);
  EXPECT_EQ("a=1 ", Scan(read_));
  braiddb_writeoptions_disable_WAL(write_, 0);
  Put("b", "2");
}

TEST_F(CApiTest, DeletionOfFilesDeletesTheirKeys) {
  Open();
  for (const char* key : {"1", "2", "3", "4", "5"}) Put(key, "v");
  braiddb_compact_range(db_, nullptr, 0, nullptr, 0);
  braiddb_delete_file_in_range(db_, "2", 1, "3", 1, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("1=v 4=v 5=v ", Scan(read_));
  braiddb_delete_file_in_range(db_, "9", 1, nullptr, 0, error_.pointer());
  EXPECT_EQ("1=v 4=v 5=v ", Scan(read_));
  braiddb_delete_file_in_range(db_, nullptr, 0, "4", 1, error_.pointer());
  EXPECT_EQ("5=v ", Scan(read_));
  for (int i = 0; i < 2; ++i) braiddb_delete_file_in_range(db_, nullptr, 0, nullptr, 0, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("", Scan(read_));
}

TEST_F(CApiTest, ThreadsOfAnEnvironment) {
  braiddb_env_t* const env = braiddb_create_default_env();
  EXPECT_EQ(0, braiddb_env_get_background_threads(env));
  EXPECT_EQ(0, braiddb_env_get_high_priority_background_threads(env));
  EXPECT_EQ(0, braiddb_env_get_low_priority_background_threads(env));
  EXPECT_EQ(0, braiddb_env_get_bottom_priority_background_threads(env));
  braiddb_env_set_background_threads(env, 5);
  EXPECT_EQ(5, braiddb_env_get_low_priority_background_threads(env));
  braiddb_env_set_low_priority_background_threads(env, 7);
  EXPECT_EQ(7, braiddb_env_get_background_threads(env));
  EXPECT_EQ(0, braiddb_env_get_high_priority_background_threads(env));
  braiddb_env_destroy(env);
}

// Four tombstones, and what they hide.
TEST_F(CApiTest, AnIteratorThatPassesTooManyKeysSaysSo) {
  Open();
  for (const char* key : {"1", "2", "3", "4", "5", "6"}) Put(key, "v");
  for (const char* key : {"2", "3", "4", "5"}) Delete(key);
  for (const uint64_t most : {uint64_t{0}, uint64_t{3}, uint64_t{8}}) {
    braiddb_readoptions_set_max_skippable_internal_keys(read_, most);
    braiddb_iterator_t* const iterator = braiddb_create_iterator(db_, read_);
    braiddb_iter_seek_to_first(iterator);
    EXPECT_TRUE(braiddb_iter_valid(iterator));
    braiddb_iter_next(iterator);
    braiddb_iter_get_error(iterator, error_.pointer());
    const std::string text = error_.Take();
    EXPECT_EQ(most == 3 ? "Result incomplete: Too many internal keys skipped." : "", text) << most;
    EXPECT_EQ(most != 3, braiddb_iter_valid(iterator)) << most;
    braiddb_iter_seek(iterator, "6", 1);
    EXPECT_TRUE(braiddb_iter_valid(iterator));
    braiddb_iter_get_error(iterator, error_.pointer());
    EXPECT_EQ("", error_.Take());
    braiddb_iter_destroy(iterator);
  }
}

TEST_F(CApiTest, AnErrorReplacesTheOneBefore) {
  braiddb_options_set_create_if_missing(options_, 0);
  char* error = static_cast<char*>(std::malloc(7));
  std::snprintf(error, 7, "before");
  EXPECT_EQ(nullptr, braiddb_open(options_, path().c_str(), &error));  // frees it
  ASSERT_NE(nullptr, error);
  EXPECT_EQ(0u, std::string(error).find("Invalid argument: "));
  braiddb_free(error);
}

TEST_F(CApiTest, SuccessLeavesTheErrorAlone) {
  Open();
  char* error = static_cast<char*>(std::malloc(7));
  std::snprintf(error, 7, "before");
  char* const before = error;
  braiddb_put(db_, write_, "k", 1, "v", 1, &error);
  EXPECT_EQ(before, error);
  EXPECT_STREQ("before", error);
  braiddb_free(error);
}

TEST_F(CApiTest, NoErrptrNoText) {
  braiddb_options_set_create_if_missing(options_, 0);
  EXPECT_EQ(nullptr, braiddb_open(options_, path().c_str(), nullptr));
  EXPECT_EQ(nullptr, braiddb_open_for_read_only(options_, path().c_str(), 0, nullptr));
}

TEST_F(CApiTest, AnyBytesOfAnyLength) {
  Open();
  const std::string large(3 << 20, 'x');
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"", "value of the empty key"}, {"empty value", ""}, {"\0zero\0"s, "\0\0"s}, {"large", large}};
  for (const auto& [key, value] : pairs) Put(key, value);
  for (const auto& [key, value] : pairs) EXPECT_EQ(value, Get(key));
  EXPECT_EQ(std::nullopt, Get("not there"));
  Open();  // again
  for (const auto& [key, value] : pairs) EXPECT_EQ(value, Get(key));
  Delete("");
  EXPECT_EQ(std::nullopt, Get(""));
}

// Memory is taken before the value is known, as large as the ones before. Everything that is taken is freed: AddressSanitizer's
// leaks, and its bounds.
TEST_F(CApiTest, ValuesAsLargeAsTheOnesBeforeAndOthers) {
  Open();
  const std::vector<int> lengths = {8,    8,    8,    8,    -1,   -1,   8,   8,    8,    100,  100,  7,    100,
                                    8,    8,    8,    9,    100,  100,  100, 0,    0,    0,    0,    1087, 1087,
                                    1087, 1088, 1088, 1088, 5000, -1,   -1,  5000, 5000, 5000, 1024, 1024, 1024,
                                    1025, 1024, 1024, 1024, -1,   1024, 8,   8,    8,    -1};
  for (const int length : lengths) {
    if (length >= 0) Put(std::to_string(length), std::string(static_cast<size_t>(length), static_cast<char>('a' + length % 26)));
  }
  for (const bool pinned : {false, true}) {
    for (const int length : lengths) {
      SCOPED_TRACE(length);
      const std::string key = std::to_string(length);
      const std::string expected(static_cast<size_t>(std::max(0, length)), static_cast<char>('a' + length % 26));
      size_t found = 7;
      if (pinned) {
        braiddb_pinnableslice_t* const value = braiddb_get_pinned(db_, read_, key.data(), key.size(), error_.pointer());
        ASSERT_EQ(length >= 0, value != nullptr);
        const char* const data = braiddb_pinnableslice_value(value, &found);
        EXPECT_EQ(expected, std::string(data == nullptr ? "" : data, found));
        braiddb_pinnableslice_destroy(value);
      } else {
        char* const value = braiddb_get(db_, read_, key.data(), key.size(), &found, error_.pointer());
        ASSERT_EQ(length >= 0, value != nullptr);
        EXPECT_EQ(expected.size(), found);
        if (value != nullptr) {
          EXPECT_EQ(expected, value);  // with its zero
        }
        braiddb_free(value);
      }
      EXPECT_EQ("", error_.Take());
    }
  }
}

TEST_F(CApiTest, KeysThatAreTooLongAreErrors) {
  Open();
  const std::string key((64 << 10) + 1, 'k');
  braiddb_put(db_, write_, key.data(), key.size(), "v", 1, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Invalid argument: "));
  braiddb_writebatch_t* const batch = braiddb_writebatch_create();
  braiddb_writebatch_put(batch, "good", 4, "v", 1);
  braiddb_writebatch_put(batch, key.data(), key.size(), "v", 1);
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Invalid argument: "));
  EXPECT_EQ(std::nullopt, Get("good"));
  braiddb_writebatch_clear(batch);
  braiddb_writebatch_put(batch, "good", 4, "v", 1);
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("v", Get("good"));
  braiddb_writebatch_destroy(batch);
}

TEST_F(CApiTest, PinnedValuesAndSeveralAtOnce) {
  Open();
  Put("a", "1");
  Put("b", "");
  braiddb_pinnableslice_t* const pinned = braiddb_get_pinned(db_, read_, "a", 1, error_.pointer());
  ASSERT_NE(nullptr, pinned);
  size_t length = 0;
  Put("a", "2");  // what is pinned stays
  EXPECT_EQ("1", std::string(braiddb_pinnableslice_value(pinned, &length), 1));
  EXPECT_EQ(1u, length);
  braiddb_pinnableslice_destroy(pinned);
  braiddb_pinnableslice_destroy(nullptr);
  for (const size_t bytes : {0, 1, 1024, 1025, 100'000}) {  // copied, and held where they lie
    const std::string value(bytes, 'v');
    Put("long", value);
    braiddb_pinnableslice_t* const held = braiddb_get_pinned(db_, read_, "long", 4, error_.pointer());
    ASSERT_NE(nullptr, held);
    Put("long", "another");
    const char* const data = braiddb_pinnableslice_value(held, &length);
    EXPECT_EQ(value, std::string(data, length));
    braiddb_pinnableslice_destroy(held);
  }
  EXPECT_EQ(nullptr, braiddb_get_pinned(db_, read_, "c", 1, error_.pointer()));
  EXPECT_EQ("", error_.Take());
  length = 7;
  EXPECT_EQ(nullptr, braiddb_pinnableslice_value(nullptr, &length));
  EXPECT_EQ(0u, length);

  const char* const keys[] = {"a", "b", "c"};
  const size_t key_lengths[] = {1, 1, 1};
  char* values[3];
  size_t value_lengths[3];
  char* errors[3];
  braiddb_multi_get(db_, read_, 3, keys, key_lengths, values, value_lengths, errors);
  EXPECT_EQ("2", std::string(values[0], value_lengths[0]));
  ASSERT_NE(nullptr, values[1]);  // an empty value is there
  EXPECT_EQ(0u, value_lengths[1]);
  EXPECT_EQ(nullptr, values[2]);
  for (char* const error : errors) EXPECT_EQ(nullptr, error);
  for (char* const value : values) braiddb_free(value);

  unsigned char found = 7;
  char* value = nullptr;
  EXPECT_TRUE(braiddb_key_may_exist(db_, read_, "a", 1, &value, &length, nullptr, 0, &found));
  EXPECT_EQ(1, found);
  EXPECT_EQ("2", std::string(value, length));
  braiddb_free(value);
  EXPECT_FALSE(braiddb_key_may_exist(db_, read_, "c", 1, nullptr, nullptr, nullptr, 0, nullptr));
  EXPECT_FALSE(braiddb_key_may_exist(db_, read_, "c", 1, &value, &length, nullptr, 0, &found));
  EXPECT_EQ(1, found);  // as RocksDB says: the value is known, and an empty one
  EXPECT_EQ("", std::string(value, length));
  braiddb_free(value);
}

TEST_F(CApiTest, IteratorsBoundsPrefixesSnapshots) {
  Open();
  for (const char* key : {"a", "b1", "b2", "b3", "c"}) Put(key, "v");
  EXPECT_EQ("a=v b1=v b2=v b3=v c=v ", Scan(read_));
  {
    std::string lower = "b2";
    std::string upper = "c";
    braiddb_readoptions_set_iterate_lower_bound(read_, lower.data(), lower.size());
    braiddb_readoptions_set_iterate_upper_bound(read_, upper.data(), upper.size());
    lower = upper = "x";  // they were copied
  }
  EXPECT_EQ("b2=v b3=v ", Scan(read_));
  braiddb_readoptions_set_iterate_lower_bound(read_, nullptr, 0);
  braiddb_readoptions_set_iterate_upper_bound(read_, nullptr, 0);
  braiddb_readoptions_set_prefix(read_, "b", 1);
  EXPECT_EQ("b1=v b2=v b3=v ", Scan(read_));
  braiddb_readoptions_set_prefix(read_, nullptr, 0);

  const braiddb_snapshot_t* const snapshot = braiddb_create_snapshot(db_);
  Delete("a");
  braiddb_readoptions_set_snapshot(read_, snapshot);
  EXPECT_EQ("a=v b1=v b2=v b3=v c=v ", Scan(read_));
  EXPECT_EQ("v", Get("a"));
  braiddb_readoptions_set_snapshot(read_, nullptr);
  EXPECT_EQ(std::nullopt, Get("a"));
  braiddb_release_snapshot(db_, snapshot);

  braiddb_iterator_t* const iterator = braiddb_create_iterator(db_, read_);
  braiddb_iter_seek_for_prev(iterator, "b22", 3);
  std::string at;
  Append(iterator, &at);
  EXPECT_EQ("b2=v ", at);
  braiddb_iter_prev(iterator);
  braiddb_iter_prev(iterator);
  EXPECT_FALSE(braiddb_iter_valid(iterator));
  braiddb_iter_destroy(iterator);
}

TEST_F(CApiTest, PrefixSameAsStart) {
  braiddb_options_set_prefix_extractor(options_, braiddb_slicetransform_create_fixed_prefix(1));
  Open();
  for (const char* key : {"a1", "a2", "b1", "b2", "c1"}) Put(key, "v");
  braiddb_readoptions_set_prefix_same_as_start(read_, 1);
  braiddb_iterator_t* const iterator = braiddb_create_iterator(db_, read_);
  std::string all;
  for (braiddb_iter_seek(iterator, "b", 1); braiddb_iter_valid(iterator); braiddb_iter_next(iterator)) Append(iterator, &all);
  EXPECT_EQ("b1=v b2=v ", all);
  braiddb_iter_destroy(iterator);
}

// ---- Comparators

int CompareBackwards(void*, const char* a, size_t a_length, const char* b, size_t b_length) {
  return std::string_view(b, b_length).compare(std::string_view(a, a_length));
}
const char* NameOf(void* state) { return static_cast<const char*>(state); }
int destroyed = 0;
void CountDestroyed(void*) { ++destroyed; }

TEST_F(CApiTest, ComparatorsOfOnesOwn) {
  char name[] = "backwards";
  char other_name[] = "other";
  destroyed = 0;
  braiddb_comparator_t* const comparator = braiddb_comparator_create(name, CountDestroyed, CompareBackwards, NameOf);
  braiddb_options_set_comparator(options_, comparator);
  Open();
  for (const char* key : {"b", "a", "c"}) Put(key, "v");
  EXPECT_EQ("c=v b=v a=v ", Scan(read_));
  Close();
  braiddb_comparator_t* const other = braiddb_comparator_create(other_name, CountDestroyed, CompareBackwards, NameOf);
  braiddb_options_set_comparator(options_, other);
  EXPECT_EQ(nullptr, braiddb_open(options_, path().c_str(), error_.pointer()));
  EXPECT_EQ("Invalid argument: other: does not match existing comparator backwards", error_.Take());
  braiddb_comparator_destroy(comparator);
  braiddb_comparator_destroy(other);
  EXPECT_EQ(2, destroyed);
}

// ---- Batches

void AppendPut(void* state, const char* key, size_t key_length, const char* value, size_t value_length) {
  static_cast<std::string*>(state)->append(key, key_length).append("=").append(value, value_length).append(" ");
}
void AppendDelete(void* state, const char* key, size_t key_length) {
  static_cast<std::string*>(state)->append("-").append(key, key_length).append(" ");
}
std::string Content(braiddb_writebatch_t* batch) {
  std::string all;
  braiddb_writebatch_iterate(batch, &all, AppendPut, AppendDelete);
  return all;
}

TEST_F(CApiTest, BatchesAreAppendedCopiedAndRolledBack) {
  Open();
  braiddb_writebatch_t* const batch = braiddb_writebatch_create();
  braiddb_writebatch_put(batch, "a", 1, "1", 1);
  braiddb_writebatch_set_save_point(batch);
  braiddb_writebatch_delete(batch, "a", 1);
  EXPECT_EQ("a=1 -a ", Content(batch));
  braiddb_writebatch_rollback_to_save_point(batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("a=1 ", Content(batch));
  EXPECT_EQ(1, braiddb_writebatch_count(batch));
  braiddb_writebatch_rollback_to_save_point(batch, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("NotFound: "));

  braiddb_writebatch_append(batch, batch);
  EXPECT_EQ("a=1 a=1 ", Content(batch));
  size_t length = 0;
  const char* const data = braiddb_writebatch_data(batch, &length);
  braiddb_writebatch_t* const copy = braiddb_writebatch_create_from(data, length);
  EXPECT_EQ("a=1 a=1 ", Content(copy));
  braiddb_writebatch_t* const broken = braiddb_writebatch_create_from(data, length - 1);
  braiddb_write(db_, write_, broken, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Corruption: "));
  EXPECT_EQ(std::nullopt, Get("a"));
  braiddb_write(db_, write_, copy, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("1", Get("a"));
  for (braiddb_writebatch_t* const each : {batch, copy, broken}) braiddb_writebatch_destroy(each);
}

TEST_F(CApiTest, RangesAreDeletedInTheOrderOfTheBatch) {
  Open();
  for (const char* key : {"a", "b", "c", "d"}) Put(key, "old");
  braiddb_writebatch_t* const batch = braiddb_writebatch_create();
  braiddb_writebatch_put(batch, "bb", 2, "gone", 4);
  braiddb_writebatch_delete_range(batch, "b", 1, "d", 1);
  braiddb_writebatch_put(batch, "c", 1, "new", 3);
  braiddb_writebatch_delete_range(batch, "z", 1, "z", 1);  // empty
  EXPECT_EQ(4, braiddb_writebatch_count(batch));
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("a=old c=new d=old ", Scan(read_));
  braiddb_writebatch_delete_range(batch, "z", 1, "a", 1);
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_EQ("Invalid argument: end key comes before start key", error_.Take());
  EXPECT_EQ("a=old c=new d=old ", Scan(read_));
  braiddb_writebatch_destroy(batch);
  braiddb_delete_range(db_, write_, "", 0, "d", 1, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("d=old ", Scan(read_));
}

TEST_F(CApiTest, BatchesWithAnIndexAreReadOverTheDatabase) {
  Open();
  for (const char* key : {"a", "b", "c", "d"}) Put(key, "db");
  braiddb_writebatch_wi_t* const batch = braiddb_writebatch_wi_create(0, 1);
  braiddb_writebatch_wi_put(batch, "b", 1, "1", 1);
  braiddb_writebatch_wi_set_save_point(batch);
  braiddb_writebatch_wi_put(batch, "b", 1, "2", 1);
  braiddb_writebatch_wi_rollback_to_save_point(batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_writebatch_wi_delete(batch, "a", 1);
  braiddb_writebatch_wi_delete(batch, "d", 1);
  braiddb_writebatch_wi_put(batch, "bb", 2, "3", 1);
  size_t length = 0;
  char* value = braiddb_writebatch_wi_get_from_batch_and_db(batch, db_, read_, "b", 1, &length, error_.pointer());
  EXPECT_EQ("1", std::string(value, length));
  braiddb_free(value);
  EXPECT_EQ(nullptr, braiddb_writebatch_wi_get_from_batch_and_db(batch, db_, read_, "a", 1, &length, error_.pointer()));
  value = braiddb_writebatch_wi_get_from_batch_and_db(batch, db_, read_, "c", 1, &length, error_.pointer());
  EXPECT_EQ("db", std::string(value, length));
  braiddb_free(value);

  braiddb_iterator_t* const iterator =
      braiddb_writebatch_wi_create_iterator_with_base(batch, braiddb_create_iterator(db_, read_));
  std::string forward;
  for (braiddb_iter_seek_to_first(iterator); braiddb_iter_valid(iterator); braiddb_iter_next(iterator))
    Append(iterator, &forward);
  EXPECT_EQ("b=1 bb=3 c=db ", forward);
  std::string backward;
  for (braiddb_iter_seek_to_last(iterator); braiddb_iter_valid(iterator); braiddb_iter_prev(iterator))
    Append(iterator, &backward);
  EXPECT_EQ("c=db bb=3 b=1 ", backward);
  std::string turns;
  braiddb_iter_seek(iterator, "bb", 2);
  Append(iterator, &turns);
  braiddb_iter_next(iterator);
  Append(iterator, &turns);
  braiddb_iter_prev(iterator);
  Append(iterator, &turns);
  braiddb_iter_prev(iterator);
  Append(iterator, &turns);
  braiddb_iter_next(iterator);
  Append(iterator, &turns);
  EXPECT_EQ("bb=3 c=db bb=3 b=1 bb=3 ", turns);
  braiddb_iter_destroy(iterator);

  braiddb_write_writebatch_wi(db_, write_, batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("b=1 bb=3 c=db ", Scan(read_));
  braiddb_writebatch_wi_destroy(batch);
}

TEST_F(CApiTest, BatchesWithAnIndexTakeTheOrderAndTheBoundsOfTheDatabase) {
  char name[] = "backwards";
  braiddb_comparator_t* const comparator = braiddb_comparator_create(name, CountDestroyed, CompareBackwards, NameOf);
  braiddb_options_set_comparator(options_, comparator);
  Open();
  for (const char* key : {"a", "c", "e"}) Put(key, "db");
  for (const bool in_order : {false, true}) {
    braiddb_writebatch_wi_t* const batch =
        in_order ? braiddb_writebatch_wi_create_with_comparator(comparator, 1) : braiddb_writebatch_wi_create(0, 1);
    for (const char* key : {"b", "d", "f"}) braiddb_writebatch_wi_put(batch, key, 1, "batch", 5);
    braiddb_writebatch_wi_delete(batch, "c", 1);
    braiddb_readoptions_set_iterate_lower_bound(read_, "e", 1);
    braiddb_readoptions_set_iterate_upper_bound(read_, "a", 1);
    braiddb_iterator_t* const iterator =
        braiddb_writebatch_wi_create_iterator_with_base(batch, braiddb_create_iterator(db_, read_));
    std::string all;
    for (braiddb_iter_seek_to_first(iterator); braiddb_iter_valid(iterator); braiddb_iter_next(iterator)) Append(iterator, &all);
    EXPECT_EQ("e=db d=batch b=batch ", all);
    all.clear();
    for (braiddb_iter_seek_to_last(iterator); braiddb_iter_valid(iterator); braiddb_iter_prev(iterator)) Append(iterator, &all);
    EXPECT_EQ("b=batch d=batch e=db ", all);
    braiddb_iter_get_error(iterator, error_.pointer());
    EXPECT_EQ("", error_.Take());
    braiddb_iter_destroy(iterator);
    braiddb_writebatch_wi_destroy(batch);
  }
  Close();
  braiddb_comparator_destroy(comparator);
}

TEST_F(CApiTest, BatchesWithAnIndexThatCannotBeWritten) {
  Open();
  braiddb_writebatch_wi_t* const batch = braiddb_writebatch_wi_create(0, 0);
  const std::string key((64 << 10) + 1, 'k');
  braiddb_writebatch_wi_put(batch, "a", 1, "1", 1);
  braiddb_writebatch_wi_set_save_point(batch);
  braiddb_writebatch_wi_put(batch, key.data(), key.size(), "v", 1);
  braiddb_writebatch_wi_delete_range(batch, "a", 1, "b", 1);
  EXPECT_EQ(1, braiddb_writebatch_wi_count(batch));
  braiddb_write_writebatch_wi(db_, write_, batch, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Not implemented: braiddb_writebatch_wi_delete_range: "));
  EXPECT_EQ(std::nullopt, Get("a"));
  braiddb_writebatch_wi_rollback_to_save_point(batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_write_writebatch_wi(db_, write_, batch, error_.pointer());  // what made it unfit was taken back
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("1", Get("a"));
  braiddb_writebatch_wi_rollback_to_save_point(batch, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("NotFound: "));
  size_t length = 0;
  const char* const data = braiddb_writebatch_wi_data(batch, &length);
  braiddb_writebatch_wi_t* const copy = braiddb_writebatch_wi_create_from(data, length);
  char* const value = braiddb_writebatch_wi_get_from_batch(copy, options_, "a", 1, &length, error_.pointer());
  EXPECT_EQ("1", std::string(value, length));
  braiddb_free(value);
  braiddb_writebatch_wi_t* const broken = braiddb_writebatch_wi_create_from("x", 1);
  braiddb_write_writebatch_wi(db_, write_, broken, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Corruption: "));
  for (braiddb_writebatch_wi_t* const each : {batch, copy, broken}) braiddb_writebatch_wi_destroy(each);
}

TEST_F(CApiTest, BatchesOverIteratorsThatEndWithThePrefix) {
  braiddb_options_set_prefix_extractor(options_, braiddb_slicetransform_create_fixed_prefix(1));
  Open();
  for (const char* key : {"a1", "b1", "c1"}) Put(key, "v");
  braiddb_writebatch_wi_t* const batch = braiddb_writebatch_wi_create(0, 1);
  for (const char* key : {"a2", "b2", "c2"}) braiddb_writebatch_wi_put(batch, key, 2, "w", 1);
  braiddb_readoptions_set_prefix_same_as_start(read_, 1);
  braiddb_iterator_t* const iterator =
      braiddb_writebatch_wi_create_iterator_with_base(batch, braiddb_create_iterator(db_, read_));
  std::string all;
  for (braiddb_iter_seek(iterator, "b", 1); braiddb_iter_valid(iterator); braiddb_iter_next(iterator)) Append(iterator, &all);
  EXPECT_EQ("b1=v b2=w ", all);
  braiddb_iter_destroy(iterator);
  braiddb_writebatch_wi_destroy(batch);
}

// ---- Properties, sizes, admin

TEST_F(CApiTest, PropertiesByAllPrefixes) {
  Open();
  Put("k", "v");
  for (const char* name : {"braiddb.stats", "rocksdb.stats", "leveldb.stats", "leveldb.sstables", "leveldb.num-files-at-level0",
                           "leveldb.approximate-memory-usage", "rocksdb.estimate-num-keys", "rocksdb.levelstats"}) {
    char* const value = braiddb_property_value(db_, name);
    EXPECT_NE(nullptr, value) << name;
    braiddb_free(value);
  }
  for (const char* name : {"nosuchprop", "leveldb.", "rocksdb.nosuchprop", "leveldb.num-files-at-level9"})
    EXPECT_EQ(nullptr, braiddb_property_value(db_, name)) << name;
  EXPECT_EQ(1u, braiddb_get_latest_sequence_number(db_));
  uint64_t number = 0;
  braiddb_compact_range(db_, nullptr, 0, nullptr, 0);
  EXPECT_EQ(0, braiddb_property_int(db_, "rocksdb.estimate-num-keys", &number));
  EXPECT_EQ(1u, number);
  EXPECT_EQ(-1, braiddb_property_int(db_, "rocksdb.stats", &number));
}

TEST_F(CApiTest, PropertiesThatUsersOfRocksDBLookAt) {
  braiddb_options_set_disable_auto_compactions(options_, 1);
  Open();
  const auto number = [&](const char* name) {
    uint64_t value = 0;
    EXPECT_EQ(0, braiddb_property_int(db_, name, &value)) << name;
    return value;
  };
  for (int i = 0; i < 300; ++i) Put("l1-" + std::to_string(i), std::string(100, 'v'));
  braiddb_compact_range(db_, nullptr, 0, nullptr, 0);
  for (int i = 0; i < 200; ++i) Put("l0-" + std::to_string(i), std::string(100, 'v'));
  braiddb_flushoptions_t* const flush = braiddb_flushoptions_create();
  braiddb_flush(db_, flush, error_.pointer());
  braiddb_flushoptions_destroy(flush);
  EXPECT_EQ("", error_.Take());
  for (int i = 0; i < 5000; ++i) Put("m-" + std::to_string(i), std::string(100, 'v'));
  EXPECT_EQ(5000u, number("rocksdb.num-entries-active-mem-table"));
  EXPECT_EQ(0u, number("rocksdb.num-entries-imm-mem-tables"));
  EXPECT_EQ(0u, number("rocksdb.num-immutable-mem-table"));
  EXPECT_EQ(200u, number("braiddb.num-entries-l0"));
  EXPECT_EQ(300u, number("braiddb.num-entries-l1"));
  EXPECT_EQ(500u + number("rocksdb.num-entries-active-mem-table"), number("rocksdb.estimate-num-keys"));
  EXPECT_EQ(1u, number("rocksdb.num-files-at-level0"));
  EXPECT_EQ(1u, number("rocksdb.compaction-pending"));
  EXPECT_EQ(1u, number("rocksdb.base-level"));
  const uint64_t live = number("rocksdb.estimate-live-data-size");
  EXPECT_GT(live, 5500u * 100);
  EXPECT_LT(live, 5500u * 300);
  const uint64_t pending = number("rocksdb.estimate-pending-compaction-bytes");
  EXPECT_GT(pending, 200u * 100);
  EXPECT_LT(pending, 200u * 300);
  EXPECT_GE(number("rocksdb.total-sst-files-size"), live);
  EXPECT_GT(number("rocksdb.cur-size-all-mem-tables"), 0u);
  EXPECT_GT(number("rocksdb.block-cache-capacity"), 0u);
  EXPECT_EQ(number("rocksdb.block-cache-usage"), number("braiddb.lookup-cache-bytes"));
  EXPECT_EQ(0u, number("rocksdb.block-cache-pinned-usage"));
  EXPECT_EQ(0u, number("rocksdb.num-blob-files"));
  EXPECT_EQ(0u, number("rocksdb.background-errors"));
  EXPECT_EQ(0u, number("rocksdb.is-write-stopped"));
  const braiddb_snapshot_t* const snapshot = braiddb_create_snapshot(db_);
  EXPECT_EQ(1u, number("rocksdb.num-snapshots"));
  braiddb_release_snapshot(db_, snapshot);
  EXPECT_EQ(0u, number("rocksdb.num-snapshots"));
  EXPECT_EQ(0u, number("rocksdb.oldest-snapshot-sequence"));
  EXPECT_EQ(1u, number("rocksdb.is-file-deletions-enabled"));
  braiddb_disable_file_deletions(db_, error_.pointer());
  EXPECT_EQ(0u, number("rocksdb.is-file-deletions-enabled"));
  braiddb_enable_file_deletions(db_, 0, error_.pointer());
  EXPECT_EQ(1u, number("rocksdb.is-file-deletions-enabled"));
  for (const char* name :
       {"num-immutable-mem-table-flushed", "mem-table-flush-pending", "num-running-flushes", "num-running-compactions",
        "size-all-mem-tables", "num-deletes-active-mem-table", "num-deletes-imm-mem-tables", "estimate-table-readers-mem",
        "oldest-snapshot-time", "num-live-versions", "current-super-version-number", "min-log-number-to-keep",
        "min-obsolete-sst-number-to-keep", "live-sst-files-size", "actual-delayed-write-rate", "total-blob-file-size",
        "live-blob-file-size", "live-blob-file-garbage-size", "blob-cache-capacity"}) {
    number(("rocksdb." + std::string(name)).c_str());
  }
}

TEST_F(CApiTest, TextsOfPropertiesHaveRocksDBsHeadings) {
  braiddb_options_set_disable_auto_compactions(options_, 1);
  Open();
  const auto text = [&](const char* name) {
    char* const value = braiddb_property_value(db_, name);
    const std::string result = value == nullptr ? "(null)" : value;
    braiddb_free(value);
    return result;
  };
  for (int i = 0; i < 100; ++i) Put("k" + std::to_string(i), std::string(100, 'v'));
  braiddb_compact_range(db_, nullptr, 0, nullptr, 0);
  Put("l0", "v");
  braiddb_flush(db_, nullptr, error_.pointer());
  const std::string compactions = "\n** Compaction Stats [default] **\nLevel    Files   Size     Score Read(GB)";
  const std::string histogram = "\n** File Read Latency Histogram By Level [default] **\n";
  const std::string writes = "\n** DB Stats **\nUptime(secs): ";
  EXPECT_EQ(0u, text("rocksdb.stats").find(compactions));
  EXPECT_NE(std::string::npos, text("rocksdb.stats").find(histogram));
  EXPECT_NE(std::string::npos, text("rocksdb.stats").find(writes));
  EXPECT_EQ(0u, text("rocksdb.cfstats").find(compactions));
  EXPECT_EQ(0u, text("rocksdb.cfstats-no-file-histogram").find(compactions));
  EXPECT_EQ(std::string::npos, text("rocksdb.cfstats-no-file-histogram").find(histogram));
  EXPECT_EQ(histogram, text("rocksdb.cf-file-histogram"));
  EXPECT_EQ(0u, text("rocksdb.dbstats").find(writes));
  EXPECT_NE(std::string::npos, text("rocksdb.dbstats").find("\nCumulative writes: 101 writes, 101 keys, 101 commit groups, "));
  EXPECT_NE(std::string::npos, text("rocksdb.dbstats").find("\nInterval writes: 0 writes, 0 keys, "));
  EXPECT_NE(std::string::npos, text("rocksdb.dbstats").find("\nCumulative stall: 00:00:0.000 H:M:S, 0.0 percent\n"));
  EXPECT_EQ(0u, text("rocksdb.levelstats")
                    .find("Level Files Size(MB)\n--------------------\n  0        1        0\n"
                          "  1        1        0\n  2        0        0\n"));
  EXPECT_EQ(0u, text("rocksdb.sstables").find("--- level 0 --- version# 1 ---\n 1:"));
  EXPECT_EQ(0u, text("leveldb.stats").find("                               Compactions\nLevel  Files Size(MB) "));
  EXPECT_EQ(0u, text("rocksdb.aggregated-table-properties").find("# data blocks=0; # entries=101; "));
  EXPECT_EQ(0u, text("rocksdb.aggregated-table-properties-at-level0").find("# data blocks=0; # entries=1; "));
  EXPECT_EQ("1.000000", text("rocksdb.compression-ratio-at-level1"));
  EXPECT_EQ("-1.000000", text("rocksdb.compression-ratio-at-level2"));
  EXPECT_EQ("0", text("rocksdb.live-sst-files-size-at-temperature1"));
  EXPECT_EQ(0u, text("rocksdb.block-cache-entry-stats").find("Block cache "));
  EXPECT_EQ(0u, text("rocksdb.blob-stats").find("Number of blob files: 0\n"));
  EXPECT_EQ("18446744073709551615", text("rocksdb.min-obsolete-sst-number-to-keep"));
  for (const char* none : {"options-statistics", "num-files-at-level7", "num-files-at-level", "estimate-oldest-key-time",
                           "aggregated-table-properties-at-level7", "compression-ratio-at-level9"})
    EXPECT_EQ("(null)", text(("rocksdb." + std::string(none)).c_str())) << none;
  EXPECT_EQ(0u, text("braiddb.levels").find("level      tables"));
}

TEST_F(CApiTest, LiveFiles) {
  Open();
  const auto* files = braiddb_livefiles(db_);
  EXPECT_EQ(0, braiddb_livefiles_count(files));
  braiddb_livefiles_destroy(files);
  for (int i = 100; i < 200; ++i) Put("k" + std::to_string(i), std::string(100, 'v'));
  braiddb_column_family_handle_t* const other = braiddb_create_column_family(db_, options_, "other", error_.pointer());
  braiddb_put_cf(db_, write_, other, "x", 1, "v", 1, error_.pointer());
  braiddb_compact_range(db_, nullptr, 0, nullptr, 0);
  EXPECT_EQ("", error_.Take());
  files = braiddb_livefiles(db_);
  ASSERT_EQ(2, braiddb_livefiles_count(files));
  EXPECT_STREQ("default", braiddb_livefiles_column_family_name(files, 0));
  EXPECT_STREQ("other", braiddb_livefiles_column_family_name(files, 1));
  EXPECT_EQ(1, braiddb_livefiles_level(files, 0));
  EXPECT_STREQ("/region-0", braiddb_livefiles_name(files, 0));
  EXPECT_EQ(100u, braiddb_livefiles_entries(files, 0));
  EXPECT_GT(braiddb_livefiles_size(files, 0), 100u * 100);
  size_t length = 0;
  const char* key = braiddb_livefiles_smallestkey(files, 0, &length);
  EXPECT_EQ("k100", std::string(key, length));
  key = braiddb_livefiles_largestkey(files, 0, &length);
  EXPECT_EQ("k199", std::string(key, length));
  braiddb_livefiles_destroy(files);
  braiddb_column_family_handle_destroy(other);
}

TEST_F(CApiTest, SizesOfRanges) {
  Open();
  const std::string value(1000, 'v');
  for (int i = 0; i < 1000; ++i) Put("k" + std::to_string(1000 + i), value);
  for (const bool flushed : {false, true}) {
    if (flushed) braiddb_compact_range(db_, nullptr, 0, nullptr, 0);
    const char* const starts[] = {"k1000", "k1500", "x"};
    const char* const limits[] = {"k1500", "k1600", "z"};
    const size_t start_lengths[] = {5, 5, 1};
    const size_t limit_lengths[] = {5, 5, 1};
    uint64_t sizes[3];
    braiddb_approximate_sizes(db_, 3, starts, start_lengths, limits, limit_lengths, sizes, error_.pointer());
    EXPECT_EQ("", error_.Take());
    EXPECT_NEAR(500'000, static_cast<double>(sizes[0]), 100'000);
    EXPECT_NEAR(100'000, static_cast<double>(sizes[1]), 50'000);
    EXPECT_EQ(0u, sizes[2]);
  }
}

TEST_F(CApiTest, FlushCompactWaitDestroy) {
  Open();
  Put("k", "v");
  braiddb_flushoptions_t* const flush = braiddb_flushoptions_create();
  braiddb_flush(db_, flush, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_flushoptions_destroy(flush);
  braiddb_wait_for_compaction(db_, error_.pointer());
  EXPECT_EQ("", error_.Take());
  const uint64_t latest = braiddb_wait_for_update(db_, 0, UINT64_MAX, error_.pointer());
  EXPECT_GT(latest, 0u);
  EXPECT_EQ(0u, braiddb_wait_for_update(db_, latest, 1000, error_.pointer()));
  EXPECT_EQ("", error_.Take()) << "time is up: no error";
  Put("k", "v");
  EXPECT_GT(braiddb_wait_for_update(db_, latest, UINT64_MAX, error_.pointer()), latest);
  EXPECT_EQ("", error_.Take());
  braiddb_compact_range(db_, "a", 1, "z", 1);
  braiddb_flush_wal(db_, 1, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("v", Get("k"));
  Close();
  braiddb_check_db(options_, path().c_str(), error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_destroy_db(options_, path().c_str(), error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(CApiTest, RepairInPlaceKeepsTheDamagedOneBesideIt) {
  braiddb_options_set_regions(options_, 1);
  Open();
  for (int i = 0; i < 100; ++i) Put("k" + std::to_string(i), std::string(100, 'v'));
  Close();
  braiddb_repair_db(options_, path().c_str(), error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_FALSE(std::filesystem::exists(path() + ".damaged"));  // it was sound

  // The MANIFEST's pointers are of no use for a salvage; the part list is needed by an open.
  std::filesystem::remove(path() + "/region-0/PARTS");
  EXPECT_EQ(nullptr, braiddb_open(options_, path().c_str(), error_.pointer()));
  EXPECT_NE("", error_.Take());
  braiddb_repair_db(options_, path().c_str(), error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_TRUE(std::filesystem::exists(path() + ".damaged"));
  Open();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(std::string(100, 'v'), Get("k" + std::to_string(i)));
  braiddb_repair_db(options_, directory_.Sub("nothing").c_str(), error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("IO error: "));
}

TEST_F(CApiTest, InfoLogGoesToTheCallback) {
  std::string lines;
  braiddb_options_set_info_log_callback(options_, &lines, [](void* state, const char* line, size_t length) {
    static_cast<std::string*>(state)->append(line, length).append("\n");
  });
  Open();
  Close();
  EXPECT_NE(std::string::npos, lines.find("open: serving")) << lines;
  EXPECT_FALSE(std::filesystem::exists(path() + "/LOG"));
}

TEST_F(CApiTest, ACheckpointIsADatabaseOfItsOwn) {
  Open();
  for (int i = 0; i < 5000; ++i) Put("k" + std::to_string(i), std::string(200, 'v'));
  Delete("k7");
  braiddb_checkpoint_t* const checkpoint = braiddb_checkpoint_object_create(db_, error_.pointer());
  const std::string copy = directory_.Sub("copy");
  braiddb_checkpoint_create(checkpoint, copy.c_str(), 0, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_checkpoint_create(checkpoint, copy.c_str(), 0, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Invalid argument: "));
  braiddb_checkpoint_object_destroy(checkpoint);
  Put("later", "v");
  Close();
  db_ = braiddb_open(options_, copy.c_str(), error_.pointer());
  ASSERT_EQ("", error_.Take());
  EXPECT_EQ(std::nullopt, Get("k7"));
  EXPECT_EQ(std::nullopt, Get("later"));
  for (int i = 8; i < 5000; ++i) ASSERT_EQ(std::string(200, 'v'), Get("k" + std::to_string(i)));
  EXPECT_FALSE(std::filesystem::exists(copy + ".tmp"));
}

TEST_F(CApiTest, BackupsAreMadePurgedVerifiedAndRestored) {
  Open();
  const std::string directory = directory_.Sub("backups");
  braiddb_backup_engine_t* const engine = braiddb_backup_engine_open(options_, directory.c_str(), error_.pointer());
  ASSERT_EQ("", error_.Take());
  for (const char* value : {"1", "2", "3"}) {
    Put("k", value);
    braiddb_backup_engine_create_new_backup(engine, db_, error_.pointer());
    ASSERT_EQ("", error_.Take());
  }
  braiddb_backup_engine_purge_old_backups(engine, 2, error_.pointer());
  EXPECT_EQ("", error_.Take());
  const braiddb_backup_engine_info_t* const info = braiddb_backup_engine_get_backup_info(engine);
  ASSERT_EQ(2, braiddb_backup_engine_info_count(info));
  EXPECT_EQ(2u, braiddb_backup_engine_info_backup_id(info, 0));
  EXPECT_EQ(3u, braiddb_backup_engine_info_backup_id(info, 1));
  EXPECT_EQ(braiddb_backup_engine_info_size(info, 1), std::filesystem::file_size(directory + "/3.backup"));
  EXPECT_EQ(braiddb_backup_engine_info_number_files(info, 1), 1u);
  EXPECT_GT(braiddb_backup_engine_info_timestamp(info, 1), 0);
  braiddb_backup_engine_info_destroy(info);
  braiddb_backup_engine_t* const another = braiddb_backup_engine_open(options_, directory.c_str(), error_.pointer());
  EXPECT_EQ(nullptr, another);
  EXPECT_EQ(0u, error_.Take().find("Resource busy: "));
  for (const uint32_t id : {2u, 3u}) {
    braiddb_backup_engine_verify_backup(engine, id, error_.pointer());
    EXPECT_EQ("", error_.Take());
  }
  Put("later", "v");
  Close();
  braiddb_restore_options_t* const restore = braiddb_restore_options_create();
  braiddb_backup_engine_restore_db_from_backup(engine, path().c_str(), path().c_str(), restore, 1, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("NotFound: "));  // purged
  braiddb_backup_engine_restore_db_from_backup(engine, path().c_str(), path().c_str(), restore, 2, error_.pointer());
  EXPECT_EQ("", error_.Take());
  Open();
  EXPECT_EQ("k=2 ", Scan(read_));
  Close();
  {  // into directories of its regions' own
    const std::string root = directory_.Sub("root");
    std::filesystem::create_directory(root);
    setenv("BRAIDDB_REGION_ROOTS", root.c_str(), 1);
    const std::string elsewhere = directory_.Sub("elsewhere");
    braiddb_backup_engine_restore_db_from_latest_backup(engine, elsewhere.c_str(), elsewhere.c_str(), restore, error_.pointer());
    EXPECT_EQ("", error_.Take());
    db_ = braiddb_open(options_, elsewhere.c_str(), error_.pointer());
    ASSERT_EQ("", error_.Take());
    EXPECT_EQ("k=3 ", Scan(read_));
    Close();
    EXPECT_FALSE(std::filesystem::exists(elsewhere + "/region-0"));
    unsetenv("BRAIDDB_REGION_ROOTS");
  }
  // A backup that is not whole takes nothing away.
  std::filesystem::resize_file(directory + "/3.backup", 100);
  braiddb_backup_engine_verify_backup(engine, 3, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Corruption: "));
  braiddb_backup_engine_restore_db_from_backup(engine, path().c_str(), path().c_str(), restore, 3, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Corruption: "));
  braiddb_restore_options_set_keep_log_files(restore, 1);
  braiddb_backup_engine_restore_db_from_backup(engine, path().c_str(), path().c_str(), restore, 2, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Not implemented: "));  // it would take away what the log has
  Open();
  EXPECT_EQ("k=2 ", Scan(read_));
  braiddb_backup_engine_restore_db_from_backup(engine, path().c_str(), path().c_str(), nullptr, 2, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Resource busy: "));
  braiddb_restore_options_destroy(restore);
  braiddb_backup_engine_close(engine);
}

TEST_F(CApiTest, ARestoredDatabaseHasTheOptionsOfTheOriginal) {
  char name[] = "backwards";
  braiddb_comparator_t* const comparator = braiddb_comparator_create(name, CountDestroyed, CompareBackwards, NameOf);
  braiddb_options_set_comparator(options_, comparator);
  braiddb_options_set_l1_kind(options_, braiddb_l1_nv_tree);
  braiddb_options_set_nv_leaf_size(options_, 512);
  braiddb_options_set_regions(options_, 2);
  braiddb_options_set_max_open_files(options_, 77);
  Open();
  for (const char* key : {"a", "b"}) Put(key, "v");
  const std::string directory = directory_.Sub("backups");
  braiddb_backup_engine_options_t* const how = braiddb_backup_engine_options_create(directory.c_str());
  braiddb_backup_engine_t* engine = braiddb_backup_engine_open_opts(how, nullptr, error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_backup_engine_create_new_backup(engine, db_, error_.pointer());
  EXPECT_EQ("", error_.Take());
  Close();
  braiddb_backup_engine_restore_db_from_latest_backup(engine, path().c_str(), path().c_str(), nullptr, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Invalid argument: the backup is of a database with the comparator backwards"));
  braiddb_backup_engine_close(engine);
  braiddb_backup_engine_options_set_comparator(how, comparator);
  engine = braiddb_backup_engine_open_opts(how, nullptr, error_.pointer());
  braiddb_backup_engine_restore_db_from_latest_backup(engine, path().c_str(), path().c_str(), nullptr, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_backup_engine_close(engine);
  Open();  // with another kind of last level it would be refused
  EXPECT_EQ("b=v a=v ", Scan(read_));
  EXPECT_TRUE(std::filesystem::exists(path() + "/region-1"));
  Close();
  std::ifstream file(path() + "/OPTIONS");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(std::string::npos, text.find("\n  max_open_files=77\n")) << text;

  braiddb_backup_engine_options_set_destroy_old_data(how, 1);
  std::filesystem::resize_file(directory + "/1.backup", 100);
  engine = braiddb_backup_engine_open_opts(how, nullptr, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_FALSE(std::filesystem::exists(directory + "/1.backup"));
  braiddb_backup_engine_close(engine);
  braiddb_backup_engine_options_destroy(how);
  braiddb_comparator_destroy(comparator);
}

TEST_F(CApiTest, FilesOfSortedKeysAreTakenInAllOrNone) {
  Open();
  for (const char* key : {"a", "b", "c"}) Put(key, "old");
  const std::string file = directory_.Sub("file");
  const std::string second = directory_.Sub("second");
  braiddb_sstfilewriter_t* const writer = braiddb_sstfilewriter_create(nullptr, options_);
  braiddb_sstfilewriter_put(writer, "b", 1, "new", 3, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Invalid argument: "));  // not open
  braiddb_sstfilewriter_open(writer, file.c_str(), error_.pointer());
  braiddb_sstfilewriter_delete_range(writer, "a", 1, "c", 1, error_.pointer());
  braiddb_sstfilewriter_put(writer, "b", 1, "new", 3, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_sstfilewriter_put(writer, "aa", 2, "new", 3, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Invalid argument: "));  // not in order
  braiddb_sstfilewriter_finish(writer, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_sstfilewriter_open(writer, second.c_str(), error_.pointer());
  braiddb_sstfilewriter_delete(writer, "c", 1, error_.pointer());
  braiddb_sstfilewriter_finish(writer, error_.pointer());
  EXPECT_EQ("", error_.Take());
  uint64_t size = 0;
  braiddb_sstfilewriter_file_size(writer, &size);
  EXPECT_EQ(std::filesystem::file_size(second), size);
  braiddb_sstfilewriter_destroy(writer);

  const auto ingest = [&](const std::vector<const char*>& files) {
    braiddb_ingestexternalfileoptions_t* const options = braiddb_ingestexternalfileoptions_create();
    braiddb_ingest_external_file(db_, files.data(), files.size(), options, error_.pointer());
    braiddb_ingestexternalfileoptions_destroy(options);
    return error_.Take();
  };
  std::filesystem::copy(second, directory_.Sub("cut"));
  std::filesystem::resize_file(directory_.Sub("cut"), size - 1);
  EXPECT_EQ(0u, ingest({file.c_str(), directory_.Sub("cut").c_str()}).find("Corruption: "));
  EXPECT_EQ(0u, ingest({file.c_str(), directory_.Sub("missing").c_str()}).find("IO error: "));
  EXPECT_EQ("a=old b=old c=old ", Scan(read_));
  EXPECT_EQ("", ingest({file.c_str(), second.c_str()}));
  EXPECT_EQ("b=new ", Scan(read_));
}

}  // namespace
}  // namespace braiddb::test
