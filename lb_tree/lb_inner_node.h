// LbInnerNodes::Node: one inner node of LB+-Tree, and the pool of the nodes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "lb_tree/lb_inner_nodes.h"
#include "util/check.h"
#include "util/prefetch.h"

namespace braiddb {

// Child i has the keys in [key(i - 1), key(i)). A child is a Node*, or in level 1 the PmPtr of a leaf.
// CONCURRENCY  Loads acquire and stores release, as VersionLock wants. A reader may see any mixture of old and new words, so it
//              bounds what it uses as an index, and follows a child only after a check of the version.
class LbInnerNodes::Node {
 public:
  static constexpr uint32_t kMaxChildren = 31;

  VersionLock lock;

  uint32_t level() const { return level_.load(std::memory_order_acquire); }
  uint32_t count() const { return std::min(count_.load(std::memory_order_acquire), kMaxChildren); }
  bool IsFull() const { return count() == kMaxChildren; }
  uint64_t key(uint32_t i) const { return keys_[i].load(std::memory_order_acquire); }
  uint64_t child(uint32_t i) const { return children_[i].load(std::memory_order_acquire); }
  Node* ChildNode(uint32_t i) const { return reinterpret_cast<Node*>(child(i)); }

  // The child of the key; if `before`, of the keys just before it.
  uint32_t Find(uint64_t key, bool before = false) const {
    uint32_t begin = 0, count = this->count();
    for (count -= count > 0 ? 1 : 0; count > 0;) {
      const uint32_t half = count / 2;
      const uint64_t there = this->key(begin + half);
      const bool right = before ? there < key : there <= key;
      begin = right ? begin + half + 1 : begin;
      count = right ? count - half - 1 : half;
    }
    return begin;
  }
  void PrefetchAll() const { braiddb::PrefetchAll(this, sizeof(*this)); }

  // Changes. REQUIRES: the lock is held, or no other thread reaches the node.
  void Reset(uint32_t level) {
    level_.store(level, std::memory_order_release);
    count_.store(0, std::memory_order_release);
  }
  // `low`: the smallest key of the child; without meaning for the first child.
  void Append(uint64_t low, uint64_t child) {
    const uint32_t count = this->count();
    if (count > 0) Set(&keys_[count - 1], low);
    Set(&children_[count], child);
    count_.store(count + 1, std::memory_order_release);
  }
  // REQUIRES: at > 0, and the node is not full.
  void Insert(uint32_t at, uint64_t low, uint64_t child) {
    const uint32_t count = this->count();
    BRAIDDB_DCHECK(at > 0 && at <= count && count < kMaxChildren);
    for (uint32_t i = count; i > at; --i) {
      Set(&keys_[i - 1], key(i - 2));
      Set(&children_[i], this->child(i - 1));
    }
    Set(&keys_[at - 1], low);
    Set(&children_[at], child);
    count_.store(count + 1, std::memory_order_release);
  }
  void Remove(uint32_t at) {
    const uint32_t count = this->count();
    for (uint32_t i = at == 0 ? 1 : at; i + 1 < count; ++i) Set(&keys_[i - 1], key(i));
    for (uint32_t i = at; i + 1 < count; ++i) Set(&children_[i], child(i + 1));
    count_.store(count - 1, std::memory_order_release);
  }
  // Moves the children from `at` on to an empty node. Returns the smallest key of the first of them.
  uint64_t MoveTo(Node* right, uint32_t at) {
    const uint32_t count = this->count();
    for (uint32_t i = at; i < count; ++i) right->Append(key(i - 1), child(i));
    const uint64_t low = key(at - 1);
    count_.store(at, std::memory_order_release);
    return low;
  }
  void CopyFrom(const Node& other) {
    Reset(other.level());
    for (uint32_t i = 0; i < other.count(); ++i) Append(i == 0 ? 0 : other.key(i - 1), other.child(i));
  }

 private:
  static void Set(std::atomic<uint64_t>* word, uint64_t value) { word->store(value, std::memory_order_release); }

  std::atomic<uint32_t> level_{1};
  std::atomic<uint32_t> count_{0};
  std::atomic<uint64_t> keys_[kMaxChildren - 1] = {};
  std::atomic<uint64_t> children_[kMaxChildren] = {};
};

// Gives out nodes and takes them back. Memory of nodes is never used for anything else while the tree lives.
class LbInnerNodes::Pool {
 public:
  static_assert(sizeof(Node) == 504 || sizeof(Node) == 512);

  Node* Take() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.reserve(chunks_.size() * kChunk + kChunk);
      chunks_.reserve(chunks_.size() + 1);
      chunks_.push_back(std::make_unique<Slot[]>(kChunk));
      for (size_t i = kChunk; i-- > 0;) free_.push_back(&chunks_.back()[i].node);
    }
    Node* const node = free_.back();
    free_.pop_back();
    return node;
  }
  // Capacity is reserved for all nodes, so this needs no memory.
  void Give(Node* node) noexcept {
    std::lock_guard lock(mutex_);
    free_.push_back(node);
  }
  uint64_t bytes() const {
    std::lock_guard lock(mutex_);
    return chunks_.size() * kChunk * sizeof(Slot);
  }

 private:
  static constexpr size_t kChunk = 64;
  struct alignas(512) Slot {
    Node node;
  };
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Slot[]>> chunks_;
  std::vector<Node*> free_;
};

}  // namespace braiddb
