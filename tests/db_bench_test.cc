// db_bench as a program: what RocksDB's users type works or says why not, and the output is what their scripts read.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "db_bench/worker.h"
#include "db_bench/zipf.h"
#include "tests/support/db_bench_program.h"
#include "tests/support/db_test_util.h"

namespace braiddb {
namespace {

using test::Contains;
using test::LineOf;
using test::Operations;

using Result = test::ProgramResult;

Result RunProgram(const std::string& arguments) { return test::RunProgram(BRAIDDB_DB_BENCH, arguments); }

// Against the law itself: shares of the first ranks and of all ranks up to some.
TEST(Zipf, DrawsFollowTheLaw) {
  constexpr uint64_t kKeys = 10000;
  constexpr int kDraws = 400000;
  for (const double exponent : {0.5, 0.99, 1.0, 1.5}) {
    SCOPED_TRACE(exponent);
    const bench::ZipfDistribution zipf(kKeys, exponent);
    Random random(7);
    std::vector<int> counts(kKeys + 1);
    for (int i = 0; i < kDraws; ++i) ++counts.at(zipf.DrawRank(&random));
    EXPECT_EQ(counts[0], 0);
    double all = 0;
    for (uint64_t k = 1; k <= kKeys; ++k) all += std::pow(static_cast<double>(k), -exponent);
    double share = 0, drawn = 0;
    for (uint64_t k = 1; k <= kKeys; ++k) {
      share += std::pow(static_cast<double>(k), -exponent) / all;
      drawn += static_cast<double>(counts[k]) / kDraws;
      // Six standard deviations of a sum of so many draws.
      if (k > 3 && k % 1000 != 0) continue;
      EXPECT_NEAR(drawn, share, 6 * std::sqrt(std::fabs(share * (1 - share)) / kDraws) + 1e-9) << k;
    }
  }
}

TEST(Zipf, RanksGoToDifferentNumbers) {
  for (const uint64_t keys : {1u, 2u, 3u, 10u, 1000u}) {
    const bench::ZipfDistribution zipf(keys, 0.01);
    Random random(7);
    std::set<uint64_t> seen;
    for (int i = 0; i < 20000; ++i) seen.insert(zipf.Draw(&random));
    EXPECT_EQ(seen.size(), keys);
    EXPECT_LT(*seen.rbegin(), keys);
  }
}

// What YCSB's operations are drawn from: keys of records, by the law, and a percentage for each, alike and whatever the key.
TEST(YcsbDraws, AreKeysOfRecordsByTheLaw) {
  constexpr uint64_t kRecords = 1000, kDraws = 400000;
  for (const uint64_t key_size : {8u, 4u}) {
    SCOPED_TRACE(key_size);
    bench::Flags flags;
    flags.num = kRecords;
    flags.reads = kDraws;
    flags.key_size = key_size;
    flags.zipf = 0.99;
    flags.ycsb_scrambled = false;
    const bench::Draws draws = bench::DrawYcsbKeys(flags, 7);
    ASSERT_EQ(draws.keys.size(), kDraws);
    ASSERT_EQ(draws.percents.size(), kDraws);
    std::map<uint64_t, uint64_t> drawn;  // by key
    for (uint64_t record = 0; record < kRecords; ++record) drawn[bench::YcsbKey(flags, record)] = 0;
    ASSERT_EQ(drawn.size(), kRecords);
    std::vector<uint64_t> percents(100), percents_of_popular(100);
    for (const uint64_t key : draws.keys) ++drawn.at(key);
    const auto popular =
        std::max_element(drawn.begin(), drawn.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    for (size_t i = 0; i < kDraws; ++i) {
      ++percents.at(draws.percents[i]);
      if (draws.keys[i] == popular->first) ++percents_of_popular[draws.percents[i]];
    }
    double all = 0;
    for (uint64_t k = 1; k <= kRecords; ++k) all += std::pow(static_cast<double>(k), -flags.zipf);
    // Six standard deviations of so many draws each.
    const auto expect_share = [](uint64_t count, uint64_t of, double share) {
      const auto total = static_cast<double>(of);
      EXPECT_NEAR(static_cast<double>(count) / total, share, 6 * std::sqrt(share * (1 - share) / total));
    };
    expect_share(popular->second, kDraws, 1 / all);
    for (uint64_t percent = 0; percent < 100; ++percent) {
      expect_share(percents[percent], kDraws, 0.01);
      expect_share(percents_of_popular[percent], popular->second, 0.01);
    }
  }
}

// As in YCSB, whose items are 10^10 whatever the number of records.
TEST(YcsbDraws, AreAsPopularAsYcsbsRecords) {
  // Of YCSB's Utils.fnvhash64.
  EXPECT_EQ(bench::ScrambledZipf::Hash(0), 6284781860667377211u);
  EXPECT_EQ(bench::ScrambledZipf::Hash(1), 8517097267634966620u);
  EXPECT_EQ(bench::ScrambledZipf::Hash(12345), 1792800413050876852u);
  // Shares of the hottest hundredth of the records and of the hottest one, by 20,000,000 draws of YCSB's generator.
  const struct {
    uint64_t records;
    double hottest_hundredth, hottest;
  } ycsb[] = {{30000, 0.2565, 0.0378}, {100000, 0.3040, 0.0377}};
  for (const auto& [records, hottest_hundredth, hottest] : ycsb) {
    SCOPED_TRACE(records);
    bench::Flags flags;
    flags.num = static_cast<int64_t>(records);
    flags.reads = 2000000;
    flags.key_size = 8;
    flags.zipf = 0.99;
    const auto share_of = [&](uint64_t count) {
      std::vector<uint64_t> keys = bench::DrawYcsbKeys(flags, 7).keys, counts;
      std::sort(keys.begin(), keys.end());
      for (size_t i = 0; i < keys.size(); ++i) {
        if (i == 0 || keys[i] != keys[i - 1]) counts.push_back(0);
        ++counts.back();
      }
      EXPECT_LE(counts.size(), records);
      std::sort(counts.begin(), counts.end(), std::greater<>());
      uint64_t hot = 0;
      for (uint64_t i = 0; i < count; ++i) hot += counts.at(i);
      return static_cast<double>(hot) / static_cast<double>(flags.reads);
    };
    EXPECT_NEAR(share_of(records / 100), hottest_hundredth, 0.005);
    EXPECT_NEAR(share_of(1), hottest, 0.001);
    flags.ycsb_scrambled = false;
    EXPECT_GT(share_of(records / 100), 0.5) << "the law over the records";
  }
}

class DbBench : public testing::Test {
 protected:
  // All values that are read are compared with what was put.
  Result Bench(const std::string& arguments) {
    const std::string verify = Contains(arguments, "merge_operator") ? "" : "--verify=true ";
    return RunProgram("--db=" + directory_.File("db") + " --seed=1 --num=1000 " + verify + arguments);
  }

  test::TestDirectory directory_;
};

TEST_F(DbBench, EveryBenchmarkRunsAndReports) {
  const std::string all =
      "fillseq,fillbatch,fillrandom,filluniquerandom,fillsync,fill100K,overwrite,readrandom,readrandomsmall,"
      "readrandomfast,readmissing,multireadrandom,multireadwhilewriting,readseq,verifychecksum,readreverse,seekrandom,"
      "seekrandomwhilewriting,newiterator,newiteratorwhilewriting,readwhilewriting,readwhilescanning,"
      "readrandomwriterandom,updaterandom,mixgraph,deleteseq,deleterandom,flush,compact,compactall,waitforcompaction,"
      "stats,levelstats,pmappend,pmappendstream,pmread,pmreadindependent,ycsb_load,ycsb_a,ycsb_b,ycsb_c,ycsb_d,ycsb_e,ycsb_f";
  const std::map<std::string, const char*> kinds = {{"braided_skiplist", "braided skiplist, index"},
                                                    {"nv_tree", "NV-Tree, leaves of 4096 bytes: "},
                                                    {"sorted_runs", "sorted runs: "},
                                                    {"hybrid", "hybrid, hash index of "},
                                                    {"lb_tree", "LB+-Tree, leaves of 512 bytes: "}};
  for (const auto& [l1, described] : kinds) {
    const Result result = Bench("--threads=2 --regions=2 --l1=" + l1 + " --benchmarks=" + all);
    ASSERT_EQ(result.exit_code, 0) << result.output;
    for (const char* name : {"fillseq",     "fillrandom",        "overwrite",        "readrandom",
                             "readmissing", "multireadrandom",   "readwhilewriting", "seekrandomwhilewriting",
                             "newiterator", "readwhilescanning", "updaterandom",     "mixgraph",
                             "deleteseq",   "deleterandom",      "pmappend",         "pmappendstream",
                             "pmread",      "pmreadindependent", "ycsb_a",           "ycsb_f"}) {
      EXPECT_EQ(Operations(result.output, name), 2000u) << name;  // counts are per thread
    }
    EXPECT_EQ(Operations(result.output, "filluniquerandom"), 1000u);
    // Of the keys there are fewer.
    EXPECT_EQ(Operations(result.output, "fillsync"), 2000u);
    EXPECT_TRUE(LineOf(result.output, "fillsync").ends_with(" (1 ops)")) << LineOf(result.output, "fillsync");
    EXPECT_EQ(Operations(result.output, "readrandomsmall"), 2u);
    EXPECT_EQ(Operations(result.output, "compact"), 1u);
    EXPECT_TRUE(Contains(result.output, "Keys:       16 bytes each\n"));
    EXPECT_TRUE(Contains(result.output, described)) << result.output;
  }
  EXPECT_TRUE(std::filesystem::exists(directory_.File("db")));
  EXPECT_FALSE(std::filesystem::exists(directory_.File("db.pm")));  // the regions of pmappend and pmread
}

TEST_F(DbBench, FindsWhatItWroteAndKeepsItForTheNextRun) {
  Result result = Bench("--benchmarks=fillseq,readrandom,readmissing,readseq");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(Contains(LineOf(result.output, "readrandom"), "(1000 of 1000 found)")) << result.output;
  EXPECT_TRUE(Contains(LineOf(result.output, "readmissing"), "(0 of 1000 found)")) << result.output;
  EXPECT_EQ(Operations(result.output, "readseq"), 1000u);

  result = Bench("--use_existing_db --benchmarks=fillseq,readrandom,seekrandom --reads=500 --seek_nexts=3");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(Contains(result.output, "fillseq      : skipped (--use_existing_db is true)\n"));
  EXPECT_TRUE(Contains(LineOf(result.output, "readrandom"), "(500 of 500 found)")) << result.output;
  EXPECT_TRUE(Contains(LineOf(result.output, "seekrandom"), "(500 of 500 found)")) << result.output;

  // A random fill leaves about 63 % of the keys.
  result = Bench("--benchmarks=fillrandom,readrandom");
  const std::string line = LineOf(result.output, "readrandom");
  int found = 0;
  ASSERT_TRUE(Contains(line, "(") && std::sscanf(line.c_str() + line.find('('), "(%d of 1000 found)", &found) == 1)
      << result.output;
  EXPECT_NEAR(found, 632, 60);
}

TEST_F(DbBench, PrintsHistogramsIntervalsAndReportFile) {
  const std::string csv = directory_.File("report.csv");
  const Result result = Bench(
      "--benchmarks=fillrandom --histogram --stats_interval=400 --duration=2 --statistics "
      "--report_interval_seconds=1 --report_file=" +
      csv);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(Contains(result.output, "Microseconds per write:\nCount: "));
  for (const char* name : {"Percentiles: P50: ", " P75: ", " P99: ", " P99.9: ", " P99.99: "}) {
    EXPECT_TRUE(Contains(result.output, name)) << name;
  }
  EXPECT_TRUE(Contains(result.output, "thread 0: (400,400) ops and "));
  EXPECT_TRUE(Contains(result.output, "STATISTICS:\nbraiddb.writes COUNT : "));
  std::ifstream file(csv);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_EQ(line, "secs_elapsed,interval_qps");
  ASSERT_TRUE(std::getline(file, line));
  unsigned long long second = 0, rate = 0;
  EXPECT_EQ(std::sscanf(line.c_str(), "%llu,%llu", &second, &rate), 2) << line;
  EXPECT_GE(second, 1u);
}

TEST_F(DbBench, PrintsWhatOperationsCost) {
  const std::string json = directory_.File("r.json");
  Result result = Bench("--benchmarks=fillrandom,readrandom --perf_level=3 --threads=2 --json=" + json);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const size_t reads = result.output.find("readrandom");
  ASSERT_NE(reads, std::string::npos);
  EXPECT_TRUE(Contains(result.output.substr(0, reads), "PERF_CONTEXT:\n")) << result.output;
  EXPECT_TRUE(Contains(LineOf(result.output, "  write_wal_time"), " ns per operation, ")) << result.output;
  // Of all threads together: each get searches the cache once.
  EXPECT_TRUE(Contains(LineOf(result.output.substr(reads), "  lookup_cache_search_count"), " 1.000 per operation, 2000 in all"))
      << result.output;
  EXPECT_TRUE(Contains(test::ReadFileOrDie(json), "\"lookup_cache_search_count\": 2000"));

  // Engines of a comparison are processes of their own.
  result = Bench("--benchmarks=fillrandom,readrandom --rounds=1 --engines=braiddb,braiddb:nv_tree --perf_level=2 --json=" + json);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const std::string both = test::ReadFileOrDie(json);
  const size_t first = both.find("lookup_cache_search_count");
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(both.find("lookup_cache_search_count", first + 1), std::string::npos);

  result = Bench("--benchmarks=fillrandom,readrandom --json=" + json);
  EXPECT_FALSE(Contains(result.output, "PERF_CONTEXT")) << result.output;
  EXPECT_FALSE(Contains(test::ReadFileOrDie(json), "perf_context"));
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
      {"--persist_mode=none", "--persist_mode=none is none of auto, cache-line, eadr, page, emulated"},
      {"--l1=b_tree", "--l1=b_tree is neither"},
      {"--l1=nv_tree --nv_leaf_size=100", "nv_leaf_size must be 512, 1024, 2048 or 4096"},
      {"--benchmarks=randomtransaction",
       "benchmark 'randomtransaction' is not supported: db_bench opens databases without trans"},
      {"--merge_operator=sortlist", "--merge_operator=sortlist is refused"},
      {"--merge_operator=nosuch", "--merge_operator=nosuch is none of put, uint64add"},
      {"--merge_operator=put --engine=leveldb", "--merge_operator is refused: db_bench can do it with braiddb and rocksdb only"},
      {"--readonly --benchmarks=readrandom", "--readonly needs --use_existing_db"},
      {"--seek_missing_prefix --key_size=8", "--seek_missing_prefix needs a --key_size above 8"},
      {"--use_secondary_db", "--use_secondary_db is refused: db_bench does not open secondaries"},
      {"--flagfile=/nonexistent/flags", "--flagfile=/nonexistent/flags cannot be read"},
      {"--benchmarks=readrandom[Y3]", "'readrandom[Y3]' is not of the form"},
      {"--benchmarks=readrandom[X3", "'readrandom[X3' is not of the form"},
      {"--benchmarks=readrandom[X0]", "is not of the form"},
      {"--preset=best", "--preset=best is none of them"},
      {"--engine=oracle", "there is no engine 'oracle'"},
      {"--engine=braiddb:tree", "is neither braiddb:braided_skiplist nor braiddb:nv_tree"},
      {"--mix_get_ratio=0", "must be more than 0"},
      {"--mix_put_ratio=-1", "must not be negative"},
      {"--mix_max_scan_len=0", "--mix_max_scan_len=0 is not between"},
      {"--keyrange_num=1001", "--keyrange_num=1001 is not between 1 and 1000"},
      {"--sine_mix_rate_noise=2", "--sine_mix_rate_noise is not between 0 and 1"},
      {"--ycsb_popularity=few", "--ycsb_popularity is neither"},
      {"--huge_pages=some", "--huge_pages is neither own nor off"},
      {"--rounds=0", "--rounds=0 is not between"},
      {"--num_column_families=0", "--num_column_families=0 is not between 1 and 1021"},
      {"--num_column_families=3 --engine=null", "--num_column_families above 1 is refused: it keeps nothing"},
      {"--num_column_families=3 --engine=leveldb", "--num_column_families above 1 is refused: LevelDB has no column families"},
      {"--num_column_families=3 --engine=dram-checkpoint", "--num_column_families above 1 is refused: it has one index"},
      {"--num_hot_column_families=3", "keys choose among all column families alike"},
      {"stray", "'stray' is not of the form"},
      {"--use_existing_db --benchmarks=readrandom", "open error: "},
      {"--benchmarks=mergerandom", "--merge_operator names none"},
      {"--report_interval_seconds=1 --report_file=/nonexistent/r.csv", "cannot create --report_file=/nonexistent/r.csv"},
      {"--benchmarks=flush --json=/nonexistent/r.json", "cannot create --json=/nonexistent/r.json"},
  };
  for (const auto& bad : cases) {
    const Result result = Bench(bad.arguments);
    EXPECT_EQ(result.exit_code, 1) << bad.arguments;
    EXPECT_TRUE(Contains(result.output, bad.message)) << bad.arguments << "\n" << result.output;
  }
}

TEST_F(DbBench, TakesRocksDBsFlags) {
  const Result result = Bench(
      "-benchmarks=fillrandom,readrandom --compression_type=none --bloom_bits 10 --disable_wal=true --cache_size=8388608 "
      "--write_buffer_size=1048576 --num_column_families=1 --nohistogram --verify_checksum --max_background_jobs=4 --threads 1");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(Contains(result.output,
                       "note: --compression_type has no effect on braiddb: nothing is compressed; "
                       "for rocksdb use --rocksdb_options\n"))
      << result.output;
  EXPECT_FALSE(Contains(result.output, "note: --bloom_bits")) << result.output;
  EXPECT_EQ(Operations(result.output, "readrandom"), 1000u);
  // Where the database is decides what holds; only what does is said.
  EXPECT_TRUE(Contains(result.output, "An acknowledged write survives: ")) << result.output;
  EXPECT_FALSE(Contains(result.output, "on other file systems")) << result.output;
  EXPECT_EQ(RunProgram("--help").exit_code, 0);
  EXPECT_EQ(RunProgram("--benchmarks=help").exit_code, 0);
}

// Any wrong byte of a value, another size and another key's value are found.
TEST(Verify, TellsWhatWasPut) {
  for (const uint64_t size : {0u, 5u, 8u, 13u, 100u}) {
    SCOPED_TRACE(size);
    bench::Flags flags;
    flags.value_size = size;
    flags.verify = true;
    Random random(7);
    bench::ValueMaker maker(flags, &random);
    const std::string value(maker.Make("key"));
    EXPECT_TRUE(bench::IsValueOf("key", value));
    EXPECT_EQ(bench::IsValueOf("other", value), size == 0);
    for (size_t i = 0; i < size; ++i) {
      std::string changed = value;
      changed[i] = static_cast<char>(changed[i] ^ 1);
      EXPECT_FALSE(bench::IsValueOf("key", changed)) << i;
    }
    if (size > 0) {
      EXPECT_FALSE(bench::IsValueOf("key", value.substr(0, size - 1)) && size > 1);
    }
    EXPECT_FALSE(bench::IsValueOf("key", value + "x"));
  }
}

TEST_F(DbBench, VerifyComparesAllValues) {
  const std::string reads = "readrandom,multireadrandom,readseq,readreverse,seekrandom,mixgraph,ycsb_e";
  Result result = Bench("--benchmarks=fillseq," + reads + " --batch_size=10 --seek_nexts=3 --preset=prefix_dist");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(Contains(result.output, "; 1000 values verified)")) << result.output;
  // What was put without --verify is not what verifies.
  result = RunProgram("--db=" + directory_.File("db") + " --num=1000 --benchmarks=fillseq");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_FALSE(Contains(result.output, "verified")) << result.output;
  std::istringstream names(reads);
  for (std::string name; std::getline(names, name, ',');) {
    result = Bench("--use_existing_db --seek_nexts=3 --benchmarks=" + name);
    if (name == "ycsb_e" || name == "mixgraph") continue;  // keys that fillseq does not write, or few of them
    EXPECT_EQ(result.exit_code, 1) << name;
    EXPECT_TRUE(Contains(result.output, "is not what was put")) << name << "\n" << result.output;
  }
  result = RunProgram("--db=" + directory_.File("db") + " --verify --merge_operator=put");
  EXPECT_TRUE(Contains(result.output, "--verify cannot tell what --merge_operator makes of values")) << result.output;
}

// A published workload is whole: its scans, too.
TEST_F(DbBench, PresetsHaveThePublishedShares) {
  constexpr double kOperations = 20000;
  const struct {
    const char* preset;
    double gets, puts, seeks;
  } published[] = {{"prefix_dist", 0.83, 0.14, 0.03}, {"prefix_random", 0.83, 0.14, 0.03}, {"all_dist", 0.83, 0.14, 0.03},
                   {"all_random", 0.83, 0.14, 0.03},  {"zippydb", 0.85, 0.14, 0.01},       {"listdb", 0.7, 0.3, 0}};
  const std::string help = RunProgram("--preset=help").output;
  for (const auto& mix : published) {
    SCOPED_TRACE(mix.preset);
    EXPECT_TRUE(Contains("\n" + help, std::string("\n") + mix.preset + ": ")) << help;
    const Result result =
        Bench(std::string("--preset=") + mix.preset + " --engine=null --reads=20000 --benchmarks=mixgraph --num=100000");
    ASSERT_EQ(result.exit_code, 0) << result.output;
    const std::string line = LineOf(result.output, "mixgraph");
    unsigned gets = 0, puts = 0, seeks = 0;
    const size_t counts = line.find("( Gets:");
    ASSERT_NE(counts, std::string::npos) << line;
    ASSERT_EQ(std::sscanf(line.c_str() + counts, "( Gets:%u Puts:%u Seek:%u,", &gets, &puts, &seeks), 3) << line;
    EXPECT_EQ(gets + puts + seeks, kOperations);
    // Six standard deviations.
    EXPECT_NEAR(gets / kOperations, mix.gets, 6 * std::sqrt(mix.gets * (1 - mix.gets) / kOperations));
    EXPECT_NEAR(puts / kOperations, mix.puts, 6 * std::sqrt(mix.puts * (1 - mix.puts) / kOperations));
    EXPECT_NEAR(seeks / kOperations, mix.seeks, 6 * std::sqrt(mix.seeks * (1 - mix.seeks) / kOperations));
  }
}

TEST_F(DbBench, ThePresetOfYcsbRunsAllItsWorkloads) {
  const Result result = Bench("--preset=ycsb");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  for (const char* name : {"ycsb_load", "ycsb_a", "ycsb_b", "ycsb_c", "ycsb_d", "ycsb_e", "ycsb_f"}) {
    EXPECT_EQ(Operations(result.output, name), 1000u) << name;
  }
  EXPECT_TRUE(Contains(result.output, "Keys:       24 bytes each\nValues:     1000 bytes each\n")) << result.output;
}

// Each key is in one family, and found there again, also by the next db_bench.
TEST_F(DbBench, SpreadsKeysOverColumnFamilies) {
  const Result result = Bench("--benchmarks=fillseq,readrandom,readseq,compact,multireadrandom --num_column_families=4");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(Contains(result.output, "(1000 of 1000 found)")) << result.output;
  EXPECT_EQ(Operations(result.output, "readseq"), 250u) << "a fourth is in the default family\n" << result.output;
  const Result again = Bench("--benchmarks=readrandom --use_existing_db --num_column_families=4");
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_TRUE(Contains(again.output, "(1000 of 1000 found)")) << again.output;
}

// The keys that are read are drawn before, and come again when there are more reads than draws.
TEST_F(DbBench, ZipfReadsOnlyKeysOfTheKeySpace) {
  const Result result = Bench("--benchmarks=filluniquerandom,readrandom,multireadrandom --batch_size=10 --zipf=0.99");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(Contains(result.output, "(1000 of 1000 found)")) << result.output;
  const Result refused = Bench("--benchmarks=fillseq --zipf=-1");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(Contains(refused.output, "--zipf")) << refused.output;
}

}  // namespace
}  // namespace braiddb
