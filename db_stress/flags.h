// Flags: what db_stress was asked to do. Those that RocksDB's db_stress or db_crashtest have are called as there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "braiddb/options.h"

namespace braiddb::stress {

// Bugs of the database, played by the workers: the program must find them.
enum class Injection : uint8_t {
  kNone,
  kLostWrite,        // a single write is acknowledged without being made
  kStaleWrite,       // an older generation of a key is put over a newer one
  kTornBatch,        // half of a batch is made
  kLostSharedWrite,  // as kLostWrite, of a shared key: only its history tells
  kTornTransfer,     // a transfer between accounts is made in two writes
  kLostUpdate,       // a transfer is made from balances that others may have changed meanwhile
  kLostPrepare,      // a transfer is said to be prepared, and is not
  kKeptUpdate,       // an update that a save point took back is committed
  kSplitBatch,       // a batch of shared keys becomes visible bit by bit
};

struct Flags {
  std::string db;
  uint64_t seed = 0;
  uint64_t cycles = 0;          // 0: until stopped
  uint64_t duration = 0;        // seconds; 0: until stopped, or cycles
  uint32_t max_key = 0;         // keys of the largest databases
  uint32_t threads = 0;         // the most
  uint32_t regions = 0;         // the most
  uint64_t ops_per_thread = 0;  // then a child closes the database by itself; 0: no limit
  uint64_t interval_ms = 0;     // the longest life of a child, but for occasional ones
  uint32_t fresh_every = 0;     // cycles after which a database is emptied and a new one begun, on average
  uint32_t check_one_in = 0;    // 0: never
  uint32_t pmempool_one_in = 0;
  uint32_t progress_seconds = 0;
  uint32_t families = 0;     // the most
  bool transactions = true;  // lives may use a database of transactions
  std::optional<L1Kind> l1;  // nothing: drawn
  Injection injection = Injection::kNone;
};

// Fills *flags. If the process is to end instead (help, or an error, both already printed), returns its exit code.
std::optional<int> ParseFlags(int argc, char** argv, Flags* flags);

}  // namespace braiddb::stress
