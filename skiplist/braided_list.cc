#include "skiplist/braided_list.h"

#include "util/prefetch.h"

namespace braiddb {
namespace {

const LogEntry* EntryOfTower(const uint64_t* tower) {
  return reinterpret_cast<const LogEntry*>(reinterpret_cast<const char*>(tower) - offsetof(LogEntry, next));
}

// Steps along the bottom layer after which a search climbs the tower it stands on, whatever its region: where the reader's own
// region has few entries, the others' upper layers lead on.
constexpr uint32_t kBottomSteps = 8;

// After a step to `entry` on *layer. A search that has climbed goes on climbing, so that its way is logarithmic; one that comes
// from above meets no taller entry.
void Climb(const LogEntry& entry, uint32_t* layer, uint32_t* bottom_steps) {
  if (*layer == 0 && ++*bottom_steps <= kBottomSteps) return;
  if (entry.height() <= *layer + 1 || entry.height() > kMaxHeight) return;
  *layer = entry.height() - 1;
  *bottom_steps = 0;
}

}  // namespace

LogEntry* BraidedList::FindFrom(const Start& start, const SearchKey& target, LookupTrace* trace) const {
  const uint32_t home = start.region;
  const uint64_t* tower = start.tower;
  uint64_t bound = start.bound.raw();  // the nearest entry known to be at or after target
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
      // Both ways on are fetched at once: to the right, and one layer down.
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
      // What the last tower leads to is at or after target, or nothing is. The caller looks at it, if nobody has.
      if (bound != 0 && bound == start.bound.raw()) {
        ++visited;
        remote += RegionSet::IsRemote(remote_regions, start.bound.region());
      }
      if (trace != nullptr) trace->Account(*regions_->persistence(), visited - remote, remote);
      const uint64_t raw = bound != 0 && (LoadAcquire(&tower[0]) & ~LogEntry::kTagBits) == bound ? bound : 0;
      if (raw != 0) return regions_->Resolve<LogEntry>(PmPtr(raw));
      // An entry came between since: settle it by walking on.
      LogEntry* next = Load(tower, 0);
      while (next != nullptr && CompareEntry(*order_, *next, target) < 0) next = Load(next->next, 0);
      return next;
    }
  }
}

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

// A list can show a dead entry while its table is merged, or to a reader that stands on a node that was unlinked meanwhile. What
// hid the entry may be out of sight by then; the marks are set before that happens.
const LogEntry* BraidedList::PickLive(const LogEntry* entry, const SearchKey& target, LookupTrace* trace) const {
  for (; entry != nullptr; entry = Next(entry)) {
    if (order_->Compare(entry->key(), target.key) != 0) return nullptr;
    if (!entry->is_dead()) return entry;
    trace->met_dead = true;
  }
  return nullptr;
}

const LogEntry* BraidedList::Find(const SearchKey& target, LookupTrace* trace) const {
  return PickLive(FindGreaterOrEqual(target, trace), target, trace);
}

}  // namespace braiddb
