// MergeStats: results of a merge into the last level.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "braiddb/slice.h"
#include "compaction/moved_entries.h"

namespace braiddb {

struct MergeStats {
  uint64_t merged = 0;    // entries of the tables that are in the last level
  uint64_t dropped = 0;   // entries of the tables that no reader or snapshot can see
  uint64_t unlinked = 0;  // entries removed from the last level
  MovedEntries moved;     // originals in the last level that relocated copies replaced
  // For a level that copies, if MergeJob::copied is set: the newest puts of the tables, and their copies. Readers find the
  // originals until the view drops the tables. A null copy means that the put was dropped.
  struct Copy {
    PmPtr from;
    PmPtr to;
  };
  std::deque<Copy> copied;
  // Keys whose newest version in the last level is an operand. At most kMostOperandKeys.
  std::vector<std::string> operand_keys;
  uint64_t flushed_lines = 0;

  static constexpr size_t kMostOperandKeys = 1 << 20;
  void AddOperandKey(Slice key) {
    if (operand_keys.size() < kMostOperandKeys) operand_keys.emplace_back(key);
  }
  // Adds the results of one thread of a merge that does not copy.
  void Add(const MergeStats& part) {
    merged += part.merged;
    dropped += part.dropped;
    unlinked += part.unlinked;
    moved.Add(part.moved);
    for (const std::string& key : part.operand_keys) AddOperandKey(key);
    flushed_lines += part.flushed_lines;
  }
};

}  // namespace braiddb
