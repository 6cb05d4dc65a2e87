// DBWithTTL: keys expire by a clock of the test; the time is stored with the value, and nobody sees it.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/backup.h"
#include "braiddb/ttl.h"
#include "tests/support/db_test_util.h"
#include "tests/support/rule_filter.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

constexpr int64_t kStart = 1'700'000'000;

class TtlTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.disable_auto_compaction = true;
    Reopen(100);
  }
  void Reopen(int32_t ttl) {
    db_.reset();
    TtlOptions ttl_options;
    ttl_options.ttl_seconds = ttl;
    ttl_options.clock = [this] { return now_.load(); };
    ASSERT_OK(DBWithTTL::Open(options_, ttl_options, path_, &db_));
  }
  Status Compact() { return db_->CompactRange({}, nullptr, nullptr); }
  std::string Get(const std::string& key) { return GetOrText(db_.get(), key); }

  TestDirectory directory_;
  const std::string path_ = directory_.File("db");
  Options options_ = TinyOptions(1);
  std::atomic<int64_t> now_{kStart};
  std::unique_ptr<DBWithTTL> db_;
};

constexpr const char* kGone = "<not found>";

TEST_F(TtlTest, AKeyGoesWhenItsTimeIsOverAndItIsCompacted) {
  ASSERT_OK(db_->Put({}, "old", "1"));
  now_ += 60;
  ASSERT_OK(db_->Put({}, "young", "2"));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(Compact());
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"old", "1"}, {"young", "2"}}));
  now_ += 40;
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("old"), "1") << "it lives for 100 seconds, the last one included";
  now_ += 1;
  EXPECT_EQ(Get("old"), "1") << "nothing was compacted";
  ASSERT_OK(Compact());
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"young", "2"}}));
  now_ += 1000;
  ASSERT_OK(Compact());
  EXPECT_TRUE(HoldsExactly(db_.get(), Pairs()));
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.pm-bytes-live"), 0u);
}

TEST_F(TtlTest, AHandleOfAnotherDatabaseChangesNoTime) {
  std::unique_ptr<DB> other;
  ASSERT_OK(DB::Open(TinyOptions(1), directory_.File("other"), &other));
  ASSERT_OK(db_->Put({}, "key", "1"));
  db_->SetTtl(other->DefaultColumnFamily(), 1);
  db_->SetTtl(nullptr, 1);
  now_ += 60;
  ASSERT_OK(db_->Flush());
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("key"), "1");
}

TEST_F(TtlTest, AWriteBeginsItsTimeAnew) {
  ASSERT_OK(db_->Put({}, "key", "1"));
  ASSERT_OK(Compact());
  now_ += 90;
  ASSERT_OK(db_->Put({}, "key", "2"));
  now_ += 90;
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("key"), "2");
  now_ += 11;
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("key"), kGone) << "and nothing older comes back";
  Reopen(0);
  EXPECT_EQ(Get("key"), kGone);
}

TEST_F(TtlTest, NobodySeesTheTime) {
  WriteBatch batch;
  batch.Put("b", "two");
  batch.Put("empty", "");
  batch.Delete("a");
  ASSERT_OK(db_->Put({}, "a", "gone"));
  ASSERT_OK(db_->Write({}, batch));
  for (const bool compacted : {false, true}) {
    if (compacted) {
      ASSERT_OK(Compact());
    }
    EXPECT_TRUE(HoldsExactly(db_.get(), {{"b", "two"}, {"empty", ""}}));
    PinnableSlice pinned;
    ASSERT_OK(db_->Get({}, "b", &pinned));
    EXPECT_EQ(pinned.slice(), "two");
    ASSERT_OK(db_->Get({}, "empty", &pinned));
    EXPECT_TRUE(pinned.empty());
    EXPECT_TRUE(db_->Get({}, "a", &pinned).IsNotFound());
    std::vector<std::string> values;
    const auto statuses = db_->MultiGet({}, {"a", "b", "empty"}, &values);
    EXPECT_TRUE(statuses[0].IsNotFound() && statuses[1].ok() && statuses[2].ok());
    EXPECT_EQ(values[1], "two");
    EXPECT_EQ(values[2], "");
    const auto iterator = db_->NewIterator({});
    iterator->Seek("c");
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->value(), "");
    iterator->SeekForPrev("c");
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->value(), "two");
  }
}

TEST_F(TtlTest, ForEverAndAnotherTimeLater) {
  Reopen(0);
  ASSERT_OK(db_->Put({}, "key", "value"));
  now_ += 1'000'000;
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("key"), "value");
  db_->SetTtl(2'000'000);
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("key"), "value");
  db_->SetTtl(-1);
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("key"), "value");
  db_->SetTtl(10);
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("key"), kGone);
}

TEST_F(TtlTest, EachColumnFamilyHasATimeOfItsOwn) {
  db_.reset();
  options_.create_missing_column_families = true;
  TtlOptions ttl_options;
  ttl_options.clock = [this] { return now_.load(); };
  const std::vector<ColumnFamilyDescriptor> families = {{"short", {}}, {"default", ColumnFamilyOptions(options_)}, {"long", {}}};
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  ttl_options.family_ttl_seconds = {10, 20};
  EXPECT_TRUE(DBWithTTL::Open(options_, ttl_options, path_, families, &handles, &db_).IsInvalidArgument());
  ttl_options.family_ttl_seconds = {10, 20, 1000};
  ASSERT_OK(DBWithTTL::Open(options_, ttl_options, path_, families, &handles, &db_));
  handles.emplace_back();
  ASSERT_OK(db_->CreateColumnFamilyWithTtl({}, "made", 30, &handles.back()));
  handles.emplace_back();
  ASSERT_OK(db_->CreateColumnFamily({}, "ever", &handles.back()));  // as ttl_seconds says
  for (const auto& handle : handles) ASSERT_OK(db_->Put({}, handle.get(), "key", "value"));
  const auto expect = [&](const std::vector<bool>& there) {
    for (size_t i = 0; i < handles.size(); ++i) {
      ASSERT_OK(db_->CompactRange({}, handles[i].get(), nullptr, nullptr));
      std::string value;
      const Status status = db_->Get({}, handles[i].get(), "key", &value);
      EXPECT_EQ(status.ok(), there[i]) << handles[i]->GetName() << " at " << now_ - kStart << ": " << status.ToString();
    }
  };
  expect({true, true, true, true, true});
  now_ += 11;
  expect({false, true, true, true, true});
  now_ += 10;
  expect({false, false, true, true, true});
  now_ += 10;
  expect({false, false, true, false, true});
  db_->SetTtl(handles[2].get(), 5);
  expect({false, false, false, false, true});
  db_->SetTtl(3);
  expect({false, false, false, false, false});
  handles.clear();
}

TEST_F(TtlTest, MergesInTheBackgroundDropToo) {
  options_.disable_auto_compaction = false;
  Reopen(100);
  for (int i = 0; i < 2000; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "value"));
  now_ += 200;
  for (int i = 1000; i < 3000; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "newer"));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->WaitForCompaction());
  now_ += 50;
  ASSERT_OK(Compact());
  std::map<std::string, std::string> expected;
  for (int i = 1000; i < 3000; ++i) expected[NumberedKey(i)] = "newer";
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
}

// It sees values as they were put, and those it changes keep their time.
TEST_F(TtlTest, TheUsersFilterIsAskedAboutTheRest) {
  RuleFilter filter;
  options_.compaction_filter = &filter;
  Reopen(100);
  ASSERT_OK(db_->Put({}, "expires", "to:new"));
  now_ += 60;
  ASSERT_OK(db_->Put({}, "changed", "to:new"));
  ASSERT_OK(db_->Put({}, "gone", "drop"));
  ASSERT_OK(db_->Put({}, "kept", "value"));
  now_ += 60;
  ASSERT_OK(Compact());
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"changed", "new"}, {"kept", "value"}}));
  EXPECT_EQ(filter.Asked("expires"), 0);
  now_ += 41;
  ASSERT_OK(Compact());
  EXPECT_TRUE(HoldsExactly(db_.get(), Pairs()));
  db_.reset();
}

class KeepAllFactory : public CompactionFilterFactory {
 public:
  std::unique_ptr<CompactionFilter> CreateCompactionFilter(const CompactionFilter::Context&) override {
    ++made;
    return std::make_unique<RuleFilter>(false);
  }
  const char* Name() const override { return "rules"; }
  std::atomic<int> made{0};
};

TEST_F(TtlTest, TheUsersFactoryMakesTheUsersFilters) {
  const auto factory = std::make_shared<KeepAllFactory>();
  options_.compaction_filter_factory = factory;
  Reopen(100);
  ASSERT_OK(db_->Put({}, "expires", "value"));
  ASSERT_OK(db_->Put({}, "gone", "drop"));
  const Snapshot* const snapshot = db_->GetSnapshot();
  ReadOptions at_snapshot;
  at_snapshot.snapshot = snapshot;
  now_ += 50;
  ASSERT_OK(Compact());
  EXPECT_GT(factory->made, 0);
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"expires", "value"}}));
  now_ += 51;
  ASSERT_OK(Compact());
  EXPECT_TRUE(HoldsExactly(db_.get(), Pairs()));
  EXPECT_TRUE(HoldsExactly(db_.get(), std::map<std::string, std::string>{{"expires", "value"}, {"gone", "drop"}}, at_snapshot))
      << "the user's filter respects snapshots";
  db_->ReleaseSnapshot(snapshot);
}

TEST_F(TtlTest, ValuesWithoutATimeAreAnError) {
  ASSERT_OK(db_->Put({}, "a", "value"));
  db_.reset();
  std::unique_ptr<DB> plain = OpenOrFail(options_, path_);
  EXPECT_EQ(GetOrText(plain.get(), "a").size(), 9u);
  ASSERT_OK(plain->Put({}, "b", "abc"));
  plain.reset();
  Reopen(100);
  EXPECT_EQ(Get("a"), "value");
  std::string value;
  PinnableSlice pinned;
  EXPECT_TRUE(db_->Get({}, "b", &value).IsCorruption());
  EXPECT_TRUE(db_->Get({}, "b", &pinned).IsCorruption());
  EXPECT_EQ(pinned.size(), 0u);
  std::vector<std::string> values;
  EXPECT_TRUE(db_->MultiGet({}, {"b"}, &values)[0].IsCorruption());
  const auto iterator = db_->NewIterator({});
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  iterator->Next();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().IsCorruption());
  iterator->SeekForPrev("a");
  EXPECT_OK(iterator->status()) << "the error is that of one value";
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->value(), "value");
  iterator->SeekToLast();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().IsCorruption());
  now_ += 1000;
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("a"), kGone);
  EXPECT_TRUE(db_->Get({}, "b", &value).IsCorruption()) << "nobody knows how old it is";
}

TEST_F(TtlTest, CopiesHaveTheTimes) {
  ASSERT_OK(db_->Put({}, "old", "1"));
  now_ += 60;
  ASSERT_OK(db_->Put({}, "young", "2"));
  ASSERT_OK(CreateCheckpoint(db_.get(), directory_.File("checkpoint")));
  std::unique_ptr<BackupEngine> engine;
  ASSERT_OK(BackupEngine::Open(directory_.File("backups"), &engine));
  uint32_t id = 0;
  ASSERT_OK(engine->CreateBackup(db_.get(), "", &id));
  ASSERT_OK(engine->RestoreBackup(id, options_, directory_.File("restored")));
  now_ += 60;
  for (const char* copy : {"checkpoint", "restored"}) {
    SCOPED_TRACE(copy);
    TtlOptions ttl;
    ttl.ttl_seconds = 100;
    ttl.clock = [this] { return now_.load(); };
    std::unique_ptr<DBWithTTL> db;
    ASSERT_OK(DBWithTTL::Open(options_, ttl, directory_.File(copy), &db));
    EXPECT_TRUE(HoldsExactly(db.get(), {{"old", "1"}, {"young", "2"}}));
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    EXPECT_TRUE(HoldsExactly(db.get(), {{"young", "2"}}));
  }
}

// A write just now does not expire by the system's clock.
TEST_F(TtlTest, WithTheSystemsClock) {
  db_.reset();
  TtlOptions ttl;
  ttl.ttl_seconds = 3600;
  ASSERT_OK(DBWithTTL::Open(options_, ttl, path_, &db_));
  ASSERT_OK(db_->Put({}, "key", "value"));
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("key"), "value");
}

// SetTtl and the creation overlap.
TEST_F(TtlTest, AFamilyThatIsBeingCreatedHasTheNewTime) {
  SyncPoints::Instance().SetCallback("DBWithTTL::Create:Created", [this](void*) { db_->SetTtl(0); });
  SyncPoints::Instance().Enable();
  std::unique_ptr<ColumnFamilyHandle> later, own;
  ASSERT_OK(db_->CreateColumnFamily({}, "later", &later));
  ASSERT_OK(db_->CreateColumnFamilyWithTtl({}, "own", 50, &own));
  SyncPoints::Instance().Clear();
  for (const auto* family : {&later, &own}) ASSERT_OK(db_->Put({}, family->get(), "key", "value"));
  now_ += 1000;
  ASSERT_OK(db_->Flush());
  for (const auto* family : {&later, &own}) ASSERT_OK(db_->CompactRange({}, family->get(), nullptr, nullptr));
  std::string value;
  EXPECT_OK(db_->Get({}, later.get(), "key", &value));
  EXPECT_TRUE(db_->Get({}, own.get(), "key", &value).IsNotFound());
}

TEST_F(TtlTest, AnOpenThatFailsSaysWhy) {
  db_.reset();
  Options options = options_;
  options.error_if_exists = true;
  EXPECT_FALSE(DBWithTTL::Open(options, {}, path_, &db_).ok());
  EXPECT_EQ(db_, nullptr);
}

}  // namespace
}  // namespace braiddb::test
