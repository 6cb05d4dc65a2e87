// What the tests of the C API share: a database in a directory of its own, errors and values that free themselves.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "braiddb/c.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb::test {

// Passed where a function wants an errptr; holds the text, which a next call replaces.
class Error {
 public:
  Error() = default;
  ~Error() { braiddb_free(text_); }
  Error(const Error&) = delete;
  Error& operator=(const Error&) = delete;
  char** pointer() { return &text_; }
  // The text since the last call, empty if there was no error.
  std::string Take() {
    const std::string text = text_ == nullptr ? "" : text_;
    braiddb_free(text_);
    text_ = nullptr;
    return text;
  }

 private:
  char* text_ = nullptr;
};

class CApiTest : public testing::Test {
 protected:
  CApiTest() { braiddb_options_set_create_if_missing(options_, 1); }
  ~CApiTest() override {
    Close();
    braiddb_readoptions_destroy(read_);
    braiddb_writeoptions_destroy(write_);
    braiddb_options_destroy(options_);
  }

  void Open() {
    Close();
    db_ = braiddb_open(options_, path().c_str(), error_.pointer());
    ASSERT_EQ("", error_.Take());
    ASSERT_NE(nullptr, db_);
  }
  void Close() {
    if (db_ == nullptr) return;
    braiddb_close_database(db_, error_.pointer());
    db_ = nullptr;
    EXPECT_EQ("", error_.Take());
  }
  std::string path() const { return directory_.Sub("db"); }

  void Put(std::string_view key, std::string_view value) {
    braiddb_put(db_, write_, key.data(), key.size(), value.data(), value.size(), error_.pointer());
    ASSERT_EQ("", error_.Take());
  }
  void Delete(std::string_view key) {
    braiddb_delete(db_, write_, key.data(), key.size(), error_.pointer());
    ASSERT_EQ("", error_.Take());
  }
  std::optional<std::string> Get(std::string_view key) { return Get(key, read_); }
  std::optional<std::string> Get(std::string_view key, const braiddb_readoptions_t* options) {
    size_t length = 999;
    char* const value = braiddb_get(db_, options, key.data(), key.size(), &length, error_.pointer());
    EXPECT_EQ("", error_.Take());
    if (value == nullptr) {
      EXPECT_EQ(0u, length);
      return std::nullopt;
    }
    std::string copy(value, length);
    braiddb_free(value);
    return copy;
  }
  // All keys and values of an iterator: "a=1 b=2 ".
  std::string Scan(const braiddb_readoptions_t* options) {
    braiddb_iterator_t* const iterator = braiddb_create_iterator(db_, options);
    EXPECT_FALSE(braiddb_iter_valid(iterator));
    std::string all;
    for (braiddb_iter_seek_to_first(iterator); braiddb_iter_valid(iterator); braiddb_iter_next(iterator)) Append(iterator, &all);
    braiddb_iter_get_error(iterator, error_.pointer());
    EXPECT_EQ("", error_.Take());
    braiddb_iter_destroy(iterator);
    return all;
  }
  static void Append(const braiddb_iterator_t* iterator, std::string* all) {
    size_t length = 0;
    const char* bytes = braiddb_iter_key(iterator, &length);
    all->append(bytes, length).append("=");
    bytes = braiddb_iter_value(iterator, &length);
    all->append(bytes, length).append(" ");
  }

  PmemTempDir directory_;
  Error error_;
  braiddb_options_t* options_ = braiddb_options_create();
  braiddb_readoptions_t* read_ = braiddb_readoptions_create();
  braiddb_writeoptions_t* write_ = braiddb_writeoptions_create();
  braiddb_t* db_ = nullptr;
};

}  // namespace braiddb::test
