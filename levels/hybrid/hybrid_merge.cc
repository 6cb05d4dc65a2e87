#include "levels/hybrid/hybrid_merge.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "compaction/key_merger.h"
#include "compaction/merge_chunks.h"
#include "log/fetch_entry.h"
#include "util/mutant.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// Keys whose versions are prefetched together.
constexpr size_t kBatchKeys = kCrashTest ? 4 : 64;
// Distance of prefetches in a batch, in keys, and of a sweep, in entries.
constexpr size_t kAhead = 8;
// A sweep applies its changes when it has collected this many.
constexpr size_t kSweepChanges = kCrashTest ? 16 : 2048;

// Merges the keys of chunks by KeyMerger, and applies the changes chunk by chunk. Each thread has one HybridMerger.
//
// CONCURRENCY  Threads merge different chunks. A key belongs to one chunk, so no two threads decide the same key.
//              HashIndex::Apply serializes changes of a partition.
class HybridMerger {
 public:
  HybridMerger(const LastLevel::Parts& parts, const HybridView& view, const MergeJob& job, MergeStats* stats)
      : parts_(parts), view_(view), index_(view.BuiltIndex()), merger_(parts, job, stats) {}

  // Steps M1 to M3 for one chunk. `items`: in entry order, with all versions that the tables have of each key.
  Status MergeItems(const std::vector<ChunkItem>& items) {
    for (size_t begin = 0; begin < items.size();) begin = MergeBatch(items, begin);
    if (parts_.regions->damage_seen()) return RegionSet::DamagedList();
    return Commit();
  }

  // Adds a version from the index to the sweep. Versions arrive key by key, and newest first within a key.
  Status SweepVersion(LogEntry* entry, PmPtr place, uint64_t prefix) {
    if (merger_.has_versions() && !merger_.IsOfKey(*entry)) {
      if (Status status = EndSweepOfKey(); !status.ok()) return status;
    }
    merger_.AddFromLevel(entry, place, prefix);
    return Status::OK();
  }
  Status EndSweepOfKey() {
    if (merger_.has_versions()) DecideKey(0);
    merger_.Begin({});
    return changes_.size() < kSweepChanges ? Status::OK() : Commit();
  }

  // Steps M2 and M3 for all decisions since the last Commit.
  Status Commit() {
    Status status = merger_.MarkTombstones();
    // ORDER: the marks before the changes of the index. [CC-45]
    if (status.ok()) status = merger_.Drain();
    if (!status.ok()) return status;
    BRAIDDB_SYNC_POINT("LevelMerge:Marked");
    status = view_.parts().hash->Apply(changes_);
    changes_.clear();
    BRAIDDB_SYNC_POINT("LevelMerge:Applied");
    return status;
  }

  // Makes all marks and changes of this thread durable.
  Status Finish() {
    Persistence* const persistence = parts_.regions->persistence();
    if (BRAIDDB_MUTANT("hash-changes-not-fenced")) return Status::OK();
    return persistence->Drain() ? Status::OK() : persistence->error();
  }

  // The changes of the ordered index since the last call, in entry order.
  std::vector<OrderedIndex::Change> TakeChanges() { return std::exchange(index_changes_, {}); }

 private:
  struct Key {
    size_t begin;  // its items
    size_t end;
    uint64_t signature;
    size_t versions_end;  // its versions in the index end here in found_
  };

  // Decides a batch of keys. Returns the end of its items. First all keys' versions are looked up and prefetched, so that their
  // cache misses overlap.
  size_t MergeBatch(const std::vector<ChunkItem>& items, size_t begin) {
    batch_.clear();
    found_.clear();
    size_t end = begin;
    while (end < items.size() && batch_.size() < kBatchKeys) {
      const ChunkItem& first = items[end];
      size_t last = end + 1;
      while (last < items.size() && items[last].prefix == first.prefix &&
             parts_.order->Same(items[last].entry->key(), first.entry->key())) {
        ++last;
      }
      batch_.push_back({end, last, view_.SignatureOf(first.entry->key()), 0});
      end = last;
    }
    FindVersions(items);
    size_t version = 0;
    for (const Key& key : batch_) {
      merger_.Begin({items.data() + key.begin, key.end - key.begin});
      for (; version < key.versions_end; ++version) {
        const auto& [entry, place] = found_[version];
        if (merger_.IsOfKey(*entry)) merger_.AddFromLevel(entry, place, items[key.begin].prefix);
      }
      DecideKey(key.signature);
    }
    return end;
  }

  // Fills found_ with the candidates of each key. A page that changes meanwhile may show an entry twice.
  void FindVersions(const std::vector<ChunkItem>& items) {
    HashIndex& hash = *view_.parts().hash;
    if (!view_.is_hashed()) {
      for (Key& key : batch_) {
        const ChunkItem& item = items[key.begin];
        (void)view_.VisitVersions(index_.get(), SearchKey(item.prefix, item.entry->key(), kMaxSequence), 0,
                                  [&](LogEntry* entry, PmPtr place) { found_.emplace_back(entry, place); });
        key.versions_end = found_.size();
      }
      return;
    }
    const EpochManager::Guard guard = parts_.epochs->Enter();
    for (size_t i = 0; i < std::min(kAhead, batch_.size()); ++i) hash.Prefetch(batch_[i].signature);
    for (size_t i = 0; i < batch_.size(); ++i) {
      if (i + kAhead < batch_.size()) hash.Prefetch(batch_[i + kAhead].signature);
      const size_t first = found_.size();
      (void)hash.VisitEntries(batch_[i].signature, [&](PmPtr place) {
        LogEntry* const entry = view_.EntryAt(place);
        if (entry == nullptr) return;
        FetchEntry(entry);
        found_.emplace_back(entry, place);
      });
      const auto begin = found_.begin() + static_cast<std::ptrdiff_t>(first);
      if (found_.end() - begin > 1) {
        std::sort(begin, found_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        found_.erase(std::unique(begin, found_.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
                     found_.end());
      }
      batch_[i].versions_end = found_.size();
    }
  }

  // Step M1 for one key. Collects the changes for M3: removed and added versions are paired to replacements. A relocated copy
  // takes the slot of its original, since readers may have no other copy in their view. `signature`: 0 if it is not known.
  void DecideKey(uint64_t signature) {
    const std::vector<KeyMerger::Version>& versions = merger_.Decide();
    const bool changes = std::ranges::any_of(versions, [](const auto& version) { return version.keep != version.in_level; });
    if (!changes) return;
    const auto signature_of = [&](const KeyMerger::Version& version) {
      return signature != 0 && view_.is_hashed() ? signature : view_.SignatureOf(version.entry->key());
    };
    is_paired_.assign(versions.size(), false);
    size_t removed = 0;
    for (size_t i = 0; i < versions.size(); ++i) {
      const KeyMerger::Version& version = versions[i];
      if (version.keep == version.in_level) continue;
      index_changes_.push_back({version.prefix, version.pointer, version.keep});
      if (!version.keep) continue;
      const uint64_t added = signature_of(version);
      const auto can_replace = [&](size_t other) {
        return versions[other].in_level && !versions[other].keep && !is_paired_[other] &&
               (view_.is_hashed() || signature_of(versions[other]) == added);
      };
      size_t replaced = i + 1;  // the original of a copy
      if (replaced == versions.size() || !versions[replaced].moved || !can_replace(replaced)) {
        while (removed < versions.size() && (versions[removed].moved || !can_replace(removed))) ++removed;
        replaced = removed;
      }
      const bool replaces = replaced < versions.size();
      changes_.push_back({added, replaces ? versions[replaced].pointer : PmPtr(), version.pointer});
      if (replaces) is_paired_[replaced] = true;
    }
    for (size_t i = 0; i < versions.size(); ++i) {
      if (versions[i].in_level && !versions[i].keep && !is_paired_[i])
        changes_.push_back({signature_of(versions[i]), versions[i].pointer, PmPtr()});
    }
  }

  const LastLevel::Parts& parts_;
  const HybridView& view_;
  const std::shared_ptr<const OrderedIndex> index_;  // used if keys are not hashed
  KeyMerger merger_;
  std::vector<Key> batch_;
  std::vector<std::pair<LogEntry*, PmPtr>> found_;
  std::vector<bool> is_paired_;  // by version of a key: its slot is reused for an added one
  std::vector<HashChange> changes_;
  std::vector<OrderedIndex::Change> index_changes_;
};

}  // namespace

Status RunHybridMerge(const LastLevel::Parts& parts, const HybridView& view, const MergeJob& job,
                      const std::vector<const PmTable*>& tables, MergeStats* stats, std::vector<OrderedIndex::Change>* changes) {
  // The check precedes the plan, because a plan over many tables takes long.
  if (job.stop != nullptr && job.stop->load(std::memory_order_acquire)) return Status::Aborted("stopped");
  const MergePlan plan(tables, parts.regions, parts.order, PmPtr());
  if (parts.regions->damage_seen()) return RegionSet::DamagedList();
  const uint64_t lines = view.parts().hash->flushed_lines();
  std::vector<std::vector<OrderedIndex::Change>> by_chunk(changes == nullptr ? 0 : plan.chunks());
  Status status = MergeChunks(
      parts, job, plan, stats, [&](MergeStats* own) { return HybridMerger(parts, view, job, own); },
      [&](size_t chunk, HybridMerger* merger) {
        std::vector<OrderedIndex::Change> taken = merger->TakeChanges();
        if (changes != nullptr) by_chunk[chunk] = std::move(taken);
      });
  for (auto& chunk : by_chunk) {
    changes->insert(changes->end(), chunk.begin(), chunk.end());
    chunk = {};
  }
  stats->flushed_lines += view.parts().hash->flushed_lines() - lines;
  return status;
}

Status SweepHybrid(const LastLevel::Parts& parts, const HybridView& view, const MergeJob& job, const KeyRanges& ranges,
                   MergeStats* stats, std::vector<OrderedIndex::Change>* changes) {
  const std::shared_ptr<const OrderedIndex> index = view.BuiltIndex();
  const IndexTree& nodes = index->nodes().nodes;
  const uint64_t lines = view.parts().hash->flushed_lines();
  HybridMerger merger(parts, view, job, stats);
  Status status;
  for (size_t i = 0; status.ok() && i < ranges.size(); ++i) {
    const auto& [begin, end] = ranges[i];
    uint64_t at =
        begin == nullptr ? nodes.Normalize(0) : index->nodes().Find(*parts.order, SearchKey(*parts.order, *begin, kMaxSequence));
    for (; status.ok() && at < nodes.End(); at = nodes.Next(at)) {
      if (const uint64_t ahead = nodes.Normalize(at + kAhead); ahead < nodes.End()) FetchEntry(nodes.EntryAt(ahead));
      const PmPtr place = IndexNode::EntryOf(nodes.WordAt(at));
      LogEntry* const entry = view.EntryAt(place);
      if (entry == nullptr) return RegionSet::DamagedList();
      if (end != nullptr && parts.order->Compare(entry->key(), *end) >= 0) break;
      if (job.stop != nullptr && job.stop->load(std::memory_order_acquire)) return Status::Aborted("stopped");
      status = merger.SweepVersion(entry, place, nodes.PrefixAt(at));
    }
    if (status.ok()) status = merger.EndSweepOfKey();
  }
  if (status.ok()) status = merger.Commit();
  if (const Status finished = merger.Finish(); status.ok()) status = finished;  // as in MergeChunks
  if (status.ok() && changes != nullptr) *changes = merger.TakeChanges();
  stats->flushed_lines += view.parts().hash->flushed_lines() - lines;
  return status;
}

}  // namespace braiddb
