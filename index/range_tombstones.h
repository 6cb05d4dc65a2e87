// RangeTombstones: the ranges of keys of one column family that were deleted, and when.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/slice.h"
#include "index/key_order.h"

namespace braiddb {

// Hides every version in [begin, end) with a smaller sequence number.
struct RangeTombstone {
  std::string begin;
  std::string end;        // exclusive; behind begin
  uint64_t sequence = 0;  // set before it is in any set
  uint64_t record = 0;    // the number of its record (log/range_record.h)
};

// Immutable, kept by whoever has a shared_ptr.
//
// STRUCTURE  Runs, the largest first, each sorted by begin and at most half as large as the one before. A run is an implicit
//   balanced tree: the root of [lo, hi) is in the middle, and each place knows the last end, and the largest and smallest number,
//   of its subtree. What does not reach the key, or has nothing newer than what was found, is left out.
// COST  A search: logarithmic, plus the ranges that lie over the key and are passed one by one. Memory: 40 bytes each.
//   One more: as many places as the runs that it is merged with, logarithmic in the mean.
// Thread safety: const methods, by any number of threads.
class RangeTombstones : public std::enable_shared_from_this<RangeTombstones> {
 public:
  using Tombstone = std::shared_ptr<const RangeTombstone>;

  // What `old` has, which may be null, and these. `order` outlives the set.
  static std::shared_ptr<const RangeTombstones> With(const RangeTombstones* old, std::vector<Tombstone> added,
                                                     const KeyOrder& order);
  // Without those that `leaves` says go; null if none stays.
  static std::shared_ptr<const RangeTombstones> Without(const RangeTombstones& old,
                                                        const std::function<bool(const RangeTombstone&)>& leaves);

  // The largest number, up to `at_most`, of those that cover the key; 0: none does.
  uint64_t Newest(Slice key, uint64_t at_most) const;
  // The smallest number above `above` of those that cover the key; UINT64_MAX: there is none.
  uint64_t Next(Slice key, uint64_t above) const;
  // Whether a version of the key with this number is hidden as of `at_most`.
  bool Hides(Slice key, uint64_t sequence, uint64_t at_most) const { return Newest(key, at_most) > sequence; }

  size_t size() const;
  // About what the set takes of DRAM, with its tombstones.
  uint64_t bytes() const { return bytes_; }
  // In no order.
  void ForEach(const std::function<void(const Tombstone&)>& visit) const;

 private:
  struct Place {
    Tombstone own;
    const RangeTombstone* last;  // of the subtree: the one with the last end
    uint64_t largest;            // … numbers
    uint64_t smallest;
  };
  using Run = std::vector<Place>;

  explicit RangeTombstones(const KeyOrder& order) : order_(order) {}
  std::shared_ptr<const Run> MakeRun(std::vector<Tombstone> sorted) const;
  void Summarize(Run* run, size_t lo, size_t hi) const;
  // `is_of_use(smallest, largest)`: of a subtree; `take(number)`: of one that covers the key.
  template <class IsOfUse, class Take>
  void Search(const Run& run, size_t lo, size_t hi, Slice key, const IsOfUse& is_of_use, const Take& take) const;
  std::vector<Tombstone> Join(const Run& a, const Run& b) const;
  void AddRun(std::vector<Tombstone> sorted);

  static uint64_t BytesOf(const RangeTombstone& tombstone);

  const KeyOrder& order_;
  std::vector<std::shared_ptr<const Run>> runs_;
  uint64_t bytes_ = 0;
};

}  // namespace braiddb
