// User-defined timestamps in the C API: each function, and its errors.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

constexpr size_t kBytes = 8;

// Big-endian, so that timestamps compare as bytes.
std::string Ts(uint64_t number) {
  std::string bytes(kBytes, '\0');
  for (size_t i = 0; i < kBytes; ++i) bytes[kBytes - 1 - i] = static_cast<char>(number >> 8 * i);
  return bytes;
}

int CompareTimestamps(void*, const char* a, size_t a_length, const char* b, size_t b_length) {
  return std::string_view(a, a_length).compare(std::string_view(b, b_length));
}
int CompareKeys(void*, const char* a, size_t a_length, unsigned char a_has, const char* b, size_t b_length, unsigned char b_has) {
  return std::string_view(a, a_length - (a_has ? kBytes : 0)).compare(std::string_view(b, b_length - (b_has ? kBytes : 0)));
}
int Compare(void*, const char* a, size_t a_length, const char* b, size_t b_length) {
  const int order = CompareKeys(nullptr, a, a_length, 1, b, b_length, 1);
  return order != 0 ? order : std::memcmp(b + b_length - kBytes, a + a_length - kBytes, kBytes);
}
const char* Name(void*) { return "test.timestamps"; }

class CApiTimestampTest : public CApiTest {
 protected:
  CApiTimestampTest() {
    braiddb_options_set_create_missing_column_families(options_, 1);
    braiddb_options_set_comparator(options_, comparator_);
    OpenBoth();
  }
  ~CApiTimestampTest() override {
    CloseBoth();
    braiddb_comparator_destroy(comparator_);
  }
  void OpenBoth(const std::string& trim_timestamp = "") {
    const char* const names[] = {"default", "other"};
    const braiddb_options_t* const options[] = {options_, options_};
    std::string trim = trim_timestamp;
    db_ = trim.empty() ? braiddb_open_column_families(options_, path().c_str(), 2, names, options, handles_, error_.pointer())
                       : braiddb_open_and_trim_history(options_, path().c_str(), 2, names, options, handles_, trim.data(),
                                                       trim.size(), error_.pointer());
    ASSERT_EQ("", error_.Take());
    ASSERT_NE(nullptr, db_);
  }
  void CloseBoth() {
    for (auto*& handle : handles_) {
      if (handle != nullptr) braiddb_column_family_handle_destroy(handle);
      handle = nullptr;
    }
    Close();
  }

  void SetTimestamp(uint64_t number) {
    const std::string timestamp = Ts(number);
    braiddb_readoptions_set_timestamp(read_, timestamp.data(), timestamp.size());
  }
  void PutAt(std::string_view key, const std::string& ts, std::string_view value) {
    braiddb_put_with_ts(db_, write_, key.data(), key.size(), ts.data(), ts.size(), value.data(), value.size(), error_.pointer());
  }
  // "value@timestamp", "(none)" or the error.
  std::string GetAt(std::string_view key, braiddb_column_family_handle_t* family = nullptr) {
    size_t length = 99, ts_length = 99;
    char* ts = error_place_;
    char* const value =
        family == nullptr
            ? braiddb_get_with_ts(db_, read_, key.data(), key.size(), &length, &ts, &ts_length, error_.pointer())
            : braiddb_get_cf_with_ts(db_, read_, family, key.data(), key.size(), &length, &ts, &ts_length, error_.pointer());
    std::string error = error_.Take();
    return !error.empty() ? error : Taken(value, length, ts, ts_length);
  }
  static std::string Taken(char* value, size_t length, char* ts, size_t ts_length) {
    if (value == nullptr) {
      EXPECT_EQ(nullptr, ts);
      EXPECT_EQ(0u, length + ts_length);
      return "(none)";
    }
    EXPECT_EQ(kBytes, ts_length);
    std::string text = std::string(value, length) + "@" + std::to_string(static_cast<unsigned char>(ts[kBytes - 1]));
    braiddb_free(value);
    braiddb_free(ts);
    return text;
  }
  std::string Scan(braiddb_column_family_handle_t* family = nullptr) {
    braiddb_iterator_t* const iterator =
        family == nullptr ? braiddb_create_iterator(db_, read_) : braiddb_create_iterator_cf(db_, read_, family);
    std::string text;
    for (braiddb_iter_seek_to_first(iterator); braiddb_iter_valid(iterator); braiddb_iter_next(iterator)) {
      size_t length = 0;
      const char* const key = braiddb_iter_key(iterator, &length);
      text.append(key, length) += "@";
      const char* const ts = braiddb_iter_timestamp(iterator, &length);
      EXPECT_EQ(kBytes, length);
      text += std::to_string(static_cast<unsigned char>(ts[kBytes - 1])) + " ";
    }
    braiddb_iter_get_error(iterator, error_.pointer());
    braiddb_iter_destroy(iterator);
    const std::string error = error_.Take();
    return error.empty() ? text : error;
  }

  braiddb_comparator_t* const comparator_ =
      braiddb_comparator_with_ts_create(nullptr, nullptr, Compare, CompareTimestamps, CompareKeys, Name, kBytes);
  braiddb_column_family_handle_t* handles_[2] = {nullptr, nullptr};
  char error_place_[1] = {};
};

TEST_F(CApiTimestampTest, PutGetAndDelete) {
  PutAt("key", Ts(1), "");
  PutAt("key", Ts(2), "two");
  const std::string ts3 = Ts(3), ts4 = Ts(4);
  braiddb_delete_with_ts(db_, write_, "key", 3, ts3.data(), kBytes, error_.pointer());
  braiddb_put_cf_with_ts(db_, write_, handles_[1], "key", 3, ts3.data(), kBytes, "other", 5, error_.pointer());
  braiddb_delete_cf_with_ts(db_, write_, handles_[1], "none", 4, ts3.data(), kBytes, error_.pointer());
  PutAt("single", Ts(1), "one");
  braiddb_singledelete_with_ts(db_, write_, "single", 6, ts4.data(), kBytes, error_.pointer());
  braiddb_singledelete_cf_with_ts(db_, write_, handles_[1], "key", 3, ts4.data(), kBytes, error_.pointer());
  EXPECT_EQ("", error_.Take());
  SetTimestamp(1);
  EXPECT_EQ("@1", GetAt("key"));
  EXPECT_EQ("(none)", GetAt("key", handles_[1]));
  SetTimestamp(2);
  EXPECT_EQ("two@2", GetAt("key"));
  SetTimestamp(3);
  EXPECT_EQ("(none)", GetAt("key"));
  EXPECT_EQ("other@3", GetAt("key", handles_[1]));
  EXPECT_EQ("one@1", GetAt("single"));
  SetTimestamp(4);
  EXPECT_EQ("(none)", GetAt("single"));
  EXPECT_EQ("(none)", GetAt("key", handles_[1]));
  EXPECT_EQ(std::nullopt, Get("key"));
  SetTimestamp(2);
  EXPECT_EQ("two", Get("key"));
  braiddb_pinnableslice_t* const pinned = braiddb_get_pinned(db_, read_, "key", 3, error_.pointer());
  size_t length = 0;
  EXPECT_EQ(0, std::memcmp("two", braiddb_pinnableslice_value(pinned, &length), 3));
  EXPECT_EQ(3u, length);
  braiddb_pinnableslice_destroy(pinned);
}

TEST_F(CApiTimestampTest, MultiGet) {
  PutAt("a", Ts(1), "1");
  PutAt("b", Ts(2), "2");
  SetTimestamp(5);
  const char* const keys[] = {"none", "a", "b"};
  const size_t lengths[] = {4, 1, 1};
  std::array<char*, 3> values{}, timestamps{}, errors{};
  std::array<size_t, 3> value_lengths{}, ts_lengths{};
  braiddb_multi_get_with_ts(db_, read_, 3, keys, lengths, values.data(), value_lengths.data(), timestamps.data(),
                            ts_lengths.data(), errors.data());
  EXPECT_EQ("(none)", Taken(values[0], value_lengths[0], timestamps[0], ts_lengths[0]));
  EXPECT_EQ("1@1", Taken(values[1], value_lengths[1], timestamps[1], ts_lengths[1]));
  EXPECT_EQ("2@2", Taken(values[2], value_lengths[2], timestamps[2], ts_lengths[2]));
  const braiddb_column_family_handle_t* const families[] = {handles_[0], handles_[1], handles_[0]};
  braiddb_multi_get_cf_with_ts(db_, read_, families, 3, keys, lengths, values.data(), value_lengths.data(), timestamps.data(),
                               ts_lengths.data(), errors.data());
  EXPECT_EQ("(none)", Taken(values[1], value_lengths[1], timestamps[1], ts_lengths[1]));
  EXPECT_EQ("2@2", Taken(values[2], value_lengths[2], timestamps[2], ts_lengths[2]));
  for (const char* error : errors) EXPECT_EQ(nullptr, error);
  braiddb_readoptions_set_timestamp(read_, nullptr, 0);
  braiddb_multi_get_with_ts(db_, read_, 3, keys, lengths, values.data(), value_lengths.data(), timestamps.data(),
                            ts_lengths.data(), errors.data());
  for (char* error : errors) {
    EXPECT_NE(nullptr, error);
    braiddb_free(error);
  }
}

TEST_F(CApiTimestampTest, Iterators) {
  PutAt("a", Ts(1), "1");
  PutAt("a", Ts(2), "2");
  const std::string ts3 = Ts(3);
  braiddb_delete_with_ts(db_, write_, "a", 1, ts3.data(), kBytes, error_.pointer());
  PutAt("b", Ts(3), "3");
  SetTimestamp(2);
  EXPECT_EQ("a@2 ", Scan());
  SetTimestamp(9);
  EXPECT_EQ("b@3 ", Scan());
  EXPECT_EQ("", Scan(handles_[1]));
  const std::string start = Ts(2);
  braiddb_readoptions_set_iter_start_ts(read_, start.data(), start.size());
  braiddb_iterator_t* const iterator = braiddb_create_iterator(db_, read_);
  std::string types;
  for (braiddb_iter_seek_to_first(iterator); braiddb_iter_valid(iterator); braiddb_iter_next(iterator)) {
    size_t length = 0;
    const char* const key = braiddb_iter_key(iterator, &length);
    ASSERT_EQ(1 + kBytes + 8, length);
    types += std::string(key, 1) + std::to_string(static_cast<unsigned char>(key[kBytes])) + ":" +
             std::to_string(static_cast<unsigned char>(key[1 + kBytes])) + " ";
  }
  braiddb_iter_destroy(iterator);
  EXPECT_EQ("a3:20 a2:1 b3:1 ", types);
}

TEST_F(CApiTimestampTest, TailingIterators) {
  PutAt("a", Ts(1), "1");
  SetTimestamp(5);
  braiddb_readoptions_set_tailing(read_, 1);
  braiddb_iterator_t* const iterator = braiddb_create_iterator(db_, read_);
  SetTimestamp(0);  // the iterator keeps its timestamp
  PutAt("b", Ts(2), "2");
  PutAt("c", Ts(6), "3");
  braiddb_iter_seek_to_first(iterator);
  braiddb_iter_next(iterator);
  ASSERT_TRUE(braiddb_iter_valid(iterator));
  size_t length = 0;
  EXPECT_EQ('b', *braiddb_iter_key(iterator, &length));
  braiddb_iter_next(iterator);
  EXPECT_FALSE(braiddb_iter_valid(iterator));
  braiddb_iter_destroy(iterator);
}

TEST_F(CApiTimestampTest, Batches) {
  const std::string ts1 = Ts(1), ts2 = Ts(2);
  braiddb_writebatch_t* const batch = braiddb_writebatch_create();
  braiddb_writebatch_put_cf_with_ts(batch, handles_[0], "a", 1, ts1.data(), kBytes, "1", 1);
  braiddb_writebatch_put_cf_with_ts(batch, handles_[1], "b", 1, ts1.data(), kBytes, "2", 1);
  braiddb_writebatch_delete_cf_with_ts(batch, handles_[0], "a", 1, ts2.data(), kBytes);
  braiddb_writebatch_singledelete_cf_with_ts(batch, handles_[1], "b", 1, ts2.data(), kBytes);
  EXPECT_EQ(4, braiddb_writebatch_count(batch));
  // RocksDB's form has the timestamp at the end of the key.
  size_t size = 0;
  const char* const data = braiddb_writebatch_data(batch, &size);
  const std::string form(data, size);
  EXPECT_EQ(form.substr(12, 13), std::string("\x01\x09", 2) + "a" + ts1 + std::string("\x01", 1) + "1");
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  SetTimestamp(1);
  EXPECT_EQ("1@1", GetAt("a"));
  EXPECT_EQ("2@1", GetAt("b", handles_[1]));
  SetTimestamp(2);
  EXPECT_EQ("(none)", GetAt("a"));
  EXPECT_EQ("(none)", GetAt("b", handles_[1]));
  // An update that no family takes: the write has its error.
  for (int i = 0; i < 4; ++i) {
    braiddb_writebatch_clear(batch);
    if (i == 0) braiddb_writebatch_put_cf_with_ts(batch, handles_[0], "a", 1, ts1.data(), 3, "1", 1);
    if (i == 1) braiddb_writebatch_delete_cf_with_ts(batch, nullptr, "a", 1, ts1.data(), kBytes);
    if (i == 2) braiddb_writebatch_singledelete_cf_with_ts(batch, handles_[0], "a", 1, ts1.data(), 9);
    if (i == 3) braiddb_writebatch_put(batch, "a", 1, "1", 1);
    braiddb_write(db_, write_, batch, error_.pointer());
    EXPECT_NE("", error_.Take()) << i;
  }
  braiddb_writebatch_destroy(batch);
}

TEST_F(CApiTimestampTest, History) {
  PutAt("a", Ts(1), "1");
  PutAt("a", Ts(2), "2");
  PutAt("a", Ts(5), "5");
  size_t length = 99;
  char* limit = braiddb_get_full_history_ts_low(db_, handles_[0], &length, error_.pointer());
  EXPECT_EQ(0u, length);
  braiddb_free(limit);
  std::string ts3 = Ts(3);
  braiddb_increase_full_history_ts_low(db_, handles_[0], ts3.data(), kBytes, error_.pointer());
  EXPECT_EQ("", error_.Take());
  limit = braiddb_get_full_history_ts_low(db_, handles_[0], &length, error_.pointer());
  EXPECT_EQ(ts3, std::string(limit, length));
  braiddb_free(limit);
  const std::string ts2 = Ts(2);
  braiddb_increase_full_history_ts_low(db_, handles_[0], ts2.data(), kBytes, error_.pointer());
  EXPECT_NE("", error_.Take());
  SetTimestamp(2);
  EXPECT_NE(std::string::npos, GetAt("a").find("is smaller than full_history_ts_low"));
  EXPECT_NE(std::string::npos, Scan().find("is smaller than full_history_ts_low"));
  braiddb_compactoptions_t* const compact = braiddb_compactoptions_create();
  std::string ts4 = Ts(4);
  braiddb_compactoptions_set_full_history_ts_low(compact, ts4.data(), kBytes);
  braiddb_compact_range_cf_opt(db_, handles_[0], compact, nullptr, 0, nullptr, 0);
  braiddb_compactoptions_destroy(compact);
  limit = braiddb_get_full_history_ts_low(db_, handles_[0], &length, error_.pointer());
  EXPECT_EQ(ts4, std::string(limit, length));
  braiddb_free(limit);
  SetTimestamp(4);
  EXPECT_EQ("2@2", GetAt("a"));
  CloseBoth();
  OpenBoth(Ts(4));
  SetTimestamp(9);
  EXPECT_EQ("2@2", GetAt("a")) << "the version of 5 was trimmed";
}

TEST_F(CApiTimestampTest, SortedFiles) {
  braiddb_envoptions_t* const env = braiddb_envoptions_create();
  braiddb_sstfilewriter_t* const writer = braiddb_sstfilewriter_create(env, options_);
  const std::string file = path() + ".sst";
  braiddb_sstfilewriter_open(writer, file.c_str(), error_.pointer());
  const std::string ts1 = Ts(1), ts2 = Ts(2);
  braiddb_sstfilewriter_put_with_ts(writer, "a", 1, ts1.data(), kBytes, "1", 1, error_.pointer());
  braiddb_sstfilewriter_delete_with_ts(writer, "b", 1, ts2.data(), kBytes, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_sstfilewriter_put(writer, "c", 1, "1", 1, error_.pointer());
  EXPECT_NE("", error_.Take());
  braiddb_sstfilewriter_put_with_ts(writer, "c", 1, ts1.data(), 2, "1", 1, error_.pointer());
  EXPECT_NE("", error_.Take());
  braiddb_sstfilewriter_finish(writer, error_.pointer());
  PutAt("b", Ts(1), "1");
  braiddb_ingestexternalfileoptions_t* const ingest = braiddb_ingestexternalfileoptions_create();
  const char* const files[] = {file.c_str()};
  braiddb_ingest_external_file(db_, files, 1, ingest, error_.pointer());
  EXPECT_EQ("", error_.Take());
  SetTimestamp(3);
  EXPECT_EQ("1@1", GetAt("a"));
  EXPECT_EQ("(none)", GetAt("b"));
  braiddb_ingestexternalfileoptions_destroy(ingest);
  braiddb_sstfilewriter_destroy(writer);
  braiddb_envoptions_destroy(env);
}

TEST_F(CApiTimestampTest, WrongUse) {
  braiddb_put(db_, write_, "a", 1, "1", 1, error_.pointer());
  EXPECT_NE(std::string::npos, error_.Take().find("that enables timestamp"));
  braiddb_merge(db_, write_, "a", 1, "1", 1, error_.pointer());
  EXPECT_NE("", error_.Take());
  PutAt("a", "short", "1");
  EXPECT_NE(std::string::npos, error_.Take().find("Timestamp sizes mismatch"));
  EXPECT_NE(std::string::npos, GetAt("a").find("that enables timestamp"));
  EXPECT_NE(std::string::npos, Scan().find("that enables timestamp"));
}

TEST_F(CApiTimestampTest, Ranges) {
  PutAt("a", Ts(1), "1");
  PutAt("a", Ts(2), "2");
  PutAt("c", Ts(1), "1");
  braiddb_delete_file_in_range(db_, "a", 1, "b", 1, error_.pointer());
  EXPECT_NE(std::string::npos, error_.Take().find("has timestamps"));
  braiddb_delete_file_in_range_cf(db_, handles_[0], nullptr, 0, nullptr, 0, error_.pointer());
  EXPECT_NE("", error_.Take());
  SetTimestamp(3);
  EXPECT_EQ("a@2 c@1 ", Scan());
  const char* const starts[] = {"a", "c"};
  const char* const limits[] = {"c", "a"};
  const size_t lengths[] = {1, 1};
  uint64_t sizes[] = {99, 99};
  braiddb_approximate_sizes(db_, 2, starts, lengths, limits, lengths, sizes, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_GE(sizes[0], 2 * (1 + kBytes + 1));
  EXPECT_LT(sizes[0], 3 * (1 + kBytes + 1));
  EXPECT_EQ(0u, sizes[1]);
  braiddb_approximate_sizes_cf(db_, handles_[1], 1, starts, lengths, limits, lengths, sizes, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ(0u, sizes[0]);
}

class CApiNoTimestampTest : public CApiTest {};

TEST_F(CApiNoTimestampTest, FamiliesWithoutTimestampsTakeNone) {
  Open();
  const std::string ts = Ts(1);
  const auto refused = [this] { return error_.Take().find("that does not enable timestamp") != std::string::npos; };
  braiddb_put_with_ts(db_, write_, "a", 1, ts.data(), kBytes, "1", 1, error_.pointer());
  EXPECT_TRUE(refused());
  braiddb_delete_with_ts(db_, write_, "a", 1, ts.data(), kBytes, error_.pointer());
  EXPECT_TRUE(refused());
  braiddb_singledelete_with_ts(db_, write_, "a", 1, ts.data(), kBytes, error_.pointer());
  EXPECT_TRUE(refused());
  braiddb_readoptions_set_timestamp(read_, ts.data(), kBytes);
  size_t length = 0, ts_length = 0;
  char* timestamp = nullptr;
  EXPECT_EQ(nullptr, braiddb_get_with_ts(db_, read_, "a", 1, &length, &timestamp, &ts_length, error_.pointer()));
  EXPECT_TRUE(refused());
  EXPECT_EQ(nullptr, braiddb_get(db_, read_, "a", 1, &length, error_.pointer()));
  EXPECT_TRUE(refused());
  braiddb_column_family_handle_t* const family = braiddb_get_default_column_family_handle(db_);
  braiddb_increase_full_history_ts_low(db_, family, ts.data(), kBytes, error_.pointer());
  EXPECT_NE("", error_.Take());
  EXPECT_EQ(nullptr, braiddb_get_full_history_ts_low(db_, family, &length, error_.pointer()));
  EXPECT_NE("", error_.Take());
  braiddb_column_family_handle_destroy(family);
}

}  // namespace
}  // namespace braiddb::test
