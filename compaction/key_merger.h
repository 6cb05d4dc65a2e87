// KeyMerger: decides for one key after another which versions stay in the last level, and marks the others dead. For kinds of
// last level that keep entries in the log and do not relink them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "braiddb/status.h"
#include "compaction/chunk_reader.h"
#include "compaction/last_level.h"
#include "compaction/merge_stats.h"

namespace braiddb {

// GOAL   Of each key, the versions that a reader or snapshot can see are kept. Every other version is marked dead.
// STEPS  M1 Mark dead the versions to drop, except tombstones that are the newest version of their key or have only operands
//           above them.
//        M2 Mark these tombstones dead.
//        M3 The caller changes the level: it adds the kept versions and removes the dropped ones.
// CRASH AFTER EACH STEP  M1 is durable before M2. So when a tombstone's mark lets readers pass it, the versions that it hid are
//        marked too. Both are durable before M3. So a version that is not in the level is marked. [CC-45]
// COST   Per dropped entry: one line. Per MarkTombstones with tombstones: one fence.
// Thread safety: one thread at a time. Each thread of a job has one.
class KeyMerger {
 public:
  struct Version {
    LogEntry* entry;
    PmPtr pointer;
    uint64_t prefix;  // KeyOrder::Prefix of the key
    bool in_level;
    bool in_table;
    bool keep = true;
    bool moved = false;  // the version is in the level, and a table has a relocated copy of it
  };

  KeyMerger(const LastLevelParts& parts, const MergeJob& job, MergeStats* stats)
      : regions_(*parts.regions),
        segments_(*parts.segments),
        order_(*parts.order),
        filter_(*job.filter),
        moved_(job.moved),
        entry_filter_(job.entry_filters == nullptr ? nullptr : job.entry_filters->NewFilter()),
        key_writer_(job.key_filters[0], job.key_filters[1]),
        stats_(*stats) {}

  // Begins a key. `items`: all versions that the tables have of the key, newest first.
  void Begin(std::span<const ChunkItem> items) {
    versions_.clear();
    for (const ChunkItem& item : items) versions_.push_back({item.entry, item.pointer, item.prefix, false, true});
    in_tables_ = versions_.size();
  }
  // Returns < 0, 0, > 0: the entry's key is before, is, or is behind the key that was begun. REQUIRES: has_versions().
  int CompareKey(const LogEntry& entry) const { return order_.Compare(entry.key(), versions_.front().entry->key()); }
  bool IsOfKey(const LogEntry& entry) const { return order_.Same(entry.key(), versions_.front().entry->key()); }
  // Adds a version of the key that the level has.
  void AddFromLevel(LogEntry* entry, PmPtr pointer, uint64_t prefix);
  bool has_versions() const { return !versions_.empty(); }

  // Step M1. Returns all versions, newest first. The caller's step M3 is to change the level where `keep` and `in_level` differ.
  // The result is valid until the next Begin.
  const std::vector<Version>& Decide();

  // Step M2 for all keys since the last call. Returns the error of a failed persist. The marks of this step are durable after the
  // caller's next fence.
  Status MarkTombstones();
  // Makes all marks of this thread durable.
  Status Drain();

 private:
  void MarkDead(PmPtr pointer);
  void Mark(PmPtr pointer, uint64_t bit);

  const RegionSet& regions_;
  const SegmentAllocator& segments_;
  const KeyOrder& order_;
  const VersionFilter& filter_;
  const MovedEntries* const moved_;
  const std::unique_ptr<EntryFilter> entry_filter_;  // may be null
  KeyFilterWriter key_writer_;
  MergeStats& stats_;
  std::vector<Version> versions_;          // of the key that was begun
  size_t in_tables_ = 0;                   // number of versions_ from tables; they come first
  std::vector<PmPtr> tombstones_;          // versions to mark in M2: no newer version hides what they hid
  std::vector<const LogEntry*> filtered_;  // the versions of these that the user's filter dropped
};

}  // namespace braiddb
