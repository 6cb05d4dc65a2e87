#include "index_bench/baselines/cdds_tree.h"

#include <algorithm>

#include "util/check.h"

namespace braiddb {

Status CddsTree::Create(RegionSet* regions, SegmentAllocator* segments, uint32_t node_bytes,
                        std::unique_ptr<OrderedIndex>* index) {
  std::unique_ptr<CddsTree> tree(new CddsTree(regions, segments, node_bytes));
  Segment* segment = nullptr;
  Status status = segments->Allocate(0, kCacheLine, &segment);
  if (!status.ok()) return status;
  Node* node = nullptr;
  status = tree->MakeNode(true, {}, 0, 0, &node);
  if (!status.ok()) return status;
  tree->root_ = reinterpret_cast<Root*>(segment->data());
  *tree->root_ = {1, reinterpret_cast<uint64_t>(node)};
  tree->Persist(tree->root_, sizeof(*tree->root_));
  *index = std::move(tree);
  return Status::OK();
}

void CddsTree::Persist(const void* address, size_t bytes) { BRAIDDB_CHECK(persistence_.Persist(address, bytes)); }

Status CddsTree::MakeNode(bool is_leaf, const std::vector<Entry>& entries, size_t begin, size_t end, Node** node) {
  void* memory = nullptr;
  Status status = space_.Allocate(&memory);
  if (!status.ok()) return status;
  *node = static_cast<Node*>(memory);
  (*node)->count = end - begin;
  (*node)->is_leaf = is_leaf;
  std::copy(entries.begin() + static_cast<std::ptrdiff_t>(begin), entries.begin() + static_cast<std::ptrdiff_t>(end),
            (*node)->entries);
  Persist(*node, sizeof(Node) + (end - begin) * sizeof(Entry));
  return status;
}

uint64_t CddsTree::Behind(const Node& node, uint64_t key) {
  const auto greater = [](uint64_t k, const Entry& entry) { return k < entry.key; };
  return static_cast<uint64_t>(std::upper_bound(node.entries, node.entries + node.count, key, greater) - node.entries);
}

CddsTree::Entry* CddsTree::Route(Node* node, uint64_t key) {
  for (uint64_t at = Behind(*node, key); at-- > 0;) {
    if (node->entries[at].lives()) return &node->entries[at];
  }
  return nullptr;
}

CddsTree::Entry* CddsTree::FindLiving(Node* leaf, uint64_t key) {
  for (uint64_t at = Behind(*leaf, key); at-- > 0 && leaf->entries[at].key == key;) {
    if (leaf->entries[at].lives()) return &leaf->entries[at];
  }
  return nullptr;
}

// The first child's key is 0, so each key has a child.
CddsTree::Node* CddsTree::Descend(uint64_t key) {
  path_.clear();
  auto* node = reinterpret_cast<Node*>(root_->node);
  path_.push_back(node);
  while (node->is_leaf == 0) path_.push_back(node = Child(*Route(node, key)));
  return node;
}

// Flushes and fences each shifted entry before the next entry overwrites it.
void CddsTree::Put(Node* node, uint64_t key, uint64_t value) {
  const uint64_t at = Behind(*node, key);
  for (uint64_t i = node->count; i > at; --i) {
    node->entries[i] = node->entries[i - 1];
    Persist(&node->entries[i], sizeof(Entry));
  }
  node->entries[at] = {key, value, root_->version + 1, kLives};
  Persist(&node->entries[at], sizeof(Entry));
  ++node->count;
  Persist(&node->count, sizeof(node->count));
}

void CddsTree::End(Entry* entry) {
  entry->end = root_->version + 1;
  Persist(&entry->end, sizeof(entry->end));
}

void CddsTree::Commit() {
  ++root_->version;
  Persist(&root_->version, sizeof(root_->version));
}

// Replaces a node by one new node with its living entries, or by two if they fill more than half. REQUIRES: its parent has room
// for two entries.
Status CddsTree::Renew(size_t depth) {
  Node* const old = path_[depth];
  std::vector<Entry> living;
  std::copy_if(old->entries, old->entries + old->count, std::back_inserter(living),
               [](const Entry& entry) { return entry.lives(); });
  const size_t half = living.size() > capacity_ / 2 ? living.size() / 2 : living.size();
  Node *left = nullptr, *right = nullptr;
  Status status = MakeNode(old->is_leaf != 0, living, 0, half, &left);
  if (status.ok() && half < living.size()) status = MakeNode(old->is_leaf != 0, living, half, living.size(), &right);
  if (!status.ok()) return status;
  if (depth > 0) {
    Node* const parent = path_[depth - 1];
    Entry* const entry = std::find_if(parent->entries, parent->entries + parent->count,
                                      [&](const Entry& e) { return e.lives() && Child(e) == old; });
    const uint64_t key = entry->key;
    End(entry);
    Put(parent, key, reinterpret_cast<uint64_t>(left));
    if (right != nullptr) Put(parent, living[half].key, reinterpret_cast<uint64_t>(right));
    Commit();
  } else {
    Node* root = left;
    if (right != nullptr) {
      const uint64_t begin = root_->version + 1;
      status = MakeNode(false,
                        {{0, reinterpret_cast<uint64_t>(left), begin, kLives},
                         {living[half].key, reinterpret_cast<uint64_t>(right), begin, kLives}},
                        0, 2, &root);
      if (!status.ok()) return status;
      Commit();
    }
    root_->node = reinterpret_cast<uint64_t>(root);
    Persist(&root_->node, sizeof(root_->node));
  }
  space_.Free(old);
  return Status::OK();
}

// Returns a leaf with room for `entries` entries.
Status CddsTree::DescendWithRoom(uint64_t key, uint64_t entries, Node** leaf) {
  for (;;) {
    *leaf = Descend(key);
    if ((*leaf)->count + entries <= capacity_) return Status::OK();
    // The lowest node that can be replaced: its parent has room for two entries.
    size_t depth = path_.size() - 1;
    while (depth > 0 && path_[depth - 1]->count + 2 > capacity_) --depth;
    Status status = Renew(depth);
    if (!status.ok()) return status;
  }
}

Status CddsTree::Insert(uint64_t key, uint64_t value) {
  Node* leaf = nullptr;
  Status status = DescendWithRoom(key, 1, &leaf);
  if (!status.ok()) return status;
  Put(leaf, key, value);
  Commit();
  return status;
}

Status CddsTree::Update(uint64_t key, uint64_t value) {
  Node* leaf = nullptr;
  Status status = DescendWithRoom(key, 1, &leaf);
  if (!status.ok()) return status;
  Entry* const entry = FindLiving(leaf, key);
  if (entry == nullptr) return Status::NotFound("no such key");
  End(entry);
  Put(leaf, key, value);
  Commit();
  return status;
}

Status CddsTree::Remove(uint64_t key) {
  Entry* const entry = FindLiving(Descend(key), key);
  if (entry == nullptr) return Status::NotFound("no such key");
  End(entry);
  Commit();
  return Status::OK();
}

bool CddsTree::Search(uint64_t key, uint64_t* value) const {
  auto* node = reinterpret_cast<Node*>(root_->node);
  while (node->is_leaf == 0) node = Child(*Route(node, key));
  const Entry* const entry = FindLiving(node, key);
  if (entry == nullptr) return false;
  *value = entry->value;
  return true;
}

}  // namespace braiddb
