#include "compaction/zipper.h"

#include <algorithm>
#include <memory>

#include "compaction/chunk_scanner.h"
#include "compaction/merge_batch.h"
#include "compaction/scan_ahead.h"
#include "skiplist/braided_skiplist.h"
#include "util/mutant.h"

namespace braiddb {
namespace {

// Upper bound for the stores of one step. A step links, replaces, or unlinks one entry.
constexpr uint64_t kStoresPerStep = 2 * kMaxHeight + 2;
// Upper bound for the stores that Commit adds: one head checksum per region.
constexpr uint64_t kStoresPerCommit = kMaxRegions;

// One version of the key that is being merged. A group of versions is sorted from the newest to the oldest.
struct Version {
  LogEntry* entry;
  PmPtr pointer;
  const MergeItem* item;  // null: the version is in the last level
  bool keep;
  bool moved = false;       // the version is in the last level, and a table has a relocated copy of it
  size_t other = SIZE_MAX;  // index in the group of the other of the two: original or copy; SIZE_MAX: no copy exists
};

// The merge phase. Turns scan results into batches of stores. Scan results arrive in descending key order.
//
// ORDER OF STORES  Merger computes every store from `batch_.Load`, which sees the pending stores of the same batch. So the stores
//                  of a batch, done in sequence, have the same effect as if each step had been applied alone. A batch boundary
//                  may fall between any two steps: MakeRoom is called before a step and a step never spans two batches.
// PROGRESS  `progress_` is the smallest table entry that was merged or dropped. Chunks, keys, and versions of a key are all
//           processed in descending entry order, so every table entry at or after `progress_` is done.
// STALE TOWERS  A chunk is scanned while later chunks are merged. The towers of its entries stay correct: the merge of later
//               chunks changes only pointers of nodes with larger keys and the next pointers of their predecessors. The scan
//               records the addresses of towers and not the pointers in them. The merge loads each pointer when it links the
//               entry.
// DAMAGE  Every address that comes from persistent memory is checked before it is used. The scan has not checked everything that
//         the merge loads.
class Merger {
 public:
  Merger(const ZipperContext& context, PmPtr progress, MergeStats* stats)
      : context_(context), batch_(context.regions, context.segments, context.journal), progress_(progress), stats_(stats) {}

  // Merges one chunk, from its largest key to its smallest. All versions of a key are consecutive items, newest first. The last
  // step commits, so a batch ends with its chunk and the next scans see its stores.
  Status MergeChunk(const ScanResult& chunk) {
    if (chunk.damaged || (!chunk.items.empty() && !IsBeforeMerged(chunk.items.back()))) return RegionSet::DamagedList();
    size_t end = chunk.items.size();
    while (end > 0) {
      size_t begin = end - 1;
      while (begin > 0 && SameKey(chunk.items[begin - 1], chunk.items[end - 1])) --begin;
      Status status = MergeKey(chunk, begin, end);
      if (!status.ok()) return status;
      end = begin;
    }
    return Commit();
  }

  // Unlinks the versions of one key that no reader or snapshot can see. `first`: the key's newest version in the last level.
  // *next: the first entry of the next larger key.
  Status SweepKey(PmPtr first, PmPtr* next) {
    versions_.clear();
    if (!IsEntry(first, 0)) return RegionSet::DamagedList();
    *next = AppendLastLevel(first, PmPtr());
    if (damaged_ || (*next && (!IsEntry(*next, 0) || CompareEntries(*context_.order, *Resolve(first), *Resolve(*next)) >= 0)))
      return RegionSet::DamagedList();
    Decide();
    NoteOperand();
    return UnlinkObsolete(nullptr);
  }

  // The head checksums are the last stores of a batch. The user's filter forgets a dropped entry only after its dead mark is
  // durable.
  Status Commit() {
    UpdateHeadChecksums();
    Status status = batch_.Commit(progress_, &stats_->flushed_lines);
    if (!filtered_.empty() && status.ok()) {
      for (const LogEntry* entry : filtered_) context_.entry_filter->Forget(*entry);
      filtered_.clear();
    }
    return status;
  }
  const MergeBatch& batch() const { return batch_; }

  // The last tower before all versions of `key`, on layer `target_layer` of `region`'s list; on layer 0 of the whole list. The
  // search sees the pending stores of the batch. Sets damaged() if it finds damage.
  PmPtr FindTower(uint32_t region, uint32_t target_layer, Slice key) {
    uint64_t steps = 0;
    const SearchKey target(*context_.order, key, kMaxSequence);
    PmPtr tower = HeadTower(region);
    for (uint32_t layer = kMaxHeight - 1;; --layer) {
      if (layer == 0 && tower == HeadTower(region)) tower = HeadTower(0);
      for (PmPtr next = batch_.Next(tower, layer); next; next = batch_.Next(tower, layer)) {
        if (!IsEntry(next, layer) || InACircle(*context_.regions, ++steps)) {
          damaged_ = true;
          return tower;
        }
        if (CompareEntry(*context_.order, *Resolve(next), target) >= 0) break;
        tower = MergeBatch::TowerOf(next);
      }
      if (layer == target_layer) return tower;
    }
  }

  // Whether a pointer led to an address that holds no entry, or in a circle.
  bool damaged() const { return damaged_; }

 private:
  LogEntry* Resolve(PmPtr p) const { return context_.regions->Resolve<LogEntry>(p); }
  // The region whose upper layers link the entry.
  uint32_t ListOf(PmPtr p) const { return context_.regions->ListRegion(p.region()); }
  // Whether `p` may be an entry that is linked on `layer`. The scan has not checked everything that the merge loads.
  bool IsEntry(PmPtr p, uint32_t layer) const {
    return context_.regions->Holds(p) && IsEntryOnLayer(*context_.regions, p, layer);
  }
  // Chunks arrive in descending order. If a damaged list is out of order, an entry of an already merged chunk may return.
  bool IsBeforeMerged(const MergeItem& item) const {
    return merged_.entry == nullptr || item.prefix < merged_.prefix ||
           CompareEntries(*context_.order, *item.entry, *merged_.entry) < 0;
  }
  PmPtr HeadTower(uint32_t region) const { return context_.regions->ToPmPtr(region, context_.l1->head(region)); }
  bool SameKey(const MergeItem& a, const MergeItem& b) const {
    return a.prefix == b.prefix && context_.order->Compare(a.entry->key(), b.entry->key()) == 0;
  }

  // The heads' checksums belong to the same batch as the stores to the heads. So after a crash and a redo a head always matches
  // its checksum.
  void UpdateHeadChecksums() {
    for (uint32_t region = 0; region < context_.regions->count(); ++region) {
      const PmPtr tower = HeadTower(region);
      uint64_t words[kMaxHeight];
      for (uint32_t layer = 0; layer < kMaxHeight; ++layer) words[layer] = batch_.Load(tower, layer);
      const PmPtr checksum(tower.raw() - sizeof(uint64_t));
      const uint64_t value = SkipListHead::ComputeChecksum(words);
      if (BRAIDDB_MUTANT("head-checksum-left-out")) continue;
      if (BRAIDDB_MUTANT("head-checksum-outside-journal")) StoreRelease(context_.regions->Resolve<uint64_t>(checksum), value);
      if (batch_.Load(checksum, 0) != value) batch_.Store(checksum, 0, value);
    }
  }

  // Merges the items [begin, end) of the chunk: all versions of one key that the tables have, newest first.
  // 1. Collect the versions of the tables, and behind them the versions of the last level.
  // 2. Pair relocated copies with their originals, and decide which versions stay.
  // 3. Unlink the obsolete versions of the last level.
  // 4. Link or drop the versions of the tables.
  // If a copy replaces an operand by its result (collapse.h), step 4 precedes step 3.
  Status MergeKey(const ScanResult& chunk, size_t begin, size_t end) {
    versions_.clear();
    key_below_ = false;
    for (size_t i = begin; i < end; ++i) {
      const MergeItem& item = chunk.items[i];
      versions_.push_back({item.entry, item.pointer, &item, true});
      key_below_ |= item.key_below;
    }
    const PmPtr* towers = &chunk.towers[chunk.items[begin].before];
    if (key_below_) AppendLastLevel(batch_.Next(towers[0], 0), chunk.items[begin].behind);
    if (damaged_) return RegionSet::DamagedList();
    merged_ = chunk.items[begin];
    PairCopies(end - begin);
    Decide();
    NoteOperand();
    // ORDER: an operand is marked moved before the versions that the operand was applied to are unlinked. [CC-50]
    const bool unlinks_last = ReplacesOperand(end - begin);
    replaced_ = false;
    Status status = key_below_ && !unlinks_last ? UnlinkObsolete(&chunk) : Status::OK();
    // Oldest first. All versions of a group may share their predecessors, and each link puts its version in front of the previous
    // one.
    for (size_t i = end - begin; i-- > 0 && status.ok();) status = MergeVersion(chunk, versions_[i]);
    replaced_ = true;
    return status.ok() && unlinks_last ? UnlinkObsolete(&chunk) : status;
  }

  // Records the entry for the next tall index. `before`: the towers that lead to the entry.
  void NoteLinked(const Version& version, const PmPtr* before) {
    if (context_.index_changes == nullptr) return;
    const uint32_t list = ListOf(version.pointer);
    const bool is_whole = context_.order->PrefixIsWhole(version.entry->key());
    const auto node_before = [&](uint32_t layer) -> const LogEntry* {
      const PmPtr tower = before[layer];
      if (tower == HeadTower(layer == 0 ? 0 : list)) return nullptr;
      return Resolve(PmPtr(tower.raw() - kTowerOffset));
    };
    context_.index_changes->Add(list, version.entry, version.pointer, version.item->prefix, is_whole, node_before);
  }

  void NoteOperand() {
    if (versions_[0].keep && versions_[0].entry->is_operand()) stats_->AddOperandKey(versions_[0].entry->key());
  }

  // Whether one of the first `count` versions is a put that replaces an operand of the last level. These versions are from
  // tables.
  bool ReplacesOperand(size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      const Version& version = versions_[i];
      if (version.keep && version.other != SIZE_MAX && !version.entry->is_operand() &&
          versions_[version.other].entry->is_operand())
        return true;
    }
    return false;
  }

  // Decides which versions stay. A version that the user's filter drops is treated as a tombstone that hides nothing: older
  // versions are unlinked and marked before it, in the same batch or an earlier batch. [CC-48]
  void Decide() {
    context_.filter->Decide(&versions_);
    if (context_.entry_filter == nullptr) return;
    const auto is_from_table = [](const Version& version) { return version.item != nullptr; };
    const Version* const gone = FilterNewest(context_.entry_filter, is_from_table, &versions_);
    going_ = gone == nullptr ? PmPtr() : gone->pointer;
  }

  // Pairs each relocated copy with its original by sequence number. The first `count` versions are from tables, the others are in
  // the last level. Both parts are sorted from the newest to the oldest, so one pass over both finds all pairs.
  void PairCopies(size_t count) {
    size_t copy = 0;
    for (size_t i = count; i < versions_.size(); ++i) {
      const uint64_t sequence = versions_[i].entry->sequence();
      while (copy < count && versions_[copy].entry->sequence() > sequence) ++copy;
      if (copy == count) return;
      if (versions_[copy].entry->sequence() != sequence) continue;
      versions_[i].moved = true;
      versions_[i].other = copy;
      versions_[copy].other = i;
    }
  }

  // Appends the versions of the last level, beginning at `first`. Returns the first entry behind them. `behind`: an entry that is
  // known to have another key; it is not read.
  PmPtr AppendLastLevel(PmPtr first, PmPtr behind) {
    const Slice key = versions_.empty() ? (first ? Resolve(first)->key() : Slice()) : versions_[0].entry->key();
    PmPtr p = first;
    for (;;) {
      if (!p || p == behind) return p;
      damaged_ |= !IsEntry(p, 0);
      if (damaged_ || context_.order->Compare(Resolve(p)->key(), key) != 0) return p;
      // The sequence numbers must descend. This check also stops at a circle.
      if (!versions_.empty() && versions_.back().item == nullptr &&
          Resolve(p)->sequence() >= versions_.back().entry->sequence()) {
        damaged_ = true;
        return p;
      }
      versions_.push_back({Resolve(p), p, nullptr, true});
      p = batch_.Next(MergeBatch::TowerOf(p), 0);
    }
  }

  // Unlinks versions of the last level, oldest first. `chunk`: has the predecessors of the newest version. If `chunk` is null,
  // the predecessors are searched.
  // Each version is unlinked on all its layers, from the top to the bottom, and marked dead, in one batch. Its own pointers stay
  // for readers that stand on it.
  Status UnlinkObsolete(const ScanResult* chunk) {
    for (size_t i = versions_.size(); i-- > 0 && versions_[i].item == nullptr;) {
      const Version& version = versions_[i];
      if (version.keep || (version.moved && versions_[version.other].keep)) continue;  // the latter is replaced, not unlinked
      Status status = MakeRoom();
      if (!status.ok()) return status;
      const MergeItem* hint = chunk == nullptr ? nullptr : versions_[0].item;
      for (uint32_t layer = version.entry->height(); layer-- > 0;) {
        PmPtr before = BeforeInGroup(i, layer);
        if (!before) before = FindBefore(version, layer, chunk, hint);
        if (damaged_) return RegionSet::DamagedList();
        batch_.Store(before, layer, batch_.Next(MergeBatch::TowerOf(version.pointer), layer).raw());
      }
      MarkDead(version.pointer);
      if (context_.index_changes != nullptr) context_.index_changes->Remove(ListOf(version.pointer), version.entry);
      ++stats_->unlinked;
    }
    return Status::OK();
  }

  // The tower of the next newer version in the last level that leads to `version` on the layer. Null if no such tower exists. A
  // key with many operands has many versions: a walk from the predecessors for each version would be quadratic.
  PmPtr BeforeInGroup(size_t version, uint32_t layer) const {
    const PmPtr place = versions_[version].pointer;
    for (size_t i = version; i-- > 0 && versions_[i].item == nullptr;) {
      const Version& newer = versions_[i];
      if (newer.entry->height() <= layer || (layer > 0 && ListOf(newer.pointer) != ListOf(place))) continue;
      // Before Replace a copy's pointer leads to its successor in its table. The successor may be `version`, if an earlier run of
      // the merge linked `version`. So the copy's tower counts only after Replace.
      const bool is_replaced = replaced_ && newer.moved && versions_[newer.other].keep;
      const PmPtr tower = MergeBatch::TowerOf(is_replaced ? versions_[newer.other].pointer : newer.pointer);
      return batch_.Next(tower, layer) == place ? tower : PmPtr();
    }
    return PmPtr();
  }

  // Marks the entry, and also the original that the entry replaced in an earlier relocation (moved_entries.h).
  void MarkDead(PmPtr entry) {
    batch_.Mark(entry, LogEntry::kDeadBit);
    if (entry == going_) filtered_.push_back(Resolve(entry));
    const PmPtr original = context_.moved == nullptr ? PmPtr() : context_.moved->OriginalOf(entry);
    if (original) batch_.MarkAgain(original, LogEntry::kDeadBit);
  }

  // Puts the copy into the list position of the original, on each layer. A reader finds the original or the copy, and a reader
  // whose view has no table with the copy needs one of the two. All stores are in one step, so no batch ends between them.
  // A relocation copies the height and stays in the region. So the copy fits exactly into the original's position on all layers;
  // any difference means damage.
  Status Replace(const ScanResult& chunk, const Version& copy) {
    const Version& original = versions_[copy.other];
    const uint32_t height = copy.entry->height();
    if (original.entry->height() != height || original.pointer.region() != copy.pointer.region()) return RegionSet::DamagedList();
    const PmPtr own = MergeBatch::TowerOf(copy.pointer);
    for (uint32_t layer = 0; layer < height; ++layer)
      batch_.Store(own, layer, batch_.Next(MergeBatch::TowerOf(original.pointer), layer).raw());
    for (uint32_t layer = 0; layer < height; ++layer) {
      const PmPtr before = FindBefore(original, layer, &chunk, versions_[0].item);
      if (damaged_) return RegionSet::DamagedList();
      batch_.Store(before, layer, copy.pointer.raw());
    }
    batch_.Mark(original.pointer, LogEntry::kMovedBit);
    stats_->moved.Add(copy.pointer, original.pointer);
    if (context_.index_changes != nullptr) context_.index_changes->Replace(ListOf(copy.pointer), original.entry, copy.pointer);
    return Status::OK();
  }

  // The tower that leads to a version of the last level on this layer. Sets damaged() if it finds damage.
  PmPtr FindBefore(const Version& version, uint32_t layer, const ScanResult* chunk, const MergeItem* hint) {
    const bool known =
        hint != nullptr && layer < hint->layers && (layer == 0 || ListOf(hint->pointer) == ListOf(version.pointer));
    PmPtr tower = known ? chunk->towers[hint->before + layer] : FindTower(ListOf(version.pointer), layer, version.entry->key());
    // In an undamaged list, only newer versions of the same key lie between the tower and the version.
    for (PmPtr next = batch_.Next(tower, layer); !(next == version.pointer); next = batch_.Next(tower, layer)) {
      if (damaged_ || !next || !IsEntry(next, layer) || Resolve(next)->sequence() <= version.entry->sequence() ||
          context_.order->Compare(Resolve(next)->key(), version.entry->key()) != 0) {
        damaged_ = true;
        return tower;
      }
      tower = MergeBatch::TowerOf(next);
    }
    return tower;
  }

  // Merges one version of a table: replaces its original, links it, or drops it. MakeRoom may commit before the step, but not
  // inside it. So progress_ in a record always names a completed step.
  Status MergeVersion(const ScanResult& chunk, const Version& version) {
    if (BRAIDDB_MUTANT("progress-too-early")) progress_ = version.pointer;
    Status status = MakeRoom();
    if (!status.ok()) return status;
    if (version.keep && version.other != SIZE_MAX) {
      if (status = Replace(chunk, version); !status.ok()) return status;
    } else if (version.keep) {
      const PmPtr own = MergeBatch::TowerOf(version.pointer);
      const uint32_t height = version.entry->height();
      const PmPtr* before = &chunk.towers[version.item->before];
      // E.next = X.next on every layer comes before X.next = E on any layer. A reader then finds E only when all pointers of E
      // lead into the last level. E's old pointers lead to entries of its table. Some of these were dropped, and their pointers
      // bypass entries that only the last level has. A search that reaches E on the bottom layer may climb, so E's upper pointers
      // matter too. The journal keeps this order across a crash.
      for (uint32_t layer = 0; layer < height; ++layer) batch_.Store(own, layer, batch_.Next(before[layer], layer).raw());
      for (uint32_t layer = 0; layer < height; ++layer) batch_.Store(before[layer], layer, version.pointer.raw());
      for (uint32_t layer = 0; layer < height && BRAIDDB_MUTANT("link-outside-journal"); ++layer)
        StoreRelease(context_.regions->Resolve<uint64_t>(before[layer]) + layer, version.pointer.raw());
      NoteLinked(version, before);
      if (context_.keys != nullptr && !(key_below_ && context_.knows_keys_below)) context_.keys->Add(KeyHash(*version.entry));
      ++stats_->merged;
    } else {
      MarkDead(version.pointer);
      ++stats_->dropped;
    }
    progress_ = version.pointer;
    return Status::OK();
  }

  Status MakeRoom() { return batch_.HasRoom(kStoresPerStep + kStoresPerCommit) ? Status::OK() : Commit(); }

  const ZipperContext& context_;
  MergeBatch batch_;
  PmPtr progress_;
  MergeStats* stats_;
  std::vector<Version> versions_;
  PmPtr going_;                            // the version of the group that the user's filter drops
  std::vector<const LogEntry*> filtered_;  // versions that the user's filter dropped in this batch
  MergeItem merged_{};                     // smallest table entry merged so far; its entry is null at the beginning
  bool key_below_ = false;                 // the last level has versions of the key
  bool replaced_ = false;                  // the copies of the group have replaced their originals
  bool damaged_ = false;
};

}  // namespace

// Scanner threads work ahead on smaller chunks, while this thread merges the larger ones. A scan needs no lock: the
// predecessors of its entries lie before the larger chunks, and the merge of these chunks unlinks no predecessor.
Status RunZipper(const ZipperContext& context, const std::vector<const PmTable*>& tables, PmPtr progress, MergeStats* stats) {
  // The check precedes the plan, because a plan over many tables takes long.
  if (context.stop != nullptr && context.stop->load(std::memory_order_acquire)) return Status::Aborted("stopped");
  const std::unique_ptr<ChunkScanner> scanner = NewChunkScanner(context, tables, progress);
  if (context.regions->damage_seen()) return RegionSet::DamagedList();
  ScanAhead scans(*scanner, std::max(1u, context.threads));
  Merger merger(context, progress, stats);
  for (size_t chunk = scanner->chunks(); chunk-- > 0;) {
    if (context.stop != nullptr && context.stop->load(std::memory_order_acquire)) return Status::Aborted("stopped");
    const std::unique_ptr<ScanResult> scan = scans.Take(chunk);
    Status status = merger.MergeChunk(*scan);
    if (!status.ok()) return status;
    if (context.settled != nullptr) context.settled->fetch_add(scan->items.size(), std::memory_order_relaxed);
  }
  return Status::OK();
}

// Walks each range in ascending order along the bottom list, key by key. Unlike a merge, a sweep has no progress: the versions
// that it has unlinked are gone, and a repeated sweep finds the rest. The predecessors on upper layers are searched for each
// unlinked version, because few versions are unlinked.
Status SweepLastLevel(const ZipperContext& context, const KeyRanges& ranges, MergeStats* stats) {
  Merger merger(context, PmPtr(), stats);
  const KeyOrder& order = *context.order;
  for (const auto& [begin, end] : ranges) {
    PmPtr next = begin == nullptr ? merger.batch().Next(context.regions->ToPmPtr(0, context.l1->head(0)), 0)
                                  : merger.batch().Next(merger.FindTower(0, 0, *begin), 0);
    if (next && (!context.regions->Holds(next) || merger.damaged())) return RegionSet::DamagedList();
    while (next) {
      const auto* entry = context.regions->Resolve<LogEntry>(next);
      if (end != nullptr && order.Compare(entry->key(), *end) >= 0) break;
      if (context.stop != nullptr && context.stop->load(std::memory_order_acquire)) return Status::Aborted("stopped");
      Status status = merger.SweepKey(next, &next);
      if (!status.ok()) return status;
    }
  }
  return merger.Commit();
}

}  // namespace braiddb
