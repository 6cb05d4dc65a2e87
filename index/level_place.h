// LevelPlace: the location of the root of a column family's last level on media.
#pragma once

#include <cstdint>
#include <cstring>

#include "braiddb/status.h"
#include "pmem/region_set.h"

namespace braiddb {

// LAYOUT    The default family has a metadata object of its own (MetadataSlot::kL1) in each region that its level needs. Each of
//           the objects MetadataSlot::kFamilies and following contains kPerObject places of kBytes for other families.
// LIFETIME  An object is never freed. A place is reused when a new family gets the id of a dropped one.
struct LevelPlace {
  static constexpr uint64_t kBytes = 256;
  static constexpr uint32_t kPerObject = 128;
  static constexpr uint32_t kObjects = 8;

  uint32_t family = 0;
  uint64_t number = 0;  // of the family (ManifestState::Family), never reused; 0: the default family

  MetadataSlot slot() const {
    return family == 0 ? MetadataSlot::kL1
                       : static_cast<MetadataSlot>(static_cast<uint32_t>(MetadataSlot::kFamilies) + family / kPerObject);
  }
  uint64_t offset() const { return family == 0 ? 0 : family % kPerObject * kBytes; }

  // The address of the place; null if the object does not exist or is too small.
  void* Find(const RegionSet& regions, uint32_t region, uint64_t bytes) const {
    uint64_t all = 0;
    void* const object = regions.Metadata(region, slot(), &all);
    return object == nullptr || all < offset() + bytes ? nullptr : static_cast<uint8_t*>(object) + offset();
  }

  // Allocates the object if needed, and zeroes the place. The caller must make the zeros durable, as well as its contents.
  // REQUIRES: bytes <= kBytes. NoSpace: nothing has changed.
  Status Take(RegionSet* regions, uint32_t region, uint64_t bytes, void** place) const {
    if (family == 0) return regions->AllocateMetadata(region, slot(), bytes, place);
    void* object = regions->Metadata(region, slot());
    if (object == nullptr) {
      if (Status status = regions->AllocateMetadata(region, slot(), kPerObject * kBytes, &object); !status.ok()) return status;
    }
    *place = static_cast<uint8_t*>(object) + offset();
    std::memset(*place, 0, bytes);
    return Status::OK();
  }
};

}  // namespace braiddb
