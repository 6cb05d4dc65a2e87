// InnerNodes: inner nodes in DRAM, as NV-Tree has them (IN, PLN). They map a key to the leaf whose range contains it (NV-Tree,
// FAST '15, 3.1 and 3.2.5).
//
// LAYOUT       DRAM only, rebuilt from the leaves when lost. Two parts:
//
//     levels (IN)   sorted separators in contiguous arrays without pointers: element i of a level covers the elements 16 i …
//                   16 i + 15 of the level below. Immutable: a rebuild replaces all levels.
//     parents (PLN) up to kParentSlots leaves in order, with the separators between them. Changed in place.
//
// SPLITS       A full PLN moves half of its leaves to a new PLN on its right. Readers reach the new PLN through the old one,
//              which stores the end of its range and its right neighbor (as in Lehman and Yao, TODS '81). A rebuild of the levels
//              alone adds the new PLNs to the levels. It is due when a 16th of the PLNs is new or when a walk to the right
//              becomes long. The cost of a rebuild is therefore small against the number of splits before it.
//              FILL  A split in the middle of a PLN leaves two PLNs of at least half their slots. A split at its end, where keys
//              probably arrive in order, leaves kOrderedFill leaves and the few others. Merges of leaves empty slots, and PLNs
//              are not merged; a full build (Shrink) replaces PLNs that have less than kShrinkBelow leaves on average. DRAM is
//              therefore proportional to the number of leaves.
//              The NV-Tree paper never splits a PLN: a full PLN causes a rebuild of everything with one leaf per PLN. Keys that
//              arrive in order then fill one PLN again and again, and each time cause a full rebuild. See
//              docs/design/0004-nvtree.md.
// WHAT IS COMPARED  Words of eight bytes. A node whose keys all begin with the same bytes stores that number of bytes, and the
//              eight bytes behind them of each separator (separator.h). The node's range says that a target begins alike: the
//              descent has compared it with the separators left and right. Only nodes at an end of a level, and the first and
//              the last PLN, have no border on one side; there the bytes are compared with those of one separator. If no
//              separator has a rest, words are prefixes and nothing is skipped.
// FALLBACK     If the separator that was found has the target's word, entire separators with that word are compared: one if the
//              separator is not behind the target, otherwise log2 of their number. With a comparator of the user's all words
//              are equal, so that every search is a binary search over entire separators.
// COST         In cache misses: one node of two lines per level, of which only the lowest is not in the CPU's caches; a line
//              with the PLN's number; the PLN's header, its words in parallel, and one line each of its leaves and rests. After
//              a split, until the next rebuild of the levels, one separator more.
// CONCURRENCY  One thread at a time changes the nodes. Readers take no latch. Levels and removed nodes are retired through
//              epochs. A PLN has a version, which is odd during a change. A reader that finds a changed version reads the PLN
//              again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "braiddb/status.h"
#include "leaf_tree/separator.h"
#include "pmem/pm_ptr.h"
#include "pmem/region_set.h"
#include "util/epoch.h"
#include "util/huge_array.h"

namespace braiddb {

class InnerNodes {
 public:
  static constexpr uint32_t kParentSlots = 32;
  static constexpr uint32_t kFanout = 16;

  // A leaf and the start of its range. The inner nodes own the separator's rest once it was given to them.
  struct Child {
    Separator low;
    PmPtr leaf;
    uint32_t hint = 0;  // what the tree wants to know of the leaf before it reads it, less than 2^8; 0: unknown

    // The leaf and the hint in one word.
    uint64_t word() const { return uint64_t{hint} << kHintShift | leaf.raw(); }
  };
  static constexpr int kHintShift = 56;
  static constexpr uint32_t kMaxHint = (1u << (64 - kHintShift)) - 1;
  static_assert(kMaxRegions <= 1u << (kHintShift - PmPtr::kRegionShift));
  static PmPtr LeafOf(uint64_t word) { return PmPtr(word & ((uint64_t{1} << kHintShift) - 1)); }
  static uint32_t HintOf(uint64_t word) { return static_cast<uint32_t>(word >> kHintShift); }
  // A list of children under construction. The destructor deletes the new separator rests unless Give was called.
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
    // REQUIRES: Reserve was called with a sufficient count. AddKnown: the inner nodes own the rest already.
    void AddKnown(const Child& child) { children_.push_back(child); }
    void Add(const Child& child) {
      children_.push_back(child);
      if (child.low.rest != nullptr) rests_.push_back(child.low.rest);
    }
    // Passes the ownership of the rests to the inner nodes.
    void Give() { rests_.clear(); }

    std::span<Child> all() { return children_; }
    std::span<const Child> all() const { return children_; }
    size_t size() const { return children_.size(); }

   private:
    std::vector<Child> children_;
    std::vector<const SeparatorRest*> rests_;
  };

  // The result of a search. The separators are valid as long as the caller's epoch guard.
  struct Range {
    PmPtr leaf;
    uint32_t hint = 0;  // as in Child
    Separator low;
    Separator high;        // the start of the next leaf's range
    bool is_last = false;  // the range has no end

   private:
    friend class InnerNodes;
    // Of the PLN that the range is from.
    const void* generation = nullptr;
    const uint64_t* version_at = nullptr;
    uint64_t version = 0;
  };

  InnerNodes(const KeyOrder* order, EpochManager* epochs) : order_(order), epochs_(epochs) {}
  ~InnerNodes();  // REQUIRES: no readers
  InnerNodes(const InnerNodes&) = delete;
  InnerNodes& operator=(const InnerNodes&) = delete;

  // ---- Readers. REQUIRES: an epoch guard, and that Build was called.

  // The leaf whose range contains the target.
  Range Find(const SearchKey& target) const { return Search<false>(target); }
  Range Find(const Separator& target) const { return Search<false>(target); }
  // The last leaf whose range begins before the target; the first leaf if there is none.
  Range FindBefore(const SearchKey& target) const { return Search<true>(target); }
  Range FindBefore(const Separator& target) const { return Search<true>(target); }

  // True if a search would still find the range, as at each moment since the search that found it. False: the range or one near
  // it may have changed. REQUIRES: the epoch guard of the search.
  bool IsCurrent(const Range& range) const {
    // acquire: a reader that sees what came with a change of the PLN also sees the change of its version.
    return generation_.load(std::memory_order_acquire) == range.generation && LoadAcquire(range.version_at) == range.version;
  }

  // ---- Changes. REQUIRES: one thread at a time, with an epoch guard. If they throw std::bad_alloc, nothing has changed.

  // Replaces all nodes. `children`: at least one, in order; the first one's range begins before all keys. A child that was
  // present before must have the same rest.
  void Build(std::span<const Child> children);
  // At most `count` leaves: the leaf whose range contains `at`, and its successors in the same PLN.
  std::vector<Child> Neighbors(const SearchKey& at, uint32_t count) const;
  // The predecessor of the leaf whose range contains `at`; null if that leaf is the first.
  PmPtr LeftOf(const SearchKey& at) const;
  // Replaces Neighbors(at, count), which must be `count` leaves, by `children`. The first child begins where the first replaced
  // one does. The rests of the other replaced leaves are retired. Prepare allocates all memory; Commit cannot fail. A caller can
  // therefore publish on media between the two without the need to undo. REQUIRES: no other change between them.
  class Replacement;
  Replacement Prepare(const SearchKey& at, uint32_t count, std::span<const Child> children);
  void Commit(Replacement* replacement) noexcept;
  // Rebuilds the levels if that is due after the replacement. Called after Commit, before the next change.
  void Settle(const Replacement& replacement) noexcept;
  // Rebuilds everything from the PLNs if these are nearly empty. Returns true if it did.
  bool Shrink();

  // All leaves in order.
  std::vector<Child> Children() const;

  struct Stats {
    uint64_t leaves = 0;
    uint64_t parents = 0;      // PLNs
    uint64_t rebuilds = 0;     // of the levels, or full builds
    uint64_t full_builds = 0;  // of levels and PLNs
    uint64_t rebuild_ns = 0;   // total time of rebuilds
    uint64_t bytes = 0;        // DRAM
  };
  // REQUIRES: as for changes.
  Stats GetStats() const;

 private:
  using ParentId = uint32_t;
  static constexpr ParentId kNone = ~ParentId{0};
  // Slots in use per PLN after Build, and after a split of a PLN that is filled in order.
  static constexpr uint32_t kBuildFill = kParentSlots / 2;
  static constexpr uint32_t kOrderedFill = kParentSlots - 4;
  // Shrink rebuilds if PLNs have fewer leaves than this on average.
  static constexpr uint32_t kShrinkBelow = kParentSlots / 8;
  // A rebuild of the levels is due after this number of steps to the right, or when one PLN in kNewParents is new.
  static constexpr uint32_t kMaxMoves = 4;
  static constexpr uint64_t kNewParents = 16;

  // What the separators of a node have in common, except the first one. `bytes`: the number of bytes with which all their keys
  // begin; 0 if none has a rest. `is_open`: the node has no border on one side, so a target need not begin with these bytes.
  struct Common {
    uint32_t bytes = 0;
    bool is_open = true;
    bool has_rests = false;

    uint64_t word() const { return uint64_t{bytes} << 2 | uint64_t{is_open} << 1 | uint64_t{has_rests}; }
    static Common Of(uint64_t word) { return {static_cast<uint32_t>(word >> 2), (word & 2) != 0, (word & 1) != 0}; }
  };
  // Words are loaded with acquire and stored with release, between two changes of `version`. If no separator has a rest, `rest`
  // is not read, which saves its cache lines.
  struct alignas(64) Parent {
    uint64_t version;  // odd during a change
    uint64_t count;
    uint64_t next;  // ParentId
    Separator high;
    uint64_t common;      // Common::word
    uint64_t low_prefix;  // of the first separator
    uint64_t base;        // prefix of the last separator; all but the first separator begin with its first Common::bytes bytes
    uint64_t word[kParentSlots];  // WordBehind of the separators, behind Common::bytes bytes; the first one's is not used
    uint64_t leaf[kParentSlots];  // Child::word
    const SeparatorRest* rest[kParentSlots];

    Separator low(uint64_t i) const { return {PrefixOf(i, word[i], Common::Of(common).bytes, low_prefix, base), rest[i]}; }
    Child child(uint64_t i) const { return {low(i), LeafOf(leaf[i]), HintOf(leaf[i])}; }
  };
  // The prefix of separator i of a PLN.
  static uint64_t PrefixOf(uint64_t i, uint64_t word, uint32_t skip, uint64_t low_prefix, uint64_t base) {
    if (i == 0) return low_prefix;
    if (skip == 0) return word;
    if (skip >= sizeof(base)) return base;
    return (base & ~(~uint64_t{0} >> (8 * skip))) | word >> (8 * skip);
  }
  struct Levels;
  struct Generation;

  template <bool kStrict, class Target>
  Range Search(const Target& target) const;
  // A PLN, and the rest of the separator that ended its range when the levels were built; null: unknown, or it has none.
  struct Descent {
    ParentId parent;
    const SeparatorRest* next_rest;
  };
  template <bool kStrict, class Target>
  Descent Descend(const Levels& levels, const Target& target) const;
  // The last of a node's `count` separators that the target reaches. `last_not_above(word)`: the last separator whose word is not
  // above, 0 if none. `word_of(i)`, `rest_of(i)`: of separator i > 0. REQUIRES: the target reaches the first separator.
  template <bool kStrict, class Target, class LastNotAbove, class WordOf, class RestOf>
  size_t SlotOf(Common common, uint64_t base, size_t count, const Target& target, const LastNotAbove& last_not_above,
                const WordOf& word_of, const RestOf& rest_of) const;
  // The PLN whose range contains `at`, and the slot. *moves: number of steps to the right.
  Parent* Locate(const SearchKey& at, uint32_t* slot, uint32_t* moves) const;
  void RebuildLevels();
  void RetireGivenUp() noexcept;
  void Fill(Parent* parent, std::span<const Child> children, uint64_t next, const Separator& high, bool is_first) const;
  // Of a node with the separators low(0) … low(count - 1). `high`: the end of its range, or null. `is_first`: before all others.
  template <class LowAt>
  static Common CommonOf(const KeyOrder& order, size_t count, const LowAt& low, const Separator* high, bool is_first);

  const KeyOrder* const order_;
  EpochManager* const epochs_;
  std::atomic<Generation*> generation_{nullptr};
  std::vector<std::function<void()>> given_up_;  // deleters of what readers may still see; not passed to the epochs yet
  Stats stats_;
};

// A prepared change of one PLN, and its new right neighbors, which no reader can reach yet.
class InnerNodes::Replacement {
 private:
  friend class InnerNodes;
  Parent* parent = nullptr;
  uint32_t slot = 0;
  uint32_t count = 0;       // number of children that are removed
  uint64_t children = 0;    // number of children that are added
  uint64_t rest_bytes = 0;  // bytes of the rests of the added children
  std::vector<Child> left;  // all children of the PLN after the change
  uint64_t next = 0;
  Separator high;
  uint64_t new_parents = 0;
  bool rebuild = false;  // a rebuild of the levels is due
};

}  // namespace braiddb
