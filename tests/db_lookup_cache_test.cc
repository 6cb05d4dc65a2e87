// The lookup cache in a database: what gets see while writes and fills are half done, and when it is not used.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/test_hooks.h"
#include "pmem/append_probe_for_test.h"
#include "pmem/region_set.h"
#include "tests/support/db_fixture.h"
#include "tests/support/merge_operators.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

class DbLookupCacheTest : public DbTest {
 protected:
  void SetUp() override {
    options_.lookup_cache_size = 1 << 20;
    Reopen();
  }
  void TearDown() override {
    SyncPoints::Instance().Clear();
    ForceStreamingForTest({});
  }

  uint64_t Hits() const { return db_->GetStatistics().lookup_cache_hits; }
  // Runs `action` once, in the first thread that passes the point.
  static void AtFirst(const char* point, const std::function<void()>& action) {
    auto first = std::make_shared<std::atomic<bool>>(true);
    SyncPoints::Instance().SetCallback(point, [first, action](void*) {
      if (first->exchange(false)) action();
    });
    SyncPoints::Instance().Enable();
  }
};

INSTANTIATE_TEST_SUITE_P(Regions, DbLookupCacheTest, testing::Values(1, 2));

// Sizes that are no power of two times a bucket: a cache that cannot grow any more stays crowded, and is left alone.
TEST_P(DbLookupCacheTest, ACacheOfAnySizeEndsToGrow) {
  std::atomic<int> resizes{0};
  SyncPoints::Instance().SetCallback("LookupCache::MoveBuckets:Counted", [&](void*) { ++resizes; });
  SyncPoints::Instance().Enable();
  for (const uint64_t bytes : {100'000u, 333'333u, 1'000'001u}) {
    SCOPED_TRACE(bytes);
    options_.lookup_cache_size = bytes;
    Reopen();
    resizes = 0;
    for (int i = 0; i < 100'000 / kSlowdown; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "value"));
    ASSERT_OK(db_->WaitForCompaction());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_LE(IntProperty(db_.get(), "braiddb.lookup-cache-bytes"), bytes);
    EXPECT_LE(resizes, 6);
  }
}

TEST_P(DbLookupCacheTest, AGetAnswersFromItAtEveryStage) {
  EXPECT_GT(IntProperty(db_.get(), "braiddb.lookup-cache-bytes"), 0u);
  EXPECT_LE(IntProperty(db_.get(), "braiddb.lookup-cache-bytes"), 32u << 10);
  for (int i = 0; i < 300; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(i, 30)));
  AtEveryStage([&] {
    for (int round = 0; round < 2; ++round) {
      const uint64_t before = Hits();
      for (int i = 0; i < 300; ++i) ASSERT_EQ(GetOrText(db_.get(), NumberedKey(i)), PatternedValue(i, 30));
      const bool empty = round == 0 && before == 0 && Hits() == 0;  // after an open the first gets fill it
      if (!empty) {
        EXPECT_GT(Hits() - before, 290u);
      }
    }
  });
}

TEST_P(DbLookupCacheTest, MultiGetFillsAndUsesIt) {
  for (int i = 0; i < 100; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(i, 30)));
  Reopen();
  std::vector<std::string> names;  // of several groups
  for (int i = 0; i < 100; ++i) names.push_back(NumberedKey(i));
  std::vector<std::string> values;
  for (const uint64_t hits : {0, 95}) {
    const uint64_t before = Hits();
    for (const Status& status : db_->MultiGet({}, {names.begin(), names.end()}, &values)) ASSERT_OK(status);
    EXPECT_GE(Hits() - before, hits);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(values[i], PatternedValue(i, 30));
  }
}

TEST_P(DbLookupCacheTest, ASnapshotDoesNotSeeWhatIsTooNew) {
  ASSERT_OK(db_->Put({}, "key", "old"));
  ReadOptions at_snapshot;
  at_snapshot.snapshot = db_->GetSnapshot();
  EXPECT_EQ(GetOrText(db_.get(), "key", at_snapshot), "old");
  EXPECT_EQ(Hits(), 1u) << "the newest version is one that the snapshot sees";
  ASSERT_OK(db_->Put({}, "key", "new"));
  for (const auto& stage : Stages()) {
    if (stage.name == std::string("reopened")) break;
    SCOPED_TRACE(stage.name);
    ASSERT_OK(stage.enter(this));
    EXPECT_EQ(GetOrText(db_.get(), "key"), "new");
    EXPECT_EQ(GetOrText(db_.get(), "key", at_snapshot), "old");
    EXPECT_EQ(GetOrText(db_.get(), "key"), "new") << "what the snapshot found is not the newest version";
  }
  db_->ReleaseSnapshot(at_snapshot.snapshot);
}

// A write is visible in the memtable, and its slot is not set yet: whoever looks now sees it, and so does who looks next.
TEST_P(DbLookupCacheTest, AHalfDoneWriteIsSeenByAllOrNone) {
  ASSERT_OK(db_->Put({}, "key", "1"));
  EXPECT_EQ(GetOrText(db_.get(), "key"), "1");
  std::vector<std::string> seen;
  AtFirst("LookupCache::EndWrite:Published", [&] {
    std::thread reader([&] {
      for (int i = 0; i < 3; ++i) seen.push_back(GetOrText(db_.get(), "key"));
    });
    reader.join();
  });
  ASSERT_OK(db_->Put({}, "key", "2"));
  EXPECT_EQ(seen, (std::vector<std::string>{"2", "2", "2"}));
  EXPECT_EQ(GetOrText(db_.get(), "key"), "2");

  seen.clear();
  AtFirst("LookupCache::EndWrite:Published", [&] {
    std::thread reader([&] { seen.push_back(GetOrText(db_.get(), "key")); });
    reader.join();
  });
  ASSERT_OK(db_->Delete({}, "key"));
  EXPECT_EQ(seen, std::vector<std::string>{"<not found>"});
  EXPECT_EQ(GetOrText(db_.get(), "key"), "<not found>");
}

// A write has taken its places, or, where entries are streamed, has not yet, and its entry is durable: nobody sees it yet. Writes
// to other keys do not wait for it.
TEST_P(DbLookupCacheTest, AWriteThatIsOnlyDurableIsNotSeen) {
  options_.disable_auto_compaction = true;  // a get that meets what a merge has dropped waits for the writes before it
  for (const bool streams : {false, true}) {
    SCOPED_TRACE(streams);
    ForceStreamingForTest(streams);
    Reopen();
    const std::string run = streams ? " streamed" : " flushed";
    ASSERT_OK(db_->Put({}, "key" + run, "1"));
    std::vector<std::string> seen;
    const auto look = [&](const std::string& key, const std::string& other) {
      AtFirst("DBImpl::AppendAndPublish:Durable", [&, key, other] {
        std::thread reader([&] {
          for (int i = 0; i < 2; ++i) seen.push_back(GetOrText(db_.get(), key));
          ASSERT_OK(db_->Put({}, other, "1"));
          seen.push_back(GetOrText(db_.get(), other));
        });
        reader.join();
      });
    };
    look("key" + run, "a" + run);
    ASSERT_OK(db_->Put({}, "key" + run, "2"));
    look("new key" + run, "b" + run);
    ASSERT_OK(db_->Put({}, "new key" + run, "1"));
    look("key" + run, "c" + run);
    ASSERT_OK(db_->Delete({}, "key" + run));
    EXPECT_EQ(seen, (std::vector<std::string>{"1", "1", "1", "<not found>", "<not found>", "1", "2", "2", "1"}));
    EXPECT_EQ(GetOrText(db_.get(), "key" + run), "<not found>");
    EXPECT_EQ(GetOrText(db_.get(), "new key" + run), "1");
  }
}

// At the fence of a write its places are taken, and nothing of it is to be seen. [CC-6]
TEST_P(DbLookupCacheTest, NothingIsSeenBeforeItsFence) {
  class AtFence : public PersistObserver {
   public:
    void OnFlush(const void*, size_t) override {}
    void OnDrain() override {
      if (const auto look = std::exchange(look_, nullptr)) std::thread(look).join();
    }
    std::function<void()> look_;
  };
  options_.disable_auto_compaction = true;  // as above
  for (const MemtableKind kind : {MemtableKind::kHash, MemtableKind::kSkipList}) {
    options_.memtable = kind;
    AtFence fence;
    SetPoolsMappedHook([&](RegionSet* regions) { regions->persistence()->SetObserver(&fence); });
    Reopen();
    SetPoolsMappedHook(nullptr);
    ASSERT_OK(db_->Put({}, "key", "1"));
    std::vector<std::string> seen;
    const auto look = [&] {
      for (const char* key : {"key", "new key"}) seen.push_back(GetOrText(db_.get(), key));
    };
    fence.look_ = look;
    ASSERT_OK(db_->Put({}, "key", "2"));
    fence.look_ = look;
    ASSERT_OK(db_->Put({}, "new key", PatternedValue(1, 5000)));
    fence.look_ = look;
    ASSERT_OK(db_->Delete({}, "key"));
    EXPECT_EQ(fence.look_, nullptr);
    EXPECT_EQ(seen, (std::vector<std::string>{"1", "<not found>", "2", "<not found>", "2", PatternedValue(1, 5000)}));
    ASSERT_OK(db_->Delete({}, "new key"));
    db_.reset();  // before its observer
  }
}

// Who writes a large value holds no lock while it does: others write to the key meanwhile.
TEST_P(DbLookupCacheTest, WritesDoNotWaitForLargeValues) {
  std::thread writer;
  std::atomic<bool> written{false};
  AtFirst("DBImpl::AppendAndPublish:Durable", [&] {
    writer = std::thread([&] {
      ASSERT_OK(db_->Put({}, "key", "small"));
      written = true;
    });
    EXPECT_TRUE(WaitUntil([&] { return written.load(); }));
  });
  ASSERT_OK(db_->Put({}, "key", PatternedValue(1, 5000)));
  writer.join();
  EXPECT_EQ(GetOrText(db_.get(), "key"), "small") << "it drew the larger number";
}

// A get has found a version below, and before it remembers it the key is written, or deleted.
TEST_P(DbLookupCacheTest, WhatWasFoundBeforeAWriteIsNotRemembered) {
  for (const bool merged : {false, true}) {  // the last level alone is searched, or all
    for (const bool deletes : {false, true}) {
      for (const bool many : {false, true}) {
        ASSERT_OK(db_->Put({}, "key", "old"));
        if (merged) {
          ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
        }
        Reopen();  // nothing is cached
        AtFirst("DBImpl::FindPut:Found", [&] {
          std::thread writer([&] { ASSERT_OK(deletes ? db_->Delete({}, "key") : db_->Put({}, "key", "new")); });
          writer.join();
        });
        std::vector<std::string> values;
        if (many) {
          ASSERT_OK(db_->MultiGet({}, {"key"}, &values)[0]);
        } else {
          values.push_back(GetOrText(db_.get(), "key"));
        }
        EXPECT_EQ(values[0], "old");
        EXPECT_EQ(GetOrText(db_.get(), "key"), deletes ? "<not found>" : "new");
        SyncPoints::Instance().Clear();
      }
    }
  }
}

// The last level has an old version, and another level what came later: as a put, a deletion and an operand.
TEST_P(DbLookupCacheTest, WhatTheLastLevelHasIsNotTheAnswerWhereALevelAboveHasMore) {
  options_.merge_operator = std::make_shared<AppendOperator>();
  options_.disable_auto_compaction = true;
  for (const uint64_t cache : {uint64_t{0}, uint64_t{256}}) {
    options_.lookup_cache_size = cache;
    db_.reset();
    ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
    Reopen();
    const auto expect = [&] {
      for (int i = 0; i < 300; ++i) {
        const std::string key = NumberedKey(i);
        const std::string now = i % 4 == 0 ? "old" : i % 4 == 1 ? "new" : i % 4 == 2 ? "<not found>" : "old,more";
        ASSERT_EQ(GetOrText(db_.get(), key), now) << key;
        std::string text = "<not found>";
        std::vector<std::string> values;
        if (db_->MultiGet({}, {key}, &values)[0].ok()) text = values[0];
        ASSERT_EQ(text, now) << key;
      }
    };
    for (int i = 0; i < 300; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "old"));
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    for (int i = 0; i < 300; ++i) {
      const std::string key = NumberedKey(i);
      ASSERT_OK(i % 4 == 0   ? Status::OK()
                : i % 4 == 1 ? db_->Put({}, key, "new")
                : i % 4 == 2 ? db_->Delete({}, key)
                             : db_->Merge({}, key, ",more"));
    }
    expect();  // in the active memtable
    ASSERT_OK(db_->Flush());
    EXPECT_GT(IntProperty(db_.get(), "braiddb.num-l0-tables"), 0u);
    expect();  // in a table
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    expect();
  }
}

TEST_P(DbLookupCacheTest, TheLastUpdateOfABatchCounts) {
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Put("b", "1");
  batch.Put("a", "2");
  batch.Delete("b");
  batch.Delete("c");
  batch.Put("c", "3");
  ASSERT_OK(db_->Write({}, batch));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(GetOrText(db_.get(), "a"), "2");
    EXPECT_EQ(GetOrText(db_.get(), "b"), "<not found>");
    EXPECT_EQ(GetOrText(db_.get(), "c"), "3");
  }
}

// The second update that is published is the first of the batch. Who comes upon the other one waits for it.
TEST_P(DbLookupCacheTest, AHitInABatchWaitsForTheWholeBatch) {
  std::atomic<int> published{0};
  std::atomic<bool> returned{false};
  std::thread reader;
  SyncPoints::Instance().SetCallback("LookupCache::EndWrite:Published", [&](void*) {
    if (published.fetch_add(1) != 1) return;
    reader = std::thread([&] {
      EXPECT_EQ(GetOrText(db_.get(), "b"), "2");
      returned = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_FALSE(returned);
  });
  SyncPoints::Instance().Enable();
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Put("b", "2");
  ASSERT_OK(db_->Write({}, batch));
  reader.join();
  EXPECT_EQ(Hits(), 1u);
}

class FoldCase : public Comparator {
 public:
  const char* Name() const override { return "fold-case"; }
  int Compare(Slice a, Slice b) const override {
    const auto folded = [](Slice key) {
      std::string result(key);
      for (char& c : result) c = static_cast<char>(c | 0x20);
      return result;
    };
    return folded(a).compare(folded(b));
  }
};

// Equal keys with other bytes have other hashes.
TEST_P(DbLookupCacheTest, AComparatorOfOnesOwnTurnsItOff) {
  const FoldCase fold_case;
  options_.comparator = &fold_case;
  auto db = OpenOrFail(options_, directory_.File("folded"));
  ASSERT_NE(db, nullptr);
  EXPECT_EQ(IntProperty(db.get(), "braiddb.lookup-cache-bytes"), 0u);
  ASSERT_OK(db->Put({}, "Key", "1"));
  EXPECT_EQ(GetOrText(db.get(), "key"), "1");
  ASSERT_OK(db->Put({}, "KEY", "2"));
  EXPECT_EQ(GetOrText(db.get(), "Key"), "2");
  db.reset();
}

TEST_P(DbLookupCacheTest, WithoutOneGetsSearch) {
  options_.lookup_cache_size = 0;
  Reopen();
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.lookup-cache-bytes"), 0u);
  ASSERT_OK(db_->Put({}, "key", "1"));
  EXPECT_EQ(GetOrText(db_.get(), "key"), "1");
  EXPECT_EQ(Hits(), 0u);
}

}  // namespace
}  // namespace braiddb::test
