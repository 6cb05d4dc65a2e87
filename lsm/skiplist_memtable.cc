#include "lsm/skiplist_memtable.h"

#include <algorithm>

#include "util/check.h"

namespace braiddb {

SkipListMemtable::SkipListMemtable(uint64_t id, const RegionSet* regions, const KeyOrder* order,
                                   std::unique_ptr<Arena> arena, uint32_t block_bytes)
    : Memtable(id), regions_(regions), order_(order), arena_(std::move(arena)), block_bytes_(block_bytes) {
  head_ = arena_->AllocateBlock(NodeBytes(kMaxHeight));
  BRAIDDB_CHECK(head_ != 0);
  Node* head = At(head_);
  for (uint32_t layer = 0; layer < kMaxHeight; ++layer) head->next[layer].store(0, std::memory_order_relaxed);
}

SkipListMemtable::~SkipListMemtable() = default;

bool SkipListMemtable::Allocate(NodeBlock* block, uint32_t height, Insertion* insertion) {
  const auto units = static_cast<uint32_t>(NodeBytes(height) / 8);
  if (block->owner != id() || block->end - block->cursor < units) {
    const uint32_t fresh = arena_->AllocateBlock(block_bytes_);
    if (fresh == 0) return false;
    *block = NodeBlock{id(), fresh, fresh + block_bytes_ / 8};
  }
  insertion->node = block->cursor;
  block->cursor += units;
  return true;
}

uint32_t SkipListMemtable::FindGreaterOrEqual(const SearchKey& target, Insertion* insertion) const {
  uint32_t before = head_;
  uint32_t bound = 0;
  for (uint32_t layer = top_.load(std::memory_order_acquire); layer-- > 0;) {
    uint32_t next = At(before)->next[layer].load(std::memory_order_acquire);
    while (next != 0 && next != bound) {
      const Node* node = At(next);
      // Both ways on are fetched at once: to the right, and one layer down.
      if (layer > 0) __builtin_prefetch(At(At(before)->next[layer - 1].load(std::memory_order_relaxed)));
      if (!Before(node, target)) break;
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
  uint32_t top = top_.load(std::memory_order_relaxed);
  while (top < height && !top_.compare_exchange_weak(top, height, std::memory_order_acq_rel)) {
  }
  FindGreaterOrEqual(target, insertion);
}

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
      // Others came first: walk on from where we were.
      const SearchKey target(*order_, insertion->entry->key(), insertion->entry->sequence());
      while (after != 0 && Before(At(after), target)) {
        before = after;
        after = At(before)->next[layer].load(std::memory_order_acquire);
      }
    }
  }
}

const LogEntry* SkipListMemtable::Find(const SearchKey& target) const {
  const uint32_t found = FindGreaterOrEqual(target, nullptr);
  if (found == 0) return nullptr;
  const Node* node = At(found);
  if (node->prefix != target.prefix) return nullptr;
  const LogEntry* entry = EntryOf(node);
  return order_->Compare(entry->key(), target.key) == 0 ? entry : nullptr;
}

uint32_t SkipListMemtable::FindLess(const SearchKey& target) const {
  uint32_t before = head_;
  for (uint32_t layer = top_.load(std::memory_order_acquire); layer-- > 0;) {
    for (uint32_t next = At(before)->next[layer].load(std::memory_order_acquire); next != 0 && Before(At(next), target);
         next = At(before)->next[layer].load(std::memory_order_acquire)) {
      before = next;
    }
  }
  return before == head_ ? 0 : before;
}

uint32_t SkipListMemtable::FindLast() const {
  uint32_t before = head_;
  for (uint32_t layer = top_.load(std::memory_order_acquire); layer-- > 0;) {
    while (uint32_t next = At(before)->next[layer].load(std::memory_order_acquire)) before = next;
  }
  return before == head_ ? 0 : before;
}

size_t SkipListMemtable::Walk(uint64_t* position, PmPtr* pointers, size_t capacity) const {
  uint32_t node = At(*position == 0 ? head_ : static_cast<uint32_t>(*position))->next[0].load(std::memory_order_acquire);
  size_t count = 0;
  while (node != 0 && count < capacity) {
    const Node* at = At(node);
    pointers[count++] = PmPtr(at->entry);
    *position = node;
    node = at->next[0].load(std::memory_order_acquire);
  }
  return count;
}

class SkipListMemtableCursor final : public EntryCursor {
 public:
  explicit SkipListMemtableCursor(const SkipListMemtable* table) : table_(table) {}

  void SeekToFirst() override { Set(table_->At(table_->head_)->next[0].load(std::memory_order_acquire)); }
  void SeekToLast() override { Set(table_->FindLast()); }
  void Seek(const SearchKey& target) override { Set(table_->FindGreaterOrEqual(target, nullptr)); }
  void SeekBefore(const SearchKey& target) override { Set(table_->FindLess(target)); }
  void Next() override { Set(table_->At(node_)->next[0].load(std::memory_order_acquire)); }
  void Prev() override { Set(table_->FindLess(SearchKey(*table_->order_, entry_->key(), entry_->sequence()))); }
  const LogEntry* entry() const override { return entry_; }

 private:
  void Set(uint32_t node) {
    node_ = node;
    entry_ = node == 0 ? nullptr : table_->EntryOf(table_->At(node));
  }

  const SkipListMemtable* table_;
  uint32_t node_ = 0;
  const LogEntry* entry_ = nullptr;
};

std::unique_ptr<EntryCursor> SkipListMemtable::NewCursor() const { return std::make_unique<SkipListMemtableCursor>(this); }

}  // namespace braiddb
