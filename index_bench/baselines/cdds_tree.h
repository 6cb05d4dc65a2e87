// CddsTree: the B-tree of consistent and durable data structures (Venkataraman et al., FAST '11, section 4). The NV-Tree paper
// compares with it (FAST '15, section 2.3).
//
// Each entry has the range of versions in which it lives. An operation is made for the next version: new entries begin at it,
// ended entries end at it. Storing the version number commits the operation. The entries of a node are sorted, so an insertion
// shifts the entries behind it and flushes each of them separately. A full node is replaced by one or two new nodes with its
// living entries. No reader uses earlier versions, so an old node is freed at once. Recovery and the merge of sparse nodes are
// omitted. Pointers are addresses.
#pragma once

#include <vector>

#include "index_bench/baselines/node_space.h"
#include "index_bench/ordered_index.h"

namespace braiddb {

class CddsTree final : public OrderedIndex {
 public:
  static Status Create(RegionSet* regions, SegmentAllocator* segments, uint32_t node_bytes, std::unique_ptr<OrderedIndex>* index);

  Status Insert(uint64_t key, uint64_t value) override;
  Status Update(uint64_t key, uint64_t value) override;
  Status Remove(uint64_t key) override;
  bool Search(uint64_t key, uint64_t* value) const override;

 private:
  static constexpr uint64_t kLives = UINT64_MAX;

  struct Entry {
    uint64_t key;    // inner nodes: lower bound of the child's keys, except for the first child
    uint64_t value;  // inner nodes: Node*
    uint64_t begin;
    uint64_t end;  // kLives: no end

    bool lives() const { return end == kLives; }
  };
  struct Node {
    uint64_t count;
    uint64_t is_leaf;
    uint64_t unused[2];  // pads entries so that no entry crosses a cache line
    Entry entries[];
  };
  static_assert(sizeof(Node) % sizeof(Entry) == 0 && 64 % sizeof(Entry) == 0, "an entry is in one cache line");
  struct Root {
    uint64_t version;
    uint64_t node;  // Node*
  };

  CddsTree(RegionSet* regions, SegmentAllocator* segments, uint32_t node_bytes)
      : persistence_(*regions->persistence()),
        capacity_((node_bytes - sizeof(Node)) / sizeof(Entry)),
        space_(segments, node_bytes) {}

  static Node* Child(const Entry& entry) { return reinterpret_cast<Node*>(entry.value); }
  // The index behind the last entry, living or not, whose key is not greater.
  static uint64_t Behind(const Node& node, uint64_t key);
  // The living entry on the search path of the key. Null if none exists.
  static Entry* Route(Node* node, uint64_t key);
  static Entry* FindLiving(Node* leaf, uint64_t key);
  Node* Descend(uint64_t key);
  Status DescendWithRoom(uint64_t key, uint64_t entries, Node** leaf);
  Status Renew(size_t depth);
  Status MakeNode(bool is_leaf, const std::vector<Entry>& entries, size_t begin, size_t end, Node** node);
  void Put(Node* node, uint64_t key, uint64_t value);
  void End(Entry* entry);
  void Commit();
  void Persist(const void* address, size_t bytes);

  Persistence& persistence_;
  const uint64_t capacity_;
  NodeSpace space_;
  Root* root_ = nullptr;
  std::vector<Node*> path_;  // from the root to a leaf
};

}  // namespace braiddb
