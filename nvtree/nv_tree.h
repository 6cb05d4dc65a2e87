// NvTree: a LeafTree with the leaves of NV-Tree (FAST '15): unsorted and append-only.
//
// COMMIT POINT   A change within a leaf is an append: the store of nElement (leaf.h). The rest: leaf_tree/leaf_tree.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "leaf_tree/leaf_tree.h"
#include "nvtree/leaf.h"
#include "nvtree/leaf_order.h"

namespace braiddb {

inline constexpr uint64_t kNvTreeMagic = 0x31544e44'41524221;  // "!BRADNT1"

// Returns true if this is the valid root of the NV-Tree of this database and family (LevelPlace::number).
bool IsNvTreeRoot(const LeafTreeRoot& root, uint64_t database_id, uint64_t number = 0);

class NvTree final : public LeafTree {
 public:
  // Creates an empty tree. InvalidArgument if `leaf_bytes` is not a valid size.
  static Status Create(RegionSet* regions, SegmentAllocator* segments, uint32_t leaf_bytes, const LevelPlace& place = {});
  // Reads the image of the inner nodes if the tree was closed, or rebuilds them from the leaves on `threads` threads. `verify`:
  // always rebuilds. Corruption if the root is damaged, or if a rebuild finds a damaged link or leaf.
  static Status Open(const LeafTreeParts& parts, uint32_t threads, bool verify, std::unique_ptr<NvTree>* result);

  // VisitElements, but `visit` and `on_leaf` are inlined. Calls `on_leaf(PmPtr)` for each leaf that it reads.
  template <class Visit, class OnLeaf>
  void VisitKey(const SearchKey& target, const Visit& visit, const OnLeaf& on_leaf) const;
  template <class Visit>
  void VisitKey(const SearchKey& target, const Visit& visit) const {
    VisitKey(target, visit, [](PmPtr) {});
  }
  void VisitElements(const SearchKey& target, const Visitor& visit) const override { VisitKey(target, visit); }

  // A leaf with a LeafOrder is copied exactly.
  void CopyLeaf(const SearchKey& target, bool before, LeafCopy* copy, uint32_t enough = kAllElements) const override {
    Copy(target, before, copy, enough);
  }
  void CopyLeaf(const Separator& target, bool before, LeafCopy* copy, uint32_t enough = kAllElements) const override {
    Copy(target, before, copy, enough);
  }
  void FetchLeafOf(const SearchKey& target) const override { Fetch(target); }
  void FetchLeafOf(const Separator& target) const override { Fetch(target); }

 private:
  NvTree(const LeafTreeParts& parts, LeafTreeRoot* root);

  uint32_t Capacity() const override { return Leaf::Capacity(leaf_bytes_); }
  uint32_t UsedIn(PmPtr leaf) const override { return At(leaf)->count(); }
  bool IsValid(PmPtr leaf) const override { return IsValidLeaf(*At(leaf), root_->tree_id, leaf, leaf_bytes_); }
  uint64_t* LinkOf(PmPtr leaf) const override { return &At(leaf)->next; }
  void CollectSorted(PmPtr leaf, std::vector<Element>* elements) const override;
  uint32_t WriteLeaf(PmPtr place, const Separator& low, const Separator* high, std::span<const Element> elements,
                     PmPtr next) override;
  bool HasRoom(const InnerNodes::Range& range, std::span<const LeafChange> changes) const override;
  bool Change(const InnerNodes::Range& range, std::span<const LeafChange> changes) override;
  void OnReplaced(PmPtr old, std::span<const InnerNodes::Child> children) override;
  std::function<void()> Reclaimer(PmPtr leaf) const override;
  uint64_t ExtraBytes() const override { return orders_->bytes(); }
  void Scan(PmPtr place, Scanned* found) const override;
  void FlushFound(PmPtr leaf) const override { persistence()->Flush(At(leaf), sizeof(Leaf)); }

  Leaf* At(PmPtr leaf) const { return parts_.regions->Resolve<Leaf>(leaf); }
  template <class Target>
  void Copy(const Target& target, bool before, LeafCopy* copy, uint32_t enough) const;
  template <class Target>
  void Fetch(const Target& target) const {
    const InnerNodes::Range range = inner_.Find(target);
    if (const LeafOrder* const order = orders_->Find(range.leaf)) order->PrefetchLines();
    FetchLeaf(*At(range.leaf), leaf_bytes_, range.hint, PlaceIn(range, target.prefix));
  }
  static double PlaceIn(const InnerNodes::Range& range, uint64_t key) {
    return PlaceInRange(key, range.low.prefix, range.is_last ? UINT64_MAX : range.high.prefix);
  }
  // ---- Orders of leaves (ordered_leaves.cc)
  // The order of the range's leaf, made if it is missing or not current; null if the leaf is searched without. `is_search`: a
  // search reads too few keys to make an order for a comparator of the user's.
  const LeafOrder* OrderOf(const InnerNodes::Range& range, bool is_search) const {
    const LeafOrder* const order = orders_->Find(range.leaf);
    // Both neighbors of a leaf with many equal key words usually begin with one of them, so a separator has a rest.
    if (order == nullptr && range.low.rest == nullptr && range.high.rest == nullptr) return nullptr;
    return CurrentOrder(range.leaf, order, is_search);
  }
  const LeafOrder* CurrentOrder(PmPtr leaf, const LeafOrder* order, bool is_search) const;
  // Makes the order of a leaf and publishes it in place of `before`. Null if the leaf has too few equal key words, another thread
  // published one, or there is no memory.
  const LeafOrder* MakeOrder(PmPtr leaf, const LeafOrder* before) const;
  static bool HasTies(std::span<const Element> sorted);
  // Computes the ranks of the elements in ranks->slot, which are live and ascending. False: there are too few equal key words.
  bool Rank(const Leaf& leaf, LeafRanks* ranks) const;
  // Brings a current order up to date after `changes` were appended behind the first `covered` elements. The others are left to
  // the next reader. REQUIRES: the leaf's latch is held.
  void UpdateOrder(PmPtr leaf, uint32_t covered, std::span<const LeafChange> changes) const;
  bool UpdateRanks(const Leaf& leaf, const LeafChange& change, uint32_t slot, LeafRanks* ranks) const;
  // Replaces the leaf's order and retires the old one. Deletes `order` if that was not possible. Returns true if it was.
  bool PublishOrder(PmPtr leaf, const LeafOrder* before, const LeafOrder* order) const;
  // Rank of the first element that is not before the target. *has_key: as RankView::FirstNotBefore.
  uint32_t FirstRank(const Leaf& leaf, const RankView& ranks, const SearchKey& target, bool* has_key) const {
    const auto key_at = [&](uint32_t rank) { return parts_.keys->KeyOf(leaf.elements[ranks.slot[rank]]); };
    return ranks.FirstNotBefore(*parts_.order, target, key_at, has_key);
  }
  // For a position without a rest.
  uint32_t FirstRank(const Leaf& leaf, const RankView& ranks, const Separator& target) const;
  // Prefetches what a copy reads from a rank on, or before it: see CopyLeaf.
  void FetchRanks(const Leaf& leaf, const RankView& ranks, uint32_t rank, bool before, uint32_t enough) const;
  // Completes CopyLeaf with the order of the leaf.
  void CopyRanks(const RankView& ranks, uint32_t first_at, bool before, uint32_t enough, LeafCopy* copy) const;

  // Sorts the elements from index `begin` on, of which the first `sorted` are sorted.
  void SortCollected(size_t begin, size_t sorted, std::vector<Element>* elements) const;

  // Shared with the reclaimers of retired leaves.
  std::shared_ptr<LeafOrders> orders_;
};

template <class Target>
void NvTree::Copy(const Target& target, bool before, LeafCopy* copy, uint32_t enough) const {
  copy->range = before ? inner_.FindBefore(target) : inner_.Find(target);
  copy->elements.clear();
  copy->is_exact = copy->is_cut = false;
  const Leaf& leaf = *At(copy->range.leaf);
  const LeafOrder* order = OrderOf(copy->range, false);
  if (order == nullptr) {
    LeafPart part;
    if (!before) part = LeafPart{target.prefix, PlaceIn(copy->range, target.prefix), enough};
    FetchLeaf(leaf, leaf_bytes_, copy->range.hint, part.place);
    const size_t sorted = CollectLive(leaf, leaf_bytes_, &part, &copy->elements);
    copy->from = part.from;
    copy->to = part.to;
    // Equal key words within the leaf only: no separator has a rest.
    if (HasTies({copy->elements.data(), sorted}) && orders_->Find(copy->range.leaf) == nullptr)
      order = MakeOrder(copy->range.leaf, nullptr);
    if (order == nullptr) return SortCollected(0, sorted, &copy->elements);
    copy->elements.clear();
  }
  const RankView ranks = order->ranks();
  // The search reads one key, near the result. The lines that the copy needs are prefetched before the search waits for it.
  uint32_t rank = 0;
  const auto search = [&](const SearchKey& key) {
    bool is_fetched = false, has_key = false;
    rank = ranks.FirstNotBefore(
        *parts_.order, key,
        [&](uint32_t near) {
          if (!std::exchange(is_fetched, true)) FetchRanks(leaf, ranks, near, before, enough);
          return parts_.keys->KeyOf(leaf.elements[ranks.slot[near]]);
        },
        &has_key);
  };
  if constexpr (std::is_same_v<Target, SearchKey>) {
    search(target);
  } else if (target.rest != nullptr) {
    search(SearchKey(target.prefix, target.rest->key(), target.rest->sequence));
  } else {
    rank = FirstRank(leaf, ranks, target);
  }
  CopyRanks(ranks, rank, before, enough, copy);
}

template <class Visit, class OnLeaf>
void NvTree::VisitKey(const SearchKey& target, const Visit& visit, const OnLeaf& on_leaf) const {
  const auto compare = [&](const Element& element) { return Compare(element, target); };
  const auto fetch = [this](const Element& element) { parts_.keys->Prefetch(element); };
  InnerNodes::Range range = inner_.Find(target);
  const SeparatorRest* border = nullptr;  // elements before it were visited in the previous leaf
  bool stopped = false;
  const auto visit_once = [&](const Element& element) {
    if (border != nullptr && Compare(element, SearchKey(target.prefix, border->key(), border->sequence)) < 0)
      return Visited::kGoOn;
    const Visited visited = visit(element);
    stopped = visited == Visited::kEnough;
    return visited;
  };
  for (;;) {
    const Leaf& leaf = *At(range.leaf);
    on_leaf(range.leaf);
    if (const LeafOrder* const order = OrderOf(range, true)) {
      const RankView ranks = order->ranks();
      bool has_key = false;
      uint32_t rank = FirstRank(leaf, ranks, target, &has_key);
      for (bool more = has_key && rank < ranks.live; more;) {
        more = visit_once(leaf.elements[ranks.slot[rank]]) == Visited::kGoOn && ++rank < ranks.live &&
               (!ranks.has_bits || ranks.differ[rank] == RankView::kSame);
      }
    } else {
      const double place = PlaceIn(range, target.prefix);
      FetchLeaf(leaf, leaf_bytes_, range.hint, place);
      VisitLeaf(leaf, leaf_bytes_, target.prefix, place, compare, fetch, visit_once);
    }
    // The versions of one key may extend over several leaves.
    if (stopped || range.is_last || range.high.prefix != target.prefix || range.high.rest == nullptr) return;
    border = range.high.rest;
    if (parts_.order->Compare(border->key(), target.key) != 0) return;
    range = inner_.Find(range.high);
  }
}

}  // namespace braiddb
