// Merges wait longer where writers leave no CPU idle.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>

#include "db/writer_pressure.h"
#include "tests/support/db_fixture.h"
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
  void TearDown() override { SyncPoints::Instance().Clear(); }

  // Until a merge has begun, but not more than so many: tables in L0.
  uint64_t FlushUntilMerged(uint64_t most) {
    std::atomic<bool> merges{false};
    SyncPoints::Instance().SetCallback("DBImpl::MergeTables:Announced", [&](void*) { merges = true; });
    SyncPoints::Instance().Enable();
    uint64_t tables = 0;
    for (; tables < most && !merges; ++tables) {
      EXPECT_OK(db_->Put({}, NumberedKey(static_cast<int>(tables)), "1"));
      EXPECT_OK(db_->Flush());
    }
    SyncPoints::Instance().SetCallback("DBImpl::MergeTables:Announced", [](void*) {});
    EXPECT_OK(db_->WaitForCompaction());
    return tables;
  }
};

INSTANTIATE_TEST_SUITE_P(Regions, DbWriterPressureTest, testing::Values(1u));

TEST_P(DbWriterPressureTest, MergesWaitUntilWritersAreSlowedDown) {
  options_.l0_compaction_trigger = 4;
  options_.l0_slowdown_writes_trigger = 400;
  Reopen();
  // Whoever is not scheduled for a tenth of a second pauses, and is merged: once in a few attempts he is not.
  uint64_t most = 0;
  std::atomic<bool> is_high{true};
  SyncPoints::Instance().SetCallback("DBImpl::CompactionWanted", [&](void* high) { *static_cast<bool*>(high) = is_high; });
  for (int attempt = 0; attempt < 20 && most < 30; ++attempt) most = std::max(most, FlushUntilMerged(30));
  EXPECT_EQ(most, 30u);
  is_high = false;
  EXPECT_LT(FlushUntilMerged(390), 390u);
  is_high = true;
  options_.l0_slowdown_writes_trigger = 8;
  Reopen();
  EXPECT_LT(FlushUntilMerged(390), 390u);
  SyncPoints::Instance().Clear();  // it has a local
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
