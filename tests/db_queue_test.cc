// A queue in key order: seeks to the first key do not go on passing all keys that were taken before.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "braiddb/db.h"
#include "braiddb/perf_context.h"
#include "tests/support/db_test_util.h"
#include "tests/support/wait_until.h"

namespace braiddb::test {
namespace {

class DbQueueTest : public testing::TestWithParam<bool> {
 protected:
  bool is_backward() const { return GetParam(); }

  // Takes the first key, or the last one.
  std::string Take(DB* db) {
    const std::unique_ptr<Iterator> iterator = db->NewIterator({});
    is_backward() ? iterator->SeekToLast() : iterator->SeekToFirst();
    if (!iterator->Valid()) return "";
    std::string key(iterator->key());
    EXPECT_OK(db->Delete({}, key));
    return key;
  }
  // Deleted keys that a seek to the end passes.
  uint64_t Passed(DB* db) {
    SetPerfLevel(PerfLevel::kEnableCount);
    GetPerfContext()->Reset();
    const std::unique_ptr<Iterator> iterator = db->NewIterator({});
    is_backward() ? iterator->SeekToLast() : iterator->SeekToFirst();
    SetPerfLevel(PerfLevel::kDisable);
    return GetPerfContext()->internal_delete_skipped_count + GetPerfContext()->internal_key_skipped_count;
  }

  TestDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Ends, DbQueueTest, testing::Bool(), [](const auto& suite) { return suite.param ? "Last" : "First"; });

TEST_P(DbQueueTest, TakenKeysAreForgotten) {
  Options options;  // with a memtable that the queue does not fill
  options.l1 = TestedL1();
  options.create_if_missing = true;
  const std::unique_ptr<DB> db = OpenOrFail(options, directory_.File("db"));
  constexpr uint64_t kKeys = 4000, kTaken = 3000;
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), "value"));
  for (uint64_t i = 0; i < kTaken; ++i) ASSERT_EQ(Take(db.get()), NumberedKey(is_backward() ? kKeys - 1 - i : i));
  // Nothing else merges: no memtable is full. Further seeks ask for the merge.
  EXPECT_TRUE(WaitUntil([&] { return Passed(db.get()) <= 600; }));
  for (uint64_t i = kTaken; i < kKeys; ++i) ASSERT_EQ(Take(db.get()), NumberedKey(is_backward() ? kKeys - 1 - i : i));
  EXPECT_EQ(Take(db.get()), "");
}

// A snapshot keeps what was taken: the merges are in vain, and what it sees stays.
TEST_P(DbQueueTest, ASnapshotKeepsTheTakenKeys) {
  Options options;
  options.l1 = TestedL1();
  options.create_if_missing = true;
  const std::unique_ptr<DB> db = OpenOrFail(options, directory_.File("db"));
  constexpr uint64_t kKeys = 1500;
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), std::to_string(i)));
  const Snapshot* const snapshot = db->GetSnapshot();
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_EQ(Take(db.get()), NumberedKey(is_backward() ? kKeys - 1 - i : i));
  EXPECT_EQ(Take(db.get()), "");
  ReadOptions before;
  before.snapshot = snapshot;
  EXPECT_EQ(ScanForward(db.get(), before).size(), kKeys);
  db->ReleaseSnapshot(snapshot);
  EXPECT_TRUE(ScanForward(db.get()).empty());
}

}  // namespace
}  // namespace braiddb::test
