#include "pmem/free_ranges.h"

#include <algorithm>
#include <memory>

#include "pmem/layout.h"
#include "pmem/layout_check.h"
#include "pmem/part_list.h"
#include "pmem/pool_format.h"
#include "pmem/posix.h"
#include "pmem/region_files.h"
#include "pmem/region_image.h"

namespace braiddb {
namespace {

// Appends the pages of a free segment. Returns false if the descriptor is damaged.
bool AddRange(const RegionImage& image, uint64_t pool_id, const SegmentDescriptor& descriptor, std::vector<PoolRange>* ranges) {
  const auto state = static_cast<SegmentState>(descriptor.state_word & 0xff);
  if (state != SegmentState::kFree || descriptor.object.offset == 0) return true;
  const uint64_t at = descriptor.object.offset;
  if (descriptor.object.pool != pool_id || at % kObjectHeaderBytes != 0 || descriptor.chunks == 0 ||
      descriptor.chunks > image.bytes() / kChunkBytes || !image.Contains(at, SegmentObjectBytes(descriptor.chunks)) ||
      descriptor.state_word != SegmentStateWord(descriptor, state)) {
    return false;
  }
  const uint64_t data = SegmentDataOffset(descriptor);
  const PoolRange pages = PagesInside(data, data + SegmentCapacity(descriptor));
  if (!pages.empty()) ranges->push_back(pages);
  return true;
}

// Returns the root of the pool; null if it is damaged.
const RegionRoot* FindRoot(const RegionImage& image, const PoolView& pool) {
  const uint64_t at = pool.root_offset();
  if (pool.root_size() < sizeof(RegionRoot) || at % 8 != 0 || !image.Contains(at, sizeof(RegionRoot))) return nullptr;
  const auto* const root = reinterpret_cast<const RegionRoot*>(image.base() + at);
  return root->magic == RegionRoot::kMagic && IsKnownRootVersion(root->format_version) && IsRootSound(*root) ? root : nullptr;
}

// Appends the pages of all free segments. Returns false if a link or a descriptor is damaged, or if `back` fails: *status.
bool AddRanges(const RegionImage& image, const PoolView& pool, const RegionRoot& root,
               const std::function<Status(PoolRange)>& back, std::vector<PoolRange>* ranges, Status* status) {
  uint64_t blocks = 0;
  for (const ObjectId* link = &root.directory; link->offset != 0; ++blocks) {
    const uint64_t at = AlignToLine(link->offset);
    if (link->pool != pool.identity() || !image.Contains(at, sizeof(DirectoryBlock))) return false;
    if (*status = back({at, at + sizeof(DirectoryBlock)}); !status->ok()) return false;
    const auto* const block = reinterpret_cast<const DirectoryBlock*>(image.base() + at);
    // The tag includes the number, so a cycle is detected as a damaged link.
    if (block->tag != DirectoryBlockTag(root.database_id, root.region, blocks, link->offset)) return false;
    for (const SegmentDescriptor& descriptor : block->descriptors) {
      if (!AddRange(image, pool.identity(), descriptor, ranges)) return false;
    }
    link = &block->next;
  }
  return true;
}

// Sorts the ranges. Returns false if two of them overlap.
bool AreApart(std::vector<PoolRange>* ranges) {
  std::ranges::sort(*ranges, {}, &PoolRange::begin);
  return std::ranges::adjacent_find(*ranges, [](const PoolRange& a, const PoolRange& b) { return b.begin < a.end; }) ==
         ranges->end();
}

}  // namespace

// STEPS  1 check header, heap and lanes; a pending operation may be the return of a segment to the pool  2 follow the blocks of
//        the directory, check each link by its tag and each free descriptor by its state word.
Status FindFreeRanges(const std::string& directory, const std::function<Status(PoolRange)>& back,
                      std::vector<PoolRange>* ranges) {
  ranges->clear();
  PoolExtent extent;
  if (!ReadPoolExtent(posix::JoinPath(directory, PartName(0)), &extent).ok() || extent.heap_begin > extent.heap_end)
    return Status::OK();
  if (Status status = back({0, extent.heap_begin + kHeapHeaderBytes}); !status.ok()) return status;
  std::unique_ptr<RegionImage> image;
  const auto ignore = [](const std::string&, const std::string&) {};
  if (!RegionImage::MapLocked(directory, ignore, &image).ok()) return Status::OK();
  const PoolView pool(image->base(), image->bytes());
  if (pool.FindDamage() != nullptr || pool.FindLaneDamage() != nullptr || pool.RedoPending()) return Status::OK();
  Status status = back({pool.root_offset(), pool.root_offset() + sizeof(RegionRoot)});
  if (!status.ok()) return status;
  const RegionRoot* const root = FindRoot(*image, pool);
  if (root == nullptr) return Status::OK();
  if (!AddRanges(*image, pool, *root, back, ranges, &status) || !AreApart(ranges)) ranges->clear();
  return status;
}

}  // namespace braiddb
