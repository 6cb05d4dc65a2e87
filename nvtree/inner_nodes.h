// InnerNodes: the inner nodes of NV-Tree (IN, PLN): from a key to the leaf whose range it is in (NV-Tree, FAST '15, 3.1 and
// 3.2.5).
//
// DRAM only, and made from the leaves whenever it is lost. Two parts:
//
//     levels (IN)   sorted separators in contiguous arrays without pointers: element i of a level is above elements 16 i …
//                   16 i + 15 of the level below. Never changed: replaced as a whole by a rebuild.
//     parents (PLN) up to kParentSlots leaves in order, with the separators between them. Changed in place.
//
// As published, a PLN never splits: when one is full, everything is rebuilt with one leaf per PLN. Keys that arrive in order
// then fill one PLN again and again, each time for a rebuild of everything. Here a full PLN hands half of its leaves to a
// new one, to its right, which readers reach through it (as in Lehman and Yao, TODS '81: a PLN knows where its range ends,
// and its right neighbor), until a rebuild of the levels alone takes it up: after a 16th of the PLNs is new, or a walk to
// the right becomes long. So a rebuild is small against what causes it, and PLNs are at least half full after splits: DRAM
// stays in proportion to leaves. docs/design/0004-nvtree.md has the figures.
//
// CONCURRENCY  Changes by one thread at a time. Readers take no latch: levels and what leaves the structure are retired through
//              epochs; a PLN has a version that is odd while it changes, and a reader that saw it change reads it again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "braiddb/status.h"
#include "nvtree/leaf.h"
#include "nvtree/separator.h"
#include "pmem/pm_ptr.h"
#include "util/epoch.h"
#include "util/huge_array.h"

namespace braiddb {

class InnerNodes {
 public:
  static constexpr uint32_t kParentSlots = 32;
  static constexpr uint32_t kFanout = 16;

  // A leaf and where its range begins. The separator's rest belongs to the inner nodes once it was given to them.
  struct Child {
    Separator low;
    PmPtr leaf;
    uint32_t sorted = 0;  // Leaf::sorted(), less than 2^8, or 0 if it is not known: only a hint, for FetchLeaf

    // Leaf and hint in one word.
    uint64_t word() const { return uint64_t{sorted} << kHintShift | leaf.raw(); }
  };
  static constexpr int kHintShift = 56;
  static_assert(kMaxRegions <= 1u << (kHintShift - PmPtr::kRegionShift) && Leaf::kMaxElements < 1u << (64 - kHintShift));
  static PmPtr LeafOf(uint64_t word) { return PmPtr(word & ((uint64_t{1} << kHintShift) - 1)); }
  static uint32_t HintOf(uint64_t word) { return static_cast<uint32_t>(word >> kHintShift); }
  // Children that are being put together: what is new of them is deleted if it is not given away.
  class NewChildren {
   public:
    NewChildren() = default;
    ~NewChildren() {
      for (const SeparatorRest* rest : rests_) DeleteSeparatorRest(rest);
    }
    NewChildren(const NewChildren&) = delete;
    NewChildren& operator=(const NewChildren&) = delete;

    void Reserve(size_t count) {
      children_.reserve(count);
      rests_.reserve(count);
    }
    // REQUIRES: reserved.
    void AddKnown(const Child& child) { children_.push_back(child); }
    void Add(const Child& child) {
      children_.push_back(child);
      if (child.low.rest != nullptr) rests_.push_back(child.low.rest);
    }
    // To the inner nodes.
    void Give() { rests_.clear(); }

    std::span<Child> all() { return children_; }
    std::span<const Child> all() const { return children_; }
    size_t size() const { return children_.size(); }

   private:
    std::vector<Child> children_;
    std::vector<const SeparatorRest*> rests_;
  };

  // What a search finds. The separators are good for as long as the caller's epoch guard.
  struct Range {
    PmPtr leaf;
    uint32_t sorted = 0;  // as in Child
    Separator low;
    Separator high;        // where the next leaf's range begins
    bool is_last = false;  // there is none
  };

  InnerNodes(const KeyOrder* order, EpochManager* epochs) : order_(order), epochs_(epochs) {}
  ~InnerNodes();  // REQUIRES: no readers
  InnerNodes(const InnerNodes&) = delete;
  InnerNodes& operator=(const InnerNodes&) = delete;

  // ---- Readers. REQUIRES: an epoch guard, and that Build was called.

  // The leaf whose range the target is in.
  Range Find(const SearchKey& target) const { return Search<false>(target); }
  Range Find(const Separator& target) const { return Search<false>(target); }
  // The last leaf whose range begins before the target; the first leaf if there is none.
  Range FindBefore(const SearchKey& target) const { return Search<true>(target); }
  Range FindBefore(const Separator& target) const { return Search<true>(target); }

  // ---- Changes. REQUIRES: one thread at a time, with an epoch guard. They throw std::bad_alloc before they change anything.

  // Takes the place of all there was. At least one child, in order; the range of the first begins before all keys. The rests of
  // children that were there already must be the same.
  void Build(std::span<const Child> children);
  // The leaf of the range that `at` is in, and those behind it in the same PLN: at most `count`.
  std::vector<Child> Neighbors(const SearchKey& at, uint32_t count) const;
  // The leaf to the left of the one of the range that `at` is in; null if that is the first.
  PmPtr LeftOf(const SearchKey& at) const;
  // Puts `children` in the place of Neighbors(at, count), which are that many; the first of them begins where the first of
  // those does. The rests of the others are given up. In two steps, of which the second cannot fail: what is published
  // between them need not be taken back. REQUIRES: no other change between them.
  class Replacement;
  Replacement Prepare(const SearchKey& at, uint32_t count, std::span<const Child> children);
  void Commit(Replacement* replacement) noexcept;
  // Rebuilds everything from the PLNs if these have become nearly empty. Whether it did.
  bool Shrink();

  // All leaves in order.
  std::vector<Child> Children() const;

  struct Stats {
    uint64_t leaves = 0;
    uint64_t parents = 0;      // PLNs
    uint64_t rebuilds = 0;     // of the levels, or of everything
    uint64_t full_builds = 0;  // of everything
    uint64_t rebuild_ns = 0;   // in all of them
    uint64_t bytes = 0;        // of DRAM
  };
  // As for changes.
  Stats GetStats() const;

 private:
  using ParentId = uint32_t;
  static constexpr ParentId kNone = ~ParentId{0};
  // How many of its slots a PLN has in use after Build, and after one that is filled in order was split.
  static constexpr uint32_t kBuildFill = kParentSlots / 2;
  static constexpr uint32_t kOrderedFill = kParentSlots - 4;
  // Shrink rebuilds if PLNs have fewer leaves than this on average.
  static constexpr uint32_t kShrinkBelow = kParentSlots / 8;
  // A rebuild of the levels is due after so many steps to the right, or when one in so many PLNs is new.
  static constexpr uint32_t kMaxMoves = 4;
  static constexpr uint64_t kNewParents = 16;

  // Words are loaded with acquire and stored with release, between two changes of `version`. Where eight bytes of the keys
  // decide between all neighbors, `rest` is not touched.
  struct alignas(64) Parent {
    uint64_t version;  // odd: it is being changed
    uint64_t count;
    uint64_t next;  // ParentId
    Separator high;
    uint64_t rests;  // of `rest`, those that are not null
    uint64_t prefix[kParentSlots];
    uint64_t leaf[kParentSlots];  // Child::word
    const SeparatorRest* rest[kParentSlots];

    Child child(uint64_t i) const { return {{prefix[i], rest[i]}, LeafOf(leaf[i]), HintOf(leaf[i])}; }
  };
  struct Levels;
  struct Generation;

  template <bool kStrict, class Target>
  Range Search(const Target& target) const;
  template <bool kStrict, class Target>
  ParentId Descend(const Levels& levels, const Target& target) const;
  // The PLN whose range `at` is in. *moves: steps to the right.
  Parent* Locate(const SearchKey& at, uint32_t* slot, uint32_t* moves) const;
  void RebuildLevels();
  void RetireGivenUp() noexcept;
  static void Fill(Parent* parent, std::span<const Child> children, uint64_t next, const Separator& high);

  const KeyOrder* const order_;
  EpochManager* const epochs_;
  std::atomic<Generation*> generation_{nullptr};
  std::vector<std::function<void()>> given_up_;  // reclaims what readers may still see, and is not retired yet
  Stats stats_;
};

// A change of one PLN, and the new PLNs to its right that it takes, which nobody reaches yet.
class InnerNodes::Replacement {
 private:
  friend class InnerNodes;
  Parent* parent = nullptr;
  uint32_t slot = 0;
  uint32_t count = 0;       // children that go
  uint64_t children = 0;    // … that come
  uint64_t rest_bytes = 0;  // of these
  std::vector<Child> left;  // all that the PLN has then
  uint64_t next = 0;
  Separator high;
  uint64_t new_parents = 0;
  bool rebuild = false;  // of the levels is due
};

}  // namespace braiddb
