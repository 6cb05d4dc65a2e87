#include "db/test_hooks.h"

#include <mutex>

#include "db/db_impl.h"

namespace braiddb::test {
namespace {

std::mutex hook_mutex;
std::function<void(RegionSet*)> pools_mapped_hook;

}  // namespace

void SetPoolsMappedHook(std::function<void(RegionSet*)> hook) {
  std::lock_guard lock(hook_mutex);
  pools_mapped_hook = std::move(hook);
}

void NotifyPoolsMapped(RegionSet* regions) {
  std::function<void(RegionSet*)> hook;
  {
    std::lock_guard lock(hook_mutex);
    hook = pools_mapped_hook;
  }
  if (hook) hook(regions);
}

RegionSet* RegionsOf(DB* db) { return static_cast<DBImpl*>(db)->regions(); }
SegmentAllocator* SegmentsOf(DB* db) { return static_cast<DBImpl*>(db)->segments(); }

}  // namespace braiddb::test
