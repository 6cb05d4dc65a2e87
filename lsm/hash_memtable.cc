#include "lsm/hash_memtable.h"

#include <algorithm>
#include <bit>

#include "util/line_words.h"
#include "util/prefetch.h"
#include "util/short_bytes.h"
#include "util/spin.h"

namespace braiddb {
namespace {

// Upper bound of the capacity of the first table, which takes its memory before there are entries.
constexpr uint64_t kFirstTableEntries = 1 << 20;
// Prefetch distance in nodes. The arena's memory was used by an earlier memtable, so it is not in the writer's cache.
constexpr uint32_t kNodesAhead = 7;

}  // namespace

HashMemtable::HashMemtable(uint64_t id, const RegionSet* regions, const KeyOrder* order, std::unique_ptr<Arena> arena,
                           uint32_t block_bytes, bool is_owner)
    : Memtable(id),
      regions_(regions),
      order_(order),
      arena_(std::move(arena)),
      block_nodes_(static_cast<uint32_t>(block_bytes / sizeof(Node))),
      table_(is_owner ? &own_table_ : arena_->OwnersWord(kTableWord)),
      last_block_(arena_->OwnersWord(kLastBlockWord)) {}

std::unique_ptr<HashMemtable> HashMemtable::Create(uint64_t id, const RegionSet* regions, const KeyOrder* order,
                                                   std::unique_ptr<Arena> arena, uint32_t block_bytes, uint64_t entries) {
  std::unique_ptr<HashMemtable> memtable(new HashMemtable(id, regions, order, std::move(arena), block_bytes, true));
  memtable->arena_->OwnersWord(kBlockBytesWord)->store(block_bytes, std::memory_order_relaxed);
  memtable->first_table_ = memtable->NewTable(std::min(entries, kFirstTableEntries), 0);
  return memtable->first_table_ == 0 ? nullptr : std::move(memtable);
}

std::unique_ptr<HashMemtable> HashMemtable::Attach(uint64_t id, const RegionSet* regions, const KeyOrder* order,
                                                   std::unique_ptr<Arena> arena) {
  const auto block_bytes = static_cast<uint32_t>(arena->OwnersWord(kBlockBytesWord)->load(std::memory_order_relaxed));
  return std::unique_ptr<HashMemtable>(new HashMemtable(id, regions, order, std::move(arena), block_bytes, false));
}

// ---- Writing

uint32_t HashMemtable::NewTable(uint64_t entries, uint32_t before) {
  const uint64_t buckets = std::bit_ceil(std::max<uint64_t>(1, entries / (kSlots / 2)));
  const uint64_t bytes = sizeof(Table) + buckets * sizeof(Bucket);
  const uint32_t block = arena_->AllocateBlock(bytes + alignof(Table));
  if (block == 0) return 0;
  const uint32_t units = alignof(Table) / 8;
  const uint32_t reference = (block + units - 1) / units * units;  // align; the arena's memory begins at a page boundary
  Table* const table = TableAt(reference);
  table->mask = buckets - 1;
  table->before = before;
  room_ = buckets * kSlots * 3 / 4;  // counts the nodes of all tables: a node allocated before growth may be inserted after it
  return reference;
}

// STEPS  1. Take memory for the nodes.  2. If the capacity is exceeded, publish a table for twice the number of nodes.  3. Put
//        the block into the chain of blocks, so that runs find its nodes.
// WHY IT IS RIGHT  A new table consists of zeros, which are empty buckets. Writers that loaded the old table still insert into
//                  it, and lookups search both.
bool HashMemtable::NewBlock(NodeBlock* block) {
  const uint32_t head = arena_->AllocateBlock((uint64_t{block_nodes_} + 1) * sizeof(Node));
  if (head == 0) return false;
  const uint32_t nodes = head + kNodeUnits;
  std::lock_guard lock(growth_mutex_);
  if (nodes_ == 0) PublishTable(first_table_);
  if (nodes_ + block_nodes_ > room_) {
    const auto before = static_cast<uint32_t>(table_->load(std::memory_order_relaxed));
    const uint32_t larger = NewTable(2 * (nodes_ + block_nodes_), before);
    if (larger == 0) return false;  // the block remains unused
    PublishTable(larger);
  }
  HeadOf(nodes)->before = static_cast<uint32_t>(last_block_->load(std::memory_order_relaxed));
  last_block_->store(nodes, std::memory_order_release);
  nodes_ += block_nodes_;
  *block = NodeBlock{id(), nodes, nodes + block_nodes_ * kNodeUnits};
  return true;
}

// ORDER: readers in other processes find the table before a writer of this process can use it.
void HashMemtable::PublishTable(uint32_t reference) {
  arena_->OwnersWord(kTableWord)->store(reference, std::memory_order_release);
  own_table_.store(reference, std::memory_order_release);
}

bool HashMemtable::Allocate(NodeBlock* block, uint32_t, Insertion* insertion) {
  if ((block->owner != id() || block->cursor == block->end) && !NewBlock(block)) return false;
  insertion->node = block->cursor;
  block->cursor += kNodeUnits;
  // release: pairs with the acquire in TakeRuns. A thread that waited for this write sees a `used` that includes its node.
  const uint32_t nodes = block->end - block_nodes_ * kNodeUnits;
  HeadOf(nodes)->used.store((block->cursor - nodes) / kNodeUnits, std::memory_order_release);
  PrefetchForWrite(At(block->cursor + kNodesAhead * kNodeUnits));
  return true;
}

// The node takes its slot before its entry is durable. `entry` is 0, so lookups skip the node until Publish.
void HashMemtable::Claim(Slice key, uint64_t sequence, Insertion* insertion) {
  Node* const node = At(insertion->node);
  node->prefix = order_->Prefix(key);
  node->sequence = sequence;
  insertion->is_claimed = true;
  Enter(TableAt(table_->load(std::memory_order_acquire)), insertion->key_hash, key, insertion->node);
}

// The node stays in its chain for ever. kAbandoned tells writers that wait in WaitIsOf that the entry will never come.
void HashMemtable::Abandon(Insertion* insertion) {
  if (insertion->is_claimed) At(insertion->node)->entry.store(kAbandoned, std::memory_order_release);
}

void HashMemtable::Prepare(const LogEntry* entry, PmPtr pointer, Insertion* insertion) {
  const Slice key = entry->key();
  insertion->entry = entry;
  insertion->pointer = pointer;
  Node* const node = At(insertion->node);
  node->prefix = order_->Prefix(key);
  node->sequence = entry->sequence();
  // Publish compares the key with an entry that has the same tag. The prefetch of that entry overlaps with the caller's fence.
  const Table& table = *TableAt(table_->load(std::memory_order_acquire));
  Scan scan = ScanBucket(table.buckets[insertion->key_hash & table.mask], TagOf(insertion->key_hash));
  for (; scan.with_tag != 0; scan.with_tag &= scan.with_tag - 1) {
    const auto& place = table.buckets[insertion->key_hash & table.mask].slots[std::countr_zero(scan.with_tag)];
    const Node* const newest = FirstPublished(At(static_cast<uint32_t>(place.load(std::memory_order_acquire))));
    if (newest != nullptr) braiddb::Prefetch(EntryOf(*newest));
  }
}

void HashMemtable::Publish(Insertion* insertion) {
  // release: the durable entry and the node's other fields are visible before `entry`.
  At(insertion->node)->entry.store(insertion->pointer.raw(), std::memory_order_release);
  if (insertion->is_claimed) return;
  Enter(TableAt(table_->load(std::memory_order_acquire)), insertion->key_hash, insertion->entry->key(), insertion->node);
}

// Compares all slots at once with vector instructions, since a branch per slot would be mispredicted. acquire: if a lookup finds
// that the key is absent here, its later loads from older levels are at least as new as this line.
[[gnu::always_inline]] inline HashMemtable::Scan HashMemtable::ScanBucket(const Bucket& bucket, uint32_t tag) {
  static_assert(kSlots == 8 && sizeof(Bucket) == 8 * sizeof(uint64_t));
  const LineWords line = LoadLine(&bucket);
  const uint32_t empty = EqualHalves(LowerHalves(line), 0);  // a slot with reference 0 is empty
  const uint32_t with_tag = EqualHalves(UpperHalves(line), tag);
  return {empty, with_tag & ((empty & -empty) - 1)};
}

// All nodes of a chain have the same key, so one published version decides.
inline bool HashMemtable::IsOf(const Node* newest, Slice key) const {
  const Node* const published = FirstPublished(newest);
  if (__builtin_expect(published == nullptr, 0)) return WaitIsOf(newest, key);
  return SameBytes(EntryOf(*published)->key(), key);
}

// The wait is short: between Claim and Publish or Abandon a writer waits only for its own fence, and it claims one slot at a
// time. If all nodes of the chain are abandoned, the key of the slot is unknown. The result is then false, and the key takes
// another slot.
[[gnu::noinline]] bool HashMemtable::WaitIsOf(const Node* newest, Slice key) const {
  for (SpinWait wait;; wait.Once()) {
    if (const Node* const published = FirstPublished(newest)) return SameBytes(EntryOf(*published)->key(), key);
    bool all_abandoned = true;
    for (const Node* node = newest;;) {
      all_abandoned = all_abandoned && node->entry.load(std::memory_order_acquire) == kAbandoned;
      const uint32_t older = node->older.load(std::memory_order_acquire);
      if (older == 0) break;
      node = At(older);
    }
    if (all_abandoned) return false;
  }
}

// WHY IT IS RIGHT  A key has one slot per table, except after abandoned claims. Slots fill front to back and are never emptied,
//                  so all writers of a key follow the same probe sequence and meet at its first empty slot. If the
//                  compare-and-swap of the empty slot fails, another writer has taken the slot, perhaps with the same key; the
//                  loop scans the same bucket again.
void HashMemtable::Enter(Table* table, uint64_t hash, Slice key, uint32_t reference) {
  Node* const node = At(reference);
  const uint64_t mine = uint64_t{TagOf(hash)} << 32 | reference;
  for (uint64_t bucket = hash & table->mask;;) {
    auto& slots = table->buckets[bucket].slots;
    Scan scan = ScanBucket(table->buckets[bucket], TagOf(hash));
    for (; scan.with_tag != 0; scan.with_tag &= scan.with_tag - 1) {
      std::atomic<uint64_t>& place = slots[std::countr_zero(scan.with_tag)];
      uint64_t there = place.load(std::memory_order_acquire);
      Node* newest = At(static_cast<uint32_t>(there));
      if (!IsOf(newest, key)) continue;
      // The node is the newest version: put it in front of the chain. On failure `there` is another version of the key; compare
      // again.
      while (newest->sequence < node->sequence) {
        node->older.store(static_cast<uint32_t>(there), std::memory_order_relaxed);
        if (place.compare_exchange_strong(there, mine, std::memory_order_acq_rel)) return;
        newest = At(static_cast<uint32_t>(there));  // of the same key: the key of a slot never changes
      }
      EnterBehind(newest, node, reference);
      return;
    }
    // The bucket is full, so the probe sequence continues.
    if (scan.empty == 0) {
      bucket = (bucket + 1) & table->mask;
      continue;
    }
    uint64_t there = 0;  // on failure another writer took the slot, perhaps with the same key: scan again
    if (slots[std::countr_zero(scan.empty)].compare_exchange_strong(there, mine, std::memory_order_acq_rel)) return;
  }
}

// Needed for a write that a newer write of the same key overtook, and for the updates of a key in a batch. A batch enters its
// updates from the newest to the oldest, so each one goes directly behind the one before; `last_behind` gives that position.
void HashMemtable::EnterBehind(Node* newest, Node* node, uint32_t reference) {
  Node* newer = newest;
  const uint32_t last = newest->last_behind.load(std::memory_order_acquire);
  if (last != 0 && At(last)->sequence > node->sequence) newer = At(last);
  for (;;) {
    // Find the last node with a larger sequence number, then insert behind it.
    uint32_t older = newer->older.load(std::memory_order_acquire);
    if (older != 0 && At(older)->sequence > node->sequence) {
      newer = At(older);
      continue;
    }
    node->older.store(older, std::memory_order_relaxed);
    if (newer->older.compare_exchange_strong(older, reference, std::memory_order_acq_rel)) break;
  }
  newest->last_behind.store(reference, std::memory_order_release);
}

// ---- Lookups

void HashMemtable::Prefetch(uint64_t hash) const {
  const uint64_t reference = table_->load(std::memory_order_acquire);
  if (reference == 0) return;
  const Table* const table = TableAt(reference);
  PrefetchForWrite(&table->buckets[hash & MaskOf(*table)]);
}

// WHY IT IS RIGHT  Slots of a probe sequence fill front to back and are never emptied. A key with this hash is therefore in a
//                  slot before the first empty one, and the probe may end there.
bool HashMemtable::MayContain(uint64_t hash) const noexcept {
  uint32_t tables = 0;
  for (uint64_t reference = table_->load(std::memory_order_acquire); reference != 0;) {
    const Table& table = *TableAt(reference);
    const uint64_t mask = MaskOf(table);
    uint32_t steps = 0;
    for (uint64_t bucket = hash & mask;; bucket = (bucket + 1) & mask) {
      const Scan scan = ScanBucket(table.buckets[bucket], TagOf(hash));
      if (scan.with_tag != 0) return true;
      if (scan.empty != 0) break;
      if (!MayStep(&steps)) return true;
    }
    reference = table.before;
    if (!MayStep(&tables)) return true;
  }
  return false;
}

// WHY IT IS RIGHT  A chain is sorted newest first, so its first published node with sequence <= target.sequence is the newest
//                  visible version in its table. Versions of the key in several tables have no order among the tables, so the
//                  largest sequence number wins.
const LogEntry* HashMemtable::Find(const SearchKey& target, uint64_t hash) const {
  const LogEntry* found = nullptr;
  uint32_t steps = 0;
  const auto in_table = [&](const Table& table) {
    const uint64_t mask = MaskOf(table);
    for (uint64_t bucket = hash & mask;; bucket = (bucket + 1) & mask) {
      Scan scan = ScanBucket(table.buckets[bucket], TagOf(hash));
      for (; scan.with_tag != 0; scan.with_tag &= scan.with_tag - 1) {
        const auto& place = table.buckets[bucket].slots[std::countr_zero(scan.with_tag)];
        const Node* node = FirstPublished(At(static_cast<uint32_t>(place.load(std::memory_order_acquire))));
        if (node == nullptr || !SameBytes(EntryOf(*node)->key(), target.key)) continue;
        while (node->sequence > target.sequence || !IsPublished(node->entry.load(std::memory_order_acquire))) {
          const uint32_t older = node->older.load(std::memory_order_acquire);
          if (older == 0 || !MayStep(&steps)) return;
          node = At(older);
        }
        if (found == nullptr || found->sequence() < node->sequence) found = EntryOf(*node);
        return;
      }
      if (scan.empty != 0 || !MayStep(&steps)) return;
    }
  };
  for (uint64_t reference = table_->load(std::memory_order_acquire); reference != 0;) {
    const Table& table = *TableAt(reference);
    in_table(table);
    reference = MayStep(&steps) ? table.before : 0;
  }
  return found;
}

// Each table may hold some versions of the key, so all tables are searched.
void HashMemtable::FindOperands(const SearchKey& target, uint64_t hash, std::vector<const LogEntry*>* versions) const {
  uint32_t steps = 0;
  const auto add_chain = [&](const Node* node) {
    for (;;) {
      if (node->sequence <= target.sequence && IsPublished(node->entry.load(std::memory_order_acquire))) {
        versions->push_back(EntryOf(*node));
        if (!versions->back()->is_operand()) return;
      }
      const uint32_t older = node->older.load(std::memory_order_acquire);
      if (older == 0 || !MayStep(&steps)) return;
      node = At(older);
    }
  };
  const auto in_table = [&](const Table& table) {
    const uint64_t mask = MaskOf(table);
    for (uint64_t bucket = hash & mask;; bucket = (bucket + 1) & mask) {
      Scan scan = ScanBucket(table.buckets[bucket], TagOf(hash));
      for (; scan.with_tag != 0; scan.with_tag &= scan.with_tag - 1) {
        const auto& place = table.buckets[bucket].slots[std::countr_zero(scan.with_tag)];
        const Node* const node = FirstPublished(At(static_cast<uint32_t>(place.load(std::memory_order_acquire))));
        if (node != nullptr && SameBytes(EntryOf(*node)->key(), target.key)) return add_chain(node);
      }
      if (scan.empty != 0 || !MayStep(&steps)) return;
    }
  };
  for (uint64_t reference = table_->load(std::memory_order_acquire); reference != 0;) {
    const Table& table = *TableAt(reference);
    in_table(table);
    reference = MayStep(&steps) ? table.before : 0;
  }
}

uint64_t HashMemtable::DramBytes() const { return arena_->used_bytes() + run_bytes_.load(std::memory_order_relaxed); }

}  // namespace braiddb
