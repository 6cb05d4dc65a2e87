// Merges wait longer where writers leave no CPU idle.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>

#include "db/writer_pressure.h"
#include "tests/support/db_fixture.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

using std::chrono::milliseconds;

constexpr WriterPressure::Flush kAlone{milliseconds(8), milliseconds(8), milliseconds(12), milliseconds(15), 0};

bool IsHighAfter(const WriterPressure::Flush& flush) {
  WriterPressure pressure(2);
  pressure.Note(flush);
  return pressure.is_high();
}

TEST(WriterPressureTest, IsHighWhereFlushesLackCpuTime) {
  EXPECT_FALSE(WriterPressure(2).is_high());
  EXPECT_FALSE(IsHighAfter(kAlone));
  WriterPressure::Flush flush = kAlone;
  flush.process_cpu = milliseconds(23);  // of 24
  EXPECT_TRUE(IsHighAfter(flush));
  flush = kAlone;
  flush.cpu_time = milliseconds(5);  // other processes' threads
  EXPECT_TRUE(IsHighAfter(flush));
  flush = kAlone;
  flush.waiting = 2;
  EXPECT_TRUE(IsHighAfter(flush));
}

// Readers may take all there is: merges are for them.
TEST(WriterPressureTest, IsLowWhereWritersAreSlow) {
  WriterPressure::Flush flush = kAlone;
  flush.cpu_time = milliseconds(4);
  flush.interval = milliseconds(20);
  flush.process_cpu = milliseconds(40);
  EXPECT_FALSE(IsHighAfter(flush));
}

// Orders that take what was idle are no pressure, nor do they hide it.
TEST(WriterPressureTest, OrdersDoNotCount) {
  WriterPressure::Flush flush = kAlone;
  flush.interval = milliseconds(20);
  flush.cpu_time = milliseconds(4);
  EXPECT_FALSE(IsHighAfter(flush));
  flush.orders = milliseconds(8);
  EXPECT_TRUE(IsHighAfter(flush));
  flush = kAlone;
  flush.orders = milliseconds(4);  // process_cpu is as it was
  EXPECT_FALSE(IsHighAfter(flush));
}

TEST(WriterPressureTest, EndsBehindSomeFlushesWithoutIt) {
  WriterPressure pressure(2);
  WriterPressure::Flush pressed = kAlone;
  pressed.cpu_time = milliseconds(3);
  for (int round = 0; round < 3; ++round) {
    pressure.Note(pressed);
    for (int i = 0; i < 7; ++i) {
      pressure.Note(kAlone);
      EXPECT_TRUE(pressure.is_high());
    }
  }
  pressure.Note(kAlone);
  EXPECT_FALSE(pressure.is_high());
}

class DbWriterPressureTest : public DbTest {
 protected:
  void TearDown() override {
    db_.reset();
    SyncPoints::Instance().Clear();
  }

  // On a loaded machine a writer may look like one that pauses.
  void NeverPause() {
    SyncPoints::Instance().SetCallback("DBImpl::WritersPause", [](void* pauses) { *static_cast<bool*>(pauses) = false; });
    SyncPoints::Instance().SetCallback("DBImpl::CompactionWanted", [this](void* high) { *static_cast<bool*>(high) = is_high_; });
    SyncPoints::Instance().SetCallback("DBImpl::MergeTables:Announced", [this](void*) { ++merges_; });
    SyncPoints::Instance().Enable();
  }
  void FlushTables(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_OK(db_->Put({}, NumberedKey(i), "1"));
      ASSERT_OK(db_->Flush());
    }
  }
  // Without a further write.
  bool Merges() {
    return WaitUntil([this] { return merges_ > 0; });
  }

  std::atomic<bool> is_high_{true};
  std::atomic<int> merges_{0};
};

INSTANTIATE_TEST_SUITE_P(Regions, DbWriterPressureTest, testing::Values(1u));

TEST_P(DbWriterPressureTest, MergesWaitUntilWritersAreSlowedDown) {
  options_.l0_compaction_trigger = 4;
  options_.l0_slowdown_writes_trigger = 400;
  NeverPause();
  Reopen();
  FlushTables(30);
  EXPECT_EQ(merges_, 0);
  is_high_ = false;
  FlushTables(1);
  EXPECT_TRUE(Merges());
  ASSERT_OK(db_->WaitForCompaction());
  is_high_ = true;
  options_.l0_slowdown_writes_trigger = 8;
  Reopen();
  merges_ = 0;
  FlushTables(8);
  EXPECT_TRUE(Merges());
}

// Who asks for a merge does not wait for writers.
TEST_P(DbWriterPressureTest, MergesThatAreAskedForDoNotWait) {
  options_.l0_slowdown_writes_trigger = 400;
  Reopen();
  SyncPoints::Instance().SetCallback("DBImpl::CompactionWanted", [](void* high) { *static_cast<bool*>(high) = true; });
  SyncPoints::Instance().Enable();
  for (int i = 0; i < 6; ++i) {
    ASSERT_OK(db_->Put({}, NumberedKey(i), "1"));
    ASSERT_OK(db_->Flush());
  }
  ASSERT_OK(db_->WaitForCompaction());
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-l0-tables"), 0u);
}

}  // namespace
}  // namespace braiddb::test
