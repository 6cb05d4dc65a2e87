#include "pmem/free_ranges.h"

#include <algorithm>
#include <memory>

#include "pmem/layout.h"
#include "pmem/layout_check.h"
#include "pmem/pool_format.h"
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

}  // namespace

// STEPS  1 check header, heap and lanes; a pending operation may be the return of a segment to the pool  2 follow the blocks of
//        the directory, check each link by its tag and each free descriptor by its state word.
std::vector<PoolRange> FindFreeRanges(const std::string& directory) {
  std::unique_ptr<RegionImage> image;
  const auto ignore = [](const std::string&, const std::string&) {};
  if (!RegionImage::MapLocked(directory, ignore, &image).ok()) return {};
  const PoolView pool(image->base(), image->bytes());
  if (pool.FindDamage() != nullptr || pool.FindLaneDamage() != nullptr || pool.RedoPending()) return {};
  const RegionRoot* const root = FindRoot(*image, pool);
  if (root == nullptr) return {};
  std::vector<PoolRange> ranges;
  uint64_t blocks = 0;
  for (const ObjectId* link = &root->directory; link->offset != 0; ++blocks) {
    const uint64_t at = AlignToLine(link->offset);
    if (link->pool != pool.identity() || !image->Contains(at, sizeof(DirectoryBlock))) return {};
    const auto* const block = reinterpret_cast<const DirectoryBlock*>(image->base() + at);
    // The tag includes the number, so a cycle is detected as a damaged link.
    if (block->tag != DirectoryBlockTag(root->database_id, root->region, blocks, link->offset)) return {};
    for (const SegmentDescriptor& descriptor : block->descriptors) {
      if (!AddRange(*image, pool.identity(), descriptor, &ranges)) return {};
    }
    link = &block->next;
  }
  std::sort(ranges.begin(), ranges.end(), [](const PoolRange& a, const PoolRange& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin < ranges[i - 1].end) return {};  // two segments that overlap
  }
  return ranges;
}

}  // namespace braiddb
