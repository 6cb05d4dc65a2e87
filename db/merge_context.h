// MergeContext: collects the operands of one key for a reader, and the version that they are applied to.
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

// Versions may be added in any order, and more than once. Settle sorts them.
//
// RUNS  All operands that a table has of the key may be added as one run. The table has every version with a sequence number of
//   its run. Another version with such a number, found where a merge has linked the table's entries into the last level, is
//   therefore part of the run already. A collapsed version has the number of the newest operand below all newer tables. In a run
//   that is the newest operand.
//
// WHAT MAY BE MISSING  A merge replaces an operand by a collapsed version (compaction/collapse.h). It marks the operand as moved
//   before it removes the base of the operand, and marks the base, too. So a reader whose view is older than the table of
//   collapsed versions, and that misses a version for this reason, meets a mark. The reader then reads again in the current view.
//   In that view the collapsed version is above all removed versions, so the reader need not check marks. [CC-50]
//
// LIFETIME  The added entries must exist while Settle and Apply read them: a reader pins its view.
//
// THREAD SAFETY  None: one thread uses a context.
class MergeContext {
 public:
  // `floor`: the largest number of a range tombstone that covers the key; 0 if there is none. Versions with smaller numbers are
  // hidden.
  void Clear(uint64_t floor = 0) {
    floor_ = floor;
    versions_.clear();
    runs_.clear();
    has_base_ = false;
    met_dead_ = false;
  }

  uint64_t floor() const { return floor_; }

  // Adds a version from a list or a tree. Readers there need no version that is marked dead.
  void Add(const LogEntry* entry) {
    if (IsHidden(*entry)) return;
    if (entry->is_dead()) return NoteDead();
    versions_.push_back(entry);
    has_base_ |= !entry->is_operand();
  }
  // Adds all operands of a table as one run. A mark on the newest operand, which means moved, is noticed like the mark of any
  // other version. Older operands are never marked before the newest.
  void AddRun(std::shared_ptr<const OperandRun> run) {
    Add(run->newest);
    if (run->base != nullptr) Add(run->base);
    runs_.push_back(std::move(run));
  }
  void NoteDead() { met_dead_ = true; }
  bool met_dead() const { return met_dead_; }
  // The versions of a memtable, which keeps all of its versions as long as a reader uses it. EndMemtable must follow.
  std::vector<const LogEntry*>* memtable_versions() { return &versions_; }
  void EndMemtable() {
    std::erase_if(versions_, [this](const LogEntry* entry) { return IsHidden(*entry); });
    for (const LogEntry* entry : versions_) has_base_ |= !entry->is_operand();
  }
  // Whether older versions than the added ones are hidden: a version that is no operand was added, or the floor was reached.
  bool has_base() const { return has_base_; }

  // Leaves the operands, the newest first, and after them the version that they are applied to, if there is one. False if some
  // may be missing.
  bool Settle();
  const std::vector<const LogEntry*>& versions() const { return versions_; }

  // Sets *value to the value of `key`. NotFound if there is no version, or if the version is a deletion. *applied: the number of
  // operands that were used.
  // REQUIRES: Settle.
  Status Apply(const MergeOperator& merge, Slice key, std::string* value, size_t* applied) const;

 private:
  // The run that has this version among its operands; null if there is none.
  const OperandRun* RunOf(const LogEntry& version) const;

  // Whether a range tombstone hides the entry. If so, all older versions are hidden as well.
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
