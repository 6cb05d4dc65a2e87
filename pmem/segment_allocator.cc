#include "pmem/segment_allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "pmem/layout_check.h"
#include "pmem/segment_allocator_impl.h"
#include "util/check.h"
#include "util/huge_pages.h"
#include "util/mutant.h"

namespace braiddb {
namespace {

constexpr uint64_t kMinSegmentSize = kChunkBytes;
constexpr uint64_t kMaxSegmentSize = 1ull << 30;
constexpr uint64_t kYoungShare = 16;  // a segment below full size takes at most one part in so many of its region
constexpr uint64_t kPlentyFree = 4;   // free bytes, as a multiple of a large request, that avoid a growth of the region
// With more open segments in a region, further ones are smaller, so that the sum of open segments stays about the same.
constexpr uint64_t kFullOpenSegments = 16;
// Bound of the bytes of deferred segments: kMaxDeferred plus one part in kMaxDeferredShare of the bytes in use. Beyond the
// bound all deferred segments are freed.
constexpr uint64_t kMaxDeferred = 64 << 20;
constexpr uint64_t kMaxDeferredShare = 4;

// The smallest number of chunks whose segment has a capacity of at least `bytes`.
uint64_t ChunksFor(uint64_t bytes) { return (bytes + kSegmentOverhead + kChunkBytes - 1) / kChunkBytes; }

// Gives every page of the range memory, and changes no byte: the kernel populates the pages, or an addition of 0 touches each.
void TouchPages(uint8_t* data, uint64_t bytes) {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data) & ~(page - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(data) + bytes;
  if (madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE) == 0) return;
  for (uintptr_t at = reinterpret_cast<uintptr_t>(data); at < end; at = (at & ~(page - 1)) + page) {
    std::atomic_ref<uint8_t>(*reinterpret_cast<uint8_t*>(at)).fetch_add(0, std::memory_order_relaxed);
  }
}

}  // namespace

// ---- Opening

Status SegmentAllocator::Impl::Load() {
  for (RegionSegments& home : regions_) {
    if (Status status = home.map.Reserve(home.region->max_bytes()); !status.ok()) return status;
    if (Status status = LoadRegion(&home); !status.ok()) return status;
  }
  return Status::OK();
}

// STEPS  1 load and check all descriptors  2 make them durable  3 for each: finish what a crash has cut short, make a handle,
//        and enter it in the free list or in the counts. [CC-46]
Status SegmentAllocator::Impl::LoadRegion(RegionSegments* home) {
  std::vector<SegmentDescriptor*> descriptors;
  if (Status status = home->directory.Load(&descriptors); !status.ok()) return status;
  if (Status status = home->directory.PersistFound(descriptors); !status.ok()) return status;
  for (SegmentDescriptor* descriptor : descriptors) {
    if (Status status = home->directory.Finish(descriptor, full_chunks_); !status.ok()) return status;
    if (descriptor->object.offset == 0) {
      home->unused_descriptors.push_back(descriptor);
      continue;
    }
    Segment* const segment = Register(home, descriptor);
    const SegmentState state = SegmentDirectory::StateOf(*descriptor);
    segment->state_.store(state, std::memory_order_relaxed);
    if (state == SegmentState::kFree) {
      // An open that found holes has left them inside free segments. The file system reports reserved blocks without data as
      // holes too. A segment without any data counts as punched: reserved segments without any write are few.
      const PartBlocks::Found found = home->region->FindBlocks(PagesOf(segment));
      found == PartBlocks::Found::kAll ? PushFree(home, segment) : PushDoubtful(home, segment, found == PartBlocks::Found::kNone);
    } else {
      segment->generation_ = descriptor->generation;
      segment->entry_seed_ = EntrySeed(*descriptor);
      ++home->usage.segments;
      home->usage.segment_bytes += segment->capacity();
      if (state == SegmentState::kOpen) ++home->open_segments;
    }
    if (state == SegmentState::kSealed) {
      segment->sealed_bytes_.store(descriptor->sealed_bytes, std::memory_order_relaxed);
      segment->sealed_last_sequence_.store(descriptor->sealed_last_sequence, std::memory_order_relaxed);
    }
  }
  return Status::OK();
}

// Makes or reuses the handle of a descriptor that has just got its object, and enters it in the map.
Segment* SegmentAllocator::Impl::Register(RegionSegments* home, SegmentDescriptor* descriptor) {
  const uint64_t start = SegmentDirectory::DataOffsetOf(*descriptor);
  const uint64_t capacity = SegmentDirectory::CapacityOf(*descriptor);
  const std::lock_guard<std::mutex> lock(home->mutex);
  Segment* segment = nullptr;
  if (const auto it = home->returned_handles.find(start); it != home->returned_handles.end()) {
    segment = it->second;
    home->returned_handles.erase(it);
  } else {
    segment = &home->handles.emplace_back();
    segment->region_ = home->region->index();
    segment->data_ = home->region->base() + start;
    segment->start_ = PmPtr(home->region->index(), start);
  }
  // ORDER in DRAM: these fields before the map has the segment. The map stores its cells with release.
  segment->capacity_.store(capacity, std::memory_order_relaxed);
  segment->touched_.store(false, std::memory_order_relaxed);
  segment->has_small_pages_.store(false, std::memory_order_relaxed);
  segment->descriptor_ = descriptor;
  home->map.Insert(segment);
  return segment;
}

// ---- Finding room

// Chunks of a segment of the usual size: grows with the region up to full_chunks_.
uint64_t SegmentAllocator::Impl::UsualChunks(const RegionSegments& home) const {
  return std::clamp(home.region->reserved_bytes() / kYoungShare / kChunkBytes, uint64_t{1}, full_chunks_);
}

// Chunks of the next open segment: the usual size, or less if there are more than kFullOpenSegments.
uint64_t SegmentAllocator::Impl::OpenChunks(const RegionSegments& home) const {
  const std::lock_guard<std::mutex> lock(home.mutex);
  const uint64_t count = std::max(kFullOpenSegments, home.open_segments + 1);
  return std::max(uint64_t{1}, UsualChunks(home) * kFullOpenSegments / count);
}

// Returns an unused descriptor, from a new block if there is none. REQUIRES: take_mutex.
Status SegmentAllocator::Impl::UnusedDescriptor(RegionSegments* home, SegmentDescriptor** descriptor) {
  std::vector<SegmentDescriptor*> fresh;
  {
    const std::lock_guard<std::mutex> lock(home->mutex);
    if (!home->unused_descriptors.empty()) {
      *descriptor = home->unused_descriptors.back();
      home->unused_descriptors.pop_back();
      return Status::OK();
    }
  }
  if (Status status = home->directory.AddBlock(&fresh); !status.ok()) return status;
  *descriptor = fresh.front();
  const std::lock_guard<std::mutex> lock(home->mutex);
  home->unused_descriptors.insert(home->unused_descriptors.end(), fresh.rbegin(), fresh.rend() - 1);
  return Status::OK();
}

// unused → taken. NoSpace: the descriptor is unused again.
Status SegmentAllocator::Impl::TakeFromPool(RegionSegments* home, uint64_t chunks, Segment** segment) {
  const std::lock_guard<std::mutex> taking(home->take_mutex);
  SegmentDescriptor* descriptor = nullptr;
  if (Status status = UnusedDescriptor(home, &descriptor); !status.ok()) return status;
  Status status = home->directory.Take(descriptor, chunks);
  if (!status.ok()) {
    const std::lock_guard<std::mutex> lock(home->mutex);
    home->unused_descriptors.push_back(descriptor);
    return status;
  }
  *segment = Register(home, descriptor);
  return Status::OK();
}

// Returns all free segments to the pool, where neighbours join.
Status SegmentAllocator::Impl::ReturnAllFree(RegionSegments* home) {
  while (Segment* spare = PopFree(home, 0, UINT64_MAX)) {
    if (Status status = ReturnToPool(home, spare); !status.ok()) return status;
  }
  return Status::OK();
}

// As ReturnAllFree, for doubtful and punched segments. Those for which the file system has no blocks stay what they are.
Status SegmentAllocator::Impl::ReturnAllPunched(RegionSegments* home) {
  Segment* segment = nullptr;
  while (TakePunched(home, 0, UINT64_MAX, &segment).ok() && segment != nullptr) {
    if (Status status = ReturnToPool(home, segment); !status.ok()) return status;
  }
  return Status::OK();
}

// STEPS  1 a free segment that is at most twice as large as needed; one with blocks first  2 the pool, for the usual size and
//        then for smaller ones  3 any free segment that is large enough  4 return all free segments to the pool, and take the
//        smallest size from there. If the file system has no blocks for a punched segment, the pool may still have room.
Status SegmentAllocator::Impl::FindRoom(RegionSegments* home, uint64_t min_bytes, uint64_t usual_chunks, Segment** segment) {
  const uint64_t min_chunks = ChunksFor(min_bytes);
  uint64_t chunks = std::max(min_chunks, usual_chunks);
  if ((*segment = PopFree(home, min_bytes, 2 * chunks * kChunkBytes)) != nullptr) return Status::OK();
  (void)TakePunched(home, min_bytes, 2 * chunks * kChunkBytes, segment);
  if (*segment != nullptr) return Status::OK();

  // A request larger than every free segment: if enough bytes are free, returning them avoids a growth of the region.
  const auto free_with_blocks = [home] {
    const std::lock_guard<std::mutex> lock(home->mutex);
    return FreeWithBlocks(*home);
  };
  if (chunks > full_chunks_ && free_with_blocks() / kPlentyFree >= min_bytes) {
    if (Status status = ReturnAllFree(home); !status.ok()) return status;
  }
  Status status = TakeFromPool(home, chunks, segment);
  while (status.IsNoSpace() && chunks > min_chunks) {
    chunks = std::max(min_chunks, chunks / 2);
    status = TakeFromPool(home, chunks, segment);
  }
  if (!status.IsNoSpace()) return status;
  if ((*segment = PopFree(home, min_bytes, UINT64_MAX)) != nullptr) return Status::OK();
  (void)TakePunched(home, min_bytes, UINT64_MAX, segment);
  if (*segment != nullptr) return Status::OK();
  if (GetUsage(home->region->index()).free_segments == 0) return status;
  if (Status returned = ReturnAllFree(home); !returned.ok()) return returned;
  if (Status returned = ReturnAllPunched(home); !returned.ok()) return returned;
  return TakeFromPool(home, min_chunks, segment);
}

// kFree → unused. REQUIRES: the segment is kFree on media, and in no free list.
// CRASH  in directory.Return: the open finishes the return (SegmentDirectory::Finish).
Status SegmentAllocator::Impl::ReturnToPool(RegionSegments* home, Segment* segment) {
  BRAIDDB_DCHECK(segment->state() == SegmentState::kFree);
  // The map forgets the segment first: as soon as the pool has the object, a new segment may be entered for the same range.
  home->map.Erase(segment);
  segment->state_.store(SegmentState::kUnused, std::memory_order_release);
  SegmentDescriptor* const descriptor = DescriptorOf(segment);
  {
    // Also before the object is freed: a new segment with the same start takes the handle over.
    const std::lock_guard<std::mutex> lock(home->mutex);
    home->returned_handles.emplace(segment->start_.offset(), segment);
  }
  if (Status status = home->directory.Return(descriptor); !status.ok()) return status;
  const std::lock_guard<std::mutex> lock(home->mutex);
  home->unused_descriptors.push_back(descriptor);
  return Status::OK();
}

// ---- State changes

// kFree or taken → in use, on media first, then in DRAM.
Status SegmentAllocator::Impl::Open(RegionSegments* home, Segment* segment, SegmentState state) {
  BRAIDDB_DCHECK(IsUsed(state) && !IsUsed(segment->state()));
  uint64_t generation = 0;
  {
    // Both under the lock, so that generations reach media in ascending order: a process that reads the files and sees a
    // generation knows that all smaller ones are there or were there (txn/primary_reader.h).
    const std::lock_guard<std::mutex> lock(home->generation_mutex);
    if (Status status = home->directory.NextGeneration(&generation); !status.ok()) return status;
    if (Status status = home->directory.Open(DescriptorOf(segment), generation, state); !status.ok()) return status;
  }
  // First, so that a thread that reads the fields below can detect another use. release: such threads take no lock.
  segment->generation_.store(generation, std::memory_order_release);
  segment->entry_seed_.store(EntrySeed(*DescriptorOf(segment)), std::memory_order_release);
  segment->sealed_bytes_.store(0, std::memory_order_relaxed);
  segment->sealed_last_sequence_.store(0, std::memory_order_relaxed);
  segment->used_bytes.store(0, std::memory_order_relaxed);
  segment->entries.store(0, std::memory_order_relaxed);
  segment->dead_entries.store(0, std::memory_order_relaxed);
  segment->dead_bytes.store(0, std::memory_order_relaxed);
  segment->last_sequence.store(0, std::memory_order_relaxed);
  segment->packed.store(false, std::memory_order_relaxed);
  segment->stays.store(false, std::memory_order_relaxed);
  segment->holds_copies.store(HoldsCopies(state), std::memory_order_relaxed);
  // release: pairs with the acquire in Segment::state(); the fields above are set.
  segment->state_.store(state, std::memory_order_release);
  return Status::OK();
}

// Keeps `bytes` bytes free, with blocks: returns OK if so many are free, or if the region can grow by twice as many. Otherwise
// takes blocks for punched segments, and then spares from the pool. NoSpace: file system and pool have too little.
Status SegmentAllocator::Impl::KeepReserve(RegionSegments* home, uint64_t bytes) {
  uint64_t chunks = UsualChunks(*home);
  const auto has_enough = [&] {
    const std::lock_guard<std::mutex> lock(home->mutex);
    return FreeWithBlocks(*home) >= bytes;
  };
  while (!has_enough() && home->region->Headroom() < 2 * bytes) {
    if (BackSpare(home, 0)) continue;
    Status status = MakeSpare(home, chunks);
    if (status.ok()) continue;
    if (!status.IsNoSpace()) return status;
    if (chunks == 1) {
      return Status::NoSpace(std::string(status.message()) + "; what is free of region " + std::to_string(home->region->index()) +
                             " is kept for deletions and for making room");
    }
    chunks /= 2;
  }
  return Status::OK();
}

// Frees a segment that FindRoom has returned and Open has not opened.
Status SegmentAllocator::Impl::GiveBack(RegionSegments* home, Segment* segment) {
  if (segment->state() != SegmentState::kFree) {
    if (Status status = home->directory.Free(DescriptorOf(segment)); !status.ok()) return status;
    segment->state_.store(SegmentState::kFree, std::memory_order_release);
  }
  if (DescriptorOf(segment)->chunks > full_chunks_) return ReturnToPool(home, segment);
  PushFree(home, segment);
  return Status::OK();
}

// If there is no space, deferred segments are freed although other processes read: a reader notices, and begins again.
Status SegmentAllocator::Impl::Allocate(uint32_t region, uint64_t min_bytes, SegmentState state, Segment** segment, SpaceUse use,
                                        uint64_t enough) {
  Status status = AllocateOnce(region, min_bytes, state, segment, use, enough);
  if (!status.IsNoSpace() || !has_deferred()) return status;
  if (Status freed = FreeDeferred(true); !freed.ok()) return freed;
  return AllocateOnce(region, min_bytes, state, segment, use, enough);
}

// STEPS  1 keep the reserve of other uses free  2 find a segment  3 check the reserve again; without it give the segment back
//        4 open the segment, durably  5 count it.
Status SegmentAllocator::Impl::AllocateOnce(uint32_t region, uint64_t min_bytes, SegmentState state, Segment** segment,
                                            SpaceUse use, uint64_t enough) {
  BRAIDDB_DCHECK(region < regions_.size() && IsUsed(state) && state != SegmentState::kSealed);
  RegionSegments& home = regions_[region];
  if (min_bytes > UINT64_MAX / 2) return Status::InvalidArgument("a segment cannot have " + std::to_string(min_bytes) + " bytes");
  Segment* found = nullptr;
  const uint64_t usual = UsualChunks(home) * kChunkBytes - kSegmentOverhead;
  const uint64_t reserve = (kKeptForBackground + (use == SpaceUse::kPut ? kKeptForDeletes : 0)) * usual;
  if (use != SpaceUse::kBackground) {
    if (Status status = KeepReserve(&home, reserve + std::max(min_bytes, usual)); !status.ok()) return status;
  }
  const uint64_t usual_chunks = state == SegmentState::kOpen ? OpenChunks(home) : UsualChunks(home);
  const uint64_t chunks = std::min(usual_chunks, ChunksFor(std::min(enough, usual)));
  if (Status status = FindRoom(&home, min_bytes, chunks, &found); !status.ok()) return status;
  if (use != SpaceUse::kBackground) {
    // Other threads may have taken the reserve meanwhile.
    const Status kept = KeepReserve(&home, reserve);
    if (!kept.ok()) {
      const Status given_back = GiveBack(&home, found);
      return given_back.ok() ? kept : given_back;
    }
  }
  if (Status status = Open(&home, found, state); !status.ok()) return status;
  {
    const std::lock_guard<std::mutex> lock(home.mutex);
    ++home.usage.segments;
    home.usage.segment_bytes += found->capacity();
    if (state == SegmentState::kOpen) ++home.open_segments;
  }
  allocated_count.fetch_add(1, std::memory_order_relaxed);
  *segment = found;
  return Status::OK();
}

Status SegmentAllocator::Impl::Seal(Segment* segment, uint64_t valid_bytes, uint64_t last_sequence) {
  BRAIDDB_CHECK(segment->state() == SegmentState::kOpen || HoldsCopies(segment->state()));
  Status status = HomeOf(segment).directory.Seal(DescriptorOf(segment), valid_bytes, last_sequence);
  if (status.ok()) OnSealed(segment);
  return status;
}

void SegmentAllocator::Impl::PrepareSeal(Segment* segment, uint64_t valid_bytes, uint64_t last_sequence) {
  BRAIDDB_DCHECK(segment->state() == SegmentState::kOpen || HoldsCopies(segment->state()));
  HomeOf(segment).directory.PrepareSeal(DescriptorOf(segment), valid_bytes, last_sequence);
}

void SegmentAllocator::Impl::SealPrepared(Segment* segment) {
  HomeOf(segment).directory.SealPrepared(DescriptorOf(segment));
  OnSealed(segment);
}

// Publishes the seal in DRAM. release: a thread that sees kSealed sees the sealed size.
void SegmentAllocator::Impl::OnSealed(Segment* segment) {
  RegionSegments& home = HomeOf(segment);
  if (segment->state() == SegmentState::kOpen) {
    const std::lock_guard<std::mutex> lock(home.mutex);
    BRAIDDB_DCHECK(home.open_segments > 0);
    --home.open_segments;
  }
  segment->sealed_bytes_.store(DescriptorOf(segment)->sealed_bytes, std::memory_order_relaxed);
  segment->sealed_last_sequence_.store(DescriptorOf(segment)->sealed_last_sequence, std::memory_order_relaxed);
  segment->state_.store(SegmentState::kSealed, std::memory_order_release);
}

// ORDER: deferred segments are freed before segments that are released later. A version in an old run has no mark. Only a
// tombstone,
//        whose segment is released later, hides it from a process that reads all segments (txn/primary_reader.h).
Status SegmentAllocator::Impl::Release(Segment* segment) {
  const SegmentState state = segment->state();
  BRAIDDB_CHECK(IsUsed(state));
  if (state == SegmentState::kSealed || state == SegmentState::kIndex) {
    const std::lock_guard<std::mutex> lock(deferred_mutex_);
    const bool waits = Waits(segment->capacity_);
    if (!waits || deferred_bytes_ + segment->capacity_ > MostDeferred()) {
      if (Status status = FreeAllDeferred(); !status.ok()) return status;
    }
    if (waits) {
      deferred_.push_back(segment);
      deferred_bytes_ += segment->capacity_;
      deferred_count_.store(deferred_.size(), std::memory_order_release);
      CountReleased(segment);
      return Status::OK();
    }
  }
  if (BRAIDDB_MUTANT("hole-before-free") && HomeOf(segment).region->MayGiveBack())
    (void)HomeOf(segment).region->GiveBack(PagesOf(segment));
  if (Status status = HomeOf(segment).directory.Free(DescriptorOf(segment)); !status.ok()) return status;
  CountReleased(segment);
  return AddFree(segment);
}

// Releases the segment in DRAM: state, usage and counters.
void SegmentAllocator::Impl::CountReleased(Segment* segment) {
  BRAIDDB_DCHECK(IsUsed(segment->state()));
  RegionSegments& home = HomeOf(segment);
  const bool was_open = segment->state() == SegmentState::kOpen;
  segment->state_.store(SegmentState::kFree, std::memory_order_release);
  {
    const std::lock_guard<std::mutex> lock(home.mutex);
    BRAIDDB_DCHECK(home.usage.segments > 0 && home.usage.segment_bytes >= segment->capacity());
    BRAIDDB_DCHECK(!was_open || home.open_segments > 0);
    if (was_open) --home.open_segments;
    --home.usage.segments;
    home.usage.segment_bytes -= segment->capacity();
  }
  recycled_count.fetch_add(1, std::memory_order_relaxed);
}

// Makes the segment available to allocations; a large one returns to the pool. REQUIRES: the segment is kFree on media.
Status SegmentAllocator::Impl::AddFree(Segment* segment) {
  RegionSegments& home = HomeOf(segment);
  BRAIDDB_DCHECK(segment->state() == SegmentState::kFree);
  if (DescriptorOf(segment)->chunks > full_chunks_) return ReturnToPool(&home, segment);
  PushFree(&home, segment);
  return Status::OK();
}

// CRASH  after EraseHeader: copies without a header; they are discarded again. After Release: kFree. [CC-47]
Status SegmentAllocator::Impl::Discard(Segment* segment) {
  BRAIDDB_CHECK(HoldsCopies(segment->state()));
  Status status = HomeOf(segment).directory.EraseHeader(DescriptorOf(segment));
  return status.ok() ? Release(segment) : status;
}

// ---- Releases that wait for readers

// Sum over all regions; each region's number is of another moment.
uint64_t SegmentAllocator::Impl::BytesInUse() const {
  uint64_t bytes = 0;
  for (uint32_t region = 0; region < regions_.size(); ++region) bytes += GetUsage(region).segment_bytes;
  return bytes;
}

uint64_t SegmentAllocator::Impl::MostDeferred() const { return kMaxDeferred + BytesInUse() / kMaxDeferredShare; }

// Returns true if the release of a segment of `bytes` bytes is deferred. REQUIRES: deferred_mutex_.
bool SegmentAllocator::Impl::Waits(uint64_t bytes) { return is_read_ && bytes <= MostDeferred() && is_read_(BytesInUse()); }

// Frees all deferred segments on media, in the order of their releases. After an error the rest stays in use on media, as after
// a crash. REQUIRES: deferred_mutex_.
Status SegmentAllocator::Impl::FreeAllDeferred() {
  std::vector<Segment*> freed;
  freed.swap(deferred_);
  deferred_bytes_ = 0;
  Status status;
  for (auto segment = freed.begin(); segment != freed.end() && status.ok(); ++segment) {
    BRAIDDB_DCHECK((*segment)->state() == SegmentState::kFree);
    status = HomeOf(*segment).directory.Free(DescriptorOf(*segment));
    if (status.ok()) status = AddFree(*segment);
  }
  // Last: until here, a thread without space sees deferred segments, and waits for the lock.
  deferred_count_.store(0, std::memory_order_release);
  return status;
}

// For a background thread, and for an allocation without space.
Status SegmentAllocator::Impl::FreeDeferred(bool at_once) {
  const std::lock_guard<std::mutex> lock(deferred_mutex_);
  if (deferred_.empty() || (!at_once && is_read_(BytesInUse()))) return Status::OK();
  return FreeAllDeferred();
}

// ---- Spares

// Takes blocks for a punched segment, which is free then. Returns false if there is none, or no space for its blocks.
bool SegmentAllocator::Impl::BackSpare(RegionSegments* home, uint64_t min_bytes) {
  Segment* segment = nullptr;
  if (!TakePunched(home, min_bytes, UINT64_MAX, &segment).ok() || segment == nullptr) return false;
  PushFree(home, segment);
  return true;
}

// Takes a segment from the pool and makes it kFree.
Status SegmentAllocator::Impl::MakeSpare(RegionSegments* home, uint64_t chunks) {
  BRAIDDB_DCHECK(chunks > 0);
  Segment* segment = nullptr;
  if (Status status = TakeFromPool(home, chunks, &segment); !status.ok()) return status;
  if (Status status = home->directory.Free(DescriptorOf(segment)); !status.ok()) return status;
  segment->state_.store(SegmentState::kFree, std::memory_order_release);
  PushFree(home, segment);
  return Status::OK();
}

// STEPS  1 take spares from the pool until `count` of them are free  2 give memory to the pages of the smallest free segments.
void SegmentAllocator::Impl::PrepareSpares(uint32_t region, uint32_t count) {
  RegionSegments& home = regions_[region];
  const auto usable = [&home](uint64_t usual_bytes) {
    std::vector<Segment*> found;
    const std::lock_guard<std::mutex> lock(home.mutex);
    for (auto it = home.free_segments.lower_bound(usual_bytes); it != home.free_segments.end(); ++it) found.push_back(it->second);
    return found;
  };
  for (;;) {
    const uint64_t usual_bytes = UsualChunks(home) * kChunkBytes - kSegmentOverhead;
    if (usable(usual_bytes).size() >= count) break;
    if (!BackSpare(&home, usual_bytes) && !MakeSpare(&home, UsualChunks(home)).ok()) break;
  }
  // In kPage a touched page must be written back, and a page fault costs little beside a sync.
  if (home.region->persistence()->mode() == PersistMode::kPage) return;
  std::vector<Segment*> candidates = usable(0);
  if (candidates.size() > count) candidates.resize(count);  // PopFree takes the smallest first
  for (Segment* segment : candidates) {
    // TouchPages changes no byte, so another thread may allocate the segment meanwhile.
    if (segment->touched_.exchange(true, std::memory_order_relaxed)) continue;
    TouchPages(segment->data_, segment->capacity());
    // In memory, blocks that are taken again are small pages; those of a new part are huge (Region::PartFill).
    const bool is_in_memory = home.region->persistence()->mode() == PersistMode::kEmulated;
    if (segment->has_small_pages_.exchange(false, std::memory_order_relaxed) && is_in_memory)
      (void)CollapseHugePages(segment->data_, segment->capacity());  // small pages do as well
  }
}

Status SegmentAllocator::Impl::PrepareFirst(uint32_t region) {
  RegionSegments& home = regions_[region];
  Status status = MakeSpare(&home, UsualChunks(home));
  if (!status.ok()) return status.IsNoSpace() ? Status::OK() : status;
  const std::lock_guard<std::mutex> lock(home.generation_mutex);
  return home.directory.ReserveGenerations();
}

// ---- Looking

Segment* SegmentAllocator::Impl::Find(PmPtr p) const {
  return p.region() < regions_.size() ? regions_[p.region()].map.Find(p) : nullptr;
}

template <class Wanted>
void SegmentAllocator::Impl::ForEach(const Wanted& wanted, const std::function<void(Segment*)>& visit) const {
  std::vector<Segment*> found;
  for (const RegionSegments& home : regions_) {
    const std::lock_guard<std::mutex> lock(home.mutex);
    for (const Segment& segment : home.handles) {
      if (wanted(segment.state())) found.push_back(const_cast<Segment*>(&segment));
    }
  }
  for (Segment* segment : found) visit(segment);  // without the lock, since `visit` may call the allocator
}

SegmentAllocator::Usage SegmentAllocator::Impl::GetUsage(uint32_t region) const {
  const std::lock_guard<std::mutex> lock(regions_[region].mutex);
  return regions_[region].usage;
}

// ---- The public face

SegmentAllocator::SegmentAllocator() = default;
SegmentAllocator::~SegmentAllocator() = default;

Status SegmentAllocator::Open(RegionSet* regions, uint64_t segment_size, std::unique_ptr<SegmentAllocator>* result) {
  if (segment_size < kMinSegmentSize || segment_size > kMaxSegmentSize) {
    return Status::InvalidArgument("segment_size is " + std::to_string(segment_size) + " bytes; it must be from " +
                                   std::to_string(kMinSegmentSize) + " to " + std::to_string(kMaxSegmentSize));
  }
  std::unique_ptr<SegmentAllocator> allocator(new SegmentAllocator());
  allocator->impl_ = std::make_unique<Impl>(regions, segment_size);
  if (Status status = allocator->impl_->Load(); !status.ok()) return status;
  *result = std::move(allocator);
  return Status::OK();
}

Status SegmentAllocator::Allocate(uint32_t region, uint64_t min_bytes, Segment** segment, SpaceUse use) {
  return impl_->Allocate(region, min_bytes, SegmentState::kOpen, segment, use);
}
Status SegmentAllocator::AllocateIndex(uint32_t region, uint64_t min_bytes, Segment** segment, uint64_t enough) {
  return impl_->Allocate(region, min_bytes, SegmentState::kIndex, segment, SpaceUse::kBackground, enough);
}
Status SegmentAllocator::AllocateCopies(uint32_t region, uint64_t min_bytes, Segment** segment) {
  return impl_->Allocate(region, min_bytes, SegmentState::kCopies, segment);
}
Status SegmentAllocator::AllocateFlushed(uint32_t region, uint64_t min_bytes, Segment** segment) {
  return impl_->Allocate(region, min_bytes, SegmentState::kFlushed, segment);
}
Status SegmentAllocator::Seal(Segment* segment, uint64_t valid_bytes, uint64_t last_sequence) {
  return impl_->Seal(segment, valid_bytes, last_sequence);
}
void SegmentAllocator::PrepareSeal(Segment* segment, uint64_t valid_bytes, uint64_t last_sequence) {
  impl_->PrepareSeal(segment, valid_bytes, last_sequence);
}
void SegmentAllocator::SealPrepared(Segment* segment) { impl_->SealPrepared(segment); }
Status SegmentAllocator::Release(Segment* segment) { return impl_->Release(segment); }
Status SegmentAllocator::Discard(Segment* segment) { return impl_->Discard(segment); }
void SegmentAllocator::SetReaderCheck(std::function<bool(uint64_t)> is_read) { impl_->SetReaderCheck(std::move(is_read)); }
Status SegmentAllocator::FreeDeferred(bool at_once) { return impl_->FreeDeferred(at_once); }
bool SegmentAllocator::has_deferred() const { return impl_->has_deferred(); }
void SegmentAllocator::PrepareSpares(uint32_t region, uint32_t count) { impl_->PrepareSpares(region, count); }
Status SegmentAllocator::PrepareFirst(uint32_t region) { return impl_->PrepareFirst(region); }
void SegmentAllocator::GiveBackFree(uint64_t kept, const std::function<bool()>& stops) { impl_->GiveBackFree(kept, stops); }
bool SegmentAllocator::HasSuperfluous(uint64_t kept) const { return impl_->HasSuperfluous(kept); }
Segment* SegmentAllocator::Find(PmPtr p) const { return impl_->Find(p); }
void SegmentAllocator::ForEachLog(const std::function<void(Segment*)>& visit) const {
  impl_->ForEach([](SegmentState state) { return state == SegmentState::kOpen || state == SegmentState::kSealed; }, visit);
}
void SegmentAllocator::ForEachIndex(const std::function<void(Segment*)>& visit) const {
  impl_->ForEach([](SegmentState state) { return state == SegmentState::kIndex; }, visit);
}
void SegmentAllocator::ForEachCopies(const std::function<void(Segment*)>& visit) const {
  impl_->ForEach([](SegmentState state) { return state == SegmentState::kCopies; }, visit);
}
void SegmentAllocator::ForEachFlushed(const std::function<void(Segment*)>& visit) const {
  impl_->ForEach([](SegmentState state) { return state == SegmentState::kFlushed; }, visit);
}
SegmentAllocator::Usage SegmentAllocator::GetUsage(uint32_t region) const { return impl_->GetUsage(region); }
uint64_t SegmentAllocator::allocated_count() const { return impl_->allocated_count.load(std::memory_order_relaxed); }
uint64_t SegmentAllocator::recycled_count() const { return impl_->recycled_count.load(std::memory_order_relaxed); }

}  // namespace braiddb
