// PrefixSteps: a static search tree over the key prefixes of a sorted array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "index/count_less.h"
#include "util/prefetch.h"

namespace braiddb {

// LAYOUT  The lowest level contains the prefix of each 16th item, the next level each 16th of those, up to a level of one group.
// COST    A search reads one group of two cache lines per level. All levels but the lowest stay in the CPU's caches. A binary
//         search of a large array misses in nearly every step.
// Thread safety: immutable once built.
class PrefixSteps {
 public:
  static constexpr size_t kFanout = 16;

  // `prefix(i)`: of item i in [0, size), ascending. May throw std::bad_alloc.
  template <class PrefixAt>
  void Build(size_t size, const PrefixAt& prefix) {
    levels_.clear();
    std::vector<uint64_t> level(size / kFanout);
    for (size_t i = 0; i < level.size(); ++i) level[i] = prefix(i * kFanout + kFanout - 1);
    while (!level.empty()) {
      std::vector<uint64_t> above(level.size() / kFanout);
      for (size_t i = 0; i < above.size(); ++i) above[i] = level[i * kFanout + kFanout - 1];
      levels_.push_back(std::move(level));
      level = std::move(above);
    }
  }

  // Returns the start of the group of kFanout items that contains the first item with a prefix not less than `target`. All items
  // before the group have smaller prefixes; the group's last item, if present, does not. If there is no such item: `size` rounded
  // down to a multiple of kFanout.
  size_t Find(uint64_t target) const { return FindBelow(FindAbove(target), target); }
  // The same search in two steps, for callers that search several arrays side by side. The first step prefetches the lines of the
  // second.
  size_t FindAbove(uint64_t target) const {
    size_t at = 0;
    for (size_t level = levels_.size(); level-- > 1;) at = Narrow(level, at, target);
    if (!levels_.empty()) PrefetchAll(levels_[0].data() + at, kFanout * sizeof(uint64_t));
    return at;
  }
  size_t FindBelow(size_t above, uint64_t target) const { return levels_.empty() ? 0 : Narrow(0, above, target); }

  // The number of items less than `target` in the group that begins at `group`, in an array of `size` items.
  template <class PrefixAt>
  static size_t CountLessOf(size_t size, size_t group, uint64_t target, const PrefixAt& prefix) {
    if (group + kFanout <= size) return CountLess<kFanout>(target, [&](size_t i) { return prefix(group + i); });
    size_t lesser = 0;
    for (size_t i = group; i < size; ++i) lesser += prefix(i) < target ? 1 : 0;
    return lesser;
  }

  size_t bytes() const {
    size_t bytes = 0;
    for (const std::vector<uint64_t>& level : levels_) bytes += level.size() * sizeof(uint64_t);
    return bytes;
  }

 private:
  size_t Narrow(size_t level, size_t at, uint64_t target) const {
    const std::vector<uint64_t>& lasts = levels_[level];
    return (at + CountLessOf(lasts.size(), at, target, [&lasts](size_t i) { return lasts[i]; })) * kFanout;
  }

  std::vector<std::vector<uint64_t>> levels_;  // the lowest level first
};

}  // namespace braiddb
