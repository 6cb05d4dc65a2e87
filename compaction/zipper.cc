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

// Most stores that one step (linking or unlinking one entry) makes.
constexpr uint64_t kStoresPerStep = 2 * kMaxHeight + 2;
// … and then a commit, to the checksums of the heads.
constexpr uint64_t kStoresPerCommit = kMaxRegions;

// One version of the key that is being merged, newest first in a group.
struct Version {
  LogEntry* entry;
  PmPtr pointer;
  const MergeItem* item;  // null: it is in the last level
  bool keep;
  bool moved = false;       // it is in the last level, and a table has a copy of it
  size_t other = SIZE_MAX;  // of the copy, where the original is, and of the original, where the copy is
};

// The merge phase: turns scan results, given in descending order, into batches of stores.
class Merger {
 public:
  Merger(const ZipperContext& context, PmPtr progress, MergeStats* stats)
      : context_(context), batch_(context.regions, context.segments, context.journal), progress_(progress), stats_(stats) {}

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

  // Unlinks what nobody sees of the versions of one key, which start at `first` in the last level. *next: the first entry behind
  // them.
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

  // The last tower on `layer` of `region`'s list (layer 0: of the whole list) before all versions of `key`. Sets damaged() if it
  // comes upon damage.
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

  // Whether a list led to something that is not an entry, or in a circle.
  bool damaged() const { return damaged_; }

 private:
  LogEntry* Resolve(PmPtr p) const { return context_.regions->Resolve<LogEntry>(p); }
  // The region in whose upper lists an entry is linked.
  uint32_t ListOf(PmPtr p) const { return context_.regions->ListRegion(p.region()); }
  // Whether what a pointer leads to may be an entry that is linked on `layer`: the scan did not look at all that is loaded here.
  bool IsEntry(PmPtr p, uint32_t layer) const {
    return context_.regions->Holds(p) && IsEntryOnLayer(*context_.regions, p, layer);
  }
  // Chunks come in descending order; a list that is not in order may bring an entry of the chunk before again.
  bool IsBeforeMerged(const MergeItem& item) const {
    return merged_.entry == nullptr || item.prefix < merged_.prefix ||
           CompareEntries(*context_.order, *item.entry, *merged_.entry) < 0;
  }
  PmPtr HeadTower(uint32_t region) const { return context_.regions->ToPmPtr(region, context_.l1->head(region)); }
  bool SameKey(const MergeItem& a, const MergeItem& b) const {
    return a.prefix == b.prefix && context_.order->Compare(a.entry->key(), b.entry->key()) == 0;
  }

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
    // ORDER: an operand is marked moved before what it was applied to goes. [CC-50]
    const bool unlinks_last = ReplacesOperand(end - begin);
    replaced_ = false;
    Status status = key_below_ && !unlinks_last ? UnlinkObsolete(&chunk) : Status::OK();
    // From the oldest to the newest, so that each is linked in front of the one before.
    for (size_t i = end - begin; i-- > 0 && status.ok();) status = MergeVersion(chunk, versions_[i]);
    replaced_ = true;
    return status.ok() && unlinks_last ? UnlinkObsolete(&chunk) : status;
  }

  // `before`: the towers that lead to it.
  void NoteLinked(const Version& version, const PmPtr* before) {
    if (context_.index_changes == nullptr) return;
    const uint32_t list = ListOf(version.pointer);
    const bool is_whole = context_.order->PrefixIsWhole(version.entry->key());
    context_.index_changes->Add(list, version.entry, version.item->prefix, is_whole, [&](uint32_t layer) -> const LogEntry* {
      const PmPtr tower = before[layer];
      if (tower == HeadTower(layer == 0 ? 0 : list)) return nullptr;
      return Resolve(PmPtr(tower.raw() - offsetof(LogEntry, next)));
    });
  }

  void NoteOperand() {
    if (versions_[0].keep && versions_[0].entry->is_operand()) stats_->AddOperandKey(versions_[0].entry->key());
  }

  // Whether one of the tables' versions, the first `count`, is a put that takes the place of an operand.
  bool ReplacesOperand(size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      const Version& version = versions_[i];
      if (version.keep && version.other != SIZE_MAX && !version.entry->is_operand() &&
          versions_[version.other].entry->is_operand())
        return true;
    }
    return false;
  }

  // What the user's filter drops goes as a tombstone does that hides nothing: what is older is unlinked and marked before it, in
  // the same batch or an earlier one. [CC-48]
  void Decide() {
    context_.filter->Decide(&versions_);
    if (context_.entry_filter == nullptr) return;
    const auto is_from_table = [](const Version& version) { return version.item != nullptr; };
    const Version* const gone = FilterNewest(context_.entry_filter, is_from_table, &versions_);
    going_ = gone == nullptr ? PmPtr() : gone->pointer;
  }

  // The first `count` versions are from tables, the others in the last level, both from the newest to the oldest.
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

  // Adds the versions that the last level has, `first` and on; returns the entry behind them. `behind`: which is known to be of
  // another key, and is not looked at.
  PmPtr AppendLastLevel(PmPtr first, PmPtr behind) {
    const Slice key = versions_.empty() ? (first ? Resolve(first)->key() : Slice()) : versions_[0].entry->key();
    PmPtr p = first;
    for (;;) {
      if (!p || p == behind) return p;
      damaged_ |= !IsEntry(p, 0);
      if (damaged_ || context_.order->Compare(Resolve(p)->key(), key) != 0) return p;
      // From the newest to the oldest, and not in a circle.
      if (!versions_.empty() && versions_.back().item == nullptr &&
          Resolve(p)->sequence() >= versions_.back().entry->sequence()) {
        damaged_ = true;
        return p;
      }
      versions_.push_back({Resolve(p), p, nullptr, true});
      p = batch_.Next(MergeBatch::TowerOf(p), 0);
    }
  }

  // Unlinks versions of the last level, oldest first. `chunk`: where the newest version's predecessors are, null if they are to
  // be searched.
  Status UnlinkObsolete(const ScanResult* chunk) {
    for (size_t i = versions_.size(); i-- > 0 && versions_[i].item == nullptr;) {
      const Version& version = versions_[i];
      if (version.keep || (version.moved && versions_[version.other].keep)) continue;  // the latter is replaced
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

  // The tower of the next newer version in the last level that leads to this one on the layer; null if there is none. Versions
  // may be very many (operands), so that a walk for each takes too long.
  PmPtr BeforeInGroup(size_t version, uint32_t layer) const {
    const PmPtr place = versions_[version].pointer;
    for (size_t i = version; i-- > 0 && versions_[i].item == nullptr;) {
      const Version& newer = versions_[i];
      if (newer.entry->height() <= layer || (layer > 0 && ListOf(newer.pointer) != ListOf(place))) continue;
      // Until it is in the original's place, a copy leads to what follows it in its table: that may be this very version, if an
      // earlier run of the merge has linked it.
      const bool is_replaced = replaced_ && newer.moved && versions_[newer.other].keep;
      const PmPtr tower = MergeBatch::TowerOf(is_replaced ? versions_[newer.other].pointer : newer.pointer);
      return batch_.Next(tower, layer) == place ? tower : PmPtr();
    }
    return PmPtr();
  }

  void MarkDead(PmPtr entry) {
    batch_.Mark(entry, LogEntry::kDeadBit);
    if (entry == going_) filtered_.push_back(Resolve(entry));
    const PmPtr original = context_.moved == nullptr ? PmPtr() : context_.moved->OriginalOf(entry);
    if (original) batch_.MarkAgain(original, LogEntry::kDeadBit);
  }

  // The copy takes the place of the original, layer by layer: readers come upon one or the other, and those that have no table
  // with the copy need one of them. In one step, so that no batch ends between.
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
    if (context_.index_changes != nullptr) context_.index_changes->Replace(ListOf(copy.pointer), original.entry, copy.entry);
    return Status::OK();
  }

  // The tower before a version of the last level on this layer. Sets damaged() if it comes upon damage.
  PmPtr FindBefore(const Version& version, uint32_t layer, const ScanResult* chunk, const MergeItem* hint) {
    const bool known =
        hint != nullptr && layer < hint->layers && (layer == 0 || ListOf(hint->pointer) == ListOf(version.pointer));
    PmPtr tower = known ? chunk->towers[hint->before + layer] : FindTower(ListOf(version.pointer), layer, version.entry->key());
    // Only versions of the same key lie between: in a list that is whole.
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
      // E.next = X.next on every layer before X.next = E on any: a reader finds E only when all of E leads on. Its old pointers
      // lead to entries of its table, and from those that were dropped past what only the last level has; a search that comes
      // to E at the bottom may climb. The journal keeps the order durable.
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
  PmPtr going_;                            // what the user's filter drops of them
  std::vector<const LogEntry*> filtered_;  // … and dropped in this batch
  MergeItem merged_{};                     // the smallest entry of the tables that was merged; its entry is null at the beginning
  bool key_below_ = false;                 // the last level has versions of the key
  bool replaced_ = false;                  // the copies of the key are in their originals' places
  bool damaged_ = false;
};

}  // namespace

Status RunZipper(const ZipperContext& context, const std::vector<const PmTable*>& tables, PmPtr progress, MergeStats* stats) {
  // Before a plan, which takes long for many tables.
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
