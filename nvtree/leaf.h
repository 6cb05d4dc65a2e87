// Leaf: a leaf node (LN) of NV-Tree on media: unsorted, append-only (NV-Tree, FAST '15, 3.1 and 3.2).
//
// LAYOUT (bytes; little endian; a leaf is 512, 1024, 2048 or 4096 bytes and begins at a cache line)
//     0  published    u64   nElement in the low 16 bits; above it 48 bits of a running checksum of the elements in [0,
//                           nElement)
//     8  next         u64   link to the leaf with the next greater keys: its PmPtr, null for none, with 12 bits of a hash of
//                           it and of the place of this leaf in bits 52–63
//    16  negative[4]  u64   bit i: element i is NEGATIVE
//    48  shape        u64   size / 64 in bits 0–15, number of sorted elements in bits 16–31, above them 32 bits of a hash of
//                           these, of the place of the leaf and of its tree
//    56  reserved     u64   zero
//    64  elements           16 bytes each
//   Elements are in the order in which they were appended. Those that the leaf was made with come first, sorted, and none of
//   them is NEGATIVE. A NEGATIVE element takes back the latest element before it with the same key and value: an update
//   appends both the old value, NEGATIVE, and the new one.
// COMMIT POINT   The store of `published`, flushed and fenced.
// PERSIST ORDER  P1 the elements, and the negative words if they change  P2 `published`. For a leaf that is not linked yet: all
//                of it, before the pointer to it.
// RECOVERY       A leaf is valid if and only if the hash in `shape` matches, nElement is at most the capacity, and the running
//                checksum matches. What stands behind nElement counts for nothing. [CC-41]
// CONCURRENCY    One writer at a time, under the latch of the leaf (nv_tree.h). Readers take no latch: they load `published`
//                with acquire, and everything before nElement never changes again. They may see elements that a crash takes
//                back.
// LIFETIME       Its space is reused when a durable pointer has taken it out of the list, and every reader of before has left.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "index/link.h"
#include "pmem/persistence.h"
#include "pmem/pm_ptr.h"
#include "pmem/region_set.h"
#include "util/prefetch.h"
#include "util/random.h"

namespace braiddb {

// What a leaf holds: the first eight bytes of a key as a number that orders as the keys do (KeyOrder::Prefix), and a value,
// which for the last level of a database is the PmPtr of the log entry.
struct Element {
  uint64_t key;
  uint64_t value;

  friend bool operator==(const Element&, const Element&) = default;
};
static_assert(sizeof(Element) == 16);

inline constexpr uint32_t kElementsPerLine = kCacheLine / sizeof(Element);

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
  // The same, and not more than a leaf of `bytes` has room for, whatever is there: nobody verifies a leaf that is only read.
  uint32_t CountWithin(uint32_t bytes) const { return std::min(count(), Capacity(bytes)); }
  bool is_negative(uint32_t i) const { return (LoadRelaxed(&negative[i / 64]) >> (i % 64) & 1) != 0; }

  static constexpr uint32_t Capacity(uint32_t bytes) { return (bytes - kHeaderBytes) / static_cast<uint32_t>(sizeof(Element)); }
};
static_assert(sizeof(Leaf) == Leaf::kHeaderBytes && offsetof(Leaf, negative) == 16 && offsetof(Leaf, shape) == 48);
static_assert(Leaf::kMaxElements <= 4 * 64);

// The words that link leaves (index/link.h): the owner of `next` is the place of its leaf, that of the first link the tree.

struct LeafChange {
  Element element;
  bool negative = false;
};

// Writes a leaf that nothing points to yet, and starts its flush: it is durable after the next fence. `sorted`: at most its
// capacity.
void MakeLeaf(Persistence* persistence, Leaf* leaf, uint64_t tree_id, PmPtr place, uint32_t bytes,
              std::span<const Element> sorted, PmPtr next);

// Appends, durably on success: two fences. REQUIRES: there is room for them in a leaf of its size. False if a persist failed.
[[nodiscard]] bool AppendToLeaf(Persistence* persistence, Leaf* leaf, std::span<const LeafChange> changes);

// Whether what is there is a valid leaf of this tree and size. Touches nothing outside of `bytes`.
bool IsValidLeaf(const Leaf& leaf, uint64_t tree_id, PmPtr place, uint32_t bytes);

// Which elements of a leaf: those with keys from `from` on, or if there are many, at least the first `enough` sorted ones of
// these and what was appended with keys before `to`: from that on they were left out.
struct LeafPart {
  static constexpr uint64_t kToTheEnd = UINT64_MAX;

  uint64_t from = 0;
  double place = 0;  // PlaceInRange of `from`
  uint32_t enough = Leaf::kMaxElements;
  uint64_t to = kToTheEnd;
};

// Appends the elements of a part of a leaf of `bytes` that nothing has taken back to *live: first what is left of the sorted
// ones, in order; behind them the others, as they were appended. Returns the number of the first.
size_t CollectLive(const Leaf& leaf, uint32_t bytes, LeafPart* part, std::vector<Element>* live);
inline size_t CollectLive(const Leaf& leaf, uint32_t bytes, std::vector<Element>* live) {
  LeafPart all;
  return CollectLive(leaf, bytes, &all, live);
}

// The NEGATIVE elements that a walk from the end of a leaf has met, and for which the element they take back is still to come.
class TakenBack {
 public:
  bool empty() const { return count_ == 0; }
  // REQUIRES: at most Leaf::kMaxElements times.
  void Add(uint64_t value) { values_[count_++] = value; }
  bool Has(uint64_t value) const { return std::find(values_, values_ + count_, value) != values_ + count_; }
  // Whether this element is one of them; it is not again then.
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

// The first of the sorted elements whose key is not less: looked for around `guess`, which is one of them, in steps that
// double.
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

// Where a key is in the range of its leaf if keys are spread evenly: from 0 to 1.
inline double PlaceInRange(uint64_t key, uint64_t low, uint64_t high) {
  if (key < low || key >= high) return 0.5;
  return static_cast<double>(key - low) / static_cast<double>(high - low);
}

// Fetches the lines of a leaf that a search will most likely look at, all at the same time, before anything of it was read:
// small leaves whole; of larger ones the header, and half of kFetchedLines each around the place and where elements are appended
// behind the `sorted` ones; if that is 0, not known, all around the place, as if kSortedShare of the leaf were sorted elements.
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

// What a visitor of elements says.
enum class Visited {
  kGoOn,
  kPastKey,  // its key is behind the one that is looked for, so those behind it are of no interest
  kEnough,
};

// The first of [begin, end), which are sorted and of one key word, from which on elements are not before the target:
// `compare(element)` is < 0 for those that are, and only asked of those that are not taken back. Both elements that can be next
// are fetched while one is compared.
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

// Calls `visit(const Element&)` for elements of a leaf of `bytes` with this key word that nothing has taken back: first all that
// were appended, the latest first; then sorted ones, of several only from the first on that is not before the target, up to one
// of which visit says kPastKey. Ends when visit says kEnough. `compare` and `fetch`: as in FirstAtTarget. `place`:
// PlaceInRange, a guess.
// COST  The header's line; then, at the same time, those of the appended elements and the one at the place; at times one near it.
//       After FetchLeaf most of them are there.
//       If keys have their first eight bytes in common, also what `compare` and `visit` look at: of the appended elements,
//       but for the first, at the same time; of the sorted ones for about half of log2 of their number, one after the other.
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
