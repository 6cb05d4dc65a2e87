// The bytes of a database's pools that BraidDB makes durable itself. Everything else in them belongs to PMDK.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmem/layout.h"
#include "pmem/region.h"
#include "pmem/region_set.h"
#include "pmem/segment_directory.h"

namespace braiddb::test {

enum class RangeKind : uint8_t { kRoot, kDirectory, kSegment, kManifest, kL1Head, kJournal, kOtherMetadata, kCount };

inline const char* NameOf(RangeKind kind) {
  static constexpr const char* kNames[] = {"root", "directory", "segment", "manifest", "L1 head", "journal", "metadata"};
  return kNames[static_cast<int>(kind)];
}

struct TrackedRange {
  uint32_t region;
  uint64_t begin;  // pool offsets, multiples of 8
  uint64_t end;
  RangeKind kind;

  friend bool operator==(const TrackedRange&, const TrackedRange&) = default;
};

// In ascending order, disjoint. Reads what is on media and takes no lock, so it may be called from a PersistObserver; what other
// threads are changing at this moment is seen as before or as after.
inline std::vector<TrackedRange> FindTrackedRanges(const RegionSet& regions) {
  std::vector<TrackedRange> ranges;
  for (uint32_t index = 0; index < regions.count(); ++index) {
    const Region& region = *regions.impl()->region(index);
    if (region.root() == nullptr) continue;  // is being created
    const uint8_t* const base = region.base();
    const RegionRoot& root = *region.root();
    const auto add = [&](uint64_t begin, uint64_t end, RangeKind kind) {
      if (begin < end) ranges.push_back({index, begin, end, kind});
    };
    // Of structures that PMDK's allocator writes into, only the words that are ours.
    const uint64_t root_offset = static_cast<uint64_t>(reinterpret_cast<const uint8_t*>(&root) - base);
    const auto add_without_ids = [&](uint64_t offset, const std::vector<uint64_t>& ids, uint64_t size, RangeKind kind) {
      uint64_t from = 0;
      for (const uint64_t id : ids) {
        add(offset + from, offset + id, kind);
        from = id + sizeof(ObjectId);
      }
      add(offset + from, offset + size, kind);
    };
    std::vector<uint64_t> root_ids = {offsetof(RegionRoot, directory)};
    for (uint32_t slot = 0; slot < RegionRoot::kMetadataSlots; ++slot) {
      root_ids.push_back(offsetof(RegionRoot, metadata) + slot * sizeof(ObjectId));
    }
    add_without_ids(root_offset, root_ids, sizeof(RegionRoot), RangeKind::kRoot);

    for (uint32_t slot = 0; slot < RegionRoot::kMetadataSlots; ++slot) {
      uint64_t bytes = 0;
      const void* object = regions.Metadata(index, static_cast<MetadataSlot>(slot), &bytes);
      if (object == nullptr) continue;
      const uint64_t offset = static_cast<uint64_t>(static_cast<const uint8_t*>(object) - base);
      constexpr RangeKind kKinds[] = {RangeKind::kManifest, RangeKind::kL1Head, RangeKind::kJournal};
      add(offset, offset + (bytes & ~uint64_t{7}), slot < 3 ? kKinds[slot] : RangeKind::kOtherMetadata);
    }

    const auto load_offset = [](const ObjectId& id) { return LoadAcquire(&id.offset); };
    for (uint64_t link = load_offset(root.directory); link != 0;) {
      const uint64_t block_offset = AlignToLine(link);
      const auto* block = reinterpret_cast<const DirectoryBlock*>(base + block_offset);
      std::vector<uint64_t> ids = {offsetof(DirectoryBlock, next)};
      for (uint32_t i = 0; i < DirectoryBlock::kDescriptors; ++i) {
        ids.push_back(offsetof(DirectoryBlock, descriptors) + i * sizeof(SegmentDescriptor) +
                      offsetof(SegmentDescriptor, object));
        const SegmentDescriptor& descriptor = block->descriptors[i];
        const uint64_t object = load_offset(descriptor.object);
        if (object == 0) continue;
        const uint64_t begin = AlignToLine(object);
        add(begin, begin + sizeof(SegmentHeader) + SegmentDirectory::CapacityOf(descriptor), RangeKind::kSegment);
      }
      add_without_ids(block_offset, ids, sizeof(DirectoryBlock), RangeKind::kDirectory);
      link = load_offset(block->next);
    }
  }
  std::sort(ranges.begin(), ranges.end(), [](const TrackedRange& a, const TrackedRange& b) {
    return a.region != b.region ? a.region < b.region : a.begin < b.begin;
  });
  return ranges;
}

}  // namespace braiddb::test
