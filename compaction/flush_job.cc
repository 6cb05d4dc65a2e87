#include "compaction/flush_job.h"

#include <algorithm>

#include "compaction/list_builder.h"
#include "index/key_hash.h"
#include "log/fetch_entry.h"
#include "util/prefetch.h"

namespace braiddb {
namespace {

// Number of entries per prefetch window.
constexpr size_t kWindow = 64;

class Window {
 public:
  // Loads the next entries. Returns false at the end.
  bool Fill(Memtable::Walker* walker) {
    count = walker->Next(pointers, kWindow);
    return count != 0;
  }
  // Prefetches one entry of the next window for each processed entry of the current window. So the prefetches are spread
  // evenly over the work.
  void FetchForWrite(size_t i, const RegionSet& regions) const {
    if (i >= count) return;
    const auto* const entry = regions.Resolve<LogEntry>(pointers[i]);
    PrefetchForWrite(entry);
    FetchEntry(entry);
  }

  PmPtr pointers[kWindow];
  size_t count = 0;
};

// Placement policy of a flush in place: a kept entry stays where it lies, a dropped entry is marked dead and counted as obsolete.
class InPlace {
 public:
  static bool Take(LogEntry**, PmPtr*, PmTable*) { return true; }
  static void Drop(const SegmentAllocator& segments, LogEntry* entry, PmPtr pointer) {
    ListBuilder::Drop(entry);
    if (Segment* segment = segments.Find(pointer)) CountObsolete(segment, pointer, *entry);
  }
};

// Placement policy of a flush that copies. A dropped entry needs no mark: all originals become garbage with their segment.
class ByCopy {
 public:
  explicit ByCopy(FlushCopier* copier) : copier_(copier) {}
  bool Take(LogEntry** entry, PmPtr* pointer, PmTable* table) const {
    const LogEntry* const original = *entry;
    if (!copier_->Copy(entry, pointer)) return false;
    table->moves.push_back({original, *pointer});
    return true;
  }
  static void Drop(const SegmentAllocator&, LogEntry*, PmPtr) {}

 private:
  FlushCopier* const copier_;
};

// Links the memtable's entries into the table, in one pass in entry order. Drops the versions that a newer version in the
// memtable hides from all readers and snapshots. Fills the sorted array, the L0 index, and the key filter in the same pass. Ends
// early if `placing` cannot take an entry. `entries`: estimate of the number of entries.
template <class Placing>
FlushResult LinkInto(const Placing& placing, std::shared_ptr<PmTable> table, const Memtable& memtable, uint64_t entries,
                     const RegionSet* regions, const KeyOrder* order, const SegmentAllocator& segments,
                     const VersionFilter& filter, L0IndexWriter* index, KeyFilterWriter* keys) {
  FlushResult result;
  result.table = std::move(table);
  ListBuilder builder(regions, result.table.get());
  auto in_order = std::make_shared<TableOrder>(entries, memtable.arena()->heap());
  if (index != nullptr) index->Begin(entries, *order);
  const LogEntry* previous = nullptr;
  bool previous_is_kept = false;
  const std::unique_ptr<Memtable::Walker> walker = memtable.NewWalker();
  Window windows[2];
  bool more = windows[0].Fill(walker.get());
  for (int turn = 0; more; turn ^= 1) {
    const Window& window = windows[turn];
    more = windows[turn ^ 1].Fill(walker.get());
    for (size_t i = 0; i < window.count; ++i) {
      windows[turn ^ 1].FetchForWrite(i, *regions);
      PmPtr pointer = window.pointers[i];
      auto* entry = regions->Resolve<LogEntry>(pointer);
      const bool is_older = previous != nullptr && order->Same(previous->key(), entry->key());
      const bool hidden = is_older && !filter.Visible(entry->sequence(), previous->sequence());
      const bool overwritten = hidden && !VersionFilter::IsApplied(*previous, previous_is_kept);
      if (overwritten) {
        placing.Drop(segments, entry, pointer);
        ++result.dropped;
        result.dropped_bytes += LogEntrySize(*entry);
      } else if (!placing.Take(&entry, &pointer, result.table.get())) {
        more = false;
        break;
      } else {
        builder.Append(entry, pointer);
        // The newest version of a key is never overwritten, so is_older is exact.
        in_order->Append(order->Prefix(entry->key()), pointer, is_older, order->PrefixIsWhole(entry->key()));
        // A version that is read only as the base of a newer operand is never the result of a lookup. Its hash is not added,
        // because such a key may have very many versions.
        const uint64_t hash = hidden ? 0 : KeyHash(*entry);
        if (index != nullptr && !hidden) index->Add(hash, pointer);
        if (keys != nullptr && !hidden) keys->Add(hash);
      }
      previous = entry;
      previous_is_kept = !overwritten;
    }
  }
  builder.Finish();
  if (in_order->Finish(*regions, *order)) result.in_order = std::move(in_order);
  if (index != nullptr) result.table->SetIndex(index->Finish());
  if (keys != nullptr) keys->Finish();
  return result;
}

FlushResult FlushInto(FlushCopier* copier, std::shared_ptr<PmTable> table, const Memtable& memtable, uint64_t entries,
                      const RegionSet* regions, const KeyOrder* order, const SegmentAllocator& segments,
                      const VersionFilter& filter, L0IndexWriter* index, KeyFilterWriter* keys) {
  if (copier == nullptr)
    return LinkInto(InPlace(), std::move(table), memtable, entries, regions, order, segments, filter, index, keys);
  table->moves.reserve(entries);
  return LinkInto(ByCopy(copier), std::move(table), memtable, entries, regions, order, segments, filter, index, keys);
}

// Of the default family's memtable, at least: its counter has the entries of all families. Writers count in portions.
uint64_t OwnEntries(const Memtable& memtable) {
  constexpr uint64_t kLeastShare = 32;
  const uint64_t all = memtable.entry_count.load(std::memory_order_relaxed);
  uint64_t others = 0;
  memtable.ForEachSibling(
      [&others](uint32_t, const Memtable* sibling) { others += sibling->entry_count.load(std::memory_order_relaxed); });
  return std::max(all - std::min(all, others), all / kLeastShare);
}

}  // namespace

FlushResult FlushMemtable(Memtable* memtable, const RegionSet* regions, const KeyOrder* order, const SegmentAllocator& segments,
                          const VersionFilter& filter, L0IndexWriter* index, KeyFilterWriter* keys, FlushCopier* copier) {
  const uint64_t boundary = memtable->boundary.load(std::memory_order_acquire);
  FlushResult result = FlushInto(copier, std::make_shared<PmTable>(memtable->id(), boundary, regions, order), *memtable,
                                 OwnEntries(*memtable), regions, order, segments, filter, index, keys);
  result.table->extents = memtable->TakeExtents();
  if (copier != nullptr) result.table->extents.clear();
  result.table->log_bytes = memtable->charged_bytes.load(std::memory_order_relaxed);
  return result;
}

FlushResult FlushSibling(const Memtable& memtable, uint32_t family, const RegionSet* regions, const KeyOrder* order,
                         const SegmentAllocator& segments, const VersionFilter& filter, L0IndexWriter* index,
                         KeyFilterWriter* keys, FlushCopier* copier) {
  const uint64_t boundary = memtable.boundary.load(std::memory_order_acquire);
  const Memtable& sibling = *memtable.Of(family);
  return FlushInto(copier, std::make_shared<PmTable>(memtable.id(), boundary, regions, order, family), sibling,
                   sibling.entry_count.load(std::memory_order_relaxed), regions, order, segments, filter, index, keys);
}

}  // namespace braiddb
