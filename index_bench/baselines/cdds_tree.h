// CddsTree: the B-tree of consistent and durable data structures (Venkataraman et al., FAST '11, section 4), with which NV-Tree
// is compared (NV-Tree, FAST '15, section 2.3).
//
// Every entry has the range of versions in which it lives. An operation is made for the version behind the current one: entries
// that it adds begin there, entries that it ends end there; it commits when the version is stored. Entries of a node are
// sorted, so one that is added shifts those behind it, each of which is flushed on its own. A full node is replaced by one
// or two new nodes with what lives of it. The tree has no earlier versions that someone reads, so an old node is free at
// once; recovery and the merging of nodes with few entries are left out. Pointers are addresses.
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
    uint64_t key;    // inner nodes: no key of the child is less, but for the first child
    uint64_t value;  // inner nodes: Node*
    uint64_t begin;
    uint64_t end;  // kLives: it has none

    bool lives() const { return end == kLives; }
  };
  struct Node {
    uint64_t count;
    uint64_t is_leaf;
    uint64_t unused[2];  // nodes are aligned to cache lines, so no entry is in two lines
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
  // Behind the last entry whose key is not greater, dead or not.
  static uint64_t Behind(const Node& node, uint64_t key);
  // The living entry through which the key is reached; null if there is none.
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
