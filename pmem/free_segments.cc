// The free segments of a region: their lists, and the return of their blocks to the file system (BLOCKS in segment_allocator.h).
#include <algorithm>

#include "pmem/segment_allocator_impl.h"

namespace braiddb {
namespace {

// Free space with blocks that each region keeps, in segments of the usual size: for all uses above, and one segment more.
constexpr uint64_t kKeptWithBlocks = kCrashTest ? 0 : kKeptForBackground + kKeptForDeletes + 1;

}  // namespace

// Returns the bytes of free segments whose pages all have blocks. REQUIRES: mutex.
uint64_t SegmentAllocator::Impl::FreeWithBlocks(const RegionSegments& home) { return home.bytes_with_blocks; }

// Returns the bytes of free segments whose blocks GiveBackFree may give back. REQUIRES: mutex.
uint64_t SegmentAllocator::Impl::BytesToGiveBack(const RegionSegments& home) {
  return home.bytes_with_blocks + home.doubtful_bytes;
}

// Removes and returns the smallest segment of free_segments with a capacity in [min_bytes, max_bytes]; null if there is none.
Segment* SegmentAllocator::Impl::PopFree(RegionSegments* home, uint64_t min_bytes, uint64_t max_bytes) {
  const std::lock_guard<std::mutex> lock(home->mutex);
  const auto it = home->free_segments.lower_bound(min_bytes);
  if (it == home->free_segments.end() || it->first > max_bytes) return nullptr;
  Segment* const segment = it->second;
  BRAIDDB_DCHECK(segment->state() == SegmentState::kFree && segment->capacity() == it->first);
  BRAIDDB_DCHECK(home->usage.free_segments > 0 && home->usage.free_bytes >= segment->capacity());
  home->free_segments.erase(it);
  home->bytes_with_blocks -= segment->capacity();
  --home->usage.free_segments;
  home->usage.free_bytes -= segment->capacity();
  home->least_free = std::min(home->least_free, BytesToGiveBack(*home));
  return segment;
}

void SegmentAllocator::Impl::PushFree(RegionSegments* home, Segment* segment) {
  BRAIDDB_DCHECK(segment->state() == SegmentState::kFree);
  const std::lock_guard<std::mutex> lock(home->mutex);
  home->free_segments.emplace(segment->capacity(), segment);
  home->bytes_with_blocks += segment->capacity();
  ++home->usage.free_segments;
  home->usage.free_bytes += segment->capacity();
}

// Counts a segment that enters punched_segments or doubtful_segments. REQUIRES: mutex.
void SegmentAllocator::Impl::AddWithoutBlocks(RegionSegments* home, Segment* segment, bool counts_as_punched) {
  BRAIDDB_DCHECK(segment->state() == SegmentState::kFree);
  segment->touched_.store(false, std::memory_order_relaxed);
  segment->has_small_pages_.store(true, std::memory_order_relaxed);
  ++home->usage.free_segments;
  home->usage.free_bytes += segment->capacity();
  segment->counts_as_punched_ = counts_as_punched;
  if (!counts_as_punched) return;
  ++home->usage.punched_segments;
  home->usage.punched_bytes += segment->capacity();
}

// Reverses AddWithoutBlocks. REQUIRES: mutex.
void SegmentAllocator::Impl::RemoveWithoutBlocks(RegionSegments* home, Segment* segment) {
  BRAIDDB_DCHECK(segment->state() == SegmentState::kFree && home->usage.free_segments > 0);
  --home->usage.free_segments;
  home->usage.free_bytes -= segment->capacity();
  if (!segment->counts_as_punched_) return;
  BRAIDDB_DCHECK(home->usage.punched_segments > 0);
  --home->usage.punched_segments;
  home->usage.punched_bytes -= segment->capacity();
}

void SegmentAllocator::Impl::PushPunched(RegionSegments* home, Segment* segment) {
  const std::lock_guard<std::mutex> lock(home->mutex);
  home->punched_segments.emplace(segment->capacity(), segment);
  AddWithoutBlocks(home, segment, true);
}

void SegmentAllocator::Impl::PushDoubtful(RegionSegments* home, Segment* segment, bool counts_as_punched) {
  const std::lock_guard<std::mutex> lock(home->mutex);
  home->doubtful_segments.emplace(segment->capacity(), segment);
  home->doubtful_bytes += segment->capacity();
  AddWithoutBlocks(home, segment, counts_as_punched);
}

// Removes and returns the smallest doubtful segment with a capacity in [min_bytes, max_bytes]; if there is none, the smallest
// punched segment; null if there is none either.
Segment* SegmentAllocator::Impl::PopWithoutBlocks(RegionSegments* home, uint64_t min_bytes, uint64_t max_bytes,
                                                  bool* is_doubtful) {
  const std::lock_guard<std::mutex> lock(home->mutex);
  for (auto* const segments : {&home->doubtful_segments, &home->punched_segments}) {
    const auto it = segments->lower_bound(min_bytes);
    if (it == segments->end() || it->first > max_bytes) continue;
    Segment* const segment = it->second;
    *is_doubtful = segments == &home->doubtful_segments;
    segments->erase(it);
    RemoveWithoutBlocks(home, segment);
    if (*is_doubtful) {
      home->doubtful_bytes -= segment->capacity();
      home->least_free = std::min(home->least_free, BytesToGiveBack(*home));
    }
    return segment;
  }
  return nullptr;
}

// Removes the smallest doubtful or punched segment with a capacity in [min_bytes, max_bytes], and takes blocks for its pages.
// *segment is null if there is none. After an error *segment is null too, and the segment is doubtful or punched again.
Status SegmentAllocator::Impl::TakePunched(RegionSegments* home, uint64_t min_bytes, uint64_t max_bytes, Segment** segment) {
  *segment = nullptr;
  bool is_doubtful = false;
  Segment* const found = PopWithoutBlocks(home, min_bytes, max_bytes, &is_doubtful);
  if (found == nullptr) return Status::OK();
  // ORDER: blocks for all pages before the segment is opened or returned. [CC-66]
  Status status = home->region->TakeBlocks(PagesOf(found));
  if (status.ok()) {
    *segment = found;
  } else {
    is_doubtful ? PushDoubtful(home, found, found->counts_as_punched_) : PushPunched(home, found);
  }
  return status;
}

// Returns the pages that a free segment can do without: all behind its header.
PoolRange SegmentAllocator::Impl::PagesOf(const Segment* segment) {
  const uint64_t begin = segment->start_.offset();
  return PagesInside(begin, begin + segment->capacity());
}

// ---- Blocks

// Returns the bytes of free segments with blocks that the region keeps.
uint64_t SegmentAllocator::Impl::KeptBytes(const RegionSegments& home, uint64_t kept) const {
  return std::max(kept / regions_.size(), kKeptWithBlocks * (UsualChunks(home) * kChunkBytes - kSegmentOverhead));
}

bool SegmentAllocator::Impl::HasSuperfluous(uint64_t kept) const {
  for (const RegionSegments& home : regions_) {
    if (!home.region->MayGiveBack()) continue;
    const uint64_t keeps = KeptBytes(home, kept);
    const std::lock_guard<std::mutex> lock(home.mutex);
    const uint64_t bytes = BytesToGiveBack(home);
    const uint64_t superfluous = bytes - std::min(bytes, keeps);
    for (const auto* const segments : {&home.doubtful_segments, &home.free_segments}) {
      if (!segments->empty() && superfluous >= segments->begin()->first) return true;
    }
  }
  return false;
}

// Removes and returns the largest doubtful segment of at most `most_bytes` bytes; if there is none, the largest free segment;
// null if there is none either. PopFree takes the smallest.
Segment* SegmentAllocator::Impl::PopSuperfluous(RegionSegments* home, uint64_t most_bytes, bool* is_doubtful) {
  const std::lock_guard<std::mutex> lock(home->mutex);
  for (auto* const segments : {&home->doubtful_segments, &home->free_segments}) {
    auto it = segments->upper_bound(most_bytes);
    if (it == segments->begin()) continue;
    Segment* const segment = (--it)->second;
    *is_doubtful = segments == &home->doubtful_segments;
    segments->erase(it);
    if (*is_doubtful) {
      home->doubtful_bytes -= segment->capacity();
      RemoveWithoutBlocks(home, segment);
    } else {
      home->bytes_with_blocks -= segment->capacity();
      --home->usage.free_segments;
      home->usage.free_bytes -= segment->capacity();
    }
    home->least_free = std::min(home->least_free, BytesToGiveBack(*home));
    return segment;
  }
  return nullptr;
}

// Gives the blocks of a segment that PopSuperfluous has returned back, and enters the segment in its new list.
void SegmentAllocator::Impl::GiveBackSegment(RegionSegments* home, Segment* segment, bool is_doubtful) {
  // ORDER: kFree is durable before the hole. A segment enters the free list when its state is durable. [CC-66]
  if (home->region->GiveBack(PagesOf(segment)).ok()) return PushPunched(home, segment);
  if (is_doubtful) return PushDoubtful(home, segment, segment->counts_as_punched_);
  home->region->TakeBlocks(PagesOf(segment)).ok() ? PushFree(home, segment) : PushPunched(home, segment);
}

// STEPS  1 note the least bytes that may have blocks since the last call  2 the bytes that were free during the whole window,
//        beyond the kept bytes, are superfluous  3 remove a segment from its list, so that no thread takes it  4 give its
//        blocks back  5 enter it as punched.
void SegmentAllocator::Impl::GiveBackFree(uint64_t kept, const std::function<bool()>& stops) {
  for (RegionSegments& home : regions_) {
    if (!home.region->MayGiveBack()) continue;
    const uint64_t keeps = KeptBytes(home, kept);
    uint64_t superfluous = 0;
    {
      const std::lock_guard<std::mutex> lock(home.mutex);
      std::move_backward(home.least_free_before.begin(), home.least_free_before.end() - 1, home.least_free_before.end());
      home.least_free_before[0] = std::min(home.least_free, BytesToGiveBack(home));
      home.least_free = BytesToGiveBack(home);
      const uint64_t unused = *std::min_element(home.least_free_before.begin(), home.least_free_before.end());
      superfluous = unused - std::min(unused, keeps);
    }
    while (superfluous > 0 && !stops() && home.region->MayGiveBack()) {
      bool is_doubtful = false;
      Segment* const segment = PopSuperfluous(&home, superfluous, &is_doubtful);
      if (segment == nullptr) break;
      superfluous -= segment->capacity();
      for (uint64_t& unused : home.least_free_before) unused -= std::min(unused, segment->capacity());
      GiveBackSegment(&home, segment, is_doubtful);
    }
  }
}

}  // namespace braiddb
