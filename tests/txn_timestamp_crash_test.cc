// A process that writes versions, deletes ranges, raises the limit of history and trims is killed at points of the engine, or the
// power fails at each fence of it. The next open has all acknowledged operations, and the one that was under way in whole or not
// at all.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db/db_impl.h"
#include "tests/support/power_cut.h"
#include "tests/support/timestamps.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

constexpr int kOperations = 200;
constexpr int kKeys = 20;

// The number of operations that the child has finished, in memory shared with it.
class Acknowledged {
 public:
  Acknowledged()
      : count_(new (mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                   std::atomic<int>(0)) {}
  ~Acknowledged() { munmap(count_, sizeof(std::atomic<int>)); }
  Acknowledged(const Acknowledged&) = delete;
  Acknowledged& operator=(const Acknowledged&) = delete;
  std::atomic<int>& operator*() { return *count_; }

 private:
  std::atomic<int>* const count_;
};

uint64_t TimeOf(int operation) { return static_cast<uint64_t>(operation) * 10 + 10; }
bool IsLimit(int operation) { return operation % 11 == 10; }
bool IsRange(int operation) { return operation % 7 == 6; }
bool IsCompaction(int operation) { return operation % 23 == 22; }
uint64_t LimitOf(int operation) { return TimeOf(operation / 2); }
std::string ValueOf(int operation) { return PatternedValue(static_cast<uint64_t>(operation), 50); }

Status Execute(DB* db, int operation) {
  ColumnFamilyHandle* const family = db->DefaultColumnFamily();
  if (IsCompaction(operation)) return db->CompactRange({}, nullptr, nullptr);
  if (IsLimit(operation)) return db->IncreaseFullHistoryTsLow(family, Ts(LimitOf(operation)));
  if (IsRange(operation)) return db->DeleteRangeAt({}, family, NumberedKey(3), NumberedKey(12), Ts(TimeOf(operation)));
  WriteBatch batch;
  batch.PutAt(nullptr, NumberedKey(static_cast<uint64_t>(operation % kKeys)), Ts(TimeOf(operation)), ValueOf(operation));
  batch.PutAt(nullptr, NumberedKey(static_cast<uint64_t>((operation + 5) % kKeys)), Ts(TimeOf(operation)), ValueOf(operation));
  return db->Write({}, batch);
}

// What a scan at `timestamp` shows after so many operations, and the limit.
struct Expected {
  std::vector<std::string> shown;
  uint64_t limit = 0;
  bool operator==(const Expected&) const = default;
};
Expected After(int operations, uint64_t timestamp) {
  std::map<std::string, std::string> shown;
  Expected expected;
  for (int i = 0; i < operations; ++i) {
    if (IsCompaction(i)) continue;
    if (IsLimit(i)) {
      expected.limit = LimitOf(i);
    } else if (TimeOf(i) <= timestamp && IsRange(i)) {
      shown.erase(shown.lower_bound(NumberedKey(3)), shown.lower_bound(NumberedKey(12)));
    } else if (TimeOf(i) <= timestamp) {
      for (const int key : {i % kKeys, (i + 5) % kKeys})
        shown[NumberedKey(static_cast<uint64_t>(key))] = ValueOf(i) + "@" + std::to_string(TimeOf(i));
    }
  }
  for (const auto& [key, value] : shown) expected.shown.push_back(key + "=" + value);
  return expected;
}

Options MakeOptions() {
  Options options = TinyOptions(1);
  options.comparator = BytewiseComparatorWithU64Ts();
  return options;
}

// The database in `path` has the first `done` operations, or these and the next one.
void ExpectAcknowledged(const Options& options, const std::string& path, int done, const std::string& when) {
  const auto db = OpenOrFail(options, path);
  ASSERT_NE(db, nullptr) << when;
  Expected found;
  std::string limit;
  ASSERT_OK(db->GetFullHistoryTsLow(db->DefaultColumnFamily(), &limit));
  found.limit = limit.empty() ? 0 : NumberOf(limit);
  for (const uint64_t timestamp : {UINT64_MAX, TimeOf(done), TimeOf(done * 3 / 4), std::max<uint64_t>(found.limit, 1)}) {
    if (timestamp < found.limit) continue;
    found.shown = ScanAt(db.get(), ReadAt(timestamp));
    ASSERT_TRUE(found == After(done, timestamp) || found == After(done + 1, timestamp))
        << when << ": " << done << " operations, at " << timestamp;
    auto backward = ScanAt(db.get(), ReadAt(timestamp), false);
    std::reverse(backward.begin(), backward.end());
    ASSERT_EQ(backward, found.shown);
  }
  EXPECT_OK(db->PutAt({}, db->DefaultColumnFamily(), "key", Ts(UINT64_MAX), "value"));
  EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
}

constexpr int kIsCutShort = 7;

class TimestampCrashTest : public testing::TestWithParam<const char*> {
 protected:
  // Runs operations until the nth passage of the point. Returns whether all were done.
  bool LiveUntil(const char* point, int nth, const std::string& path, Acknowledged* acknowledged) {
    const int exit_status = RunInChild([&] {
      const auto db = OpenOrFail(MakeOptions(), path);
      std::atomic<int> left = nth;
      SyncPoints::Instance().SetCallback(point, [&](void*) {
        if (--left == 0) _exit(kIsCutShort);
      });
      SyncPoints::Instance().Enable();
      for (int i = 0; i < kOperations; ++i) {
        if (!Execute(db.get(), i).ok()) return 1;
        **acknowledged = i + 1;
      }
      _exit(0);
    });
    EXPECT_TRUE(exit_status == 0 || exit_status == kIsCutShort) << exit_status;
    return exit_status == 0;
  }
};

TEST_P(TimestampCrashTest, AnOpenHasWhatWasAcknowledged) {
  bool is_done = false;
  for (int nth = 1; !is_done; nth += 1 + nth / (kSlowdown > 1 ? 1 : 3)) {
    TestDirectory directory;
    Acknowledged acknowledged;
    is_done = LiveUntil(GetParam(), nth, directory.File("db"), &acknowledged);
    ExpectAcknowledged(MakeOptions(), directory.File("db"), *acknowledged, GetParam() + std::to_string(nth));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Points, TimestampCrashTest,
                         testing::Values("DBImpl::AppendAndPublish:Durable", "DBImpl::WriteIfNewest:Waited",
                                         "DBImpl::MakeFamily:Made", "MergeJournal::Apply:Recorded", "MergeJournal::Apply:Done"));

// ---- The power fails

// The power fails at fence `at` of the process: its files become what the cut leaves of them, and the process ends.
class PowerCutOfProcess final : public PersistObserver {
 public:
  PowerCutOfProcess(RegionSet* regions, uint64_t at, PowerCut::Luck luck)
      : cut_(regions, PowerCut::kNever), left_(at), luck_(luck), random_(at) {
    regions->persistence()->SetObserver(this);
  }
  void OnFlush(const void* address, size_t bytes) override { cut_.OnFlush(address, bytes); }
  void OnDrain() override {
    if (left_-- == 0) {
      cut_.Lose(luck_, &random_);
      _exit(kIsCutShort);
    }
    cut_.OnDrain();
  }

 private:
  PowerCut cut_;
  uint64_t left_;
  const PowerCut::Luck luck_;
  Random random_;
};

// No memtable fills up, so one thread stores. The operations include the first limit, which creates the hidden family. With a
// tree of leaves the family takes a segment from PMDK's pool, which the cut does not know: then it exists before the first cut.
TEST(TimestampPowerCutTest, AnOpenHasWhatWasAcknowledged) {
  constexpr int kCutOperations = 22;  // up to the first compaction
  Options options = MakeOptions();
  options.memtable_size = 4 << 20;
  options.disable_auto_compaction = true;
  const int operations_before = TestedL1() == L1Kind::kNvTree || TestedL1() == L1Kind::kLbTree ? 11 : 0;
  int cuts = 0;
  for (const PowerCut::Luck luck : PowerCut::kEveryLuck) {
    bool is_done = false;
    for (uint64_t fence = 0; !is_done; fence += kSlowdown > 1 ? 3 : 1) {
      TestDirectory directory;
      Acknowledged acknowledged;
      const std::string path = directory.File("db");
      const int exit_status = RunInChild([&]() -> int {
        const auto db = OpenOrFail(options, path);
        const auto execute = [&](int begin, int end) {
          for (int i = begin; i < end; ++i) {
            if (!Execute(db.get(), i).ok()) _exit(1);
            *acknowledged = i + 1;
          }
        };
        execute(0, operations_before);
        const PowerCutOfProcess cut(static_cast<DBImpl*>(db->GetRootDB())->regions(), fence, luck);
        execute(operations_before, kCutOperations);
        _exit(0);
      });
      ASSERT_TRUE(exit_status == 0 || exit_status == kIsCutShort) << exit_status;
      is_done = exit_status == 0;
      cuts += is_done ? 0 : 1;
      ExpectAcknowledged(options, path, *acknowledged, "fence " + std::to_string(fence));
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GE(cuts, 4 * (kCutOperations - operations_before) / kSlowdown);
}

}  // namespace
}  // namespace braiddb::test
