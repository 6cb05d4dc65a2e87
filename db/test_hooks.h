// Hooks that tests install to see inside an open; no-ops in production.
#pragma once

#include <functional>

#include "braiddb/db.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"

namespace braiddb::test {

// A hook that every DB::Open calls when its pools are mapped, before it reads or writes their content; for example to set a
// PersistObserver. Process-wide. Set a hook while no open is under way; an empty function removes it.
void SetPoolsMappedHook(std::function<void(RegionSet*)> hook);
void NotifyPoolsMapped(RegionSet* regions);
// The same, called when the files of a new database have been created, or an existing database was found.
void SetDatabaseFoundHook(std::function<void(RegionSet*)> hook);
void NotifyDatabaseFound(RegionSet* regions);

// The parts of an open database.
RegionSet* RegionsOf(DB* db);
SegmentAllocator* SegmentsOf(DB* db);

}  // namespace braiddb::test
