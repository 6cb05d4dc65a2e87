// OperandCombiner: combines adjacent operands of a key by MergeOperator::PartialMergeMulti, before a collapse applies them to the
// value of the key.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "braiddb/merge_operator.h"
#include "compaction/version_filter.h"
#include "log/log_entry.h"

namespace braiddb {

// GOAL   Full merges get few operands. Merge operators get the calls that RocksDB's contract describes.
// RULES  The operator is called once for each group of adjacent operands, the oldest first. A group
//          - has two or more operands, at most kMaxOperands, and at most kMaxGroupBytes of them
//          - has no snapshot between its operands: the newest version of a key that a snapshot sees ends a group.
//        The operands of a group stay as they are if the operator refuses or throws, or if the result is longer than
//        kMaxGroupBytes. No group is made when the results of the key have kMaxResultBytes.
// COST   Each operand is passed to at most one call. DRAM for one key: kMaxResultBytes and one group.
// WHAT A READER SEES  Nothing: the results live in DRAM until the full merge.
// Thread safety: one thread at a time.
class OperandCombiner {
 public:
  static constexpr size_t kMaxOperands = 64;
  static constexpr size_t kMaxGroupBytes = 64 << 10;
  static constexpr size_t kMaxResultBytes = 1 << 20;

  // `snapshots`: the snapshots that exist.
  OperandCombiner(const MergeOperator& merge, const VersionFilter& snapshots) : merge_(merge), snapshots_(snapshots) {}

  // Returns operands with the effect of `operands`, the oldest first. The result is valid until the next call, and as long as the
  // entries exist. Throws std::bad_alloc.
  // REQUIRES: `operands` are operands of the key with ascending sequence numbers.
  std::span<const Slice> Combine(Slice key, std::span<const LogEntry* const> operands);

 private:
  // The number of operands of the group that begins with the first operand.
  size_t GroupSize(std::span<const LogEntry* const> operands) const;
  // Appends a group to results_, as one operand if the operator combines it.
  void AddGroup(Slice key, std::span<const LogEntry* const> group);

  const MergeOperator& merge_;
  const VersionFilter& snapshots_;
  std::vector<Slice> results_;
  std::deque<std::string> combined_;  // slices of results_ point here
  size_t combined_bytes_ = 0;
};

}  // namespace braiddb
