// Persistence::PageSync: makes stores durable by msync of whole pages, for ordinary file systems.
//
// GUARANTEE    When Drain returns true, the pages that the calling thread added are on disk. After one failed sync, every later
//              Drain of every thread returns false.
// HOW          Add remembers pages in a list of the calling thread. Drain merges the list into few ranges and syncs them.
//              Threads that drain at once sync in parallel. The file system groups them: syncs that wait at the same time share
//              one commit of its journal and one flush of the disk's cache. A leader that syncs the pages of all threads one
//              after the other would need one commit each.
// CONCURRENCY  The kernel reports a failed write once per mapping, to the sync that ends first. Another thread's sync, which
//              has lost its page as well, then reports success. So a drain also waits for the syncs that were under way when
//              its own ended, and fails if one of them has failed.
// CRASH        Before Drain returns, each added page may be on disk or not, in any order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

#include "braiddb/status.h"
#include "pmem/persistence.h"
#include "util/per_thread.h"

namespace braiddb {

// Thread safety: all methods may be called concurrently.
class Persistence::PageSync {
 public:
  // `fail_syncs`: while true, each sync fails with EIO, for tests. Must outlive the object.
  explicit PageSync(const std::atomic<bool>* fail_syncs);

  // Adds the pages of these bytes to the calling thread's list. A thread that has no list, because there are too many threads,
  // syncs at once. Throws std::bad_alloc.
  void Add(const void* address, size_t bytes);
  // Returns when the pages that the calling thread added are on disk. False: a sync has failed, now or earlier, in any thread.
  // While the thread defers its syncs (util/deferred_syncs.h), the pages stay in the list for a later Drain.
  bool Drain();
  // OK, or an IOError with the first failure and advice.
  Status error() const;

 private:
  struct Range {
    uintptr_t begin;  // page-aligned
    uintptr_t end;
  };
  // The pages that one thread has added and not synced. When a thread ends, the next thread with its index takes over the list.
  struct Pending {
    std::vector<Range> ranges;
    size_t merge_at = kMergeAt;  // number of ranges at which Add merges them; doubles if merging does not help
  };
  static constexpr size_t kMergeAt = 1024;
  static constexpr uintptr_t kMaxGapBytes = 1 << 20;  // Sync joins ranges whose gap is at most this

  // Sorts the ranges and joins those that touch or overlap. REQUIRES: not empty.
  static void Merge(std::vector<Range>* ranges);
  // Syncs sorted ranges, and waits for the syncs of other threads (CONCURRENCY). Sets error_ if a sync fails.
  void Sync(const std::vector<Range>& ranges);
  // Returns 0 or the errno of msync.
  int SyncRange(const Range& range) const;

  const std::atomic<bool>* const fail_syncs_;
  const uintptr_t page_mask_;
  PerThread<Pending> pending_;

  mutable std::mutex mutex_;  // guards the fields below
  std::condition_variable sync_ended_;
  uint64_t next_sync_ = 1;           // number of the next sync
  std::set<uint64_t> active_syncs_;  // numbers of the syncs that are under way
  int error_ = 0;                    // errno of the first sync that failed
};

}  // namespace braiddb
