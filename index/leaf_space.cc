#include "index/leaf_space.h"

#include <xxhash.h>

#include "index/atomic_words.h"
#include "util/check.h"
#include "util/mutant.h"

namespace braiddb {
namespace {

uint64_t ComputeChecksum(const SpaceHeader& header) { return XXH3_64bits(&header, offsetof(SpaceHeader, checksum)); }

}  // namespace

bool IsSpaceHeader(const SpaceHeader& header, uint64_t tree_id, uint64_t generation, uint32_t leaf_bytes) {
  return header.magic == SpaceHeader::kMagic && header.checksum == ComputeChecksum(header) && header.tree_id == tree_id &&
         header.generation == generation && header.leaf_bytes == leaf_bytes;
}

LeafSpace::LeafSpace(RegionSet* regions, SegmentAllocator* segments, uint64_t tree_id, uint32_t leaf_bytes, BlockStart start)
    : regions_(regions),
      allocator_(segments),
      tree_id_(tree_id),
      leaf_bytes_(leaf_bytes),
      start_(start),
      free_(regions->count()),
      blocks_(regions->count()) {}

bool LeafSpace::FindSegments() {
  allocator_->ForEachIndex([this](Segment* segment) {
    if (!IsSpaceHeader(LoadWords<SpaceHeader>(segment->data()), tree_id_, segment->generation(), leaf_bytes_)) return;
    Add(segment);
    if (!BRAIDDB_MUTANT("found-leaf-space-not-flushed")) regions_->persistence()->Flush(segment->data(), sizeof(SpaceHeader));
  });
  // ORDER: as in Grow. A header that can be read is not necessarily durable after a killed process. [CC-42, CC-46]
  return regions_->persistence()->Drain();
}

// Tries each region once, starting with the next in rotation, and adds a segment to a region without free blocks.
Status LeafSpace::Allocate(PmPtr* block) {
  std::lock_guard lock(mutex_);
  const uint32_t regions = regions_->count();
  Status status;
  for (uint32_t i = 0; i < regions; ++i) {
    const uint32_t region = next_region_++ % regions;
    if (free_[region].empty()) status = Grow(region);
    if (free_[region].empty()) continue;
    *block = free_[region].back();
    free_[region].pop_back();
    return Status::OK();
  }
  return status;
}

// The blocks double, so that small trees are small. Pushes the blocks in reverse, so that they are allocated in ascending address
// order.
Status LeafSpace::Grow(uint32_t region) {
  Segment* segment = nullptr;
  Status status = allocator_->AllocateIndex(region, 1, &segment, (blocks_[region] + 1) * leaf_bytes_);
  if (!status.ok()) return status;
  // The generation in the header ties it to this use of the segment.
  SpaceHeader header{SpaceHeader::kMagic, tree_id_, segment->generation(), leaf_bytes_, {}, 0};
  header.checksum = ComputeChecksum(header);
  StoreWords(header, segment->data());
  // ORDER: the header before any leaf of the segment is linked; another thread may link one with a fence of its own. [CC-42]
  if (!BRAIDDB_MUTANT("leaf-space-not-persisted") && !regions_->persistence()->Persist(segment->data(), sizeof(header)))
    return regions_->persistence()->error();
  try {
    Add(segment);
  } catch (const std::bad_alloc&) {
    (void)allocator_->Release(segment);
    throw;
  }
  for (uint64_t i = Blocks(*segment); i-- > 0;) free_[region].push_back(Block(*segment, i));
  return Status::OK();
}

void LeafSpace::Add(Segment* segment) {
  const uint32_t region = segment->region();
  free_[region].reserve(blocks_[region] + Blocks(*segment));
  segments_.reserve(segments_.size() + 1);
  index_of_[segment] = segments_.size();
  segments_.push_back(segment);
  blocks_[region] += Blocks(*segment);
}

// Rejects pointers into other segments, into the header block, or between blocks. A damaged link is detected here.
bool LeafSpace::Locate(PmPtr block, Place* place) const {
  const Segment* const segment = allocator_->Find(block);
  const auto found = index_of_.find(segment);
  if (segment == nullptr || found == index_of_.end()) return false;
  const uint64_t offset = segment->OffsetOf(block), start = Start(*segment);
  if (offset < start || (offset - start) % leaf_bytes_ != 0 || (offset - start) / leaf_bytes_ >= Blocks(*segment)) return false;
  *place = {found->second, (offset - start) / leaf_bytes_};
  return true;
}

bool LeafSpace::FreeOthers(const std::vector<PmPtr>& used) {
  std::vector<std::vector<bool>> is_used(segments_.size());
  for (size_t i = 0; i < segments_.size(); ++i) is_used[i].resize(Blocks(*segments_[i]));
  for (const PmPtr block : used) {
    Place place;
    if (!Locate(block, &place) || is_used[place.segment][place.block]) return false;
    is_used[place.segment][place.block] = true;
  }
  for (size_t i = 0; i < segments_.size(); ++i) {
    for (uint64_t block = is_used[i].size(); block-- > 0;) {
      if (!is_used[i][block]) Free(Block(*segments_[i], block));
    }
  }
  return true;
}

// Add has reserved room for every block, so push_back cannot throw.
void LeafSpace::Free(PmPtr block) noexcept {
  std::lock_guard lock(mutex_);
  free_[block.region()].push_back(block);
}

uint64_t LeafSpace::free_blocks() const {
  std::lock_guard lock(mutex_);
  uint64_t count = 0;
  for (const auto& free : free_) count += free.size();
  return count;
}

}  // namespace braiddb
