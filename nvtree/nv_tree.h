// NvTree: a B+-tree with leaves in persistent memory and inner nodes in DRAM (NV-Tree, FAST '15).
//
// LAYOUT         NvTreeRoot at the family's LevelPlace in region 0. Its link starts the list of leaves (leaf.h), which are in
//                segments of their own (leaf_space.h). Along the list, and except for empty leaves, all keys of a leaf are
//                smaller than all keys of the next one. Inner nodes (inner_nodes.h) are derived from the list.
// COMMIT POINT   An append: the store of nElement (leaf.h). A split, replace or merge: the store of the link to the first new
//                leaf.
// PERSIST ORDER  P1 the complete new leaves; the last one links to the successor of the old ones  P2 the link, in the left
//                neighbor or in the root  P3 only then the space of the old leaves is reused. [CC-43]
// RECOVERY       The tree is the list that starts at the root. All other blocks in its segments are free. [CC-42] After a clean
//                close an image of the inner nodes exists, and its link is removed before the first change. [CC-44] Open persists
//                the root, the headers of leaves and the headers of their segments. [CC-46]
// CONCURRENCY    Readers take no latch. A writer holds the latch of the leaf to which it appends. A split, replace or merge also
//                holds the structure mutex, which protects links and inner nodes, and the latch of the right sibling if that is
//                merged. No thread waits for a latch while it holds the mutex, so there is no deadlock. A reader may reach a leaf
//                just before a writer replaces it. No writer appends to the leaf after that, so the reader sees the state at the
//                replacement and comes before all later writes.
// LIFETIME       Old leaves and inner nodes are freed after all readers that may have reached them have left (epochs).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "braiddb/status.h"
#include "index/leaf_space.h"
#include "index/level_place.h"
#include "nvtree/inner_nodes.h"
#include "nvtree/leaf.h"
#include "nvtree/leaf_order.h"

namespace braiddb {

struct NvTreeRoot {
  static constexpr uint64_t kMagic = 0x31544e44'41524221;  // "!BRADNT1"

  uint64_t magic;        //  0
  uint64_t tree_id;      //  8  hash of the database's id, which is random, and of the family's number
  uint64_t leaf_bytes;   // 16
  uint64_t reserved[4];  // 24  zero
  uint64_t checksum;     // 56  XXH3 of bytes [0, 56)
  uint64_t first;        // 64  link to the first leaf
  uint64_t image;        // link to the image of the inner nodes (inner_image.h) after a clean close; 0: none
};
static_assert(sizeof(NvTreeRoot) == 80 && offsetof(NvTreeRoot, first) == 64);
static_assert(sizeof(NvTreeRoot) <= LevelPlace::kBytes);

// Returns true if this is the valid root of the tree of this database and family (LevelPlace::number).
bool IsNvTreeRoot(const NvTreeRoot& root, uint64_t database_id, uint64_t number = 0);
// The owner of the link to the image. It differs from the owner of the link to the first leaf.
inline uint64_t ImageOwner(const NvTreeRoot& root) { return ~root.tree_id; }

// Resolves elements to keys. Decides the order of elements with equal key words.
class ElementKeys {
 public:
  virtual ~ElementKeys() = default;
  // The element's position in entry order; its prefix is the key word. Never called for cancelled elements.
  virtual SearchKey KeyOf(const Element& element) const = 0;
  // Announces a KeyOf call. May be called for any element, also for cancelled ones.
  virtual void Prefetch(const Element& element) const = 0;
};

// For unique keys of eight bytes: the key word is the key.
class PlainKeys final : public ElementKeys {
 public:
  SearchKey KeyOf(const Element& element) const override { return SearchKey(element.key, Slice(), 0); }
  void Prefetch(const Element&) const override {}
};

struct NvTreeParts {
  RegionSet* regions;
  SegmentAllocator* segments;
  EpochManager* epochs;
  const KeyOrder* order;
  const ElementKeys* keys;
  LevelPlace place = {};
  // No other structure uses index segments, so the open releases those that are not this tree's.
  bool is_alone = true;
};

// Thread safety: all methods may be called concurrently after Open returned.
class NvTree {
 public:
  // Creates an empty tree. InvalidArgument if `leaf_bytes` is not a valid size.
  static Status Create(RegionSet* regions, SegmentAllocator* segments, uint32_t leaf_bytes, const LevelPlace& place = {});
  // Reads the image of the inner nodes if the tree was closed, or rebuilds them from the leaves on `threads` threads. `verify`:
  // always rebuilds. Corruption if the root is damaged, or if a rebuild finds a damaged link or leaf.
  static Status Open(const NvTreeParts& parts, uint32_t threads, bool verify, std::unique_ptr<NvTree>* result);
  // Stores an image of the inner nodes for the next open, if there is space. REQUIRES: no other call is running or follows.
  Status Close();

  // Applies sorted changes durably, the changes of one leaf at a time. Changes of one key are applied together, unless the key
  // has more elements than a leaf. NoSpace, MemoryLimit: the changes from some leaf on are not applied. After a failed persist
  // all later calls fail. REQUIRES: elements that NEGATIVE changes cancel are in the tree, other elements are not; no two
  // elements are equal in order; and the thread holds no epoch guard.
  Status Apply(std::span<const LeafChange> changes);

  // Calls `on_leaf(PmPtr)` for each leaf that it reads, and `visit(const Element&)` for elements with the target's key word,
  // until visit returns kEnough. It visits at least all elements that have the target's key and are at or behind the target, each
  // once, in any order. If they are in several leaves, the visit is not atomic. REQUIRES: an epoch guard.
  template <class Visit, class OnLeaf>
  void VisitKey(const SearchKey& target, const Visit& visit, const OnLeaf& on_leaf) const;
  template <class Visit>
  void VisitKey(const SearchKey& target, const Visit& visit) const {
    VisitKey(target, visit, [](PmPtr) {});
  }

  // The leaf whose range contains the target. REQUIRES: an epoch guard while the range is used.
  InnerNodes::Range FindRange(const SearchKey& target) const { return inner_.Find(target); }

  // The elements of a part of one leaf, in order, and the leaf's range.
  struct LeafCopy {
    std::vector<Element> elements;
    LeafPart part;
    InnerNodes::Range range;
    // The leaf has a LeafOrder: all elements are at or behind the target, or, if copied `before`, before it. At most `enough`
    // were copied, those next to the target. `part` is not set.
    bool is_exact = false;
    bool is_cut = false;    // exact only: the leaf has more elements on the side away from the target
    bool cuts_key = false;  // the cut is between two versions of one key
    Element behind = {};    // the first element behind the cut: not copied; or, if copied `before`, the first copied one
    // The position of the cut. REQUIRES: is_cut, and the epoch guard of the copy.
    SearchKey Cut(const NvTree& tree) const {
      const SearchKey key = tree.KeyOf(behind);
      return SearchKey(key.prefix, key.key, cuts_key ? key.sequence : kMaxSequence);
    }
  };
  // Copies the leaf whose range contains the target, from the target's key word on, at least `enough` elements (LeafPart) or all.
  // If `before`: copies the whole last leaf whose range begins before the target. A leaf with a LeafOrder is copied exactly
  // (LeafCopy). REQUIRES: an epoch guard while the range is used.
  template <class Target>
  void CopyLeaf(const Target& target, bool before, LeafCopy* copy, uint32_t enough = Leaf::kMaxElements) const;

  // Prefetches the lines that CopyLeaf will read. REQUIRES: an epoch guard.
  template <class Target>
  void FetchLeafOf(const Target& target) const {
    const InnerNodes::Range range = inner_.Find(target);
    if (const LeafOrder* const order = orders_->Find(range.leaf)) order->PrefetchLines();
    FetchLeaf(*At(range.leaf), leaf_bytes_, range.sorted, PlaceIn(range, target.prefix));
  }

  // The element's position in entry order. REQUIRES: the element was live when the caller's epoch guard began or later.
  SearchKey KeyOf(const Element& element) const { return parts_.keys->KeyOf(element); }
  // Result < 0, 0, > 0: the element is before, at, behind the target in entry order.
  int Compare(const Element& element, const SearchKey& target) const;

  struct Stats {
    InnerNodes::Stats inner;  // bytes: with the leaves' orders
    uint64_t free_leaves = 0;
    uint64_t splits = 0;
    uint64_t replaces = 0;
    uint64_t merges = 0;
    bool from_image = false;  // the open loaded an image and needed no rebuild
  };
  Stats GetStats() const;

  // Returns true if the segment holds leaves or inner nodes of this tree. REQUIRES: no change is running.
  bool Owns(const Segment* segment) const { return segment == image_segment_ || space_->Owns(segment); }
  // Releases all segments of the tree, which destroys it. REQUIRES: no thread uses the tree; no other call follows.
  Status ReleaseSegments();

  // Number of cache lines that changes have flushed since the open.
  uint64_t flushed_lines() const { return flushed_lines_.load(std::memory_order_relaxed); }

  EpochManager* epochs() const { return parts_.epochs; }
  uint32_t leaf_bytes() const { return leaf_bytes_; }

 private:
  class Latch {
   public:
    void Lock();
    bool TryLock() { return !held_.exchange(true, std::memory_order_acquire); }
    void Unlock() { held_.store(false, std::memory_order_release); }

   private:
    alignas(64) std::atomic<bool> held_{false};
  };
  class LatchGuard;
  struct Step;

  NvTree(const NvTreeParts& parts, NvTreeRoot* root);
  // The smallest and the largest key word of a leaf, and Leaf::sorted().
  struct KeyWords {
    uint64_t least;
    uint64_t greatest;
    uint32_t sorted;
    bool empty;
  };
  // Finds the image segment, and releases other images of the tree.
  Status FindImageSegment();
  // Releases index segments that hold neither leaves nor the image.
  Status ReleaseUnowned();
  // Builds the inner nodes from the image. False: there is no valid image, and nothing has changed.
  bool LoadImage();
  // Removes the link to the image, durably.
  Status ForgetImage();
  // Builds the inner nodes from the leaves (rebuild.cc).
  Status Rebuild(uint32_t threads);
  Status BuildFromList(const std::vector<PmPtr>& list, const std::function<KeyWords(PmPtr)>& words);
  // Applies the first changes, those of one leaf. *applied: their number.
  Status ApplyToOneLeaf(std::span<const LeafChange> changes, size_t* applied);
  // Applies changes by a split, replace or merge. REQUIRES: the latch of the range's leaf is held.
  Status Reorganize(const SearchKey& at, const InnerNodes::Range& range, std::span<const LeafChange> changes);
  // The steps of Reorganize: computes the new elements, divides them into leaves, writes the leaves, links them.
  void MakeChanges(std::span<const LeafChange> changes, Step* step) const;
  void PlanPieces(Step* step) const;
  Status MakeLeaves(Step* step);
  Status Link(const SearchKey& at, Step* step, InnerNodes::Replacement* replacement);
  // Errors. After Fail all changes return the first failure. REQUIRES for Fail and Failure: structure_mutex_ is held.
  static Status NoMemory();
  Status Fail(Status status);
  Status Failure() const;

  Leaf* At(PmPtr leaf) const { return parts_.regions->Resolve<Leaf>(leaf); }
  bool IsValid(PmPtr leaf) const { return IsValidLeaf(*At(leaf), root_->tree_id, leaf, leaf_bytes_); }
  // Latches are shared by the leaves with one hash, so their number is constant.
  Latch* LatchOf(PmPtr leaf) const { return &latches_[Mix64(leaf.raw()) % latches_.size()]; }
  // Entry order of elements, and whether two elements are versions of one key.
  bool Less(const Element& a, const Element& b) const;
  bool SameKey(const Element& a, const Element& b) const;
  // The separator of two neighboring leaves, from the last element of the left one and the first of the right one.
  Separator Between(const Element& left, const Element& right) const;
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

  // Appends the live elements of a leaf to *elements in entry order.
  void CollectSorted(PmPtr leaf, std::vector<Element>* elements) const;
  // Sorts the elements from index `begin` on, of which the first `sorted` are sorted.
  void SortCollected(size_t begin, size_t sorted, std::vector<Element>* elements) const;

  const NvTreeParts parts_;
  NvTreeRoot* const root_;
  const uint32_t leaf_bytes_;
  // Shared with the reclaimers of retired leaves.
  std::shared_ptr<LeafSpace> space_;
  std::shared_ptr<LeafOrders> orders_;
  mutable std::array<Latch, 256> latches_;
  mutable std::mutex structure_mutex_;
  InnerNodes inner_;
  uint64_t splits_ = 0;
  uint64_t replaces_ = 0;
  uint64_t merges_ = 0;
  bool from_image_ = false;
  Segment* image_segment_ = nullptr;
  std::atomic<uint64_t> flushed_lines_{0};
  std::atomic<uint32_t> retired_{0};  // number of leaves retired since the last Reclaim
  std::atomic<bool> failed_{false};
  Status failure_;  // guarded by structure_mutex_
};

template <class Target>
void NvTree::CopyLeaf(const Target& target, bool before, LeafCopy* copy, uint32_t enough) const {
  copy->range = before ? inner_.FindBefore(target) : inner_.Find(target);
  copy->elements.clear();
  copy->is_exact = copy->is_cut = false;
  const Leaf& leaf = *At(copy->range.leaf);
  const LeafOrder* order = OrderOf(copy->range, false);
  if (order == nullptr) {
    copy->part = LeafPart{};
    if (!before) copy->part = LeafPart{target.prefix, PlaceIn(copy->range, target.prefix), enough};
    FetchLeaf(leaf, leaf_bytes_, copy->range.sorted, copy->part.place);
    const size_t sorted = CollectLive(leaf, leaf_bytes_, &copy->part, &copy->elements);
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
      FetchLeaf(leaf, leaf_bytes_, range.sorted, place);
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
