// Test support: a last level and tables to merge into it, and what must come of it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compaction/zipper.h"
#include "tests/support/level_store.h"

namespace braiddb::test {

class MergeCase {
 public:
  explicit MergeCase(uint32_t regions) : store_(regions) { OpenJournal(); }

  LevelStore& store() { return store_; }
  uint64_t NextSequence() { return sequence_++; }
  std::vector<Version> Draw(Random* random, size_t count, uint64_t keys, uint64_t tombstones) {
    return store_.DrawVersions(random, count, keys, tombstones, &sequence_);
  }

  // Numbers the versions in the order given: later ones are newer. Tables must be added oldest first.
  void AddTable(std::vector<Version> versions) {
    for (Version& version : versions) {
      if (version.sequence == 0) version.sequence = sequence_++;
    }
    owned_.push_back(store_.MakeTable(versions));
    tables_.push_back(owned_.back().get());
    in_tables_.insert(in_tables_.end(), versions.begin(), versions.end());
  }

  // ---- The merge

  Status Run(const std::vector<uint64_t>& snapshots, PmPtr progress = PmPtr(), ZipperStats* stats = nullptr,
             const std::atomic<bool>* stop = nullptr, uint32_t threads = 2) {
    ZipperStats ignored;
    const VersionFilter filter(snapshots);
    return RunZipper(ContextFor(&filter, threads, stop), tables_, progress, stats != nullptr ? stats : &ignored);
  }
  Status Sweep(const std::vector<uint64_t>& snapshots, const Slice* begin, const Slice* end, ZipperStats* stats) {
    const VersionFilter filter(snapshots);
    return SweepLastLevel(ContextFor(&filter, 1, nullptr), begin, end, stats);
  }
  // As an open after a crash does: a new journal, the newest batch done again. The next merge of the same tables resumes.
  Status Redo(PmPtr* progress) {
    OpenJournal();
    return journal_.Redo(merge_id_, progress);
  }

  // ---- What must come of it

  struct Outcome {
    std::vector<Version> last_level;  // in its order
    std::set<uint64_t> dead;          // sequence numbers, of what was in the last level or the tables before
    uint64_t merged = 0;
    uint64_t dropped = 0;
    uint64_t unlinked = 0;
  };
  // Keys of which no table has a version are not looked at by a merge.
  Outcome Expected(const std::vector<uint64_t>& snapshots) const {
    Outcome outcome;
    std::set<std::string> keys_of_tables;
    std::set<uint64_t> in_tables;
    for (const Version& version : in_tables_) {
      keys_of_tables.insert(version.key);
      in_tables.insert(version.sequence);
    }
    std::vector<Version> all = in_last_level_;
    all.insert(all.end(), in_tables_.begin(), in_tables_.end());
    std::map<std::string, std::vector<Version>> by_key;
    for (const Version& version : InEntryOrder(all)) by_key[version.key].push_back(version);
    for (const auto& [key, versions] : by_key) {
      const std::vector<Version> stay = keys_of_tables.contains(key) ? SeenOf(versions, snapshots, true) : versions;
      std::set<uint64_t> staying;
      for (const Version& version : stay) {
        outcome.last_level.push_back(version);
        outcome.merged += in_tables.contains(version.sequence);
        staying.insert(version.sequence);
      }
      for (const Version& version : versions) {
        if (staying.contains(version.sequence)) continue;
        outcome.dead.insert(version.sequence);
        ++(in_tables.contains(version.sequence) ? outcome.dropped : outcome.unlinked);
      }
    }
    return outcome;
  }

  void ExpectMerged(const Outcome& outcome) {
    EXPECT_OK(store_.last_level().VerifyHeads());
    EXPECT_TRUE(store_.IsWhole(store_.l1()));
    const std::vector<Version> found = store_.Dump(store_.l1());
    EXPECT_TRUE(found == outcome.last_level) << Difference(outcome.last_level, found);
    for (const uint64_t sequence : outcome.dead) EXPECT_TRUE(store_.IsDead(sequence)) << sequence;
    // Whoever stands on a node of a table still comes to everything behind it.
    for (const PmTable* table : tables_) EXPECT_TRUE(LeadsToEnd(*table));
  }

  // The tables are merged: from now on there is the last level, and no table.
  void Forget(const Outcome& outcome) {
    in_last_level_ = outcome.last_level;
    in_tables_.clear();
    tables_.clear();
    owned_.clear();
    journal_.Begin(++merge_id_);
  }
  // Merges with these snapshots and checks what comes of it.
  void Merge(const std::vector<uint64_t>& snapshots) {
    const Outcome expected = Expected(snapshots);
    ZipperStats stats;
    ASSERT_OK(Run(snapshots, PmPtr(), &stats));
    ExpectMerged(expected);
    EXPECT_EQ(stats.merged, expected.merged);
    EXPECT_EQ(stats.dropped, expected.dropped);
    EXPECT_EQ(stats.unlinked, expected.unlinked);
    Forget(expected);
  }
  // Puts these into the last level, all of them but tombstones that hide nothing.
  void FillLastLevel(const std::vector<Version>& versions) {
    AddTable(versions);
    std::vector<uint64_t> everything;
    for (const Version& version : in_tables_) everything.push_back(version.sequence);
    Merge(everything);
  }

  const std::vector<const PmTable*>& tables() const { return tables_; }
  const std::vector<Version>& in_tables() const { return in_tables_; }
  const std::vector<Version>& in_last_level() const { return in_last_level_; }

 private:
  ZipperContext ContextFor(const VersionFilter* filter, uint32_t threads, const std::atomic<bool>* stop) {
    return {store_.regions(), &store_.order(), store_.segments(), &store_.l1(), in_last_level_.size(),
            &journal_,        filter,          threads,           stop,         nullptr};
  }
  void OpenJournal() {
    journal_ = MergeJournal();
    EXPECT_OK(MergeJournal::Open(store_.regions(), &journal_));
    journal_.Begin(merge_id_);
  }
  bool LeadsToEnd(const PmTable& table) const {
    const LogEntry* before = nullptr;
    for (const LogEntry* entry = table.list.First(); entry != nullptr; entry = table.list.Next(entry)) {
      if (before != nullptr && CompareEntries(store_.order(), *before, *entry) >= 0) return false;
      before = entry;
    }
    return true;
  }
  static std::string Difference(const std::vector<Version>& expected, const std::vector<Version>& found) {
    for (size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
      if (!(expected[i] == found[i])) {
        return "at " + std::to_string(i) + ": expected " + testing::PrintToString(expected[i]) + ", found " +
               testing::PrintToString(found[i]);
      }
    }
    return "expected " + std::to_string(expected.size()) + " entries, found " + std::to_string(found.size());
  }

  LevelStore store_;
  MergeJournal journal_;
  uint64_t merge_id_ = 1;
  uint64_t sequence_ = 1;
  std::vector<std::shared_ptr<PmTable>> owned_;
  std::vector<const PmTable*> tables_;  // oldest first
  std::vector<Version> in_tables_;
  std::vector<Version> in_last_level_;
};

}  // namespace braiddb::test
