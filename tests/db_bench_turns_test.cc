// Turns of engines in processes of their own: crashes, failures, what comes back from them; and which way round ratios are.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "db_bench/observation.h"
#include "db_bench/result_stream.h"
#include "db_bench/results.h"
#include "tests/support/db_bench_program.h"
#include "tests/support/db_test_util.h"

namespace braiddb::bench {
namespace {

using test::Contains;
using test::LineOf;
using test::Operations;

class Turns : public testing::Test {
 protected:
  test::ProgramResult Bench(const std::string& arguments) {
    return test::RunProgram(BRAIDDB_DB_BENCH,
                            "--db=" + directory_.File("db") + " --seed=1 --num=1000 --verify=true " + arguments);
  }
  nlohmann::json Json() {
    std::ifstream file(json_);
    return nlohmann::json::parse(file);
  }

  test::TestDirectory directory_;
  const std::string json_ = directory_.File("r.json");
};

// Of just each run, if it was asked for; a put has one fence.
TEST_F(Turns, WritesToPersistentMemoryAreCountedIfAskedFor) {
  const std::string arguments = "--benchmarks=fillseq,readrandom,overwrite --disable_auto_compactions --json=" + json_;
  auto result = Bench(arguments + " --count_pm_writes");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto counted = Json();
  EXPECT_EQ(counted["flags"]["count_pm_writes"], "true");
  for (const size_t write : {0u, 2u}) {
    const auto& counters = counted["runs"][write]["counters"];
    const auto lines = counters["pm_written_lines"].get<uint64_t>(), xp_lines = counters["pm_written_xplines"].get<uint64_t>();
    EXPECT_GE(counters["pm_fences"], 1000);
    EXPECT_LT(counters["pm_fences"], 1100) << "a segment costs a few";
    EXPECT_GE(64 * lines, counters["log_bytes"].get<uint64_t>());
    EXPECT_TRUE(xp_lines >= 1000 && xp_lines <= lines && lines <= 4 * xp_lines) << lines << " " << xp_lines;
  }
  EXPECT_EQ(counted["runs"][1]["counters"]["pm_written_lines"], 0);
  result = Bench(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_FALSE(Json()["runs"][0]["counters"].contains("pm_fences"));
}

// Threads that only read are processes, and what they did is in the results. The others stay threads.
TEST_F(Turns, ReadersCanBeProcesses) {
  for (const std::string engine : {"braiddb", "braiddb --num_column_families=3", "lmdb", "lmdb --num_column_families=3"}) {
    SCOPED_TRACE(engine);
    const auto result =
        Bench("--engine=" + engine + " --reader_processes=3 --threads=2 --seek_nexts=5 --histogram --json=" + json_ +
              " --benchmarks=fillseq,readrandom,multireadrandom,readrandomfast,readmissing,seekrandom,readseq,"
              "readreverse,newiterator,ycsb_c,readwhilewriting,seekrandomwhilewriting,updaterandom");
    if (Contains(result.output, "is not built in")) continue;
    ASSERT_EQ(result.exit_code, 0) << result.output;
    EXPECT_TRUE(Contains(result.output, "Readers:    3 processes")) << result.output;
    const auto json = Json();
    ASSERT_EQ(json["runs"].size(), 13u);
    for (const auto& run : json["runs"]) {
      const std::string benchmark = run["benchmark"];
      SCOPED_TRACE(benchmark);
      const bool writes = benchmark == "fillseq" || benchmark == "updaterandom";
      const bool is_beside = Contains(benchmark, "whilewriting");
      EXPECT_EQ(run["threads"], writes ? 2 : is_beside ? 4 : 3);
      EXPECT_EQ(run.contains("reader_processes"), !writes);
      EXPECT_TRUE(is_beside || !run.contains("background_ops_per_second"));
      if (writes) continue;
      EXPECT_EQ(run["reader_processes"], 3);
      if (engine == "braiddb" || engine == "lmdb") {
        EXPECT_EQ(run["operations"], 3000);
      }
      EXPECT_GT(run["ops_per_second"], 0);
      EXPECT_GT(run["user_seconds"].get<double>() + run["system_seconds"].get<double>(), 0);
      if (benchmark == "readrandom" || benchmark == "readmissing") {
        EXPECT_EQ(run["found"], benchmark == "readmissing" ? 0 : 3000);
      }
    }
  }
}

TEST_F(Turns, ReaderProcessesThatCannotBeAreErrors) {
  auto result = Bench("--reader_processes=1 --readonly --use_existing_db --benchmarks=readrandom");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_TRUE(Contains(result.output, "--reader_processes excludes --readonly")) << result.output;
  result = Bench("--engine=null --reader_processes=1 --benchmarks=readrandom");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_TRUE(Contains(result.output, "--reader_processes is refused: db_bench can do it with braiddb and lmdb only"))
      << result.output;
  result = Bench("--engine=braiddb:nv_tree --reader_processes=2 --benchmarks=fillseq,readrandom,readseq");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_TRUE(Contains(result.output, "open for reading error: ")) << result.output;
  EXPECT_TRUE(LineOf(result.output, "readseq").empty()) << result.output;
}

// Pages are not counted, and nothing says that none were written.
TEST_F(Turns, WhatIsNotCountedIsNotThere) {
  const auto result = Bench("--persist_mode=page --benchmarks=fillseq --count_pm_writes --json=" + json_);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_FALSE(Json()["runs"][0]["counters"].contains("pm_written_lines"));
}

// Of any round: a removal behind an earlier one has not left a library that waits for threads which ended with their process.
TEST_F(Turns, EveryRoundHasBackgroundWork) {
  if (!Contains(Bench("--engines=help").output, "RocksDB (")) GTEST_SKIP() << "no librocksdb";
  const auto result = test::RunProgram("timeout 400 " BRAIDDB_DB_BENCH,
                                       "--engines=null,rocksdb --rounds=3 --benchmarks=fillrandom,waitforcompaction --num=20000 "
                                       "--rocksdb_options=write_buffer_size=65536 --db=" +
                                           directory_.File("db") + " --json=" + json_);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(Json()["runs"].size(), 2u * 2 * 3);
}

// Nothing is lost, and what the next process has to replay shows that the one before did not close.
// One engine too can have rounds, each with a database of its own, of which the last one stays.
TEST_F(Turns, OneEngineHasRoundsIfAskedFor) {
  auto result = Bench("--rounds=3 --benchmarks=fillseq,readrandom --json=" + json_);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(Json()["runs"].size(), 3u * 2);
  EXPECT_EQ(Json()["runs"][5]["round"], 2);
  EXPECT_EQ(Json()["flags"]["rounds"], "3");
  EXPECT_TRUE(Contains(result.output, "Medians; ")) << result.output;
  result = Bench("--use_existing_db --benchmarks=readrandom --json=" + json_);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(Json()["flags"]["rounds"], "1");
  EXPECT_TRUE(Contains(result.output, "(1000 of 1000 found)")) << result.output;
}

// The user's files may lie where the database is made and removed.
TEST_F(Turns, FilesOfOthersStay) {
  // The second one is the directory that db_bench gives to the first of two engines.
  const std::string files[] = {directory_.File("db") + "/notes/of.txt", directory_.File("db") + "/0-braiddb/of.txt"};
  for (const std::string& file : files) {
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    test::WriteFileOrDie(file, "mine");
  }
  EXPECT_EQ(Bench("--rounds=3 --benchmarks=fillseq").exit_code, 0);
  EXPECT_EQ(Bench("--engines=braiddb,null --benchmarks=fillseq").exit_code, 0);
  EXPECT_NE(Bench("--rounds=2 --benchmarks=fillseq --segment_size=1").exit_code, 0);
  for (const std::string& file : files) EXPECT_EQ(test::ReadFileOrDie(file), "mine");
}

TEST_F(Turns, LostOutputIsAnError) {
  for (const char* to : {" >/dev/full", " >&-"}) {
    const auto result = test::RunProgram(
        "sh -c '" BRAIDDB_DB_BENCH " --num=10 --benchmarks=fillseq --db=" + directory_.File("db") + to + "'", "");
    EXPECT_EQ(result.exit_code, 1) << to << result.output;
  }
}

// docs/BENCHMARKING.md, "Injected latencies": gets pay for the nodes that they visit; iterators and memtables do not.
TEST_F(Turns, InjectedLatenciesReachWhatTheHelpSays) {
  const std::string flags =
      " --persist_mode=emulated --emulate_read_latency_ns=1 --lookup_cache_size=0 --bloom_bits=0 --l1_index_size=0 "
      "--disable_auto_compactions --json=" +
      json_;
  for (const char* l1 : {"braided_skiplist", "nv_tree", "sorted_runs"}) {
    SCOPED_TRACE(l1);
    const auto result =
        Bench(std::string("--benchmarks=fillseq,readrandom,compact,readrandom,readseq,seekrandom --l1=") + l1 + flags);
    ASSERT_EQ(result.exit_code, 0) << result.output;
    const auto runs = Json()["runs"];
    const auto visits = [&](size_t run) { return runs[run]["counters"]["local_visits"].get<uint64_t>(); };
    EXPECT_EQ(visits(1), 0u) << "in the memtable";
    EXPECT_GE(visits(3), 1000u) << "at least the entry of each";
    EXPECT_EQ(visits(4), 0u) << "readseq";
    EXPECT_EQ(visits(5), 0u) << "seekrandom";
  }
  const std::string help = Bench("--help").output;
  EXPECT_TRUE(Contains(help, "memtables and merges")) << help;
}

TEST_F(Turns, CrashLeavesARecoveryToTheNextBenchmark) {
  const auto result = Bench("--benchmarks=fillseq,crash,open,readrandom,open --disable_auto_compactions --json=" + json_);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(Contains(LineOf(result.output, "readrandom"), "(1000 of 1000 found)")) << result.output;
  const auto runs = Json()["runs"];
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[1]["benchmark"], "open");
  EXPECT_GE(runs[1]["counters"]["replayed_entries"].get<int>(), 1000);
  EXPECT_GT(runs[1]["counters"]["recovery_us"].get<int>(), 0);
  EXPECT_GE(runs[1]["seconds"].get<double>(), runs[1]["counters"]["recovery_us"].get<double>() / 1e6);
  // Closed in between, so there is nothing to be replayed.
  EXPECT_EQ(runs[3]["benchmark"], "open#2");
  EXPECT_EQ(runs[3]["counters"]["replayed_entries"], 0);
}

TEST_F(Turns, OtherEnginesSurviveACrashToo) {
  const auto result =
      Bench("--engines=braiddb,braiddb:nv_tree,rocksdb,lmdb --rounds=2 --benchmarks=fillseq,crash,open,readrandom");
  if (Contains(result.output, "is not built in")) GTEST_SKIP() << result.output;
  ASSERT_EQ(result.exit_code, 0) << result.output;
  size_t found = 0;
  for (size_t at = 0; (at = result.output.find("(1000 of 1000 found)", at)) != std::string::npos; ++at) ++found;
  EXPECT_EQ(found, 8u) << result.output;
  EXPECT_TRUE(Contains(result.output, "open ms ")) << result.output;
}

// The reads of the second process are not those of the first one.
TEST_F(Turns, BenchmarksBehindACrashDrawAnew) {
  const auto result = Bench("--benchmarks=fillrandom,crash,readrandom");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_FALSE(Contains(LineOf(result.output, "readrandom"), "(1000 of 1000 found)")) << result.output;
}

TEST_F(Turns, OpenMakesTheDatabaseFirst) {
  const auto result = Bench("--benchmarks=open,fillseq,readrandom");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(Operations(result.output, "open"), 1u);
}

// The second of them cannot have its directory, and the third one runs.
TEST_F(Turns, OneThatFailsDoesNotEndTheComparison) {
  std::filesystem::create_directory(directory_.File("db"));
  std::ofstream(directory_.File("db/1-braiddb")) << "a file";
  const auto result = Bench(
      "--engines=null,braiddb:nv_tree,braiddb:braided_skiplist --rounds=2 --benchmarks=fillrandom,readrandom --json=" + json_);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(Contains(result.output, " error: ")) << result.output;
  EXPECT_TRUE(Contains(result.output, "braiddb:nv_tree, round 1: the process ended with exit code 1")) << result.output;
  EXPECT_TRUE(Contains(result.output, "FAILED: braiddb:nv_tree in round 1")) << result.output;
  EXPECT_TRUE(Contains(result.output, "---- null, round 2 of 2")) << result.output;
  EXPECT_TRUE(Contains(result.output, "---- braiddb:braided_skiplist, round 2 of 2")) << result.output;
  EXPECT_FALSE(Contains(result.output, "---- braiddb:nv_tree, round 2 of 2")) << result.output;
  EXPECT_TRUE(Contains(result.output, "readrandom ops/sec ")) << result.output;
  const auto json = Json();
  ASSERT_EQ(json["failures"].size(), 1u);
  EXPECT_EQ(json["failures"][0]["engine"], "braiddb:nv_tree");
  EXPECT_EQ(test::ReadFileOrDie(directory_.File("db/1-braiddb")), "a file");
  std::filesystem::remove(directory_.File("db/1-braiddb"));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.File("db")));
}

// What is seen of a run: user bytes, the engine's counters of just this run, and its state at the end.
TEST_F(Turns, JsonHasStateAndCounters) {
  const auto result = Bench(
      "--key_size=20 --value_size=80 --benchmarks=fillseq,readrandom,readwhilewriting,deleteseq,flush --disable_auto_compactions "
      "--json=" +
      json_);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto runs = Json()["runs"];
  ASSERT_EQ(runs.size(), 5u);
  const auto& fill = runs[0];
  EXPECT_EQ(fill["written_bytes"], 100 * 1000);
  EXPECT_EQ(fill["counters"]["writes"], 1000);
  EXPECT_GE(fill["counters"]["log_bytes"].get<int>(), 100 * 1000);
  const auto& read = runs[1];
  EXPECT_EQ(read["written_bytes"], 0);
  EXPECT_EQ(read["counters"]["writes"], 0);
  EXPECT_EQ(read["counters"]["gets"], 1000);
  EXPECT_EQ(runs[2]["written_bytes"], 100 * runs[2]["counters"]["writes"].get<uint64_t>());  // of the thread that is not reported
  EXPECT_EQ(runs[3]["written_bytes"], 20 * 1000);
  const auto& state = runs[4]["state"];
  const auto names = state["names"].get<std::vector<std::string>>();
  EXPECT_EQ(names.at(0), "seconds");
  const auto at_end = [&](const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name);
    EXPECT_NE(at, names.end()) << name;
    return at == names.end() ? 0 : state["samples"].back()[static_cast<size_t>(at - names.begin())].get<double>();
  };
  EXPECT_GE(at_end("l0_tables"), 1);
  EXPECT_GE(at_end("l0_entries"), 1000);
  EXPECT_EQ(at_end("last_level_entries"), 0);
  for (const char* name : {"process_dram_bytes", "file_bytes", "dram_bytes", "pm_bytes", "segments_pm_bytes", "segments"}) {
    EXPECT_GT(at_end(name), 0) << name;
  }
}

// 20,000 puts a second, and so many operations of YCSB: of all threads.
TEST_F(Turns, RatesAreKept) {
  const auto result = Bench(
      "--threads=2 --duration=1 --benchmarks=fillrandom,ycsb_load,ycsb_a --ycsb_target=4000 --histogram "
      "--sine_write_rate --sine_write_rate_interval_milliseconds=100 --sine_a=0 --sine_d=2320000 --json=" +
      json_);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto runs = Json()["runs"];
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_LE(runs[0]["ops_per_second"].get<double>(), 20000 * 1.2);
  EXPECT_GE(runs[0]["demanded_write_rate"].size(), 2u);
  EXPECT_DOUBLE_EQ(runs[0]["demanded_write_rate"][0][1].get<double>(), 2320000);
  for (const int ycsb : {1, 2}) EXPECT_LE(runs[ycsb]["ops_per_second"].get<double>(), 4000 * 1.1) << runs[ycsb]["benchmark"];
  EXPECT_EQ(runs[1]["operations"], 1000);
  EXPECT_GE(runs[1]["seconds"].get<double>(), 0.24);
}

TEST(Observation, IncreaseIsOfEachFigureByItsName) {
  const std::vector<Figure> increase = Increase({{"a", 3}, {"gone", 1}, {"less", 9}}, {{"new", 5}, {"a", 10}, {"less", 4}});
  ASSERT_EQ(increase.size(), 3u);
  EXPECT_EQ(increase[0].value, 5u);
  EXPECT_EQ(increase[1].value, 7u);
  EXPECT_EQ(increase[2].value, 0u);
}

TEST(ResultStream, WhatIsReadIsWhatWasWritten) {
  Result result;
  result.engine = "an engine";
  result.round = 2;
  result.benchmark = "readrandom#2";
  result.threads = 7;
  result.measured.operations = 11;
  result.measured.seconds = 1.25;
  result.measured.found = 3;
  result.measured.message = "said";
  for (int i = 0; i < 1000; ++i) result.measured.latencies_ns[1].Add(static_cast<uint64_t>(i));
  result.measured.cpu_seconds = 2.5;
  result.measured.settled_seconds = 3.5;
  result.measured.settled_cpu_seconds = 4.5;
  result.measured.background_ops_per_second = 5.5;
  result.measured.verified = 31;
  result.huge_page_bytes = 37;
  result.written = 13;
  result.samples.Add(0.5, 17, {{"dram_bytes", 19}, {"l0_tables", 0}});
  result.samples.Add(0.6, 18, {{"dram_bytes", 20}, {"l0_tables", 1}});
  result.counters = {{"writes", 23}};
  result.demands = {{0.25, 100}};
  std::FILE* const file = std::tmpfile();
  ASSERT_TRUE(WriteResult(result, file));
  ASSERT_TRUE(WriteResult(Result(), file));
  const long end = std::ftell(file);
  std::rewind(file);
  const std::optional<Result> read = ReadResult(file);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->engine, "an engine");
  EXPECT_EQ(read->round, 2u);
  EXPECT_EQ(read->benchmark, "readrandom#2");
  EXPECT_EQ(read->threads, 7u);
  EXPECT_EQ(read->measured.operations, 11u);
  EXPECT_EQ(read->measured.seconds, 1.25);
  EXPECT_EQ(read->measured.found, 3u);
  EXPECT_EQ(read->measured.message, "said");
  EXPECT_EQ(read->measured.latencies_ns[1].ToString(), result.measured.latencies_ns[1].ToString());
  EXPECT_EQ(read->measured.cpu_seconds, 2.5);
  EXPECT_EQ(read->measured.settled_seconds, 3.5);
  EXPECT_EQ(read->measured.settled_cpu_seconds, 4.5);
  EXPECT_EQ(read->measured.background_ops_per_second, 5.5);
  EXPECT_EQ(read->measured.verified, 31u);
  EXPECT_EQ(read->huge_page_bytes, 37u);
  EXPECT_EQ(read->written, 13u);
  EXPECT_EQ(read->samples.names, (std::vector<std::string>{"dram_bytes", "l0_tables"}));
  ASSERT_EQ(read->samples.list.size(), 2u);
  EXPECT_EQ(read->samples.list[0].operations, 17u);
  EXPECT_EQ(read->samples.list[0].seconds, 0.5);
  EXPECT_EQ(read->samples.list[1].state, (std::vector<uint64_t>{20, 1}));
  EXPECT_EQ(read->counters.at(0).value, 23u);
  EXPECT_EQ(read->demands.at(0).rate, 100);
  ASSERT_TRUE(ReadResult(file));
  EXPECT_FALSE(ReadResult(file));
  // A writer that was killed in the middle.
  ASSERT_EQ(ftruncate(fileno(file), end - 1), 0);
  std::rewind(file);
  EXPECT_TRUE(ReadResult(file));
  EXPECT_FALSE(ReadResult(file));
  std::fclose(file);
}

Result ResultOf(const std::string& engine, const std::string& benchmark, uint64_t operations, double seconds,
                uint64_t latency_ns) {
  Result result;
  result.engine = engine;
  result.benchmark = benchmark;
  result.measured.operations = operations;
  result.measured.seconds = seconds;
  result.measured.cpu_seconds = 2 * seconds;
  if (benchmark.starts_with("fill")) {
    result.measured.settled_seconds = 4 * seconds;
    result.measured.settled_cpu_seconds = 6 * seconds;
  }
  for (int i = 0; i < 100; ++i) result.measured.latencies_ns[static_cast<size_t>(Operation::kRead)].Add(latency_ns);
  return result;
}

// The words behind the title of a row of the comparison.
std::string Row(const std::string& output, const std::string& title) {
  const size_t at = output.find("\n" + title);
  if (at == std::string::npos) return "no row " + title + " in\n" + output;
  std::istringstream words(output.substr(at + 1 + title.size(), output.find('\n', at + 1) - at - 1 - title.size()));
  std::string row;
  for (std::string word; words >> word;) row += (row.empty() ? "" : " ") + word;
  return row;
}

// The first engine is twice as fast, takes half the time, and a quarter of the latency; and the other way round.
TEST(Comparison, RatiosSayHowManyTimesBetterTheFirstIs) {
  EXPECT_EQ(TimesBetter(2000, 1000, true), 2);
  EXPECT_EQ(TimesBetter(1000, 2000, true), 0.5);
  EXPECT_EQ(TimesBetter(10, 20, false), 2);
  EXPECT_EQ(TimesBetter(20, 10, false), 0.5);
  EXPECT_EQ(TimesBetter(0, 10, false), 0);
  EXPECT_EQ(TimesBetter(10, 0, true), 0);
  const std::vector<Result> results = {
      ResultOf("fast", "readrandom", 2000, 1, 1024), ResultOf("slow", "readrandom", 1000, 1, 4096),
      ResultOf("fast", "compact", 1, 0.010, 0),      ResultOf("slow", "compact", 1, 0.020, 0),
      ResultOf("fast", "fillrandom", 2000, 1, 0),    ResultOf("slow", "fillrandom", 1000, 1, 0)};
  testing::internal::CaptureStdout();
  PrintComparison({"fast", "slow"}, results, {});
  const std::string forward = testing::internal::GetCapturedStdout();
  EXPECT_EQ(Row(forward, "readrandom ops/sec"), "2000 1000 ( 2.00 x)");
  EXPECT_EQ(Row(forward, "compact ms"), "10.00 20.00 ( 2.00 x)");
  EXPECT_EQ(Row(forward, "  P99.9 of read, us"), "1.02 4.10 ( 4.00 x)");
  EXPECT_EQ(Row(forward, "  CPU us/op"), "1000.00 2000.00 ( 2.00 x)");
  EXPECT_EQ(Row(forward, "  settled ops/sec"), "500 250 ( 2.00 x)");
  EXPECT_EQ(Row(forward, "  CPU us/op, settled"), "3000.00 6000.00 ( 2.00 x)");
  testing::internal::CaptureStdout();
  PrintComparison({"slow", "fast"}, results, {{"fast", 1, "was ended by signal 9"}});
  const std::string backward = testing::internal::GetCapturedStdout();
  EXPECT_EQ(Row(backward, "readrandom ops/sec"), "1000 2000 ( 0.50 x)");
  EXPECT_EQ(Row(backward, "compact ms"), "20.00 10.00 ( 0.50 x)");
  EXPECT_EQ(Row(backward, "  P99.9 of read, us"), "4.10 1.02 ( 0.25 x)");
  EXPECT_TRUE(Contains(backward, "FAILED: fast in round 2: its process was ended by signal 9")) << backward;
}

}  // namespace
}  // namespace braiddb::bench
