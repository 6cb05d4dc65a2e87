// db_stress: what it compares with must notice whatever can go wrong, and a short run of the program finds nothing.
//
// BRAIDDB_STRESS_CYCLES and BRAIDDB_STRESS_SEED extend or repeat the run.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "db_stress/expected_state.h"
#include "db_stress/operation_history.h"
#include "db_stress/verifier.h"
#include "db_stress/view_check.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

using stress::Content;
using stress::ExpectedState;
using stress::KeyTable;
using stress::Oracle;
using stress::ViewCheck;
using stress::Violation;

// ---- The oracle, with a database that does as it should, but for what a test does to it

class DbStressOracle : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(ExpectedState::Create(directory_.File("expected"), keys_.size(), &expected_));
    db_ = OpenOrFail(TinyOptions(1), directory_.File("db"));
    ASSERT_NE(db_, nullptr);
  }

  Oracle oracle() const { return {&keys_, &content_, expected_.get()}; }
  Violation Verify() { return stress::VerifyDatabase(oracle(), db_.get(), {db_->DefaultColumnFamily()}, {}); }

  // The first `count` of the keys are written with their intended generation.
  void WriteFirst(const std::vector<uint32_t>& keys, size_t count) {
    WriteBatch batch;
    for (size_t i = 0; i < count; ++i) Add(&batch, keys[i], expected_->intended(keys[i]));
    ASSERT_OK(db_->Write({}, batch));
  }
  void WriteGeneration(uint32_t key, uint32_t generation) {
    WriteBatch batch;
    Add(&batch, key, generation);
    ASSERT_OK(db_->Write({}, batch));
  }
  void WriteAll(uint32_t lane, const std::vector<uint32_t>& keys) {
    expected_->Begin(lane, keys);
    WriteFirst(keys, keys.size());
    expected_->Acknowledge(lane);
  }
  // Writes the key until its newest generation is a value, or a deletion, and returns that generation.
  uint32_t WriteUntil(uint32_t lane, uint32_t key, bool deleted) {
    do {
      WriteAll(lane, {key});
    } while (content_.IsDeleted(key, expected_->intended(key)) != deleted);
    return expected_->intended(key);
  }

  static constexpr uint32_t kLane = 3;
  static uint32_t Key(uint32_t i) { return KeyTable::SingleKey(kLane, i); }

  TestDirectory directory_;
  const KeyTable keys_{7, KeyTable::kMinKeys, {BytewiseComparator()}};
  const Content content_{7};
  std::unique_ptr<ExpectedState> expected_;
  std::unique_ptr<DB> db_;

 private:
  void Add(WriteBatch* batch, uint32_t key, uint32_t generation) {
    const auto value = content_.ValueOf(key, generation);
    value ? batch->Put(keys_.key(key), *value) : batch->Delete(keys_.key(key));
  }
};

TEST_F(DbStressOracle, AcceptsWhatIsRight) {
  EXPECT_EQ(Verify(), std::nullopt);
  for (uint32_t i = 0; i < 60; ++i) WriteAll(kLane, {Key(i % 10), Key(10 + i % 5), Key(15)});
  EXPECT_EQ(Verify(), std::nullopt);
  for (const size_t written : {0, 2}) {  // a batch under way, not there and there
    const std::vector<uint32_t> batch = {Key(1), Key(2)};
    expected_->Begin(kLane, batch);
    WriteFirst(batch, written);
    EXPECT_EQ(Verify(), std::nullopt) << written;
    EXPECT_EQ(Verify(), std::nullopt) << written;
    WriteAll(kLane, batch);
    EXPECT_EQ(Verify(), std::nullopt) << written;
  }
}

TEST_F(DbStressOracle, FindsALostAcknowledgedWrite) {
  WriteUntil(kLane, Key(1), false);
  EXPECT_EQ(Verify(), std::nullopt);
  expected_->Begin(kLane, {Key(1)});
  expected_->Acknowledge(kLane);  // and not written
  EXPECT_NE(Verify(), std::nullopt);
}

TEST_F(DbStressOracle, FindsALostKey) {
  WriteUntil(kLane, Key(1), false);
  ASSERT_OK(db_->Delete({}, keys_.key(Key(1))));
  EXPECT_NE(Verify(), std::nullopt);
}

TEST_F(DbStressOracle, FindsADeletedKeyThatIsBack) {
  const uint32_t old = WriteUntil(kLane, Key(1), false);
  WriteUntil(kLane, Key(1), true);
  EXPECT_EQ(Verify(), std::nullopt);
  WriteGeneration(Key(1), old);
  EXPECT_NE(Verify(), std::nullopt);
}

TEST_F(DbStressOracle, FindsAnOverwrittenValueThatIsBack) {
  const uint32_t old = WriteUntil(kLane, Key(1), false);
  WriteUntil(kLane, Key(1), false);
  EXPECT_EQ(Verify(), std::nullopt);
  WriteGeneration(Key(1), old);
  EXPECT_NE(Verify(), std::nullopt);
}

TEST_F(DbStressOracle, FindsATornBatch) {
  const std::vector<uint32_t> batch = {Key(1), Key(2), Key(3), Key(4)};
  for (const uint32_t key : batch) WriteUntil(kLane, key, true);
  do {
    WriteAll(kLane, batch);
    expected_->Begin(kLane, batch);
    // Until its first and last key get a value of their own.
  } while (content_.IsDeleted(batch[0], expected_->intended(batch[0])) ||
           content_.IsDeleted(batch[3], expected_->intended(batch[3])));
  WriteFirst(batch, 2);
  EXPECT_NE(Verify(), std::nullopt);
}

TEST_F(DbStressOracle, WhatARecoveryFoundStays) {
  WriteUntil(kLane, Key(1), true);
  expected_->Begin(kLane, {Key(1)});
  while (content_.IsDeleted(Key(1), expected_->intended(Key(1)))) {
    expected_->Acknowledge(kLane);
    expected_->Begin(kLane, {Key(1)});
  }
  EXPECT_EQ(Verify(), std::nullopt);  // the write under way was lost
  WriteFirst({Key(1)}, 1);            // and comes back
  EXPECT_NE(Verify(), std::nullopt);
}

TEST_F(DbStressOracle, FindsStrangeKeysAndDamagedValues) {
  ASSERT_OK(db_->Put({}, "a key of nobody", "value"));
  EXPECT_NE(Verify(), std::nullopt);
  ASSERT_OK(db_->Delete({}, "a key of nobody"));
  EXPECT_EQ(Verify(), std::nullopt);
  std::string value;
  do {
    value = *content_.ValueOf(Key(1), WriteUntil(kLane, Key(1), false));
  } while (value.size() < 20);
  value.back() ^= 1;
  ASSERT_OK(db_->Put({}, keys_.key(Key(1)), value));
  EXPECT_NE(Verify(), std::nullopt);
}

// A live reader: what was acknowledged before, or was under way beside it, and no part of a batch.
TEST_F(DbStressOracle, JudgesLiveReads) {
  std::vector<uint32_t> group;
  for (uint32_t i = 0; i < KeyTable::kGroupSize; ++i) group.push_back(KeyTable::GroupedKey(kLane, i));
  const auto look = [&](const std::vector<uint32_t>& generations) -> Violation {
    ViewCheck check(oracle(), group, 0);
    check.ViewMade();
    for (size_t i = 0; i < group.size(); ++i) {
      const auto value = content_.ValueOf(group[i], generations[i]);
      if (auto wrong = value ? check.Saw(i, *value) : check.SawNothing(i)) return wrong;
    }
    return check.OneGeneration();
  };
  const auto all = [&](uint32_t generation) { return std::vector<uint32_t>(group.size(), generation); };
  const auto has_values = [&](uint32_t generation) {
    for (const uint32_t key : group) {
      if (content_.IsDeleted(key, generation) || content_.ValueOf(key, generation)->size() < 8) return false;
    }
    return true;
  };
  uint32_t generation = 1;  // two in a row without deletions
  while (!has_values(generation) || !has_values(generation + 1)) ++generation;
  while (expected_->acknowledged(group[0]) < generation) WriteAll(kLane, group);
  EXPECT_EQ(look(all(generation)), std::nullopt);
  EXPECT_NE(look(all(generation - 1)), std::nullopt);
  EXPECT_NE(look(all(generation + 1)), std::nullopt);  // nobody began to write it
  expected_->Begin(kLane, group);
  EXPECT_EQ(look(all(generation)), std::nullopt);
  EXPECT_EQ(look(all(generation + 1)), std::nullopt);
  std::vector<uint32_t> torn = all(generation);
  torn[2] = generation + 1;
  EXPECT_NE(look(torn), std::nullopt);
}

// ---- Histories of shared keys, across deaths

class DbStressHistory : public testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(ExpectedState::Create(directory_.File("expected"), KeyTable::kMinKeys, &state_)); }

  uint64_t Write(bool acknowledged) {
    const uint64_t tag = state_->NewTag();
    stress::Event* event = state_->BeginWrite(0, kKey, tag, nullptr);
    if (acknowledged) state_->EndWrite(event);
    return tag;
  }
  void Read(uint64_t tag) {
    const uint64_t start = state_->Now();
    state_->AddRead(1, kKey, tag, start, state_->Now());
  }
  // The process dies, and the next one finds this.
  Violation Recover(uint64_t tag) {
    for (uint32_t key = 0; key < KeyTable::kShared; ++key) {
      if (auto wrong = state_->SettleShared(key, key == kKey ? tag : 0)) return wrong;
    }
    state_->BeginEpoch();
    return state_->CheckLastEpoch();
  }

  static constexpr uint32_t kKey = 5;
  TestDirectory directory_;
  std::unique_ptr<ExpectedState> state_;
};

TEST_F(DbStressHistory, AcceptsWhatIsRight) {
  EXPECT_EQ(Recover(0), std::nullopt);
  Read(0);
  const uint64_t first = Write(true);
  Read(first);
  EXPECT_EQ(Recover(first), std::nullopt);
  Read(first);
  const uint64_t under_way = Write(false);
  EXPECT_EQ(Recover(under_way), std::nullopt);
  Read(under_way);
  Write(false);
  EXPECT_EQ(Recover(under_way), std::nullopt);
  const uint64_t seen = Write(false);
  Read(seen);
  EXPECT_EQ(Recover(seen), std::nullopt);
}

TEST_F(DbStressHistory, FindsALostAcknowledgedWrite) {
  const uint64_t first = Write(true);
  EXPECT_EQ(Recover(first), std::nullopt);
  Write(true);
  EXPECT_NE(Recover(first), std::nullopt);
}

TEST_F(DbStressHistory, FindsAWriteThatIsBackAfterItWasOverwritten) {
  const uint64_t first = Write(true);
  const uint64_t second = Write(true);
  Read(second);
  EXPECT_NE(Recover(first), std::nullopt);
}

TEST_F(DbStressHistory, FindsAWriteThatTakesEffectAfterItsDeath) {
  const uint64_t first = Write(true);
  const uint64_t under_way = Write(false);
  EXPECT_EQ(Recover(first), std::nullopt);
  Read(under_way);
  EXPECT_NE(Recover(under_way), std::nullopt);
}

TEST_F(DbStressHistory, FindsWhatWasReadAndIsGone) {
  const uint64_t first = Write(true);
  const uint64_t under_way = Write(false);
  Read(under_way);
  EXPECT_NE(Recover(first), std::nullopt);
}

TEST_F(DbStressHistory, FindsAKeyThatIsGone) {
  EXPECT_EQ(Recover(Write(true)), std::nullopt);
  EXPECT_NE(Recover(0), std::nullopt);
}

TEST_F(DbStressHistory, TwoRecoveriesFindTheSame) {
  const uint64_t first = Write(true);
  const uint64_t under_way = Write(false);
  ASSERT_EQ(state_->SettleShared(kKey, under_way), std::nullopt);
  EXPECT_NE(state_->SettleShared(kKey, first), std::nullopt);
}

// ---- Histories of several shared keys

// Times are given. Values of key 1 are 1.., those of key 2 are 101.. .
class DbStressOperations : public testing::Test {
 protected:
  struct Access {
    uint32_t key;
    uint64_t value;
  };
  void Write(uint64_t start, uint64_t end, std::initializer_list<Access> accesses) {
    history_.AddOperation(start, start, end);
    for (const Access& access : accesses) history_.AddWrite(start, access.key, access.value);
  }
  void Read(uint64_t start, uint64_t end, std::initializer_list<Access> accesses) {
    history_.AddOperation(start, start, end);
    for (const Access& access : accesses) history_.AddRead(start, access.key, access.value);
  }
  stress::OperationHistory history_;
};

TEST_F(DbStressOperations, AcceptsWhatIsRight) {
  Read(1, 2, {{1, 0}, {2, 0}});
  Write(10, 30, {{1, 1}, {2, 101}});
  Read(12, 14, {{1, 0}});
  Read(15, 20, {{2, 101}});
  Read(16, 21, {{1, 1}, {2, 101}});
  Write(22, 40, {{1, 2}});
  Read(31, 32, {{1, 1}, {2, 101}});
  Read(33, 50, {{1, 2}, {2, 101}});
  EXPECT_EQ(history_.Violation(), std::nullopt);
}

// Two writes that are under way at the same time, in an order that no other operation contradicts.
TEST_F(DbStressOperations, AcceptsAnyOrderOfConcurrentWrites) {
  Write(10, 100, {{1, 1}});
  Write(11, 20, {{2, 101}});
  Read(21, 22, {{2, 101}});
  Read(23, 24, {{1, 0}});
  Read(101, 102, {{1, 1}, {2, 101}});
  EXPECT_EQ(history_.Violation(), std::nullopt);
}

// A put over a batch is acknowledged, and then the other key of the batch is read, and is old.
TEST_F(DbStressOperations, FindsABatchThatIsVisibleLate) {
  Write(10, 100, {{1, 1}, {2, 101}});
  Write(20, 30, {{1, 2}});
  Read(31, 40, {{2, 0}});
  Read(101, 110, {{1, 2}, {2, 101}});
  EXPECT_NE(history_.Violation(), std::nullopt);
}

TEST_F(DbStressOperations, FindsPartOfABatch) {
  Write(10, 100, {{1, 1}, {2, 101}});
  Read(20, 30, {{1, 1}, {2, 0}});
  EXPECT_NE(history_.Violation(), std::nullopt);
}

TEST_F(DbStressOperations, FindsAMixtureOfTwoBatches) {
  Write(10, 100, {{1, 1}, {2, 101}});
  Write(11, 100, {{1, 2}, {2, 102}});
  Read(20, 90, {{1, 1}, {2, 102}});
  EXPECT_NE(history_.Violation(), std::nullopt);
}

TEST_F(DbStressOperations, AcceptsABatchThatWasOverwrittenInPart) {
  Write(10, 100, {{1, 1}, {2, 101}});
  Write(11, 100, {{2, 102}});
  Read(20, 90, {{1, 1}, {2, 102}});
  Read(21, 91, {{1, 0}, {2, 0}});
  EXPECT_EQ(history_.Violation(), std::nullopt);
}

TEST_F(DbStressOperations, FindsPartOfABatchInTwoReads) {
  Write(10, 100, {{1, 1}, {2, 101}});
  Read(20, 30, {{1, 1}});
  Read(31, 40, {{2, 0}});
  EXPECT_NE(history_.Violation(), std::nullopt);
}

TEST_F(DbStressOperations, FindsAViewThatShowsAnotherOrder) {
  Write(10, 100, {{1, 1}});
  Write(11, 20, {{2, 101}});
  Read(9, 110, {{1, 1}, {2, 0}});  // a snapshot between the two
  Read(21, 22, {{2, 101}});
  Read(23, 24, {{1, 0}});
  EXPECT_NE(history_.Violation(), std::nullopt);
}

// ---- The program

struct Result {
  int exit_code;
  std::string output;  // stdout and stderr
};

class DbStressProgram : public testing::Test {
 protected:
  Result Stress(const std::string& arguments) {
    Result result;
    const std::string command = std::string(BRAIDDB_DB_STRESS) + " --db=" + directory_.File("stress") + " " + arguments + " 2>&1";
    std::FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 4096> buffer;
    while (const size_t bytes = fread(buffer.data(), 1, buffer.size(), pipe)) result.output.append(buffer.data(), bytes);
    const int status = pclose(pipe);
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return result;
  }
  // The number in this row of the summary.
  static uint64_t Row(const Result& result, const std::string& name) {
    std::istringstream lines(result.output);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("  " + name + "  ")) return std::stoull(line.substr(2 + name.size()));
    }
    ADD_FAILURE() << "no row " << name << " in:\n" << result.output;
    return 0;
  }

  TestDirectory directory_;
};

// [CC-1] [CC-4] [CC-5] [CC-6] [CC-7]
TEST_F(DbStressProgram, NothingIsLost) {
  const uint64_t cycles = EnvNumber("BRAIDDB_STRESS_CYCLES", 100 / kSlowdown);
  const uint64_t seed = EnvNumber("BRAIDDB_STRESS_SEED", 1);
  // What must have happened, or nothing was tested. Lives end by time: on a slow machine the rarest of it may
  // need further runs, with seeds of their own.
  std::map<std::string, uint64_t> rows;
  for (const char* row :
       {"replayed entries", "reads", "views", "reads in histories", "verified keys", "rotations", "checkpoints", "compactions",
        "CheckDatabase", "emptied databases", "transactions", "prepared", "audits", "column families", "kills while opening"}) {
    rows[row] = 0;
  }
  const auto missing = [&rows] { return std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.second == 0; }); };
  constexpr uint64_t kMostRuns = 5;
  uint64_t runs = 0, kills = 0, writes = 0;
  while (runs < kMostRuns && missing() && !HasFailure()) {
    const Result result = Stress("--cycles=" + std::to_string(cycles) + " --seed=" + std::to_string(seed + runs++) +
                                 " --fresh_every=15 --pmempool_one_in=10 --max_key=10000");
    ASSERT_EQ(result.exit_code, 0) << result.output;
    std::printf("%s", result.output.c_str());
    EXPECT_EQ(Row(result, "cycles"), cycles);
    kills += Row(result, "kills");
    writes += Row(result, "writes");
    if (result.output.find(" 0 while opening") == std::string::npos) ++rows["kills while opening"];
    if (result.output.find("pmempool is not installed") == std::string::npos) {
      EXPECT_GT(Row(result, "pmempool check"), 0u);
    }
    for (auto& [name, count] : rows) {
      if (name != "kills while opening") count += Row(result, name);
    }
  }
  RecordProperty("runs", static_cast<int>(runs));
  EXPECT_GT(kills, runs * cycles / 2);
  EXPECT_GT(writes, runs * cycles * 20 / kSlowdown);
  for (const auto& [name, count] : rows) EXPECT_GT(count, 0u) << name;
}

TEST_F(DbStressProgram, FilesOfOthersStay) {
  const std::string note = directory_.File("stress") + "/db";
  std::filesystem::create_directories(directory_.File("stress"));
  WriteFileOrDie(note, "mine");
  const Result result = Stress("--cycles=1");
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_EQ(ReadFileOrDie(note), "mine");
}

TEST_F(DbStressProgram, NegativeNumbersAreRefused) {
  for (const char* flag : {"--duration=-1", "--cycles=-1", "--ops_per_thread=-3"}) {
    const Result result = Stress(flag);
    EXPECT_NE(result.exit_code, 0) << flag;
    EXPECT_NE(result.output.find("is negative"), std::string::npos) << result.output;
  }
}

TEST_F(DbStressProgram, FindsBugs) {
  int number = 0;
  for (const char* bug : {"lost_write", "stale_write", "torn_batch", "lost_shared_write", "torn_transfer", "lost_update",
                          "lost_prepare", "kept_update", "split_batch"}) {
    if (number++ % kSlowdown != 0) continue;  // a sanitizer sees some of them
    // Lives end by time: on a slow machine a bug may need a further run, with a seed of its own.
    Result result{};
    std::string seed;
    for (int run = 1; run <= 5 && (run == 1 || result.exit_code == 0); ++run) {
      seed = "--seed=" + std::to_string(run) + " ";
      result = Stress("--cycles=300 " + seed + "--inject=" + std::string(bug));
    }
    EXPECT_EQ(result.exit_code, 1) << bug << ":\n" << result.output;
    EXPECT_NE(result.output.find("VIOLATION"), std::string::npos) << bug;
    EXPECT_NE(result.output.find("db_stress " + seed), std::string::npos) << bug;
  }
}

TEST_F(DbStressProgram, RefusesWhatItDoesNotUnderstand) {
  EXPECT_EQ(Stress("--help").exit_code, 0);
  EXPECT_EQ(Stress("--threads=0").exit_code, 2);
  EXPECT_EQ(Stress("--threads=9").exit_code, 2);
  EXPECT_EQ(Stress("--cycle=5x").exit_code, 2);
  EXPECT_EQ(Stress("--inject=nothing").exit_code, 2);
  EXPECT_EQ(Stress("--what").exit_code, 2);
}

}  // namespace
}  // namespace braiddb::test
