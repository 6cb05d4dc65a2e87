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
  LastBatch* last = last_batches_.Get();

  std::lock_guard<std::mutex> lock(mutex_);
  if (last != nullptr) last->number = open_batch_;
  // Appends to a log touch the page of the last append or the one after it.
  if (!open_ranges_.empty() && range.begin >= open_ranges_.back().begin && range.begin <= open_ranges_.back().end) {
    open_ranges_.back().end = std::max(open_ranges_.back().end, range.end);
    return;
  }
  open_ranges_.push_back(range);
  if (open_ranges_.size() >= merge_at_) {
    Merge(&open_ranges_);
    merge_at_ = std::max<size_t>(1024, 2 * open_ranges_.size());
  }
}

bool Persistence::PageSync::Drain() {
  LastBatch* last = last_batches_.Get();
  std::unique_lock<std::mutex> lock(mutex_);
  // A thread without a slot of its own waits for everything that is pending.
  const uint64_t mine = last != nullptr ? last->number : (open_ranges_.empty() ? open_batch_ - 1 : open_batch_);
  while (error_ == 0 && done_batch_ < mine) {
    if (leader_) {
      done_changed_.wait(lock);
    } else {
      LeadBatch(&lock);
    }
  }
  return error_ == 0;
}

// Batches are done in the order of their numbers, because there is one leader at a time and it takes the whole open batch.
void Persistence::PageSync::LeadBatch(std::unique_lock<std::mutex>* lock) {
  std::vector<Range> ranges;
  ranges.swap(open_ranges_);
  merge_at_ = 1024;
  const uint64_t batch = open_batch_++;
  leader_ = true;
  lock->unlock();

  Merge(&ranges);
  const int error = Sync(ranges);

  lock->lock();
  leader_ = false;
  if (error == 0) {
    done_batch_ = batch;
  } else {
    // The kernel may have dropped the dirty pages and forgotten the error: no later sync can be believed.
    error_ = error;
  }
  done_changed_.notify_all();
}

void Persistence::PageSync::Merge(std::vector<Range>* ranges) {
  if (ranges->empty()) return;
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

int Persistence::PageSync::Sync(const std::vector<Range>& ranges) const {
  if (fail_syncs_->load(std::memory_order_relaxed)) return EIO;
  for (const Range& range : ranges) {
    if (msync(reinterpret_cast<void*>(range.begin), range.end - range.begin, MS_SYNC) != 0) return errno;
  }
  return 0;
}

Status Persistence::PageSync::error() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (error_ == 0) return Status::OK();
  return Status::IOError(std::string("msync failed: ") + std::strerror(error_) +
                         "; what was written last may be lost. The database accepts reads only: check the disk and its file "
                         "system (dmesg), then open the database again");
}

}  // namespace braiddb
