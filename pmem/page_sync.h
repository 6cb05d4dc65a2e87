// Persistence::PageSync: group commit by msync, for ordinary file systems.
//
// Flushed pages collect in an open batch. A thread that drains becomes the leader of the batch if there is none at work: it takes the
// pages of all threads, merges them and syncs them, while the next batch collects. The others wait until a batch that has their pages
// is done; whoever wakes up uncovered leads the next one. So n writers cost about two rounds of syncs, not n.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "braiddb/status.h"
#include "pmem/persistence.h"
#include "util/per_thread.h"

namespace braiddb {

// Thread safety: all methods may be called concurrently.
class Persistence::PageSync {
 public:
  explicit PageSync(const std::atomic<bool>* fail_syncs);

  // Adds the pages of these bytes to the open batch.
  void Add(const void* address, size_t bytes);
  // Returns once the pages that this thread added are on disk. False: a sync failed, now or earlier.
  bool Drain();
  Status error() const;

 private:
  struct Range {
    uintptr_t begin;  // page-aligned
    uintptr_t end;
  };
  struct LastBatch {
    uint64_t number = 0;
  };

  static void Merge(std::vector<Range>* ranges);
  int Sync(const std::vector<Range>& ranges) const;
  void LeadBatch(std::unique_lock<std::mutex>* lock);

  const std::atomic<bool>* const fail_syncs_;
  const uintptr_t page_mask_;
  PerThread<LastBatch> last_batches_;  // where each thread added last

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable done_changed_;
  std::vector<Range> open_ranges_;
  size_t merge_at_ = 1024;  // open_ranges_ is merged when it grows to this size
  uint64_t open_batch_ = 1;
  uint64_t done_batch_ = 0;
  bool leader_ = false;
  int error_ = 0;  // errno of the first sync that failed
};

}  // namespace braiddb
