// HashMemtable: a memtable with a hash table for point lookups. It sorts its entries on demand (after HiKV, USENIX ATC '17, 3.2).
#pragma once

#include <algorithm>
#include <atomic>
#include <boost/container/vector.hpp>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "index/ordered_item.h"
#include "index/prefix_steps.h"
#include "log/foreign_entry.h"
#include "lsm/memtable.h"
#include "pmem/region_set.h"

namespace braiddb {

// LAYOUT       Each entry has a node. Threads cut nodes from blocks of the arena, in the order of their writes. A table is an
//              array of buckets of one cache line, each filled front to back; a full bucket continues in the next one. A slot
//              holds a 32-bit tag of the key's hash and the reference of a node: the newest version of the key in this table.
//              Older versions hang behind that node in a chain, newest first. When the number of nodes exceeds the capacity of
//              the table, a larger table is added. The `before` field links it to the smaller one, and lookups search all of
//              them.
// ORDER        A run is a sorted array of nodes. Before the memtable creates a cursor, it sorts all entries that are in no run
//              yet into a new run. It then merges runs of similar size, so that n entries form at most log4 n runs. The flush
//              merges all runs into one. The head of each block holds the number of nodes taken from the block, so a scan of the
//              block ends there.
// CONCURRENCY  No slot or node is ever removed. Two writers that insert the same new key therefore try the same empty slot, and
//              the second one finds the node of the first. A writer takes an insertion point by a compare-and-swap of the slot.
//              With a claim, it does so before the fence of the entry. The entry becomes visible by the store of the node's
//              `entry`. Lookups skip nodes without `entry` and continue with the older versions. Any published version of a chain
//              tells which key a slot belongs to. If a chain has no published version, a writer waits for one. Without a claim,
//              the writer stores `entry` before the slot. A run may therefore contain an entry that no lookup finds yet. This is
//              harmless: a caller that creates cursors for a snapshot has waited for all writes up to the snapshot. Runs are
//              created under a mutex that no writer takes, and are immutable.
// KEYS         Equal keys must have the same bytes (KeyOrder::equal_means_same).
// SHARED       All that lookups and runs need is in the arena, and is named by the arena's OwnersWords. So another process can
//              attach a memtable to an arena in a SharedHeap, and reads from it while the owner writes.
class HashMemtable final : public Memtable {
 public:
  // Sized for about `entries` entries; the memtable can hold more. Null if the arena has no room.
  static std::unique_ptr<HashMemtable> Create(uint64_t id, const RegionSet* regions, const KeyOrder* order,
                                              std::unique_ptr<Arena> arena, uint32_t block_bytes, uint64_t entries);
  // A memtable for reading only over another process' arena (Arena::Attach).
  static std::unique_ptr<HashMemtable> Attach(uint64_t id, const RegionSet* regions, const KeyOrder* order,
                                              std::unique_ptr<Arena> arena);

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
  const Arena* arena() const override { return arena_.get(); }

 private:
  friend class HashMemtableWalker;
  struct Node {
    uint64_t prefix;
    std::atomic<uint64_t> entry;  // 0: not published yet; kAbandoned: never will be
    uint64_t sequence;
    std::atomic<uint32_t> older;  // reference of the next older version of the key; 0: none
    // Used in the newest version of a chain: the node that EnterBehind inserted last; 0: none. The next EnterBehind starts its
    // search there.
    std::atomic<uint32_t> last_behind;
  };
  static_assert(sizeof(Node) == 32);
  static constexpr uint32_t kNodeUnits = sizeof(Node) / 8;
  static constexpr uint64_t kAbandoned = 1;                             // no entry has this address
  static constexpr uint64_t kMaxForeignMask = (uint64_t{1} << 26) - 1;  // 4 GiB of buckets, which the guard has room for
  static constexpr uint32_t kSlots = 8;
  struct alignas(64) Bucket {
    std::atomic<uint64_t> slots[kSlots];
  };
  // Lies in the arena, directly followed by its buckets.
  struct alignas(64) Table {
    uint64_t mask;    // number of buckets - 1
    uint64_t before;  // reference of the next smaller table; 0: none
    Bucket buckets[];
  };
  using Item = OrderedItem;
  using Items = boost::container::vector<Item>;
  // An immutable array sorted in entry order.
  struct Run {
    Items items;
    PrefixSteps steps;         // search steps over `items`; built for runs that cursors use
    AlikeSteps alike;          // the same
    uint64_t fetch_bytes = 0;  // typical bytes of an entry; set together with `steps`
  };
  // Precedes the nodes of a block.
  struct BlockHead {
    std::atomic<uint32_t> used;  // number of nodes taken from the block
    uint32_t before;             // reference of the first node of the block that was added before; 0: none
  };
  static_assert(sizeof(BlockHead) <= sizeof(Node));
  struct Block {
    uint32_t nodes;              // reference of the first node
    uint32_t first;              // index of the first node that is in no run
    std::vector<bool> is_taken;  // bit i: node i is in a run; empty: no node is
  };

  // The OwnersWords of the arena.
  enum Word : uint32_t { kTableWord, kLastBlockWord, kBlockBytesWord };

  // `is_owner`: this process writes to the memtable.
  HashMemtable(uint64_t id, const RegionSet* regions, const KeyOrder* order, std::unique_ptr<Arena> arena, uint32_t block_bytes,
               bool is_owner);
  // Makes this table the largest. REQUIRES: growth_mutex_ is held.
  void PublishTable(uint32_t reference);

  // The tag of a slot: the upper half of the hash. The lower bits select the bucket.
  static uint32_t TagOf(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  Node* At(uint32_t reference) const { return arena_->At<Node>(reference); }
  // Aligned also if the reference is not one of a table, as a live reader may find that has expired (db/live_reader.h).
  Table* TableAt(uint64_t reference) const {
    constexpr uint32_t kUnits = alignof(Table) / 8;
    return arena_->At<Table>(static_cast<uint32_t>(reference) & ~(kUnits - 1));
  }
  static bool IsPublished(uint64_t entry) { return entry > kAbandoned; }
  const LogEntry* EntryOf(const Node& node) const {
    const PmPtr place(node.entry.load(std::memory_order_acquire));
    return __builtin_expect(table_ == &own_table_, 1) ? regions_->Resolve<LogEntry>(place) : ForeignEntry(*regions_, place);
  }
  // The number of buckets of a table, minus one.
  uint64_t MaskOf(const Table& table) const {
    return __builtin_expect(table_ == &own_table_, 1) ? table.mask : table.mask & kMaxForeignMask;
  }
  // False: the search in another process' memtable has made too many steps.
  bool MayStep(uint32_t* steps) const { return __builtin_expect(table_ == &own_table_, 1) || ++*steps < kMaxForeignSteps; }
  // The first published node of the chain that starts at `node`; null if no node of the chain is published.
  const Node* FirstPublished(const Node* node) const {
    uint32_t steps = 0;
    while (__builtin_expect(!IsPublished(node->entry.load(std::memory_order_acquire)), 0)) {
      const uint32_t older = node->older.load(std::memory_order_acquire);
      if (older == 0 || !MayStep(&steps)) return nullptr;
      node = At(older);
    }
    return node;
  }
  // Returns true if the chain that starts at `newest` belongs to `key`. Waits if no node of the chain is published yet.
  bool IsOf(const Node* newest, Slice key) const;
  bool WaitIsOf(const Node* newest, Slice key) const;
  // Allocates a table and sets room_. Returns its reference, 0 if the arena has no room.
  uint32_t NewTable(uint64_t entries, uint32_t before);
  // Allocates a block of nodes for one thread, and a larger table if the capacity is exceeded. False if the arena has no room.
  bool NewBlock(NodeBlock* block);
  // Bit i of `empty`: slot i is empty. Bit i of `with_tag`: slot i has the tag, and all slots before it are in use.
  struct Scan {
    uint32_t empty;
    uint32_t with_tag;
  };
  static Scan ScanBucket(const Bucket& bucket, uint32_t tag);
  // Inserts the node into the chain of its key, or into the first empty slot of the probe sequence.
  void Enter(Table* table, uint64_t hash, Slice key, uint32_t reference);
  // Inserts the node at its position in the chain behind `newest`, which has a larger sequence number.
  void EnterBehind(Node* newest, Node* node, uint32_t reference);
  // REQUIRES: `nodes` was returned by NewBlock.
  BlockHead* HeadOf(uint32_t nodes) const { return arena_->At<BlockHead>(nodes - kNodeUnits); }
  // Entry order: by prefix, then by the entries themselves.
  bool Before(const Item& a, const Item& b) const;
  template <class Iterator>
  static Iterator EndOfAlike(Iterator first, Iterator end);
  // Each of the three sorts in entry order and sets kOlder. May throw std::bad_alloc; the items are then in any order.
  void Sort(Items* items) const;
  void SortByComparison(std::span<Item> items) const;
  void SortAlike(std::span<Item> items) const;
  // Sets kOlder of each item that has the key of its predecessor. Flags that are set stay: an item that follows a newer version
  // of its key in one run also follows a newer version after a merge of runs.
  void MarkOlder(std::span<Item> items) const;
  // Puts items with equal prefixes in entry order after MergeByPrefix, and sets their kOlder. May throw std::bad_alloc.
  void OrderAlike(std::span<const Item> older, std::span<const Item> newer, std::span<Item> items) const;
  // Merges the runs, oldest first, with the sorted items `newest`, which are newer. REQUIRES: at least one run.
  Items Join(std::span<const std::shared_ptr<const Run>> runs, std::span<const Item> newest) const;
  // Adds the blocks that came since the last call to blocks_. REQUIRES: runs_mutex_ is held.
  void TakeNewBlocks() const;
  // Sorts the published entries that are in no run into a run. Then runs_ holds all published entries. REQUIRES: runs_mutex_ is
  // held.
  void TakeRuns() const;
  // The number of nodes taken from the block, at least block.first.
  uint32_t UsedOf(const Block& block) const {
    return std::clamp(HeadOf(block.nodes)->used.load(std::memory_order_acquire), block.first, block_nodes_);
  }
  // Like TakeRuns, but leaves runs_ unchanged and merges nothing. For the flush.
  std::vector<std::shared_ptr<const Run>> RunsOfAll() const;

  const RegionSet* const regions_;
  const KeyOrder* const order_;
  std::unique_ptr<Arena> arena_;
  const uint32_t block_nodes_;
  uint32_t first_table_ = 0;
  std::atomic<uint64_t> own_table_{0};  // of the owner; the OwnersWord has a copy
  std::atomic<uint64_t>* const table_;  // reference of the largest table; 0 until the first node: lookups then touch no bucket
  std::atomic<uint64_t>* const last_block_;  // reference of the first node of the newest block; 0: none
  std::mutex growth_mutex_;                  // held by writers that need a block, for a short time
  uint64_t room_ = 0;                        // number of nodes after which a larger table is added
  uint64_t nodes_ = 0;                       // number of nodes in all blocks

  mutable std::mutex runs_mutex_;      // held while runs are sorted and merged
  mutable std::vector<Block> blocks_;  // blocks with nodes that are in no run
  mutable uint32_t known_block_ = 0;   // *last_block_ at the last TakeNewBlocks
  mutable std::vector<std::shared_ptr<const Run>> runs_;
  mutable std::atomic<uint64_t> run_bytes_{0};
};

}  // namespace braiddb
