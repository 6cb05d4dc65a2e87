// MergeContext: the operands of one key that a reader has collected, and what they are applied to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braiddb/merge_operator.h"
#include "braiddb/status.h"
#include "log/log_entry.h"
#include "log/operands.h"
#include "lsm/operand_runs.h"

namespace braiddb {

// Versions are added in any order, and may be added twice; Settle puts them in order.
//
// RUNS  What a table has of the key may be added as one run. The table has all versions with the sequence numbers of its run, so
//   whatever else is found with one of these, where a merge has linked the table's entries into the last level, is in the run
//   already. A collapsed version has the number of the newest operand below all newer tables: in a run that is the newest one.
//
// WHAT MAY BE MISSING  A merge that puts a collapsed version (compaction/collapse.h) in the place of an operand marks that moved
//   before it takes away what the operand was applied to, and marks that, too. So a reader whose view is older than the table of
//   collapsed versions, and who misses something for that reason, comes upon a mark, and reads again in the view of now. Who has
//   that view finds the collapsed version above all that goes, and need not look at marks. [CC-50]
class MergeContext {
 public:
  // `floor`: of a range tombstone that covers the key, 0 if there is none: what has a smaller number does not count.
  void Clear(uint64_t floor = 0) {
    floor_ = floor;
    versions_.clear();
    runs_.clear();
    has_base_ = false;
    met_dead_ = false;
  }

  uint64_t floor() const { return floor_; }

  // Of a list or a tree, in which nobody needs what is marked dead.
  void Add(const LogEntry* entry) {
    if (IsHidden(*entry)) return;
    if (entry->is_dead()) return NoteDead();
    versions_.push_back(entry);
    has_base_ |= !entry->is_operand();
  }
  // All operands of a table at once. A newest operand that is marked, and so moved, is noticed as that of any other version is;
  // those below it are marked after it, if at all.
  void AddRun(std::shared_ptr<const OperandRun> run) {
    Add(run->newest);
    if (run->base != nullptr) Add(run->base);
    runs_.push_back(std::move(run));
  }
  void NoteDead() { met_dead_ = true; }
  bool met_dead() const { return met_dead_; }
  // Of a memtable, which has all of its versions as long as anyone reads it.
  std::vector<const LogEntry*>* memtable_versions() { return &versions_; }
  void EndMemtable() {
    std::erase_if(versions_, [this](const LogEntry* entry) { return IsHidden(*entry); });
    for (const LogEntry* entry : versions_) has_base_ |= !entry->is_operand();
  }
  // Whether what is older than all that was added does not matter any more.
  bool has_base() const { return has_base_; }

  // The operands, the newest first, and behind them a version that is none, if there is one. False if some may be missing.
  bool Settle();
  const std::vector<const LogEntry*>& versions() const { return versions_; }

  // REQUIRES: Settle. What is there of `key`: NotFound if nothing is, or a deletion.
  // *applied: how many operands that took.
  Status Apply(const MergeOperator& merge, Slice key, std::string* value, size_t* applied) const;

 private:
  // The one that has this version among its operands; null if there is none.
  const OperandRun* RunOf(const LogEntry& version) const;

  // And then all that is older is, too.
  bool IsHidden(const LogEntry& entry) {
    if (entry.sequence() >= floor_) return false;
    has_base_ = true;
    return true;
  }

  std::vector<const LogEntry*> versions_;
  uint64_t floor_ = 0;
  std::vector<std::shared_ptr<const OperandRun>> runs_;
  bool has_base_ = false;
  bool met_dead_ = false;
};

}  // namespace braiddb
