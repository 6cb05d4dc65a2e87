// RangeTombstones: the deleted key ranges of one column family, with their sequence numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/slice.h"
#include "index/key_order.h"

namespace braiddb {

// Hides all versions of keys in [begin, end) with smaller sequence numbers.
struct RangeTombstone {
  std::string begin;
  std::string end;        // exclusive; larger than `begin`
  uint64_t sequence = 0;  // set before the tombstone is added to a set
  uint64_t record = 0;    // number of its record (log/range_record.h)
};

// An immutable set, kept alive by shared_ptr.
//
// LAYOUT  Runs, the largest first, each sorted by begin and at most half as large as its predecessor. A run is an implicit
//         balanced tree: the root of [lo, hi) is in the middle. Each element stores the largest end and the largest and smallest
//         sequence number of its subtree. A search skips subtrees that end before the key or cannot improve the result, and
//         visits the one that promises more first.
// COST  A search is logarithmic, also if very many ranges cover the key; unless they are too new to count: it visits these. An
//       insertion rebuilds the runs that it merges, logarithmic on average. Memory: 40 bytes per range.
// CONCURRENCY  const methods may be called by any number of threads.
class RangeTombstones : public std::enable_shared_from_this<RangeTombstones> {
 public:
  using Tombstone = std::shared_ptr<const RangeTombstone>;

  // A set with the tombstones of `old`, which may be null, and `added`. `order` must outlive the set.
  static std::shared_ptr<const RangeTombstones> With(const RangeTombstones* old, std::vector<Tombstone> added,
                                                     const KeyOrder& order);
  // A set without the tombstones for which `leaves` returns true; null if none remains.
  static std::shared_ptr<const RangeTombstones> Without(const RangeTombstones& old,
                                                        const std::function<bool(const RangeTombstone&)>& leaves);

  // The largest sequence number <= `at_most` of the tombstones that cover the key; 0 if there is none.
  uint64_t Newest(Slice key, uint64_t at_most) const;
  // The smallest sequence number > `above` of the tombstones that cover the key; UINT64_MAX if there is none.
  uint64_t Next(Slice key, uint64_t above) const;
  // Returns true if a tombstone with a number <= `at_most` hides the version of the key with this sequence number.
  bool Hides(Slice key, uint64_t sequence, uint64_t at_most) const { return Newest(key, at_most) > sequence; }

  size_t size() const;
  // The DRAM of the set with its tombstones, estimated; bytes.
  uint64_t bytes() const { return bytes_; }
  // Calls `visit` for each tombstone, in no particular order.
  void ForEach(const std::function<void(const Tombstone&)>& visit) const;

 private:
  struct Place {
    Tombstone own;
    const RangeTombstone* last;  // the tombstone of the subtree with the largest end
    uint64_t largest;            // largest sequence number in the subtree
    uint64_t smallest;           // smallest sequence number in the subtree
  };
  using Run = std::vector<Place>;

  explicit RangeTombstones(const KeyOrder& order) : order_(order) {}
  std::shared_ptr<const Run> MakeRun(std::vector<Tombstone> sorted) const;
  void Summarize(Run* run, size_t lo, size_t hi) const;
  // Visits the tombstones of a subtree that cover the key. `is_of_use(place)`: false to skip its subtree; `is_better(a, b)`: true
  // if the subtree of `a` is to be visited before that of `b`; `take(number)`: called for a tombstone that covers the key.
  template <class IsOfUse, class IsBetter, class Take>
  void Search(const Run& run, size_t lo, size_t hi, Slice key, const IsOfUse& is_of_use, const IsBetter& is_better,
              const Take& take) const;
  std::vector<Tombstone> Join(const Run& a, const Run& b) const;
  void AddRun(std::vector<Tombstone> sorted);

  static uint64_t BytesOf(const RangeTombstone& tombstone);

  const KeyOrder& order_;
  std::vector<std::shared_ptr<const Run>> runs_;
  uint64_t bytes_ = 0;
};

}  // namespace braiddb
