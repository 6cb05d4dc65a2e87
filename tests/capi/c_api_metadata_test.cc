// Metadata of files and levels: all keys as one file of the last level, below an empty level 0.
#include <gtest/gtest.h>

#include <string>

#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

std::string TakeText(char* text) {
  const std::string copy = text == nullptr ? "<null>" : text;
  braiddb_free(text);
  return copy;
}

TEST_F(CApiTest, MetadataOfAnEmptyDatabase) {
  Open();
  braiddb_column_family_metadata_t* const metadata = braiddb_get_column_family_metadata(db_);
  ASSERT_NE(metadata, nullptr);
  EXPECT_EQ(TakeText(braiddb_column_family_metadata_get_name(metadata)), "default");
  EXPECT_EQ(braiddb_column_family_metadata_get_size(metadata), 0u);
  EXPECT_EQ(braiddb_column_family_metadata_get_file_count(metadata), 0u);
  ASSERT_EQ(braiddb_column_family_metadata_get_level_count(metadata), 7u);
  braiddb_level_metadata_t* const level = braiddb_column_family_metadata_get_level_metadata(metadata, 0);
  EXPECT_EQ(braiddb_level_metadata_get_file_count(level), 0u);
  EXPECT_EQ(braiddb_level_metadata_get_sst_file_metadata(level, 0), nullptr);
  braiddb_level_metadata_destroy(level);
  EXPECT_EQ(braiddb_column_family_metadata_get_level_metadata(metadata, 7), nullptr);
  braiddb_column_family_metadata_destroy(metadata);
}

TEST_F(CApiTest, MetadataSayWhichKeysThereAreAndHowMuchTheyTake) {
  Open();
  for (int i = 100; i < 200; ++i) Put("key" + std::to_string(i), std::string(500, 'v'));
  for (const bool compacted : {false, true}) {
    if (compacted) braiddb_compact_range(db_, nullptr, 0, nullptr, 0);
    braiddb_column_family_metadata_t* const metadata = braiddb_get_column_family_metadata(db_);
    EXPECT_EQ(braiddb_column_family_metadata_get_file_count(metadata), 1u);
    braiddb_level_metadata_t* const level = braiddb_column_family_metadata_get_level_metadata(metadata, 1);
    EXPECT_EQ(braiddb_level_metadata_get_level(level), 1);
    braiddb_sst_file_metadata_t* const file = braiddb_level_metadata_get_sst_file_metadata(level, 0);
    const uint64_t size = braiddb_sst_file_metadata_get_size(file);
    EXPECT_GT(size, 100u * 500u);
    EXPECT_LT(size, 100u * 800u);
    EXPECT_EQ(braiddb_level_metadata_get_size(level), size);
    EXPECT_EQ(braiddb_column_family_metadata_get_size(metadata), size);
    EXPECT_EQ(TakeText(braiddb_sst_file_metadata_get_relative_filename(file)), "region-0");
    size_t length = 0;
    EXPECT_EQ(TakeText(braiddb_sst_file_metadata_get_smallestkey(file, &length)), "key100");
    EXPECT_EQ(length, 6u);
    EXPECT_EQ(TakeText(braiddb_sst_file_metadata_get_largestkey(file, &length)), "key199");
    EXPECT_EQ(length, 6u);
    braiddb_sst_file_metadata_destroy(file);
    braiddb_level_metadata_destroy(level);
    braiddb_column_family_metadata_destroy(metadata);
  }
}

}  // namespace
}  // namespace braiddb::test
