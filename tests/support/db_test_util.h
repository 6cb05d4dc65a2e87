// What the database tests share: directories, tiny options, generators of keys and values, scans and comparisons.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "index/level_kind.h"

namespace braiddb::test {

// ---- Which build this is: sanitizers slow everything down, so loops are shortened there.

#if defined(__SANITIZE_THREAD__)
inline constexpr int kSlowdown = 10;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr int kSlowdown = 3;
#else
inline constexpr int kSlowdown = 1;
#endif

// The value of an environment variable, or `otherwise`.
uint64_t EnvNumber(const char* name, uint64_t otherwise);

// ---- Status in assertions

testing::AssertionResult IsOk(const char* expression, const Status& status);
testing::AssertionResult HasCode(const char*, const char*, const Status& status, Status::Code code);

#define ASSERT_OK(expression) ASSERT_PRED_FORMAT1(::braiddb::test::IsOk, expression)
#define EXPECT_OK(expression) EXPECT_PRED_FORMAT1(::braiddb::test::IsOk, expression)
#define ASSERT_CODE(expression, code) ASSERT_PRED_FORMAT2(::braiddb::test::HasCode, expression, ::braiddb::Status::Code::code)
#define EXPECT_CODE(expression, code) EXPECT_PRED_FORMAT2(::braiddb::test::HasCode, expression, ::braiddb::Status::Code::code)

// CheckDatabase finds nothing wrong with the database in `path`, which is not open.
testing::AssertionResult ChecksAsSound(const std::string& path);

// ---- Directories

// A fresh directory, removed with all that is in it. Kept, and its name printed, when BRAIDDB_KEEP_TEST_DIRS is set.
class TestDirectory {
 public:
  enum class Medium {
    kMemory,  // /dev/shm, or $TMPDIR where there is none
    kDisk,    // an ordinary file system: $BRAIDDB_TEST_DISK, or $TMPDIR, or /var/tmp
  };
  explicit TestDirectory(Medium medium = Medium::kMemory);
  ~TestDirectory();
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Regular files below `directory`, recursively, sorted; paths relative to it.
std::vector<std::string> ListFiles(const std::string& directory);
// The files of `database` that hold its regions (not its log, not its lock).
std::vector<std::string> RegionFiles(const std::string& database);
std::string ReadFileOrDie(const std::string& path);
void WriteFileOrDie(const std::string& path, std::string_view content);

// ---- Options

// Everything as small as it gets, so that a few thousand updates rotate, flush, checkpoint, merge and recycle many times.
// With the last level that is tested, and small leaves.
Options TinyOptions(uint32_t regions = 2);
// The kind that the environment's BRAIDDB_TEST_L1 names; the default kind if it is not set. Tests of databases run once with
// each.
L1Kind TestedL1();
// Whether the entries of that last level lie in the log, where relocations copy them.
inline bool LogHoldsLastLevel() { return !FindLevelKind(TestedL1())->copies_entries; }

// Copies the directory of a database, which may be open or was killed. The socket of its process is no file that can be copied.
void CopyDatabase(const std::string& from, const std::string& to);

// Opens or fails the test and returns null.
std::unique_ptr<DB> OpenOrFail(const Options& options, const std::string& path);

// ---- Random material. Everything follows from the seed.

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15 + 1) {}
  uint64_t Next() { return engine_(); }
  uint64_t Uniform(uint64_t n) { return engine_() % n; }                                 // [0, n)
  uint64_t Range(uint64_t low, uint64_t high) { return low + Uniform(high - low + 1); }  // [low, high]
  bool OneIn(uint64_t n) { return Uniform(n) == 0; }
  bool Percent(uint64_t percent) { return Uniform(100) < percent; }
  uint64_t Skewed(uint64_t n) { return Uniform(Uniform(n) + 1); }  // small ones more often
  std::string Bytes(size_t size);

 private:
  std::mt19937_64 engine_;
};

// `count` distinct keys of every shape: empty, one byte, all zeros, 0xff, text, binary, long shared prefixes that differ at the
// end or in length only, and, if `huge`, a few of kMaxKeySize.
std::vector<std::string> MakeKeyUniverse(Random* random, size_t count, bool huge);

// A value's size: mostly small, at times empty, thousands of bytes, or (one in a few hundred, if `huge`) around and above a
// segment.
size_t RandomValueSize(Random* random, uint64_t segment_size, bool huge);
std::string RandomValue(Random* random, uint64_t segment_size, bool huge);

// "key000042"; sorts as its number.
std::string NumberedKey(uint64_t number);
// Big endian: sorts as its number, and no two have one prefix.
std::string EightByteKey(uint64_t number);

// `size` bytes that follow from `tag`, so that a value torn or mixed up with another is found out.
std::string PatternedValue(uint64_t tag, size_t size);

// ---- Looking at a database

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs ScanForward(DB* db, const ReadOptions& options = {});
Pairs ScanBackward(DB* db, const ReadOptions& options = {});  // in reverse order, as the iterator yields it
// "<not found>", "<error text>" or the value.
std::string GetOrText(DB* db, Slice key, const ReadOptions& options = {});
uint64_t IntProperty(DB* db, const std::string& name);

// Printable and short: non-printing bytes as \xNN, long strings as head, length and hash.
std::string Printable(Slice bytes);

// Both scans and a Get per expected pair agree with `expected`, which is in the database's order.
testing::AssertionResult HoldsExactly(DB* db, const Pairs& expected, const ReadOptions& options = {});
inline testing::AssertionResult HoldsExactly(DB* db, std::initializer_list<Pairs::value_type> expected) {
  return HoldsExactly(db, Pairs(expected), {});
}
testing::AssertionResult HoldsExactly(DB* db, const std::map<std::string, std::string>& expected,
                                      const ReadOptions& options = {});

// Adds up the counters of several opens of one database.
void Accumulate(Statistics* total, const Statistics& more);

// Runs `body` in a forked child and returns its exit status: the value it returned, or 256 + the signal that ended it.
// The child never returns into gtest. Ends the child after `timeout_ms` (then 256 + SIGKILL).
int RunInChild(const std::function<int()>& body, uint64_t timeout_ms = 120'000);

}  // namespace braiddb::test
