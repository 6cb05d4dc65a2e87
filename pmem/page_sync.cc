#include "pmem/page_sync.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "util/check.h"
#include "util/deferred_syncs.h"

namespace braiddb {

Persistence::PageSync::PageSync(const std::atomic<bool>* fail_syncs)
    : fail_syncs_(fail_syncs), page_mask_(~(static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)) - 1)) {}

void Persistence::PageSync::Add(const void* address, size_t bytes) {
  if (bytes == 0) return;
  const uintptr_t first = reinterpret_cast<uintptr_t>(address);
  const Range range{first & page_mask_, (first + bytes + ~page_mask_) & page_mask_};
  Pending* const pending = pending_.Get();
  if (pending == nullptr) {
    Sync({range});  // there are more threads than lists
    return;
  }
  std::vector<Range>& ranges = pending->ranges;
  // Appends to a log touch the page of the last append or the one after it.
  if (!ranges.empty() && range.begin >= ranges.back().begin && range.begin <= ranges.back().end) {
    ranges.back().end = std::max(ranges.back().end, range.end);
    return;
  }
  ranges.push_back(range);
  if (ranges.size() >= pending->merge_at) {
    Merge(&ranges);
    pending->merge_at = std::max(kMergeAt, 2 * ranges.size());
  }
}

bool Persistence::PageSync::Drain() {
  Pending* const pending = pending_.Get();
  if (!DeferredSyncs::active() && pending != nullptr && !pending->ranges.empty()) {
    Merge(&pending->ranges);
    Sync(pending->ranges);
    pending->ranges.clear();
    pending->merge_at = kMergeAt;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  return error_ == 0;
}

void Persistence::PageSync::Merge(std::vector<Range>* ranges) {
  BRAIDDB_DCHECK(!ranges->empty());
  std::sort(ranges->begin(), ranges->end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  size_t last = 0;
  for (size_t i = 1; i < ranges->size(); ++i) {
    const Range next = (*ranges)[i];
    if (next.begin <= (*ranges)[last].end) {
      (*ranges)[last].end = std::max((*ranges)[last].end, next.end);
    } else {
      (*ranges)[++last] = next;
    }
  }
  ranges->resize(last + 1);
}

int Persistence::PageSync::SyncRange(const Range& range) const {
  BRAIDDB_DCHECK(range.begin < range.end && (range.begin & ~page_mask_) == 0);
  if (fail_syncs_->load(std::memory_order_relaxed)) return EIO;
  return msync(reinterpret_cast<void*>(range.begin), range.end - range.begin, MS_SYNC) == 0 ? 0 : errno;
}

// STEPS  1 register as an active sync  2 sync the ranges, without the mutex  3 record an error, end the registration  4 wait
//        for the syncs with smaller numbers than the next one: these may have received the error of a page of this thread.
// GAPS   Ranges with small gaps are one call of msync, since each call flushes the disk's cache and may commit the journal.
//        Stores of other threads in a gap may become durable at any time, so a gap does no harm. A gap that is not mapped makes
// the call fail with ENOMEM; then the ranges are synced one by one. ERRORS The first error stays: the kernel may have dropped
// the dirty pages and forgotten the error, so a later success proves
//        nothing.
void Persistence::PageSync::Sync(const std::vector<Range>& ranges) {
  BRAIDDB_DCHECK(!ranges.empty());
  std::unique_lock<std::mutex> lock(mutex_);
  if (error_ != 0) return;
  const uint64_t mine = next_sync_++;
  BRAIDDB_DCHECK(active_syncs_.count(mine) == 0);
  active_syncs_.insert(mine);
  lock.unlock();
  int error = 0;
  for (size_t begin = 0, end = 0; begin < ranges.size() && error == 0; begin = end) {
    for (end = begin + 1; end < ranges.size() && ranges[end].begin - ranges[end - 1].end <= kMaxGapBytes;) ++end;
    error = SyncRange({ranges[begin].begin, ranges[end - 1].end});
    if (error != ENOMEM || end == begin + 1) continue;
    // A gap is not mapped.
    error = 0;
    for (size_t i = begin; i < end && error == 0; ++i) error = SyncRange(ranges[i]);
  }
  lock.lock();
  if (error_ == 0) error_ = error;
  active_syncs_.erase(mine);
  sync_ended_.notify_all();
  const uint64_t started = next_sync_;  // syncs below may have received the error of a page of this thread
  sync_ended_.wait(lock, [&] { return active_syncs_.empty() || *active_syncs_.begin() >= started; });
}

Status Persistence::PageSync::error() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error_ == 0) return Status::OK();
  return Status::IOError(std::string("msync failed: ") + std::strerror(error_) +
                         "; the last writes may be lost. The database accepts reads only: check the disk and its file "
                         "system (dmesg), then open the database again");
}

}  // namespace braiddb
