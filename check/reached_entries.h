// ReachedEntries: the entries that the structures of a database lead to, in one set for each segment.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "check/entry_set.h"

namespace braiddb {

// Thread safety: one thread at a time.
class ReachedEntries {
 public:
  // `progress` gets the number of entries now and then; may be empty.
  explicit ReachedEntries(size_t segments, std::function<void(uint64_t entries)> progress = {})
      : sets_(segments), progress_(std::move(progress)) {}

  void Add(size_t segment, PmPtr entry) {
    sets_[segment].Add(entry);
    if (++count_ % kEntriesPerReport == 0 && progress_) progress_(count_);
  }
  size_t segments() const { return sets_.size(); }
  const EntrySet& operator[](size_t segment) const { return sets_[segment]; }

 private:
  static constexpr uint64_t kEntriesPerReport = 16384;

  std::vector<EntrySet> sets_;
  uint64_t count_ = 0;
  const std::function<void(uint64_t)> progress_;
};

}  // namespace braiddb
