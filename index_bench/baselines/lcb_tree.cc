#include "index_bench/baselines/lcb_tree.h"

#include <algorithm>
#include <cstring>

#include "util/check.h"

namespace braiddb {

Status LcbTree::Create(RegionSet* regions, SegmentAllocator* segments, uint32_t node_bytes,
                       std::unique_ptr<OrderedIndex>* index) {
  std::unique_ptr<LcbTree> tree(new LcbTree(regions, segments, node_bytes));
  Segment* segment = nullptr;
  Status status = segments->Allocate(0, 2 * kCacheLine + sizeof(Log) + node_bytes, &segment);
  if (!status.ok()) return status;
  tree->root_ = reinterpret_cast<uint64_t*>(segment->data());
  tree->log_ = reinterpret_cast<Log*>(segment->data() + kCacheLine);
  Node* root = nullptr;
  status = tree->MakeNode(true, &root);
  if (!status.ok()) return status;
  tree->Persist(root, sizeof(*root));
  *tree->root_ = reinterpret_cast<uint64_t>(root);
  tree->Persist(tree->root_, sizeof(*tree->root_));
  *index = std::move(tree);
  return Status::OK();
}

Status LcbTree::MakeNode(bool is_leaf, Node** node) {
  void* memory = nullptr;
  Status status = space_.Allocate(&memory);
  if (!status.ok()) return status;
  *node = static_cast<Node*>(memory);
  **node = Node{0, is_leaf, 0};
  return status;
}

void LcbTree::Persist(const void* address, size_t bytes) { BRAIDDB_CHECK(persistence_.Persist(address, bytes)); }

// The copy is durable before the word that makes the log valid, and both before the change.
void LcbTree::BeginChange(const Node* node) {
  memcpy(log_->copy, node, node_bytes_);
  Persist(log_->copy, node_bytes_);
  log_->node = reinterpret_cast<uint64_t>(node);
  Persist(&log_->node, sizeof(log_->node));
}

void LcbTree::EndChange() {
  log_->node = 0;
  Persist(&log_->node, sizeof(log_->node));
}

uint32_t LcbTree::Locate(const Node& node, uint64_t key) {
  const auto greater = [](uint64_t k, const Entry& entry) { return k < entry.key; };
  const Entry* const begin = node.entries + (node.is_leaf != 0 || node.count == 0 ? 0 : 1);
  const auto behind = static_cast<uint32_t>(std::upper_bound(begin, node.entries + node.count, key, greater) - node.entries);
  return behind == 0 ? UINT32_MAX : behind - 1;
}

LcbTree::Node* LcbTree::Descend(uint64_t key) {
  path_.clear();
  auto* node = reinterpret_cast<Node*>(*root_);
  path_.push_back(node);
  while (node->is_leaf == 0) path_.push_back(node = Child(node->entries[Locate(*node, key)]));
  return node;
}

// Inserts the entry and shifts the entries behind it, protected by the log.
void LcbTree::Put(Node* node, const Entry& entry) {
  BeginChange(node);
  const uint32_t at = Locate(*node, entry.key) + 1;
  memmove(&node->entries[at + 1], &node->entries[at], (node->count - at) * sizeof(Entry));
  node->entries[at] = entry;
  ++node->count;
  persistence_.Flush(&node->entries[at], (node->count - at) * sizeof(Entry));
  Persist(node, sizeof(Node));
  EndChange();
}

// Inserts into the node at that depth of the path. A full node is split, and its parent gets the new node.
Status LcbTree::InsertAt(size_t depth, const Entry& entry) {
  Node* const node = path_[depth];
  if (node->count < capacity_) {
    Put(node, entry);
    return Status::OK();
  }
  Node* right = nullptr;
  Status status = MakeNode(node->is_leaf != 0, &right);
  if (!status.ok()) return status;
  const uint32_t half = node->count / 2;
  right->count = node->count - half;
  right->next = node->next;
  memcpy(right->entries, &node->entries[half], right->count * sizeof(Entry));
  Persist(right, sizeof(Node) + right->count * sizeof(Entry));
  BeginChange(node);
  node->count = half;
  node->next = reinterpret_cast<uint64_t>(right);
  Persist(node, sizeof(Node));
  EndChange();
  Put(entry.key < right->entries[0].key ? node : right, entry);
  const Entry up = {right->entries[0].key, reinterpret_cast<uint64_t>(right)};
  if (depth > 0) return InsertAt(depth - 1, up);
  Node* root = nullptr;
  status = MakeNode(false, &root);
  if (!status.ok()) return status;
  root->count = 2;
  root->entries[0] = {0, reinterpret_cast<uint64_t>(node)};
  root->entries[1] = up;
  Persist(root, sizeof(Node) + 2 * sizeof(Entry));
  *root_ = reinterpret_cast<uint64_t>(root);
  Persist(root_, sizeof(*root_));
  return Status::OK();
}

Status LcbTree::Insert(uint64_t key, uint64_t value) {
  Descend(key);
  return InsertAt(path_.size() - 1, {key, value});
}

Status LcbTree::Update(uint64_t key, uint64_t value) {
  Node* const leaf = Descend(key);
  const uint32_t at = Locate(*leaf, key);
  if (!Holds(*leaf, at, key)) return Status::NotFound("no such key");
  BeginChange(leaf);
  leaf->entries[at].value = value;
  Persist(&leaf->entries[at], sizeof(Entry));
  EndChange();
  return Status::OK();
}

Status LcbTree::Remove(uint64_t key) {
  Node* const leaf = Descend(key);
  const uint32_t at = Locate(*leaf, key);
  if (!Holds(*leaf, at, key)) return Status::NotFound("no such key");
  BeginChange(leaf);
  memmove(&leaf->entries[at], &leaf->entries[at + 1], (leaf->count - at - 1) * sizeof(Entry));
  --leaf->count;
  persistence_.Flush(&leaf->entries[at], (leaf->count - at) * sizeof(Entry));
  Persist(leaf, sizeof(Node));
  EndChange();
  return Status::OK();
}

bool LcbTree::Search(uint64_t key, uint64_t* value) const {
  const auto* node = reinterpret_cast<const Node*>(*root_);
  while (node->is_leaf == 0) node = Child(node->entries[Locate(*node, key)]);
  const uint32_t at = Locate(*node, key);
  if (!Holds(*node, at, key)) return false;
  *value = node->entries[at].value;
  return true;
}

}  // namespace braiddb
