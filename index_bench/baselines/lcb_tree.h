// LcbTree: LCB+Tree, the log-based consistent B+-tree that the NV-Tree paper compares with (FAST '15, section 2.3).
//
// A B+-tree with sorted nodes, all in persistent memory. An operation first logs and flushes a copy of the node, then changes the
// node and flushes the changed part. After a crash the log would be undone. A baseline is never reopened, so the undo is omitted,
// and pointers are addresses. The merge of empty nodes is omitted too.
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
    uint64_t key;    // inner nodes: lower bound of the child's keys, except for the first child
    uint64_t value;  // inner nodes: Node*
  };
  struct Node {
    uint32_t count;
    uint32_t is_leaf;
    uint64_t next;
    Entry entries[];
  };
  // Undo log of one node.
  struct Log {
    uint64_t node;  // 0: the log is empty
    uint64_t unused[7];
    uint8_t copy[];
  };

  LcbTree(RegionSet* regions, SegmentAllocator* segments, uint32_t node_bytes)
      : persistence_(*regions->persistence()),
        node_bytes_(node_bytes),
        capacity_((node_bytes - static_cast<uint32_t>(sizeof(Node))) / static_cast<uint32_t>(sizeof(Entry))),
        space_(segments, node_bytes) {}

  static Node* Child(const Entry& entry) { return reinterpret_cast<Node*>(entry.value); }
  // The last entry whose key is not greater. In an inner node at least the first entry.
  static uint32_t Locate(const Node& node, uint64_t key);
  static bool Holds(const Node& leaf, uint32_t at, uint64_t key) { return at < leaf.count && leaf.entries[at].key == key; }
  // Returns the leaf of the key. path_ has the nodes on the search path.
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
