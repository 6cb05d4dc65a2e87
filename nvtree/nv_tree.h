// NvTree: a B+-tree whose leaves are in persistent memory and whose inner nodes are not (NV-Tree, FAST '15).
//
// LAYOUT  NvTreeRoot at the family's LevelPlace in region 0; its link starts the list of leaves (leaf.h),
//         which are in segments of their own (leaf_space.h). In order along the list, and empty leaves aside, every key of a
//         leaf is before every key of the next one. Inner nodes (inner_nodes.h) are made from that.
// COMMIT POINT   Of an append: nElement (leaf.h). Of a split, replace or merge: the one link to the first of the new leaves.
// PERSIST ORDER  P1 the new leaves, whole, the last of which links to what was behind the old ones  P2 the link, in the leaf
//                to the left or in the root  P3 then only the old leaves' space is used again. [CC-43]
// RECOVERY       The tree is the list that the root starts. Whatever else is in its segments is free. [CC-42] After a clean close
//                the inner nodes are there as well, and forgotten before the first change. [CC-44] Root, headers of leaves
//                and of their segments are made durable when they are found. [CC-46]
// CONCURRENCY    Readers take no latch. A writer holds the latch of the leaf that it appends to; for a split, replace or
//                merge also the mutex of the structure, under which alone links and inner nodes change, and the latch of the
//                right sibling if that is merged. A latch is never waited for with the mutex held, so nobody waits in a circle.
//                A reader that was led to a leaf before it was replaced reads it as it was at that moment, after which
//                nothing is appended to it: the reader comes before what was written since.
// LIFETIME       Old leaves and inner nodes are freed when every reader of before has left (epochs).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "braiddb/status.h"
#include "index/level_place.h"
#include "nvtree/inner_nodes.h"
#include "nvtree/leaf.h"
#include "nvtree/leaf_space.h"

namespace braiddb {

struct NvTreeRoot {
  static constexpr uint64_t kMagic = 0x31544e44'41524221;  // "!BRADNT1"

  uint64_t magic;        //  0
  uint64_t tree_id;      //  8  hash of the database's id, which is random, and of the family's number
  uint64_t leaf_bytes;   // 16
  uint64_t reserved[4];  // 24  zero
  uint64_t checksum;     // 56  XXH3 of bytes [0, 56)
  uint64_t first;        // 64  link to the first leaf
  uint64_t image;        // 72  link to the inner nodes as they were at a clean close (inner_image.h); 0: none
};
static_assert(sizeof(NvTreeRoot) == 80 && offsetof(NvTreeRoot, first) == 64);
static_assert(sizeof(NvTreeRoot) <= LevelPlace::kBytes);

// Whether it is the root of the tree of this database and family (LevelPlace::number).
bool IsNvTreeRoot(const NvTreeRoot& root, uint64_t database_id, uint64_t number = 0);
// Of the link to the image: tells it from that to the first leaf.
inline uint64_t ImageOwner(const NvTreeRoot& root) { return ~root.tree_id; }

// What an element stands for: decides between elements whose key words are equal.
class ElementKeys {
 public:
  virtual ~ElementKeys() = default;
  // Its place in entry order; the prefix is the element's key word. Only asked of elements that nothing has taken back.
  virtual SearchKey KeyOf(const Element& element) const = 0;
  // KeyOf may be asked soon. Of any element, also of one that was taken back.
  virtual void Prefetch(const Element& element) const = 0;
};

// Keys of eight bytes, each of them once: the key word is all there is.
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
  // Segments of indexes that are not this tree's are nobody's, and the open releases them.
  bool is_alone = true;
};

// Thread safety: all methods may be called concurrently after Open returned.
class NvTree {
 public:
  // An empty tree. InvalidArgument if leaves cannot have that size.
  static Status Create(RegionSet* regions, SegmentAllocator* segments, uint32_t leaf_bytes, const LevelPlace& place = {});
  // After Close the inner nodes are read, else rebuilt from the leaves, on so many threads; `verify`: in any case. Corruption if
  // the root is damaged, or in a rebuild a link or a leaf.
  static Status Open(const NvTreeParts& parts, uint32_t threads, bool verify, std::unique_ptr<NvTree>* result);
  // Stores the inner nodes for the next open, if there is space. REQUIRES: no other call is under way or follows.
  Status Close();

  // Makes the changes, which are in order, durable, those of one leaf at a time; all of one key together, unless it has more
  // elements than a leaf has room for. NoSpace, MemoryLimit: the changes from some leaf on are not there at all. After a
  // failed persist all later calls fail. REQUIRES: elements that are taken back are there, others are not, no two are equal
  // in order, and the thread holds no epoch guard.
  Status Apply(std::span<const LeafChange> changes);

  // Calls `on_leaf(PmPtr)` for each leaf that it reads, and `visit(const Element&)`, which says how to go on (Visited), for
  // elements with the target's key word, until it says kEnough: of those with the target's key at least all that are at the
  // target or behind it in order, each once, in no order; if they are in several leaves, not as they were at one instant.
  // REQUIRES: an epoch guard.
  template <class Visit, class OnLeaf>
  void VisitKey(const SearchKey& target, const Visit& visit, const OnLeaf& on_leaf) const;
  template <class Visit>
  void VisitKey(const SearchKey& target, const Visit& visit) const {
    VisitKey(target, visit, [](PmPtr) {});
  }

  // The leaf whose range the target is in. REQUIRES: an epoch guard, for as long as the range is used.
  InnerNodes::Range FindRange(const SearchKey& target) const { return inner_.Find(target); }

  // The elements of a part of one leaf, in order, and where the leaf's range begins and ends.
  struct LeafCopy {
    std::vector<Element> elements;
    LeafPart part;
    InnerNodes::Range range;
  };
  // Of the leaf whose range the target is in, from the target's key word on, `enough` (LeafPart) or all; or, `before`, all of the
  // last that begins before it. REQUIRES: an epoch guard, for as long as the range is used.
  template <class Target>
  void CopyLeaf(const Target& target, bool before, LeafCopy* copy, uint32_t enough = Leaf::kMaxElements) const {
    copy->range = before ? inner_.FindBefore(target) : inner_.Find(target);
    copy->part = LeafPart{};
    if (!before) copy->part = LeafPart{target.prefix, PlaceIn(copy->range, target.prefix), enough};
    copy->elements.clear();
    FetchLeaf(*At(copy->range.leaf), leaf_bytes_, copy->range.sorted, copy->part.place);
    CollectSorted(copy->range.leaf, &copy->part, &copy->elements);
  }

  // Fetches what CopyLeaf will look at first. REQUIRES: an epoch guard.
  template <class Target>
  void FetchLeafOf(const Target& target) const {
    const InnerNodes::Range range = inner_.Find(target);
    FetchLeaf(*At(range.leaf), leaf_bytes_, range.sorted, PlaceIn(range, target.prefix));
  }

  // < 0, 0, > 0 as the element is before, at, after the target in order.
  int Compare(const Element& element, const SearchKey& target) const;

  struct Stats {
    InnerNodes::Stats inner;
    uint64_t free_leaves = 0;
    uint64_t splits = 0;
    uint64_t replaces = 0;
    uint64_t merges = 0;
    bool from_image = false;  // the open needed no rebuild
  };
  Stats GetStats() const;

  // Whether the segment holds leaves or inner nodes of this tree. REQUIRES: no change is under way.
  bool Owns(const Segment* segment) const { return segment == image_segment_ || space_->Owns(segment); }
  // All segments of the tree come back, which so is gone. REQUIRES: nobody uses it any more; no other call follows.
  Status ReleaseSegments();

  // Cache lines that changes have flushed since the open.
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
  // The least and the greatest key word of a leaf, and Leaf::sorted().
  struct KeyWords {
    uint64_t least;
    uint64_t greatest;
    uint32_t sorted;
    bool empty;
  };
  Status FindImageSegment();
  Status ReleaseUnowned();
  bool LoadImage();
  Status ForgetImage();
  Status Rebuild(uint32_t threads);
  Status BuildFromList(const std::vector<PmPtr>& list, const std::function<KeyWords(PmPtr)>& words);
  Status ApplyToOneLeaf(std::span<const LeafChange> changes, size_t* applied);
  Status Reorganize(const SearchKey& at, const InnerNodes::Range& range, std::span<const LeafChange> changes);
  void MakeChanges(std::span<const LeafChange> changes, Step* step) const;
  void PlanPieces(Step* step) const;
  Status MakeLeaves(Step* step);
  Status Link(const SearchKey& at, Step* step, InnerNodes::Replacement* replacement);
  static Status NoMemory();
  Status Fail(Status status);
  Status Failure() const;

  Leaf* At(PmPtr leaf) const { return parts_.regions->Resolve<Leaf>(leaf); }
  bool IsValid(PmPtr leaf) const { return IsValidLeaf(*At(leaf), root_->tree_id, leaf, leaf_bytes_); }
  Latch* LatchOf(PmPtr leaf) const { return &latches_[Mix64(leaf.raw()) % latches_.size()]; }
  bool Less(const Element& a, const Element& b) const;
  bool SameKey(const Element& a, const Element& b) const;
  Separator Between(const Element& left, const Element& right) const;
  static double PlaceIn(const InnerNodes::Range& range, uint64_t key) {
    return PlaceInRange(key, range.low.prefix, range.is_last ? UINT64_MAX : range.high.prefix);
  }
  void CollectSorted(PmPtr leaf, LeafPart* part, std::vector<Element>* elements) const;
  void CollectSorted(PmPtr leaf, std::vector<Element>* elements) const {
    LeafPart all;
    CollectSorted(leaf, &all, elements);
  }

  const NvTreeParts parts_;
  NvTreeRoot* const root_;
  const uint32_t leaf_bytes_;
  std::shared_ptr<LeafSpace> space_;  // retired leaves hold it
  mutable std::array<Latch, 256> latches_;
  mutable std::mutex structure_mutex_;
  InnerNodes inner_;
  uint64_t splits_ = 0;
  uint64_t replaces_ = 0;
  uint64_t merges_ = 0;
  bool from_image_ = false;
  Segment* image_segment_ = nullptr;
  std::atomic<uint64_t> flushed_lines_{0};
  std::atomic<uint32_t> retired_{0};  // leaves, since Reclaim was called
  std::atomic<bool> failed_{false};
  Status failure_;  // under the mutex
};

template <class Visit, class OnLeaf>
void NvTree::VisitKey(const SearchKey& target, const Visit& visit, const OnLeaf& on_leaf) const {
  const auto compare = [&](const Element& element) { return Compare(element, target); };
  const auto fetch = [this](const Element& element) { parts_.keys->Prefetch(element); };
  InnerNodes::Range range = inner_.Find(target);
  const SeparatorRest* border = nullptr;  // what is before it was visited in the leaf before
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
    const double place = PlaceIn(range, target.prefix);
    FetchLeaf(leaf, leaf_bytes_, range.sorted, place);
    on_leaf(range.leaf);
    VisitLeaf(leaf, leaf_bytes_, target.prefix, place, compare, fetch, visit_once);
    // Versions of one key may be in several leaves.
    if (stopped || range.is_last || range.high.prefix != target.prefix || range.high.rest == nullptr) return;
    border = range.high.rest;
    if (parts_.order->Compare(border->key(), target.key) != 0) return;
    range = inner_.Find(range.high);
  }
}

}  // namespace braiddb
