// AlikeItems: sorts and merges arrays of OrderedItem whose keys have one prefix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "index/key_order.h"
#include "index/ordered_item.h"
#include "log/log_entry.h"
#include "pmem/region_set.h"

namespace braiddb {

// COMPARES     The eight bytes of the key behind the common prefix of all keys. If these are equal, the entries.
// COST         A merge reads each entry in the order of its array, and prefetches it before. A sort reads each entry once, also
//              prefetched, and once more for each eight bytes of a key that do not decide. Equal words cost a comparison of keys
//              that are in the CPU's caches.
// COMPARATORS  A comparator other than the two bytewise ones is called for each comparison.
// CONCURRENCY  One thread at a time.
class AlikeItems {
 public:
  using Items = std::span<const OrderedItem>;
  // Called between batches of kItemsPerStop items. Returns true if the work should be given up.
  using Stop = std::function<bool(size_t items)>;
  static constexpr size_t kItemsPerStop = 1024;

  // The pointers must outlive the object.
  AlikeItems(const RegionSet* regions, const KeyOrder* order) : regions_(regions), order_(order) {}

  // Sorts the items in entry order and sets their kOlder. May throw std::bad_alloc; the items are then in any order. REQUIRES:
  // all have one prefix.
  void Sort(std::span<OrderedItem> items) const;

  // Merges arrays that are sorted in entry order into `to`, which has room for all and overlaps none of them, and sets kOlder of
  // the merged items. Of an entry and its copy, the item of the earlier array comes first. False: `stop` returned true, and `to`
  // has any contents. `stop` may be empty. May throw std::bad_alloc. REQUIRES: all items have one prefix.
  bool Merge(const std::vector<Items>& arrays, OrderedItem* to, const Stop& stop = {}) const;

 private:
  struct Keyed;
  class Cursors;

  const LogEntry* At(const OrderedItem& item) const { return regions_->Resolve<LogEntry>(item.Entry()); }
  // Prefetches the header and the bytes of the key at `skip`.
  void Fetch(const OrderedItem& item, size_t skip) const;
  // Sorts by comparisons of entries, and sets kOlder.
  void SortByEntry(std::span<Keyed> items) const;
  bool AreOfOneKey(std::span<const Keyed> items) const;
  // Sorts items of one key, and sets kOlder.
  void SortByNumber(std::span<Keyed> items) const;
  // Sorts in entry order, and sets kOlder. The keys begin with the same `known` bytes. `depth`: number of calls that have led to
  // this one.
  void SortFrom(std::span<Keyed> items, size_t known, int depth) const;
  // The number of bytes that some of the keys have in common at their begin: at least as many as all keys have.
  size_t CommonBytesOfSome(std::span<Keyed> items) const;
  // Sets the words of all items to the bytes behind the first `common` ones. Returns the number of bytes that all keys have in
  // common; if it is smaller, the words are of no use. *one_key: no key has more bytes.
  size_t ReadWords(std::span<Keyed> items, size_t common, bool* one_key) const;

  const RegionSet* const regions_;
  const KeyOrder* const order_;
};

}  // namespace braiddb
