#include "levels/nv_tree/nv_merge.h"

#include <algorithm>
#include <mutex>

#include "compaction/chunk_reader.h"
#include "compaction/merge_plan.h"
#include "nvtree/nv_cursor.h"
#include "util/mutant.h"
#include "util/prefetch.h"
#include "util/run_parallel.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// If at least this many entries of a chunk belong to one leaf, the leaf is copied to DRAM once. Otherwise each key is searched in
// the tree.
constexpr size_t kCopyFrom = 8;
// Prefetch distance of a sweep, in elements.
constexpr std::ptrdiff_t kAhead = 8;
// A sweep applies its changes when it has collected this many.
constexpr size_t kSweepChanges = kCrashTest ? 16 : 2048;

// Decides key by key which versions stay, and applies the changes batch by batch. Each thread has one NvMerger.
//
// CONCURRENCY  Threads merge different chunks. A key belongs to one chunk, so no two threads decide the same key. Two chunks may
//              share a leaf: NvTree::Apply serializes changes of a leaf. JoinLeaf works on a copy of the leaf, or inside an
//              epoch. Elements that other threads add meanwhile belong to other keys.
class NvMerger {
 public:
  NvMerger(const LastLevel::Parts& parts, const NvLevel& level, const MergeJob& job, MergeStats* stats)
      : regions_(*parts.regions),
        segments_(*parts.segments),
        order_(*parts.order),
        tree_(*level.tree()),
        keys_(level.keys()),
        filter_(*job.filter),
        moved_(job.moved),
        entry_filter_(job.entry_filters == nullptr ? nullptr : job.entry_filters->NewFilter()),
        key_writer_(job.key_filters[0], job.key_filters[1]),
        stats_(stats) {}

  // Steps M1 to M3 for one chunk. `items`: in entry order, with all versions that the tables have of each key.
  Status MergeItems(const std::vector<ChunkItem>& items) {
    for (size_t begin = 0; begin < items.size();) begin = JoinLeaf(items, begin);
    if (regions_.damage_seen()) return RegionSet::DamagedList();
    return Commit();
  }

  // Adds a version from the tree to the sweep. Versions arrive key by key, and newest first within a key.
  Status SweepVersion(const Element& element) {
    LogEntry* const entry = keys_.EntryOf(element);
    if (entry == nullptr) return RegionSet::DamagedList();
    if (!versions_.empty() && !SameKey(versions_.back().entry->key(), entry->key())) {
      if (Status status = EndSweepOfKey(); !status.ok()) return status;
    }
    versions_.push_back({entry, PmPtr(element.value), element.key, true, false, true});
    return Status::OK();
  }
  Status EndSweepOfKey() {
    DecideKey();
    versions_.clear();
    return changes_.size() < kSweepChanges ? Status::OK() : Commit();
  }

  // Steps M2 and M3 for all decisions since the last Commit.
  Status Commit() {
    if (!tombstones_.empty()) {
      // ORDER: the marks of the versions that tombstones hide before the marks of the tombstones. [CC-45]
      if (Status status = Finish(); !status.ok()) return status;
      for (const PmPtr pointer : tombstones_) MarkDead(pointer);
      tombstones_.clear();
      for (const LogEntry* entry : filtered_) entry_filter_->Forget(*entry);
      filtered_.clear();
    }
    BRAIDDB_SYNC_POINT("NvMerge:Marked");
    // The first fence in NvTree::Apply makes the marks durable. [CC-45]
    Status status = tree_.Apply(changes_);
    changes_.clear();
    BRAIDDB_SYNC_POINT("NvMerge:Applied");
    return status;
  }

  // Makes all marks of this thread durable.
  Status Finish() {
    Persistence* const persistence = regions_.persistence();
    if (BRAIDDB_MUTANT("nv-marks-not-fenced")) return Status::OK();
    return persistence->Drain() ? Status::OK() : persistence->error();
  }

 private:
  struct Version {
    LogEntry* entry;
    PmPtr pointer;
    uint64_t prefix;
    bool in_tree;
    bool in_table;
    bool keep;
    bool moved = false;  // the version is in the tree, and a table has a relocated copy of it
  };

  bool SameKey(Slice a, Slice b) const { return order_.Compare(a, b) == 0; }

  SearchKey NewestOf(const ChunkItem& item) const { return SearchKey(item.prefix, item.entry->key(), kMaxSequence); }

  // The end of the items whose keys lie in the range. The first item lies in the range.
  size_t EndOfRange(const std::vector<ChunkItem>& items, size_t begin, const InnerNodes::Range& range) const {
    if (range.is_last) return items.size();
    const auto in_leaf = [&](const ChunkItem& item) {
      if (item.prefix != range.high.prefix || range.high.rest == nullptr) return item.prefix < range.high.prefix;
      return CompareToSeparator(order_, NewestOf(item), range.high) < 0;
    };
    const auto end = std::partition_point(items.begin() + static_cast<std::ptrdiff_t>(begin) + 1, items.end(), in_leaf);
    return static_cast<size_t>(end - items.begin());
  }

  // Decides all keys of the leaf that has the first item. Returns the end of these items.
  // Both sides ascend: the items and the elements of the leaf. So one pass over both joins them, and `below` only moves forward.
  // Elements have only a key word, so all elements with the item's key word are compared by their entries' keys.
  size_t JoinLeaf(const std::vector<ChunkItem>& items, size_t begin) {
    size_t end = 0;
    const bool copied = CopyLeaf(items, begin, &end);
    if (copied) FetchEntries(items, begin, end);
    size_t below = 0;  // the first copied element that is not before the key
    for (size_t first = begin; first < end;) {
      size_t last = first + 1;
      while (last < end && items[last].prefix == items[first].prefix &&
             SameKey(items[last].entry->key(), items[first].entry->key())) {
        ++last;
      }
      versions_.clear();
      for (size_t i = first; i < last; ++i) {
        versions_.push_back({items[i].entry, items[i].pointer, items[i].prefix, false, true, true});
      }
      in_tables_ = versions_.size();
      if (copied) {
        const SearchKey newest = NewestOf(items[first]);
        while (below < copy_.elements.size() && tree_.Compare(copy_.elements[below], newest) < 0) ++below;
        for (size_t i = below; i < copy_.elements.size() && copy_.elements[i].key == items[first].prefix; ++i) {
          if (AddFromTree(copy_.elements[i]) == Visited::kPastKey) break;
        }
      } else {
        LookUp(items[first]);
      }
      DecideKey();
      first = last;
    }
    return end;
  }

  // Sets *end to the end of the first item's leaf. Returns whether the leaf was copied. A leaf is not copied for a few items, nor
  // if the versions of one of its keys extend into a neighbour leaf.
  bool CopyLeaf(const std::vector<ChunkItem>& items, size_t begin, size_t* end) {
    const EpochManager::Guard guard = tree_.epochs()->Enter();
    const SearchKey first = NewestOf(items[begin]);
    *end = EndOfRange(items, begin, tree_.FindRange(first));
    if (*end - begin < kCopyFrom) return false;
    tree_.CopyLeaf(first, false, &copy_);
    const InnerNodes::Range& range = copy_.range;
    *end = EndOfRange(items, begin, range);  // another thread may have split the leaf since
    return EndsWithKey(range.low) && (range.is_last || EndsWithKey(range.high));
  }
  static bool EndsWithKey(const Separator& border) { return border.rest == nullptr || border.rest->sequence == kMaxSequence; }

  // Prefetches the entries of the tree that may be versions of the items' keys. AddFromTree compares their keys.
  void FetchEntries(const std::vector<ChunkItem>& items, size_t begin, size_t end) const {
    size_t item = begin;
    for (const Element& element : copy_.elements) {
      while (item < end && items[item].prefix < element.key) ++item;
      if (item < end && items[item].prefix == element.key) keys_.Prefetch(element);
    }
  }

  // Searches one key in the tree and adds its versions. The epoch protects the leaf that is read.
  void LookUp(const ChunkItem& item) {
    const EpochManager::Guard guard = tree_.epochs()->Enter();
    tree_.VisitKey(NewestOf(item), [this](const Element& element) { return AddFromTree(element); });
  }

  // Adds an element of the tree whose key word equals that of versions_. Different keys may share a key word, so the entry's key
  // is compared.
  Visited AddFromTree(const Element& element) {
    const PmPtr pointer(element.value);
    LogEntry* const entry = keys_.EntryOf(element);
    if (entry == nullptr) return Visited::kGoOn;
    const int by_key = order_.Compare(entry->key(), versions_.front().entry->key());
    if (by_key != 0) return by_key > 0 ? Visited::kPastKey : Visited::kGoOn;
    // The tables' versions are sorted, newest first. Binary search, because a key may have many versions (operands).
    const auto end = versions_.begin() + static_cast<std::ptrdiff_t>(in_tables_);
    const auto same = std::partition_point(
        versions_.begin(), end, [entry](const Version& version) { return version.entry->sequence() > entry->sequence(); });
    if (same != end && same->pointer == pointer) {  // an earlier run of the merge added the version
      same->in_tree = true;
      return Visited::kGoOn;
    }
    versions_.push_back({entry, pointer, element.key, true, false, true});
    return Visited::kGoOn;
  }

  // Step M1 for one key. Collects the changes for M3.
  //
  // WHY TOMBSTONES ARE MARKED LAST  Take put@5 in the tree and delete@8 in a table, which no snapshot needs. Both are dropped. A
  //     reader skips entries that are marked dead. If the mark of delete@8 became durable first and a crash followed, readers
  //     would skip the deletion and find put@5: a deleted key would return. So put@5 is marked in M1, and delete@8 in M2, after
  //     a fence. If a newer version of the key exists, the newer version hides both, and the order does not matter.
  void DecideKey() {
    std::sort(versions_.begin(), versions_.end(), [](const Version& a, const Version& b) {
      const uint64_t of_a = a.entry->sequence();
      const uint64_t of_b = b.entry->sequence();
      return of_a != of_b ? of_a > of_b : a.in_table > b.in_table;  // a copy before its original
    });
    for (size_t i = 1; i < versions_.size(); ++i)
      versions_[i].moved = versions_[i].entry->sequence() == versions_[i - 1].entry->sequence();
    filter_.Decide(&versions_);
    // A version that an earlier run has marked dead is invisible already, also to snapshots that exist now. It must not be kept.
    for (Version& version : versions_) version.keep = version.keep && !version.entry->is_dead();
    // The version that the user's filter drops is marked in M2, as a tombstone, for the same reason: its mark makes older
    // versions visible. [CC-48]
    const LogEntry* filtered = nullptr;
    if (entry_filter_ != nullptr) {
      const Version* const gone = FilterNewest(
          entry_filter_.get(), [](const Version& v) { return v.in_table; }, &versions_);
      if (gone != nullptr) filtered_.push_back(filtered = gone->entry);
    }
    if (!versions_.empty() && versions_[0].keep && versions_[0].entry->is_operand())
      stats_->AddOperandKey(versions_[0].entry->key());
    // Operands hide no older version.
    size_t first_to_hide = 0;
    while (first_to_hide < versions_.size() && versions_[first_to_hide].entry->is_operand()) ++first_to_hide;
    // If a range tombstone hides a newest version that is an operand, all older versions are dropped too. The operand's mark
    // comes after their marks.
    const bool takes_all = !versions_.empty() && !versions_[0].keep && !versions_[0].moved && versions_[0].entry->is_operand();
    // Oldest first: a reader that sees the mark of a version also sees the marks of the versions that it hid.
    for (size_t i = versions_.size(); i-- > 0;) {
      const Version& version = versions_[i];
      if (version.keep) continue;
      const bool nothing_newer_hides = i <= first_to_hide || (i == first_to_hide + 1 && version.moved);
      if (version.moved && versions_[i - 1].keep) {
        Mark(version.pointer, LogEntry::kMovedBit);
        stats_->moved.Add(versions_[i - 1].pointer, version.pointer);
      } else if (takes_all && i == 0) {
        tombstones_.push_back(version.pointer);
      } else if (!takes_all && nothing_newer_hides && version.entry->type() == EntryType::kDelete &&
                 !BRAIDDB_MUTANT("nv-tombstone-marked-early")) {
        tombstones_.push_back(version.pointer);
      } else if (version.entry == filtered && !BRAIDDB_MUTANT("nv-filtered-marked-early")) {
        tombstones_.push_back(version.pointer);
      } else {
        MarkDead(version.pointer);
      }
    }
    for (const Version& version : versions_) {
      if (version.keep != version.in_tree) changes_.push_back({{version.prefix, version.pointer.raw()}, version.in_tree});
      if (version.in_table && version.keep) {  // also entries that an interrupted run has added
        key_writer_.Add(KeyHash(*version.entry));
        ++stats_->merged;
      }
      if (version.in_table && !version.keep && !version.in_tree) ++stats_->dropped;
      if (version.in_tree && !version.keep) ++stats_->unlinked;
    }
  }

  void MarkDead(PmPtr pointer) {
    Mark(pointer, LogEntry::kDeadBit);
    const PmPtr original = moved_ == nullptr ? PmPtr() : moved_->OriginalOf(pointer);
    if (original) Mark(original, LogEntry::kDeadBit);
  }

  // Sets the bit, counts an entry without marks as obsolete, and flushes the line. The line is flushed even if the bit is set,
  // because an earlier run may have crashed before its fence.
  void Mark(PmPtr pointer, uint64_t bit) {
    auto* const entry = regions_.Resolve<LogEntry>(pointer);
    const uint64_t word = LoadRelaxed(&entry->next[0]);
    if ((word & bit) == 0) {
      StoreRelease(&entry->next[0], word | bit);
      Segment* const segment = (word & LogEntry::kMarks) == 0 ? segments_.Find(pointer) : nullptr;
      if (segment != nullptr) CountObsolete(segment, pointer, *entry);
    }
    if (!BRAIDDB_MUTANT("nv-mark-not-flushed")) regions_.persistence()->Flush(&entry->next[0], sizeof(uint64_t));
    ++stats_->flushed_lines;
  }

  const RegionSet& regions_;
  const SegmentAllocator& segments_;
  const KeyOrder& order_;
  NvTree& tree_;
  const EntryKeys& keys_;
  const VersionFilter& filter_;
  const MovedEntries* const moved_;
  const std::unique_ptr<EntryFilter> entry_filter_;  // may be null
  KeyFilterWriter key_writer_;
  MergeStats* const stats_;
  std::vector<Version> versions_;  // of one key
  size_t in_tables_ = 0;           // number of versions_ from tables; they come first
  std::vector<LeafChange> changes_;
  std::vector<PmPtr> tombstones_;          // versions to mark in M2: no newer version hides what they hid
  std::vector<const LogEntry*> filtered_;  // the versions of these that the user's filter dropped
  NvTree::LeafCopy copy_;
};

void Add(const MergeStats& part, MergeStats* sum) {
  sum->merged += part.merged;
  sum->dropped += part.dropped;
  sum->unlinked += part.unlinked;
  sum->moved.Add(part.moved);
  for (const std::string& key : part.operand_keys) sum->AddOperandKey(key);
  sum->flushed_lines += part.flushed_lines;
}

// A merge: its threads claim chunks from a shared counter. The first error stops all threads.
class MergeRun {
 public:
  MergeRun(const LastLevel::Parts& parts, const NvLevel& level, const MergeJob& job, const MergePlan& plan, MergeStats* stats)
      : parts_(parts), level_(level), job_(job), plan_(plan), stats_(stats) {}

  Status Run() {
    const auto threads = std::min<size_t>(std::max(1u, job_.threads), std::max<size_t>(1, plan_.chunks() / 4));
    RunParallel(static_cast<uint32_t>(threads), [this](uint32_t) { Work(); });
    return status_;
  }

 private:
  // The work of one thread. Counts separately and adds its counts at the end, so threads share no counters while they merge.
  // Keeps the first error of all threads.
  void Work() {
    MergeStats stats;
    Status status;
    {
      NvMerger merger(parts_, level_, job_, &stats);
      status = MergeChunks(&merger);
      if (status.ok()) status = merger.Finish();
    }
    const std::lock_guard lock(mutex_);
    Add(stats, stats_);
    if (!status_.ok() || status.ok()) return;
    status_ = status;
    failed_.store(true, std::memory_order_relaxed);
  }

  // Chunks are claimed by fetch-and-increment, so each chunk is merged by one thread. The order of the chunks does not matter: no
  // chunk depends on another.
  Status MergeChunks(NvMerger* merger) {
    ChunkReader reader(parts_.regions, parts_.order);
    std::vector<ChunkItem> items;
    for (size_t chunk = next_++; chunk < plan_.chunks(); chunk = next_++) {
      if (failed_.load(std::memory_order_relaxed)) return Status::OK();
      if (job_.stop != nullptr && job_.stop->load(std::memory_order_acquire)) return Status::Aborted("stopped");
      if (!reader.Read(plan_.pieces(chunk), &items)) return RegionSet::DamagedList();
      Status status = merger->MergeItems(items);
      if (!status.ok()) return status;
      if (job_.settled != nullptr) job_.settled->fetch_add(items.size(), std::memory_order_relaxed);
    }
    return Status::OK();
  }

  const LastLevel::Parts& parts_;
  const NvLevel& level_;
  const MergeJob& job_;
  const MergePlan& plan_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  MergeStats* const stats_;
  Status status_;
};

}  // namespace

Status RunNvMerge(const LastLevel::Parts& parts, const NvLevel& level, const MergeJob& job,
                  const std::vector<const PmTable*>& tables, MergeStats* stats) {
  // The check precedes the plan, because a plan over many tables takes long.
  if (job.stop != nullptr && job.stop->load(std::memory_order_acquire)) return Status::Aborted("stopped");
  const MergePlan plan(tables, parts.regions, parts.order, PmPtr());
  if (parts.regions->damage_seen()) return RegionSet::DamagedList();
  const uint64_t lines = level.tree()->flushed_lines();
  Status status = MergeRun(parts, level, job, plan, stats).Run();
  stats->flushed_lines += level.tree()->flushed_lines() - lines;
  return status;
}

Status SweepNvTree(const LastLevel::Parts& parts, const NvLevel& level, const MergeJob& job, const KeyRanges& ranges,
                   MergeStats* stats) {
  const uint64_t lines = level.tree()->flushed_lines();
  NvMerger merger(parts, level, job, stats);
  Status status;
  for (size_t i = 0; status.ok() && i < ranges.size(); ++i) {
    const auto& [begin, end] = ranges[i];
    NvCursor cursor(level.tree());
    if (begin != nullptr) {
      cursor.Seek(SearchKey(*parts.order, *begin, kMaxSequence));
    } else {
      cursor.SeekToFirst();
    }
    for (; status.ok() && cursor.element() != nullptr; cursor.Next()) {
      const Element* const element = cursor.element();
      if (cursor.end() - element > kAhead) level.keys().Prefetch(element[kAhead]);
      const LogEntry* const entry = level.keys().EntryOf(*element);
      if (entry != nullptr && end != nullptr && parts.order->Compare(entry->key(), *end) >= 0) break;
      if (job.stop != nullptr && job.stop->load(std::memory_order_acquire)) return Status::Aborted("stopped");
      status = merger.SweepVersion(*element);
    }
    if (status.ok()) status = merger.EndSweepOfKey();
  }
  if (status.ok()) status = merger.Commit();
  if (status.ok()) status = merger.Finish();
  stats->flushed_lines += level.tree()->flushed_lines() - lines;
  return status;
}

}  // namespace braiddb
