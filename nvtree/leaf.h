// Leaf: a leaf node (LN) of NV-Tree on media: unsorted, append-only (NV-Tree, FAST '15, 3.1 and 3.2).
//
// LAYOUT (bytes; little endian; a leaf is 512, 1024, 2048 or 4096 bytes and begins at a cache line)
//     0  published    u64   nElement in the low 16 bits; above it 48 bits of a running checksum of the elements in [0,
//                           nElement)
//     8  next         u64   link (index/link.h) to the leaf with the next larger keys: bits 0–51 its PmPtr, null for none; bits
//                           52–63 a hash of the PmPtr and of this leaf's address
//    16  negative[4]  u64   bit i: element i is NEGATIVE
//    48  shape        u64   bits 0–15 size / 64; bits 16–31 number of sorted elements; bits 32–63 a hash of these, of the leaf's
//                           address and of its tree
//    56  reserved     u64   zero
//    64  elements           16 bytes each
//   Elements are in the order in which they were appended. The elements with which the leaf was created come first, sorted, and
//   are not NEGATIVE. A NEGATIVE element cancels the latest element before it with the same key and value. An update appends the
//   old value, NEGATIVE, and the new one.
// COMMIT POINT   The store of `published`, flushed and fenced.
// PERSIST ORDER  An append: P1 the elements, and the negative words if they change  P2 `published`. A leaf that is not linked
//                yet: all of it, before the pointer to it.
// RECOVERY       A leaf is valid if and only if the hash in `shape` matches, nElement is at most the capacity, and the running
//                checksum matches. Bytes behind nElement are ignored. [CC-41]
// CONCURRENCY    One writer at a time, under the latch of the leaf (nv_tree.h). Readers take no latch. They load `published` with
//                acquire; the elements before nElement, and their negative bits, never change. A reader may see elements that a
//                crash takes back.
// LIFETIME       The space of a leaf is reused after a durable pointer store has removed it from the list and every reader that
//                may have reached it has left.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "index/link.h"
#include "leaf_tree/element.h"
#include "pmem/persistence.h"
#include "pmem/pm_ptr.h"
#include "pmem/region_set.h"
#include "util/prefetch.h"
#include "util/random.h"

namespace braiddb {

inline constexpr uint32_t kMinLeafBytes = 512;
inline constexpr uint32_t kMaxLeafBytes = 4096;
inline constexpr bool IsLeafSize(uint32_t bytes) {
  return bytes >= kMinLeafBytes && bytes <= kMaxLeafBytes && (bytes & (bytes - 1)) == 0;
}

struct Leaf {
  static constexpr uint32_t kHeaderBytes = 64;
  static constexpr uint32_t kMaxElements = (kMaxLeafBytes - kHeaderBytes) / sizeof(Element);
  static constexpr uint64_t kCountMask = 0xffff;

  uint64_t published;
  uint64_t next;
  uint64_t negative[4];
  uint64_t shape;
  uint64_t reserved;
  Element elements[];

  uint32_t sorted() const { return static_cast<uint32_t>(shape >> 16 & 0xffff); }
  // acquire: pairs with the release in AppendToLeaf; the elements before it are there.
  uint32_t count() const { return static_cast<uint32_t>(LoadAcquire(&published) & kCountMask); }
  // Like count(), but at most the capacity of a leaf of `bytes`. Readers do not verify leaves, so a damaged count must be
  // harmless.
  uint32_t CountWithin(uint32_t bytes) const { return std::min(count(), Capacity(bytes)); }
  bool is_negative(uint32_t i) const { return (LoadRelaxed(&negative[i / 64]) >> (i % 64) & 1) != 0; }

  static constexpr uint32_t Capacity(uint32_t bytes) { return (bytes - kHeaderBytes) / static_cast<uint32_t>(sizeof(Element)); }
};
static_assert(sizeof(Leaf) == Leaf::kHeaderBytes && offsetof(Leaf, negative) == 16 && offsetof(Leaf, shape) == 48);
static_assert(Leaf::kMaxElements <= 4 * 64);

// Link owners: for `next`, the address of its leaf; for the link to the first leaf, the tree's id.

// Writes a leaf that is not linked yet and flushes its lines. The leaf is durable after the next fence. `sorted`: at most the
// capacity.
void MakeLeaf(Persistence* persistence, Leaf* leaf, uint64_t tree_id, PmPtr place, uint32_t bytes,
              std::span<const Element> sorted, PmPtr next);

// Appends `changes` durably; two fences. Returns false if a persist failed. REQUIRES: the leaf has room for the changes.
[[nodiscard]] bool AppendToLeaf(Persistence* persistence, Leaf* leaf, std::span<const LeafChange> changes);

// Returns true if the bytes are a valid leaf of this tree and size. Reads only [leaf, leaf + bytes).
bool IsValidLeaf(const Leaf& leaf, uint64_t tree_id, PmPtr place, uint32_t bytes);

// Selects a part of a leaf: the elements with keys in [from, to). The caller sets `from` and `enough`. If the leaf has more than
// `enough` sorted elements from `from` on, CollectLive stops after at least `enough` of them and sets `to` to the end of the
// part.
struct LeafPart {
  static constexpr uint64_t kToTheEnd = UINT64_MAX;

  uint64_t from = 0;
  double place = 0;  // PlaceInRange of `from`: where the search begins
  uint32_t enough = Leaf::kMaxElements;
  uint64_t to = kToTheEnd;
};

// Appends the live elements of a part of a leaf to *live, that is, without NEGATIVE and cancelled ones. The sorted elements come
// first, in order; the others follow in the order of their appends. Returns the number of the sorted ones.
size_t CollectLive(const Leaf& leaf, uint32_t bytes, LeafPart* part, std::vector<Element>* live);
inline size_t CollectLive(const Leaf& leaf, uint32_t bytes, std::vector<Element>* live) {
  LeafPart all;
  return CollectLive(leaf, bytes, &all, live);
}

// Writes the indices of the live elements among the first `count` to `slots`, ascending. Returns their number. `slots` has room
// for `count`, which is at most the capacity.
uint32_t LiveSlots(const Leaf& leaf, uint32_t count, uint8_t* slots);

// The values of NEGATIVE elements that a scan from the end of a leaf has met and whose cancelled element it has not met yet.
class TakenBack {
 public:
  bool empty() const { return count_ == 0; }
  // REQUIRES: called at most Leaf::kMaxElements times.
  void Add(uint64_t value) { values_[count_++] = value; }
  bool Has(uint64_t value) const { return std::find(values_, values_ + count_, value) != values_ + count_; }
  // If the value is in the set, removes it and returns true: the element with this value is cancelled.
  bool Take(uint64_t value) {
    for (uint32_t i = 0; i < count_; ++i) {
      if (values_[i] == value) {
        values_[i] = values_[--count_];
        return true;
      }
    }
    return false;
  }

 private:
  uint32_t count_ = 0;
  uint64_t values_[Leaf::kMaxElements];
};

// The first sorted element whose key is not less than `key`. Searches from `guess`, which lies in [begin, end), in steps that
// double, then by binary search. COST: about 2 log2 of the distance between the guess and the result.
inline const Element* FirstNotLess(const Element* begin, const Element* end, uint64_t key, const Element* guess) {
  const auto less = [](const Element& element, uint64_t k) { return element.key < k; };
  std::ptrdiff_t step = 1;
  if (guess->key < key) {
    for (; end - guess > step && guess[step].key < key; step *= 2) guess += step;
    return std::lower_bound(guess + 1, end - guess > step ? guess + step : end, key, less);
  }
  for (; guess - begin >= step && guess[-step].key >= key; step *= 2) guess -= step;
  return std::lower_bound(guess - begin >= step ? guess - step + 1 : begin, guess, key, less);
}

// Estimates the position of a key in its leaf's range, from 0 to 1, as if keys were evenly spread.
inline double PlaceInRange(uint64_t key, uint64_t low, uint64_t high) {
  if (key < low || key >= high) return 0.5;
  return static_cast<double>(key - low) / static_cast<double>(high - low);
}

// Prefetches the lines of a leaf that a search probably reads, all at once, before the header is read. A small leaf: all lines. A
// large leaf: the header, kFetchedLines / 2 lines around the estimated position, and as many from the end of the `sorted`
// elements on, where appended elements are. If `sorted` is 0, which means unknown: kFetchedLines lines around the position, as if
// a share of kSortedShare of the leaf were sorted.
inline void FetchLeaf(const Leaf& leaf, uint32_t bytes, uint32_t sorted, double place) {
  constexpr uint32_t kFetchedLines = 16;
  constexpr double kSortedShare = 0.7;
  const auto* const lines = reinterpret_cast<const char*>(&leaf);
  const auto count = static_cast<uint32_t>(bytes / kCacheLine);
  Prefetch(lines);
  const auto fetch = [&](uint32_t first, uint32_t behind) {
    for (uint32_t i = first; i < behind; ++i) Prefetch(lines + i * kCacheLine);
  };
  if (count <= kFetchedLines) return fetch(1, count);
  const double sorted_lines = sorted == 0 ? kSortedShare * (count - 1) : static_cast<double>(sorted) / kElementsPerLine;
  const uint32_t around = sorted == 0 ? kFetchedLines : kFetchedLines / 2;
  const auto middle = 1 + static_cast<uint32_t>(place * sorted_lines);
  const uint32_t first = std::min(std::max(middle, 1 + around / 2) - around / 2, count - around);
  fetch(first, first + around);
  if (sorted == 0) return;
  const uint32_t appended = std::max(1 + sorted / kElementsPerLine, first + around);
  fetch(appended, std::min(appended + kFetchedLines / 2, count));
}

// The first element of [begin, end) that is not before the target. The elements are sorted and have one key word.
// `compare(element)` is < 0 for elements before the target, and is never called for cancelled elements: their entries may be
// gone. Binary search; while one element is compared, both candidates of the next step are prefetched.
template <class Compare, class Fetch>
const Element* FirstAtTarget(const Element* begin, const Element* end, const TakenBack& taken, const Compare& compare,
                             const Fetch& fetch) {
  while (begin != end) {
    const Element* const middle = begin + (end - begin) / 2;
    if (end - begin > 2) {
      fetch(begin[(middle - begin) / 2]);
      fetch(middle[1 + (end - middle - 1) / 2]);
    }
    const Element* decides = middle;
    while (decides != end && taken.Has(decides->value)) ++decides;
    if (decides != end && compare(*decides) < 0) {
      begin = decides + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

// Calls `visit(const Element&)` for live elements with this key word. Appended elements come first, the latest first. Then come
// sorted ones, from the first element that is not before the target, until visit returns kPastKey. The visit ends if visit
// returns kEnough. `compare` and `fetch`: as in FirstAtTarget. `place`: PlaceInRange, the start of the search.
// WHY IT IS RIGHT  A NEGATIVE element cancels an element before it. The scan of the appended elements goes backwards, so it meets
//                  the NEGATIVE element first and knows each cancelled element when it reaches it.
// COST  The header's line, then in parallel the lines of the appended elements and the line at the estimated position. FetchLeaf
//       has usually prefetched them. If keys share their first eight bytes, also the entries that `compare` and `visit` read:
//       those of the appended elements in parallel, except the first; of the sorted elements about half of log2 n, one after
//       another. A leaf with many such keys has a LeafOrder (leaf_order.h), and is searched in one entry instead.
template <class Compare, class Fetch, class Visit>
void VisitLeaf(const Leaf& leaf, uint32_t bytes, uint64_t key, double place, const Compare& compare, const Fetch& fetch,
               const Visit& visit) {
  const uint32_t count = leaf.CountWithin(bytes);
  const uint32_t sorted = std::min(leaf.sorted(), count);
  const Element* const guess = leaf.elements + static_cast<uint32_t>(place * (sorted == 0 ? 0 : sorted - 1));
  Prefetch(guess);
  for (uint32_t i = count; i > sorted; i -= std::min(i - sorted, kElementsPerLine)) Prefetch(&leaf.elements[i - 1]);
  TakenBack taken;
  uint32_t met = 0;
  for (uint32_t i = count; i-- > sorted;) {
    const Element& element = leaf.elements[i];
    if (element.key != key) continue;
    if (++met == 2) {
      for (uint32_t j = i; j > sorted; --j) {
        if (leaf.elements[j - 1].key == key && !leaf.is_negative(j - 1)) fetch(leaf.elements[j - 1]);
      }
    }
    if (leaf.is_negative(i)) {
      taken.Add(element.value);
    } else if (!taken.Take(element.value) && visit(element) == Visited::kEnough) {
      return;
    }
  }
  if (sorted == 0) return;
  const Element* const end = leaf.elements + sorted;
  const Element* begin = FirstNotLess(leaf.elements, end, key, guess);
  if (begin == end || begin->key != key) return;
  const Element* behind = begin + 1;
  if (behind != end && behind->key == key) {
    const auto before = [](uint64_t k, const Element& element) { return k < element.key; };
    behind = std::upper_bound(behind, end, key, before);
    begin = FirstAtTarget(begin, behind, taken, compare, fetch);
  }
  for (; begin != behind; ++begin) {
    if (!taken.Take(begin->value) && visit(*begin) != Visited::kGoOn) return;
  }
}

}  // namespace braiddb
