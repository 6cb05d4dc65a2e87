// What is done to the files of a database before one open, and what comes of it.
#pragma once

#include <cstdint>
#include <string>

#include "braiddb/status.h"
#include "tests/mutation/word_map.h"

namespace braiddb::test {

// How much is damaged at once.
enum class Unit : uint8_t { kWord, kLine, kPage, kFile, kCount };
inline constexpr uint64_t kUnitBytes[] = {8, 64, 4096, 0};

inline const char* NameOf(Unit unit) {
  static constexpr const char* kNames[] = {"word", "line", "page", "file"};
  return kNames[static_cast<size_t>(unit)];
}

// How. The last ones are for whole files only, a flipped bit for words only.
enum class Way : uint8_t {
  kFlip,
  kZero,
  kRandom,
  kElsewhere,  // what is at another place: a write that went astray; a whole file: that of the other region
  kOlder,      // what was there earlier: a write that was lost
  kForeign,    // what another database has there
  kTruncated,
  kExtended,
  kEmpty,
  kMissing,
  kCount,
};

inline const char* NameOf(Way way) {
  static constexpr const char* kNames[] = {"flipped bit",   "zero",      "random",   "from elsewhere", "older content",
                                           "of another db", "truncated", "extended", "empty",          "missing"};
  return kNames[static_cast<size_t>(way)];
}

struct Mutation {
  Unit unit = Unit::kWord;
  Way way = Way::kFlip;
  WordKind kind = WordKind::kFree;  // of the first word that is damaged
  std::string file;                 // relative to the database
  uint64_t offset = 0;
  std::string bytes;  // what is put there; of a whole file: all of it

  bool removes_file() const { return way == Way::kMissing; }
};

enum class Outcome : uint8_t { kNotTried, kRight, kRefused, kReadError, kWrong, kHang, kCrash, kCount };

inline const char* NameOf(Outcome outcome) {
  static constexpr const char* kNames[] = {"not tried", "right data", "refused", "read error", "WRONG DATA", "HANG", "CRASH"};
  return kNames[static_cast<size_t>(outcome)];
}

struct Result {
  Outcome outcome = Outcome::kNotTried;
  Status::Code code = Status::Code::kOk;  // of the error, if there was one

  bool bad() const { return outcome >= Outcome::kWrong || outcome == Outcome::kNotTried; }
};

}  // namespace braiddb::test
