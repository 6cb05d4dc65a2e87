// Catch-ups of secondaries beside a primary that frees segments all the time, and what holds of readers cost the primary.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "db/reader_hold.h"
#include "db/test_hooks.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/fork_child.h"
#include "tests/support/leave_child.h"
#include "tests/support/wait_until.h"
#include "util/file.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

constexpr int64_t kNeverMs = int64_t{1} << 40;

// How long the primary respects a hold, in place of what ReaderHolds says.
std::atomic<int64_t> hold_ms{kNeverMs};

class SecondaryHoldTest : public DbOpenTest {
 protected:
  void SetUp() override {
    hold_ms = kNeverMs;
    SyncPoints::Instance().SetCallback("ReaderHolds::IsExpired",
                                       [](void* limit_ms) { *static_cast<int64_t*>(limit_ms) = hold_ms; });
    options_.disable_auto_compaction = true;
    options_.max_space_amplification = 0;
  }
  void TearDown() override { SyncPoints::Instance().Clear(); }

  // Segments come, and go again.
  static void Overwrite(DB* primary, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < 4000; ++i) ASSERT_OK(primary->Put({}, NumberedKey(i % 100), PatternedValue(i, 100)));
      ASSERT_OK(primary->CompactRange({}, nullptr, nullptr));
    }
  }
  // Makes the primary free segments in each try to read them that a catch-up makes; counts the tries.
  void OvertakeEachTry(DB* primary, int* tries) {
    steps_ = 0;
    SyncPoints::Instance().SetCallback("PrimaryReader::Read:Step", [this, primary, tries](void*) {
      if (steps_++ % 3 != 0) return;
      ++*tries;
      const uint64_t recycled = primary->GetStatistics().segments_recycled;
      Overwrite(primary, 2);
      EXPECT_GT(primary->GetStatistics().segments_recycled, recycled);
    });
    SyncPoints::Instance().Enable();
  }
  Status OpenSecondary(const std::string& name, std::unique_ptr<DB>* db) {
    return DB::OpenAsSecondary(options_, path_, directory_.File(name), db);
  }

  Options options_ = TinyOptions();
  int steps_ = 0;  // of PrimaryReader::Read
};

TEST_F(SecondaryHoldTest, ACatchUpThatEachTryOvertakesEnds) {
  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  Overwrite(primary.get(), 2);
  int tries = 0;
  OvertakeEachTry(primary.get(), &tries);
  std::unique_ptr<DB> secondary;
  const Status opened = OpenSecondary("secondary", &secondary);
  EXPECT_GE(tries, 3) << "the first two tries have no hold, and were not overtaken";
  EXPECT_LE(tries, 6);
  tries = 0;
  const Status caught_up = opened.ok() ? secondary->TryCatchUpWithPrimary() : opened;
  EXPECT_LE(tries, 6);
  SyncPoints::Instance().SetCallback("PrimaryReader::Read:Step", [](void*) {});
  ASSERT_OK(opened);
  ASSERT_OK(caught_up);
  // What waited for the reader comes back when he has ended, though nobody calls.
  EXPECT_TRUE(WaitUntil([&] { return !SegmentsOf(primary.get())->has_deferred(); }));
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  const Pairs all = ScanForward(primary.get());
  EXPECT_TRUE(HoldsExactly(secondary.get(), all));
  ASSERT_OK(primary->Close());
  primary.reset();
  primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  EXPECT_TRUE(HoldsExactly(primary.get(), all));
}

// A family that is dropped in the midst of a try counts as one that was dropped before it.
TEST_F(SecondaryHoldTest, AFamilyThatIsDroppedInEachTryEndsNone) {
  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  std::unique_ptr<ColumnFamilyHandle> family;
  const auto make = [&] {
    ASSERT_OK(primary->CreateColumnFamily(ColumnFamilyOptions(options_), "comes and goes", &family));
    ASSERT_OK(primary->Put({}, family.get(), "a", "of the family"));
  };
  make();
  ASSERT_OK(primary->Put({}, "a", "stays"));
  int tries = 0;
  SyncPoints::Instance().SetCallback("PrimaryReader::Read:Step", [&](void*) {
    if (steps_++ % 3 != 1) return;
    ++tries;
    ASSERT_OK(primary->DropColumnFamily(family.get()));
    family.reset();
    make();
  });
  SyncPoints::Instance().Enable();
  std::unique_ptr<DB> secondary;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  const Status status = DB::OpenAsSecondary(options_, path_, directory_.File("secondary"),
                                            {{"comes and goes", ColumnFamilyOptions(options_)}}, &handles, &secondary);
  SyncPoints::Instance().SetCallback("PrimaryReader::Read:Step", [](void*) {});
  ASSERT_OK(status);
  EXPECT_LE(tries, 2);
  EXPECT_EQ(GetOrText(secondary.get(), "a"), "stays");
  std::string value;
  EXPECT_CODE(secondary->Get({}, handles[0].get(), "a", &value), kNotFound);
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  ASSERT_OK(secondary->Get({}, handles[0].get(), "a", &value));
  EXPECT_EQ(value, "of the family");
  handles.clear();
  family.reset();
}

// A reader that was stopped while it has a hold keeps it. The primary goes on, also in a full region, frees segments after a
// while as if the hold were not there, and respects the hold of another reader. When the stopped one is killed nothing is left.
TEST_F(SecondaryHoldTest, AStoppedReaderStopsNobody) {
  options_.max_region_size = 32ull << 20;
  Fill(options_, 10);
  const pid_t child = ForkChild();
  if (child == 0) {
    ReaderHold hold;
    if (!hold.Take(path_)) LeaveChild(1);
    raise(SIGSTOP);
    LeaveChild(0);
  }
  ASSERT_GT(child, 0);
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(state));
  SyncPoints::Instance().Enable();

  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  SegmentAllocator* const segments = SegmentsOf(primary.get());
  Overwrite(primary.get(), 2);
  EXPECT_TRUE(segments->has_deferred());
  // More than the region has room for.
  const uint64_t enough = primary->GetStatistics().segments_recycled + 5 * options_.max_region_size / 4 / options_.segment_size;
  for (int round = 0; round < 1000 && primary->GetStatistics().segments_recycled < enough; ++round) Overwrite(primary.get(), 1);
  EXPECT_GE(primary->GetStatistics().segments_recycled, enough);

  hold_ms = 0;  // it has expired
  EXPECT_TRUE(WaitUntil([&] { return !segments->has_deferred(); }));
  hold_ms = kNeverMs;
  Overwrite(primary.get(), 2);
  EXPECT_FALSE(segments->has_deferred());
  int tries = 0;
  OvertakeEachTry(primary.get(), &tries);
  std::unique_ptr<DB> secondary;
  const Status opened = OpenSecondary("another", &secondary);
  SyncPoints::Instance().SetCallback("PrimaryReader::Read:Step", [](void*) {});
  ASSERT_OK(opened);
  EXPECT_GE(tries, 3);
  EXPECT_LE(tries, 6);

  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, &state, 0), child);
  ReaderHolds holds(path_);
  EXPECT_FALSE(holds.Any(0));
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  EXPECT_TRUE(HoldsExactly(secondary.get(), ScanForward(primary.get())));
}

// ---- The holds themselves

TEST_F(SecondaryHoldTest, EachHoldCountsForAWhile) {
  SyncPoints::Instance().Enable();
  const std::string directory = directory_.path();
  ReaderHold none;
  EXPECT_FALSE(none.Take(directory)) << "there is no LOCK";
  std::unique_ptr<FileLock> writers;
  ASSERT_OK(FileLock::Acquire(directory + "/LOCK", &writers));
  ReaderHolds holds(directory);
  EXPECT_FALSE(holds.Any(0));
  ReaderHold first, second;
  ASSERT_TRUE(first.Take(directory));
  EXPECT_TRUE(holds.Any(0));
  hold_ms = 0;
  EXPECT_FALSE(holds.Any(0)) << "it has expired";
  hold_ms = kNeverMs;
  EXPECT_FALSE(holds.Any(0)) << "and stays so";
  ASSERT_TRUE(second.Take(directory));
  EXPECT_TRUE(holds.Any(0)) << "another one counts";
  second.Drop();
  EXPECT_FALSE(holds.Any(0));
  ASSERT_TRUE(first.Take(directory));
  EXPECT_TRUE(holds.Any(0)) << "one that begins anew counts";
  first.Drop();
  EXPECT_FALSE(holds.Any(0));
  {
    ReaderHold third;
    ASSERT_TRUE(third.Take(directory));
    EXPECT_TRUE(holds.Any(0));
  }
  EXPECT_FALSE(holds.Any(0)) << "it ends with its object";
  // The writer's own lock is another kind.
  std::unique_ptr<FileLock> again;
  EXPECT_CODE(FileLock::Acquire(directory + "/LOCK", &again), kBusy);
}

TEST_F(SecondaryHoldTest, ManyHoldsThatAreKeptTooLongEndTheRespectForAll) {
  SyncPoints::Instance().Enable();
  const std::string directory = directory_.path();
  std::unique_ptr<FileLock> writers;
  ASSERT_OK(FileLock::Acquire(directory + "/LOCK", &writers));
  ReaderHolds holds(directory);
  ReaderHold kept[ReaderHolds::kMaxExpired + 1];
  for (ReaderHold& hold : kept) {
    ASSERT_TRUE(hold.Take(directory));
    EXPECT_TRUE(holds.Any(0));
    hold_ms = 0;
    EXPECT_FALSE(holds.Any(0));
    hold_ms = kNeverMs;
  }
  ReaderHold another;
  ASSERT_TRUE(another.Take(directory));
  EXPECT_FALSE(holds.Any(0));
  for (ReaderHold& hold : kept) hold.Drop();
  another.Drop();
  EXPECT_FALSE(holds.Any(0));
  ASSERT_TRUE(another.Take(directory));
  EXPECT_TRUE(holds.Any(0));
}

// Runs wait for a reader. A tombstone that is released later must not be freed before them: the old runs have no marks.
TEST_F(SecondaryHoldTest, DeletedKeysOfRunsThatWaitDoNotComeBack) {
  constexpr int kKeys = 2000;
  options_.l1 = L1Kind::kSortedRuns;
  options_.max_region_size = 1ull << 30;
  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  // In a thread of its own: a compaction seals its log segment.
  const auto write = [&](const std::function<Status(int)>& write_one, int count) {
    std::thread([&] {
      for (int i = 0; i < count; ++i) ASSERT_OK(write_one(i));
    }).join();
    ASSERT_OK(primary->CompactRange({}, nullptr, nullptr));
  };
  write([&](int i) { return primary->Put({}, NumberedKey(i), "old"); }, kKeys);
  ReaderHold hold;
  ASSERT_TRUE(hold.Take(path_));
  write([&](int i) { return primary->Put({}, NumberedKey(i) + "x", "new"); }, kKeys);
  // More waits than may.
  const std::string large(1 << 20, 'v');
  for (int round = 0; round < 3; ++round) write([&](int i) { return primary->Put({}, "z" + NumberedKey(i), large); }, 60);
  write([&](int i) { return primary->Delete({}, NumberedKey(i)); }, kKeys);
  ASSERT_OK(primary->CompactRange({}, nullptr, nullptr));
  std::unique_ptr<DB> secondary;
  ASSERT_OK(OpenSecondary("secondary", &secondary));
  for (int i = 0; i < kKeys; ++i)
    ASSERT_EQ(GetOrText(secondary.get(), NumberedKey(i)), GetOrText(primary.get(), NumberedKey(i))) << i;
}

// The runs of a dropped family wait for a reader, and its id is given to a new family.
TEST_F(SecondaryHoldTest, ANewFamilyShowsNoKeysOfADroppedOne) {
  options_.create_missing_column_families = true;
  ColumnFamilyOptions runs(options_);
  runs.l1 = L1Kind::kSortedRuns;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  std::unique_ptr<DB> primary;
  const auto open = [&] { ASSERT_OK(DB::Open(options_, path_, {{"dropped", runs}}, &handles, &primary)); };
  options_.create_if_missing = true;
  open();
  for (int i = 0; i < 1000; ++i) ASSERT_OK(primary->Put({}, handles[0].get(), NumberedKey(i), "of the dropped family"));
  ASSERT_OK(primary->CompactRange({}, handles[0].get(), nullptr, nullptr));
  handles.clear();
  primary.reset();
  open();  // ids are given from the first one on
  const uint32_t id = handles[0]->GetID();
  ReaderHold hold;
  ASSERT_TRUE(hold.Take(path_));
  std::atomic<int> forgotten{0};
  SyncPoints::Instance().SetCallback("DBImpl::ForgetPurged:Done", [&](void*) { ++forgotten; });
  SyncPoints::Instance().Enable();
  ASSERT_OK(primary->DropColumnFamily(handles[0].get()));
  handles.clear();
  ASSERT_TRUE(WaitUntil([&] { return forgotten > 0; }));
  ASSERT_OK(primary->WaitForCompaction());
  std::unique_ptr<ColumnFamilyHandle> fresh;
  ASSERT_OK(primary->CreateColumnFamily(runs, "fresh", &fresh));
  ASSERT_EQ(fresh->GetID(), id);
  ASSERT_OK(primary->Put({}, fresh.get(), "a", "b"));
  std::unique_ptr<DB> secondary;
  ASSERT_OK(DB::OpenAsSecondary(options_, path_, directory_.File("secondary"), {{"fresh", runs}}, &handles, &secondary));
  const auto it = secondary->NewIterator({}, handles[0].get());
  it->SeekToFirst();
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->key(), "a");
  it->Next();
  EXPECT_FALSE(it->Valid());
}

}  // namespace
}  // namespace braiddb::test
