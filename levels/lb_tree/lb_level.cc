#include "levels/lb_tree/lb_level.h"

#include "leaf_tree/entry_cursor.h"
#include "util/sync_point.h"

namespace braiddb {

Status LbLevel::Open(RegionSet* regions, SegmentAllocator* segments, EpochManager* epochs, const KeyOrder* order,
                     const LevelPlace& place, uint32_t threads, std::shared_ptr<LbLevel>* result) {
  std::shared_ptr<LbLevel> level(new LbLevel(regions, order));
  Status status = LbEntryTree::Open({regions, segments, epochs, order, &level->keys_, place, false}, &level->keys_, threads,
                                    false, &level->tree_);
  if (status.ok()) *result = std::move(level);
  return status;
}

// WHY IT IS RIGHT  Readers see the changes of one leaf at once: a version goes and the newer one comes together. If the versions
//                  of the key are in several leaves, a reader may miss both. It then says that it has met a mark, so the database
//                  repeats the read as of a registered snapshot.
const LogEntry* LbLevel::Find(const SearchKey& target, LookupTrace* trace) const {
  const RegionSet& regions = keys_.regions();
  const uint32_t remote_regions = regions.RemoteRegions(regions.HomeRegion());
  uint64_t local = 0, remote = 0;
  const auto count = [&](PmPtr visited) { ++(RegionSet::IsRemote(remote_regions, visited.region()) ? remote : local); };
  const LogEntry* newest = nullptr;
  const auto visit = [&](const LogEntry* entry, PmPtr place) {
    count(place);
    if (!order_->Same(entry->key(), target.key) || entry->sequence() > target.sequence) return;
    if (entry->is_dead()) {
      trace->met_dead = true;
    } else if (newest == nullptr || entry->sequence() > newest->sequence()) {
      newest = entry;
      BRAIDDB_SYNC_POINT("OrderedLevel::Find:Visited");
    }
  };
  const uint32_t leaves = tree_->Search(target, visit, count, [&] { return newest != nullptr; });
  if (newest == nullptr && leaves > 1) trace->met_dead = true;
  // Versions are visited in no particular order. An older version may have been visited before a merge marked it dead, and the
  // tombstone that hides it after both were marked. The mark is therefore checked again. Versions that a registered snapshot sees
  // are never marked.
  if (newest != nullptr && trace->met_dead && newest->is_dead()) newest = nullptr;
  trace->Account(*regions.persistence(), local, remote);
  return newest;
}

std::unique_ptr<EntryCursor> LbLevel::NewCursor() const { return NewEntryCursor(tree_.get(), &keys_); }

}  // namespace braiddb
