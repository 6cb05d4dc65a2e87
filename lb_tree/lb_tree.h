// LbTree: LB+-Tree (Liu, Chen, Wang: "LB+-Trees: Optimizing Persistent Index Performance on 3DXPoint Memory", VLDB '20): a
// B+-tree with leaves in persistent memory and inner nodes in DRAM. Keys and values have eight bytes, keys are unique.
//
// LAYOUT         LbTreeRoot at the tree's LevelPlace in region 0. Its link starts the list of leaves (lb_leaf.h), which are in
//                segments of their own (index/leaf_space.h). Along the list all keys of a leaf are smaller than all keys of the
//                next one. Inner nodes (lb_inner_nodes.h) are derived from the list.
// COMMIT POINT   One 8-byte store for each operation: word 0 of a leaf's block (insert, delete), the value (update), word 0 of
//                block 0 (split), the link to a leaf that became empty (removal of the leaf). An insert that splits a leaf
//                commits with the split if the key belongs to the new leaf; otherwise it is an insert after the split.
// PERSIST ORDER  In lb_leaf.h. Removal of a leaf: P1 the delete of its last entry  P2 the link of its left neighbor, or of the
//                root P3 only then its space is reused. [CC-73]
// RECOVERY       The tree is the list that starts at the root; no leaf needs a repair. All other blocks in its segments are free:
//                a new leaf that a crash has cut off, a removed leaf. So no space leaks. [CC-42] Open flushes the root and all
//                leaves, since what a killed process stored is visible and not necessarily durable. [CC-46]
// CONCURRENCY    Optimistic versions in place of hardware transactions: lb_inner_nodes.h has the argument. A writer holds the
//                lock of one leaf until its change is durable, so a reader never sees what a crash would take back. Writers of
//                different leaves run in parallel, except that the locks of leaves are shared by hash.
// LIFETIME       A removed leaf is reused at once: readers that are late find its version changed.
// AS A LAST LEVEL  levels/lb_tree/lb_entry_tree.h has the same leaves and another tree around them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "braiddb/status.h"
#include "index/leaf_space.h"
#include "index/level_place.h"
#include "index/link.h"
#include "lb_tree/lb_inner_nodes.h"
#include "lb_tree/lb_leaf.h"

namespace braiddb {

struct LbTreeRoot {
  static constexpr uint64_t kMagic = 0x31544c44'41524221;  // "!BRADLT1"

  uint64_t magic;        //  0
  uint64_t tree_id;      //  8  hash of the database's id, which is random, and of the family's number
  uint64_t leaf_bytes;   // 16
  uint64_t reserved[4];  // 24  zero
  uint64_t checksum;     // 56  XXH3 of bytes [0, 56)
  uint64_t first;        // 64  link to the first leaf; its owner is tree_id
};
static_assert(sizeof(LbTreeRoot) == 72 && offsetof(LbTreeRoot, first) == 64);
static_assert(sizeof(LbTreeRoot) <= LevelPlace::kBytes);

struct LbTreeParts {
  RegionSet* regions;
  SegmentAllocator* segments;
  LevelPlace place = {};
  bool move_entries = true;  // false: inserts move no entries (for comparison)
};

// Thread safety: all methods may be called concurrently after Open returned, except BulkLoad.
class LbTree {
 public:
  // Creates an empty tree. InvalidArgument if `leaf_bytes` is not a multiple of 256 up to 4096.
  static Status Create(RegionSet* regions, SegmentAllocator* segments, uint32_t leaf_bytes, const LevelPlace& place = {});
  // Reads the leaves on `threads` threads and builds the inner nodes. Corruption if the root, a link or a leaf is damaged.
  static Status Open(const LbTreeParts& parts, uint32_t threads, std::unique_ptr<LbTree>* result);

  // Fills the empty tree: `fill` (0 < fill <= 1) of each leaf's slots. Durable when it returns; after a crash the tree is empty
  // or has all entries. REQUIRES: keys ascend, and no other call is running. InvalidArgument: the tree is not empty.
  Status BulkLoad(std::span<const LbEntry> entries, double fill, uint32_t threads);

  // Changes, durable when they return. NoSpace, MemoryLimit: nothing has changed. After a failed persist all later changes fail.
  Status Put(uint64_t key, uint64_t value);     // inserts the key or replaces its value
  Status Update(uint64_t key, uint64_t value);  // NotFound if the key is missing
  Status Remove(uint64_t key);                  // NotFound if the key is missing

  // Returns true and sets *value if the tree has the key.
  bool Get(uint64_t key, uint64_t* value) const;

  // A copy of a leaf's entries, in order, as of one moment. The leaf's range is at least [low, high), and keys outside of it are
  // not copied: if a neighbor is removed meanwhile, the leaf gets the neighbor's range too.
  struct LeafCopy {
    std::vector<LbEntry> entries;
    uint64_t low = 0;
    uint64_t high = 0;
    bool is_first = false;  // the range has no lower end
    bool is_last = false;   // the range has no upper end
  };
  // Copies the leaf whose range contains the key.
  void CopyLeaf(uint64_t key, LeafCopy* copy) const { CopyRange(key, false, copy); }
  // The same without smaller keys. A scan goes on with CopyLeafFrom(high).
  void CopyLeafFrom(uint64_t key, LeafCopy* copy) const;
  // Copies the last leaf whose range begins before the key, without the key and larger ones. A scan backwards goes on with
  // CopyLeafBefore(low).
  void CopyLeafBefore(uint64_t key, LeafCopy* copy) const;

  struct Stats {
    LbInnerNodes::Stats inner;
    uint64_t free_leaves = 0;
    uint64_t splits = 0;
    uint64_t removals = 0;  // of leaves that became empty
  };
  Stats GetStats() const;

  // Returns true if the segment has leaves of this tree. REQUIRES: no change is running.
  bool Owns(const Segment* segment) const { return space_.Owns(segment); }
  uint32_t leaf_bytes() const { return leaf_bytes_; }

 private:
  LbTree(const LbTreeParts& parts, LbTreeRoot* root);

  LbLeaf At(PmPtr leaf) const { return LbLeaf(parts_.regions->Resolve<uint64_t>(leaf), leaf_bytes_ / kLbBlockBytes); }
  uint64_t LinkOwner(PmPtr leaf) const { return leaf.raw() ^ root_->tree_id; }
  uint64_t LinkFrom(PmPtr leaf, PmPtr to) const { return MakeLink(LinkOwner(leaf), to); }
  Persistence* persistence() const { return parts_.regions->persistence(); }

  // rebuild.cc
  Status Rebuild(uint32_t threads);
  Status FindLeaves(uint32_t threads, std::vector<LbInnerNodes::Child>* leaves);

  // Takes the lock of the key's leaf. *position: that of the key, -1 if it is missing.
  LbInnerNodes::LeafAt LockLeaf(uint64_t key, int* position) const;
  // The same for a key that is there. Otherwise NotFound, or the error of a failed persist, without the lock.
  Status LockEntry(uint64_t key, LbInnerNodes::LeafAt* at, int* position) const;
  VersionLock* LockOf(PmPtr leaf) const { return locks_->Of(leaf); }
  // Splits the leaf, with the new entry in the new leaf if it belongs there. *has_entry: it does. If the leaf has changed since
  // `at`, nothing is done.
  Status Split(const LbInnerNodes::LeafAt& at, const LbEntry& entry, bool* has_entry);
  Status SplitLocked(PmPtr leaf, PmPtr right, const LbEntry& entry, uint64_t* low, bool* has_entry, bool* is_split);
  Status RemoveEmptyLeaf(uint64_t key);
  // Replaces the link of the leaf `left`, or that of the root if it is null, durably. False: a persist failed.
  [[nodiscard]] bool Relink(PmPtr left, PmPtr to);
  void CopyRange(uint64_t key, bool before, LeafCopy* copy) const;
  static Status NoMemory();

  const LbTreeParts parts_;
  LbTreeRoot* const root_;
  const uint32_t leaf_bytes_;
  LeafSpace space_;
  const std::unique_ptr<LeafLocks> locks_ = std::make_unique<LeafLocks>();
  LbInnerNodes inner_;
  std::atomic<uint64_t> splits_{0};
  std::atomic<uint64_t> removals_{0};
};

}  // namespace braiddb
