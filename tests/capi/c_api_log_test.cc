// The C API: the log as history.
#include <gtest/gtest.h>

#include <string>

#include "braiddb/c.h"
#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

std::string UpdatesOf(braiddb_writebatch_t* batch) {
  std::string text;
  const auto put = [](void* state, const char* key, size_t key_length, const char* value, size_t value_length) {
    *static_cast<std::string*>(state) += std::string(key, key_length) + "=" + std::string(value, value_length) + " ";
  };
  const auto deleted = [](void* state, const char* key, size_t key_length) {
    *static_cast<std::string*>(state) += "-" + std::string(key, key_length) + " ";
  };
  braiddb_writebatch_iterate(batch, &text, put, deleted);
  return text;
}

TEST_F(CApiTest, UpdatesAreGivenBatchByBatch) {
  Open();
  const uint64_t before = braiddb_get_latest_sequence_number(db_);
  EXPECT_EQ(nullptr, braiddb_get_updates_since(db_, before + 1, nullptr, error_.pointer()));
  EXPECT_EQ("NotFound: Requested sequence not yet written in the db", error_.Take());
  Put("a", "1");
  Delete("a");
  braiddb_writebatch_t* const batch = braiddb_writebatch_create();
  braiddb_writebatch_put(batch, "b", 1, "2", 1);
  braiddb_writebatch_put(batch, "c", 1, "3", 1);
  braiddb_write(db_, write_, batch, error_.pointer());
  braiddb_writebatch_destroy(batch);
  ASSERT_EQ("", error_.Take());

  braiddb_wal_iterator_t* const iterator = braiddb_get_updates_since(db_, before + 1, nullptr, error_.pointer());
  ASSERT_EQ("", error_.Take());
  std::string all;
  uint64_t least = before + 1;
  for (; braiddb_wal_iter_valid(iterator); braiddb_wal_iter_next(iterator)) {
    uint64_t sequence = 0;
    braiddb_writebatch_t* const found = braiddb_wal_iter_get_batch(iterator, &sequence);
    EXPECT_GE(sequence, least);
    least = sequence + static_cast<uint64_t>(braiddb_writebatch_count(found));
    all += UpdatesOf(found) + "| ";
    braiddb_writebatch_destroy(found);
    EXPECT_EQ(nullptr, braiddb_wal_iter_get_batch(iterator, nullptr));
  }
  EXPECT_EQ("a=1 | -a | b=2 c=3 | ", all);
  braiddb_wal_iter_status(iterator, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_wal_iter_destroy(iterator);
}

}  // namespace
}  // namespace braiddb::test
