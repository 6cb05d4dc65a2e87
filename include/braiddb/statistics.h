// Statistics: counters since the open, and optional distributions. Counters only grow; a read sums those of all threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace braiddb {
class ThreadHistograms;  // is not exported, so its first declaration is here
}
#pragma GCC visibility push(default)
namespace braiddb {

struct Statistics {
  // Foreground. The first three count users' updates and records of prepared transactions, no writes in the background.
  uint64_t writes = 0;     // acknowledged updates; a batch counts each of its updates
  uint64_t batches = 0;    // acknowledged write calls
  uint64_t log_bytes = 0;  // log space of entries with padding; bytes
  uint64_t gets = 0;       // point lookups
  uint64_t gets_found = 0;
  uint64_t lookup_cache_hits = 0;  // gets answered by the lookup cache
  uint64_t filter_negatives = 0;   // gets of absent keys answered by the filter
  uint64_t local_visits = 0;       // visits of persistent list nodes on the reader's NUMA node
  // Visits on another NUMA node. On a machine with one NUMA node each region stands for a node, and a thread's node is the region
  // that it writes to. Not counted: regions whose node is unknown, and lookup cache hits of a database with one region.
  uint64_t remote_visits = 0;
  uint64_t write_delays = 0;    // sleeps of writes because flushes or merges are behind
  uint64_t write_delay_us = 0;  // duration of these sleeps; microseconds
  // Background
  uint64_t rotations = 0;
  uint64_t flushes = 0;
  uint64_t flushed_entries = 0;
  uint64_t checkpoints = 0;
  uint64_t compactions = 0;
  uint64_t merged_entries = 0;     // entries linked into the last level
  uint64_t dropped_entries = 0;    // obsolete versions and tombstones that were unlinked or not linked
  uint64_t relocated_entries = 0;  // entries copied out of sparse segments
  uint64_t relocated_bytes = 0;    // log space of the copies; bytes
  uint64_t collapsed_keys = 0;     // keys whose operands were replaced by a put
  uint64_t segments_allocated = 0;
  uint64_t segments_recycled = 0;
  // Persistence
  uint64_t flushed_lines = 0;  // cache lines flushed in the background; the foreground flushes at least log_bytes / 64
  // Foreground, background and open; 0 without Options::count_pm_writes
  uint64_t pm_written_lines = 0;    // cache lines flushed, with repetitions
  uint64_t pm_written_xplines = 0;  // units of 256 bytes, once between two fences of a thread
  uint64_t pm_fences = 0;
  // The recovery of this open
  uint64_t replayed_entries = 0;
  uint64_t recovery_us = 0;  // from the call of Open until it can serve; microseconds

  std::string ToString() const;
};

// Distributions, with one value per call, flush or compaction. Durations are in microseconds, with a resolution of a nanosecond.
enum class HistogramKind : uint8_t {
  kGetMicros,
  kWriteMicros,  // of a Put, Delete, Merge or Write
  kMultiGetMicros,
  kSeekMicros,  // of any seek of an iterator
  kFlushMicros,
  kCompactionMicros,  // one merge of tables into a last level
  kWriteStallMicros,  // one sleep of a delayed write
  kBytesPerRead,      // value size, of gets that find the key
  kBytesPerWrite,     // log space of a write
  kBytesPerMultiGet,  // all values of a MultiGet
  kMergedTables,      // tables of one merge
  kMergeOperands,     // operands applied by one read
};
inline constexpr size_t kHistogramKinds = 12;

struct HistogramData {
  uint64_t count = 0;
  double sum = 0;
  double minimum = 0;
  double maximum = 0;
  double average = 0;
  double standard_deviation = 0;
  double median = 0;  // within 6 %, as the next two
  double percentile95 = 0;
  double percentile99 = 0;
};

// A copy of a database's distributions at one moment.
// Thread safety: const methods may be called concurrently.
class Histograms {
 public:
  Histograms();  // all empty
  ~Histograms();
  Histograms(Histograms&&) noexcept;
  Histograms& operator=(Histograms&&) noexcept;

  // RocksDB's name without "rocksdb.", e.g. "db.get.micros".
  static const char* Name(HistogramKind kind);
  // Whether its values are durations.
  static bool IsDuration(HistogramKind kind);
  HistogramData Get(HistogramKind kind) const;
  // The number of values below `bound`, which is in nanoseconds for a duration. Exact for powers of two, else within 6 % of the
  // bound.
  uint64_t CountBelow(HistogramKind kind, uint64_t bound) const;
  // Adds the values of `other`.
  void Merge(const Histograms& other);
  // One line per distribution, as in RocksDB.
  std::string ToString() const;

 private:
  friend class ThreadHistograms;
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace braiddb
#pragma GCC visibility pop
