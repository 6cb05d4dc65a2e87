// Test support: regions with their segment allocator, and what the pool of a region holds.
#pragma once

#include <memory>
#include <set>

#include "pmem/region.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"

namespace braiddb::test {

// Tests that flip bits need the same identity in each run: a link of 12 hash bits misses one flip of 4096, and the hash is keyed
// by the identity.
inline constexpr uint64_t kFixedDatabaseId = 0x5eed;

// A RegionSet with its allocator.
struct Store {
  // Creates what does not exist.
  static Status Open(const RegionSetOptions& options, uint64_t segment_size, Store* store) {
    *store = Store();
    Status status =
        RegionSet::Exists(options) ? RegionSet::Open(options, &store->regions) : RegionSet::Create(options, &store->regions);
    if (status.ok()) status = SegmentAllocator::Open(store->regions.get(), segment_size, &store->allocator);
    return status;
  }
  Store() = default;
  Store& operator=(Store&& other) {
    allocator.reset();
    regions = std::move(other.regions);
    allocator = std::move(other.allocator);
    return *this;
  }

  std::unique_ptr<RegionSet> regions;
  std::unique_ptr<SegmentAllocator> allocator;
};

// Objects in the pool of a region, by offset.
inline std::set<uint64_t> PoolObjects(Region* region) {
  std::set<uint64_t> offsets;
  for (PMEMoid id = pmemobj_first(region->pool()); !OID_IS_NULL(id); id = pmemobj_next(id)) offsets.insert(id.off);
  return offsets;
}

// Objects that something in the region refers to.
inline std::set<uint64_t> AccountedObjects(Region* region) {
  std::set<uint64_t> offsets;
  for (const ObjectId& id : region->root()->metadata) {
    if (id.offset != 0) offsets.insert(id.offset);
  }
  for (const ObjectId* link = &region->root()->directory; link->offset != 0;) {
    offsets.insert(link->offset);
    const auto* block = reinterpret_cast<DirectoryBlock*>(region->base() + AlignToLine(link->offset));
    for (const SegmentDescriptor& descriptor : block->descriptors) {
      if (descriptor.object.offset != 0) offsets.insert(descriptor.object.offset);
    }
    link = &block->next;
  }
  return offsets;
}

}  // namespace braiddb::test
