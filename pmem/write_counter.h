// WriteCounter: counts the cache lines and the media units that are written back to persistent memory, at each flush and fence.
//
// COUNTED     Flushes and fences through Persistence. Not counted: lines that the CPU evicts from its caches, and flushes that
//             libpmemobj makes itself.
// XPLINES     Optane memory writes units of 256 bytes. Lines of one unit that are flushed between two fences are written
//             together, so the unit counts once. The counter collects the flushed ranges, merges them, and counts units at the
//             fence.
// COST        One addition per flush that continues the flush before; otherwise one vector element. Nothing is shared between
//             threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmem/persistence.h"
#include "util/per_thread.h"
#include "util/thread_counter.h"

namespace braiddb {

// Counts the writes of one thread. Thread safety: one thread at a time; any thread may call writes().
class WriteCounter final : public PersistObserver {
 public:
  // Bytes of Optane memory's unit of writing (XPLINES).
  static constexpr uint64_t kXpLine = 256;

  void OnFlush(const void* address, size_t bytes) noexcept override;
  void OnDrain() noexcept override;

  // Returns the sums. Units that were flushed after the last fence are not in the sums yet.
  PmWrites writes() const { return {lines_.value(), xp_lines_.value(), fences_.value()}; }

 private:
  // A range of XPLines [begin, end), by number: address / kXpLine.
  struct Stretch {
    uintptr_t begin;
    uintptr_t end;
  };
  static constexpr size_t kMergeAt = 1024;

  // Sorts unfenced_ and joins ranges that touch or overlap.
  void Merge();
  // Adds the units of unfenced_ to xp_lines_, and clears unfenced_.
  void CountUnfenced();

  ThreadCounter lines_;
  ThreadCounter xp_lines_;
  ThreadCounter fences_;
  std::vector<Stretch> unfenced_;  // ranges that were flushed since the last fence; may overlap
  size_t merge_at_ = kMergeAt;     // size of unfenced_ at which it is merged; doubles if merging does not help
};

// One WriteCounter for each thread. The counts of a thread stay when the thread ends.
// Thread safety: all methods may be called concurrently.
class WriteCounters final : public PersistObserver {
 public:
  void OnFlush(const void* address, size_t bytes) noexcept override;
  void OnDrain() noexcept override;
  PmWrites Sum() const;

 private:
  // Returns the calling thread's counter; null if there are too many threads, or no memory for a counter.
  WriteCounter* Own() noexcept;

  PerThread<WriteCounter> counters_;
  // Sums of threads without a counter. Each flush of such a thread counts its units by itself.
  std::atomic<uint64_t> lines_{0};
  std::atomic<uint64_t> xp_lines_{0};
  std::atomic<uint64_t> fences_{0};
};

}  // namespace braiddb
