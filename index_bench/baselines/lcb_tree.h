// LcbTree: LCB+Tree, the log-based consistent B+-tree that NV-Tree is compared with (NV-Tree, FAST '15, section 2.3).
//
// A B+-tree with sorted nodes, all of them in persistent memory. Before a node is changed its original copy is logged and
// flushed; then the part of it that changed is flushed. The log is undone after a crash; a baseline is not opened again, so
// that is left out, as is the merging of nodes that become empty. Pointers are addresses, for the same reason.
#pragma once

#include <vector>

#include "index_bench/baselines/node_space.h"
#include "index_bench/ordered_index.h"

namespace braiddb {

class LcbTree final : public OrderedIndex {
 public:
  static Status Create(RegionSet* regions, SegmentAllocator* segments, uint32_t node_bytes, std::unique_ptr<OrderedIndex>* index);

  Status Insert(uint64_t key, uint64_t value) override;
  Status Update(uint64_t key, uint64_t value) override;
  Status Remove(uint64_t key) override;
  bool Search(uint64_t key, uint64_t* value) const override;

 private:
  struct Entry {
    uint64_t key;    // inner nodes: no key of the child is less, but for the first child
    uint64_t value;  // inner nodes: Node*
  };
  struct Node {
    uint32_t count;
    uint32_t is_leaf;
    uint64_t next;
    Entry entries[];
  };
  // What is undone: a whole node.
  struct Log {
    uint64_t node;  // 0: nothing
    uint64_t unused[7];
    uint8_t copy[];
  };

  LcbTree(RegionSet* regions, SegmentAllocator* segments, uint32_t node_bytes)
      : persistence_(*regions->persistence()),
        node_bytes_(node_bytes),
        capacity_((node_bytes - static_cast<uint32_t>(sizeof(Node))) / static_cast<uint32_t>(sizeof(Entry))),
        space_(segments, node_bytes) {}

  static Node* Child(const Entry& entry) { return reinterpret_cast<Node*>(entry.value); }
  // The last entry whose key is not greater; of an inner node at least the first.
  static uint32_t Locate(const Node& node, uint64_t key);
  static bool Holds(const Node& leaf, uint32_t at, uint64_t key) { return at < leaf.count && leaf.entries[at].key == key; }
  // The leaf that the key belongs to; the way to it is in path_.
  Node* Descend(uint64_t key);
  Status MakeNode(bool is_leaf, Node** node);
  void BeginChange(const Node* node);
  void EndChange();
  void Persist(const void* address, size_t bytes);
  void Put(Node* node, const Entry& entry);
  Status InsertAt(size_t depth, const Entry& entry);

  Persistence& persistence_;
  const uint32_t node_bytes_;
  const uint32_t capacity_;
  NodeSpace space_;
  Log* log_ = nullptr;
  uint64_t* root_ = nullptr;  // Node*
  std::vector<Node*> path_;   // from the root to a leaf
};

}  // namespace braiddb
