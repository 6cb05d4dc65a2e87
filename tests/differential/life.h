// Life: the calls that one database gets in both libraries. RunLife makes them and compares their results one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/differential/machine.h"

namespace braiddb::test {

// A life has several sequences; NewSequence empties the database between them, because opens are slow.
struct Life {
  uint64_t seed = 0;
  LifeOptions options;
  std::string last_level;  // of BraidDB: the value of BRAIDDB_L1
  size_t regions = 1;      // of BraidDB, each in a directory of its own if there are several
  std::vector<Call> calls;
};

Life DrawLife(uint64_t seed, size_t sequences, size_t calls_per_sequence);

// Two results that are not equal.
struct Difference {
  size_t at = 0;  // index into the life's calls
  std::string call;
  std::string expected;  // of RocksDB
  std::string found;
};

struct LifeResult {
  size_t calls = 0;                      // that were made
  size_t sequences = 0;                  // that came to their end
  std::vector<uint64_t> known;           // how often each known difference was seen
  std::optional<Difference> difference;  // the first one that is not known, which ends the life
};

// The directory must not exist; it is removed. Each call is told before it is made, for reports of crashes.
LifeResult RunLife(const Api& expected, const Api& tested, const Life& life, const std::string& directory,
                   const std::function<void(size_t at)>& before, const std::function<void(const Step&, const Step&)>& after);

}  // namespace braiddb::test
