// What a put and a get cost through the C API, over what they cost in C++, on one database.
//
// A get gives its value in memory from malloc, for the caller to free: that is the contract. So does C++ with a string that is
// new, if the value is longer than what a string holds in itself; else malloc and free are added to the C++ side, as a program
// would need them for such memory. With keys that are made one by one, gets do not overlap each other, and hide them.
//
// Blocks of both take turns, in an order that is drawn for each pair, and a pair's ratio is of two blocks that lie a tenth of a
// millisecond apart: the median of many pairs says one or two percent, while the machine's speed varies by twenty. Each also
// measures C++ over itself. BRAIDDB_COST_PAIRS: how many pairs; the docs' figures are of 3000.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/c.h"
#include "capi/objects.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr bool kIsFast = false;
#else
constexpr bool kIsFast = true;
#endif

constexpr size_t kBlock = 500;  // operations
// What the test allows; the C API is meant to stay within 1.05, and what else runs on a machine may be worth as much.
constexpr double kMost = 1.15;

// Gets can overlap each other if their keys are ready. The CPU guesses which stores and loads alias. After a wrong guess, it may
// stop overlapping the gets of one side for as long as the process lives. capi/early_memory.h gives no reason for such guesses;
// what remains is caused by the rest of the program. So such ratios are measured in up to kProcesses processes, and one process
// in which they are small is enough: what the code costs is in each of them.
constexpr int kProcesses = 5;
constexpr const char* kChild = "BRAIDDB_COST_CHILD";  // set in all but the first of them

struct Sizes {
  size_t key;
  size_t value;
};

inline void PrintTo(const Sizes& sizes, std::ostream* out) { *out << sizes.key << " and " << sizes.value; }

class CApiCostTest : public testing::TestWithParam<Sizes> {
 protected:
  void SetUp() override {
    if (!kIsFast) GTEST_SKIP() << "says nothing without optimization";
    if (const char* const pairs = std::getenv("BRAIDDB_COST_PAIRS")) pairs_ = std::max(1ul, std::strtoul(pairs, nullptr, 10));
    braiddb_options_set_create_if_missing(options_, 1);
    db_ = braiddb_open(options_, directory_.File("db").c_str(), &error_);
    ASSERT_EQ(error_, nullptr) << error_;
    for (size_t i = 0; i < kKeys; ++i) {
      keys_.emplace_back(GetParam().key, '0');
      MakeKey(i, &keys_.back());
      CPut(keys_.back());
    }
    braiddb_wait_for_compaction(db_, &error_);
    ASSERT_EQ(error_, nullptr) << error_;
  }
  void TearDown() override {
    EXPECT_EQ(failures_, 0u);
    EXPECT_EQ(error_, nullptr) << error_;
    if (db_ != nullptr) braiddb_close(db_);
    braiddb_writeoptions_destroy(write_);
    braiddb_readoptions_destroy(read_);
    braiddb_options_destroy(options_);
  }

  DB* cpp() const { return db_->db.get(); }
  void CPut(const std::string& key) { braiddb_put(db_, write_, key.data(), key.size(), value_.data(), value_.size(), &error_); }
  void Put(const std::string& key) { failures_ += !cpp()->Put({}, key, value_).ok(); }
  void CGet(const std::string& key) {
    size_t length = 0;
    char* const value = braiddb_get(db_, read_, key.data(), key.size(), &length, &error_);
    failures_ += value == nullptr || length != value_.size();
    std::free(value);
  }
  void Get(const std::string& key, std::string* value) {
    failures_ += !cpp()->Get({}, key, value).ok() || value->size() != value_.size();
  }

  // The median of the pairs' ratios, of the first one's time over the second one's.
  template <class First, class Second>
  double Ratio(const First& first, const Second& second) {
    std::vector<double> ratios;
    for (size_t pair = 0; pair < pairs_; ++pair) {
      const bool swapped = random_.Uniform(2) == 0;
      const double a = swapped ? Seconds(second) : Seconds(first);
      const double b = swapped ? Seconds(first) : Seconds(second);
      ratios.push_back(swapped ? b / a : a / b);
    }
    std::nth_element(ratios.begin(), ratios.begin() + static_cast<ptrdiff_t>(pairs_ / 2), ratios.end());
    return ratios[pairs_ / 2];
  }
  static void MakeKey(size_t number, std::string* key) {
    for (size_t i = 0; i < 8; ++i) (*key)[i] = static_cast<char>(number >> (56 - 8 * i));
  }
  // Of a block.
  template <class Operation>
  double Seconds(const Operation& operation) {
    size_t drawn[kBlock];
    for (size_t& key : drawn) key = random_.Uniform(kKeys);
    std::string near[kBlock];
    for (size_t i = 0; i < kBlock && keys_are_ == Keys::kReady; ++i) near[i] = keys_[drawn[i]];
    std::string made = keys_[0];
    const auto begin = std::chrono::steady_clock::now();
    for (size_t i = 0; i < kBlock; ++i) {
      if (keys_are_ == Keys::kMade) MakeKey(drawn[i], &made);
      operation(keys_are_ == Keys::kMade ? made : keys_are_ == Keys::kReady ? near[i] : keys_[drawn[i]]);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  double Report(const char* what, double ratio) {
    std::printf("%-44s %2zu-byte keys, %3zu-byte values: %.3f\n", what, GetParam().key, GetParam().value, ratio);
    return ratio;
  }

  static bool IsChild() { return std::getenv(kChild) != nullptr; }
  // Measures again in other processes, one after the other. Returns true as soon as this case passes in one of them.
  static bool PassesElsewhere() {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string command =
        std::string(kChild) + "=1 '" + program + "' --gtest_filter='" + test->test_suite_name() + '.' + test->name() + "'";
    std::fflush(stdout);
    for (int process = 2; process <= kProcesses; ++process) {
      if (std::system(command.c_str()) == 0) return true;
    }
    return false;
  }

  // Where an operation has its key from: it is made of a number, it lies with the other keys of the block, or far away.
  enum class Keys { kMade, kReady, kFar };

  static constexpr size_t kKeys = 1'000'000;

  TestDirectory directory_;
  braiddb_options_t* const options_ = braiddb_options_create();
  braiddb_writeoptions_t* const write_ = braiddb_writeoptions_create();
  braiddb_readoptions_t* const read_ = braiddb_readoptions_create();
  braiddb_t* db_ = nullptr;
  char* error_ = nullptr;
  size_t failures_ = 0;
  size_t pairs_ = 300;
  Keys keys_are_ = Keys::kMade;
  char* volatile sink_ = nullptr;
  Random random_{3};
  std::vector<std::string> keys_;
  const std::string value_ = PatternedValue(1, GetParam().value);
};

INSTANTIATE_TEST_SUITE_P(Sizes, CApiCostTest, testing::Values(Sizes{8, 8}, Sizes{16, 100}), [](const auto& suite) {
  return "Keys" + std::to_string(suite.param.key) + "Values" + std::to_string(suite.param.value);
});

TEST_P(CApiCostTest, PutsAndGetsAreNearThoseOfCpp) {
  std::string reused;
  const auto c_put = [this](const std::string& key) { CPut(key); };
  const auto put = [this](const std::string& key) { Put(key); };
  const auto c_get = [this](const std::string& key) { CGet(key); };
  const auto get_new = [this](const std::string& key) {
    std::string value;
    Get(key, &value);
  };
  const auto get_copy = [this, &reused](const std::string& key) {
    Get(key, &reused);
    auto* const copy = static_cast<char*>(std::malloc(reused.size() + 1));
    std::memcpy(copy, reused.data(), reused.size() + 1);
    sink_ = copy;
    std::free(copy);
  };
  const auto get_there = [this, &reused](const std::string& key) { Get(key, &reused); };
  Report("put, C++ over itself", Ratio(put, put));
  EXPECT_LE(Report("put, C over C++", Ratio(c_put, put)), kMost);
  for (const auto& [keys, text] :
       {std::pair{Keys::kMade, "keys that are made of numbers"}, std::pair{Keys::kReady, "keys that are ready"},
        std::pair{Keys::kFar, "keys that are cache misses"}}) {
    std::printf("%s:\n", text);
    keys_are_ = keys;
    Report("get, C++ over itself", Ratio(get_new, get_new));
    const double fresh = Report("get, C over C++ into a new string", Ratio(c_get, get_new));
    const double copied = Report("get, C over C++ and a copy by malloc", Ratio(c_get, get_copy));
    const double there = Report("get, C over C++ into a string that is there", Ratio(c_get, get_there));
    double most = copied;
    // Where the string has no memory of its own, or has it already, malloc and free hide behind cache misses, if anywhere.
    if (value_.size() > std::string().capacity() || keys == Keys::kMade) most = std::max(most, fresh);
    if (keys == Keys::kMade) most = std::max(most, there);
    if (most <= kMost) continue;
    if (keys == Keys::kMade || IsChild()) {
      ADD_FAILURE() << most << " is more than " << kMost;
      return;
    }
    EXPECT_TRUE(PassesElsewhere()) << most << " is more than " << kMost << " in " << kProcesses << " processes";
    return;
  }
}

}  // namespace
}  // namespace braiddb::test
