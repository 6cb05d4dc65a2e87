// PrefixSteps: narrows a search in a sorted array of entries down to a few of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "index/count_less.h"
#include "util/prefetch.h"

namespace braiddb {

// Levels of key prefixes: each 16th of the array, each 16th of these, and so on up to one group. A search looks at one group, two
// cache lines, of each level, of which all but the lowest stay in the CPU's caches; a binary search of a large array misses in
// nearly every step.
// Thread safety: immutable once built.
class PrefixSteps {
 public:
  static constexpr size_t kFanout = 16;

  // `prefix(i)`: of element i of `size`, ascending. May throw std::bad_alloc.
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

  // The first element of the group of kFanout that has the first element whose prefix is not less than `target`: everything
  // before has a lesser one, and the group's last element, if the array has it, has not. The array's size, rounded down, if there
  // is none.
  size_t Find(uint64_t target) const { return FindBelow(FindAbove(target), target); }
  // The same in two parts, for who makes several searches side by side: the first one fetches what the other looks at.
  size_t FindAbove(uint64_t target) const {
    size_t at = 0;
    for (size_t level = levels_.size(); level-- > 1;) at = Narrow(level, at, target);
    if (!levels_.empty()) PrefetchAll(levels_[0].data() + at, kFanout * sizeof(uint64_t));
    return at;
  }
  size_t FindBelow(size_t above, uint64_t target) const { return levels_.empty() ? 0 : Narrow(0, above, target); }

  // How many prefixes of the group that begins at `group` of an array of `size` are less.
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

  std::vector<std::vector<uint64_t>> levels_;  // the lowest first
};

}  // namespace braiddb
