// Ranges that are deleted and written anew in one batch, beside readers, snapshots and compactions: everybody sees whole batches.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/db_fixture.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

constexpr int kKeys = 40;

class DbRangeDeleteConcurrentTest : public DbTest {
 protected:
  // All keys in use have the writer's last round; which ones these are, it tells, too. The keys are a run of those with even, or
  // odd, numbers, so that a batch has ranges, puts and no deletions of single keys.
  static void Fill(int round, WriteBatch* batch) {
    batch->DeleteRange(NumberedKey(0), NumberedKey(kKeys));
    for (int i = round % 2; i < kKeys; i += 2) batch->Put(NumberedKey(i), std::to_string(round));
    batch->Put(Always(), std::to_string(round));
  }
  // A key of every round, in the range: each batch deletes it and puts it.
  static std::string Always() { return NumberedKey(0) + "always"; }
  // `read`: as of when.
  testing::AssertionResult IsWhole(ReadOptions read, bool forward) {
    read.iterate_upper_bound = "z";  // what lies behind is another thread's
    const std::unique_ptr<Iterator> iterator = db_->NewIterator(read);
    std::string round;
    int count = 0;
    for (forward ? iterator->SeekToFirst() : iterator->SeekToLast(); iterator->Valid();
         forward ? iterator->Next() : iterator->Prev()) {
      if (count++ == 0) round = std::string(iterator->value());
      if (iterator->value() != round)
        return testing::AssertionFailure() << round << " and " << iterator->value() << " at " << iterator->key();
    }
    if (!iterator->status().ok()) return testing::AssertionFailure() << iterator->status().ToString();
    if (count != kKeys / 2 + 1) return testing::AssertionFailure() << count << " keys in round " << round;
    return testing::AssertionSuccess();
  }
};

INSTANTIATE_TEST_SUITE_P(Regions, DbRangeDeleteConcurrentTest, testing::Values(1, 2));

TEST_P(DbRangeDeleteConcurrentTest, EverybodySeesWholeBatches) {
  const int rounds = 6000 / kSlowdown;
  WriteBatch first;
  Fill(0, &first);
  ASSERT_OK(db_->Write({}, first));
  std::atomic<int> acknowledged{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  // One of two neighbours is there, and no older than what was acknowledged. Of the newest state.
  for (int reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&, reader] {
      for (int i = reader; !stop; ++i) {
        const int before = acknowledged;
        std::string value;
        Status status = db_->Get({}, NumberedKey(i % kKeys), &value);
        if (status.ok()) {
          EXPECT_EQ(std::stoi(value) % 2, i % kKeys % 2);
          EXPECT_GE(std::stoi(value), before);
        } else {
          EXPECT_TRUE(status.IsNotFound()) << status.ToString();
        }
        status = db_->Get({}, Always(), &value);
        ASSERT_OK(status);
        EXPECT_GE(std::stoi(value), before);
        EXPECT_LE(std::stoi(value), acknowledged + 1) << "one more may be under way";
      }
    });
  }
  threads.emplace_back([&] {
    std::vector<std::string> names;
    for (int i = 0; i < kKeys; ++i) names.push_back(NumberedKey(i));
    const std::vector<Slice> keys(names.begin(), names.end());
    for (bool forward = true; !stop; forward = !forward) {
      EXPECT_TRUE(IsWhole({}, forward));
      std::vector<std::string> values;
      const std::vector<Status> statuses = db_->MultiGet({}, keys, &values);
      int there = 0;
      for (const Status& status : statuses) there += status.ok();
      EXPECT_EQ(there, kKeys / 2);
      const Snapshot* const snapshot = db_->GetSnapshot();
      ReadOptions read;
      read.snapshot = snapshot;
      for (int look = 0; look < 3; ++look) EXPECT_TRUE(IsWhole(read, look % 2 == 0));
      db_->ReleaseSnapshot(snapshot);
    }
  });
  threads.emplace_back([&] {
    while (!stop) {
      EXPECT_OK(db_->CompactRange({}, nullptr, nullptr));
      std::this_thread::yield();
    }
  });
  // Ranges beside, which come and go.
  threads.emplace_back([&] {
    for (int i = 0; !stop; ++i) {
      EXPECT_OK(db_->Put({}, "z" + std::to_string(i % 50), "value"));
      if (i % 7 == 0) {
        EXPECT_OK(db_->DeleteRange({}, "z", "zz"));
      }
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    WriteBatch batch;
    Fill(round, &batch);
    ASSERT_OK(db_->Write({}, batch));
    acknowledged = round;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK(db_->DeleteRange({}, "z", "zz"));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-range-tombstones"), 0u);
  EXPECT_TRUE(IsWhole({}, true));
  Reopen();
  EXPECT_TRUE(IsWhole({}, true));
  EXPECT_EQ(GetOrText(db_.get(), NumberedKey(rounds % 2)), std::to_string(rounds));
}

// A checkpoint is about to list tables of two families when the next memtable is flushed. For ThreadSanitizer: what happens after
// the flush is ordered by nothing but time.
TEST_P(DbRangeDeleteConcurrentTest, AFlushBesideACheckpoint) {
  options_.disable_auto_compaction = true;
  options_.checkpoint_tables = 100;
  Reopen();
  WriteBatch batch;
  Fill(1, &batch);
  ASSERT_OK(db_->Write({}, batch));
  std::atomic<bool> first{true};
  SyncPoints::Instance().SetCallback("DBImpl::CheckpointTables:Chosen", [&](void*) {
    if (!first.exchange(false)) return;
    EXPECT_OK(db_->Put({}, "z", std::string(options_.memtable_size, 'z')));  // the memtable is full
    usleep(300000);
  });
  SyncPoints::Instance().Enable();
  EXPECT_OK(db_->Flush());
  SyncPoints::Instance().Clear();
  EXPECT_FALSE(first);
  EXPECT_TRUE(WaitUntil([this] { return db_->GetStatistics().flushes == 2; })) << "the flush may be late, but it comes";
  EXPECT_TRUE(IsWhole({}, true));
}

}  // namespace
}  // namespace braiddb::test
