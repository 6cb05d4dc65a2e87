#include "lsm/skiplist_memtable.h"

#include <algorithm>

#include "util/check.h"
#include "util/prefetch.h"
#include "util/thread_index.h"

namespace braiddb {

SkipListMemtable::SkipListMemtable(uint64_t id, const RegionSet* regions, const KeyOrder* order, std::unique_ptr<Arena> arena,
                                   uint32_t block_bytes, uint32_t shards)
    : Memtable(id), regions_(regions), order_(order), arena_(std::move(arena)), block_bytes_(block_bytes), shards_(shards) {
  for (Shard& shard : shards_) {
    shard.head = arena_->AllocateBlock(NodeBytes(kMaxHeight));
    BRAIDDB_CHECK(shard.head != 0);
    Node* head = At(shard.head);
    for (uint32_t layer = 0; layer < kMaxHeight; ++layer) head->next[layer].store(0, std::memory_order_relaxed);
  }
  BRAIDDB_CHECK(1 + shards <= kSiblingsWord);
  arena_->OwnersWord(0)->store(shards, std::memory_order_relaxed);
  for (uint32_t i = 0; i < shards; ++i) arena_->OwnersWord(1 + i)->store(shards_[i].head, std::memory_order_relaxed);
}

// `top` is in the owner's process. Empty upper layers of a shard only cost a load.
SkipListMemtable::SkipListMemtable(uint64_t id, const RegionSet* regions, const KeyOrder* order, std::unique_ptr<Arena> arena)
    : Memtable(id),
      regions_(regions),
      order_(order),
      arena_(std::move(arena)),
      block_bytes_(0),
      shards_(std::min<uint64_t>(arena_->OwnersWord(0)->load(std::memory_order_relaxed), kSiblingsWord - 1)) {
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    shards_[i].head = static_cast<uint32_t>(arena_->OwnersWord(1 + i)->load(std::memory_order_relaxed));
    shards_[i].top.store(kMaxHeight, std::memory_order_relaxed);
  }
}

std::unique_ptr<SkipListMemtable> SkipListMemtable::Attach(uint64_t id, const RegionSet* regions, const KeyOrder* order,
                                                           std::unique_ptr<Arena> arena) {
  return std::unique_ptr<SkipListMemtable>(new SkipListMemtable(id, regions, order, std::move(arena)));
}

SkipListMemtable::~SkipListMemtable() = default;

bool SkipListMemtable::Allocate(NodeBlock* block, uint32_t height, Insertion* insertion) {
  const auto units = static_cast<uint32_t>(NodeBytes(height) / 8);
  if (block->owner != id() || block->end - block->cursor < units) {
    const uint32_t fresh = arena_->AllocateBlock(block_bytes_);
    if (fresh == 0) return false;
    // The rest of the old block is lost; blocks are much larger than nodes.
    *block = NodeBlock{id(), fresh, fresh + block_bytes_ / 8};
  }
  insertion->node = block->cursor;
  insertion->shard = ThreadIndex() % static_cast<uint32_t>(shards_.size());
  block->cursor += units;
  return true;
}

uint32_t SkipListMemtable::FindGreaterOrEqual(uint32_t shard, const SearchKey& target, Insertion* insertion) const {
  uint32_t steps = 0;
  uint32_t before = shards_[shard].head;
  // The node at which the layer above stopped. It is not before the target, so lower layers need not compare it again.
  uint32_t bound = 0;
  for (uint32_t layer = shards_[shard].top.load(std::memory_order_acquire); layer-- > 0;) {
    uint32_t next = At(before)->next[layer].load(std::memory_order_acquire);
    while (next != 0 && next != bound) {
      const Node* node = At(next);
      // Prefetch both continuations: the next node to the right is being read, and the one a layer below comes next.
      if (layer > 0) braiddb::Prefetch(At(At(before)->next[layer - 1].load(std::memory_order_relaxed)));
      if (!Before(node, target) || !MayStep(&steps)) break;
      before = next;
      next = node->next[layer].load(std::memory_order_acquire);  // acquire: pairs with the release in Publish
    }
    bound = next;
    if (insertion != nullptr) {
      insertion->before[layer] = before;
      insertion->after[layer] = next;
    }
  }
  return bound;
}

void SkipListMemtable::Prepare(const LogEntry* entry, PmPtr pointer, Insertion* insertion) {
  const uint32_t height = entry->height();
  const SearchKey target(*order_, entry->key(), entry->sequence());
  Node* node = At(insertion->node);
  node->prefix = target.prefix;
  node->entry = pointer.raw();
  insertion->entry = entry;
  insertion->pointer = pointer;
  std::atomic<uint32_t>& shard_top = shards_[insertion->shard].top;
  uint32_t top = shard_top.load(std::memory_order_relaxed);
  // Raises `top` before the search, so that the search fills before and after for all layers of the node.
  while (top < height && !shard_top.compare_exchange_weak(top, height, std::memory_order_acq_rel)) {
  }
  FindGreaterOrEqual(insertion->shard, target, insertion);
}

// WHY IT IS RIGHT  The bottom layer is linked first. Once that compare-and-swap succeeds, the entry is visible. Upper layers only
//                  speed up searches. Nodes are never unlinked, so after a failed compare-and-swap the new position lies at or
//                  behind `before`.
void SkipListMemtable::Publish(Insertion* insertion) {
  Node* node = At(insertion->node);
  const uint32_t height = insertion->entry->height();
  for (uint32_t layer = 0; layer < height; ++layer) {
    uint32_t before = insertion->before[layer];
    uint32_t after = insertion->after[layer];
    for (;;) {
      node->next[layer].store(after, std::memory_order_relaxed);
      // release: the node's fields, and the durable entry, before the link.
      if (At(before)->next[layer].compare_exchange_strong(after, insertion->node, std::memory_order_acq_rel)) break;
      // Another writer inserted here: continue the search from `before`.
      const SearchKey target(*order_, insertion->entry->key(), insertion->entry->sequence());
      while (after != 0 && Before(At(after), target)) {
        before = after;
        after = At(before)->next[layer].load(std::memory_order_acquire);
      }
    }
  }
}

// WHY IT IS RIGHT  Versions of a key are in descending order of sequence numbers. The first node at or after (key, sequence) is
//                  therefore the newest visible version in its shard, if it has the key. The largest number among the shards
//                  wins.
const LogEntry* SkipListMemtable::Find(const SearchKey& target, uint64_t) const {
  const LogEntry* newest = nullptr;
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    const uint32_t found = FindGreaterOrEqual(shard, target, nullptr);
    if (found == 0) continue;
    const Node* node = At(found);
    if (node->prefix != target.prefix) continue;
    const LogEntry* entry = EntryOf(node);
    if (order_->Compare(entry->key(), target.key) != 0) continue;
    if (newest == nullptr || entry->sequence() > newest->sequence()) newest = entry;
  }
  return newest;
}

void SkipListMemtable::FindOperands(const SearchKey& target, uint64_t, std::vector<const LogEntry*>* versions) const {
  uint32_t steps = 0;
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    for (uint32_t found = FindGreaterOrEqual(shard, target, nullptr); found != 0;) {
      const Node* node = At(found);
      if (node->prefix != target.prefix || order_->Compare(EntryOf(node)->key(), target.key) != 0) break;
      versions->push_back(EntryOf(node));
      if (!versions->back()->is_operand() || !MayStep(&steps)) break;
      found = node->next[0].load(std::memory_order_acquire);
    }
  }
}

// Nodes have no back pointers, so a step backward is a search for the last node before the target.
uint32_t SkipListMemtable::FindLess(uint32_t shard, const SearchKey& target) const {
  uint32_t before = shards_[shard].head;
  uint32_t steps = 0;
  for (uint32_t layer = shards_[shard].top.load(std::memory_order_acquire); layer-- > 0;) {
    for (uint32_t next = At(before)->next[layer].load(std::memory_order_acquire);
         next != 0 && Before(At(next), target) && MayStep(&steps);
         next = At(before)->next[layer].load(std::memory_order_acquire)) {
      before = next;
    }
  }
  return before == shards_[shard].head ? 0 : before;
}

uint32_t SkipListMemtable::FindLast(uint32_t shard) const {
  uint32_t before = shards_[shard].head;
  uint32_t steps = 0;
  for (uint32_t layer = shards_[shard].top.load(std::memory_order_acquire); layer-- > 0;) {
    for (uint32_t next = At(before)->next[layer].load(std::memory_order_acquire); next != 0 && MayStep(&steps);
         next = At(before)->next[layer].load(std::memory_order_acquire)) {
      before = next;
    }
  }
  return before == shards_[shard].head ? 0 : before;
}

// Merges the shards: takes the smallest of the shards' next nodes.
class SkipListMemtableWalker final : public Memtable::Walker {
 public:
  explicit SkipListMemtableWalker(const SkipListMemtable* table) : table_(table) {
    for (uint32_t shard = 0; shard < table->shards_.size(); ++shard) {
      if (const uint32_t first = table->First(shard)) nodes_.push_back(table->At(first));
    }
  }

  size_t Next(PmPtr* pointers, size_t capacity) override {
    size_t count = 0;
    while (count < capacity && !nodes_.empty()) {
      const SkipListMemtable::Node*& first = nodes_[FirstNode()];
      pointers[count++] = PmPtr(first->entry);
      const uint32_t next = first->next[0].load(std::memory_order_acquire);
      if (next != 0) {
        first = table_->At(next);
      } else {
        std::swap(first, nodes_.back());
        nodes_.pop_back();
      }
    }
    return count;
  }

 private:
  size_t FirstNode() const {
    size_t first = 0;
    for (size_t i = 1; i < nodes_.size(); ++i) {
      const bool before = nodes_[i]->prefix != nodes_[first]->prefix
                              ? nodes_[i]->prefix < nodes_[first]->prefix
                              : CompareEntries(*table_->order_, *table_->EntryOf(nodes_[i]), *table_->EntryOf(nodes_[first])) < 0;
      if (before) first = i;
    }
    return first;
  }

  const SkipListMemtable* table_;
  std::vector<const SkipListMemtable::Node*> nodes_;  // the next node of each shard that has one
};

std::unique_ptr<Memtable::Walker> SkipListMemtable::NewWalker() const { return std::make_unique<SkipListMemtableWalker>(this); }

class SkipListMemtableCursor final : public EntryCursor {
 public:
  SkipListMemtableCursor(const SkipListMemtable* table, uint32_t shard) : table_(table), shard_(shard) {}

  void SeekToFirst() override { Set(table_->First(shard_)); }
  void SeekToLast() override { Set(table_->FindLast(shard_)); }
  void Seek(const SearchKey& target) override { Set(table_->FindGreaterOrEqual(shard_, target, nullptr)); }
  void SeekBefore(const SearchKey& target) override { Set(table_->FindLess(shard_, target)); }
  void Next() override { Set(table_->At(node_)->next[0].load(std::memory_order_acquire)); }
  void Prev() override { Set(table_->FindLess(shard_, SearchKey(*table_->order_, entry_->key(), entry_->sequence()))); }

 private:
  void Set(uint32_t node) {
    node_ = node;
    entry_ = node == 0 ? nullptr : table_->EntryOf(table_->At(node));
  }

  const SkipListMemtable* table_;
  const uint32_t shard_;
  uint32_t node_ = 0;
};

void SkipListMemtable::AddCursors(std::vector<std::unique_ptr<EntryCursor>>* cursors, std::vector<OrderedArray>*) const {
  for (uint32_t shard = 0; shard < shards_.size(); ++shard)
    cursors->push_back(std::make_unique<SkipListMemtableCursor>(this, shard));
}

}  // namespace braiddb
