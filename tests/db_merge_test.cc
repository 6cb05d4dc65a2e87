// DB::Merge: operands in every level, with snapshots between them, without an operator, with one that refuses.
#include <gtest/gtest.h>

#include "braiddb/backup.h"
#include "braiddb/check.h"
#include "tests/support/db_fixture.h"
#include "tests/support/merge_operators.h"

namespace braiddb::test {
namespace {

class DbMergeTest : public DbTest {
 protected:
  void SetUp() override {
    options_.merge_operator = append_;
    DbTest::SetUp();
  }

  std::string ValueOf(const std::string& key, const Snapshot* snapshot = nullptr) {
    ReadOptions options;
    options.snapshot = snapshot;
    std::string value;
    const Status status = db_->Get(options, key, &value);
    return status.ok() ? value : status.ToString();
  }
  // As every kind of read sees it.
  void Expect(const std::map<std::string, std::string>& expected, const Snapshot* snapshot = nullptr) {
    ReadOptions options;
    options.snapshot = snapshot;
    std::vector<Slice> keys;
    for (const auto& [key, value] : expected) {
      EXPECT_EQ(ValueOf(key, snapshot), value) << key;
      PinnableSlice pinned;
      ASSERT_OK(db_->Get(options, key, &pinned));
      EXPECT_EQ(pinned.slice(), value) << key;
      PinnableSlice moved = std::move(pinned);
      EXPECT_EQ(moved.slice(), value) << key;
      keys.push_back(key);
    }
    std::vector<std::string> values;
    const std::vector<Status> statuses = db_->MultiGet(options, keys, &values);
    for (size_t i = 0; i < keys.size(); ++i) {
      EXPECT_OK(statuses[i]);
      EXPECT_EQ(values[i], expected.at(std::string(keys[i])));
    }
    EXPECT_TRUE(HoldsExactly(db_.get(), expected, options));
  }

  std::shared_ptr<AppendOperator> append_ = std::make_shared<AppendOperator>();
};

TEST_P(DbMergeTest, OperandsOnPutsDeletionsAndNothing) {
  ASSERT_OK(db_->Put({}, "a", "put"));
  ASSERT_OK(db_->Merge({}, "a", "1"));
  ASSERT_OK(db_->Merge({}, "a", "2"));
  ASSERT_OK(db_->Merge({}, "b", "1"));
  ASSERT_OK(db_->Put({}, "c", "gone"));
  ASSERT_OK(db_->Delete({}, "c"));
  ASSERT_OK(db_->Merge({}, "c", "new"));
  ASSERT_OK(db_->Merge({}, "d", "gone"));
  ASSERT_OK(db_->Put({}, "d", "put"));
  ASSERT_OK(db_->Merge({}, "e", "gone"));
  ASSERT_OK(db_->Delete({}, "e"));
  AtEveryStage([this] {
    Expect({{"a", "put12"}, {"b", "1"}, {"c", "new"}, {"d", "put"}});
    EXPECT_EQ(ValueOf("e"), "NotFound: ");
  });
}

// One more operand after each stage, so that each level has some of them.
TEST_P(DbMergeTest, OperandsInAllLevels) {
  std::string expected = "0";
  ASSERT_OK(db_->Put({}, "k", "0"));
  ASSERT_OK(db_->Put({}, "neighbour", "here"));
  for (int round = 0; round < 20; ++round) {
    for (const auto& stage : Stages()) {
      SCOPED_TRACE(stage.name + std::to_string(round));
      ASSERT_OK(stage.enter(this));
      Expect({{"k", expected}, {"neighbour", "here"}});
      const std::string operand = "," + std::to_string(round);
      ASSERT_OK(db_->Merge({}, "k", operand));
      expected = AppendOperator::Apply(expected, operand);
    }
  }
  Expect({{"k", expected}, {"neighbour", "here"}});
}

TEST_P(DbMergeTest, SnapshotsSeeTheOperandsOfTheirTime) {
  std::vector<std::pair<const Snapshot*, std::string>> views;
  std::string expected;
  for (int i = 0; i < 60; ++i) {
    const std::string operand = "," + std::to_string(i);
    ASSERT_OK(db_->Merge({}, "k", operand));
    expected = AppendOperator::Apply(expected, operand);
    if (i % 5 == 0) views.push_back({db_->GetSnapshot(), expected});
    if (i % 7 == 0) {
      ASSERT_OK(db_->Flush());
    }
    if (i % 11 == 0) {
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    }
    for (const auto& [snapshot, value] : views) Expect({{"k", value}}, snapshot);
  }
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  for (const auto& [snapshot, value] : views) Expect({{"k", value}}, snapshot);
  Expect({{"k", expected}});
  for (const auto& [snapshot, value] : views) db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  Expect({{"k", expected}});
}

// An iterator keeps its view, whatever becomes of the operands meanwhile.
TEST_P(DbMergeTest, AnIteratorOfBeforeStaysAsItIs) {
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 200; ++i) {
    ASSERT_OK(db_->Put({}, NumberedKey(i), "base"));
    expected[NumberedKey(i)] = "base";
  }
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  for (const char* operand : {"1", "2", "3"}) {
    for (int i = 0; i < 200; ++i) {
      ASSERT_OK(db_->Merge({}, NumberedKey(i), operand));
      expected[NumberedKey(i)].append(operand);
    }
    ASSERT_OK(db_->Flush());
  }
  const std::unique_ptr<Iterator> before = db_->NewIterator({});
  const std::unique_ptr<Iterator> backwards = db_->NewIterator({});
  before->SeekToFirst();
  backwards->SeekToLast();
  auto last = expected.rbegin();
  int step = 0;
  for (const auto& [key, value] : expected) {
    ASSERT_TRUE(before->Valid());
    EXPECT_EQ(before->key(), key);
    EXPECT_EQ(before->value(), value);
    before->Next();
    ASSERT_TRUE(backwards->Valid());
    EXPECT_EQ(backwards->key(), last->first);
    EXPECT_EQ(backwards->value(), last->second);
    backwards->Prev();
    ++last;
    if (++step % 20 != 0) continue;
    for (int i = 0; i < 200; ++i) ASSERT_OK(db_->Merge({}, NumberedKey(i), std::to_string(step)));
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  }
  EXPECT_FALSE(before->Valid());
  EXPECT_OK(before->status());
  EXPECT_FALSE(backwards->Valid());
}

// What the background makes of operands is a put: reads need the operator no more.
TEST_P(DbMergeTest, OperandsBecomePuts) {
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 500; ++i) {
    const std::string key = NumberedKey(i % 100);
    const std::string operand = "," + std::to_string(i);
    if (i < 50) {
      ASSERT_OK(db_->Put({}, key, "base"));
      expected[key] = "base";
    }
    ASSERT_OK(db_->Merge({}, key, operand));
    expected[key] = AppendOperator::Apply(expected[key], operand);
  }
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_GE(db_->GetStatistics().collapsed_keys, 100u);
  const uint64_t merges = append_->full_merges;
  Expect(expected);
  EXPECT_EQ(append_->full_merges, merges);
  Reopen();
  Expect(expected);
  EXPECT_EQ(append_->full_merges, merges);
  uint64_t entries = 0;
  ASSERT_TRUE(db_->GetIntProperty("braiddb.estimate-num-keys", &entries));
  EXPECT_EQ(entries, expected.size());
}

// What an earlier session has not collapsed, nobody remembers.
TEST_P(DbMergeTest, OperandsOfAnEarlierSessionBecomePuts) {
  ASSERT_OK(db_->Put({}, "a", "put"));
  ASSERT_OK(db_->Merge({}, "a", "1"));
  ASSERT_OK(db_->Merge({}, "b", "1"));
  options_.merge_operator = nullptr;
  Reopen();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  options_.merge_operator = append_;
  Reopen();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(db_->GetStatistics().collapsed_keys, 2u);
  Expect({{"a", "put1"}, {"b", "1"}});
}

TEST_P(DbMergeTest, RepairSavesOperands) {
  ASSERT_OK(db_->Put({}, "a", "put"));
  ASSERT_OK(db_->Merge({}, "a", "1"));
  ASSERT_OK(db_->Merge({}, "b", "1"));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));  // what is here is collapsed
  ASSERT_OK(db_->Merge({}, "a", "2"));
  ASSERT_OK(db_->Delete({}, "b"));
  ASSERT_OK(db_->Merge({}, "b", "2"));
  ASSERT_OK(db_->Merge({}, "c", "1"));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->Merge({}, "a", "3"));
  ASSERT_OK(db_->Merge({}, "c", "2"));
  db_.reset();
  RepairOptions options;
  options.target = TinyOptions(0);
  RepairReport report;
  ASSERT_OK(RepairDatabase(options, directory_.File("db"), directory_.File("saved"), &report));
  EXPECT_EQ(report.keys, 3u);
  EXPECT_TRUE(report.lost.empty());
  EXPECT_TRUE(ChecksAsSound(directory_.File("saved")));
  db_ = OpenOrFail(options_, directory_.File("saved"));
  Expect({{"a", "put123"}, {"b", "2"}, {"c", "12"}});
}

// Merges, flushes and iterators must not take time that grows with the square.
TEST_P(DbMergeTest, VeryManyOperandsOfOneKey) {
  constexpr int kOperands = 40'000 / kSlowdown;
  std::string expected;
  std::string half;
  const Snapshot* snapshot = nullptr;
  for (int i = 0; i < kOperands; ++i) {
    const std::string operand = "," + std::to_string(i);
    ASSERT_OK(db_->Merge({}, "k", operand));
    expected = AppendOperator::Apply(expected, operand);
    if (i == kOperands / 2) {
      half = expected;
      snapshot = db_->GetSnapshot();
    }
  }
  ASSERT_OK(db_->Put({}, "l", "neighbour"));
  AtEveryStage([&] {
    if (snapshot != nullptr) Expect({{"k", half}}, snapshot);
    Expect({{"k", expected}, {"l", "neighbour"}});
    if (snapshot != nullptr) db_->ReleaseSnapshot(snapshot);
    snapshot = nullptr;
  });
}

TEST_P(DbMergeTest, FilesOfOperandsAreTakenIn) {
  ASSERT_OK(db_->Put({}, "a", "put"));
  std::unique_ptr<SortedFileWriter> writer;
  ASSERT_OK(SortedFileWriter::Create(directory_.File("sorted"), BytewiseComparator(), &writer));
  ASSERT_OK(writer->Merge("a", "1"));
  ASSERT_OK(writer->Merge("b", "2"));
  ASSERT_OK(writer->Finish());
  ASSERT_OK(IngestExternalFiles(db_.get(), {directory_.File("sorted")}, {}));
  Expect({{"a", "put1"}, {"b", "2"}});
  ASSERT_OK(CreateCheckpoint(db_.get(), directory_.File("checkpoint"), nullptr));
  options_.merge_operator = nullptr;
  const std::unique_ptr<DB> copy = OpenOrFail(options_, directory_.File("checkpoint"));
  EXPECT_TRUE(HoldsExactly(copy.get(), {{"a", "put1"}, {"b", "2"}}));  // copies have values
}

TEST_P(DbMergeTest, BatchesOfOperands) {
  WriteBatch batch;
  batch.Merge("a", "1");
  batch.Put("a", "2");
  batch.Merge("a", "3");
  batch.Merge("a", "4");
  batch.Merge("b", "1");
  batch.Delete("b");
  batch.Merge("b", "5");
  batch.Merge("c", "6");
  ASSERT_OK(db_->Put({}, "c", "0"));
  ASSERT_OK(db_->Write({}, batch));
  AtEveryStage([this] { Expect({{"a", "234"}, {"b", "5"}, {"c", "06"}}); });
}

TEST_P(DbMergeTest, WithoutAnOperatorNothingIsLost) {
  ASSERT_OK(db_->Put({}, "a", "put"));
  ASSERT_OK(db_->Merge({}, "a", "1"));
  ASSERT_OK(db_->Put({}, "b", "put"));
  options_.merge_operator = nullptr;
  Reopen();
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(db_->Merge({}, "a", "2").ToString(), "Not implemented: Provide a merge_operator when opening DB");
    EXPECT_EQ(ValueOf("a"), "Invalid argument: merge_operator is not properly initialized.");
    EXPECT_EQ(ValueOf("b"), "put");
    std::vector<std::string> values;
    const std::vector<Status> statuses = db_->MultiGet({}, {"a", "b"}, &values);
    EXPECT_CODE(statuses[0], kInvalidArgument);
    EXPECT_OK(statuses[1]);
    const auto iterator = db_->NewIterator({});
    iterator->SeekToFirst();
    EXPECT_FALSE(iterator->Valid());
    EXPECT_EQ(iterator->status().ToString(), "Invalid argument: merge_operator_ must be set.");
    ASSERT_OK(db_->Put({}, "c" + std::to_string(round), "x"));
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  }
  options_.merge_operator = append_;
  Reopen();
  Expect({{"a", "put1"}, {"b", "put"}, {"c0", "x"}, {"c1", "x"}, {"c2", "x"}});
}

TEST_P(DbMergeTest, AnOperatorThatRefusesIsCorruptionOfThatKeyOnly) {
  ASSERT_OK(db_->Merge({}, "a", "1"));
  ASSERT_OK(db_->Merge({}, "b", AppendOperator::kRefused));
  ASSERT_OK(db_->Merge({}, "b", "2"));
  ASSERT_OK(db_->Merge({}, "c", "1"));
  ASSERT_OK(db_->Merge({}, "c", AppendOperator::kThrown));
  ASSERT_OK(db_->Put({}, "d", "1"));
  AtEveryStage([this] {
    EXPECT_EQ(ValueOf("a"), "1");
    EXPECT_EQ(ValueOf("b"), "Corruption: Error: Could not perform merge.");
    EXPECT_EQ(ValueOf("c"), "Corruption: Error: Could not perform merge.");
    const auto iterator = db_->NewIterator({});
    iterator->SeekToFirst();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->key(), "a");
    iterator->Next();
    EXPECT_FALSE(iterator->Valid());
    EXPECT_CODE(iterator->status(), kCorruption);
    // The error belongs to the position: the next movement begins anew.
    const auto expect_at = [&iterator](const char* key) {
      EXPECT_OK(iterator->status());
      ASSERT_TRUE(iterator->Valid());
      EXPECT_EQ(iterator->key(), key);
    };
    iterator->SeekToFirst();
    expect_at("a");
    iterator->Seek("b");
    EXPECT_FALSE(iterator->Valid());
    EXPECT_CODE(iterator->status(), kCorruption);
    iterator->Seek("d");
    expect_at("d");
    iterator->Prev();
    EXPECT_FALSE(iterator->Valid());
    EXPECT_CODE(iterator->status(), kCorruption);
    iterator->SeekToLast();
    expect_at("d");
    iterator->SeekForPrev("c");
    EXPECT_FALSE(iterator->Valid());
    iterator->SeekForPrev("az");
    expect_at("a");
    iterator->SeekForPrev("0");
    EXPECT_FALSE(iterator->Valid());
    EXPECT_OK(iterator->status());
  });
  ASSERT_OK(db_->Put({}, "b", "mended"));
  ASSERT_OK(db_->Delete({}, "c"));
  AtEveryStage([this] { Expect({{"a", "1"}, {"b", "mended"}, {"d", "1"}}); });
}

TEST_P(DbMergeTest, AddsNumbers) {
  options_.merge_operator = UInt64AddOperator();
  Reopen();
  const auto bytes_of = [](uint64_t number) { return std::string(reinterpret_cast<const char*>(&number), sizeof number); };
  ASSERT_OK(db_->Put({}, "b", bytes_of(1000)));
  ASSERT_OK(db_->Put({}, "c", "no number"));
  for (uint64_t i = 1; i <= 100; ++i) {
    for (const char* key : {"a", "b", "c"}) ASSERT_OK(db_->Merge({}, key, bytes_of(i)));
  }
  AtEveryStage([&] { Expect({{"a", bytes_of(5050)}, {"b", bytes_of(6050)}, {"c", bytes_of(5050)}}); });
}

TEST_P(DbMergeTest, VerifiedReadsVerifyOperands) {
  ASSERT_OK(db_->Put({}, "a", "put"));
  ASSERT_OK(db_->Merge({}, "a", "1"));
  ReadOptions options;
  options.verify_checksums = true;
  AtEveryStage([&] {
    std::string value;
    ASSERT_OK(db_->Get(options, "a", &value));
    EXPECT_EQ(value, "put1");
    EXPECT_TRUE(HoldsExactly(db_.get(), std::map<std::string, std::string>{{"a", "put1"}}, options));
  });
}

INSTANTIATE_TEST_SUITE_P(Regions, DbMergeTest, testing::Values(1u, 2u));

}  // namespace
}  // namespace braiddb::test
