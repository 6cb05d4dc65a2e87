// LevelPlace: where on media the last level of a column family begins.
#pragma once

#include <cstdint>
#include <cstring>

#include "braiddb/status.h"
#include "pmem/region_set.h"

namespace braiddb {

// LAYOUT  The default family has a metadata object of its own in each region that its level needs (MetadataSlot::kL1). Each of
//         the objects MetadataSlot::kFamilies, and so on, has a place of kBytes for each of kPerObject other families.
// LIFETIME  An object stays once it is there. Its places are used again by families that get the id of one that was dropped.
struct LevelPlace {
  static constexpr uint64_t kBytes = 256;
  static constexpr uint32_t kPerObject = 128;
  static constexpr uint32_t kObjects = 8;

  uint32_t family = 0;
  uint64_t number = 0;  // of the family (ManifestState::Family), which no other one has had; 0: the default one

  MetadataSlot slot() const {
    return family == 0 ? MetadataSlot::kL1
                       : static_cast<MetadataSlot>(static_cast<uint32_t>(MetadataSlot::kFamilies) + family / kPerObject);
  }
  uint64_t offset() const { return family == 0 ? 0 : family % kPerObject * kBytes; }

  // Null if there are not so many bytes.
  void* Find(const RegionSet& regions, uint32_t region, uint64_t bytes) const {
    uint64_t all = 0;
    void* const object = regions.Metadata(region, slot(), &all);
    return object == nullptr || all < offset() + bytes ? nullptr : static_cast<uint8_t*>(object) + offset();
  }

  // The place, zeroed. That this is durable is up to the caller, as for what comes there. REQUIRES: bytes <= kBytes. NoSpace:
  // nothing has changed.
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
