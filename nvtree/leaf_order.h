// LeafOrder: the entry order of the live elements of one leaf, in DRAM, for leaves whose key words do not decide.
//
// WHAT IS COMPARED  Keys of one leaf often begin alike for more than eight bytes. The bit positions in which neighbors differ are
//                   a bit tree (index/bit_tree.h), whose search reads the key of one element.
// FALLBACK          Elements of one key (its versions) differ in no bit; their sequence numbers are compared. With a comparator
//                   of the user's, or if neighbors differ only behind BitTree::kMostBytes bytes, there are no positions: a search
//                   is a binary search that reads log2 n keys. A leaf without a current order is searched as VisitLeaf does.
// COST              A search: the lines of the order (3 n bytes of DRAM, prefetched at once), the header of the leaf in parallel,
//                   then one line of elements, then one entry. A scan reads no keys. DRAM: 3 bytes an element, and 32 bytes
//                   a leaf with its pointer, only for leaves in which one pair of neighbors in kTies has equal key words.
// CONCURRENCY       Immutable once published. It describes the first `covered` elements of a leaf, so it is current if and only
//                   if `covered` is the leaf's nElement. Writers replace it after each append; a reader that finds none, or an
//                   old one, makes a new one. Both publish by compare-and-swap, and retire the replaced one through epochs.
// LIFETIME          As long as the leaf: it is dropped before the leaf's block is free again. Nothing of it is on media.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "index/bit_tree.h"
#include "index/key_order.h"
#include "leaf_tree/separator.h"
#include "nvtree/leaf.h"
#include "pmem/pm_ptr.h"
#include "pmem/region_set.h"
#include "util/prefetch.h"

namespace braiddb {

// The ranks of a leaf's live elements, and the searches among them. `slot[i]`: index in the leaf of the element of rank i.
// `differ[i]`: as BitTree has it, of the keys of ranks i - 1 and i; of no meaning for i = 0, or without `has_bits`.
struct RankView {
  static constexpr uint16_t kSame = BitTree::kSame;  // versions of one key

  const uint16_t* differ;
  const uint8_t* slot;
  uint32_t live;
  bool has_bits;

  // The rank of the first element that is not before the target; `live` if there is none. `key_at(rank)` returns the SearchKey of
  // an element. *has_key: false if no element has the target's key; otherwise true or, without bits, unknown.
  // COST  One call of key_at, plus log2 of the number of versions of the target's key; without bits log2 of `live`.
  template <class KeyAt>
  uint32_t FirstNotBefore(const KeyOrder& order, const SearchKey& target, const KeyAt& key_at, bool* has_key) const {
    *has_key = live != 0;
    if (has_bits && live != 0) {
      const BitTree tree(differ, live);
      return tree.FirstNotBefore(order, target, tree.Candidate(target.key, order.is_reverse()), key_at, has_key);
    }
    uint32_t begin = 0;
    for (uint32_t end = live; begin != end;) {
      const uint32_t middle = begin + (end - begin) / 2;
      const SearchKey key = key_at(middle);
      const int by_key = order.Compare(key.key, target.key);
      if (by_key != 0 ? by_key < 0 : key.sequence > target.sequence) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin;
  }
};

// Ranks while they are computed or changed.
struct LeafRanks {
  static constexpr uint32_t kMost = Leaf::kMaxElements;

  uint32_t live = 0;
  bool has_bits = false;
  uint16_t differ[kMost + BitTree::kPerStep] = {};
  uint8_t slot[kMost];

  RankView view() const { return {differ, slot, live, has_bits}; }
  // Stores differ[rank] of two neighbors. If the position is too large, has_bits becomes false.
  void SetDifference(uint32_t rank, Slice before, Slice key) { has_bits &= BitTree::Differ(before, key, &differ[rank]); }
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
    return sizeof(LeafOrder) + live * (sizeof(uint16_t) + sizeof(uint8_t)) + BitTree::kReadBehind;
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
