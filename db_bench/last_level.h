// The kinds of last level, by their names in flags and results.
#pragma once

#include <optional>
#include <string_view>

#include "braiddb/options.h"

namespace braiddb::bench {

inline const char* NameOfL1(L1Kind kind) {
  switch (kind) {
    case L1Kind::kBraidedSkipList:
      return "braided_skiplist";
    case L1Kind::kNvTree:
      return "nv_tree";
    case L1Kind::kSortedRuns:
      return "sorted_runs";
  }
  return "unknown";
}

// Returns nothing for an unknown name.
inline std::optional<L1Kind> FindL1(std::string_view name) {
  for (const L1Kind kind : {L1Kind::kBraidedSkipList, L1Kind::kNvTree, L1Kind::kSortedRuns}) {
    if (name == NameOfL1(kind)) return kind;
  }
  return std::nullopt;
}

}  // namespace braiddb::bench
