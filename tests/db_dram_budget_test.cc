// Options::dram_budget: what a database takes of DRAM stays within it, and what gives way to other things is not missed.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "db/dram_budget.h"
#include "pmem/region_set.h"
#include "tests/support/db_fixture.h"
#include "tests/support/wait_until.h"

namespace braiddb::test {
namespace {

constexpr uint64_t kMiB = 1 << 20;

std::string KeyOf(uint64_t number) {
  number = __builtin_bswap64(number * 0x9e3779b97f4a7c15);  // all over the place
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

// Anonymous memory of this process; persistent memory that DRAM stands in for is not.
uint64_t ResidentBytes() {
  std::ifstream file("/proc/self/status");
  std::string word;
  uint64_t kib = 0;
  while (file >> word) {
    if (word == "RssAnon:") file >> kib;
  }
  return kib << 10;
}

class PeakMeter {
 public:
  PeakMeter() : begin_(ResidentBytes()), thread_([this] { Watch(); }) {}
  ~PeakMeter() {
    stop_ = true;
    thread_.join();
  }
  // More than at the start.
  uint64_t peak() const { return peak_ - std::min<uint64_t>(peak_, begin_); }

 private:
  void Watch() {
    while (!stop_) {
      peak_ = std::max<uint64_t>(peak_, ResidentBytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  const uint64_t begin_;
  std::atomic<uint64_t> peak_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class DramBudgetTest : public DbOpenTest {
 protected:
  static Options UsualOptions(uint64_t budget) {
    Options options;
    options.create_if_missing = true;
    options.regions = 1;
    options.l1 = TestedL1();
    options.dram_budget = budget;
    return options;
  }
  static bool MergesCopy() { return TestedL1() == L1Kind::kSortedRuns; }  // the budget does not know what they keep
  static bool UsesTree() { return TestedL1() == L1Kind::kNvTree; }

  // What users do, with the peak of it in MiB; -1 for an error.
  int Work(const Options& options, uint64_t keys, bool crash) {
    const PeakMeter meter;
    Random random(5);
    std::unique_ptr<DB> db;
    for (int open = 0; open < 2; ++open) {
      if (!Open(options, &db).ok()) return -1;
      for (uint64_t i = 0; i < keys; ++i) {
        const uint64_t number = open == 0 ? i : random.Uniform(2 * keys);
        if (!db->Put({}, KeyOf(number), Slice("12345678")).ok()) return -1;
        if (i % 200'000 != 0) continue;
        auto iterator = db->NewIterator({});
        int steps = 0;
        for (iterator->Seek(KeyOf(random.Uniform(keys))); iterator->Valid() && steps < 100; iterator->Next()) ++steps;
      }
      std::string value;
      for (uint64_t i = 0; i < keys / 4; ++i) {
        if (!db->Get({}, KeyOf(random.Uniform(keys)), &value).ok()) return -1;
        if (!db->Get({}, KeyOf(keys * 3 + i), &value).IsNotFound()) return -1;
      }
      if (open == 0 && crash) {
        (void)db.release();  // the next open replays
        break;
      }
      if (open == 1 && !db->CompactRange({}, nullptr, nullptr).ok()) return -1;
      if (!db->Close().ok()) return -1;
      db.reset();
    }
    return static_cast<int>(std::min<uint64_t>(200, (meter.peak() + kMiB - 1) / kMiB));  // an exit status has eight bits
  }
  int PeakOf(const Options& options, uint64_t keys, bool crash = false) {
    return RunInChild([&] { return Work(options, keys, crash); }, 400'000);
  }
};

// The bar of the option: 5 % more at the most.
TEST_F(DramBudgetTest, ResidentMemoryStaysWithinIt) {
  if (kSlowdown != 1) GTEST_SKIP() << "a sanitizer takes memory of its own";
  const uint64_t keys = 600'000;
  for (const uint64_t budget : {64, 96, 160}) {
    SCOPED_TRACE(budget);
    const int peak = PeakOf(UsualOptions(budget * kMiB), keys);
    RecordProperty("peak_of_" + std::to_string(budget), peak);
    EXPECT_GT(peak, 4);
    EXPECT_LE(peak, static_cast<int>(budget + budget / (MergesCopy() ? 2 : 20)));
    ASSERT_OK(DB::Destroy({}, path_));
  }
  const int without = PeakOf(UsualOptions(0), keys);
  EXPECT_GT(without, 68) << "without it this takes more";
  EXPECT_LE(without, 200);
}

TEST_F(DramBudgetTest, AReplayStaysWithinIt) {
  if (kSlowdown != 1) GTEST_SKIP() << "a sanitizer takes memory of its own";
  Options options = UsualOptions(84 * kMiB);
  options.regions = 2;
  for (const bool crash : {true, false}) {
    const int peak = PeakOf(options, 300'000, crash);
    EXPECT_GT(peak, 4);
    EXPECT_LE(peak, 84 + 84 / 20);
  }
}

TEST_F(DramBudgetTest, IsSharedSoThatItIsEnough) {
  for (const L1Kind l1 : {L1Kind::kBraidedSkipList, L1Kind::kNvTree}) {
    for (const uint64_t budget : {64 * kMiB, 100 * kMiB, 1024 * kMiB, uint64_t{1} << 40}) {
      SCOPED_TRACE(budget);
      Options options;
      options.l1 = l1;
      options.regions = 1;
      options.dram_budget = budget;
      const DramBudget shares = DramBudget::Share(&options);
      EXPECT_TRUE(shares.is_set());
      EXPECT_GE(options.memtable_max_entries, 1024u);
      EXPECT_LE(options.memtable_max_entries, Options().memtable_max_entries);
      EXPECT_LE(options.l1_index_size, Options().l1_index_size);
      EXPECT_EQ(options.lookup_cache_size + shares.filter, shares.cached);
      const uint64_t index = l1 == L1Kind::kNvTree ? 0 : 2 * options.l1_index_size;
      EXPECT_LE(shares.cached + index + options.memtable_max_entries * (9 * 112 + 4 * 16 * 16 + 36 * 17 + 28 * 16),
                budget - 18 * kMiB);
      EXPECT_GE(shares.cached, budget / 4);
    }
  }
  for (uint32_t regions = 1; regions <= kMaxRegions; ++regions) {
    Options least;
    least.regions = regions;
    least.dram_budget = DramBudget::Least(regions);
    EXPECT_GE(DramBudget::Share(&least).cached, 20 * kMiB);
    EXPECT_LE(DramBudget::Share(&least).cached, least.dram_budget / 2);
  }
  Options options;
  EXPECT_FALSE(DramBudget::Share(&options).is_set());
  EXPECT_EQ(options.lookup_cache_size, Options().lookup_cache_size);
}

TEST_F(DramBudgetTest, OptionsSayWhatWasChosen) {
  std::unique_ptr<DB> db;
  EXPECT_CODE(Open(UsualOptions(64 * kMiB - 1), &db), kInvalidArgument);
  EXPECT_CODE(Open(UsualOptions(UINT64_MAX), &db), kInvalidArgument);
  Options existing = UsualOptions(64 * kMiB);
  existing.create_if_missing = false;
  EXPECT_CODE(Open(existing, &db), kNotFound);  // no database was left behind
  Options options = UsualOptions(64 * kMiB);
  options.lookup_cache_size = 0;
  ASSERT_OK(Open(options, &db));
  EXPECT_EQ(db->GetOptions().dram_budget, 64 * kMiB);
  EXPECT_LT(db->GetOptions().memtable_max_entries, 10'000u);
  EXPECT_EQ(IntProperty(db.get(), "braiddb.lookup-cache-bytes"), 0u);
  ASSERT_OK(db->Close());
  options.lookup_cache_size = 1;
  ASSERT_OK(Open(options, &db));
  EXPECT_GT(db->GetOptions().lookup_cache_size, 12 * kMiB);
  EXPECT_GT(IntProperty(db.get(), "braiddb.lookup-cache-bytes"), 0u);
  EXPECT_LT(IntProperty(db.get(), "braiddb.dram-bytes"), kMiB) << "there is no key yet";
}

TEST_F(DramBudgetTest, WithoutItSizesAreThoseOfTheOptions) {
  Options options = UsualOptions(0);
  options.lookup_cache_size = 1'000'000;
  std::unique_ptr<DB> db;
  ASSERT_OK(Open(options, &db));
  EXPECT_EQ(db->GetOptions().lookup_cache_size, 1'000'000u);
  EXPECT_EQ(db->GetOptions().memtable_max_entries, Options().memtable_max_entries);
}

// Leaves of 512 bytes take many inner nodes. Readers and a writer go on while the cache shrinks; what a reader saw does not go
// back.
TEST_F(DramBudgetTest, InnerNodesTakeFromTheCache) {
  if (!UsesTree()) GTEST_SKIP() << "a skiplist's index has a fixed share";
  Options options = UsualOptions(64 * kMiB);
  options.nv_leaf_size = 512;
  options.lookup_cache_limit = std::make_shared<CacheLimit>(1 << 30);
  Options shared = options;
  shared.regions = 1;
  const DramBudget shares = DramBudget::Share(&shared);
  std::unique_ptr<DB> db;
  ASSERT_OK(Open(options, &db));
  constexpr uint64_t kCounters = 2000;
  std::vector<std::atomic<uint64_t>> written(kCounters);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0};
  const auto value_of = [](uint64_t count) { return std::string(reinterpret_cast<const char*>(&count), 8); };
  std::jthread reader([&] {
    Random random(9);
    std::string value;
    std::vector<uint64_t> seen(kCounters);
    while (!stop) {
      const uint64_t i = random.Uniform(kCounters);
      const uint64_t least = std::max(seen[i], written[i].load());
      uint64_t found = 0;
      if (db->Get({}, KeyOf(i), &value).ok()) memcpy(&found, value.data(), 8);
      wrong += found < least;
      seen[i] = found;
    }
  });
  struct Stop {
    ~Stop() { *stop = true; }
    std::atomic<bool>* const stop;
  } const at_the_end{&stop};
  Random random(7);
  const uint64_t keys = 900'000 / kSlowdown;
  for (uint64_t i = kCounters; i < keys; ++i) {
    ASSERT_OK(db->Put({}, KeyOf(i), Slice("12345678")));
    if (i % 3 != 0) continue;
    const uint64_t counter = random.Uniform(kCounters);
    ASSERT_OK(db->Put({}, KeyOf(counter), value_of(written[counter] + 1)));
    ++written[counter];
  }
  ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
  stop = true;
  reader.join();
  EXPECT_EQ(wrong, 0u);
  const uint64_t nodes = IntProperty(db.get(), "braiddb.l1-dram-bytes");
  if (kSlowdown == 1) {
    EXPECT_GT(nodes, kMiB);
  }
  // The cache shrinks in the background.
  const auto taken = [&] { return nodes + IntProperty(db.get(), "braiddb.lookup-cache-bytes") + shares.filter; };
  EXPECT_TRUE(WaitUntil([&] { return taken() <= shares.cached; })) << taken() << " of " << shares.cached;
  // Every shrink gives back what the cache has lost, to the byte.
  const auto difference = [&] {
    return options.lookup_cache_limit->usage() - IntProperty(db.get(), "braiddb.lookup-cache-bytes");
  };
  EXPECT_TRUE(WaitUntil([&] { return difference() == 0; })) << difference();
  std::string value;
  for (uint64_t i = 0; i < kCounters; ++i) {
    const Status status = db->Get({}, KeyOf(i), &value);
    if (written[i] == 0) {
      EXPECT_TRUE(status.IsNotFound());
    } else {
      ASSERT_OK(status);
      EXPECT_EQ(value, value_of(written[i]));
    }
  }
}

// A filter for so many bits a key has no room for these keys: it goes, and everything is found without it.
TEST_F(DramBudgetTest, AFilterThatHasNoRoomGoes) {
  Options options = UsualOptions(64 * kMiB);
  options.filter_bits_per_key = 40;  // a million at first
  const uint64_t keys = 1'600'000 / kSlowdown;
  std::unique_ptr<DB> db;
  ASSERT_OK(Open(options, &db));
  uint64_t most = 0;
  for (uint64_t i = 0; i < keys; ++i) {
    ASSERT_OK(db->Put({}, KeyOf(i), Slice("12345678")));
    if (i % 1000 == 0) most = std::max(most, IntProperty(db.get(), "braiddb.filter-bytes"));
  }
  ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
  Options shared = options;
  shared.regions = 1;
  EXPECT_LE(most, DramBudget::Share(&shared).filter);
  if (kSlowdown == 1) {
    EXPECT_GT(most, kMiB) << "there was one";
    EXPECT_TRUE(WaitUntil([&] {
      EXPECT_OK(db->Put({}, "x", "y"));
      EXPECT_OK(db->Flush());
      return IntProperty(db.get(), "braiddb.filter-bytes") == 0;
    }));
  }
  std::string value;
  for (uint64_t i = 0; i < keys; i += 7) ASSERT_OK(db->Get({}, KeyOf(i), &value));
  for (uint64_t i = keys; i < keys + 1000; ++i) ASSERT_CODE(db->Get({}, KeyOf(i), &value), kNotFound);
}

}  // namespace
}  // namespace braiddb::test
