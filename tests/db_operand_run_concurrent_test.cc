// Many operands of one key in a table of L0: readers make one of them (MergeOperator::PartialMerge), and what is read is the
// same, whatever merges and collapses do meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/perf_context.h"
#include "tests/support/db_fixture.h"
#include "tests/support/merge_operators.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

constexpr int kMany = 500;

class DbOperandRunTest : public DbTest {
 protected:
  void SetUp() override { Start(append_); }
  void TearDown() override { SetPerfLevel(PerfLevel::kDisable); }

  void Start(std::shared_ptr<const MergeOperator> merge) {
    options_.disable_auto_compaction = true;
    options_.memtable_size = 1 << 20;
    options_.memtable_max_entries = 1 << 16;
    options_.merge_operator = std::move(merge);
    Reopen();
    // Where the first table begins is not known.
    ASSERT_OK(db_->Put({}, "first", "table"));
    ASSERT_OK(db_->Flush());
  }
  // kMany operands, in a table of their own.
  void AddTable(const std::string& key, std::string* expected) {
    for (int i = 0; i < kMany; ++i) Add(key, expected);
    ASSERT_OK(db_->Flush());
  }
  void Add(const std::string& key, std::string* expected) {
    const std::string operand = "," + std::to_string(next_++);
    ASSERT_OK(db_->Merge({}, key, operand));
    *expected = AppendOperator::Apply(*expected, operand);
  }
  // How many operands the read of the key applies.
  uint64_t Applied(const std::string& key, const std::string& expected, const ReadOptions& options = {}) {
    SetPerfLevel(PerfLevel::kEnableCount);
    GetPerfContext()->Reset();
    EXPECT_EQ(GetOrText(db_.get(), key, options), expected);
    SetPerfLevel(PerfLevel::kDisable);
    return GetPerfContext()->internal_merge_count;
  }
  uint64_t AppliedByScan(const std::string& key, const std::string& expected, const ReadOptions& options = {}) {
    SetPerfLevel(PerfLevel::kEnableCount);
    GetPerfContext()->Reset();
    const auto iterator = db_->NewIterator(options);
    iterator->Seek(key);
    EXPECT_TRUE(iterator->Valid());
    if (iterator->Valid()) {
      EXPECT_EQ(iterator->key(), key);
      EXPECT_EQ(iterator->value(), expected);
      const uint64_t applied = GetPerfContext()->internal_merge_count;
      iterator->Next();
      EXPECT_TRUE(!iterator->Valid() || iterator->key() != key);
      SetPerfLevel(PerfLevel::kDisable);
      return applied;
    }
    return 0;
  }

  std::shared_ptr<AppendOperator> append_ = std::make_shared<AppendOperator>();
  int next_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Regions, DbOperandRunTest, testing::Values(1u, 2u));

// When several tables are merged at once, the list of an older one leads to operands of a newer one.
TEST_P(DbOperandRunTest, ARunHasNoOperandsOfNewerTables) {
  std::string expected;
  ASSERT_OK(db_->Put({}, "a", "1"));
  AddTable("k", &expected);
  const std::string before = expected;
  const Snapshot* const snapshot = db_->GetSnapshot();
  ReadOptions old;
  old.snapshot = snapshot;
  ASSERT_OK(db_->Put({}, "a", "2"));
  AddTable("k", &expected);
  int batches = 0;
  const auto look = [&](void*) {
    ++batches;
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(GetOrText(db_.get(), "k"), expected);
      EXPECT_EQ(GetOrText(db_.get(), "k", old), before);
      for (const ReadOptions& options : {ReadOptions(), old}) {
        const auto iterator = db_->NewIterator(options);
        iterator->Seek("k");
        ASSERT_TRUE(iterator->Valid());
        EXPECT_EQ(iterator->value(), options.snapshot == nullptr ? expected : before);
        iterator->SeekForPrev("k");
        ASSERT_TRUE(iterator->Valid());
        EXPECT_EQ(iterator->value(), options.snapshot == nullptr ? expected : before);
      }
    }
  };
  for (const char* point : {"MergeJournal::Apply:Done", "LevelMerge:Applied", "RunMerge:Exchanged"})
    SyncPoints::Instance().SetCallback(point, look);
  SyncPoints::Instance().Enable();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  SyncPoints::Instance().Clear();
  EXPECT_GT(batches, 0);
  EXPECT_EQ(GetOrText(db_.get(), "k"), expected);
  EXPECT_EQ(GetOrText(db_.get(), "k", old), before);
  db_->ReleaseSnapshot(snapshot);
}

TEST_P(DbOperandRunTest, OneOperandForEachTable) {
  std::string expected;
  for (int table = 0; table < 3; ++table) AddTable("k", &expected);
  EXPECT_EQ(append_->partial_merges, 0u);
  EXPECT_EQ(Applied("k", expected), 3u * kMany) << "the first read makes them";
  EXPECT_EQ(append_->partial_merges, 3u * (kMany - 1));
  EXPECT_EQ(Applied("k", expected), 3u);
  EXPECT_EQ(AppliedByScan("k", expected), 3u);
  EXPECT_EQ(append_->partial_merges, 3u * (kMany - 1)) << "once";

  // What is newer comes on top.
  for (int i = 0; i < 5; ++i) Add("k", &expected);
  EXPECT_EQ(Applied("k", expected), 8u);
  AddTable("k", &expected);
  EXPECT_EQ(Applied("k", expected), 3u + 5 + kMany);
  EXPECT_EQ(Applied("k", expected), 4u);
  EXPECT_EQ(AppliedByScan("k", expected), 4u);

  ReadOptions verified;
  verified.verify_checksums = true;
  EXPECT_EQ(Applied("k", expected, verified), 4u * kMany + 5) << "each of them is looked at";

  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(Applied("k", expected), 0u) << "a put";
}

TEST_P(DbOperandRunTest, OnAPutOfTheSameTableOrBelow) {
  std::string below = "below", inside = "gone", deleted;
  ASSERT_OK(db_->Put({}, "below", below));
  ASSERT_OK(db_->Put({}, "deleted", "gone"));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ASSERT_OK(db_->Put({}, "inside", inside));
  ASSERT_OK(db_->Delete({}, "deleted"));
  for (int i = 0; i < kMany; ++i) {
    Add("below", &below);
    Add("inside", &inside);
    Add("deleted", &deleted);
  }
  ASSERT_OK(db_->Flush());
  for (const uint64_t applied : {uint64_t{kMany}, uint64_t{1}}) {
    EXPECT_EQ(Applied("below", below), applied);
    EXPECT_EQ(Applied("inside", inside), applied);
    EXPECT_EQ(Applied("deleted", deleted), applied);
  }
  EXPECT_EQ(AppliedByScan("inside", inside), 1u);
}

TEST_P(DbOperandRunTest, SnapshotsInTheMiddleSeeTheOperandsOfTheirTime) {
  std::string expected, half;
  for (int i = 0; i < kMany; ++i) Add("k", &expected);
  half = expected;
  ReadOptions before, behind;
  before.snapshot = db_->GetSnapshot();
  AddTable("k", &expected);
  behind.snapshot = db_->GetSnapshot();
  const std::string at_flush = expected;
  EXPECT_EQ(Applied("k", expected), 2u * kMany);
  EXPECT_EQ(Applied("k", expected), 1u);
  EXPECT_EQ(Applied("k", half, before), uint64_t{kMany});
  EXPECT_EQ(AppliedByScan("k", half, before), uint64_t{kMany});
  AddTable("k", &expected);
  EXPECT_EQ(Applied("k", at_flush, behind), 1u);
  EXPECT_EQ(AppliedByScan("k", at_flush, behind), 1u);
  EXPECT_EQ(Applied("k", half, before), uint64_t{kMany});
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(GetOrText(db_.get(), "k", before), half);
  EXPECT_EQ(GetOrText(db_.get(), "k", behind), at_flush);
  EXPECT_EQ(GetOrText(db_.get(), "k"), expected);
  db_->ReleaseSnapshot(before.snapshot);
  db_->ReleaseSnapshot(behind.snapshot);
}

TEST_P(DbOperandRunTest, WhatCannotBeOneStaysMany) {
  std::string expected;
  Start(std::make_shared<AppendOperator>(false));
  AddTable("k", &expected);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Applied("k", expected), uint64_t{kMany});
  EXPECT_EQ(AppliedByScan("k", expected), uint64_t{kMany});

  Start(append_);
  std::string few;
  for (int i = 0; i < 30; ++i) Add("few", &few);
  ASSERT_OK(db_->Flush());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Applied("few", few), 30u);

  // One that throws in a full merge, too, is that key's error.
  for (int i = 0; i < kMany; ++i) ASSERT_OK(db_->Merge({}, "thrown", i == 7 ? AppendOperator::kThrown : "x"));
  ASSERT_OK(db_->Flush());
  for (int i = 0; i < 2; ++i) EXPECT_NE(GetOrText(db_.get(), "thrown").find("Corruption"), std::string::npos);
  EXPECT_EQ(GetOrText(db_.get(), "few"), few);
}

// An operand that is as long as all of them together.
class Concatenation final : public MergeOperator {
 public:
  const char* Name() const override { return "test.Concatenation"; }
  bool FullMerge(Slice, const Slice* existing, std::span<const Slice> operands, std::string* value) const override {
    if (existing != nullptr) value->assign(*existing);
    for (const Slice operand : operands) value->append(operand);
    return true;
  }
  bool PartialMerge(Slice, Slice left, Slice right, std::string* operand) const override {
    operand->assign(left).append(right);
    return true;
  }
};

TEST_P(DbOperandRunTest, LongOnesAreNotKeptInDram) {
  Start(std::make_shared<Concatenation>());
  std::string expected;
  for (int i = 0; i < kMany; ++i) {
    ASSERT_OK(db_->Merge({}, "k", std::string(50, 'x')));
    expected.append(50, 'x');
  }
  ASSERT_OK(db_->Flush());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Applied("k", expected), uint64_t{kMany});
}

// Adds, and refuses to while it is told to.
class Adder final : public MergeOperator {
 public:
  const char* Name() const override { return "test.Adder"; }
  bool FullMerge(Slice, const Slice* existing, std::span<const Slice> operands, std::string* value) const override {
    if (refuses) return false;
    uint64_t sum = existing == nullptr ? 0 : std::stoull(std::string(*existing));
    for (const Slice operand : operands) sum += std::stoull(std::string(operand));
    *value = std::to_string(sum);
    return true;
  }
  bool PartialMerge(Slice, Slice left, Slice right, std::string* operand) const override {
    *operand = std::to_string(std::stoull(std::string(left)) + std::stoull(std::string(right)));
    return true;
  }
  std::atomic<bool> refuses{false};
};

// An iterator stands in two tables before the key when these are merged: where their lists become one, it goes on in one of them.
// What is remembered of that one's operands is not all that the list has.
TEST_P(DbOperandRunTest, OfATableThatIsMergedUnderAnIterator) {
  const auto add = std::make_shared<Adder>();
  Start(add);
  ASSERT_OK(db_->Put({}, "b", "1"));
  ASSERT_OK(db_->Put({}, "k", "1000"));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->Put({}, "a", "1"));
  for (int i = 0; i < kMany; ++i) ASSERT_OK(db_->Merge({}, "k", "1"));
  ASSERT_OK(db_->Flush());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(GetOrText(db_.get(), "k"), std::to_string(1000 + kMany));
  const auto iterator = db_->NewIterator({});
  iterator->Seek("a");
  ASSERT_TRUE(iterator->Valid());
  add->refuses = true;  // no collapse
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  add->refuses = false;
  for (const char* key : {"b", "first", "k"}) {
    iterator->Next();
    ASSERT_TRUE(iterator->Valid()) << key << iterator->status().ToString();
    EXPECT_EQ(iterator->key(), key);
  }
  EXPECT_EQ(iterator->value(), std::to_string(1000 + kMany));
  iterator->Next();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_OK(iterator->status());
}

// A counter that is only added to, read beside flushes, merges and collapses: no read misses what was acknowledged before it,
// none sees more than was begun, and a snapshot always sees the same.
TEST_P(DbOperandRunTest, CountsWhileEverythingRuns) {
  options_.memtable_max_entries = 1024;
  Start(UInt64AddOperator());
  options_.disable_auto_compaction = false;
  options_.memtable_max_entries = 1024;
  options_.memtable_size = 64 << 10;
  Reopen();
  const auto number = [](const std::string& bytes) {
    uint64_t n = 0;
    if (bytes.size() == sizeof n) memcpy(&n, bytes.data(), sizeof n);
    return n;
  };
  const uint64_t kAdds = 60'000 / kSlowdown;
  std::atomic<uint64_t> begun{0}, done{0};
  std::atomic<bool> ended{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    const uint64_t one = 1;
    const Slice operand(reinterpret_cast<const char*>(&one), sizeof one);
    for (uint64_t i = 0; i < kAdds; ++i) {
      ++begun;
      ASSERT_OK(db_->Merge({}, "counter", operand));
      if (i % 5 == 0) {
        ASSERT_OK(db_->Put({}, NumberedKey(i % 100), "other"));
      }
      ++done;
    }
    ended = true;
  });
  std::atomic<uint64_t> reads{0};
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; !ended || i < 10; ++i) {
        const uint64_t at_least = done;
        ReadOptions options;
        if (t == 1) options.snapshot = db_->GetSnapshot();
        uint64_t seen = 0;
        for (int again = 0; again < (t == 1 ? 4 : 1); ++again) {
          std::string value;
          if (again % 2 == 0) {
            const Status status = db_->Get(options, "counter", &value);
            ASSERT_TRUE(status.ok() || (status.IsNotFound() && at_least == 0)) << status.ToString();
          } else {
            const auto iterator = db_->NewIterator(options);
            iterator->Seek("counter");
            ASSERT_OK(iterator->status());
            if (iterator->Valid() && iterator->key() == "counter") value = std::string(iterator->value());
          }
          const uint64_t now = number(value);
          EXPECT_GE(now, at_least);
          EXPECT_LE(now, begun.load());
          if (again > 0) {
            ASSERT_EQ(now, seen) << "one snapshot";
          }
          seen = now;
        }
        if (t == 1) db_->ReleaseSnapshot(options.snapshot);
        ++reads;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GT(reads, 10u);
  std::string value;
  ASSERT_OK(db_->Get({}, "counter", &value));
  EXPECT_EQ(number(value), kAdds);
  Reopen();
  ASSERT_OK(db_->Get({}, "counter", &value));
  EXPECT_EQ(number(value), kAdds);
}

}  // namespace
}  // namespace braiddb::test
