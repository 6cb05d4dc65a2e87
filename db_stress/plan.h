// What is drawn anew: for each database what it cannot change later, and for each life of a process the options it opens it with,
// what it does with it, and how it ends. Everything follows from the seed.
#pragma once

#include <cstdint>
#include <string>

#include "braiddb/options.h"
#include "db_stress/flags.h"
#include "util/random.h"

namespace braiddb::stress {

struct DatabasePlan {
  uint64_t seed = 0;  // of its keys and values
  uint32_t regions = 1;
  uint32_t keys = 0;
  bool reverse = false;  // its comparator
  L1Kind l1 = L1Kind::kBraidedSkipList;
  bool region_paths = false;  // regions outside of the database's directory
  uint64_t cycles = 0;        // lives

  const Comparator* comparator() const { return reverse ? ReverseBytewiseComparator() : BytewiseComparator(); }
  std::string ToString() const;
};

// How a life ends.
enum class Ending : uint8_t {
  kKilled,
  kKilledOpening,
  kKilledClosing,
  kClosed,
};

struct LifePlan {
  uint64_t seed = 0;
  Options options;
  Ending ending = Ending::kKilled;
  double patience = 0;  // 0 to 1: when to kill, as a part of the longest life, or of the time that an open takes
  bool long_life = false;
  bool check_before = false;     // CheckDatabase
  bool pmempool_before = false;  // `pmempool check`

  uint32_t threads = 1;
  uint32_t write_percent = 50;
  uint32_t shared_percent = 10;  // of reads and of writes
  uint32_t batch_percent = 20;   // of writes
  uint32_t admin_one_in = 2000;  // operations: flush, compaction and the like
  bool hot = false;              // a few keys are written most of the time
  bool verify_checksums = false;
  bool sync = true;
  bool verify_at_end = false;  // if it is closed

  std::string ToString() const;
};

DatabasePlan DrawDatabase(const Flags& flags, Random* random);
// `database`: its directory; regions are beside it.
LifePlan DrawLife(const Flags& flags, const DatabasePlan& plan, const std::string& database, Random* random);

// Where the regions of a database are, if they are not in its directory.
std::string RegionPath(const std::string& database, uint32_t region);

}  // namespace braiddb::stress
