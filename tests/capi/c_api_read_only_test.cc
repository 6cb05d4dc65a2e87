// The C API: opening for reading only.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "braiddb/c.h"
#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

TEST_F(CApiTest, OpenForReadOnlyReads) {
  Open();
  Put("key", "value");
  Close();
  braiddb_t* const reader = braiddb_open_for_read_only(options_, path().c_str(), 1, error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_t* const second = braiddb_open_for_read_only(options_, path().c_str(), 0, error_.pointer());
  ASSERT_EQ("", error_.Take());
  EXPECT_EQ(nullptr, braiddb_open(options_, path().c_str(), error_.pointer()));
  EXPECT_TRUE(error_.Take().starts_with("IO error: "));
  size_t length = 0;
  char* const value = braiddb_get(reader, read_, "key", 3, &length, error_.pointer());
  EXPECT_EQ("value", std::string(value, length));
  braiddb_free(value);
  braiddb_put(reader, write_, "key", 3, "other", 5, error_.pointer());
  EXPECT_EQ("Not implemented: Not supported operation in read only mode.", error_.Take());
  braiddb_close(reader);
  braiddb_close(second);
}

TEST_F(CApiTest, OpenForReadOnlyOfNothingMakesNothing) {
  EXPECT_EQ(nullptr, braiddb_open_for_read_only(options_, path().c_str(), 0, error_.pointer()));
  EXPECT_EQ("IO error: No such file or directory: While opening a file for sequentially reading: " + path() +
                "/CURRENT: No such file or directory",
            error_.Take());
  size_t count = 0;
  EXPECT_EQ(nullptr, braiddb_list_column_families(options_, path().c_str(), &count, error_.pointer()));
  EXPECT_TRUE(error_.Take().starts_with("IO error: No such file or directory: "));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(CApiTest, OpenForReadOnlyOfSomeColumnFamilies) {
  Open();
  braiddb_column_family_handle_t* family = braiddb_create_column_family(db_, options_, "one", error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_put_cf(db_, write_, family, "key", 3, "value", 5, error_.pointer());
  braiddb_column_family_handle_destroy(family);
  family = braiddb_create_column_family(db_, options_, "two", error_.pointer());
  braiddb_column_family_handle_destroy(family);
  Close();
  const char* const names[] = {"default", "one"};
  const braiddb_options_t* const options[] = {options_, options_};
  braiddb_column_family_handle_t* handles[2];
  braiddb_t* const reader =
      braiddb_open_for_read_only_column_families(options_, path().c_str(), 2, names, options, handles, 0, error_.pointer());
  ASSERT_EQ("", error_.Take());
  size_t length = 0;
  char* const value = braiddb_get_cf(reader, read_, handles[1], "key", 3, &length, error_.pointer());
  EXPECT_EQ("value", std::string(value, length));
  braiddb_free(value);
  braiddb_flush(reader, nullptr, error_.pointer());
  EXPECT_TRUE(error_.Take().starts_with("Not implemented: "));
  for (auto* handle : handles) braiddb_column_family_handle_destroy(handle);
  braiddb_close(reader);
}

}  // namespace
}  // namespace braiddb::test
