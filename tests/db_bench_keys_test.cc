// Keys of --key_shape and --key_file: each number has a key of its own, and every engine finds the keys that it stored.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "db_bench/engine.h"
#include "db_bench/key_shape.h"
#include "db_bench/worker.h"
#include "tests/support/db_bench_program.h"
#include "tests/support/db_test_util.h"

namespace braiddb::bench {
namespace {

using test::Contains;
using test::Operations;

std::string KeyOf(const ShapedKeys& keys, uint64_t number) {
  std::string key;
  keys.Append(number, &key);
  return key;
}

class KeysTest : public testing::Test {
 protected:
  test::ProgramResult Bench(const std::string& arguments) {
    return test::RunProgram(BRAIDDB_DB_BENCH, "--db=" + directory_.File("db") + " --seed=1 " + arguments);
  }
  std::string FileWith(const std::string& bytes) {
    const std::string path = directory_.File("keys");
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  static std::string WhyNotFile(const std::string& path) {
    try {
      ShapedKeys::OfFile(path);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return {};
  }

  test::TestDirectory directory_;
};

TEST(KeyShapes, AreAsTheyAreDescribed) {
  const std::map<std::string, std::string> keys = {
      {"decimal16", "0000000000000123"},
      {"user", "user:000000000123"},
      {"tenant", "tenant-0123/object/000000000000007b"},
      {"composite", std::string("\0\0\0\014\0\0\0\0\0\0\0\173", 12)},
      {"sequence8", std::string("\0\0\0\0\0\0\0\173", 8)},
      {"late200", std::string(196, '0') + std::string("\0\0\0\173", 4)},
  };
  for (const auto& [name, key] : keys) EXPECT_EQ(KeyOf(*ShapedKeys::OfShape(name), 123), key) << name;
  const std::map<std::string, size_t> sizes = {{"random16", 16}, {"uuid", 36}, {"random8", 8}, {"reversed_time", 12}};
  for (const auto& [name, size] : sizes) EXPECT_EQ(ShapedKeys::OfShape(name)->AverageSize(1000), size) << name;
  EXPECT_THROW(ShapedKeys::OfShape("round"), std::invalid_argument);
}

TEST(KeyShapes, EachNumberHasAKeyOfItsOwn) {
  constexpr uint64_t kNumbers = 100000;
  for (const KeyShape& shape : KeyShapes()) {
    SCOPED_TRACE(shape.name);
    const auto keys = ShapedKeys::OfShape(shape.name);
    std::vector<std::string> made;
    for (uint64_t number = 0; number < kNumbers; ++number) made.push_back(KeyOf(*keys, number));
    EXPECT_EQ(KeyOf(*keys, 7), made[7]);
    EXPECT_EQ(std::is_sorted(made.begin(), made.end()), shape.in_order);
    if (std::string(shape.name) == "url") {
      const auto [least, most] =
          std::minmax_element(made.begin(), made.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
      EXPECT_GE(least->size(), 20u) << *least;
      EXPECT_LE(most->size(), 80u) << *most;
    }
    EXPECT_EQ(std::set<std::string>(made.begin(), made.end()).size(), kNumbers);
  }
}

TEST_F(KeysTest, AFileHasOneKeyPerLine) {
  const auto keys = ShapedKeys::OfFile(FileWith("/usr/bin\n \nb" + std::string(1, '\0') + "c\r\nlast"));
  ASSERT_EQ(keys->count(), 4u);
  EXPECT_EQ(KeyOf(*keys, 0), "/usr/bin");
  EXPECT_EQ(KeyOf(*keys, 1), " ");
  EXPECT_EQ(KeyOf(*keys, 2), std::string("b\0c\r", 4));
  EXPECT_EQ(KeyOf(*keys, 3), "last");
  EXPECT_EQ(keys->AverageSize(4), 5u);
  // Keys of larger numbers are not in the file.
  EXPECT_EQ(KeyOf(*keys, 4), "/usr/bin\n1");
  EXPECT_NE(KeyOf(*keys, 4), KeyOf(*keys, 8));
}

TEST_F(KeysTest, AFileWithoutValidKeysIsRefused) {
  const std::string missing = directory_.File("missing");
  EXPECT_EQ(WhyNotFile(missing), "--key_file=" + missing + " cannot be read");
  EXPECT_TRUE(Contains(WhyNotFile(FileWith("")), " has no keys"));
  EXPECT_TRUE(Contains(WhyNotFile(FileWith("a\n\nb\n")), ": line 2 is empty"));
  EXPECT_TRUE(Contains(WhyNotFile(FileWith("a\nb\nc\nb\n")), ": line 4 repeats the key of line 2"));
  EXPECT_TRUE(Contains(WhyNotFile(FileWith("a\n" + std::string(kMaxKeySize, 'k'))), ": line 2 is longer than a key may be"));
  EXPECT_EQ(WhyNotFile(FileWith(std::string(kMaxKeySize - 1, 'k'))), "");
}

// Values are derived from their keys (--verify), so a key that has another key's value is noticed.
TEST_F(KeysTest, EveryBenchmarkTakesThem) {
  const std::string file = FileWith("/usr\n/usr/bin\n/usr/bin/a\n/usr/bin/ab\n/usr/lib\n");
  const std::string benchmarks =
      " --verify --benchmarks=fillseq,readrandom,readmissing,fillrandom,filluniquerandom,readrandom,readrandomfast,"
      "multireadrandom,readseq,readreverse,seekrandom,readwhilewriting,updaterandom,mixgraph,ycsb_load,ycsb_a,ycsb_d,ycsb_e,"
      "deleteseq";
  std::vector<std::string> kinds = {"--key_file=" + file + " --reads=100"};
  for (const KeyShape& shape : KeyShapes()) kinds.push_back("--num=500 --key_shape=" + std::string(shape.name));
  for (const std::string& kind : kinds) {
    const auto result = Bench(kind + benchmarks);
    ASSERT_EQ(result.exit_code, 0) << kind << "\n" << result.output;
    const uint64_t num = kind == kinds.front() ? 5 : 500;
    EXPECT_EQ(Operations(result.output, "readseq"), num) << kind;
    EXPECT_TRUE(Contains(result.output, kind == kinds.front() ? "(100 of 100 found)" : "(500 of 500 found)")) << result.output;
    EXPECT_TRUE(Contains(test::LineOf(result.output, "readmissing"), "(0 of ")) << kind << "\n" << result.output;
    EXPECT_TRUE(Contains(result.output, " bytes on average\n")) << result.output;
  }
}

TEST_F(KeysTest, EveryEngineTakesThem) {
  for (const char* name :
       {"braiddb", "braiddb:nv_tree", "braiddb:sorted_runs", "rocksdb", "leveldb", "lmdb", "dram-checkpoint:100"}) {
    Flags flags;
    std::unique_ptr<Driver> driver;
    if (MakeDriver(name, flags, &driver).IsNotSupported()) continue;
    for (const KeyShape& shape : KeyShapes()) {
      const auto result =
          Bench("--num=200 --verify --benchmarks=fillrandom,fillseq,readrandom,readseq --engine=" + std::string(name) +
                " --key_shape=" + shape.name);
      ASSERT_EQ(result.exit_code, 0) << name << " " << shape.name << "\n" << result.output;
      EXPECT_TRUE(Contains(result.output, "(200 of 200 found)")) << name << " " << shape.name << "\n" << result.output;
    }
  }
}

TEST_F(KeysTest, SaysWhyNot) {
  const std::string file = FileWith("a\nb\nc\n");
  const std::map<std::string, std::string> cases = {
      {"--key_shape=round", "--key_shape=round is none of random16, decimal16, user"},
      {"--key_shape=user --key_file=" + file, "--key_shape and --key_file exclude each other"},
      {"--num=4 --key_file=" + file, "--num=4 is more than the 3 keys that there are"},
      {"--num=4294967297 --key_shape=late200", "--num=4294967297 is more than the 4294967296 keys that there are"},
      {"--key_shape=url --max_scan_distance=3", "--max_scan_distance needs keys in the order of their numbers"},
      {"--key_shape=uuid --writes_per_range_tombstone=3", "--writes_per_range_tombstone needs keys in the order"},
      {"--key_shape=user --num_column_families=3", "--num_column_families cannot tell the number of a key"},
      {"--key_shape=user --seek_missing_prefix", "--seek_missing_prefix excludes --key_shape"},
  };
  for (const auto& [arguments, message] : cases) {
    const auto result = Bench(arguments);
    EXPECT_EQ(result.exit_code, 1) << arguments;
    EXPECT_TRUE(Contains(result.output, message)) << arguments << "\n" << result.output;
  }
  const auto result = Bench(
      "--key_shape=user --num=300 --max_scan_distance=3 --writes_per_range_tombstone=100 "
      "--max_num_range_tombstones=1 --benchmarks=fillseq,seekrandom");
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

}  // namespace
}  // namespace braiddb::bench
