// Statistics: counters since open, all monotone, summed over threads when asked for; and distributions, if they are wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#pragma GCC visibility push(default)
namespace braiddb {

struct Statistics {
  // Foreground
  // Of users; what the database writes for itself in the background is in none of the three
  uint64_t writes = 0;     // acknowledged updates (each update of a batch counts)
  uint64_t batches = 0;    // acknowledged write calls
  uint64_t log_bytes = 0;  // log space taken by entries, padding included
  uint64_t gets = 0;       // point lookups
  uint64_t gets_found = 0;
  uint64_t lookup_cache_hits = 0;  // of the gets, those that the lookup cache answered
  uint64_t filter_negatives = 0;   // of the gets, those of keys that were found to be nowhere by the filter
  uint64_t local_visits = 0;       // nodes of persistent lists visited on the reader's NUMA node
  // … on another one. On a machine with one NUMA node each region stands for a node of its own, and a thread's is that which it
  // writes to. Not counted: regions whose node is not known; and of a database with one region, what the lookup cache answers.
  uint64_t remote_visits = 0;
  uint64_t write_delays = 0;    // writes that were slowed down because flushes or merges were behind
  uint64_t write_delay_us = 0;  // and the time they lost, microseconds
  // Background
  uint64_t rotations = 0;
  uint64_t flushes = 0;
  uint64_t flushed_entries = 0;
  uint64_t checkpoints = 0;
  uint64_t compactions = 0;
  uint64_t merged_entries = 0;     // entries linked into the last level
  uint64_t dropped_entries = 0;    // obsolete versions and tombstones unlinked or never linked
  uint64_t relocated_entries = 0;  // entries that were copied out of sparse segments
  uint64_t relocated_bytes = 0;    // the log space that the copies took
  uint64_t collapsed_keys = 0;     // keys whose operands became a put
  uint64_t segments_allocated = 0;
  uint64_t segments_recycled = 0;
  // Persistence
  uint64_t flushed_lines = 0;  // background cache-line flushes; foreground ones are log_bytes / 64 at the least
  // With Options::count_pm_writes, in foreground and background, the open's included; 0 without
  uint64_t pm_written_lines = 0;    // cache lines that were flushed, as often as they were
  uint64_t pm_written_xplines = 0;  // units of 256 bytes, each once between two fences of a thread
  uint64_t pm_fences = 0;
  // Recovery, of the open that made this handle
  uint64_t replayed_entries = 0;
  uint64_t recovery_us = 0;  // microseconds from the call of Open to serving

  std::string ToString() const;
};

// What has a distribution, of each call, each flush and so on. Durations are in microseconds, with a resolution of a nanosecond.
enum class HistogramKind : uint8_t {
  kGetMicros,
  kWriteMicros,  // of a put, a deletion, a merge or a batch
  kMultiGetMicros,
  kSeekMicros,  // of an iterator, to wherever
  kFlushMicros,
  kCompactionMicros,  // of one merge of tables into a last level
  kWriteStallMicros,  // of writes that were slowed down, what they slept
  kBytesPerRead,      // the value of a get that found one
  kBytesPerWrite,     // log space
  kBytesPerMultiGet,  // all values
  kMergedTables,      // tables in one merge
  kMergeOperands,     // operands that were applied to have a value, by reads
};
inline constexpr size_t kHistogramKinds = 12;

struct HistogramData {
  uint64_t count = 0;
  double sum = 0;
  double minimum = 0;
  double maximum = 0;
  double average = 0;
  double standard_deviation = 0;
  double median = 0;  // this and the next two: off by 6 % at the most
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
  HistogramData Get(HistogramKind kind) const;
  // What both have.
  void Merge(const Histograms& other);
  // A line for each, as in RocksDB.
  std::string ToString() const;

 private:
  friend class ThreadHistograms;
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace braiddb
#pragma GCC visibility pop
