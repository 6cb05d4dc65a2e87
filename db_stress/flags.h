// Flags: the parsed command line. Flags that RocksDB's db_stress or db_crashtest have use the same names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "braiddb/options.h"

namespace braiddb::stress {

// Database bugs that the workers simulate. db_stress must find them.
enum class Injection : uint8_t {
  kNone,
  kLostWrite,        // a single write is acknowledged without being executed
  kStaleWrite,       // an older generation of a key overwrites a newer one
  kTornBatch,        // only half of a batch is written
  kLostSharedWrite,  // as kLostWrite, for a shared key: only its history shows the bug
  kTornTransfer,     // a transfer between accounts is split into two writes
  kLostUpdate,       // a transfer uses balances that other threads may have changed
  kLostPrepare,      // a transfer is reported as prepared, and is not
  kKeptUpdate,       // an update that a save point reverted is committed
  kSplitBatch,       // a batch of shared keys becomes visible in parts
};

struct Flags {
  std::string db;
  uint64_t seed = 0;
  uint64_t cycles = 0;          // 0: until stopped
  uint64_t duration = 0;        // seconds; 0: until stopped, or until `cycles`
  uint32_t max_key = 0;         // number of keys in the largest databases
  uint32_t threads = 0;         // maximum
  uint32_t regions = 0;         // maximum
  uint64_t ops_per_thread = 0;  // then the child closes the database; 0: no limit
  uint64_t interval_ms = 0;     // longest life of a child, with rare exceptions
  uint32_t fresh_every = 0;     // average number of cycles before a database is emptied and a new one begins
  uint32_t check_one_in = 0;    // 0: never
  uint32_t pmempool_one_in = 0;
  uint32_t progress_seconds = 0;
  uint32_t families = 0;     // maximum
  bool transactions = true;  // lives may use a database with transactions
  std::optional<L1Kind> l1;  // nothing: drawn at random
  Injection injection = Injection::kNone;
};

// Fills *flags. If the process must end (help or an error, both already printed), returns its exit code.
std::optional<int> ParseFlags(int argc, char** argv, Flags* flags);

}  // namespace braiddb::stress
