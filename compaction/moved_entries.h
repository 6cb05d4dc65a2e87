// MovedEntries: which entry each copy of a relocation took the place of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "pmem/pm_ptr.h"

namespace braiddb {

// Who comes upon an entry that was moved takes it for its copy. So as long as there may be readers on such entries, a merge that
// marks the copy dead marks the original, too: what hides the two may be out of sight of who was on the original before.
// Thread safety: one thread at a time; any number once it does not change any more.
class MovedEntries {
 public:
  struct Pair {
    PmPtr copy;
    PmPtr original;
  };
  void Add(PmPtr copy, PmPtr original) { pairs_.push_back({copy, original}); }
  void Add(const MovedEntries& more) { pairs_.insert(pairs_.end(), more.pairs_.begin(), more.pairs_.end()); }
  const std::vector<Pair>& pairs() const { return pairs_; }

  // Before the first OriginalOf.
  void Sort() { std::sort(pairs_.begin(), pairs_.end(), IsBefore); }
  // Null if it is not a copy.
  PmPtr OriginalOf(PmPtr copy) const {
    const auto at = std::lower_bound(pairs_.begin(), pairs_.end(), Pair{copy, PmPtr()}, IsBefore);
    return at != pairs_.end() && at->copy == copy ? at->original : PmPtr();
  }

 private:
  static bool IsBefore(const Pair& a, const Pair& b) { return a.copy.raw() < b.copy.raw(); }

  std::vector<Pair> pairs_;
};

}  // namespace braiddb
