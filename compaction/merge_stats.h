// MergeStats: what a merge into the last level did.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "braiddb/slice.h"
#include "compaction/moved_entries.h"

namespace braiddb {

struct MergeStats {
  uint64_t merged = 0;    // entries that are in the last level now
  uint64_t dropped = 0;   // L0 entries that are not, because nobody can see them
  uint64_t unlinked = 0;  // entries taken out of the last level
  MovedEntries moved;     // of the last level, whose copies took their place
  // Of a level that copies, if MergeJob::copied is there: newest puts of tables, which readers find there until the view has lost
  // the tables, and their copies; null: it has gone.
  struct Copy {
    PmPtr from;
    PmPtr to;
  };
  std::deque<Copy> copied;
  // Keys that came upon operands: their newest version in the last level is one. Not all, if they are very many.
  std::vector<std::string> operand_keys;
  uint64_t flushed_lines = 0;

  static constexpr size_t kMostOperandKeys = 1 << 20;
  void AddOperandKey(Slice key) {
    if (operand_keys.size() < kMostOperandKeys) operand_keys.emplace_back(key);
  }
};

}  // namespace braiddb
