// LeafOrder: the entry order of the live elements of one leaf, in DRAM, for leaves whose key words do not decide.
//
// WHAT IS COMPARED  Keys of one leaf often begin alike for more than eight bytes. Neighbors in key order then differ in one bit
//                   position. These positions in key order are a bit tree (Ferguson, CACM '92), the in-order form of a
//                   PATRICIA tree. A search tests only bits of the target. It reads the key of one element and corrects
//                   its rank by the first bit in which the target differs from that key.
// FALLBACK          Elements of one key (its versions) differ in no bit; their sequence numbers are compared. With a comparator
//                   of the user's, or if neighbors differ only behind kMostBytes bytes, there are no positions: a search is a
//                   binary search that reads log2 n keys. A leaf without a current order is searched as VisitLeaf does.
// COST              A search: the lines of the order (3 n bytes of DRAM, prefetched at once), the header of the leaf in parallel,
//                   then one line of elements, then one entry. A scan reads no keys. DRAM: 3 bytes an element, and 32 bytes
//                   a leaf with its pointer, only for leaves in which one pair of neighbors in kTies has equal key words.
// CONCURRENCY       Immutable once published. It describes the first `covered` elements of a leaf, so it is current if and only
//                   if `covered` is the leaf's nElement. Writers replace it after each append; a reader that finds none, or an
//                   old one, makes a new one. Both publish by compare-and-swap, and retire the replaced one through epochs.
// LIFETIME          As long as the leaf: it is dropped before the leaf's block is free again. Nothing of it is on media.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "index/key_order.h"
#include "nvtree/leaf.h"
#include "nvtree/separator.h"
#include "pmem/pm_ptr.h"
#include "pmem/region_set.h"
#include "util/prefetch.h"

namespace braiddb {

// Positions of bits in keys: 16 per byte. Position 16 i is 1 if the key has a byte i; positions 16 i + 1 … 16 i + 8 are the bits
// of byte i, the highest first. No key is then a prefix of another, and keys are in the order of their bits.
struct KeyBits {
  static constexpr uint32_t kPerByte = 16;
  static constexpr uint32_t kSame = UINT32_MAX;  // the keys are equal

  static bool At(Slice key, uint32_t position) {
    const uint32_t byte = position / kPerByte, bit = position % kPerByte;
    if (byte >= key.size()) return false;
    return bit == 0 || (static_cast<uint8_t>(key[byte]) >> (8 - bit) & 1) != 0;
  }
  // The first position in which the keys differ. The first `same` bytes of both keys are known to be equal.
  static uint32_t FirstDifference(Slice a, Slice b, size_t same = 0) {
    const size_t both = std::min(a.size(), b.size());
    size_t at = same;
    for (uint64_t x, y; at + sizeof(x) <= both; at += sizeof(x)) {
      memcpy(&x, a.data() + at, sizeof(x));
      memcpy(&y, b.data() + at, sizeof(y));
      if (x == y) continue;
      const uint64_t differ = __builtin_bswap64(x ^ y);
      const auto bit = static_cast<uint32_t>(std::countl_zero(differ));
      return static_cast<uint32_t>(at + bit / 8) * kPerByte + 1 + bit % 8;
    }
    for (; at < both; ++at) {
      const auto differ = static_cast<uint8_t>(a[at] ^ b[at]);
      if (differ != 0) return static_cast<uint32_t>(at) * kPerByte + 1 + static_cast<uint32_t>(std::countl_zero(differ));
    }
    return a.size() == b.size() ? kSame : static_cast<uint32_t>(both) * kPerByte;
  }
};

// The ranks of a leaf's live elements, and the searches among them. `slot[i]`: index in the leaf of the element of rank i.
// `differ[i]`: KeyBits::FirstDifference of the keys of ranks i - 1 and i; of no meaning for i = 0, or without `has_bits`.
struct RankView {
  static constexpr uint16_t kSame = UINT16_MAX;  // versions of one key
  // Neighbors that differ behind this number of bytes have no position.
  static constexpr uint32_t kMostBytes = kSame / KeyBits::kPerByte;

  // EndOfRun compares this number of ranks at once.
  static constexpr uint32_t kPerStep = sizeof(__m128i) / sizeof(uint16_t);
  static constexpr uint32_t kReadBehind = sizeof(__m128i);

  const uint16_t* differ;
  const uint8_t* slot;
  uint32_t live;
  bool has_bits;

  // The rank of the first element that is not before the target; `live` if there is none. `key_at(rank)` returns the SearchKey of
  // an element. *has_key: false if no element has the target's key; otherwise true or, without bits, unknown.
  // COST  One call of key_at, plus log2 of the number of versions of the target's key; without bits log2 of `live`.
  template <class KeyAt>
  uint32_t FirstNotBefore(const KeyOrder& order, const SearchKey& target, const KeyAt& key_at, bool* has_key) const;

 private:
  // The rank of an element whose key shares at least as many leading bits with the target as any other's.
  uint32_t Candidate(Slice target, bool is_reverse) const;
  // The first rank from `rank` on, or the last one down from it, that differs from its predecessor at or before `position`;
  // `live` or 0 if there is none. REQUIRES: kReadBehind bytes behind `differ` can be read.
  uint32_t EndOfRun(uint32_t rank, uint32_t position) const {
    const __m128i limit = _mm_set1_epi16(static_cast<int16_t>(position));
    for (; rank < live; rank += kPerStep) {
      const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(differ + rank));
      const __m128i is_not_above = _mm_cmpeq_epi16(_mm_subs_epu16(some, limit), _mm_setzero_si128());
      const auto mask = static_cast<uint32_t>(_mm_movemask_epi8(is_not_above));
      if (mask != 0) return std::min(rank + static_cast<uint32_t>(std::countr_zero(mask)) / 2, live);
    }
    return live;
  }
  uint32_t BeginOfRun(uint32_t rank, uint32_t position) const {
    while (rank > 0 && differ[rank] > position) --rank;
    return rank;
  }
};

// Visits the positions on the path of a PATRICIA tree, from its leaves up. A 1 bit moves the candidate behind the position; a 0
// bit skips the ranks that differ only behind it.
inline uint32_t RankView::Candidate(Slice target, bool is_reverse) const {
  uint32_t candidate = 0;
  for (uint32_t i = 1; i < live;) {
    const uint16_t position = differ[i];
    if (position != kSame && KeyBits::At(target, position) != is_reverse) {
      candidate = i++;
    } else {
      i = EndOfRun(i + 1, position);
    }
  }
  return candidate;
}

// WHY IT IS RIGHT  All keys that share with the target the bits before the first difference to the candidate's key form a run of
//                  ranks around the candidate, whose inner differences lie behind that position. The target is before or behind
//                  the entire run, as its bit there says.
template <class KeyAt>
uint32_t RankView::FirstNotBefore(const KeyOrder& order, const SearchKey& target, const KeyAt& key_at, bool* has_key) const {
  *has_key = live != 0;
  uint32_t begin = 0, end = live;
  if (has_bits && live != 0) {
    constexpr uint32_t kMostPosition = kSame - 1;
    const bool is_reverse = IsReverse(order);
    const uint32_t candidate = Candidate(target.key, is_reverse);
    const SearchKey key = key_at(candidate);
    const uint32_t position = KeyBits::FirstDifference(target.key, key.key);
    if (position != KeyBits::kSame) {
      *has_key = false;
      const bool is_behind = KeyBits::At(target.key, position) != is_reverse;
      const uint32_t limit = std::min(position, kMostPosition);
      return is_behind ? EndOfRun(candidate + 1, limit) : BeginOfRun(candidate, limit);
    }
    begin = BeginOfRun(candidate, kMostPosition);
    end = EndOfRun(candidate + 1, kMostPosition);
    if (end - begin == 1) return key.sequence > target.sequence ? end : begin;
  }
  while (begin != end) {
    const uint32_t middle = begin + (end - begin) / 2;
    const SearchKey key = key_at(middle);
    const int by_key = has_bits ? 0 : order.Compare(key.key, target.key);
    if (by_key != 0 ? by_key < 0 : key.sequence > target.sequence) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

// Ranks while they are computed or changed.
struct LeafRanks {
  static constexpr uint32_t kMost = Leaf::kMaxElements;

  uint32_t live = 0;
  bool has_bits = false;
  uint16_t differ[kMost + RankView::kPerStep] = {};
  uint8_t slot[kMost];

  RankView view() const { return {differ, slot, live, has_bits}; }
  // Stores differ[rank] of two neighbors. If the position is too large, has_bits becomes false.
  void SetDifference(uint32_t rank, Slice before, Slice key) {
    const uint32_t position = KeyBits::FirstDifference(before, key);
    if (position != KeyBits::kSame && position >= RankView::kSame) has_bits = false;
    differ[rank] = static_cast<uint16_t>(std::min<uint32_t>(position, RankView::kSame));
  }
  // The two neighbors of a removed element differ where the first of the two differences was.
  void Remove(uint32_t rank) {
    if (rank + 1 < live) differ[rank + 1] = std::min(differ[rank], differ[rank + 1]);
    std::copy(differ + rank + 1, differ + live, differ + rank);
    std::copy(slot + rank + 1, slot + live, slot + rank);
    --live;
  }
  // The caller sets the differences to both neighbors. REQUIRES: live < kMost.
  void Insert(uint32_t rank, uint8_t at) {
    std::copy_backward(differ + rank, differ + live, differ + live + 1);
    std::copy_backward(slot + rank, slot + live, slot + live + 1);
    slot[rank] = at;
    ++live;
  }
};

class LeafOrder {
 public:
  // A leaf has an order if one in kTies pairs of neighbors has equal key words.
  static constexpr uint32_t kTies = 8;
  static constexpr bool IsWorthIt(uint32_t ties, uint32_t elements) { return ties > 0 && ties * kTies >= elements; }

  // Null if there is no memory. Deleted by Delete.
  static const LeafOrder* New(uint32_t covered, const LeafRanks& ranks) noexcept;
  // Says that the leaf has too few equal key words for an order. It is valid as long as the leaf exists.
  static const LeafOrder* NewDeclined() noexcept { return Allocate(0, 0, false, true); }
  static void Delete(const LeafOrder* order) noexcept { ::operator delete(const_cast<LeafOrder*>(order)); }

  bool is_declined() const { return is_declined_; }
  // Leaf::count() of the elements that it describes.
  uint32_t covered() const { return covered_; }
  RankView ranks() const { return {differs(), slots(), live_, has_bits_}; }
  void CopyTo(LeafRanks* ranks) const;
  size_t bytes() const { return Bytes(live_); }
  void PrefetchLines() const { PrefetchAll(this, Bytes(kMostPrefetched)); }

 private:
  // Prefetched before the size is known.
  static constexpr uint32_t kMostPrefetched = 170;

  static constexpr size_t Bytes(uint32_t live) {
    return sizeof(LeafOrder) + live * (sizeof(uint16_t) + sizeof(uint8_t)) + RankView::kReadBehind;
  }
  static LeafOrder* Allocate(uint32_t covered, uint32_t live, bool has_bits, bool is_declined) noexcept;
  LeafOrder(uint32_t covered, uint32_t live, bool has_bits, bool is_declined)
      : covered_(covered), live_(static_cast<uint16_t>(live)), has_bits_(has_bits), is_declined_(is_declined) {}

  uint16_t* differs() const { return reinterpret_cast<uint16_t*>(const_cast<LeafOrder*>(this) + 1); }
  uint8_t* slots() const { return reinterpret_cast<uint8_t*>(differs() + live_); }

  const uint32_t covered_;
  const uint16_t live_;
  const bool has_bits_;
  const bool is_declined_;
};
static_assert(sizeof(LeafOrder) == 8 && Leaf::kMaxElements <= UINT8_MAX);

// The orders of a tree's leaves, by the leaves' addresses.
// LAYOUT  One tree of three levels per region, indexed by offset / size of a leaf. Nodes exist only where an order is.
// Thread safety: all methods may be called concurrently.
class LeafOrders {
 public:
  LeafOrders(uint32_t regions, uint32_t leaf_bytes)
      : shift_(static_cast<uint32_t>(std::countr_zero(leaf_bytes))), roots_(regions) {}
  ~LeafOrders();  // REQUIRES: no readers
  LeafOrders(const LeafOrders&) = delete;
  LeafOrders& operator=(const LeafOrders&) = delete;

  // The order of a leaf; null if there is none. REQUIRES: an epoch guard while it is used.
  const LeafOrder* Find(PmPtr leaf) const;
  // Publishes `order` if the leaf's order is still `before`, which the caller then retires; `order` may be null. Returns false
  // and changes nothing otherwise, or if there is no memory. REQUIRES: an epoch guard since the leaf was found in the tree.
  bool Replace(PmPtr leaf, const LeafOrder* before, const LeafOrder* order) noexcept;
  // Deletes the order of a leaf that no reader can reach.
  void Drop(PmPtr leaf) noexcept;

  // DRAM of all orders.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kBits = 13;
  static constexpr uint32_t kLevels = 3;
  static_assert(kBits * kLevels + std::countr_zero(kMinLeafBytes) >= PmPtr::kRegionShift);
  using Word = std::atomic<void*>;  // a node, or in the lowest level an order

  uint64_t IndexOf(PmPtr leaf) const { return leaf.offset() >> shift_; }
  static uint64_t Part(uint64_t index, uint32_t level) { return index >> (kBits * level) & ((uint64_t{1} << kBits) - 1); }
  Word* WordOf(PmPtr leaf) const;
  Word* MakeWordOf(PmPtr leaf) noexcept;
  static void DeleteNode(void* node, uint32_t level);

  const uint32_t shift_;
  std::vector<Word> roots_;
  std::atomic<uint64_t> bytes_{0};
};

// acquire: pairs with the release in Replace and MakeWordOf.
inline LeafOrders::Word* LeafOrders::WordOf(PmPtr leaf) const {
  const uint64_t index = IndexOf(leaf);
  const Word* word = &roots_[leaf.region()];
  for (uint32_t level = kLevels; level-- > 0;) {
    auto* const node = static_cast<const Word*>(word->load(std::memory_order_acquire));
    if (node == nullptr) return nullptr;
    word = node + Part(index, level);
  }
  return const_cast<Word*>(word);
}
inline const LeafOrder* LeafOrders::Find(PmPtr leaf) const {
  const Word* const word = WordOf(leaf);
  return word == nullptr ? nullptr : static_cast<const LeafOrder*>(word->load(std::memory_order_acquire));
}

}  // namespace braiddb
