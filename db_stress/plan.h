// What is drawn anew: for each database what it cannot change later, and for each life of a process the options it opens it with,
// what it does with it, and how it ends. Everything follows from the seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braiddb/options.h"
#include "db_stress/flags.h"
#include "util/random.h"

namespace braiddb::stress {

inline constexpr uint32_t kL1Kinds = 3;

struct DatabasePlan {
  uint64_t seed = 0;  // of its keys and values
  uint32_t regions = 1;
  uint32_t keys = 0;
  bool reverse = false;        // its comparator
  uint32_t idle_families = 0;  // more, each of which gets one key at each open
  uint32_t families = 1;       // that its keys are spread over; every other one has the other order, and each the next last level
  L1Kind l1 = L1Kind::kBraidedSkipList;
  bool region_paths = false;  // regions outside of the database's directory
  uint64_t cycles = 0;        // lives

  const Comparator* comparator(uint32_t family) const {
    return reverse != (family % 2 == 1) ? ReverseBytewiseComparator() : BytewiseComparator();
  }
  std::vector<const Comparator*> comparators() const;
  std::string ToString() const;
};

// What a life opens the database as.
enum class StoreKind : uint8_t {
  kPlain,
  kPessimistic,
  kOptimistic,
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
  StoreKind kind = StoreKind::kPlain;
  Ending ending = Ending::kKilled;
  double patience = 0;  // 0 to 1: when to kill, as a part of the longest life, or of the time that an open takes
  bool long_life = false;
  bool check_before = false;     // CheckDatabase
  bool pmempool_before = false;  // `pmempool check`

  uint32_t threads = 1;
  uint32_t write_percent = 50;
  uint32_t shared_percent = 10;      // of reads and of writes
  uint32_t batch_percent = 20;       // of writes
  uint32_t transaction_percent = 0;  // of writes of keys, where there are transactions
  uint32_t bank_percent = 10;        // of operations, where there are accounts
  uint32_t admin_one_in = 2000;      // operations: flush, compaction and the like
  bool hot = false;                  // a few keys are written most of the time
  bool verify_checksums = false;
  bool sync = true;
  bool verify_at_end = false;     // if it is closed
  bool reads_only_first = false;  // before it opens the database to write

  std::string ToString() const;
};

DatabasePlan DrawDatabase(const Flags& flags, Random* random);
// `database`: its directory; regions are beside it.
LifePlan DrawLife(const Flags& flags, const DatabasePlan& plan, const std::string& database, Random* random);

// Where the regions of a database are, if they are not in its directory.
std::string RegionPath(const std::string& database, uint32_t region);

}  // namespace braiddb::stress
