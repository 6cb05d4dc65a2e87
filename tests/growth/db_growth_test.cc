// No operation grows faster than linear in its own size: the accesses to memory that it takes are counted at n and at 4n. What a
// replay reads of values that look like log entries is counted by recovery_replay_test.cc, in bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "tests/growth/access_counter.h"
#include "tests/support/db_test_util.h"
#include "tests/support/leave_child.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

// n log n is within it: 4 · log 4n / log n is less than 5 from n = 256 on.
constexpr uint64_t kMostGrowth = 5;
// Threads that have nothing to do look around now and then.
constexpr uint64_t kNoise = 20'000;

template <class Work>
uint64_t CountOf(const Work& work) {
  const uint64_t before = AccessCounter::count();
  work();
  return AccessCounter::count() - before;
}

// One database in a directory of its own.
struct Place {
  explicit Place(L1Kind kind) {
    options = TinyOptions(1);
    options.l1 = kind;
    options.disable_auto_compaction = true;
    options.memtable_size = 64 << 20;
    options.compaction_threads = 1;
    options.lookup_cache_size = 0;
    options.recovery_threads = 1;
    options.max_region_size = 1ull << 30;
    Reopen();
  }
  void Reopen() {
    db.reset();
    db = OpenOrFail(options, directory.File("db"));
  }
  void Put(uint64_t number, uint64_t round = 0) {
    EXPECT_OK(db->Put({}, NumberedKey(number), PatternedValue(number + round, 20)));
  }
  void PutAll(uint64_t count, uint64_t round = 0) {
    for (uint64_t i = 0; i < count; ++i) Put(i, round);
  }
  void Compact() { EXPECT_OK(db->CompactRange({}, nullptr, nullptr)); }
  void Flush() { EXPECT_OK(db->Flush()); }

  TestDirectory directory;
  Options options;
  std::unique_ptr<DB> db;
};

struct Growth {
  const char* name;
  uint64_t n;
  // Prepares a database of size `n`, and returns the accesses of the operation.
  std::function<uint64_t(L1Kind, uint64_t n)> measure;
};
void PrintTo(const Growth& growth, std::ostream* out) { *out << growth.name; }

// ---- Deleted ranges

void DeleteRanges(Place* place, uint64_t count, bool nested) {
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t begin = nested ? i : 2 * i;
    const uint64_t end = nested ? 4 * count - i : 2 * i + 1;
    EXPECT_OK(place->db->DeleteRange({}, NumberedKey(begin), NumberedKey(end)));
  }
}

uint64_t WritingRanges(L1Kind kind, uint64_t n) {
  Place place(kind);
  place.PutAll(2 * n);
  return CountOf([&] { DeleteRanges(&place, n, false); });
}

uint64_t MergingRanges(L1Kind kind, uint64_t n) {
  Place place(kind);
  place.PutAll(2 * n);
  place.Compact();
  DeleteRanges(&place, n, false);
  return CountOf([&] { place.Compact(); });
}

uint64_t MergingNestedRanges(L1Kind kind, uint64_t n) {
  Place place(kind);
  place.PutAll(2 * n);
  place.Compact();
  DeleteRanges(&place, n, true);
  return CountOf([&] { place.Compact(); });
}

// Each call looks at one key, whatever the level has.
uint64_t SweepingSingleKeys(L1Kind kind, uint64_t n) {
  if (kind == L1Kind::kSortedRuns) return n;  // a sweep rewrites the run of the key
  Place place(kind);
  place.PutAll(64 * n);
  place.Compact();
  return CountOf([&] {
    for (uint64_t i = 0; i < n; ++i) {
      const std::string key = NumberedKey(64 * i);
      const Slice begin(key);
      const std::string behind = key + '\0';
      const Slice end(behind);
      EXPECT_OK(place.db->CompactRange({}, &begin, &end));
    }
  });
}

uint64_t ScanningRanges(L1Kind kind, uint64_t n) {
  Place place(kind);
  place.PutAll(2 * n);
  place.Compact();
  DeleteRanges(&place, n, false);
  return CountOf([&] { EXPECT_EQ(ScanForward(place.db.get()).size(), n); });
}

// ---- Snapshots

enum class Order { kOldestFirst, kNewestFirst, kScattered };

uint64_t ReleasingSnapshots(L1Kind kind, uint64_t n, Order order) {
  Place place(kind);
  std::vector<const Snapshot*> snapshots;
  for (uint64_t i = 0; i < n; ++i) {
    place.Put(i);
    snapshots.push_back(place.db->GetSnapshot());
  }
  if (order == Order::kNewestFirst) std::reverse(snapshots.begin(), snapshots.end());
  if (order == Order::kScattered)
    std::sort(snapshots.begin(), snapshots.end(), [](const Snapshot* a, const Snapshot* b) {
      return a->GetSequenceNumber() * 2654435761 % 1000003 < b->GetSequenceNumber() * 2654435761 % 1000003;
    });
  return CountOf([&] {
    for (const Snapshot* snapshot : snapshots) place.db->ReleaseSnapshot(snapshot);
  });
}

// ---- Versions of one key, with a snapshot behind each

struct Versions : Place {
  Versions(L1Kind kind, uint64_t n) : Place(kind) {
    EXPECT_OK(db->Put({}, "a", "before"));
    for (uint64_t i = 0; i < n; ++i) {
      EXPECT_OK(db->Put({}, "key", PatternedValue(i, 20)));
      snapshots.push_back(db->GetSnapshot());
    }
    EXPECT_OK(db->Put({}, "z", "behind"));
  }
  ~Versions() { Release(); }
  void Release() {
    for (const Snapshot* snapshot : snapshots) db->ReleaseSnapshot(snapshot);
    snapshots.clear();
  }
  ReadOptions At(size_t index) const {
    ReadOptions read;
    read.snapshot = snapshots[index];
    return read;
  }
  std::vector<const Snapshot*> snapshots;
};

enum class Level { kMemtable, kL0, kLast };

uint64_t AtVersions(L1Kind kind, uint64_t n, Level level, const std::function<void(Versions*)>& work) {
  Versions versions(kind, n);
  if (level == Level::kL0) versions.Flush();
  if (level == Level::kLast) versions.Compact();
  return CountOf([&] { work(&versions); });
}

void GetVersions(Versions* versions) {
  std::string value;
  for (size_t tenth = 0; tenth < 10; ++tenth) {
    const size_t i = versions->snapshots.size() * tenth / 10;
    EXPECT_OK(versions->db->Get(versions->At(i), "key", &value));
    ASSERT_EQ(value, PatternedValue(i, 20));
  }
}

void WalkBack(Versions* versions) {
  for (const size_t at : {size_t{0}, versions->snapshots.size() / 2, versions->snapshots.size() - 1}) {
    EXPECT_EQ(ScanBackward(versions->db.get(), versions->At(at)).size(), 2u);
    EXPECT_EQ(ScanForward(versions->db.get(), versions->At(at)).size(), 2u);
  }
}

// ---- Tombstones

uint64_t ScanningTombstones(L1Kind kind, uint64_t n, Level level) {
  Place place(kind);
  place.PutAll(n);
  if (level != Level::kMemtable) place.Compact();
  for (uint64_t i = 0; i < n; ++i) EXPECT_OK(place.db->Delete({}, NumberedKey(i)));
  if (level != Level::kMemtable) place.Flush();
  place.Put(n);
  return CountOf([&] {
    EXPECT_EQ(ScanForward(place.db.get()).size(), 1u);
    EXPECT_EQ(ScanBackward(place.db.get()).size(), 1u);
  });
}

// Merges of a queue are the database's own: with them.
uint64_t Queueing(L1Kind kind, uint64_t n) {
  Place place(kind);
  place.options.disable_auto_compaction = false;
  place.options.memtable_size = 16 << 10;
  place.Reopen();
  constexpr uint64_t kWaiting = 20;
  // Merges may be late where other processes take the CPU. All of them together are waited for so long.
  int patience_ms = 30'000;
  const auto is_behind = [&place] {
    return IntProperty(place.db.get(), "braiddb.num-l0-tables") > 2 * place.options.l0_compaction_trigger;
  };
  return CountOf([&] {
    for (uint64_t i = 0; i < n; ++i) {
      place.Put(i);
      for (; i % 100 == 0 && is_behind() && patience_ms > 0; --patience_ms)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (i < kWaiting) continue;
      const std::unique_ptr<Iterator> iterator = place.db->NewIterator({});
      iterator->SeekToFirst();
      ASSERT_TRUE(iterator->Valid());
      ASSERT_EQ(iterator->key(), NumberedKey(i - kWaiting));
      EXPECT_OK(place.db->Delete({}, NumberedKey(i - kWaiting)));
    }
  });
}

// ---- Tables

struct Tables : Place {
  Tables(L1Kind kind, uint64_t n) : Place(kind) {
    PutAll(100);
    Compact();
    for (uint64_t table = 0; table < n; ++table) {
      for (uint64_t i = 0; i < 10; ++i) Put((table * 7 + i * 13) % 100, table);
      Flush();
    }
    db.reset();
  }
  // Until each restored table has been walked for its index: how soon that is, is a matter of luck.
  void ReopenAndIndex() {
    std::atomic<uint64_t> walked{0};
    SyncPoints::Instance().SetCallback("DBImpl::WalkTable:Walked", [&](void*) { ++walked; });
    SyncPoints::Instance().Enable();
    Reopen();
    const uint64_t restored = IntProperty(db.get(), "braiddb.num-l0-tables");
    EXPECT_TRUE(WaitUntil([&] { return walked >= restored; })) << walked << " of " << restored;
    SyncPoints::Instance().Clear();
  }
};

uint64_t OpeningTables(L1Kind kind, uint64_t n) {
  Tables tables(kind, n);
  return CountOf([&] { tables.ReopenAndIndex(); });
}

uint64_t ReadingTables(L1Kind kind, uint64_t n, bool seeks) {
  Tables tables(kind, n);
  tables.ReopenAndIndex();
  return CountOf([&] {
    for (int i = 0; i < 200; ++i) {
      const std::string key = NumberedKey(static_cast<uint64_t>(i) % 100);
      if (seeks) {
        const std::unique_ptr<Iterator> iterator = tables.db->NewIterator({});
        iterator->Seek(key);
        ASSERT_TRUE(iterator->Valid() && iterator->key() == key);
      } else {
        std::string value;
        ASSERT_OK(tables.db->Get({}, key, &value));
      }
    }
  });
}

uint64_t MergingTables(L1Kind kind, uint64_t n) {
  Tables tables(kind, n);
  // Whether the index of restored tables is there before the merge is a matter of luck.
  SyncPoints::Instance().SetCallback("DBImpl::IndexRestoredTables",
                                     [](void* is_put_off) { *static_cast<bool*>(is_put_off) = true; });
  SyncPoints::Instance().Enable();
  tables.Reopen();
  const uint64_t count = CountOf([&] { tables.Compact(); });
  SyncPoints::Instance().Clear();
  return count;
}

// ---- Keys

uint64_t FlushingKeys(L1Kind kind, uint64_t n) {
  Place place(kind);
  place.PutAll(n);
  return CountOf([&] { place.Flush(); });
}

uint64_t MergingKeys(L1Kind kind, uint64_t n) {
  Place place(kind);
  place.PutAll(n);
  place.Flush();
  return CountOf([&] { place.Compact(); });
}

uint64_t WritingABatch(L1Kind kind, uint64_t n) {
  Place place(kind);
  WriteBatch batch;
  for (uint64_t i = 0; i < n; ++i) batch.Put(NumberedKey(i), "value");
  return CountOf([&] { EXPECT_OK(place.db->Write({}, batch)); });
}

// One more.
uint64_t CreatingAFamily(L1Kind kind, uint64_t n) {
  Place place(kind);
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles(n + 1);
  const ColumnFamilyOptions options(place.options);
  const auto create = [&](uint64_t i) {
    EXPECT_OK(place.db->CreateColumnFamily(options, "family" + std::to_string(i), &handles[i]));
  };
  for (uint64_t i = 0; i < n; ++i) create(i);
  const uint64_t count = CountOf([&] { create(n); });
  handles.clear();
  return count;
}

// ---- Replay

uint64_t ReplayingKeys(L1Kind kind, uint64_t n) {
  Place place(kind);
  place.db.reset();
  EXPECT_EQ(RunInChild([&]() -> int {
              place.Reopen();
              place.PutAll(n);
              LeaveChild(0);
            }),
            0);
  return CountOf([&] { place.Reopen(); });
}

// ---- Threads

// Each writes once and ends, or lives on until all have written.
uint64_t WritingInThreads(L1Kind kind, uint64_t n, bool live_on) {
  Place place(kind);
  std::vector<std::thread> threads;
  std::atomic<uint64_t> written{0};
  return CountOf([&] {
    for (uint64_t i = 0; i < n; ++i) {
      threads.emplace_back([&, i] {
        place.Put(i);
        written.fetch_add(1);
        while (live_on && written.load() < n) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
      if (!live_on) threads.back().join();
    }
    for (std::thread& thread : threads) {
      if (thread.joinable()) thread.join();
    }
    place.Flush();
  });
}

std::vector<Growth> Growths() {
  using namespace std::placeholders;
  return {
      {"WritingRanges", 400, WritingRanges},
      {"MergingRanges", 400, MergingRanges},
      {"MergingNestedRanges", 400, MergingNestedRanges},
      {"ScanningRanges", 1600, ScanningRanges},
      {"SweepingSingleKeys", 40, SweepingSingleKeys},
      {"ReleasingSnapshotsOldestFirst", 500, std::bind(ReleasingSnapshots, _1, _2, Order::kOldestFirst)},
      {"ReleasingSnapshotsNewestFirst", 500, std::bind(ReleasingSnapshots, _1, _2, Order::kNewestFirst)},
      {"ReleasingSnapshotsScattered", 500, std::bind(ReleasingSnapshots, _1, _2, Order::kScattered)},
      {"GettingVersionsInMemtable", 400, std::bind(AtVersions, _1, _2, Level::kMemtable, GetVersions)},
      {"GettingVersionsInL0", 400, std::bind(AtVersions, _1, _2, Level::kL0, GetVersions)},
      {"GettingVersionsInLastLevel", 400, std::bind(AtVersions, _1, _2, Level::kLast, GetVersions)},
      {"WalkingVersionsInMemtable", 1000, std::bind(AtVersions, _1, _2, Level::kMemtable, WalkBack)},
      {"WalkingVersionsInL0", 1000, std::bind(AtVersions, _1, _2, Level::kL0, WalkBack)},
      {"WalkingVersionsInLastLevel", 1000, std::bind(AtVersions, _1, _2, Level::kLast, WalkBack)},
      {"FlushingVersions", 1000, std::bind(AtVersions, _1, _2, Level::kMemtable, [](Versions* v) { v->Flush(); })},
      {"MergingVersions", 1000, std::bind(AtVersions, _1, _2, Level::kL0, [](Versions* v) { v->Compact(); })},
      {"SweepingVersions", 1000,
       std::bind(AtVersions, _1, _2, Level::kLast,
                 [](Versions* v) {
                   v->Release();
                   v->Compact();
                 })},
      {"ScanningTombstonesInMemtable", 1000, std::bind(ScanningTombstones, _1, _2, Level::kMemtable)},
      {"ScanningTombstonesInL0", 1000, std::bind(ScanningTombstones, _1, _2, Level::kL0)},
      {"Queueing", 1000, Queueing},
      {"OpeningTables", 50, OpeningTables},
      {"GettingFromTables", 50, std::bind(ReadingTables, _1, _2, false)},
      {"SeekingInTables", 50, std::bind(ReadingTables, _1, _2, true)},
      {"MergingTables", 50, MergingTables},
      {"FlushingKeys", 2000, FlushingKeys},
      {"MergingKeys", 2000, MergingKeys},
      {"WritingABatch", 2000, WritingABatch},
      {"CreatingAFamily", 60, CreatingAFamily},
      {"ReplayingKeys", 1000, ReplayingKeys},
      {"WritingInEndingThreads", 100, std::bind(WritingInThreads, _1, _2, false)},
      {"WritingInLivingThreads", 100, std::bind(WritingInThreads, _1, _2, true)},
  };
}

class DbGrowthTest : public testing::TestWithParam<std::tuple<Growth, L1Kind>> {};

std::string NameOf(L1Kind kind) {
  return kind == L1Kind::kNvTree       ? "NvTree"
         : kind == L1Kind::kSortedRuns ? "SortedRuns"
         : kind == L1Kind::kHybrid     ? "Hybrid"
         : kind == L1Kind::kLbTree     ? "LbTree"
                                       : "BraidedSkipList";
}

INSTANTIATE_TEST_SUITE_P(Operations, DbGrowthTest,
                         testing::Combine(testing::ValuesIn(Growths()),
                                          testing::Values(L1Kind::kBraidedSkipList, L1Kind::kNvTree, L1Kind::kSortedRuns,
                                                          L1Kind::kHybrid, L1Kind::kLbTree)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + std::string("_") + NameOf(std::get<1>(test.param));
                         });

TEST_P(DbGrowthTest, IsAtMostLinear) {
  const auto& [growth, kind] = GetParam();
  // What other threads do meanwhile is counted as well, so one of three rounds has to be right.
  bool is_linear = false;
  for (int round = 0; round < 3 && !is_linear; ++round) {
    const uint64_t small = growth.measure(kind, growth.n);
    const uint64_t large = growth.measure(kind, 4 * growth.n);
    std::printf("%s %s: %llu accesses of %llu, %llu of %llu, %.2f times as many\n", growth.name, NameOf(kind).c_str(),
                static_cast<unsigned long long>(small), static_cast<unsigned long long>(growth.n),
                static_cast<unsigned long long>(large), static_cast<unsigned long long>(4 * growth.n),
                static_cast<double>(large) / static_cast<double>(small));
    is_linear = small > 0 && large <= kMostGrowth * small + kNoise;
  }
  EXPECT_TRUE(is_linear);
}

}  // namespace
}  // namespace braiddb::test
