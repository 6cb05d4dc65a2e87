// LeafTree: a B+-tree with leaves in persistent memory and inner nodes in DRAM. Base of the trees whose leaves differ: NvTree
// (NV-Tree, FAST '15) and LbEntryTree (LB+-Trees, VLDB '20).
//
// LAYOUT         LeafTreeRoot at the family's LevelPlace in region 0. Its link starts the list of leaves, which are in segments
//                of their own (index/leaf_space.h). Along the list, and except for empty leaves, all keys of a leaf are smaller
//                than all keys of the next one. Inner nodes (inner_nodes.h) are derived from the list.
// COMMIT POINT   A change within a leaf: see the kind of leaf. A split, replace or merge: the store of the link to the first new
//                leaf; a split in place: see the kind of leaf.
// PERSIST ORDER  P1 the complete new leaves; the last one links to the successor of the old ones  P2 the link, in the left
//                neighbor or in the root  P3 only then the space of the old leaves is reused. [CC-43]
// RECOVERY       The tree is the list that starts at the root. All other blocks in its segments are free. [CC-42] After a clean
//                close an image of the inner nodes exists, and its link is removed before the first change. [CC-44] Open persists
//                the root, what changes of leaves depend on, and the headers of their segments. [CC-46]
// CONCURRENCY    Readers take no latch. A writer holds the latch of the leaf that it changes. A split, replace or merge also
//                holds the structure mutex, which protects links and inner nodes, and the latch of the right sibling if that is
//                merged. No thread waits for a latch while it holds the mutex, so there is no deadlock. A reader may reach a leaf
//                that was replaced meanwhile. The leaf then still has its last contents, which are those at the moment of the
//                replacement and come before all later writes.
// LIFETIME       Old leaves and inner nodes are freed after all readers that may have reached them have left (epochs).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braiddb/status.h"
#include "index/leaf_space.h"
#include "index/level_place.h"
#include "index/link.h"
#include "leaf_tree/element.h"
#include "leaf_tree/inner_nodes.h"

namespace braiddb {

struct LeafTreeRoot {
  uint64_t magic;        //  0  of the kind of leaf
  uint64_t tree_id;      //  8  hash of the database's id, which is random, and of the family's number
  uint64_t leaf_bytes;   // 16
  uint64_t reserved[4];  // 24  zero
  uint64_t checksum;     // 56  XXH3 of bytes [0, 56)
  uint64_t first;        // 64  link to the first leaf
  uint64_t image;        // link to the image of the inner nodes (inner_image.h) after a clean close; 0: none
};
static_assert(sizeof(LeafTreeRoot) == 80 && offsetof(LeafTreeRoot, first) == 64);
static_assert(sizeof(LeafTreeRoot) <= LevelPlace::kBytes);

// Returns true if this is the valid root of a tree of this database and family (LevelPlace::number) with this magic number. Does
// not check the size of leaves.
bool IsLeafTreeRoot(const LeafTreeRoot& root, uint64_t magic, uint64_t database_id, uint64_t number);
// The owner of the link to the image. It differs from the owner of the link to the first leaf.
inline uint64_t ImageOwner(const LeafTreeRoot& root) { return ~root.tree_id; }

struct LeafTreeParts {
  RegionSet* regions;
  SegmentAllocator* segments;
  EpochManager* epochs;
  const KeyOrder* order;
  const ElementKeys* keys;
  LevelPlace place = {};
  // No other structure uses index segments, so the open releases those that are not this tree's.
  bool is_alone = true;
};

// Thread safety: all methods may be called concurrently after the open.
class LeafTree {
 public:
  virtual ~LeafTree();  // REQUIRES: no readers
  LeafTree(const LeafTree&) = delete;
  LeafTree& operator=(const LeafTree&) = delete;

  // Stores an image of the inner nodes for the next open, if there is space. REQUIRES: no other call is running or follows.
  Status Close();

  // Applies sorted changes durably, the changes of one leaf at a time. NoSpace, MemoryLimit: the changes from some leaf on are
  // not applied, or a part of those of one leaf. After a failed persist all later calls fail. REQUIRES: elements that NEGATIVE
  // changes remove are in the tree, other elements are not; no two elements are equal in order; and the thread holds no epoch
  // guard.
  Status Apply(std::span<const LeafChange> changes);

  // The leaf whose range contains the target. REQUIRES: an epoch guard while the range is used.
  InnerNodes::Range FindRange(const SearchKey& target) const { return inner_.Find(target); }

  // The elements of a part of one leaf, in order, and the leaf's range.
  struct LeafCopy {
    static constexpr uint64_t kToTheEnd = UINT64_MAX;

    std::vector<Element> elements;
    InnerNodes::Range range;
    // All elements are at or behind the target, or, if copied `before`, before it. At most `enough` were copied, those next to
    // the target.
    bool is_exact = false;
    // Not exact only: the elements are those with key words in [from, to).
    uint64_t from = 0;
    uint64_t to = kToTheEnd;
    bool is_cut = false;    // exact only: the leaf has more elements on the side away from the target
    bool cuts_key = false;  // the cut is between two versions of one key
    Element behind = {};    // the first element behind the cut: not copied; or, if copied `before`, the first copied one
    // The position of the cut. REQUIRES: is_cut, and the epoch guard of the copy.
    SearchKey Cut(const LeafTree& tree) const {
      const SearchKey key = tree.KeyOf(behind);
      return SearchKey(key.prefix, key.key, cuts_key ? key.sequence : kMaxSequence);
    }
  };
  // Copies the leaf whose range contains the target, from the target's key word on, at least `enough` elements or all. If
  // `before`: copies the whole last leaf whose range begins before the target. An exact copy has what LeafCopy::is_exact says.
  // REQUIRES: an epoch guard while the range is used.
  virtual void CopyLeaf(const SearchKey& target, bool before, LeafCopy* copy, uint32_t enough = kAllElements) const = 0;
  virtual void CopyLeaf(const Separator& target, bool before, LeafCopy* copy, uint32_t enough = kAllElements) const = 0;
  static constexpr uint32_t kAllElements = 256;  // no leaf has more

  // Prefetches the lines that CopyLeaf will read. REQUIRES: an epoch guard.
  virtual void FetchLeafOf(const SearchKey& target) const = 0;
  virtual void FetchLeafOf(const Separator& target) const = 0;

  // Calls `visit` for elements with the target's key word, until it returns kEnough. It visits at least all elements that have
  // the target's key and are at or behind the target, each once, in any order. If they are in several leaves, the visit is not
  // atomic. REQUIRES: an epoch guard.
  using Visitor = std::function<Visited(const Element&)>;
  virtual void VisitElements(const SearchKey& target, const Visitor& visit) const = 0;

  // The element's position in entry order. REQUIRES: the element was live when the caller's epoch guard began or later.
  SearchKey KeyOf(const Element& element) const { return parts_.keys->KeyOf(element); }
  // Result < 0, 0, > 0: the element is before, at, behind the target in entry order.
  int Compare(const Element& element, const SearchKey& target) const;

  struct Stats {
    InnerNodes::Stats inner;  // bytes: with what the kind of leaf has in DRAM
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

  // The number of elements. None: the image of an earlier version did not say it.
  std::optional<uint64_t> elements() const {
    return knows_elements_ ? std::optional(elements_.load(std::memory_order_relaxed)) : std::nullopt;
  }
  // Number of cache lines that changes have flushed since the open.
  uint64_t flushed_lines() const { return flushed_lines_.load(std::memory_order_relaxed); }

  EpochManager* epochs() const { return parts_.epochs; }
  uint32_t leaf_bytes() const { return leaf_bytes_; }
  // Of the kind of tree, for messages.
  const char* name() const { return name_; }

 protected:
  // `name`: of the kind, for messages. A string literal.
  LeafTree(const LeafTreeParts& parts, LeafTreeRoot* root, BlockStart start, const char* name);

  // Writes the root of an empty tree, durably, and allocates its first leaf. The caller writes the leaf and calls LinkFirst.
  static Status CreateRoot(RegionSet* regions, SegmentAllocator* segments, uint64_t magic, uint32_t leaf_bytes, BlockStart start,
                           const LevelPlace& place, LeafTreeRoot** root, PmPtr* first);
  // ORDER: the leaf before the link to it. [CC-43]
  static Status LinkFirst(RegionSet* regions, LeafTreeRoot* root, PmPtr first);
  // Reads the image of the inner nodes if the tree was closed, or rebuilds them from the leaves on `threads` threads. `verify`:
  // always rebuilds. Corruption if a rebuild finds a damaged link or leaf.
  Status Load(uint32_t threads, bool verify);

  // ---- The kind of leaf. Changes REQUIRE the latch of the leaf.

  // Elements that a leaf can have.
  virtual uint32_t Capacity() const = 0;
  // Elements that a leaf has, with those that are cancelled and still take space.
  virtual uint32_t UsedIn(PmPtr leaf) const = 0;
  // False if the leaf is damaged. Reads only the leaf.
  virtual bool IsValid(PmPtr leaf) const = 0;
  // The leaf's link to its successor. The owner of the link is the leaf's address.
  virtual uint64_t* LinkOf(PmPtr leaf) const = 0;
  // Appends the live elements of a leaf to *elements in entry order.
  virtual void CollectSorted(PmPtr leaf, std::vector<Element>* elements) const = 0;
  // Writes a leaf that is not linked yet and flushes its lines. `elements`: sorted, at most Capacity(). `high`: the end of the
  // leaf's range, null if it has none. Returns the leaf's hint (InnerNodes::Child).
  virtual uint32_t WriteLeaf(PmPtr place, const Separator& low, const Separator* high, std::span<const Element> elements,
                             PmPtr next) = 0;
  // True if Change can apply the changes to the leaf.
  virtual bool HasRoom(const InnerNodes::Range& range, std::span<const LeafChange> changes) const = 0;
  // Applies changes within a leaf, durably. Returns false if a persist failed. REQUIRES: HasRoom.
  [[nodiscard]] virtual bool Change(const InnerNodes::Range& range, std::span<const LeafChange> changes) = 0;

  // A split in place: the old leaf keeps its smaller elements. By default there is none.
  virtual bool SplitsInPlace(const InnerNodes::Range& /*range*/, std::span<const Element> /*elements*/) const { return false; }
  // P1: stores what does not count yet, and flushes it. `kept`: the elements that the leaf keeps.
  virtual void PrepareSplit(PmPtr /*leaf*/, std::span<const Element> /*kept*/, PmPtr /*next*/) {}
  // P2: one store publishes the split. Readers of the leaf wait from here until EndSplit.
  virtual void CommitSplit(PmPtr /*leaf*/) {}
  // Makes the store durable. Returns false if a persist failed.
  [[nodiscard]] virtual bool EndSplit(PmPtr /*leaf*/) { return true; }

  // Called after `old` was replaced by new leaves in the inner nodes.
  virtual void OnReplaced(PmPtr /*old*/, std::span<const InnerNodes::Child> /*children*/) {}
  // What frees the leaf's block, when no reader can reach it. May throw std::bad_alloc.
  virtual std::function<void()> Reclaimer(PmPtr leaf) const;
  // DRAM of the kind of leaf.
  virtual uint64_t ExtraBytes() const { return 0; }

  // What the scan of a block keeps: enough that the walk along the list need not read persistent memory.
  struct Scanned {
    uint64_t next = 0;  // link
    uint64_t least = 0;
    uint64_t greatest = 0;
    uint32_t hint = 0;
    uint32_t elements = 0;
    bool valid = false;
    bool empty = true;
    bool has_words = true;  // `least` and `greatest` are key words (KeyOrder::Prefix)
  };
  // Sets *found for a block, which may be free. Reads no entry.
  virtual void Scan(PmPtr place, Scanned* found) const = 0;
  // Flushes what a killed process may have stored without a flush.
  virtual void FlushFound(PmPtr leaf) const = 0;
  // The hint of a leaf that an open has found. `scanned`: what Scan has set.
  virtual uint32_t HintOf(PmPtr /*leaf*/, uint32_t scanned, const Separator& /*low*/, const Separator* /*high*/) const {
    return scanned;
  }

  // ---- For kinds of leaf.

  Persistence* persistence() const { return parts_.regions->persistence(); }
  // Entry order of elements, and whether two elements are versions of one key.
  bool Less(const Element& a, const Element& b) const;
  bool SameKey(const Element& a, const Element& b) const;
  void CountLines(uint64_t lines) { flushed_lines_.fetch_add(lines, std::memory_order_relaxed); }

  const LeafTreeParts parts_;
  LeafTreeRoot* const root_;
  const uint32_t leaf_bytes_;
  // Shared with the reclaimers of retired leaves.
  const std::shared_ptr<LeafSpace> space_;
  InnerNodes inner_;

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
  Status BuildFromList(const std::vector<PmPtr>& list, const std::function<const Scanned*(PmPtr)>& find);
  Status Damaged(const char* what) const;
  // Applies the first changes, those of one leaf. *applied: their number.
  Status ApplyToOneLeaf(std::span<const LeafChange> changes, size_t* applied);
  // Applies changes by a split, replace or merge. REQUIRES: the latch of the range's leaf is held.
  Status Reorganize(const SearchKey& at, const InnerNodes::Range& range, std::span<const LeafChange> changes);
  // The steps of Reorganize: computes the new elements, divides them into leaves, writes the leaves, links them.
  void TakeRightSibling(const SearchKey& at, LatchGuard* latch, Step* step);
  void MakeChanges(std::span<const LeafChange> changes, Step* step) const;
  void PlanPieces(Step* step) const;
  Status MakeLeaves(Step* step);
  Status Link(const SearchKey& at, Step* step, InnerNodes::Replacement* replacement);
  Status Split(Step* step, InnerNodes::Replacement* replacement);
  void Retire(const Step& step);
  // Errors. After Fail all changes return the first failure. REQUIRES for Fail and Failure: structure_mutex_ is held.
  Status NoMemory() const;
  Status Fail(Status status);
  Status Failure() const;

  // Latches are shared by the leaves with one hash, so their number is constant.
  Latch* LatchOf(PmPtr leaf) const { return &latches_[Mix64(leaf.raw()) % latches_.size()]; }
  // The separator of two neighboring leaves, from the last element of the left one and the first of the right one.
  Separator Between(const Element& left, const Element& right) const;

  const char* const name_;
  mutable std::array<Latch, 256> latches_;
  mutable std::mutex structure_mutex_;
  uint64_t splits_ = 0;
  uint64_t replaces_ = 0;
  uint64_t merges_ = 0;
  bool from_image_ = false;
  Segment* image_segment_ = nullptr;
  std::atomic<uint64_t> flushed_lines_{0};
  std::atomic<uint64_t> elements_{0};
  bool knows_elements_ = false;       // set by the open
  std::atomic<uint32_t> retired_{0};  // number of leaves retired since the last Reclaim
  std::atomic<bool> failed_{false};
  Status failure_;  // guarded by structure_mutex_
};

}  // namespace braiddb
