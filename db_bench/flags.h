// Flags: the parsed command line, with the flag names of RocksDB's db_bench.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braiddb/options.h"
#include "db_bench/key_shape.h"
#include "db_bench/mixgraph.h"
#include "db_bench/rate.h"

namespace braiddb::bench {

// Range deletions between the writes of fills and of background writers (readwhilewriting and others), as in RocksDB.
struct RangeDeletions {
  int64_t writes_between = 0;  // writes between two range deletions; 0: no range deletions
  int64_t writes_before = 0;   // writes before the first range deletion
  uint64_t width = 100;        // numbers of keys in each range
  int64_t most = 0;            // maximum per thread
  bool expand = false;         // delete key by key instead

  // Whether a thread must delete a range after this number of writes.
  bool DueAt(int64_t writes) const {
    const int64_t since = writes - writes_before;
    return writes_between > 0 && since > 0 && since % writes_between == 0 && since / writes_between <= most;
  }
};

struct Flags {
  std::vector<std::string> benchmarks;
  std::vector<std::string> engines;  // one engine, or several to compare
  uint32_t rounds = 1;               // repetitions of all benchmarks, each with a new database
  std::string rocksdb_options;
  std::string db;
  bool use_existing_db = false;
  bool readonly = false;
  bool disable_wal = false;  // of rocksdb
  bool verify_checksum = false;
  bool verify = false;         // compare each value with the value that was put
  bool no_huge_pages = false;  // for all engines

  // Amounts. Negative reads, writes, deletes mean num. All are per thread, as in RocksDB.
  int64_t num = 0;
  bool fewer_keys = false;  // the benchmark has reduced num below --num
  int64_t reads = 0;
  int64_t writes = 0;
  int64_t deletes = 0;
  int64_t duration = 0;  // seconds; 0: the count limits the benchmark
  uint32_t threads = 1;
  uint32_t reader_processes = 0;
  uint64_t seed = 0;

  // Data.
  uint64_t key_size = 0;                          // of shaped keys: the average
  std::shared_ptr<const ShapedKeys> shaped_keys;  // of --key_shape or --key_file; null: keys of key_size bytes
  bool longer_keys = false;                       // the benchmark reads keys that are longer than all others
  uint64_t value_size = 0;
  uint64_t batch_size = 1;
  uint64_t num_column_families = 1;
  uint64_t seek_nexts = 0;
  uint64_t seek_nexts_to_delete = 0;
  uint64_t max_scan_distance = 0;  // in numbers of keys; 0: no bound
  bool seek_missing_prefix = false;
  bool explicit_snapshot = false;
  std::string merge_operator;  // RocksDB's name; empty: none
  uint64_t merge_keys = 0;
  uint32_t mergereadpercent = 70;
  uint64_t bgwriter_num = 0;  // 0: num
  bool finish_after_writes = false;
  RangeDeletions range_deletions;
  uint64_t multiread_stride = 0;
  double zipf = 0;
  uint32_t readwritepercent = 90;
  bool reverse_iterator = false;
  bool sync = false;
  int64_t benchmark_write_rate_limit = 0;  // bytes per second
  int64_t benchmark_read_rate_limit = 0;   // operations per second
  MixParameters mix;
  SineParameters sine;         // of mixgraph: operations per second, all threads together
  SineParameters write_sine;   // of writes: bytes per second, all threads together
  int64_t ycsb_target = 0;     // operations per second, all threads together
  bool ycsb_scrambled = true;  // popularity as in YCSB; false: Zipf's law over the records

  // Output.
  bool confidence_interval_only = false;
  bool histogram = false;
  bool statistics = false;
  uint32_t perf_level = 1;
  bool settle = false;                 // after each benchmark that writes, wait for the remaining merges, and report the time
  int64_t stats_interval = 0;          // operations
  int64_t stats_interval_seconds = 0;  // seconds
  std::string report_file;
  int64_t report_interval_seconds = 0;
  std::string json;  // file name; empty: none
  // For --json: the typed command line, and the final value of each flag.
  std::vector<std::string> command_line;
  std::map<std::string, std::string> values;

  // Options of the database. The benchmark sets create_if_missing and similar ones.
  Options options;

  uint64_t Reads() const { return static_cast<uint64_t>(reads < 0 ? num : reads); }
  uint64_t Writes() const { return static_cast<uint64_t>(writes < 0 ? num : writes); }
  // The limit of benchmarks that read and write.
  uint64_t ReadWrites() const { return static_cast<uint64_t>(reads < 0 && writes < 0 ? num : std::max(reads, writes)); }
  uint64_t Deletes() const { return static_cast<uint64_t>(deletes < 0 ? num : deletes); }
};

// Fills *flags. If the process must end (help or an error, both already printed), returns its exit code.
std::optional<int> ParseFlags(int argc, char** argv, Flags* flags);

}  // namespace braiddb::bench
