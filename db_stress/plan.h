// The random plans: fixed properties for each database, and for each life its options, its operations, and its end. All draws
// follow from the seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braiddb/options.h"
#include "db_stress/flags.h"
#include "util/random.h"

namespace braiddb::stress {

struct DatabasePlan {
  uint64_t seed = 0;  // of its keys and values
  uint32_t regions = 1;
  uint32_t keys = 0;
  bool reverse = false;        // order of its comparator
  uint32_t idle_families = 0;  // additional families; each gets one key at each open
  // families that the keys are spread over; every second one has the reverse order, and the kinds of last level alternate
  uint32_t families = 1;
  L1Kind l1 = {};
  bool region_paths = false;  // regions lie outside the database's directory
  uint64_t cycles = 0;        // number of lives

  const Comparator* comparator(uint32_t family) const {
    return reverse != (family % 2 == 1) ? ReverseBytewiseComparator() : BytewiseComparator();
  }
  std::vector<const Comparator*> comparators() const;
  std::string ToString() const;
};

// The class that a life uses to open the database.
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
  double patience = 0;  // 0 to 1: time of the kill, relative to the longest life, or to the duration of an open
  bool long_life = false;
  bool check_before = false;     // run CheckDatabase
  bool pmempool_before = false;  // run `pmempool check`

  uint32_t threads = 1;
  uint32_t write_percent = 50;
  uint32_t shared_percent = 10;      // of reads and of writes
  uint32_t batch_percent = 20;       // of writes
  uint32_t transaction_percent = 0;  // of writes of keys, if the store has transactions
  uint32_t bank_percent = 10;        // of operations, if the store has accounts
  uint32_t admin_one_in = 2000;      // operations; flush, compaction, and similar
  bool hot = false;                  // most writes hit a few keys
  bool verify_checksums = false;
  bool sync = true;
  bool verify_at_end = false;     // if the life closes the database
  bool reads_only_first = false;  // a read-only open before the open for writing
  bool has_follower = false;      // a secondary catches up all the time

  std::string ToString() const;
};

DatabasePlan DrawDatabase(const Flags& flags, Random* random);
// `database`: its directory. Regions lie beside it.
LifePlan DrawLife(const Flags& flags, const DatabasePlan& plan, const std::string& database, Random* random);

// The path of a region of a database whose regions lie outside its directory.
std::string RegionPath(const std::string& database, uint32_t region);

}  // namespace braiddb::stress
