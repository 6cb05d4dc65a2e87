#include "pmem/page_sync.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

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
    Sync({range});  // more threads than slots: there is nowhere to remember it
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
  if (fail_syncs_->load(std::memory_order_relaxed)) return EIO;
  return msync(reinterpret_cast<void*>(range.begin), range.end - range.begin, MS_SYNC) == 0 ? 0 : errno;
}

// Ranges with small gaps between them are one call: each call is a flush of the disk's cache, and may be a commit of the journal.
// What others have stored in a gap may become durable at any time, so also now.
// The first error stays for ever: the kernel may have dropped the dirty pages and forgotten the error, so no later sync can
// be believed.
void Persistence::PageSync::Sync(const std::vector<Range>& ranges) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (error_ != 0) return;
  const uint64_t mine = next_sync_++;
  active_syncs_.insert(mine);
  lock.unlock();
  int error = 0;
  for (size_t begin = 0, end = 0; begin < ranges.size() && error == 0; begin = end) {
    for (end = begin + 1; end < ranges.size() && ranges[end].begin - ranges[end - 1].end <= kMaxGapBytes;) ++end;
    error = SyncRange({ranges[begin].begin, ranges[end - 1].end});
    if (error != ENOMEM || end == begin + 1) continue;
    // The gap is not mapped.
    error = 0;
    for (size_t i = begin; i < end && error == 0; ++i) error = SyncRange(ranges[i]);
  }
  lock.lock();
  if (error_ == 0) error_ = error;
  active_syncs_.erase(mine);
  sync_ended_.notify_all();
  const uint64_t started = next_sync_;  // below it: syncs that may have been told of the loss of a page of ours
  sync_ended_.wait(lock, [&] { return active_syncs_.empty() || *active_syncs_.begin() >= started; });
}

Status Persistence::PageSync::error() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error_ == 0) return Status::OK();
  return Status::IOError(std::string("msync failed: ") + std::strerror(error_) +
                         "; what was written last may be lost. The database accepts reads only: check the disk and its file "
                         "system (dmesg), then open the database again");
}

}  // namespace braiddb
