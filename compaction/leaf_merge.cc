#include "compaction/leaf_merge.h"

#include <algorithm>

#include "compaction/key_merger.h"
#include "compaction/merge_chunks.h"
#include "leaf_tree/leaf_cursor.h"
#include "util/prefetch.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// If at least this many entries of a chunk belong to one leaf, the leaf is copied to DRAM once. Otherwise each key is searched in
// the tree.
constexpr size_t kCopyFrom = 8;
// Prefetch distance of a sweep, in elements.
constexpr std::ptrdiff_t kFetchedAhead = 8;
// A sweep applies its changes when it has collected this many.
constexpr size_t kSweepChanges = kCrashTest ? 16 : 2048;

// Merges the keys of chunks by KeyMerger, and applies the changes batch by batch. Each thread has one LeafMerger.
//
// CONCURRENCY  Threads merge different chunks. A key belongs to one chunk, so no two threads decide the same key. Two chunks may
//              share a leaf: LeafTree::Apply serializes changes of a leaf. JoinLeaf works on a copy of the leaf, or inside an
//              epoch. Elements that other threads add meanwhile belong to other keys.
class LeafMerger {
 public:
  LeafMerger(const LastLevel::Parts& parts, LeafTree* tree, const EntryKeys& keys, const MergeJob& job, MergeStats* stats)
      : order_(*parts.order), tree_(*tree), keys_(keys), merger_(parts, job, stats) {}

  // Steps M1 to M3 for one chunk. `items`: in entry order, with all versions that the tables have of each key.
  Status MergeItems(const std::vector<ChunkItem>& items) {
    for (size_t begin = 0; begin < items.size();) begin = JoinLeaf(items, begin);
    if (keys_.regions().damage_seen()) return RegionSet::DamagedList();
    return Commit();
  }

  // Adds a version from the tree to the sweep. Versions arrive key by key, and newest first within a key.
  Status SweepVersion(const Element& element) {
    LogEntry* const entry = keys_.EntryOf(element);
    if (entry == nullptr) return RegionSet::DamagedList();
    if (merger_.has_versions() && !merger_.IsOfKey(*entry)) {
      if (Status status = EndSweepOfKey(); !status.ok()) return status;
    }
    merger_.AddFromLevel(entry, PmPtr(element.value), element.key);
    return Status::OK();
  }
  Status EndSweepOfKey() {
    DecideKey();
    merger_.Begin({});
    return changes_.size() < kSweepChanges ? Status::OK() : Commit();
  }

  // Steps M2 and M3 for all decisions since the last Commit.
  Status Commit() {
    if (Status status = merger_.MarkTombstones(); !status.ok()) return status;
    BRAIDDB_SYNC_POINT("LevelMerge:Marked");
    if (changes_.empty()) return Status::OK();
    // ORDER: the marks before the changes of leaves. [CC-45]
    if (Status status = Finish(); !status.ok()) return status;
    Status status = tree_.Apply(changes_);
    changes_.clear();
    BRAIDDB_SYNC_POINT("LevelMerge:Applied");
    return status;
  }

  // Makes all marks of this thread durable.
  Status Finish() { return merger_.Drain(); }

 private:
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
             order_.Same(items[last].entry->key(), items[first].entry->key())) {
        ++last;
      }
      merger_.Begin({items.data() + first, last - first});
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
    tree_.VisitElements(NewestOf(item), [this](const Element& element) { return AddFromTree(element); });
  }

  // Adds an element of the tree whose key word equals that of the key. Different keys may share a key word, so the entry's key is
  // compared.
  Visited AddFromTree(const Element& element) {
    LogEntry* const entry = keys_.EntryOf(element);
    if (entry == nullptr) return Visited::kGoOn;
    const int by_key = merger_.CompareKey(*entry);
    if (by_key != 0) return by_key > 0 ? Visited::kPastKey : Visited::kGoOn;
    merger_.AddFromLevel(entry, PmPtr(element.value), element.key);
    return Visited::kGoOn;
  }

  // Step M1 for one key. Collects the changes for M3.
  void DecideKey() {
    for (const KeyMerger::Version& version : merger_.Decide()) {
      if (version.keep != version.in_level) changes_.push_back({{version.prefix, version.pointer.raw()}, version.in_level});
    }
  }

  const KeyOrder& order_;
  LeafTree& tree_;
  const EntryKeys& keys_;
  KeyMerger merger_;
  std::vector<LeafChange> changes_;
  LeafTree::LeafCopy copy_;
};

}  // namespace

Status RunLeafMerge(const LastLevel::Parts& parts, LeafTree* tree, const EntryKeys& keys, const MergeJob& job,
                    const std::vector<const PmTable*>& tables, MergeStats* stats) {
  // The check precedes the plan, because a plan over many tables takes long.
  if (job.stop != nullptr && job.stop->load(std::memory_order_acquire)) return Status::Aborted("stopped");
  const MergePlan plan(tables, parts.regions, parts.order, PmPtr());
  if (parts.regions->damage_seen()) return RegionSet::DamagedList();
  const uint64_t lines = tree->flushed_lines();
  Status status = MergeChunks(
      parts, job, plan, stats, [&](MergeStats* own) { return LeafMerger(parts, tree, keys, job, own); },
      [](size_t, LeafMerger*) {});
  stats->flushed_lines += tree->flushed_lines() - lines;
  return status;
}

Status SweepLeafTree(const LastLevel::Parts& parts, LeafTree* tree, const EntryKeys& keys, const MergeJob& job,
                     const KeyRanges& ranges, MergeStats* stats) {
  const uint64_t lines = tree->flushed_lines();
  LeafMerger merger(parts, tree, keys, job, stats);
  Status status;
  for (size_t i = 0; status.ok() && i < ranges.size(); ++i) {
    const auto& [begin, end] = ranges[i];
    LeafCursor cursor(tree);
    if (begin != nullptr) {
      cursor.Seek(SearchKey(*parts.order, *begin, kMaxSequence));
    } else {
      cursor.SeekToFirst();
    }
    for (; status.ok() && cursor.element() != nullptr; cursor.Next()) {
      const Element* const element = cursor.element();
      if (cursor.end() - element > kFetchedAhead) keys.Prefetch(element[kFetchedAhead]);
      const LogEntry* const entry = keys.EntryOf(*element);
      if (entry != nullptr && end != nullptr && parts.order->Compare(entry->key(), *end) >= 0) break;
      if (job.stop != nullptr && job.stop->load(std::memory_order_acquire)) return Status::Aborted("stopped");
      status = merger.SweepVersion(*element);
    }
    if (status.ok()) status = merger.EndSweepOfKey();
  }
  if (status.ok()) status = merger.Commit();
  if (const Status finished = merger.Finish(); status.ok()) status = finished;  // as in MergeChunks
  stats->flushed_lines += tree->flushed_lines() - lines;
  return status;
}

}  // namespace braiddb
