#include "nvtree/nv_level.h"

#include "leaf_tree/entry_cursor.h"
#include "util/sync_point.h"

namespace braiddb {
Status NvLevel::Open(RegionSet* regions, SegmentAllocator* segments, EpochManager* epochs, const KeyOrder* order,
                     const LevelPlace& place, uint32_t threads, std::shared_ptr<NvLevel>* result) {
  std::shared_ptr<NvLevel> level(new NvLevel(regions, order));
  Status status = NvTree::Open({regions, segments, epochs, order, &level->keys_, place, false}, threads, false, &level->tree_);
  if (status.ok()) *result = std::move(level);
  return status;
}

// WHY IT IS RIGHT  One store changes the contents of a leaf: it removes a version and adds the newer one together. A search
//                  therefore finds the one or the other. If the versions of the key are in several leaves, it may miss both. It
//                  then says that it has met a mark, so the database repeats the read as of a registered snapshot.
const LogEntry* NvLevel::Find(const SearchKey& target, LookupTrace* trace) const {
  const RegionSet& regions = keys_.regions();
  const uint32_t remote_regions = regions.RemoteRegions(regions.HomeRegion());
  uint64_t local = 0, remote = 0;
  const auto count = [&](PmPtr visited) { ++(RegionSet::IsRemote(remote_regions, visited.region()) ? remote : local); };
  const LogEntry* newest = nullptr;
  const auto visit = [&](const Element& element) {
    const LogEntry* const entry = keys_.EntryOf(element);
    // A damaged element ends the search; RegionSet::damage_seen tells the caller.
    if (entry == nullptr) return Visited::kEnough;
    count(PmPtr(element.value));
    const int by_key = order_->Compare(entry->key(), target.key);
    if (by_key != 0) return by_key > 0 ? Visited::kPastKey : Visited::kGoOn;
    if (entry->sequence() > target.sequence) return Visited::kGoOn;
    if (entry->is_dead()) {
      trace->met_dead = true;
    } else if (newest == nullptr || entry->sequence() > newest->sequence()) {
      newest = entry;
      BRAIDDB_SYNC_POINT("OrderedLevel::Find:Visited");
    }
    return Visited::kGoOn;
  };
  uint32_t leaves = 0;
  tree_->VisitKey(target, visit, [&](PmPtr leaf) {
    ++leaves;
    count(leaf);
  });
  if (newest == nullptr && leaves > 1) trace->met_dead = true;
  // Versions are visited in no particular order. An older version may have been visited before a merge marked it dead, and the
  // tombstone that hides it after both were marked. The mark is therefore checked again. Versions that a registered snapshot sees
  // are never marked.
  if (newest != nullptr && trace->met_dead && newest->is_dead()) newest = nullptr;
  trace->Account(*regions.persistence(), local, remote);
  return newest;
}

std::unique_ptr<EntryCursor> NvLevel::NewCursor() const { return NewEntryCursor(tree_.get(), &keys_); }

}  // namespace braiddb
