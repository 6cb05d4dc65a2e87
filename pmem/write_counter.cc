#include "pmem/write_counter.h"

#include <algorithm>
#include <new>

#include "util/check.h"

namespace braiddb {
namespace {

// Returns the number of aligned units of `unit` bytes that the range touches. REQUIRES: bytes > 0.
uint64_t UnitsOf(const void* address, size_t bytes, uint64_t unit) {
  BRAIDDB_DCHECK(bytes > 0);
  const auto begin = reinterpret_cast<uintptr_t>(address);
  return (begin + bytes - 1) / unit - begin / unit + 1;
}

}  // namespace

// STEPS  1 count the lines  2 extend the last range, if the flush continues it  3 otherwise append a range, after merging if
//        there are many.
void WriteCounter::OnFlush(const void* address, size_t bytes) noexcept {
  if (bytes == 0) return;
  lines_.Add(UnitsOf(address, bytes, kCacheLine));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address) / kXpLine;
  const Stretch flushed{begin, begin + UnitsOf(address, bytes, kXpLine)};
  if (!unfenced_.empty()) {  // most flushes continue the range of the flush before
    Stretch& last = unfenced_.back();
    if (flushed.begin >= last.begin && flushed.begin <= last.end) {
      last.end = std::max(last.end, flushed.end);
      return;
    }
  }
  if (unfenced_.size() >= merge_at_) {
    Merge();
    merge_at_ = std::max(kMergeAt, 2 * unfenced_.size());
  }
  try {
    unfenced_.push_back(flushed);
  } catch (const std::bad_alloc&) {
    // A write must not fail for a count. Units that are flushed again before the fence are counted again.
    CountUnfenced();
    xp_lines_.Add(flushed.end - flushed.begin);
  }
}

// The ranges since the last fence are complete now.
void WriteCounter::OnDrain() noexcept {
  fences_.Add(1);
  CountUnfenced();
}

void WriteCounter::Merge() {
  std::sort(unfenced_.begin(), unfenced_.end(), [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (size_t i = 1; i < unfenced_.size(); ++i) {
    Stretch& last = unfenced_[kept];
    if (unfenced_[i].begin <= last.end) {
      last.end = std::max(last.end, unfenced_[i].end);
    } else {
      unfenced_[++kept] = unfenced_[i];
    }
  }
  unfenced_.resize(std::min(unfenced_.size(), kept + 1));
  BRAIDDB_DCHECK(unfenced_.empty() || unfenced_.front().begin < unfenced_.front().end);
}

void WriteCounter::CountUnfenced() {
  if (unfenced_.size() > 1) Merge();
  uint64_t count = 0;
  for (const Stretch& stretch : unfenced_) count += stretch.end - stretch.begin;
  xp_lines_.Add(count);
  unfenced_.clear();
  merge_at_ = kMergeAt;
  if (unfenced_.capacity() > 2 * kMergeAt) std::vector<Stretch>().swap(unfenced_);  // returns the memory that a large batch took
}

WriteCounter* WriteCounters::Own() noexcept try { return counters_.Get(); } catch (const std::bad_alloc&) {
  return nullptr;
}

void WriteCounters::OnFlush(const void* address, size_t bytes) noexcept {
  if (WriteCounter* const own = Own()) return own->OnFlush(address, bytes);
  if (bytes == 0) return;
  lines_.fetch_add(UnitsOf(address, bytes, kCacheLine), std::memory_order_relaxed);
  xp_lines_.fetch_add(UnitsOf(address, bytes, WriteCounter::kXpLine), std::memory_order_relaxed);
}

void WriteCounters::OnDrain() noexcept {
  if (WriteCounter* const own = Own()) return own->OnDrain();
  fences_.fetch_add(1, std::memory_order_relaxed);
}

// Not a snapshot: other threads may count meanwhile.
PmWrites WriteCounters::Sum() const {
  PmWrites sum{lines_.load(std::memory_order_relaxed), xp_lines_.load(std::memory_order_relaxed),
               fences_.load(std::memory_order_relaxed)};
  counters_.ForEach([&sum](const WriteCounter& counter) {
    const PmWrites writes = counter.writes();
    sum.lines += writes.lines;
    sum.xp_lines += writes.xp_lines;
    sum.fences += writes.fences;
  });
  return sum;
}

}  // namespace braiddb
