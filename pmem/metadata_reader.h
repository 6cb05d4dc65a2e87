// ReadMetadata: copies a metadata object of a region from the files, also while another process has the database open.
//
// GUARANTEES   The path to the object is verified: part list, root, and the object's slot in the root.
// CONCURRENCY  No lock is taken. The object may change, or be freed, while it is copied, so the copy may mix several states.
//              The caller verifies the checksums inside the object, and reads again if they do not match.
// PERMISSIONS  Read permission for the files is enough.
#pragma once

#include <cstdint>
#include <vector>

#include "braiddb/status.h"
#include "pmem/region_set.h"

namespace braiddb {

struct MetadataCopy {
  std::vector<uint64_t> words;  // the content; at least `bytes` bytes
  uint64_t bytes = 0;           // size of the object; 0: there is none
  uint32_t regions = 0;         // number of regions of the database
};

// Fills *copy. copy->bytes is 0 if the slot is empty, or its object is being allocated or freed at this moment.
// NotFound: there is no database, or its creation is not complete. NotSupported: another version wrote the region. Corruption:
// the part list, the root or the slot is damaged. InvalidArgument: region_paths has no such region. Thread-safe.
Status ReadMetadata(const RegionSetOptions& options, uint32_t region, MetadataSlot slot, MetadataCopy* copy);

}  // namespace braiddb
