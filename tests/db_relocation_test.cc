// Relocation: what lives in sparse segments is copied, so that these come back; readers and caches see no difference.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/check.h"
#include "db/test_hooks.h"
#include "log/log_reader.h"
#include "tests/support/db_fixture.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

class DbRelocationTest : public DbTest {
 protected:
  void SetUp() override {
    options_.max_space_amplification = 1.1;
    options_.space_slack = 512 << 10;
    options_.disable_auto_compaction = true;  // each test says when
    options_.lookup_cache_size = 1 << 20;
    Reopen();
  }
  void TearDown() override { SyncPoints::Instance().Clear(); }

  uint64_t Relocated() const { return db_->GetStatistics().relocated_entries; }
  Status Compact() { return db_->CompactRange({}, nullptr, nullptr); }
  void Put(const std::string& key, const std::string& value) {
    ASSERT_OK(db_->Put({}, key, value));
    expected_[key] = value;
  }
  // Keys that stay between others that go: what lives fills a twentieth of the segments. Nothing is merged yet.
  void Spread(int begin, int end, size_t bytes = 400) {
    for (int i = begin; i < end; ++i) {
      if (i % 20 == 0) {
        Put(NumberedKey(i), PatternedValue(i, bytes));
      } else {
        ASSERT_OK(db_->Put({}, "passing" + NumberedKey(i % 500), PatternedValue(i, bytes)));
      }
    }
    for (int i = 0; i < 500; ++i) ASSERT_OK(db_->Delete({}, "passing" + NumberedKey(i)));
  }
  // Everything is merged, and nothing has been relocated: the next compaction will.
  void MergeOnly() {
    options_.max_space_amplification = 0;
    Reopen();
    ASSERT_OK(Compact());
    options_.max_space_amplification = 1.1;
    Reopen();
  }
  // Segments come back when no thread can read them any more, which may be after the call that has emptied them.
  void ExpectWithinLimits() {
    // A writer's open segment in each region, and copies' last ones.
    const auto constant = static_cast<double>(options_.space_slack + 4 * GetParam() * options_.segment_size);
    double live = 0, space = 0;
    EXPECT_TRUE(WaitUntil([&] {
      live = static_cast<double>(IntProperty(db_.get(), "braiddb.pm-bytes-live"));
      space = 0;
      SegmentsOf(db_.get())->ForEachLog([&](Segment* segment) { space += static_cast<double>(segment->capacity()); });
      return space <= 1.1 * live + constant;
    })) << space
        << " bytes for " << live;
  }
  void ExpectSound() {
    ASSERT_OK(db_->Close());
    db_.reset();
    CheckReport report;
    ASSERT_OK(CheckDatabase({}, directory_.File("db"), &report));
    EXPECT_TRUE(report.sound()) << report.findings[0].what << ": " << report.findings[0].where;
    Reopen();
  }

  std::map<std::string, std::string> expected_;
};

INSTANTIATE_TEST_SUITE_P(Regions, DbRelocationTest, testing::Values(1, 2));

TEST_P(DbRelocationTest, SpaceOfSparseSegmentsComesBack) {
  for (int round = 0; round < 5; ++round) {
    ASSERT_NO_FATAL_FAILURE(Spread(round * 20000, (round + 1) * 20000));
    ASSERT_OK(Compact());
    ExpectWithinLimits();
    EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  }
  EXPECT_GT(Relocated(), 1000u);
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-l0-tables"), 0u);
  ExpectSound();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  for (int i = 0; i < 100000; i += 40) {
    ASSERT_OK(db_->Delete({}, NumberedKey(i)));
    expected_.erase(NumberedKey(i));
  }
  ASSERT_OK(Compact());
  ExpectWithinLimits();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  ExpectSound();
}

TEST_P(DbRelocationTest, WithoutItSegmentsStay) {
  options_.max_space_amplification = 0;
  Reopen();
  ASSERT_NO_FATAL_FAILURE(Spread(0, 20000));
  ASSERT_OK(Compact());
  EXPECT_EQ(Relocated(), 0u);
  const uint64_t before = IntProperty(db_.get(), "braiddb.pm-bytes-in-segments");
  options_.max_space_amplification = 1.1;
  Reopen();
  ASSERT_OK(Compact());
  EXPECT_GT(Relocated(), 900u);
  EXPECT_LT(IntProperty(db_.get(), "braiddb.pm-bytes-in-segments"), before / 4);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

TEST_P(DbRelocationTest, HappensInTheBackground) {
  options_.disable_auto_compaction = false;
  Reopen();
  ASSERT_NO_FATAL_FAILURE(Spread(0, 40000));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->WaitForCompaction());
  EXPECT_GT(Relocated(), 0u);
  ExpectWithinLimits();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

// What an earlier session wrote comes back without a moment in which nothing is to be merged.
TEST_P(DbRelocationTest, OldSegmentsComeBackWhileWritersDoNotPause) {
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 500; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(i, 400)));
  }
  ASSERT_OK(db_->Flush());
  options_.disable_auto_compaction = false;
  Reopen();
  std::map<Segment*, uint64_t> generations;
  SegmentsOf(db_.get())->ForEachLog([&](Segment* segment) { generations[segment] = segment->generation(); });
  ASSERT_GT(generations.size(), 5u);
  const auto is_there = [&generations](Segment* segment) {
    return segment->state() == SegmentState::kSealed && segment->generation() == generations.at(segment);
  };
  size_t left = generations.size();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (left > 0 && std::chrono::steady_clock::now() < deadline) {
    for (int i = 0; i < 500; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(i, 400)));
    left = 0;
    for (const auto& [segment, generation] : generations) left += is_there(segment);
  }
  EXPECT_EQ(left, 0u) << "of " << generations.size();
  for (int i = 0; i < 500; ++i) expected_[NumberedKey(i)] = PatternedValue(i, 400);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

// The copies of older versions are in L0 for a while, above newer ones in the last level.
TEST_P(DbRelocationTest, SnapshotsAndNewestVersionsAreRight) {
  options_.lookup_cache_size = 0;  // gets look at the levels
  Reopen();
  std::map<std::string, std::string> frozen;
  for (int i = 0; i < 600; ++i) {
    frozen[NumberedKey(i)] = PatternedValue(i, 200);
    ASSERT_OK(db_->Put({}, NumberedKey(i), frozen[NumberedKey(i)]));
    for (int j = 0; j < 10; ++j) ASSERT_OK(db_->Put({}, "passing" + NumberedKey(j), PatternedValue(j, 200)));
  }
  for (int j = 0; j < 10; ++j) ASSERT_OK(db_->Delete({}, "passing" + NumberedKey(j)));
  const Snapshot* const snapshot = db_->GetSnapshot();
  ReadOptions at_snapshot;
  at_snapshot.snapshot = snapshot;
  for (int i = 0; i < 600; ++i) {
    if (i % 3 == 0) {
      Put(NumberedKey(i), PatternedValue(i + 1000, 4000));  // in segments that are full, and stay
    } else if (i % 3 == 1) {
      ASSERT_OK(db_->Delete({}, NumberedKey(i)));
    } else {
      expected_[NumberedKey(i)] = frozen[NumberedKey(i)];
    }
  }
  // Once the table of copies is installed, and again when it is merged.
  int looks = 0;
  SyncPoints::Instance().SetCallback("DBImpl::RelocateSparse:Installed", [&](void*) {
    ++looks;
    EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
    for (int i = 1; i < 600; i += 3) EXPECT_EQ(GetOrText(db_.get(), NumberedKey(i)), "<not found>");
    EXPECT_TRUE(HoldsExactly(db_.get(), frozen, at_snapshot));
  });
  SyncPoints::Instance().Enable();
  ASSERT_OK(Compact());
  EXPECT_GT(looks, 0);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  EXPECT_TRUE(HoldsExactly(db_.get(), frozen, at_snapshot));
  SyncPoints::Instance().Clear();  // the second one has no snapshot to look at
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(Compact());
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  ExpectSound();
}

// Values that bypass the caches, shorter ones, and batches of both, first written and then copied.
TEST_P(DbRelocationTest, ValuesOfAllSizesAreRight) {
  options_.segment_size = 1 << 20;
  Reopen();
  Random random(301);
  const auto value = [&random](int i) {
    return PatternedValue(i, random.OneIn(3) ? random.Range(0, 60'000) : random.Range(1900, 2300));
  };
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 400; ++i) {
      if (i % 4 == 0 && i + 3 < 400) {
        WriteBatch batch;
        for (int j = i; j < i + 4; ++j) {
          expected_[NumberedKey(j)] = value(j + round);
          batch.Put(NumberedKey(j), expected_[NumberedKey(j)]);
        }
        ASSERT_OK(db_->Write({}, batch));
      } else if (random.OneIn(3)) {
        Put(NumberedKey(i), value(i + round));
      }
    }
    EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
    ASSERT_OK(Compact());
    EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  }
  EXPECT_GT(Relocated(), 0u);
  ExpectSound();
}

// Copies are in the regions of their originals. If the older versions of some keys are in one region and their newest ones in
// another, and for other keys it is the other way round, a relocation of either region's segments leaves a partly filled segment
// in both.
TEST_P(DbRelocationTest, EndsIfVersionsOfKeysAreInSeveralRegions) {
  options_.max_space_amplification = 1.05;
  options_.space_slack = 400 << 10;  // less than two segments
  options_.segment_size = 256 << 10;
  Reopen();
  constexpr int kKeys = 40;
  const auto put_all = [&](const std::string& prefix, int value, size_t bytes) {
    for (int i = 0; i < kKeys; ++i) ASSERT_OK(db_->Put({}, prefix + NumberedKey(i), PatternedValue(i + value, bytes)));
  };
  const Snapshot* snapshot = nullptr;
  // Each phase in a thread, and so in a segment, of its own. Of two threads that begin one after the other, the homes differ. The
  // sizes make the sparsest segments those of one region, and after their relocation those of the other.
  const std::vector<std::function<void()>> phases = {[&] { put_all("a", 0, 150); }, [&] { put_all("b", 0, 200); },
                                                     [&] { put_all("b", 1000, 150); }, [&] { put_all("a", 1000, 200); }};
  std::vector<std::thread> threads;
  std::set<uint32_t> homes;
  std::atomic<size_t> done{0};
  for (size_t phase = 0; phase < phases.size(); ++phase) {
    if (phase == 2) snapshot = db_->GetSnapshot();
    threads.emplace_back([&, phase] {
      homes.insert(RegionsOf(db_.get())->HomeRegion());
      phases[phase]();
      ++done;
      while (done.load() < phases.size()) std::this_thread::yield();
    });
    while (done.load() == phase) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(homes.size(), GetParam());
  int relocations = 0;
  SyncPoints::Instance().SetCallback("DBImpl::RelocateSparse:Installed", [&](void*) { ++relocations; });
  SyncPoints::Instance().Enable();
  int without = 0;  // the last calls that relocated nothing
  for (int i = 0; i < 1000 && without < 10; ++i) {
    relocations = 0;
    ASSERT_OK(Compact());
    without = relocations == 0 ? without + 1 : 0;
  }
  EXPECT_EQ(without, 10);
  db_->ReleaseSnapshot(snapshot);
}

// The copies of old versions need copies of newer ones in the other region. A relocation of two segments fills as much as it
// frees then, but the next ones gain.
TEST_P(DbRelocationTest, GoesOnIfNewVersionsAreInAnotherRegion) {
  options_.max_space_amplification = 1.2;
  options_.space_slack = 8 << 20;
  options_.segment_size = 8 << 20;
  options_.lookup_cache_size = 0;
  options_.dram_budget = (44 + 20 * GetParam()) << 20;  // the least; a relocation copies 4 to 5 MiB
  options_.initial_region_size = 128 << 20;             // segments are large from the beginning
  db_.reset();
  ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
  Reopen();
  constexpr int kKeys = 60'000;
  const Snapshot* snapshot = nullptr;
  std::atomic<int> step{0};
  const auto at_step = [&step](int wanted) {
    while (step.load() < wanted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  uint32_t home = 0;
  std::thread older([&] {
    home = RegionsOf(db_.get())->HomeRegion();
    for (int i = 0; i < kKeys; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(i, 1000)));
    for (int i = 0; i < kKeys; ++i) {
      if (i % 3 != 0) {
        ASSERT_OK(db_->Delete({}, NumberedKey(i)));
      }
    }
    snapshot = db_->GetSnapshot();
    step = 1;
    at_step(2);
  });
  at_step(1);
  // A thread that begins while others live may get the other region as its home.
  std::vector<std::thread> others;
  for (std::atomic<int> answer{0}; answer != 2;) {
    answer = 0;
    others.emplace_back([&] {
      const bool is_elsewhere = GetParam() == 1 || RegionsOf(db_.get())->HomeRegion() != home;
      for (int i = 0; is_elsewhere && i < kKeys; i += 3) Put(NumberedKey(i), PatternedValue(i + 1, 1000));
      answer = is_elsewhere ? 2 : 1;
      at_step(2);
    });
    while (answer == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  step = 2;
  older.join();
  for (std::thread& other : others) other.join();
  for (int i = 0; i < 10; ++i) ASSERT_OK(Compact());
  EXPECT_GT(Relocated(), kKeys / 10u);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  db_->ReleaseSnapshot(snapshot);
}

// Views from before the copies were made, also of what is replaced between their steps.
TEST_P(DbRelocationTest, ReadersOfBeforeGoOn) {
  ASSERT_NO_FATAL_FAILURE(Spread(0, 20000));
  ASSERT_NO_FATAL_FAILURE(MergeOnly());
  const auto frozen = expected_;
  std::vector<std::pair<std::unique_ptr<Iterator>, std::map<std::string, std::string>::const_iterator>> walks;
  for (int i = 0; i < 10; ++i) {
    auto iterator = db_->NewIterator({});
    auto at = frozen.begin();
    iterator->SeekToFirst();
    for (int step = 0; step < i * 80; ++step, ++at) iterator->Next();
    walks.emplace_back(std::move(iterator), at);
  }
  PinnableSlice pinned;
  ASSERT_OK(db_->Get({}, frozen.begin()->first, &pinned));
  const auto compare = [&](int steps) {
    for (auto& [iterator, at] : walks) {
      for (int step = 0; step < steps && at != frozen.end(); ++step, ++at) {
        ASSERT_TRUE(iterator->Valid());
        ASSERT_EQ(iterator->key(), at->first);
        ASSERT_EQ(iterator->value(), at->second);
        iterator->Next();
      }
    }
  };
  for (const char* point :
       {"MergeJournal::Apply:Recorded", "MergeJournal::Apply:Done", "LevelMerge:Marked", "LevelMerge:Applied"})
    SyncPoints::Instance().SetCallback(point, [&](void*) { compare(2); });
  SyncPoints::Instance().Enable();
  ASSERT_OK(Compact());
  EXPECT_GT(Relocated(), 900u);
  SyncPoints::Instance().Clear();
  ASSERT_NO_FATAL_FAILURE(Spread(20000, 40000));  // into the segments that came back, if any did
  ASSERT_OK(Compact());
  EXPECT_EQ(Slice(pinned.data(), pinned.size()), Slice(frozen.begin()->second));
  compare(2000);
  for (auto& [iterator, at] : walks) EXPECT_TRUE(at == frozen.end() && !iterator->Valid());
  walks.clear();
  pinned.Reset();
  ASSERT_OK(Compact());
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

// A cursor is on an original, whose copy dies with a tombstone that the cursor cannot see any more.
TEST_P(DbRelocationTest, ACopyThatDiesTakesItsOriginalAlong) {
  ASSERT_NO_FATAL_FAILURE(Spread(0, 20000));
  ASSERT_NO_FATAL_FAILURE(MergeOnly());
  const std::string gone = NumberedKey(40);
  std::unique_ptr<Iterator> iterator;
  bool installed = false;
  SyncPoints::Instance().SetCallback("DBImpl::RelocateSparse:Installed", [&](void*) { installed = true; });
  const auto in_the_merge = [&](void*) {
    if (!std::exchange(installed, false)) return;
    ASSERT_OK(db_->Delete({}, gone));
    ASSERT_OK(db_->Flush());
    iterator = db_->NewIterator({});
    iterator->SeekToFirst();
  };
  SyncPoints::Instance().SetCallback("MergeJournal::Apply:Recorded", in_the_merge);
  SyncPoints::Instance().SetCallback("LevelMerge:Marked", in_the_merge);
  SyncPoints::Instance().Enable();
  ASSERT_OK(Compact());
  SyncPoints::Instance().Clear();
  ASSERT_NE(iterator, nullptr);
  ASSERT_GT(Relocated(), 900u);
  ASSERT_OK(Compact());
  expected_.erase(gone);
  for (const auto& [key, value] : expected_) {
    ASSERT_TRUE(iterator->Valid());
    ASSERT_EQ(iterator->key(), key);
    ASSERT_EQ(iterator->value(), value);
    iterator->Next();
  }
  EXPECT_FALSE(iterator->Valid());
  iterator.reset();
  ASSERT_OK(Compact());
  ExpectSound();
}

// The cache knows originals when they are copied; their segments are used again for other keys.
TEST_P(DbRelocationTest, TheLookupCacheKnowsTheCopies) {
  ASSERT_NO_FATAL_FAILURE(Spread(0, 20000));
  ASSERT_NO_FATAL_FAILURE(MergeOnly());
  for (int round = 0; round < 2; ++round) {
    for (const auto& [key, value] : expected_) ASSERT_EQ(GetOrText(db_.get(), key), value);
  }
  ASSERT_OK(Compact());
  ASSERT_GT(Relocated(), 900u);
  const uint64_t hits = db_->GetStatistics().lookup_cache_hits;
  for (const auto& [key, value] : expected_) ASSERT_EQ(GetOrText(db_.get(), key), value);
  EXPECT_GT(db_->GetStatistics().lookup_cache_hits - hits, 900u);
  const uint64_t recycled = db_->GetStatistics().segments_recycled;
  EXPECT_GT(recycled, 0u);
  const auto before = expected_;
  ASSERT_NO_FATAL_FAILURE(Spread(20000, 40000));  // where the originals were
  const uint64_t later_hits = db_->GetStatistics().lookup_cache_hits;
  for (const auto& [key, value] : before) ASSERT_EQ(GetOrText(db_.get(), key), value);
  EXPECT_GT(db_->GetStatistics().lookup_cache_hits - later_hits, 900u);
}

// A lookup that began before the copies were made fills the cache after they took the originals' place.
TEST_P(DbRelocationTest, ALateFillIsNotTheOriginal) {
  options_.space_slack = 0;
  ASSERT_NO_FATAL_FAILURE(Spread(0, 20000));
  ASSERT_NO_FATAL_FAILURE(MergeOnly());
  const auto [key, value] = *expected_.begin();
  const auto place = [this] {
    const auto iterator = db_->NewIterator({});
    iterator->SeekToFirst();
    return static_cast<const void*>(iterator->value().data());
  };
  const void* const original = place();
  bool once = true;
  SyncPoints::Instance().SetCallback("DBImpl::FindPut:Found", [&](void*) {
    if (!std::exchange(once, false)) return;
    std::thread([&] {  // the lookup is inside its epoch
      EXPECT_OK(Compact());
      EXPECT_GT(Relocated(), 900u);
    })
        .join();
  });
  SyncPoints::Instance().Enable();
  EXPECT_EQ(GetOrText(db_.get(), key), value);
  EXPECT_FALSE(once);
  SyncPoints::Instance().Clear();
  ASSERT_NE(place(), original);
  const uint64_t hits = db_->GetStatistics().lookup_cache_hits;
  EXPECT_EQ(GetOrText(db_.get(), key), value);
  EXPECT_EQ(db_->GetStatistics().lookup_cache_hits, hits) << "it was not filled in";
  EXPECT_EQ(GetOrText(db_.get(), key), value);
  EXPECT_EQ(db_->GetStatistics().lookup_cache_hits, hits + 1);
  ASSERT_OK(Compact());  // the lookup's epoch has ended: the segments come back
  ASSERT_NO_FATAL_FAILURE(Spread(20000, 40000));
  for (int round = 0; round < 3; ++round) EXPECT_EQ(GetOrText(db_.get(), key), value);
}

// Between its steps the process ends; the next open, and what it does, lose nothing and keep no space.
TEST_P(DbRelocationTest, AKilledProcessLeavesNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(Spread(0, 20000));
  ASSERT_NO_FATAL_FAILURE(MergeOnly());
  for (const char* point :
       {"DBImpl::RelocateSparse:Copied", "DBImpl::RelocateSparse:Listed", "DBImpl::RelocateSparse:Installed",
        "MergeJournal::Apply:Recorded", "MergeJournal::Apply:Done", "LevelMerge:Marked", "LevelMerge:Applied"}) {
    SCOPED_TRACE(point);
    db_.reset();
    const int exit = RunInChild([&] {
      SyncPoints::Instance().SetCallback(point, [](void*) { _exit(7); });
      Reopen();
      SyncPoints::Instance().Enable();
      return Compact().ok() ? 0 : 1;
    });
    EXPECT_TRUE(exit == 7 || exit == 0) << exit;
    CheckReport report;
    ASSERT_OK(CheckDatabase({}, directory_.File("db"), &report));
    EXPECT_TRUE(report.sound()) << report.findings[0].what << ": " << report.findings[0].where;
    Reopen();
    EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
    uint64_t copies = 0;
    SegmentsOf(db_.get())->ForEachCopies([&](Segment*) { ++copies; });
    EXPECT_EQ(copies, 0u);
  }
  ASSERT_OK(Compact());
  ExpectWithinLimits();
  ExpectSound();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

// Copies whose table is listed are durable, all of them: one that is not sound is damaged, and not where a crash cut a write off.
TEST_P(DbRelocationTest, DamageAmongCopiesIsNotTheirEnd) {
  ASSERT_NO_FATAL_FAILURE(Spread(0, 20000));
  ASSERT_NO_FATAL_FAILURE(MergeOnly());
  db_.reset();
  const int exit = RunInChild([this] {
    SyncPoints::Instance().SetCallback("DBImpl::RelocateSparse:Listed", [this](void*) {
      LogEntry* damaged = nullptr;
      SegmentsOf(db_.get())->ForEachCopies([&](Segment* segment) {
        if (damaged != nullptr) return;
        LogReader reader(*segment, segment->capacity());
        for (int i = 0; i < 10; ++i) damaged = reader.NextTrusted();
        if (damaged != nullptr && reader.NextTrusted() == nullptr) damaged = nullptr;
      });
      if (damaged == nullptr) _exit(8);
      damaged->value_size ^= 1;
      _exit(7);
    });
    Reopen();
    SyncPoints::Instance().Enable();
    return Compact().ok() ? 0 : 1;
  });
  ASSERT_EQ(exit, 7);
  std::unique_ptr<DB> db;
  EXPECT_CODE(DB::Open(options_, directory_.File("db"), &db), kCorruption);
  CheckReport report;
  ASSERT_OK(CheckDatabase({}, directory_.File("db"), &report));
  EXPECT_FALSE(report.sound());
}

// What cannot be verified is not copied under a new checksum.
TEST_P(DbRelocationTest, DamagedEntriesStayWhereTheyAre) {
  ASSERT_NO_FATAL_FAILURE(Spread(0, 20000));
  ASSERT_NO_FATAL_FAILURE(MergeOnly());
  PinnableSlice value;
  const std::string damaged = expected_.begin()->first;
  ASSERT_OK(db_->Get({}, damaged, &value));
  const_cast<char*>(value.data())[3] ^= 1;
  value.Reset();
  ASSERT_OK(Compact());
  EXPECT_GT(Relocated(), 900u);
  ReadOptions verify;
  verify.verify_checksums = true;
  std::string ignored;
  EXPECT_CODE(db_->Get(verify, damaged, &ignored), kCorruption);
  expected_.erase(damaged);
  for (const auto& [key, text] : expected_) ASSERT_EQ(GetOrText(db_.get(), key, verify), text);
}

// An entry whose size makes no sense ends what can be read of its segment: what lies behind it lives on.
TEST_P(DbRelocationTest, SegmentsThatCannotBeReadToTheirEndsStay) {
  ASSERT_NO_FATAL_FAILURE(Spread(0, 20000));
  ASSERT_NO_FATAL_FAILURE(MergeOnly());
  int damaged = 0;
  SegmentsOf(db_.get())->ForEachLog([&](Segment* segment) {
    if (segment->state() != SegmentState::kSealed || ++damaged % 4 != 0) return;
    LogReader reader(*segment, segment->sealed_bytes());
    while (LogEntry* entry = reader.NextTrusted()) {
      if (entry->is_obsolete()) continue;
      expected_.erase(std::string(entry->key()));
      entry->value_size = UINT32_MAX;
      return;
    }
  });
  ASSERT_GT(damaged, 8);
  ASSERT_OK(db_->Close());
  Reopen();
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(Compact());
    const auto before = expected_;
    for (const auto& [key, value] : before) ASSERT_EQ(GetOrText(db_.get(), key), value);
    ASSERT_NO_FATAL_FAILURE(Spread((round + 1) * 20000, (round + 2) * 20000));
    for (const auto& [key, value] : before) ASSERT_EQ(GetOrText(db_.get(), key), value);
  }
  EXPECT_GT(Relocated(), 100u);
}

TEST_P(DbRelocationTest, MixedSizesAndNoRoomForCopies) {
  db_.reset();
  ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
  options_.max_region_size = 32ull << 20;
  options_.disable_auto_compaction = false;
  Reopen();
  Random random(3);
  Status status;
  for (int i = 0; i < 60000 && !status.IsNoSpace(); ++i) {
    const std::string key = NumberedKey(random.Uniform(3000));
    const std::string value = PatternedValue(i, random.OneIn(50) ? random.Uniform(100'000) : random.Uniform(2000));
    status = db_->Put({}, key, value);
    if (status.ok()) expected_[key] = value;
  }
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  ASSERT_OK(db_->WaitForCompaction());
  EXPECT_GT(Relocated(), 0u);
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  ExpectSound();
}

TEST_F(DbOpenTest, RelocationLimitsAreChecked) {
  Options options = TinyOptions(1);
  std::unique_ptr<DB> db;
  for (const double amplification : {-1.0, 0.5, 1.0, 1.04, std::numeric_limits<double>::quiet_NaN()}) {
    options.max_space_amplification = amplification;
    EXPECT_CODE(Open(options, &db), kInvalidArgument) << amplification;
  }
  for (const double amplification : {0.0, 1.05, 1e9}) {
    options.max_space_amplification = amplification;
    EXPECT_OK(Open(options, &db)) << amplification;
    db.reset();
  }
}

}  // namespace
}  // namespace braiddb::test
