// WriteCounter: what is written back to persistent memory, counted at each flush and fence; of one thread, or of all.
//
// What is counted is what our code flushes. Lines that the CPU writes back on its own, to make room in its caches, do not show
// here, nor does what libpmemobj flushes for itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmem/persistence.h"
#include "util/per_thread.h"
#include "util/thread_counter.h"

namespace braiddb {

// Thread safety: one thread at a time; writes() any.
class WriteCounter final : public PersistObserver {
 public:
  // The unit in which Optane memory writes, 256 bytes. Lines of one that are flushed between two fences are written together.
  static constexpr uint64_t kXpLine = 256;

  void OnFlush(const void* address, size_t bytes) noexcept override;
  void OnDrain() noexcept override;

  // An XPLine is counted at the fence.
  PmWrites writes() const { return {lines_.value(), xp_lines_.value(), fences_.value()}; }

 private:
  // XPLines by their numbers, addresses / kXpLine.
  struct Stretch {
    uintptr_t begin;
    uintptr_t end;
  };
  static constexpr size_t kMergeAt = 1024;

  // Puts unfenced_ in order; afterwards no two overlap.
  void Merge();
  void CountUnfenced();

  ThreadCounter lines_;
  ThreadCounter xp_lines_;
  ThreadCounter fences_;
  std::vector<Stretch> unfenced_;  // what was flushed since the last fence; may overlap
  size_t merge_at_ = kMergeAt;     // stretches are merged when there are so many
};

// One WriteCounter for each thread. What a thread has counted stays when it ends.
// Thread safety: all methods may be called concurrently.
class WriteCounters final : public PersistObserver {
 public:
  void OnFlush(const void* address, size_t bytes) noexcept override;
  void OnDrain() noexcept override;
  PmWrites Sum() const;

 private:
  WriteCounter* Own() noexcept;

  PerThread<WriteCounter> counters_;
  // Of threads that have none, since there are too many or there is no DRAM for it: each flush counts for itself.
  std::atomic<uint64_t> lines_{0};
  std::atomic<uint64_t> xp_lines_{0};
  std::atomic<uint64_t> fences_{0};
};

}  // namespace braiddb
