#include "skiplist/braided_list.h"

#include "util/prefetch.h"

namespace braiddb {
namespace {

// Returns the entry whose next words the tower is. REQUIRES: the tower is no head.
const LogEntry* EntryOfTower(const uint64_t* tower) {
  return reinterpret_cast<const LogEntry*>(reinterpret_cast<const char*>(tower) - kTowerOffset);
}

// Steps along the bottom layer after which a search climbs the tower of its position, in any region. If the reader's region has
// few entries, the upper layers of another region are the faster path.
constexpr uint32_t kBottomSteps = 8;

// Called after a step to `entry` on *layer: moves *layer to the top of a taller tower. A search that has climbed continues to
// climb, so its number of steps is logarithmic. A search that descends meets no taller entry in its own lists, and does not
// climb.
void Climb(const LogEntry& entry, uint32_t* layer, uint32_t* bottom_steps) {
  if (*layer == 0 && ++*bottom_steps <= kBottomSteps) return;
  if (entry.height() <= *layer + 1 || entry.height() > kMaxHeight) return;
  *layer = entry.height() - 1;
  *bottom_steps = 0;
}

}  // namespace

// STEPS  1 on each layer from start.layer down, walk while the next entry is before the target  2 at layer 0 the last tower's
//        word is the result. An entry that was compared once (`bound`) is not compared again on lower layers.
// WHAT A READER SEES  If a writer changes the last tower's word between two loads, the search walks on along the bottom layer
//        until it meets an entry at or after the target.
// COST   One cache miss per visited node. The successors on this layer and on the next lower one are prefetched together.
LogEntry* BraidedList::FindFrom(const Start& start, const SearchKey& target, LookupTrace* trace) const {
  const uint32_t home = start.region;
  const uint64_t* tower = start.tower;
  uint64_t bound = start.bound.raw();  // the nearest entry that is known to be at or after the target
  uint64_t visited = 0;
  uint64_t remote = 0;
  const uint32_t remote_regions = regions_->RemoteRegions(start.reader);
  uint32_t bottom_steps = 0;
  for (uint32_t layer = start.layer;; --layer) {
    if (layer == 0) tower = BottomStart(tower, home);
    for (;;) {
      const uint64_t raw = LoadAcquire(&tower[layer]) & ~LogEntry::kTagBits;
      if (raw == 0 || raw == bound) break;
      if (__builtin_expect(!regions_->Holds(PmPtr(raw)) || InACircle(*regions_, visited), 0)) {
        regions_->NoteDamage();
        return nullptr;
      }
      auto* next = regions_->Resolve<LogEntry>(PmPtr(raw));
      // The next node is either the successor on this layer or that on the layer below, so both are prefetched.
      if (layer > 0) {
        const uint64_t below = LoadRelaxed(&tower[layer - 1]) & ~LogEntry::kTagBits;
        if (below != raw && below != 0 && PmPtr(below).region() < kMaxRegions) Prefetch(regions_->Resolve(PmPtr(below)));
      }
      ++visited;
      remote += RegionSet::IsRemote(remote_regions, PmPtr(raw).region());
      if (CompareEntry(*order_, *next, target) >= 0) {
        bound = raw;
        break;
      }
      tower = next->next;
      Climb(*next, &layer, &bottom_steps);
    }
    if (layer == 0) {
      // The last tower's successor is the result. If it is the start's bound, the caller is the first to read it, so it counts
      // as visited here.
      if (bound != 0 && bound == start.bound.raw()) {
        ++visited;
        remote += RegionSet::IsRemote(remote_regions, start.bound.region());
      }
      if (trace != nullptr) trace->Account(*regions_->persistence(), visited - remote, remote);
      const uint64_t raw = bound != 0 && (LoadAcquire(&tower[0]) & ~LogEntry::kTagBits) == bound ? bound : 0;
      if (raw != 0) return regions_->Resolve<LogEntry>(PmPtr(raw));
      // A writer has linked or unlinked an entry meanwhile: walk on to the first entry at or after the target.
      LogEntry* next = Load(tower, 0);
      while (next != nullptr && CompareEntry(*order_, *next, target) < 0) next = Load(next->next, 0);
      return next;
    }
  }
}

// A search without a bound: it compares each candidate on each layer. Returns null if no entry is before the target, and null
// with NoteDamage if the walk is a cycle.
template <class Before>
LogEntry* BraidedList::LastWhere(const Start& start, const Before& before) const {
  const uint64_t* tower = start.tower;
  uint32_t bottom_steps = 0;
  uint64_t steps = 0;
  for (uint32_t layer = start.layer + 1; layer-- > 0;) {
    if (layer == 0) tower = BottomStart(tower, start.region);
    for (LogEntry* next = Load(tower, layer); next != nullptr && before(*next); next = Load(tower, layer)) {
      if (InACircle(*regions_, ++steps)) {
        regions_->NoteDamage();
        return nullptr;
      }
      tower = next->next;
      Climb(*next, &layer, &bottom_steps);
    }
  }
  return tower == heads_[0] ? nullptr : const_cast<LogEntry*>(EntryOfTower(tower));
}

LogEntry* BraidedList::FindLessFrom(const Start& start, const SearchKey& target) const {
  return LastWhere(start, [&](const LogEntry& entry) { return CompareEntry(*order_, entry, target) < 0; });
}

LogEntry* BraidedList::FindLast() const {
  return LastWhere(Home(), [](const LogEntry&) { return true; });
}

// A reader may meet a dead entry while its table is merged, or if its position is a node that was unlinked meanwhile. The newer
// version that hides the entry may be unreachable by then. The mark is set before that, so the reader skips the entry.
const LogEntry* BraidedList::PickLive(const LogEntry* entry, const SearchKey& target, LookupTrace* trace) const {
  for (; entry != nullptr; entry = Next(entry)) {
    if (order_->Compare(entry->key(), target.key) != 0) return nullptr;
    if (!entry->is_dead()) return entry;
    trace->met_dead = true;
  }
  return nullptr;
}

// Counts the nodes of a layer, from the tallest to the first that has enough of them.
uint64_t BraidedList::EstimateEntries() const {
  constexpr uint64_t kEnough = 10'000;
  constexpr uint64_t kMost = 100 * kEnough;  // more are the circle of a damaged list
  const uint32_t lists = regions_->lists_are_braided() ? regions_->count() : 1;
  double apart = 1;  // average distance of the nodes of a layer, in entries
  for (uint32_t layer = 1; layer < kMaxHeight; ++layer) apart *= kBranching;
  for (uint32_t layer = kMaxHeight - 1;; --layer, apart /= kBranching) {
    uint64_t nodes = 0;
    for (uint32_t region = 0; region < (layer == 0 ? 1 : lists); ++region) {
      for (const LogEntry* entry = Load(heads_[region], layer); entry != nullptr && nodes < kMost;
           entry = Load(entry->next, layer))
        ++nodes;
    }
    if (layer == 0) return nodes;
    if (nodes >= kEnough) return static_cast<uint64_t>(static_cast<double>(nodes) * apart);
  }
}

const LogEntry* BraidedList::Find(const SearchKey& target, LookupTrace* trace) const {
  return PickLive(FindGreaterOrEqual(target, trace), target, trace);
}

}  // namespace braiddb
