// A cheap look at an open segment of another process's database.
#pragma once

#include <cstdint>
#include <vector>

#include "braiddb/status.h"
#include "pmem/pool_files.h"

namespace braiddb {

// Sets *begins to true if a valid entry is at offset `next` of the open segment. The entry may belong to a batch that is not
// complete yet. The header alone says nothing: the rest of the entry may become visible later.
// COST  One short read if no entry is there; one read of the entry if the bytes look like one. `buffer`: for these reads.
Status FindOpenEntry(const PoolFiles& files, const ListedSegment& segment, uint64_t next, std::vector<uint64_t>* buffer,
                     bool* begins);

}  // namespace braiddb
