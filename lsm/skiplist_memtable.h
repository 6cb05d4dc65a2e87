// SkipListMemtable: a lock-free skiplist in DRAM whose nodes carry the first eight bytes of the key.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "lsm/memtable.h"
#include "pmem/region_set.h"

namespace braiddb {

// STRUCTURE    A few skiplists (shards), so that writers on different CPUs do not take each other's cache lines: a thread always
//              inserts into the shard of its index. A lookup takes the newest of what the shards have; walks and cursors merge
//              them.
// CONCURRENCY  Insert-only: nodes are linked bottom-up by compare-and-swap and never unlinked, so a reader that reaches a node
//              may follow it for as long as the memtable lives. Node heights are the heights of the entries.
class SkipListMemtable final : public Memtable {
 public:
  SkipListMemtable(uint64_t id, const RegionSet* regions, const KeyOrder* order, std::unique_ptr<Arena> arena,
                   uint32_t block_bytes, uint32_t shards);
  ~SkipListMemtable() override;

  void Prefetch(uint64_t) const override {}
  bool Allocate(NodeBlock* block, uint32_t height, Insertion* insertion) override;
  // Nothing: a search would take longer than the fence, beside which it is made as it is.
  void Claim(Slice, uint64_t, Insertion* insertion) override { insertion->is_claimed = false; }
  void Abandon(Insertion*) override {}
  void Prepare(const LogEntry* entry, PmPtr pointer, Insertion* insertion) override;
  void Publish(Insertion* insertion) override;
  const LogEntry* Find(const SearchKey& target, uint64_t hash) const override;
  void FindOperands(const SearchKey& target, uint64_t hash, std::vector<const LogEntry*>* versions) const override;
  void AddCursors(std::vector<std::unique_ptr<EntryCursor>>* cursors, std::vector<OrderedArray>* arrays) const override;
  std::unique_ptr<Walker> NewWalker() const override;
  uint64_t DramBytes() const override { return arena_->used_bytes(); }
  std::unique_ptr<Arena> TakeArena() override { return std::move(arena_); }

 private:
  friend class SkipListMemtableCursor;
  friend class SkipListMemtableWalker;
  struct Node {
    uint64_t prefix;
    uint64_t entry;
    std::atomic<uint32_t> next[1];
  };
  static uint64_t NodeBytes(uint32_t height) { return (16 + 4ull * height + 7) & ~7ull; }

  Node* At(uint32_t reference) const { return arena_->At<Node>(reference); }
  const LogEntry* EntryOf(const Node* node) const { return regions_->Resolve<LogEntry>(PmPtr(node->entry)); }
  bool Before(const Node* node, const SearchKey& target) const {
    if (node->prefix != target.prefix) return node->prefix < target.prefix;
    return CompareEntry(*order_, *EntryOf(node), target) < 0;
  }
  // First node at or after target; fills before/after for all layers when given.
  uint32_t FindGreaterOrEqual(uint32_t shard, const SearchKey& target, Insertion* insertion) const;
  uint32_t FindLess(uint32_t shard, const SearchKey& target) const;
  uint32_t FindLast(uint32_t shard) const;
  uint32_t First(uint32_t shard) const { return At(shards_[shard].head)->next[0].load(std::memory_order_acquire); }

  const RegionSet* regions_;
  const KeyOrder* order_;
  std::unique_ptr<Arena> arena_;
  const uint32_t block_bytes_;
  struct alignas(128) Shard {
    uint32_t head = 0;
    std::atomic<uint32_t> top{1};  // layers in use
  };
  std::vector<Shard> shards_;
};

}  // namespace braiddb
