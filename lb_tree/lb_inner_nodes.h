// LbInnerNodes: the inner nodes of LB+-Tree: a B+-tree in DRAM over the leaves, with optimistic versions.
//
// WHAT REPLACES TRANSACTIONAL MEMORY  The paper walks to the leaf and sets lock bits in one hardware transaction, which most CPUs
//     have switched off. Here each inner node has a VersionLock, and so has each leaf (LeafLocks). A thread that goes from a node
//     to a child loads the child's version, and only then checks that the node's version is still current (optimistic lock
//     coupling: Leis et al., "The ART of Practical Synchronization", DaMoN '16).
// WHY IT IS RIGHT  (1) When the check passes, the child was in the node while its version was loaded. By induction from the root,
//     which stays in place, the leaf was the leaf of the key at that moment. (2) Each split or removal of a leaf takes the leaf's
//     lock, so it changes the version. So a reader that finds the leaf's version current after it has read, read a leaf that
//     still was the key's. A writer that takes the lock by TryLock(version) knows the same, and keeps others out until it
//     unlocks. The transaction would have guaranteed no more. (3) A thread follows a child pointer only after a check of the
//     node's version, so it never follows a torn one. Nodes return to a pool and leaves to their segments, both of which stay
//     mapped. A thread that is late therefore reads valid memory, and its check fails, since the node or leaf was locked when it
//     was removed.
// DEADLOCKS  Splits take locks by TryLock only. A removal waits for locks of inner nodes from the root downwards, one removal at
//     a time, and takes locks of leaves by TryLock.
// MEMORY     Nodes of 512 bytes, 31 children each; the pool grows, and is freed with the tree.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "lb_tree/version_lock.h"
#include "pmem/pm_ptr.h"
#include "pmem/region_set.h"

namespace braiddb {

// The locks of leaves, shared by the leaves with one hash: a constant number, and nothing volatile on media.
class LeafLocks {
 public:
  VersionLock* Of(PmPtr leaf) { return &locks_[leaf.raw() / 256 * 0x9e3779b97f4a7c15ull >> (64 - kBits)]; }

 private:
  static constexpr int kBits = 13;
  std::array<VersionLock, size_t{1} << kBits> locks_;
};

// Thread safety: all methods but Build may be called concurrently.
class LbInnerNodes {
 public:
  LbInnerNodes(const RegionSet* regions, LeafLocks* locks, uint32_t leaf_bytes);
  ~LbInnerNodes();

  struct Child {
    uint64_t low;  // no key of the leaf is smaller, except in the first leaf
    PmPtr leaf;
  };
  // Builds the nodes for the leaves, level by level on `threads` threads. REQUIRES: there is a leaf, and no other thread uses the
  // tree. Throws std::bad_alloc.
  void Build(std::span<const Child> leaves, uint32_t threads);

  struct LeafAt {
    PmPtr leaf;
    uint64_t version = 0;  // of the leaf's lock, when the leaf was that of the key
  };
  // The leaf of the key. Prefetches it.
  LeafAt Find(uint64_t key) const;
  // The same with a range [low, high) that is the leaf's, or a part of it if a neighbor is removed meanwhile. `before`: of the
  // last leaf whose range begins before the key.
  struct Range : LeafAt {
    uint64_t low = 0, high = 0;
    bool is_first = true, is_last = true;  // there is no smaller, or no larger leaf; then low or high has no meaning
  };
  Range FindRange(uint64_t key, bool before) const;

  // Takes the locks of the leaf and of its parent, which has room for one more child then. Returns the parent; null if the leaf
  // has changed. Throws std::bad_alloc, without locks.
  class Node;
  Node* LockForSplit(uint64_t key, const LeafAt& at);
  // Adds the leaf behind the one of `key`, and unlocks the parent.
  static void AddChild(Node* parent, uint64_t key, uint64_t low, PmPtr leaf);
  static void UnlockUnchanged(Node* parent);

  // Takes the locks that a removal of the key's leaf needs: of inner nodes and of the leaf and its left neighbor.
  class Removal;

  struct Stats {
    uint64_t bytes = 0;
    uint32_t levels = 0;
  };
  Stats GetStats() const;

 private:
  class Pool;
  // They do nothing if a version is not current any more.
  void SplitChild(Node* parent, uint64_t version, Node* child, uint64_t child_version);
  void SplitRoot(uint64_t version);
  // A child of a node: a Node* or a leaf.
  struct Item {
    uint64_t low;
    uint64_t child;
  };
  void BuildLevel(std::span<const Item> children, uint32_t level, uint32_t threads, std::vector<Item>* parents);
  void PrefetchLeaf(PmPtr leaf) const;

  const RegionSet* const regions_;
  LeafLocks* const locks_;
  const uint32_t leaf_bytes_;
  std::unique_ptr<Pool> pool_;
  Node* root_;  // never changes
  std::mutex removal_mutex_;
};

// One removal of a leaf. The destructor releases all locks.
//
// USE  if (removal.Lock(key) == kLocked) { make the leaf unreachable, durably; removal.Commit(); }
class LbInnerNodes::Removal {
 public:
  explicit Removal(LbInnerNodes* nodes) : nodes_(nodes), only_one_(nodes->removal_mutex_) {}
  ~Removal();
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;

  // kBusy: another thread holds the lock of a leaf, so the caller releases all locks and tries again. kOnlyLeaf: the tree has no
  // other leaf.
  enum class Locked { kLocked, kBusy, kOnlyLeaf };
  Locked Lock(uint64_t key);
  PmPtr leaf() const { return leaf_; }
  PmPtr left() const { return left_; }  // null: there is none
  // Removes the leaf from the inner nodes, and the nodes that have no children any more.
  void Commit();

 private:
  struct Step {
    Node* node;
    uint32_t child;
  };
  void Take(Node* node, uint32_t child);
  void Collapse();

  LbInnerNodes* const nodes_;
  std::lock_guard<std::mutex> only_one_;
  std::vector<Step> path_;     // from the root to the leaf's parent
  size_t locked_from_ = 0;     // nodes of the path before it are not locked any more
  std::vector<Node*> beside_;  // nodes on the path to the left neighbor, locked
  PmPtr leaf_, left_;
  VersionLock* leaf_lock_ = nullptr;
  VersionLock* left_lock_ = nullptr;  // null if it is also the leaf's
  bool is_removed_ = false;
};

}  // namespace braiddb
