// The filter in a database: gets of keys that are not there end at it, and no key that is there does.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "tests/support/db_fixture.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

class DbFilterTest : public DbTest {
 protected:
  void TearDown() override { SyncPoints::Instance().Clear(); }

  uint64_t Negatives() const { return db_->GetStatistics().filter_negatives; }
  uint64_t FilterBytes() const { return IntProperty(db_.get(), "braiddb.filter-bytes"); }
  // Until it is made.
  void AwaitFilter() {
    for (int i = 0; FilterBytes() == 0; ++i) {
      ASSERT_LT(i, 6000);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  void ExpectMissing(int begin, int end) {
    for (int i = begin; i < end; ++i) ASSERT_EQ(GetOrText(db_.get(), NumberedKey(i)), "<not found>") << i;
  }
};

INSTANTIATE_TEST_SUITE_P(Regions, DbFilterTest, testing::Values(1, 2));

// With a million keys.
class DbGrownFilterTest : public DbFilterTest {};

INSTANTIATE_TEST_SUITE_P(Regions, DbGrownFilterTest, testing::Values(1));

TEST_P(DbFilterTest, AnswersGetsOfKeysThatAreNotThere) {
  for (int i = 0; i < 400; i += 2) ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(i, 30)));
  AtEveryStage([&] {
    AwaitFilter();
    const uint64_t before = Negatives();
    for (int i = 0; i < 400; ++i) {
      ASSERT_EQ(GetOrText(db_.get(), NumberedKey(i)), i % 2 == 0 ? PatternedValue(i, 30) : "<not found>");
    }
    EXPECT_GE(Negatives() - before, 180u);
    EXPECT_LE(Negatives() - before, 200u);
  });
}

// Reads that go on missing ask the levels before the lookup cache: they do not miss what is there, or comes.
TEST_P(DbFilterTest, KeysBehindManyMissesAreFound) {
  constexpr int kMisses = 40;
  for (int i = 0; i < 200; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(i, 30)));
  int fresh = 1000;
  AtEveryStage([&] {
    AwaitFilter();
    for (int i = 0; i < 200; i += 20) {
      ExpectMissing(5000, 5000 + kMisses);
      ASSERT_EQ(GetOrText(db_.get(), NumberedKey(i)), PatternedValue(i, 30));
    }
    for (int end = fresh + 10; fresh < end; ++fresh) {
      for (int i = 0; i < kMisses; ++i) ExpectMissing(fresh, fresh + 1);
      ASSERT_OK(db_->Put({}, NumberedKey(fresh), "first"));
      ASSERT_EQ(GetOrText(db_.get(), NumberedKey(fresh)), "first");
      ExpectMissing(5000, 5000 + kMisses);
      ASSERT_OK(db_->Put({}, NumberedKey(fresh), "second"));
      ASSERT_EQ(GetOrText(db_.get(), NumberedKey(fresh)), "second");
      ASSERT_OK(db_->Delete({}, NumberedKey(fresh)));
      for (int i = 0; i < kMisses; ++i) ExpectMissing(fresh, fresh + 1);
      ASSERT_OK(db_->Put({}, NumberedKey(fresh), "third"));
    }
    for (int i = 1000; i < fresh; ++i) {
      ExpectMissing(5000, 5000 + kMisses);
      ASSERT_EQ(GetOrText(db_.get(), NumberedKey(i)), "third");
    }
  });
}

// Keys in each level when it is made, more of them than fit one step of the walk.
TEST_P(DbFilterTest, AnOpenMakesItFromAllLevels) {
  options_.memtable_size = 4 << 20;
  options_.disable_auto_compaction = true;
  Reopen();
  constexpr int kKeys = 45000;
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_OK(db_->Put({}, NumberedKey(i), "1"));
    if (i == kKeys - 3000) {
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    }
    if (i == kKeys - 1000) {
      ASSERT_OK(db_->Flush());
    }
  }
  Reopen();
  AwaitFilter();
  const uint64_t before = Negatives();
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(GetOrText(db_.get(), NumberedKey(i)), "1") << i;
  EXPECT_EQ(Negatives(), before);
  ExpectMissing(kKeys, kKeys + 1000);
  EXPECT_GE(Negatives() - before, 950u);
}

// A flush has entered its keys and its table is not in the view yet, when a filter is begun, and ended if it can be.
TEST_P(DbFilterTest, AFlushThatIsUnderWayWhenItIsBegun) {
  options_.disable_auto_compaction = true;
  Reopen();  // a merge that the next close cuts short would keep the filter from being made
  for (int i = 0; i < 50; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "1"));
  std::mutex mutex;
  std::condition_variable changed;
  bool linked = false;
  SyncPoints::Instance().SetCallback("DBImpl::BeginFilter", [&](void*) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return linked; });
  });
  SyncPoints::Instance().SetCallback("DBImpl::FlushOne:Linked", [&](void*) {
    {
      std::lock_guard lock(mutex);
      linked = true;
      changed.notify_all();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  db_.reset();
  SyncPoints::Instance().Enable();
  Reopen();
  for (int i = 50; i < 100; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "1"));
  ASSERT_OK(db_->Flush());
  AwaitFilter();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(GetOrText(db_.get(), NumberedKey(i)), "1") << i;
}

// Writes, flushes and merges go on while it is made, over and over.
TEST_P(DbFilterTest, IsMadeWhileEverythingMoves) {
  std::map<std::string, std::string> expected;
  Random random(5);
  for (int round = 0; round < 12; ++round) {
    Reopen();
    for (int i = 0; i < 1500; ++i) {
      const std::string key = NumberedKey(random.Uniform(4000));
      if (random.OneIn(4)) {
        ASSERT_OK(db_->Delete({}, key));
        expected.erase(key);
      } else {
        const std::string value = PatternedValue(random.Next(), 20);
        ASSERT_OK(db_->Put({}, key, value));
        expected[key] = value;
      }
      if (i == 700 && round % 3 == 0) {
        ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
      }
    }
    AwaitFilter();
    for (int i = 0; i < 4000; ++i) {
      const auto at = expected.find(NumberedKey(i));
      ASSERT_EQ(GetOrText(db_.get(), NumberedKey(i)), at == expected.end() ? "<not found>" : at->second) << i;
    }
  }
}

// Tables that a merge will take are asked, and the merge adds their keys.
TEST_P(DbFilterTest, KeysComeWithTheMerge) {
  AwaitFilter();
  std::mutex mutex;
  std::condition_variable changed;
  bool merging = false, goes_on = false;
  SyncPoints::Instance().SetCallback("DBImpl::MergeTables:Announced", [&](void*) {
    std::unique_lock lock(mutex);
    merging = true;
    changed.notify_all();
    changed.wait(lock, [&] { return goes_on; });
  });
  SyncPoints::Instance().Enable();
  const auto expect_all = [&] {
    for (int i = 0; i < 300; ++i)
      EXPECT_EQ(GetOrText(db_.get(), NumberedKey(i)), i % 3 == 0 ? "<not found>" : PatternedValue(i, 30)) << i;
  };
  for (int i = 0; i < 300; ++i) {
    if (i % 3 != 0) {
      ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(i, 30)));
    }
  }
  EXPECT_OK(db_->Flush());
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return merging; }));
  }
  EXPECT_GT(IntProperty(db_.get(), "braiddb.num-l0-tables"), 0u);
  uint64_t before = Negatives();
  expect_all();
  EXPECT_GE(Negatives() - before, 95u);
  {
    std::lock_guard lock(mutex);
    goes_on = true;
    changed.notify_all();
  }
  ASSERT_OK(db_->WaitForCompaction());
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-l0-tables"), 0u);
  before = Negatives();
  expect_all();
  EXPECT_GE(Negatives() - before, 95u);
  SyncPoints::Instance().Clear();  // it has locals of these
}

// What is merged behind the walk along the last level.
TEST_P(DbFilterTest, AMergeBetweenTwoStepsOfItsMaking) {
  options_.memtable_size = 4 << 20;
  Reopen();
  constexpr int kKeys = 45000;  // more than a step's
  for (int i = 0; i < kKeys; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "1"));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  std::mutex mutex;
  std::condition_variable changed;
  int steps = 0;
  bool goes_on = false;
  SyncPoints::Instance().SetCallback("DBImpl::AddLastLevel", [&](void*) {
    std::lock_guard lock(mutex);
    ++steps;
    changed.notify_all();
  });
  SyncPoints::Instance().SetCallback("DBImpl::CompactUntilStopped:Next", [&](void*) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return steps == 0 || goes_on; });
  });
  db_.reset();
  SyncPoints::Instance().Enable();
  Reopen();
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return steps > 0; }));
  }
  EXPECT_EQ(FilterBytes(), 0u);
  EXPECT_OK(db_->Put({}, "", "before all others"));
  // Where the walk stands: it goes on behind that version.
  constexpr int kStep = 1 << 14;
  for (int i = kStep - 4; i < kStep + 4; ++i) EXPECT_OK(db_->Put({}, NumberedKey(i), "1"));
  EXPECT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-l0-tables"), 0u);
  EXPECT_EQ(FilterBytes(), 0u);
  {
    std::lock_guard lock(mutex);
    goes_on = true;
    changed.notify_all();
  }
  AwaitFilter();
  EXPECT_EQ(GetOrText(db_.get(), ""), "before all others");
  for (int i = 0; i < kKeys; i += 7) ASSERT_EQ(GetOrText(db_.get(), NumberedKey(i)), "1") << i;
  for (int i = kStep - 4; i < kStep + 4; ++i) EXPECT_EQ(GetOrText(db_.get(), NumberedKey(i)), "1") << i;
  ExpectMissing(kKeys, kKeys + 100);
  SyncPoints::Instance().Clear();  // it has locals of these
}

// Keys that come and go do not fill it for ever.
TEST_P(DbFilterTest, IsMadeAnewWhenItsKeysAreGone) {
  options_.memtable_size = 1 << 20;
  Reopen();
  AwaitFilter();
  constexpr int kLiving = 1000;
  int next = 0;
  uint64_t answered = 0;
  for (int round = 0; answered < 900 && round < 300; ++round) {
    for (int i = 0; i < 2000; ++i, ++next) {
      ASSERT_OK(db_->Put({}, NumberedKey(next), "1"));
      if (next >= kLiving) {
        ASSERT_OK(db_->Delete({}, NumberedKey(next - kLiving)));
      }
    }
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    const uint64_t before = Negatives();
    ExpectMissing(0, 1000);
    answered = Negatives() - before;
  }
  EXPECT_GE(answered, 900u);
  for (int i = next - kLiving; i < next; ++i) ASSERT_EQ(GetOrText(db_.get(), NumberedKey(i)), "1") << i;
}

// Grown to a second part, of twice a million keys, as the first one is for a million here, it is made anew in one when nothing is
// to be merged.
TEST_P(DbGrownFilterTest, IsMadeInOnePartWhenThereIsNothingElseToDo) {
  SyncPoints::Instance().SetCallback("DBImpl::BeginFilter:Room", [](void* room) { *static_cast<uint64_t*>(room) = 1 << 20; });
  SyncPoints::Instance().Enable();
  options_.memtable_size = 16 << 20;
  options_.max_region_size = 1 << 30;
  options_.segment_size = 4 << 20;
  db_.reset();
  ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
  Reopen();
  constexpr int kKeys = 1150000;
  for (int i = 0; i < kKeys;) {
    WriteBatch batch;
    for (int end = std::min(i + 1000, kKeys); i < end; ++i) batch.Put(NumberedKey(i), "1");
    ASSERT_OK(db_->Write({}, batch));
  }
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  // Two parts have 3.9 MB, one for a million more than a fourth more than these has 3.1.
  const auto in_one = [this] { return FilterBytes() > 2800000 && FilterBytes() < 3400000; };
  for (int i = 0; !in_one() && i < 6000; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  SyncPoints::Instance().Clear();
  EXPECT_TRUE(in_one()) << FilterBytes();
  for (int i = 0; i < kKeys; i += 37) ASSERT_EQ(GetOrText(db_.get(), NumberedKey(i)), "1") << i;
}

TEST_P(DbFilterTest, WithoutOneGetsSearch) {
  options_.filter_bits_per_key = 0;
  Reopen();
  ASSERT_OK(db_->Put({}, NumberedKey(1), "1"));
  AtEveryStage([&] {
    EXPECT_EQ(GetOrText(db_.get(), NumberedKey(1)), "1");
    ExpectMissing(2, 10);
    EXPECT_EQ(FilterBytes(), 0u);
    EXPECT_EQ(Negatives(), 0u);
  });
  options_.filter_bits_per_key = 65;
  db_.reset();
  EXPECT_CODE(DB::Open(options_, directory_.File("db"), &db_), kInvalidArgument);
}

}  // namespace
}  // namespace braiddb::test
