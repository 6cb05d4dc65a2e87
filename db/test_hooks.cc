#include "db/test_hooks.h"

#include <mutex>

#include "db/db_impl.h"

namespace braiddb::test {
namespace {

std::mutex hook_mutex;
std::function<void(RegionSet*)> pools_mapped_hook;
std::function<void(RegionSet*)> database_found_hook;

void Set(std::function<void(RegionSet*)>* place, std::function<void(RegionSet*)> hook) {
  std::lock_guard lock(hook_mutex);
  *place = std::move(hook);
}

void Notify(const std::function<void(RegionSet*)>& place, RegionSet* regions) {
  std::function<void(RegionSet*)> hook;
  {
    std::lock_guard lock(hook_mutex);
    hook = place;
  }
  if (hook) hook(regions);
}

}  // namespace

void SetPoolsMappedHook(std::function<void(RegionSet*)> hook) { Set(&pools_mapped_hook, std::move(hook)); }
void NotifyPoolsMapped(RegionSet* regions) { Notify(pools_mapped_hook, regions); }
void SetDatabaseFoundHook(std::function<void(RegionSet*)> hook) { Set(&database_found_hook, std::move(hook)); }
void NotifyDatabaseFound(RegionSet* regions) { Notify(database_found_hook, regions); }

RegionSet* RegionsOf(DB* db) { return static_cast<DBImpl*>(db)->regions(); }
SegmentAllocator* SegmentsOf(DB* db) { return static_cast<DBImpl*>(db)->segments(); }

}  // namespace braiddb::test
