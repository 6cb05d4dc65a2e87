// Test support: versions in a last level and in tables to merge into it, and what must come of the merge.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/entry_store.h"

namespace braiddb::test {

class MergeInputs {
 public:
  // The store must outlive it.
  explicit MergeInputs(EntryStore* entries) : entries_(*entries) {}

  uint64_t NextSequence() { return sequence_++; }
  std::vector<Version> Draw(Random* random, size_t count, uint64_t keys, uint64_t tombstones) {
    return entries_.DrawVersions(random, count, keys, tombstones, &sequence_);
  }

  // Numbers the versions in the order given: later ones are newer. Tables must be added oldest first.
  void AddTable(std::vector<Version> versions) {
    for (Version& version : versions) {
      if (version.sequence == 0) version.sequence = sequence_++;
    }
    owned_.push_back(entries_.MakeTable(versions));
    tables_.push_back(owned_.back().get());
    in_tables_.insert(in_tables_.end(), versions.begin(), versions.end());
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
    const std::vector<uint64_t> ascending = Ascending(snapshots);
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
      const std::vector<Version> stay = keys_of_tables.contains(key) ? SeenOf(versions, ascending, true) : versions;
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

  // The tables are merged: from now on there is the last level, and no table.
  void Forget(const Outcome& outcome) {
    in_last_level_ = outcome.last_level;
    in_tables_.clear();
    tables_.clear();
    owned_.clear();
  }

  const std::vector<const PmTable*>& tables() const { return tables_; }
  const std::vector<Version>& in_tables() const { return in_tables_; }
  const std::vector<Version>& in_last_level() const { return in_last_level_; }

  static std::string Difference(const std::vector<Version>& expected, const std::vector<Version>& found) {
    for (size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
      if (!(expected[i] == found[i])) {
        return "at " + std::to_string(i) + ": expected " + testing::PrintToString(expected[i]) + ", found " +
               testing::PrintToString(found[i]);
      }
    }
    return "expected " + std::to_string(expected.size()) + " entries, found " + std::to_string(found.size());
  }

 private:
  EntryStore& entries_;
  uint64_t sequence_ = 1;
  std::vector<std::shared_ptr<PmTable>> owned_;
  std::vector<const PmTable*> tables_;  // oldest first
  std::vector<Version> in_tables_;
  std::vector<Version> in_last_level_;
};

}  // namespace braiddb::test
