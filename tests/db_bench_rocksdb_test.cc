// What RocksDB's db_bench has, in this one: every flag and benchmark works or says why not, and those that work do what they say.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "db_bench/flags.h"
#include "db_bench/workloads.h"
#include "tests/support/db_bench_program.h"
#include "tests/support/db_test_util.h"

namespace braiddb::bench {
namespace {

using test::Contains;
using test::LineOf;
using test::Operations;

std::vector<std::string> Names(const char* file) {
  std::ifstream stream(std::string(BRAIDDB_NAMES) + "/" + file);
  std::vector<std::string> names;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line[0] != '#') names.push_back(line);
  }
  return names;
}

TEST(RocksDb, NoFlagIsUnknown) {
  const std::vector<std::string> names = Names("rocksdb_flags.txt");
  ASSERT_GT(names.size(), 400u);
  for (const std::string& name : names) {
    std::string program = "db_bench", argument = "--" + name + "=0";
    char* arguments[] = {program.data(), argument.data(), nullptr};
    Flags flags;
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    (void)ParseFlags(2, arguments, &flags);
    (void)testing::internal::GetCapturedStdout();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_FALSE(Contains(said, "unknown flag")) << said;
  }
}

TEST(RocksDb, NoBenchmarkIsUnknown) {
  const std::vector<std::string> names = Names("rocksdb_benchmarks.txt");
  ASSERT_GT(names.size(), 80u);
  for (const std::string& name : names) {
    EXPECT_NE(FindWorkload(name) != nullptr, WhyNoWorkload(name) != nullptr) << name;
  }
}

TEST(RangeDeletions, AreDueAsInRocksDB) {
  RangeDeletions ranges;
  EXPECT_FALSE(ranges.DueAt(0) || ranges.DueAt(1));
  ranges.writes_between = 10;
  ranges.writes_before = 5;
  ranges.most = 2;
  std::string due;
  for (int64_t writes = 1; writes <= 100; ++writes) {
    if (ranges.DueAt(writes)) due += std::to_string(writes) + " ";
  }
  EXPECT_EQ(due, "15 25 ");
}

// Of engines that are not installed nothing is asked.
class RocksDbFlags : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    Flags flags;
    std::unique_ptr<Driver> driver;
    if (const Status status = MakeDriver(GetParam(), flags, &driver); !status.ok()) GTEST_SKIP() << status.ToString();
  }
  // Values are compared with what was put, but for those that merge operators make.
  std::string Bench(const std::string& arguments) {
    const std::string verify = Contains(arguments, "merge_operator") ? "" : "--verify=true ";
    const test::ProgramResult result =
        test::RunProgram(BRAIDDB_DB_BENCH, "--db=" + directory_.File("db") + " --engine=" + GetParam() + " --seed=1 --num=1000 " +
                                               verify + arguments);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return result.output;
  }
  unsigned Found(const std::string& output, const char* benchmark) {
    const std::string line = LineOf(output, benchmark);
    unsigned found = 0;
    const size_t bracket = line.find('(');
    EXPECT_TRUE(bracket != std::string::npos && std::sscanf(line.c_str() + bracket, "(%u of ", &found) == 1) << output;
    return found;
  }

  test::TestDirectory directory_;
};

// put: the operand is the value; stringappend: values are longer than operands. Keys are the first ten.
TEST_P(RocksDbFlags, MergesByTheOperatorOfThatName) {
  std::string output = Bench("--merge_operator=put --merge_keys=10 --benchmarks=mergerandom,readseq,readrandommergerandom");
  EXPECT_EQ(Operations(output, "mergerandom"), 1000u);
  EXPECT_EQ(Operations(output, "readseq"), 10u);
  EXPECT_TRUE(Contains(LineOf(output, "readrandommergerandom"), " maxlength:100)")) << output;
  output = Bench("--merge_operator=stringappend --merge_keys=1 --value_size=1 --benchmarks=mergerandom,readseq --writes=50");
  EXPECT_EQ(Operations(output, "mergerandom"), 50u);
  output = Bench("--merge_operator=max --benchmarks=fillseq,readwhilemerging,seekrandomwhilemerging --reads=300 --threads=2");
  EXPECT_EQ(Found(output, "readwhilemerging"), 600u);
  EXPECT_EQ(Found(output, "seekrandomwhilemerging"), 600u);
}

TEST_P(RocksDbFlags, OpensForReadingOnly) {
  Bench("--benchmarks=fillseq");
  for (const char* families : {"", " --num_column_families=1"}) {
    EXPECT_EQ(Found(Bench(std::string("--use_existing_db --readonly --benchmarks=readrandom") + families), "readrandom"), 1000u);
  }
  const auto refused = test::RunProgram(BRAIDDB_DB_BENCH, "--db=" + directory_.File("db") + " --engine=" + GetParam() +
                                                              " --use_existing_db --readonly --benchmarks=overwrite");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(Contains(refused.output, "put error: ")) << refused.output;
}

// Three ranges of a hundred keys at most, by one deletion or by many.
TEST_P(RocksDbFlags, DeletesRanges) {
  for (const char* how : {"", " --expand_range_tombstones"}) {
    const std::string output =
        Bench(std::string("--writes_per_range_tombstone=100 --writes_before_delete_range=700 --max_num_range_tombstones=3 "
                          "--range_tombstone_width=50 --benchmarks=fillseq,readseq") +
              how);
    EXPECT_EQ(Operations(output, "fillseq"), 1000u);
    EXPECT_LT(Operations(output, "readseq"), 1000u) << how;
    EXPECT_GE(Operations(output, "readseq"), 850u) << how;
  }
}

TEST_P(RocksDbFlags, SeekrandomStaysWithinItsDistance) {
  const std::string common = "--use_existing_db --benchmarks=seekrandom --seek_nexts=20 --reads=200 ";
  Bench("--benchmarks=fillseq");
  EXPECT_EQ(Found(Bench(common + "--max_scan_distance=5 --explicit_snapshot"), "seekrandom"), 200u);
  EXPECT_EQ(Found(Bench(common + "--max_scan_distance=5 --reverse_iterator"), "seekrandom"), 200u);
  EXPECT_EQ(Found(Bench(common + "--seek_missing_prefix"), "seekrandom"), 0u);
  const std::string after = Bench("--use_existing_db --benchmarks=seekrandom,readseq --reads=1000 --seek_nexts_to_delete=2");
  EXPECT_LT(Operations(after, "readseq"), 500u);
}

// All but four of the writer's keys are as they were, and it does not end before its writes.
TEST_P(RocksDbFlags, TheWriterBesideReadersIsTold) {
  const std::string output =
      Bench("--benchmarks=readwhilewriting,readseq --reads=1 --writes=3000 --finish_after_writes --bgwriter_num=4");
  EXPECT_TRUE(Contains(output, "Exiting the writer after 3000 writes...\n")) << output;
  EXPECT_EQ(Operations(output, "readseq"), 1u) << "--reads counts there too";
  EXPECT_EQ(Operations(Bench("--use_existing_db --benchmarks=readseq"), "readseq"), 4u);
}

TEST_P(RocksDbFlags, MoreOfReadsAndWritesCounts) {
  const std::string output = Bench("--benchmarks=updaterandom,readrandomwriterandom --reads=100 --writes=300");
  EXPECT_EQ(Operations(output, "updaterandom"), 300u);
  EXPECT_TRUE(Contains(LineOf(output, "readrandomwriterandom"), "( reads:270 writes:30 total:300 ")) << output;
}

TEST_P(RocksDbFlags, TheLogIsSwitchedOffWhereThatIsPossible) {
  const std::string output = Bench("--disable_wal --benchmarks=fillseq");
  const bool rocksdb = std::string(GetParam()) == "rocksdb";
  EXPECT_EQ(Contains(output, "note: --disable_wal has no effect but on rocksdb"), !rocksdb) << output;
  EXPECT_EQ(Contains(output, "survives: nothing, until it is flushed: there is no log (--disable_wal)"), rocksdb) << output;
}

TEST_P(RocksDbFlags, RepeatsWithIntervalsOnly) {
  const std::string output = Bench("--confidence_interval_only --benchmarks=fillseq,readrandom[X3]");
  EXPECT_TRUE(Contains(output, "readrandom [CI95 3 runs] : (")) << output;
  EXPECT_FALSE(Contains(output, "readrandom [AVG 2 runs]")) << output;
}

INSTANTIATE_TEST_SUITE_P(All, RocksDbFlags, testing::Values("braiddb", "rocksdb"));

class GFlags : public testing::Test {
 protected:
  test::ProgramResult Bench(const std::string& arguments) {
    return test::RunProgram(BRAIDDB_DB_BENCH, "--db=" + directory_.File("db") + " --num=100 " + arguments);
  }

  test::TestDirectory directory_;
};

TEST_F(GFlags, SwitchesAreTrueAndFalseInItsWays) {
  for (const char* yes : {"=t", "=T", "=y", "=yes", "=1", "=true", "=TRUE", ""}) {
    const auto result = Bench(std::string("--benchmarks=fillseq --histogram") + yes);
    EXPECT_TRUE(result.exit_code == 0 && Contains(result.output, "Percentiles: ")) << yes << result.output;
  }
  for (const char* no : {"=f", "=N", "=no", "=0", "=False"}) {
    const auto result = Bench(std::string("--benchmarks=fillseq --histogram") + no);
    EXPECT_TRUE(result.exit_code == 0 && !Contains(result.output, "Percentiles: ")) << no << result.output;
  }
}

TEST_F(GFlags, FlagsComeFromFiles) {
  const std::string inner = directory_.File("inner"), outer = directory_.File("outer");
  std::ofstream(inner) << "-reads=7\n";
  std::ofstream(outer) << "# a comment\n\n  --benchmarks=fillseq,readrandom\r\n--reads=5\n--flagfile=" << inner << "\n";
  for (const char* form : {"--flagfile=", "-flagfile "}) {
    const auto result = Bench(form + outer);
    ASSERT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(Operations(result.output, "readrandom"), 7u);
  }
  EXPECT_EQ(Operations(Bench("--flagfile=" + outer + " --reads=9").output, "readrandom"), 9u);
  std::ofstream(inner) << "--flagfile=" << inner << "\n";
  EXPECT_EQ(Bench("--flagfile=" + inner).exit_code, 1);
}

TEST_F(GFlags, HelpAndVersionEndTheProgram) {
  const auto version = Bench("--version");
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_TRUE(version.output.starts_with("db_bench version ")) << version.output;
  EXPECT_TRUE(Contains(Bench("--helpfull").output, "--merge_operator"));
}

}  // namespace
}  // namespace braiddb::bench
