// HashMemtable: found by hash at once, ordered when someone asks for the order (after HiKV, USENIX ATC '17, 3.2).
#pragma once

#include <atomic>
#include <boost/container/vector.hpp>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "index/ordered_item.h"
#include "index/prefix_steps.h"
#include "lsm/memtable.h"
#include "pmem/region_set.h"

namespace braiddb {

// STRUCTURE    A node per entry, in blocks that threads cut from the arena, in the order of their writes. Tables of buckets, a
//              line each, filled front to back; a full one goes on in the next. A slot is a tag of 32 bits of the key's hash and
//              the reference of the node of the key's newest version here; nodes of older ones hang behind it, newest first. When
//              nodes are more than a table is made for, a larger one comes before it, and both are asked.
// ORDER        Runs: sorted arrays of nodes. Whoever wants cursors first puts all entries that are in no run yet into one more,
//              and joins runs of similar size, so n entries are in at most about log2 n of them. The flush takes all together. A
//              block says how many of its nodes its thread has taken: what is behind them need not be looked at.
// CONCURRENCY  Nothing is removed, so of two writers with one new key both try the same empty slot, and the second finds the
//              first one's. A place is taken by a compare-and-swap of the slot, before the entry's fence if it is claimed, and
//              the entry becomes visible by the store of the node's `entry`: lookups pass by nodes without one, to the versions
//              behind. Whether a slot has a writer's key any published version tells; where there is none, it waits. Without a
//              claim `entry` is stored before the slot: a run may have an entry that no lookup finds yet; who makes cursors for a
//              snapshot has waited for all writes up to it. Runs are made under a mutex, which no writer takes, and never
//              changed.
// KEYS         Equal keys must have the same bytes (KeyOrder::equal_means_same).
class HashMemtable final : public Memtable {
 public:
  // For about so many entries; more are possible. Null if the arena has no room.
  static std::unique_ptr<HashMemtable> Create(uint64_t id, const RegionSet* regions, const KeyOrder* order,
                                              std::unique_ptr<Arena> arena, uint32_t block_bytes, uint64_t entries);

  void Prefetch(uint64_t hash) const override;
  bool Allocate(NodeBlock* block, uint32_t height, Insertion* insertion) override;
  void Claim(Slice key, uint64_t sequence, Insertion* insertion) override;
  void Abandon(Insertion* insertion) override;
  void Prepare(const LogEntry* entry, PmPtr pointer, Insertion* insertion) override;
  void Publish(Insertion* insertion) override;
  bool MayContain(uint64_t hash) const noexcept override;
  const LogEntry* Find(const SearchKey& target, uint64_t hash) const override;
  void FindOperands(const SearchKey& target, uint64_t hash, std::vector<const LogEntry*>* versions) const override;
  void AddCursors(std::vector<std::unique_ptr<EntryCursor>>* cursors, std::vector<OrderedArray>* arrays) const override;
  std::unique_ptr<Walker> NewWalker() const override;
  uint64_t DramBytes() const override;
  std::unique_ptr<Arena> TakeArena() override { return std::move(arena_); }

 private:
  friend class HashMemtableWalker;
  struct Node {
    uint64_t prefix;
    std::atomic<uint64_t> entry;  // 0: not published; kAbandoned: never will be
    uint64_t sequence;
    std::atomic<uint32_t> older;  // version of the key; 0: none
    // Of the newest version: the node that was last put behind it; 0: none. Where to begin for the next.
    std::atomic<uint32_t> last_behind;
  };
  static_assert(sizeof(Node) == 32);
  static constexpr uint32_t kNodeUnits = sizeof(Node) / 8;
  static constexpr uint64_t kAbandoned = 1;  // no entry has this address
  static constexpr uint32_t kSlots = 8;
  struct alignas(64) Bucket {
    std::atomic<uint64_t> slots[kSlots];
  };
  // In the arena, its buckets behind it.
  struct alignas(64) Table {
    uint64_t mask;    // number of buckets - 1
    uint64_t before;  // reference of the smaller one; 0: none
    Bucket buckets[];
  };
  using Item = OrderedItem;
  using Items = boost::container::vector<Item>;
  // Sorted in entry order.
  struct Run {
    Items items;
    PrefixSteps steps;         // of runs for cursors
    uint64_t fetch_bytes = 0;  // of an entry, as well
  };
  // In front of a block's nodes.
  struct BlockHead {
    std::atomic<uint32_t> used;  // nodes that were taken
  };
  static_assert(sizeof(BlockHead) <= sizeof(Node));
  struct Block {
    uint32_t nodes;  // reference of the first
    uint32_t first;  // of those that are in no run
    std::vector<bool> is_taken;
  };

  HashMemtable(uint64_t id, const RegionSet* regions, const KeyOrder* order, std::unique_ptr<Arena> arena, uint32_t block_bytes);

  static uint32_t TagOf(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  Node* At(uint32_t reference) const { return arena_->At<Node>(reference); }
  Table* TableAt(uint64_t reference) const { return arena_->At<Table>(static_cast<uint32_t>(reference)); }
  static bool IsPublished(uint64_t entry) { return entry > kAbandoned; }
  const LogEntry* EntryOf(const Node& node) const {
    return regions_->Resolve<LogEntry>(PmPtr(node.entry.load(std::memory_order_acquire)));
  }
  // The first of this node and of those behind it that is published; null if none is.
  const Node* FirstPublished(const Node* node) const {
    while (__builtin_expect(!IsPublished(node->entry.load(std::memory_order_acquire)), 0)) {
      const uint32_t older = node->older.load(std::memory_order_acquire);
      if (older == 0) return nullptr;
      node = At(older);
    }
    return node;
  }
  bool IsOf(const Node* newest, Slice key) const;
  bool WaitIsOf(const Node* newest, Slice key) const;
  // 0 if there is no room.
  uint32_t NewTable(uint64_t entries, uint32_t before);
  bool NewBlock(NodeBlock* block);
  // Of the slots of a bucket, bit i: slot i is empty; slot i has the tag, and no slot before it is empty.
  struct Scan {
    uint32_t empty;
    uint32_t with_tag;
  };
  static Scan ScanBucket(const Bucket& bucket, uint32_t tag);
  void Enter(Table* table, uint64_t hash, Slice key, uint32_t reference);
  void EnterBehind(Node* newest, Node* node, uint32_t reference);
  // REQUIRES: `nodes` is what NewBlock made.
  BlockHead* HeadOf(uint32_t nodes) const { return arena_->At<BlockHead>(nodes - kNodeUnits); }
  bool Before(const Item& a, const Item& b) const;
  void Sort(Items* items) const;
  // Sets what is not set yet, of neighbours: an item that has a newer one of its key before it keeps that, wherever it comes to.
  void MarkOlder(Item* items, size_t size) const;
  void OrderAlike(std::span<Item> items) const;
  // Runs, the oldest first, and what is newer than they are. REQUIRES: there is a run.
  Items Join(std::span<const std::shared_ptr<const Run>> runs, std::span<const Item> newest) const;
  void TakeNewBlocks() const;
  // All entries that are published, in runs.
  std::vector<std::shared_ptr<const Run>> TakeRuns() const;
  std::vector<std::shared_ptr<const Run>> RunsOfAll() const;

  const RegionSet* const regions_;
  const KeyOrder* const order_;
  std::unique_ptr<Arena> arena_;
  const uint32_t block_nodes_;
  uint32_t first_table_ = 0;
  std::atomic<uint32_t> table_{0};            // the largest one; 0 before the first node: lookups need not touch a bucket
  mutable std::mutex growth_mutex_;           // taken inside runs_mutex_; writers that need a block take it alone, and briefly
  mutable std::vector<uint32_t> new_blocks_;  // that blocks_ does not have yet
  mutable std::atomic<bool> has_new_blocks_{false};
  uint64_t room_ = 0;  // nodes that there may be before a larger table is made
  uint64_t nodes_ = 0;

  mutable std::mutex runs_mutex_;      // held while runs are sorted and joined
  mutable std::vector<Block> blocks_;  // that have nodes which are in no run
  mutable std::vector<std::shared_ptr<const Run>> runs_;
  mutable std::atomic<uint64_t> run_bytes_{0};
};

}  // namespace braiddb
