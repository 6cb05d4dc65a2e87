// SkipListMemtable: a lock-free skiplist in DRAM. Its nodes contain the first eight bytes of the key.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "log/foreign_entry.h"
#include "lsm/memtable.h"
#include "pmem/region_set.h"

namespace braiddb {

// LAYOUT       A few skiplists (shards). A thread always inserts into the shard of its thread index, so that writers on different
//              CPUs rarely write the same cache lines. A lookup takes the newest entry of all shards. Walks and cursors merge the
//              shards.
// CONCURRENCY  Insert-only. Nodes are linked bottom-up by compare-and-swap and never unlinked, so a reader may follow any node
//              that it reaches for as long as the memtable lives. A node has the height of its entry.
class SkipListMemtable final : public Memtable {
 public:
  SkipListMemtable(uint64_t id, const RegionSet* regions, const KeyOrder* order, std::unique_ptr<Arena> arena,
                   uint32_t block_bytes, uint32_t shards);
  // A memtable for reading only over another process' arena (Arena::Attach).
  static std::unique_ptr<SkipListMemtable> Attach(uint64_t id, const RegionSet* regions, const KeyOrder* order,
                                                  std::unique_ptr<Arena> arena);
  ~SkipListMemtable() override;

  void Prefetch(uint64_t) const override {}
  bool Allocate(NodeBlock* block, uint32_t height, Insertion* insertion) override;
  // Does nothing: the search would take longer than the fence with which Prepare overlaps it.
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
  const Arena* arena() const override { return arena_.get(); }

 private:
  SkipListMemtable(uint64_t id, const RegionSet* regions, const KeyOrder* order, std::unique_ptr<Arena> arena);
  friend class SkipListMemtableCursor;
  friend class SkipListMemtableWalker;
  struct Node {
    uint64_t prefix;
    uint64_t entry;
    std::atomic<uint32_t> next[1];
  };
  static uint64_t NodeBytes(uint32_t height) { return (16 + 4ull * height + 7) & ~7ull; }

  Node* At(uint32_t reference) const { return arena_->At<Node>(reference); }
  const LogEntry* EntryOf(const Node* node) const {
    const PmPtr place(node->entry);
    return __builtin_expect(block_bytes_ != 0, 1) ? regions_->Resolve<LogEntry>(place) : ForeignEntry(*regions_, place);
  }
  // False: the search in another process' memtable has made too many steps.
  bool MayStep(uint32_t* steps) const { return __builtin_expect(block_bytes_ != 0, 1) || ++*steps < kMaxForeignSteps; }
  bool Before(const Node* node, const SearchKey& target) const {
    if (node->prefix != target.prefix) return node->prefix < target.prefix;
    return CompareEntry(*order_, *EntryOf(node), target) < 0;
  }
  // First node at or after the target; 0 if there is none. If `insertion` is given, fills before and after for all layers in use.
  uint32_t FindGreaterOrEqual(uint32_t shard, const SearchKey& target, Insertion* insertion) const;
  // Last node before the target, and last node of the shard; 0 if there is none.
  uint32_t FindLess(uint32_t shard, const SearchKey& target) const;
  uint32_t FindLast(uint32_t shard) const;
  uint32_t First(uint32_t shard) const { return At(shards_[shard].head)->next[0].load(std::memory_order_acquire); }

  const RegionSet* regions_;
  const KeyOrder* order_;
  std::unique_ptr<Arena> arena_;
  const uint32_t block_bytes_;
  struct alignas(128) Shard {
    uint32_t head = 0;
    std::atomic<uint32_t> top{1};  // number of layers in use
  };
  std::vector<Shard> shards_;
};

}  // namespace braiddb
