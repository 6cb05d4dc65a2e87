#include "pmem/page_sync.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace braiddb {

Persistence::PageSync::PageSync(const std::atomic<bool>* fail_syncs)
    : fail_syncs_(fail_syncs), page_mask_(~(static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)) - 1)) {}

void Persistence::PageSync::Add(const void* address, size_t bytes) {
  if (bytes == 0) return;
  const uintptr_t first = reinterpret_cast<uintptr_t>(address);
  const Range range{first & page_mask_, (first + bytes + ~page_mask_) & page_mask_};
  Pending* const pending = pending_.Get();
  if (pending == nullptr) {
    Sync(range);  // more threads than slots: there is nowhere to remember it
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
  if (Pending* const pending = pending_.Get(); pending != nullptr && !pending->ranges.empty()) {
    Merge(&pending->ranges);
    for (const Range& range : pending->ranges) Sync(range);
    pending->ranges.clear();
    pending->merge_at = kMergeAt;
  }
  return error_.load(std::memory_order_acquire) == 0;
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

// The first error stays for ever: the kernel may have dropped the dirty pages and forgotten the error, so no later sync can
// be believed.
void Persistence::PageSync::Sync(const Range& range) {
  if (error_.load(std::memory_order_relaxed) != 0) return;
  int error = 0;
  if (fail_syncs_->load(std::memory_order_relaxed)) {
    error = EIO;
  } else if (msync(reinterpret_cast<void*>(range.begin), range.end - range.begin, MS_SYNC) != 0) {
    error = errno;
  }
  int none = 0;
  if (error != 0) error_.compare_exchange_strong(none, error, std::memory_order_acq_rel);
}

Status Persistence::PageSync::error() const {
  const int error = error_.load(std::memory_order_acquire);
  if (error == 0) return Status::OK();
  return Status::IOError(std::string("msync failed: ") + std::strerror(error) +
                         "; what was written last may be lost. The database accepts reads only: check the disk and its file "
                         "system (dmesg), then open the database again");
}

}  // namespace braiddb
