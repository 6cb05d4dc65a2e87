// Open segments of the log: of threads that ended or are idle, taken by others where a region is full.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "braiddb/write_batch.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/fork_child.h"
#include "tests/support/leave_child.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

// A region has room for a hundred open segments.
constexpr int kThreads = 200;
constexpr uint64_t kRegionBytes = 32ull << 20;

Options OneFullRegion() {
  Options options = TinyOptions(1);
  options.max_region_size = kRegionBytes;
  options.segment_size = 256 << 10;
  return options;
}

// Threads that live until Leave, each of which has run `write` once, one after the other.
class LivingThreads {
 public:
  template <class Write>
  LivingThreads(int count, const Write& write) {
    for (int i = 0; i < count; ++i) {
      std::latch written(1);
      threads_.emplace_back([this, i, &write, &written] {
        write(i);
        written.count_down();
        left_.wait();
      });
      written.wait();
    }
  }
  ~LivingThreads() { Leave(); }
  void Leave() {
    if (threads_.empty()) return;
    left_.count_down();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::latch left_{1};
  std::vector<std::thread> threads_;
};

class DbOpenSegmentsTest : public DbOpenTest {
 protected:
  void SetUp() override {
    db_ = OpenOrFail(OneFullRegion(), path_);
    ASSERT_NE(db_, nullptr);
  }
  void TearDown() override { SyncPoints::Instance().Clear(); }

  void Put(int i) { ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(i, 100))) << i; }
  void ExpectAll(int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(GetOrText(db_.get(), NumberedKey(i)), PatternedValue(i, 100)) << i;
  }
  void Reopen() {
    db_.reset();
    db_ = OpenOrFail(OneFullRegion(), path_);
    ASSERT_NE(db_, nullptr);
  }
  void ExpectSound() {
    db_.reset();
    CheckReport report;
    ASSERT_OK(CheckDatabase(CheckOptions(), path_, &report));
    EXPECT_TRUE(report.sound()) << (report.findings.empty() ? "" : report.findings[0].what);
    Reopen();
  }
  uint64_t SegmentBytes() {
    std::string text;
    EXPECT_TRUE(db_->GetProperty("braiddb.pm-bytes-in-segments", &text));
    return text.empty() ? 0 : std::stoull(text);
  }

  std::unique_ptr<DB> db_;
};

TEST_F(DbOpenSegmentsTest, ThreadsThatLiveAndDoNothingLeaveRoom) {
  const LivingThreads threads(kThreads, [this](int i) { Put(i); });
  ExpectAll(kThreads);
  for (int i = kThreads; i < 10 * kThreads; ++i) Put(i);  // and this one fills what they have
  ExpectAll(10 * kThreads);
  ExpectSound();
  ExpectAll(10 * kThreads);
}

TEST_F(DbOpenSegmentsTest, ThreadsThatEndedLeaveRoom) {
  constexpr int kEnded = 90;  // whose segments take nearly all of the region
  LivingThreads(kEnded, [this](int i) { Put(i); }).Leave();
  std::atomic<int> waits{0};
  SyncPoints::Instance().SetCallback("DBImpl::MakeRoom", [&](void*) { ++waits; });
  SyncPoints::Instance().Enable();
  int keys = kEnded;
  for (; keys < kEnded + 50'000 / kSlowdown; ++keys) Put(keys);
  EXPECT_EQ(waits, 0) << "there is room at once";
  ExpectAll(keys);
  ExpectSound();
  ExpectAll(keys);
}

// The threads wrote once; they live or have ended. After a compaction their segments take little space. The compaction thread may
// have given the space back before, so the test does not ask how much they took.
TEST_F(DbOpenSegmentsTest, ACompactionGivesTheSpaceBack) {
  if (!LogHoldsLastLevel()) GTEST_SKIP() << "its merges need more room";
  Options options = OneFullRegion();
  options.max_region_size = 1ull << 30;
  options.space_slack = 1 << 20;
  const uint64_t most = kThreads * options.segment_size / 8;
  db_.reset();
  db_ = OpenOrFail(options, directory_.File("roomy"));
  ASSERT_NE(db_, nullptr);
  LivingThreads threads(kThreads, [this](int i) { Put(i); });
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_LT(SegmentBytes(), most) << "they live";
  threads.Leave();
  LivingThreads(kThreads, [this](int i) { Put(kThreads + i); }).Leave();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_LT(SegmentBytes(), most) << "they ended";
  ExpectAll(2 * kThreads);
  LivingThreads(kThreads, [this](int i) { Put(2 * kThreads + i); }).Leave();
  db_.reset();
  db_ = OpenOrFail(options, directory_.File("roomy"));
  ASSERT_NE(db_, nullptr);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_LT(SegmentBytes(), most) << "an open came in between";
  ExpectAll(3 * kThreads);
}

// The write has its slot, and has not announced itself, while another thread fills the region and takes the segment.
TEST_F(DbOpenSegmentsTest, AWriteWhoseSegmentIsTakenGoesElsewhere) {
  Options options = OneFullRegion();
  options.memtable_size = 4 * kRegionBytes;  // a flush that copies would make room elsewhere
  db_.reset();
  db_ = OpenOrFail(options, path_);
  ASSERT_NE(db_, nullptr);
  std::atomic<bool> stops{true};
  std::atomic<int> taken{0};
  std::latch reserved(1);
  std::latch go(1);
  const auto main_thread = std::this_thread::get_id();
  SyncPoints::Instance().SetCallback("DBImpl::AppendAndPublish:Reserved", [&](void*) {
    if (std::this_thread::get_id() == main_thread || !stops.exchange(false)) return;
    reserved.count_down();
    go.wait();
  });
  // The compaction thread, which makes room meanwhile, takes segments too.
  thread_local bool is_writer = false;
  is_writer = true;
  SyncPoints::Instance().SetCallback("DBImpl::TakeOpenSegment:Disowned", [&](void*) { taken += is_writer; });
  SyncPoints::Instance().Enable();
  std::thread stopped([&] {
    is_writer = true;
    Put(0);
  });
  reserved.wait();
  int keys = 1;
  const std::string value(10'000, 'v');
  while (taken == 0 && keys < 10'000) ASSERT_OK(db_->Put({}, NumberedKey(keys++), value));
  go.count_down();
  stopped.join();  // it takes the segment back
  EXPECT_EQ(taken, 2);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(GetOrText(db_.get(), NumberedKey(0)), PatternedValue(0, 100));
    for (int i = 1; i < keys; ++i) ASSERT_EQ(GetOrText(db_.get(), NumberedKey(i)), value) << i;
    ExpectSound();
  }
}

// The write is under way in the segment that another thread takes: that one waits for it.
TEST_F(DbOpenSegmentsTest, AWriteThatIsUnderWayKeepsItsPlace) {
  Options options = OneFullRegion();
  options.memtable_size = 4 * kRegionBytes;  // its flush would wait for the write
  options.no_space_timeout_ms = 0;
  db_.reset();
  db_ = OpenOrFail(options, path_);
  ASSERT_NE(db_, nullptr);
  const std::string large(5000, 'l');
  const std::string value(10'000, 'v');
  std::atomic<bool> stops{true};
  std::latch writes(1);
  std::latch taken(1);
  std::latch go(1);
  SyncPoints::Instance().SetCallback("DBImpl::WriteInPlace", [&](void*) {
    if (!stops.exchange(false)) return;
    writes.count_down();
    go.wait();
  });
  std::atomic<bool> is_first{true};
  SyncPoints::Instance().SetCallback("DBImpl::TakeOpenSegment:Disowned", [&](void*) {
    if (is_first.exchange(false)) taken.count_down();
  });
  SyncPoints::Instance().Enable();
  std::thread under_way([&] { ASSERT_OK(db_->Put({}, "large", large)); });
  writes.wait();
  std::atomic<int> keys{0};
  std::thread filling([&] {
    while (db_->Put({}, NumberedKey(keys), value).ok()) ++keys;
  });
  taken.wait();
  const int before = keys;
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // for a put that does not wait
  EXPECT_EQ(keys, before);
  go.count_down();
  under_way.join();
  filling.join();
  EXPECT_GT(keys, before);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(GetOrText(db_.get(), "large"), large);
    for (int i = 0; i < keys; ++i) ASSERT_EQ(GetOrText(db_.get(), NumberedKey(i)), value) << i;
    ExpectSound();
  }
}

// More threads live than the region has segments, and all write at once. Then the process ends without a close.
TEST_F(DbOpenSegmentsTest, NothingIsLostWhereSegmentsGoRound) {
  constexpr int kPuts = 30 / kSlowdown + 1;
  db_.reset();
  std::atomic<int> taken{0};
  const pid_t child = ForkChild();
  ASSERT_GE(child, 0);
  if (child == 0) {
    db_ = OpenOrFail(OneFullRegion(), path_);
    if (db_ == nullptr) LeaveChild(1);
    SyncPoints::Instance().SetCallback("DBImpl::TakeOpenSegment:Disowned", [&](void*) { ++taken; });
    SyncPoints::Instance().Enable();
    std::vector<std::thread> threads;
    std::atomic<int> refused{0};
    std::barrier all(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        all.arrive_and_wait();
        for (int i = 0; i < kPuts; ++i) {
          const int key = i * kThreads + t;
          WriteBatch batch;  // one in three is of two updates, for which single ones wait
          batch.Put(NumberedKey(key), PatternedValue(key, 100));
          if (key % 3 == 0) batch.Put("twice", NumberedKey(key));
          if (!db_->Write({}, batch).ok()) ++refused;
        }
        all.arrive_and_wait();  // a thread that ended would give its segment back
      });
    }
    for (std::thread& thread : threads) thread.join();
    LeaveChild(refused != 0 ? 2 : taken == 0 ? 3 : 0);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  ASSERT_TRUE(WIFEXITED(state));
  ASSERT_EQ(WEXITSTATUS(state), 0) << "2: a put was refused; 3: no segment was taken";
  Reopen();
  ExpectAll(kPuts * kThreads);
}

// A wait for writers looks at the threads that live.
TEST_F(DbOpenSegmentsTest, AWaitSkipsThreadsThatEnded) {
  LivingThreads(kThreads, [this](int i) { Put(i); }).Leave();
  std::atomic<int> looked_at{0};
  const auto main_thread = std::this_thread::get_id();
  SyncPoints::Instance().SetCallback("DBImpl::ForEachLiving", [&](void*) {
    if (std::this_thread::get_id() == main_thread) ++looked_at;
  });
  SyncPoints::Instance().Enable();
  Put(0);
  db_->ReleaseSnapshot(db_->GetSnapshot());
  EXPECT_GE(looked_at, 1);
  EXPECT_LT(looked_at, kThreads / 4);
}

}  // namespace
}  // namespace braiddb::test
