// ReadMetadata: a metadata object of a region, read from the files, whether someone has them open to write or not.
//
// What leads to the object is verified: part list, root, the object's own entry there. The object itself may change, or be freed,
// while it is read: what comes may be of several times. The caller has to know by checksums, and reads again.
// The caller needs permission to read, and takes no lock.
#pragma once

#include <cstdint>
#include <vector>

#include "braiddb/status.h"
#include "pmem/region_set.h"

namespace braiddb {

struct MetadataCopy {
  std::vector<uint64_t> words;
  uint64_t bytes = 0;
  uint32_t regions = 0;  // of the database
};

// No bytes: the slot is empty, or its object is being allocated or freed.
// NotFound: there is no database, or its creation is not complete; NotSupported: of another version. Thread safety: any thread.
Status ReadMetadata(const RegionSetOptions& options, uint32_t region, MetadataSlot slot, MetadataCopy* copy);

}  // namespace braiddb
