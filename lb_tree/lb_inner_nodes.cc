#include "lb_tree/lb_inner_nodes.h"

#include <algorithm>

#include "lb_tree/lb_inner_node.h"
#include "lb_tree/lb_leaf.h"
#include "util/run_parallel.h"

namespace braiddb {
namespace {

// Children of a node that Build makes: room for splits of leaves remains.
constexpr uint32_t kBuiltChildren = 23;

}  // namespace

LbInnerNodes::LbInnerNodes(const RegionSet* regions, LeafLocks* locks, uint32_t leaf_bytes)
    : regions_(regions), locks_(locks), leaf_bytes_(leaf_bytes), pool_(std::make_unique<Pool>()), root_(pool_->Take()) {}

LbInnerNodes::~LbInnerNodes() = default;

LbInnerNodes::Stats LbInnerNodes::GetStats() const { return {pool_->bytes() + sizeof(LeafLocks), root_->level()}; }

// ---- Build

void LbInnerNodes::Build(std::span<const Child> leaves, uint32_t threads) {
  std::vector<Item> children;
  children.reserve(leaves.size());
  for (const Child& leaf : leaves) children.push_back({leaf.low, leaf.leaf.raw()});
  uint32_t level = 1;
  for (; children.size() > Node::kMaxChildren; ++level) {
    std::vector<Item> parents;
    BuildLevel(children, level, threads, &parents);
    children.swap(parents);
  }
  root_->Reset(level);
  for (const Item& child : children) root_->Append(child.low, child.child);
}

// Each node gets an equal share, so that none is left with one child.
void LbInnerNodes::BuildLevel(std::span<const Item> children, uint32_t level, uint32_t threads, std::vector<Item>* parents) {
  const size_t nodes = (children.size() + kBuiltChildren - 1) / kBuiltChildren;
  parents->resize(nodes);
  for (Item& parent : *parents) parent.child = reinterpret_cast<uint64_t>(pool_->Take());
  const auto build = [&](uint32_t thread) {
    for (size_t i = nodes * thread / threads; i < nodes * (thread + 1) / threads; ++i) {
      auto* const node = reinterpret_cast<Node*>((*parents)[i].child);
      node->Reset(level);
      const size_t begin = children.size() * i / nodes, end = children.size() * (i + 1) / nodes;
      for (size_t j = begin; j < end; ++j) node->Append(children[j].low, children[j].child);
      (*parents)[i].low = children[begin].low;
    }
  };
  RunParallel(threads, build);
}

// ---- Searches

void LbInnerNodes::PrefetchLeaf(PmPtr leaf) const {
  LbLeaf(regions_->Resolve<uint64_t>(leaf), leaf_bytes_ / kLbBlockBytes).Prefetch();
}

LbInnerNodes::LeafAt LbInnerNodes::Find(uint64_t key) const {
  for (;;) {
    const Node* node = root_;
    uint64_t version = node->lock.BeginRead();
    for (;;) {
      const uint32_t level = node->level();
      const uint64_t child = node->child(node->Find(key));
      if (!node->lock.IsCurrent(version)) break;
      if (level == 1) {
        const PmPtr leaf(child);
        PrefetchLeaf(leaf);
        const uint64_t leaf_version = locks_->Of(leaf)->BeginRead();
        if (!node->lock.IsCurrent(version)) break;
        return {leaf, leaf_version};
      }
      const auto* const next = reinterpret_cast<const Node*>(child);
      next->PrefetchAll();
      const uint64_t next_version = next->lock.BeginRead();
      if (!node->lock.IsCurrent(version)) break;
      node = next;
      version = next_version;
    }
  }
}

LbInnerNodes::Range LbInnerNodes::FindRange(uint64_t key, bool before) const {
  for (;;) {
    Range range;
    const Node* node = root_;
    uint64_t version = node->lock.BeginRead();
    for (;;) {
      const uint32_t level = node->level(), count = node->count(), i = node->Find(key, before);
      const uint64_t child = node->child(i);
      if (i > 0) {
        range.low = node->key(i - 1);
        range.is_first = false;
      }
      if (i + 1 < count) {
        range.high = node->key(i);
        range.is_last = false;
      }
      if (!node->lock.IsCurrent(version)) break;
      const auto* const next = reinterpret_cast<const Node*>(child);
      const VersionLock& lock = level == 1 ? *locks_->Of(PmPtr(child)) : next->lock;
      const uint64_t next_version = lock.BeginRead();
      if (!node->lock.IsCurrent(version)) break;
      if (level == 1) {
        range.leaf = PmPtr(child);
        range.version = next_version;
        return range;
      }
      node = next;
      version = next_version;
    }
  }
}

// ---- Splits

// Full nodes on the way are split first, from the root down, so the parent of a split has room.
LbInnerNodes::Node* LbInnerNodes::LockForSplit(uint64_t key, const LeafAt& at) {
  for (;;) {
    Node* node = root_;
    uint64_t version = node->lock.BeginRead();
    if (node->IsFull()) {
      SplitRoot(version);
      continue;
    }
    for (;;) {
      const uint32_t level = node->level();
      const uint64_t child = node->child(node->Find(key));
      if (!node->lock.IsCurrent(version)) break;
      if (level == 1) {
        if (PmPtr(child) != at.leaf) return nullptr;
        if (!node->lock.TryLock(version)) break;
        if (locks_->Of(at.leaf)->TryLock(at.version)) return node;
        node->lock.UnlockUnchanged();
        return nullptr;
      }
      Node* const next = reinterpret_cast<Node*>(child);
      const uint64_t next_version = next->lock.BeginRead();
      if (!node->lock.IsCurrent(version)) break;
      if (next->IsFull()) {
        SplitChild(node, version, next, next_version);
        break;
      }
      node = next;
      version = next_version;
    }
  }
}

// REQUIRES: at `version` the parent was not full, and it had the child.
void LbInnerNodes::SplitChild(Node* parent, uint64_t version, Node* child, uint64_t child_version) {
  Node* const right = pool_->Take();
  if (!parent->lock.TryLock(version)) {
    pool_->Give(right);
    return;
  }
  if (!child->lock.TryLock(child_version)) {
    parent->lock.UnlockUnchanged();
    pool_->Give(right);
    return;
  }
  right->Reset(child->level());
  const uint32_t half = child->count() / 2;
  const uint64_t low = child->key(half - 1);
  // `low` is in the child's range, so the parent's Find gives the child.
  const uint32_t at = parent->Find(low);
  child->MoveTo(right, half);
  parent->Insert(at + 1, low, reinterpret_cast<uint64_t>(right));
  child->lock.Unlock();
  parent->lock.Unlock();
}

// The root's children go to two new nodes, since the root stays in place.
void LbInnerNodes::SplitRoot(uint64_t version) {
  Node* const left = pool_->Take();
  Node* right = nullptr;
  try {
    right = pool_->Take();
  } catch (const std::bad_alloc&) {
    pool_->Give(left);
    throw;
  }
  if (!root_->IsFull() || !root_->lock.TryLock(version)) {
    pool_->Give(left);
    pool_->Give(right);
    return;
  }
  left->CopyFrom(*root_);
  right->Reset(root_->level());
  const uint64_t low = left->MoveTo(right, left->count() / 2);
  root_->Reset(root_->level() + 1);
  root_->Append(0, reinterpret_cast<uint64_t>(left));
  root_->Append(low, reinterpret_cast<uint64_t>(right));
  root_->lock.Unlock();
}

void LbInnerNodes::AddChild(Node* parent, uint64_t key, uint64_t low, PmPtr leaf) {
  parent->Insert(parent->Find(key) + 1, low, leaf.raw());
  parent->lock.Unlock();
}

void LbInnerNodes::UnlockUnchanged(Node* parent) { parent->lock.UnlockUnchanged(); }

// ---- Removals

LbInnerNodes::Removal::~Removal() {
  const auto unlock = [this](VersionLock* lock) { is_removed_ ? lock->Unlock() : lock->UnlockUnchanged(); };
  if (left_lock_ != nullptr) unlock(left_lock_);
  if (leaf_lock_ != nullptr) unlock(leaf_lock_);
  for (Node* const node : beside_) node->lock.UnlockUnchanged();
  for (size_t i = locked_from_; i < path_.size(); ++i) unlock(&path_[i].node->lock);
}

// STEPS  1. Lock the path to the leaf. A node that has other children and is not the leftmost on the path ends what the removal
//        can change, so the nodes above it are unlocked.
//        2. Lock the path to the last leaf before it, below the lowest node where the path does not take the first child.
//        3. Take the locks of both leaves.
LbInnerNodes::Removal::Locked LbInnerNodes::Removal::Lock(uint64_t key) {
  path_.reserve(32);
  beside_.reserve(32);
  for (Node* node = nodes_->root_;;) {
    node->lock.Lock();
    const uint32_t i = node->Find(key);
    path_.push_back({node, i});
    if (i > 0) {
      for (; locked_from_ + 1 < path_.size(); ++locked_from_) path_[locked_from_].node->lock.UnlockUnchanged();
    }
    if (node->level() == 1) break;
    node = node->ChildNode(i);
  }
  leaf_ = PmPtr(path_.back().node->child(path_.back().child));
  bool has_others = false;
  for (size_t i = locked_from_; i < path_.size(); ++i) has_others |= path_[i].node->count() > 1;
  if (!has_others) return Locked::kOnlyLeaf;
  const Step& turn = path_[locked_from_];
  if (turn.child > 0) {
    uint64_t child = turn.node->child(turn.child - 1);
    for (uint32_t level = turn.node->level(); level > 1; --level) {
      Node* const node = reinterpret_cast<Node*>(child);
      node->lock.Lock();
      beside_.push_back(node);
      child = node->child(node->count() - 1);
    }
    left_ = PmPtr(child);
  }
  VersionLock* const leaf_lock = nodes_->locks_->Of(leaf_);
  if (!leaf_lock->TryLock()) return Locked::kBusy;
  leaf_lock_ = leaf_lock;
  if (!left_) return Locked::kLocked;
  VersionLock* const left_lock = nodes_->locks_->Of(left_);
  if (left_lock == leaf_lock) return Locked::kLocked;
  if (!left_lock->TryLock()) return Locked::kBusy;
  left_lock_ = left_lock;
  return Locked::kLocked;
}

void LbInnerNodes::Removal::Commit() {
  is_removed_ = true;
  while (path_.back().node->count() == 1) {
    Node* const empty = path_.back().node;
    path_.pop_back();
    empty->lock.Unlock();  // readers that wait for it start over
    nodes_->pool_->Give(empty);
  }
  path_.back().node->Remove(path_.back().child);
  if (locked_from_ == 0) Collapse();
}

// A root with one child takes the child's children.
void LbInnerNodes::Removal::Collapse() {
  Node* const root = nodes_->root_;
  while (path_.size() > 1) {
    path_.back().node->lock.Unlock();
    path_.pop_back();
  }
  for (; !beside_.empty(); beside_.pop_back()) beside_.back()->lock.UnlockUnchanged();
  while (root->level() > 1 && root->count() == 1) {
    Node* const child = root->ChildNode(0);
    child->lock.Lock();
    root->CopyFrom(*child);
    child->lock.Unlock();
    nodes_->pool_->Give(child);
  }
}

}  // namespace braiddb
