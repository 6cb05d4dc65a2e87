// Iterators have few cursors over many tables of L0, where keys can be told apart by their first bytes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/perf_context.h"
#include "tests/model/reference_iterator.h"
#include "tests/support/db_fixture.h"
#include "tests/support/keep_lists.h"
#include "tests/support/merge_operators.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

// A place where whoever comes to it waits until it is let go on.
class Hold {
 public:
  void Stop() {
    std::unique_lock lock(mutex_);
    came_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return goes_on_; });
  }
  void ExpectOneThere() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [this] { return came_; }));
  }
  void LetGoOn() {
    std::lock_guard lock(mutex_);
    goes_on_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool came_ = false, goes_on_ = false;
};

class DbTableOrdersTest : public DbTest {
 protected:
  void SetUp() override {
    options_.disable_auto_compaction = true;
    SyncPoints::Instance().SetCallback("DBImpl::MergeTableOrders:All", [this](void* all) {
      pauses_ += *static_cast<bool*>(all);
      *static_cast<bool*>(all) &= merges_all_;
    });
    SyncPoints::Instance().Enable();
    Reopen();
  }
  void TearDown() override {
    SyncPoints::Instance().Clear();
    SetPerfLevel(PerfLevel::kDisable);
  }

  // Tables of new keys and of versions of older ones.
  void FlushTables(int count, const std::string& begin = "") {
    for (int i = 0; i < count; ++i) {
      for (int k = 0; k < 40; ++k) {
        const std::string key = begin + std::to_string(random_.Uniform(100'000'000));  // most of eight digits
        content_[key] = PatternedValue(random_.Next(), 20);
        ASSERT_OK(db_->Put({}, key, content_[key]));
        if (k % 4 == 0) {
          const auto again = content_.lower_bound(std::to_string(random_.Uniform(100'000'000)));
          if (again == content_.end()) continue;
          again->second = PatternedValue(random_.Next(), 10);
          ASSERT_OK(db_->Put({}, again->first, again->second));
        }
      }
      ASSERT_OK(db_->Flush());
    }
  }
  // Of a new iterator, over tables and the last level.
  uint64_t Cursors() {
    SetPerfLevel(PerfLevel::kEnableCount);
    GetPerfContext()->Reset();
    const auto iterator = db_->NewIterator({});
    iterator->Seek("5");
    const uint64_t sought = GetPerfContext()->seek_child_seek_count;
    SetPerfLevel(PerfLevel::kDisable);
    return sought;
  }
  // Orders are merged in the background.
  void ExpectCursors(uint64_t expected) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (Cursors() != expected && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_EQ(Cursors(), expected) << IntProperty(db_.get(), "braiddb.num-l0-tables") << " tables";
  }
  // More flushes may be needed: a pause may have come before the last ones.
  void ExpectOneOrder() {
    for (int i = 0; i < 30 && Cursors() != 1u + 1u; ++i) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200 + 200 * i);
      while (Cursors() != 1u + 1u && std::chrono::steady_clock::now() < until) std::this_thread::yield();
      if (Cursors() != 1u + 1u) FlushTables(1);
    }
    EXPECT_EQ(Cursors(), 1u + 1u) << IntProperty(db_.get(), "braiddb.num-l0-tables") << " tables";
  }
  void WaitForAPause() {
    const uint64_t before = pauses_;
    FlushTables(1);
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (pauses_ == before && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_GT(pauses_, before);
  }
  bool MergesByOrder() const { return options_.l1 == L1Kind::kBraidedSkipList && options_.regions == 1; }
  void ExpectContent() {
    EXPECT_EQ(ScanForward(db_.get()), (Pairs(content_.begin(), content_.end())));
    EXPECT_EQ(ScanBackward(db_.get()), (Pairs(content_.rbegin(), content_.rend())));
  }

  void ExpectFewerCursors(uint64_t than) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (Cursors() >= than && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_LT(Cursors(), than);
  }

  void CountMergesByOrder() {
    SyncPoints::Instance().SetCallback("NewChunkScanner:ByOrder", [this](void*) { ++merges_by_order_; });
    SyncPoints::Instance().Enable();
  }

  Random random_{11};
  std::map<std::string, std::string> content_;
  std::atomic<uint64_t> merges_by_order_{0};
  std::atomic<bool> merges_all_{false};  // when writers pause
  std::atomic<uint64_t> pauses_{0};
};

INSTANTIATE_TEST_SUITE_P(Regions, DbTableOrdersTest, testing::Values(1u, 2u));

TEST_P(DbTableOrdersTest, FoursSixteensAndTwoOfTheseAreOne) {
  uint64_t tables = 0;
  for (const auto& [count, cursors] : {std::pair(1, 1), {2, 3}, {1, 1}, {11, 6}, {1, 1}, {21, 3}, {27, 2}}) {
    FlushTables(count);
    tables += static_cast<uint64_t>(count);
    EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-l0-tables"), tables);
    ExpectCursors(static_cast<uint64_t>(cursors) + 1);
    ExpectContent();
  }
  KeepListsOfRestoredTables();
  Reopen();
  EXPECT_EQ(Cursors(), tables + 1);
  ExpectContent();
  FlushTables(4);
  ExpectCursors(tables + 2);
  // Restored tables get orders, which are merged as those of flushes.
  SyncPoints::Instance().Clear();
  Reopen();
  ExpectFewerCursors(12);
  ExpectContent();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(Cursors(), 1u);
  ExpectContent();
}

// The walks of restored tables take longer than the flush thread's pause, behind which it sleeps.
TEST_P(DbTableOrdersTest, AreMergedAlsoWhereTheWalksTakeLong) {
  FlushTables(40);
  ASSERT_OK(db_->Close());
  std::atomic<bool> sleeps{false};
  SyncPoints::Instance().SetCallback("DBImpl::WaitIdle:Round", [&](void*) { sleeps = true; });
  SyncPoints::Instance().SetCallback("DBImpl::IndexRestoredTables",
                                     [&](void*) { EXPECT_TRUE(WaitUntil([&] { return sleeps.load(); })); });
  Reopen();
  ExpectFewerCursors(12);
  SyncPoints::Instance().Clear();  // these have a local
  ExpectContent();
}

// For iterators that do not come nothing is merged while writers take all CPUs; where one is idle, or when writers pause, it is
// for those that may.
TEST_P(DbTableOrdersTest, AreMergedByFlushesWhereIteratorsCome) {
  std::atomic<int> by_flushes{0};
  std::atomic<bool> is_idle{false};
  SyncPoints::Instance().SetCallback("DBImpl::FlushUntilStopped:Flushed",
                                     [&](void* has_idle_cpu) { *static_cast<bool*>(has_idle_cpu) = is_idle; });
  SyncPoints::Instance().SetCallback("DBImpl::MergeTableOrders:All", [&](void* all) {
    by_flushes += !*static_cast<bool*>(all);
    *static_cast<bool*>(all) = false;
  });
  FlushTables(20);           // the open may have had an iterator of its own
  const auto settle = [&] {  // the last flush's has begun
    ASSERT_OK(db_->Flush());
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  };
  settle();
  const int before = by_flushes;
  FlushTables(3);
  settle();
  EXPECT_EQ(by_flushes, before);
  db_->NewIterator({});
  FlushTables(30);
  settle();
  EXPECT_GE(by_flushes, before + 10);
  EXPECT_LE(by_flushes, before + 20);
  const int behind = by_flushes;
  is_idle = true;
  FlushTables(10);
  settle();
  EXPECT_GE(by_flushes, behind + 5);
  ExpectContent();
  SyncPoints::Instance().Clear();  // it has a local
}

// Where L0 has a part of the entries that is not small, it and the last level are one cursor, unless checksums are verified.
TEST_P(DbTableOrdersTest, AboveTheLastLevel) {
  for (const auto& [below, above] : {std::pair(40, 3), {30, 12}, {4, 40}}) {
    SCOPED_TRACE(std::to_string(below) + " tables' entries below " + std::to_string(above) + " tables");
    FlushTables(below);
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    const auto before = content_;
    ReadOptions at_snapshot;
    at_snapshot.snapshot = db_->GetSnapshot();
    FlushTables(above / 2);
    for (auto at = content_.begin(); at != content_.end();) {  // of both levels
      if (random_.OneIn(5)) {
        ASSERT_OK(db_->Delete({}, at->first));
        at = content_.erase(at);
      } else {
        ++at;
      }
    }
    FlushTables(above - above / 2);
    for (const bool verifies : {false, true}) {
      ReadOptions now;
      now.verify_checksums = at_snapshot.verify_checksums = verifies;
      EXPECT_TRUE(HoldsExactly(db_.get(), content_, now));
      EXPECT_TRUE(HoldsExactly(db_.get(), before, at_snapshot));
      std::vector<std::string> keys;
      for (const auto& [key, value] : before) keys.push_back(key);
      ReferenceIterator expected(Pairs(content_.begin(), content_.end()), BytewiseComparator());
      const auto iterator = db_->NewIterator(now);
      EXPECT_TRUE(WalkTogether(&expected, iterator.get(), keys, 400, &random_));
      ReferenceIterator expected_before(Pairs(before.begin(), before.end()), BytewiseComparator());
      const auto iterator_before = db_->NewIterator(at_snapshot);
      EXPECT_TRUE(WalkTogether(&expected_before, iterator_before.get(), keys, 400, &random_));
      if (!verifies) continue;
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));  // below them
      EXPECT_TRUE(WalkTogether(&expected, iterator.get(), keys, 400, &random_));
      EXPECT_TRUE(WalkTogether(&expected_before, iterator_before.get(), keys, 400, &random_));
    }
    db_->ReleaseSnapshot(at_snapshot.snapshot);
  }
}

// There is nothing of which the index would have to know.
TEST_P(DbTableOrdersTest, TheFirstMergeGoesByThem) {
  CountMergesByOrder();
  FlushTables(3);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(merges_by_order_, MergesByOrder() ? 1u : 0u);
  ExpectContent();
  FlushTables(3);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(merges_by_order_, MergesByOrder() ? 2u : 0u);
  ExpectContent();
}

// A merge leaves nothing of what iterators have one cursor for.
TEST_P(DbTableOrdersTest, OfAMergeStayWithIt) {
  Hold hold;
  FlushTables(6);
  ExpectCursors(3 + 1);
  SyncPoints::Instance().SetCallback("DBImpl::MergeTables:Announced", [&](void*) { hold.Stop(); });
  SyncPoints::Instance().Enable();
  std::thread merge([this] { EXPECT_OK(db_->CompactRange({}, nullptr, nullptr)); });
  hold.ExpectOneThere();
  FlushTables(2);  // with those of the merge it would be four
  FlushTables(2);
  ExpectCursors(4 + 1);
  ExpectContent();
  hold.LetGoOn();
  merge.join();
  ExpectCursors(1 + 1);
  ExpectContent();
}

// … but become one among themselves, unless the merge makes one of all of them.
TEST_P(DbTableOrdersTest, OfAMergeBecomeOneBesideIt) {
  if (MergesByOrder()) GTEST_SKIP() << "the merge makes one of all of them";
  Hold hold;
  SyncPoints::Instance().SetCallback("DBImpl::FlushUntilStopped:Flushed",
                                     [&](void* has_idle_cpu) { *static_cast<bool*>(has_idle_cpu) = false; });
  FlushTables(20);  // the open may have had an iterator of its own; none comes until the merge
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  SyncPoints::Instance().SetCallback("DBImpl::MergeTables:Announced", [&](void*) { hold.Stop(); });
  FlushTables(5);
  std::thread merge([this] { EXPECT_OK(db_->CompactRange({}, nullptr, nullptr)); });
  hold.ExpectOneThere();
  FlushTables(3);
  ExpectCursors(1 + 1 + 3 + 1);  // four of the merge, one of it, the new ones, the last level
  ExpectContent();
  FlushTables(1);
  ExpectCursors(1 + 1 + 1 + 1);
  ExpectContent();
  hold.LetGoOn();
  merge.join();
  ExpectCursors(1 + 1);
  ExpectContent();
  SyncPoints::Instance().Clear();
}

// The flush thread has begun to merge some of them when the merge begins: that is in vain then.
TEST_P(DbTableOrdersTest, OfAMergeBecomeOneAndNoOther) {
  Hold hold;
  SyncPoints::Instance().SetCallback("DBImpl::MergeTableOrders:Chosen", [&](void*) { hold.Stop(); });
  SyncPoints::Instance().SetCallback("DBImpl::MergeTables:Announced", [&](void*) {
    hold.LetGoOn();
    // What was chosen is merged, and is put into the view or not.
    const auto until = std::chrono::steady_clock::now() + (MergesByOrder() ? std::chrono::milliseconds(300) : kPatience);
    while (Cursors() != 1 + 1 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_EQ(Cursors(), MergesByOrder() ? 4u + 1u : 1u + 1u);
  });
  std::atomic<uint64_t> cursors{0};
  SyncPoints::Instance().SetCallback("NewChunkScanner:ByOrder", [&](void*) { cursors = Cursors(); });
  FlushTables(4);
  hold.ExpectOneThere();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(cursors, MergesByOrder() ? 1u + 1u : 0u);
  ExpectContent();
  SyncPoints::Instance().Clear();
}

// Keys of eight bytes, which prefixes say, in many tables, and here and there one that they do not say; the newest table deletes
// them. A merge takes all versions of a key together, which the order tells.
TEST_P(DbTableOrdersTest, DeletedKeysStayDeletedWhereSomeKeysAreLonger) {
  constexpr int kTables = 30, kEach = 20'000, kLonger = 273;
  options_.memtable_size = 64 << 20;
  options_.memtable_max_entries = 1 << 17;
  Reopen();
  for (int table = 0; table < kTables; ++table) {
    for (int i = 0; i < kEach; ++i) {
      const std::string key = std::to_string(10'000'000 + i);
      if (table == 0 && i % kLonger == 0) {
        content_[key + "x"] = "longer";
        ASSERT_OK(db_->Put({}, key + "x", "longer"));
      }
      ASSERT_OK(table + 1 < kTables ? db_->Put({}, key, "v") : db_->Delete({}, key));
    }
    ASSERT_OK(db_->Flush());
  }
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ExpectContent();
}

// What a merge drops stays where it is until the flush thread has looked at it.
TEST_P(DbTableOrdersTest, EntriesThatAreLookedAtAreNotReused) {
  Hold hold;
  SyncPoints::Instance().SetCallback("DBImpl::MergeTableOrders:Chosen", [&](void*) { hold.Stop(); });
  SyncPoints::Instance().Enable();
  options_.memtable_size = 4 << 20;
  options_.memtable_max_entries = 1 << 16;
  Reopen();
  const std::string large(4000, 'v');
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 200; ++k) {
      content_[std::to_string(k)] = large;
      ASSERT_OK(db_->Put({}, std::to_string(k), large));
    }
    ASSERT_OK(db_->Flush());
  }
  hold.ExpectOneThere();
  // By none of the calls that reclaim space.
  for (int i = 0; i < 3; ++i) ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(db_->GetStatistics().segments_recycled, 0u);
  hold.LetGoOn();
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (db_->GetStatistics().segments_recycled == 0 && std::chrono::steady_clock::now() < until) {
    ASSERT_OK(db_->Put({}, "0", large));
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  }
  EXPECT_GT(db_->GetStatistics().segments_recycled, 0u);
  ExpectContent();
}

// … in one for all of them while it runs, by which the merge goes where an index has every node of the last level.
TEST_P(DbTableOrdersTest, OfAMergeBecomeOne) {
  if (options_.l1 != L1Kind::kBraidedSkipList) GTEST_SKIP() << "only merges into a skiplist have use for that";
  FlushTables(2);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  CountMergesByOrder();
  FlushTables(6);
  ExpectCursors(3 + 1);
  std::atomic<uint64_t> cursors{0};
  SyncPoints::Instance().SetCallback("MergeJournal::Apply:Recorded", [&](void*) {
    if (cursors == 0) cursors = Cursors();
  });
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(cursors, options_.regions == 1 ? 1u + 1u : 3u + 1u);
  EXPECT_EQ(merges_by_order_, options_.regions == 1 ? 1u : 0u);
  ExpectContent();
  // Versions of the keys that are in the last level, tombstones, and a snapshot between.
  const std::map<std::string, std::string> before = content_;
  const Snapshot* const snapshot = db_->GetSnapshot();
  for (int i = 0; i < 3; ++i) {
    for (auto each = content_.begin(); each != content_.end();) {
      if (random_.Uniform(4) == 0) {
        ASSERT_OK(db_->Delete({}, each->first));
        each = content_.erase(each);
        continue;
      }
      each->second = PatternedValue(random_.Next(), 10);
      ASSERT_OK(db_->Put({}, each->first, each->second));
      ++each;
    }
    ASSERT_OK(db_->Flush());
  }
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(merges_by_order_, options_.regions == 1 ? 2u : 0u);
  ExpectContent();
  ReadOptions then;
  then.snapshot = snapshot;
  for (const auto& [key, value] : before) {
    std::string found;
    ASSERT_OK(db_->Get(then, key, &found));
    EXPECT_EQ(found, value);
  }
  db_->ReleaseSnapshot(snapshot);
  Reopen();
  ExpectContent();
}

// Tables of before an open are lists until they have orders, and merged by the lists.
TEST_P(DbTableOrdersTest, TablesOfBeforeAnOpenAreMergedByTheirLists) {
  FlushTables(2);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  FlushTables(2);
  KeepListsOfRestoredTables();
  Reopen();
  CountMergesByOrder();
  FlushTables(2);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(merges_by_order_, 0u);
  ExpectContent();
}

// Where tables' lists have come to one entry, one cursor goes on for all of them. From its own table's head it does not come to
// what the others have behind an entry that the merge dropped.
TEST_P(DbTableOrdersTest, OneListThatStandsForOthersIsNotSoughtAlone) {
  constexpr int kGroups = 100;
  const auto first = [](int i) { return NumberedKey(static_cast<uint64_t>(i)) + "a"; };
  const auto second = [](int i) { return NumberedKey(static_cast<uint64_t>(i)) + "b"; };
  std::vector<const Snapshot*> snapshots;
  const auto put = [&](const std::string& key, const std::string& value) {
    content_[key] = value;
    ASSERT_OK(db_->Put({}, key, value));
  };
  FlushTables(1, "zz");
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  for (int i = 0; i < kGroups; ++i) put(second(i), "of the older table");
  ASSERT_OK(db_->Flush());
  // The newer table has two versions, of which a merge drops one.
  for (int i = 0; i < kGroups; ++i) put(first(i), "dropped");
  snapshots.push_back(db_->GetSnapshot());
  for (int i = 0; i < kGroups; ++i) put(first(i), "of the newer table");
  ASSERT_OK(db_->Flush());
  db_->ReleaseSnapshot(snapshots.back());
  snapshots.clear();
  KeepListsOfRestoredTables();
  Reopen();
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (IntProperty(db_.get(), "braiddb.l1-dram-bytes") == 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  const auto iterator = db_->NewIterator({});
  const Pairs expected(content_.begin(), content_.end());
  // More versions than an iterator steps over.
  for (int version = 0; version < 12; ++version) {
    for (int i = 0; i < kGroups; ++i) put(second(i), std::to_string(version));
    snapshots.push_back(db_->GetSnapshot());
  }
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  Pairs seen;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) seen.emplace_back(iterator->key(), iterator->value());
  ASSERT_OK(iterator->status());
  EXPECT_EQ(seen.size(), expected.size());
  EXPECT_TRUE(seen == expected);
  ExpectContent();
  for (const Snapshot* const snapshot : snapshots) db_->ReleaseSnapshot(snapshot);
}

// Where no merge is to come, a pause of the writers is enough.
TEST_P(DbTableOrdersTest, AllAreOneWhenWritersPause) {
  FlushTables(2);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  merges_all_ = true;
  FlushTables(11);
  ExpectOneOrder();
  ExpectContent();
  const std::map<std::string, std::string> before = content_;
  ReadOptions then;
  then.snapshot = db_->GetSnapshot();
  FlushTables(9);
  ExpectOneOrder();
  ExpectContent();
  EXPECT_EQ(ScanForward(db_.get(), then), (Pairs(before.begin(), before.end())));
  db_->ReleaseSnapshot(then.snapshot);
  CountMergesByOrder();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(merges_by_order_, MergesByOrder() ? 1u : 0u);
  EXPECT_EQ(Cursors(), 1u);
  ExpectContent();
}

TEST_P(DbTableOrdersTest, AFewNewOnesAreLeftAloneAtAPause) {
  merges_all_ = true;
  FlushTables(20);
  ExpectOneOrder();
  WaitForAPause();
  EXPECT_EQ(Cursors(), 2u + 1u);
  ExpectContent();
}

// A merge takes whole orders.
TEST_P(DbTableOrdersTest, OfMoreThanAMergeTakesNoneIsMade) {
  FlushTables(2);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  merges_all_ = true;
  FlushTables(60);
  ExpectOneOrder();
  FlushTables(45);
  WaitForAPause();
  EXPECT_GE(Cursors(), 2u + 1u);
  CountMergesByOrder();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(merges_by_order_, MergesByOrder() ? 2u : 0u);
  ExpectContent();
}

// What a pause has begun is given up then, and done later.
TEST_P(DbTableOrdersTest, AFlushDoesNotWaitForOrders) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  const auto wait_for = [&](const auto& what) {
    while (!what() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(what());
  };
  std::atomic<bool> chosen{false}, goes_on{false};
  FlushTables(2);
  SyncPoints::Instance().SetCallback("DBImpl::MergeTableOrders:Chosen", [&](void*) {
    chosen = true;
    while (!goes_on) std::this_thread::yield();
  });
  merges_all_ = true;
  content_["a"] = content_["b"] = "1";
  std::thread writer([&] {
    EXPECT_OK(db_->Put({}, "a", "1"));
    EXPECT_OK(db_->Flush());
    wait_for([&] { return chosen.load(); });
    EXPECT_OK(db_->Put({}, "b", "1"));
    EXPECT_OK(db_->Flush());
  });
  wait_for([&] { return chosen && IntProperty(db_.get(), "braiddb.num-immutable-mem-table") > 0; });
  goes_on = true;
  writer.join();
  ExpectCursors(1 + 1);
  ExpectContent();
  SyncPoints::Instance().Clear();
}

// Of which one is the newest table, and nothing else: to merge it with itself would have no end.
TEST_P(DbTableOrdersTest, OfATableWithoutEntriesNoneIsMade) {
  merges_all_ = true;
  FlushTables(4);
  ExpectOneOrder();
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(db_->CreateColumnFamily({}, "gone", &family));
  ASSERT_OK(db_->DropColumnFamily(family.get()));
  const uint64_t tables = IntProperty(db_.get(), "braiddb.num-l0-tables");
  std::atomic<uint64_t> chosen{0};
  SyncPoints::Instance().SetCallback("DBImpl::MergeTableOrders:Chosen", [&](void*) { ++chosen; });
  const uint64_t before = pauses_;
  ASSERT_FALSE(db_->Put({}, family.get(), "a", "1").ok());  // draws a number
  ASSERT_OK(db_->Flush());
  ASSERT_EQ(IntProperty(db_.get(), "braiddb.num-l0-tables"), tables + 1);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (pauses_ == before && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(chosen, 2u);
  SyncPoints::Instance().Clear();
  family.reset();
  ExpectContent();
}

// As keys that begin differently do.
TEST_P(DbTableOrdersTest, KeysThatBeginAlikeBecomeOneAtAPause) {
  FlushTables(6, "the same ");
  ExpectCursors(3 + 1);
  ExpectContent();
  merges_all_ = true;
  WaitForAPause();
  ExpectOneOrder();
  ExpectContent();
}

// Keys of eight bytes, which prefixes say, in many versions, of several writers, some of which snapshots see.
TEST_P(DbTableOrdersTest, VersionsStandInOrder) {
  merges_all_ = true;
  constexpr size_t kWriters = 3;
  options_.memtable_max_entries = 1024;
  Reopen();
  std::vector<std::thread> writers;
  for (size_t writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([this, writer] {
      Random random(writer);
      for (int i = 0; i < 4000; ++i) {
        const std::string key = "key0000" + std::to_string(random.Uniform(10));
        if (random.Uniform(10) == 0) {
          EXPECT_OK(db_->Delete({}, key));
        } else {
          EXPECT_OK(db_->Put({}, key, std::to_string(random.Next())));
        }
      }
    });
  }
  std::vector<const Snapshot*> snapshots;
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    snapshots.push_back(db_->GetSnapshot());
  }
  for (auto& writer : writers) writer.join();
  ASSERT_OK(db_->Flush());
  ExpectOneOrder();
  for (const Snapshot* const snapshot : snapshots) {
    ReadOptions then;
    then.snapshot = snapshot;
    Pairs expected;
    for (int k = 0; k < 10; ++k) {
      const std::string key = "key0000" + std::to_string(k);
      std::string value;
      const Status status = db_->Get(then, key, &value);
      const auto iterator = db_->NewIterator(then);
      iterator->Seek(key);
      EXPECT_EQ(iterator->Valid() && iterator->key() == key, status.ok());
      if (status.ok()) expected.emplace_back(key, value);
    }
    Pairs forward = ScanForward(db_.get(), then);
    std::erase_if(forward, [](const auto& pair) { return pair.first.compare(0, 7, "key0000") != 0; });
    EXPECT_EQ(forward, expected);
    Pairs backward = ScanBackward(db_.get(), then);
    std::erase_if(backward, [](const auto& pair) { return pair.first.compare(0, 7, "key0000") != 0; });
    EXPECT_EQ(backward, (Pairs(expected.rbegin(), expected.rend())));
    db_->ReleaseSnapshot(snapshot);
  }
}

// 160 keys of four tables have one prefix.
TEST_P(DbTableOrdersTest, KeysThatBeginAlikeAreMergedAsOthers) {
  FlushTables(1, "all the same ");
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  CountMergesByOrder();
  FlushTables(9, "all the same ");
  ExpectCursors(3 + 1);
  ExpectContent();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(merges_by_order_, MergesByOrder() ? 1u : 0u);
  ExpectContent();
}

TEST_P(DbTableOrdersTest, TablesThatRememberOperandsStayApart) {
  options_.merge_operator = std::make_shared<AppendOperator>();
  Reopen();
  FlushTables(9);
  EXPECT_EQ(Cursors(), 9u + 1u);
  ExpectContent();
}

}  // namespace
}  // namespace braiddb::test
