// MovedEntries: maps each relocated copy to the original entry that it replaced.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "pmem/pm_ptr.h"

namespace braiddb {

// A reader that stands on a moved original treats it as its copy. While such readers may exist, a merge that marks a copy dead
// must also mark its original. Otherwise a reader on the original would return a value that newer entries hide, and these newer
// entries may be out of its view.
// LIFETIME  A pair is needed while a reader may stand on the original. Such a reader began before the merge replaced the
//        original.
// Thread safety: one thread at a time while it changes; afterwards any number of threads.
class MovedEntries {
 public:
  struct Pair {
    PmPtr copy;
    PmPtr original;
  };
  void Add(PmPtr copy, PmPtr original) { pairs_.push_back({copy, original}); }
  void Add(const MovedEntries& more) { pairs_.insert(pairs_.end(), more.pairs_.begin(), more.pairs_.end()); }
  const std::vector<Pair>& pairs() const { return pairs_; }

  // Call before the first OriginalOf.
  void Sort() { std::sort(pairs_.begin(), pairs_.end(), IsBefore); }
  // Returns null if `copy` is not a copy.
  PmPtr OriginalOf(PmPtr copy) const {
    const auto at = std::lower_bound(pairs_.begin(), pairs_.end(), Pair{copy, PmPtr()}, IsBefore);
    return at != pairs_.end() && at->copy == copy ? at->original : PmPtr();
  }

 private:
  static bool IsBefore(const Pair& a, const Pair& b) { return a.copy.raw() < b.copy.raw(); }

  std::vector<Pair> pairs_;
};

}  // namespace braiddb
