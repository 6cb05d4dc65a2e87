// db_bench as a program: what RocksDB's users type works or says why not, and the output is what their scripts read.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "tests/support/db_test_util.h"

namespace braiddb {
namespace {

struct Result {
  int exit_code;
  std::string output;  // stdout and stderr
};

Result RunProgram(const std::string& arguments) {
  Result result;
  std::FILE* pipe = popen((std::string(BRAIDDB_DB_BENCH) + " " + arguments + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer;
  while (const size_t bytes = fread(buffer.data(), 1, buffer.size(), pipe)) result.output.append(buffer.data(), bytes);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

// The result line of a benchmark, its name taken off; empty if there is none.
std::string LineOf(const std::string& output, const std::string& name) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name) && line.find(" : ") != std::string::npos) return line.substr(line.find(" : ") + 3);
  }
  return {};
}

const std::regex kLine(R"( +[0-9.]+ micros/op [0-9]+ ops/sec [0-9.]+ seconds ([0-9]+) operations;.*)");

uint64_t Operations(const std::string& output, const std::string& name) {
  const std::string line = LineOf(output, name);
  std::smatch match;
  if (!std::regex_match(line, match, kLine)) {
    ADD_FAILURE() << "no line of " << name << " in:\n" << output;
    return 0;
  }
  return std::stoull(match[1]);
}

class DbBench : public testing::Test {
 protected:
  Result Bench(const std::string& arguments) {
    return RunProgram("--db=" + directory_.File("db") + " --seed=1 --num=1000 " + arguments);
  }

  test::TestDirectory directory_;
};

TEST_F(DbBench, EveryBenchmarkRunsAndReports) {
  const std::string all =
      "fillseq,fillbatch,fillrandom,filluniquerandom,fillsync,fill100K,overwrite,readrandom,readmissing,multireadrandom,readseq,"
      "readreverse,seekrandom,readwhilewriting,readrandomwriterandom,deleteseq,deleterandom,flush,compact,waitforcompaction,"
      "stats,levelstats,pmappend,pmread";
  const Result result = Bench("--threads=2 --regions=2 --benchmarks=" + all);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  for (const char* name : {"fillseq", "fillrandom", "overwrite", "readrandom", "readmissing", "multireadrandom",
                           "readwhilewriting", "deleteseq", "deleterandom", "pmappend", "pmread"}) {
    EXPECT_EQ(Operations(result.output, name), 2000u) << name;  // counts are per thread
  }
  EXPECT_EQ(Operations(result.output, "filluniquerandom"), 1000u);
  EXPECT_EQ(Operations(result.output, "fillsync"), 2u);
  EXPECT_EQ(Operations(result.output, "compact"), 1u);
  EXPECT_NE(result.output.find("Keys:       16 bytes each\n"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(directory_.File("db")));
  EXPECT_FALSE(std::filesystem::exists(directory_.File("db.pm")));  // the regions of pmappend and pmread
}

TEST_F(DbBench, FindsWhatItWroteAndKeepsItForTheNextRun) {
  Result result = Bench("--benchmarks=fillseq,readrandom,readmissing,readseq");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(LineOf(result.output, "readrandom").find("(1000 of 1000 found)"), std::string::npos) << result.output;
  EXPECT_NE(LineOf(result.output, "readmissing").find("(0 of 1000 found)"), std::string::npos) << result.output;
  EXPECT_EQ(Operations(result.output, "readseq"), 1000u);

  result = Bench("--use_existing_db --benchmarks=fillseq,readrandom,seekrandom --reads=500 --seek_nexts=3");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("fillseq      : skipped (--use_existing_db is true)\n"), std::string::npos);
  EXPECT_NE(LineOf(result.output, "readrandom").find("(500 of 500 found)"), std::string::npos) << result.output;
  EXPECT_NE(LineOf(result.output, "seekrandom").find("(500 of 500 found)"), std::string::npos) << result.output;

  // A random fill leaves about 63 % of the keys.
  result = Bench("--benchmarks=fillrandom,readrandom");
  std::smatch match;
  const std::string line = LineOf(result.output, "readrandom");
  ASSERT_TRUE(std::regex_search(line, match, std::regex("\\(([0-9]+) of 1000 found\\)"))) << result.output;
  EXPECT_NEAR(std::stoi(match[1]), 632, 60);
}

TEST_F(DbBench, PrintsHistogramsIntervalsAndReportFile) {
  const std::string csv = directory_.File("report.csv");
  const Result result = Bench(
      "--benchmarks=fillrandom --histogram --stats_interval=400 --duration=2 --statistics "
      "--report_interval_seconds=1 --report_file=" +
      csv);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("Microseconds per write:\nCount: "), std::string::npos);
  EXPECT_TRUE(std::regex_search(result.output, std::regex("Percentiles: P50: .* P75: .* P99: .* P99.9: .* P99.99: ")));
  EXPECT_TRUE(std::regex_search(result.output, std::regex("thread 0: \\(400,400\\) ops and ")));
  EXPECT_NE(result.output.find("STATISTICS:\nbraiddb.writes COUNT : "), std::string::npos);
  std::ifstream file(csv);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_EQ(line, "secs_elapsed,interval_qps");
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_TRUE(std::regex_match(line, std::regex("1,[0-9]+"))) << line;
}

TEST_F(DbBench, SaysWhyNot) {
  const struct {
    const char* arguments;
    const char* message;
  } cases[] = {
      {"--benchmarks=nosuch", "unknown benchmark 'nosuch'"},
      {"--nosuch=1", "unknown flag --nosuch"},
      {"--num=many", "'many'"},
      {"--num=-5", "--num=-5 is not between"},
      {"--threads=0", "--threads=0 is not between"},
      {"--key_size=0", "--key_size=0 is not between"},
      {"--persist_mode=none", "--persist_mode=none is none of"},
      {"--num_column_families=3", "column families are not supported"},
      {"stray", "'stray' is not of the form"},
      {"--use_existing_db --benchmarks=readrandom", "open error: "},
      {"--report_interval_seconds=1 --report_file=/nonexistent/r.csv", "cannot create --report_file=/nonexistent/r.csv"},
  };
  for (const auto& bad : cases) {
    const Result result = Bench(bad.arguments);
    EXPECT_EQ(result.exit_code, 1) << bad.arguments;
    EXPECT_NE(result.output.find(bad.message), std::string::npos) << bad.arguments << "\n" << result.output;
  }
}

TEST_F(DbBench, TakesRocksDBsFlags) {
  const Result result = Bench(
      "-benchmarks=fillrandom,readrandom --compression_type=none --bloom_bits 10 --disable_wal=true --cache_size=8388608 "
      "--write_buffer_size=1048576 --num_column_families=1 --nohistogram --verify_checksum --max_background_jobs=4 --threads 1");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("note: --bloom_bits has no effect: there are no filters\n"), std::string::npos) << result.output;
  EXPECT_EQ(Operations(result.output, "readrandom"), 1000u);
  EXPECT_EQ(RunProgram("--help").exit_code, 0);
  EXPECT_EQ(RunProgram("--benchmarks=help").exit_code, 0);
}

}  // namespace
}  // namespace braiddb
