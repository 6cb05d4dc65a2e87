// Hooks that tests install to see inside an open; no-ops in production.
#pragma once

#include <functional>

#include "braiddb/db.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"

namespace braiddb::test {

// Called by every DB::Open as soon as its pools are mapped, before it reads or writes anything there; e.g. to set a
// PersistObserver. Process-wide; set it while no open is under way, empty to remove.
void SetPoolsMappedHook(std::function<void(RegionSet*)> hook);
void NotifyPoolsMapped(RegionSet* regions);
// The same, but after the creation of a new database is complete.
void SetDatabaseFoundHook(std::function<void(RegionSet*)> hook);
void NotifyDatabaseFound(RegionSet* regions);

// The parts of an open database.
RegionSet* RegionsOf(DB* db);
SegmentAllocator* SegmentsOf(DB* db);

}  // namespace braiddb::test
