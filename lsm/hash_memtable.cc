#include "lsm/hash_memtable.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "index/key_hash.h"
#include "log/fetch_entry.h"
#include "lsm/alike_items.h"
#include "lsm/ordered_merge.h"
#include "util/line_words.h"
#include "util/prefetch.h"
#include "util/short_bytes.h"
#include "util/spin.h"

namespace braiddb {
namespace {

// Arrays with fewer items are sorted by comparison. A counting pass uses at most kMostRadixBits / 2 bits.
constexpr size_t kLeastForRadix = 64;
constexpr int kMostRadixBits = 20;
// Upper bound of the capacity of the first table, which takes its memory before there are entries.
constexpr uint64_t kFirstTableEntries = 1 << 20;
// Prefetch distance in nodes. The arena's memory was used by an earlier memtable, so it is not in the writer's cache.
constexpr uint32_t kNodesAhead = 7;

// A stable counting sort of `from` into `to` by `bits` bits of the prefixes, starting at bit `shift`.
template <class Items>
void CountingPass(const Items& from, int shift, int bits, Items* to) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  // Counts the items of digit d in places[d + 1]. After the prefix sum, places[d] is the position of the next item of digit d.
  std::vector<uint32_t> places((size_t{1} << bits) + 1);
  for (const auto& item : from) ++places[(item.prefix >> shift & mask) + 1];
  for (size_t i = 1; i < places.size(); ++i) places[i] += places[i - 1];
  for (const auto& item : from) (*to)[places[item.prefix >> shift & mask]++] = item;
}

// More items with one prefix are sorted and merged by AlikeItems.
constexpr ptrdiff_t kFewAlike = 16;

// Insertion sort.
template <class Iterator, class Before>
void SortFew(Iterator begin, Iterator end, const Before& before) {
  for (Iterator next = begin + 1; next != end; ++next) {
    const auto item = *next;
    Iterator place = next;
    for (; place != begin && before(item, *(place - 1)); --place) *place = *(place - 1);
    *place = item;
  }
}

}  // namespace

HashMemtable::HashMemtable(uint64_t id, const RegionSet* regions, const KeyOrder* order, std::unique_ptr<Arena> arena,
                           uint32_t block_bytes)
    : Memtable(id),
      regions_(regions),
      order_(order),
      arena_(std::move(arena)),
      block_nodes_(static_cast<uint32_t>(block_bytes / sizeof(Node))) {}

std::unique_ptr<HashMemtable> HashMemtable::Create(uint64_t id, const RegionSet* regions, const KeyOrder* order,
                                                   std::unique_ptr<Arena> arena, uint32_t block_bytes, uint64_t entries) {
  std::unique_ptr<HashMemtable> memtable(new HashMemtable(id, regions, order, std::move(arena), block_bytes));
  memtable->first_table_ = memtable->NewTable(std::min(entries, kFirstTableEntries), 0);
  return memtable->first_table_ == 0 ? nullptr : std::move(memtable);
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

// STEPS  1. Take memory for the nodes.  2. Register the block, so that runs find its nodes.  3. If the capacity is exceeded,
//        publish a table for twice the number of nodes.
// WHY IT IS RIGHT  A new table consists of zeros, which are empty buckets. Writers that loaded the old table still insert into
//                  it, and lookups search both. A failure after step 2 leaves a block whose `used` is 0, which runs skip.
bool HashMemtable::NewBlock(NodeBlock* block) {
  const uint32_t head = arena_->AllocateBlock((uint64_t{block_nodes_} + 1) * sizeof(Node));
  if (head == 0) return false;
  const uint32_t nodes = head + kNodeUnits;
  std::lock_guard lock(growth_mutex_);
  if (nodes_ == 0) table_.store(first_table_, std::memory_order_release);
  try {
    new_blocks_.push_back(nodes);
    has_new_blocks_.store(true, std::memory_order_release);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (nodes_ + block_nodes_ > room_) {
    const uint32_t before = table_.load(std::memory_order_relaxed);
    const uint32_t larger = NewTable(2 * (nodes_ + block_nodes_), before);
    if (larger == 0) return false;  // the block remains unused
    table_.store(larger, std::memory_order_release);
  }
  nodes_ += block_nodes_;
  *block = NodeBlock{id(), nodes, nodes + block_nodes_ * kNodeUnits};
  return true;
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
  Enter(TableAt(table_.load(std::memory_order_acquire)), insertion->key_hash, key, insertion->node);
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
  const Table& table = *TableAt(table_.load(std::memory_order_acquire));
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
  Enter(TableAt(table_.load(std::memory_order_acquire)), insertion->key_hash, insertion->entry->key(), insertion->node);
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
  const uint32_t reference = table_.load(std::memory_order_acquire);
  if (reference == 0) return;
  const Table* const table = TableAt(reference);
  PrefetchForWrite(&table->buckets[hash & table->mask]);
}

// WHY IT IS RIGHT  Slots of a probe sequence fill front to back and are never emptied. A key with this hash is therefore in a
//                  slot before the first empty one, and the probe may end there.
bool HashMemtable::MayContain(uint64_t hash) const noexcept {
  for (uint64_t reference = table_.load(std::memory_order_acquire); reference != 0;) {
    const Table& table = *TableAt(reference);
    for (uint64_t bucket = hash & table.mask;; bucket = (bucket + 1) & table.mask) {
      const Scan scan = ScanBucket(table.buckets[bucket], TagOf(hash));
      if (scan.with_tag != 0) return true;
      if (scan.empty != 0) break;
    }
    reference = table.before;
  }
  return false;
}

// WHY IT IS RIGHT  A chain is sorted newest first, so its first published node with sequence <= target.sequence is the newest
//                  visible version in its table. Versions of the key in several tables have no order among the tables, so the
//                  largest sequence number wins.
const LogEntry* HashMemtable::Find(const SearchKey& target, uint64_t hash) const {
  const LogEntry* found = nullptr;
  const auto in_table = [&](const Table& table) {
    for (uint64_t bucket = hash & table.mask;; bucket = (bucket + 1) & table.mask) {
      Scan scan = ScanBucket(table.buckets[bucket], TagOf(hash));
      for (; scan.with_tag != 0; scan.with_tag &= scan.with_tag - 1) {
        const auto& place = table.buckets[bucket].slots[std::countr_zero(scan.with_tag)];
        const Node* node = FirstPublished(At(static_cast<uint32_t>(place.load(std::memory_order_acquire))));
        if (node == nullptr || !SameBytes(EntryOf(*node)->key(), target.key)) continue;
        while (node->sequence > target.sequence || !IsPublished(node->entry.load(std::memory_order_acquire))) {
          const uint32_t older = node->older.load(std::memory_order_acquire);
          if (older == 0) return;
          node = At(older);
        }
        if (found == nullptr || found->sequence() < node->sequence) found = EntryOf(*node);
        return;
      }
      if (scan.empty != 0) return;
    }
  };
  for (uint64_t reference = table_.load(std::memory_order_acquire); reference != 0;) {
    const Table& table = *TableAt(reference);
    in_table(table);
    reference = table.before;
  }
  return found;
}

// Each table may hold some versions of the key, so all tables are searched.
void HashMemtable::FindOperands(const SearchKey& target, uint64_t hash, std::vector<const LogEntry*>* versions) const {
  const auto add_chain = [&](const Node* node) {
    for (;;) {
      if (node->sequence <= target.sequence && IsPublished(node->entry.load(std::memory_order_acquire))) {
        versions->push_back(EntryOf(*node));
        if (!versions->back()->is_operand()) return;
      }
      const uint32_t older = node->older.load(std::memory_order_acquire);
      if (older == 0) return;
      node = At(older);
    }
  };
  const auto in_table = [&](const Table& table) {
    for (uint64_t bucket = hash & table.mask;; bucket = (bucket + 1) & table.mask) {
      Scan scan = ScanBucket(table.buckets[bucket], TagOf(hash));
      for (; scan.with_tag != 0; scan.with_tag &= scan.with_tag - 1) {
        const auto& place = table.buckets[bucket].slots[std::countr_zero(scan.with_tag)];
        const Node* const node = FirstPublished(At(static_cast<uint32_t>(place.load(std::memory_order_acquire))));
        if (node != nullptr && SameBytes(EntryOf(*node)->key(), target.key)) return add_chain(node);
      }
      if (scan.empty != 0) return;
    }
  };
  for (uint64_t reference = table_.load(std::memory_order_acquire); reference != 0;) {
    const Table& table = *TableAt(reference);
    in_table(table);
    reference = table.before;
  }
}

// ---- Order

bool HashMemtable::Before(const Item& a, const Item& b) const {
  if (a.prefix != b.prefix) return a.prefix < b.prefix;
  if (a.Entry() == b.Entry()) return false;
  return CompareEntries(*order_, *regions_->Resolve<LogEntry>(a.Entry()), *regions_->Resolve<LogEntry>(b.Entry())) < 0;
}

// The end of the items that have the first one's prefix.
template <class Iterator>
Iterator HashMemtable::EndOfAlike(Iterator first, Iterator end) {
  Iterator next = first + 1;
  while (next != end && next->prefix == first->prefix) ++next;
  return next;
}

// Sorts items by their prefixes, then groups of equal prefixes by their entries.
void HashMemtable::SortByComparison(std::span<Item> items) const {
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.prefix < b.prefix; });
  for (auto first = items.begin(); first != items.end();) {
    const auto end = EndOfAlike(first, items.end());
    if (end - first > 1) SortAlike({first, end});
    first = end;
  }
}

// REQUIRES: all items have one prefix.
void HashMemtable::SortAlike(std::span<Item> items) const {
  if (static_cast<ptrdiff_t>(items.size()) > kFewAlike) return AlikeItems(regions_, order_).Sort(items);
  SortFew(items.begin(), items.end(), [this](const Item& a, const Item& b) { return Before(a, b); });
  MarkOlder(items);
}

// Radix sort by the highest bits in which prefixes differ: about log2 n bits in two counting passes, the lower digit first. Most
// groups with equal digits then have one item; the others are sorted by comparison.
void HashMemtable::Sort(Items* items) const {
  if (items->size() < kLeastForRadix) return SortByComparison({items->data(), items->size()});
  uint64_t differ = 0;
  for (const Item& item : *items) differ |= item.prefix ^ items->front().prefix;
  if (differ == 0) return SortAlike({items->data(), items->size()});
  // About log2 n bits separate n items. The window [shift, shift + bits) begins at the highest bit in which prefixes differ.
  const int bits = std::min(static_cast<int>(std::bit_width(items->size())), kMostRadixBits);
  const int shift = std::max(0, static_cast<int>(std::bit_width(differ)) - bits);
  const int low = bits / 2, high = bits - low;
  {
    Items other(items->size(), boost::container::default_init);
    CountingPass(*items, shift, low, &other);
    CountingPass(other, shift + low, high, items);
  }
  const auto before = [this](const Item& a, const Item& b) { return Before(a, b); };
  for (auto begin = items->begin(); begin != items->end();) {
    const uint64_t digits = begin->prefix >> shift;
    auto end = begin + 1;
    while (end != items->end() && end->prefix >> shift == digits) ++end;
    if (end - begin > kFewAlike) {
      SortByComparison({&*begin, static_cast<size_t>(end - begin)});
    } else if (end - begin > 1) {
      SortFew(begin, end, before);
      MarkOlder({&*begin, static_cast<size_t>(end - begin)});
    }
    begin = end;
  }
}

// Each group holds the items of the older run first, then those of the newer run. A small group is merged in place: both halves
// are sorted, so the first descent is the boundary between them. A large group is merged from the runs.
void HashMemtable::OrderAlike(std::span<const Item> older, std::span<const Item> newer, std::span<Item> items) const {
  const auto before = [this](const Item& x, const Item& y) { return Before(x, y); };
  const AlikeItems alike(regions_, order_);
  for (auto first = items.begin(); first != items.end();) {
    const auto end = EndOfAlike(first, items.end());
    if (end - first > kFewAlike) {
      const auto of_older = std::ranges::equal_range(older, first->prefix, {}, &Item::prefix);
      const auto of_newer = std::ranges::equal_range(newer, first->prefix, {}, &Item::prefix);
      if (!of_older.empty() && !of_newer.empty())
        alike.Merge({{of_older.begin(), of_older.end()}, {of_newer.begin(), of_newer.end()}}, &*first);
    } else if (end - first > 1) {
      const auto second = std::is_sorted_until(first, end, before);
      if (second != end) std::inplace_merge(first, second, end, before);
      MarkOlder({first, end});
    }
    first = end;
  }
}

// Merges from the newest run to the oldest. Two buffers alternate, so that the last merge writes to `all`. The other buffer has
// room for all items except those of the oldest run, which only the last merge reads.
HashMemtable::Items HashMemtable::Join(std::span<const std::shared_ptr<const Run>> runs, std::span<const Item> newest) const {
  size_t size = newest.size();
  for (const auto& run : runs) size += run->items.size();
  Items all(size, boost::container::default_init);
  Items other(runs.size() > 1 ? size - runs.front()->items.size() : 0, boost::container::default_init);
  std::span<const Item> joined = newest;
  for (size_t left = runs.size(); left > 0; --left) {
    const Items& run = runs[left - 1]->items;
    const std::span<Item> to((left % 2 == 0 ? other : all).data(), run.size() + joined.size());
    const std::span<const Item> older(run.data(), run.size());
    if (MergeByPrefix(older, joined, to.data())) OrderAlike(older, joined, to);
    joined = to;
  }
  return all;
}

void HashMemtable::MarkOlder(std::span<Item> items) const {
  for (size_t i = 1; i < items.size(); ++i) {
    if (items[i].prefix != items[i - 1].prefix || items[i].IsOlder()) continue;
    const Slice key = regions_->Resolve<LogEntry>(items[i - 1].Entry())->key();
    items[i].SetOlder(order_->Same(key, regions_->Resolve<LogEntry>(items[i].Entry())->key()));
  }
}

void HashMemtable::TakeNewBlocks() const {
  if (!has_new_blocks_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(growth_mutex_);
  blocks_.reserve(blocks_.size() + new_blocks_.size());
  for (const uint32_t nodes : new_blocks_) blocks_.push_back({nodes, 0, {}});
  new_blocks_.clear();
  has_new_blocks_.store(false, std::memory_order_relaxed);
}

// STEPS  1. Collect published nodes that are in no run.  2. Sort them.  3. Merge them with the newest runs, as long as a run is
//        smaller than four times the sum.  4. Build the search steps.  5. Store the runs and set the nodes' bits.
// EXCEPTIONS  All memory is allocated before step 5, so std::bad_alloc leaves the runs as they were.
// COST   Each entry takes part in at most 4 log4 n merges.
std::vector<std::shared_ptr<const HashMemtable::Run>> HashMemtable::TakeRuns() const {
  std::lock_guard lock(runs_mutex_);
  TakeNewBlocks();
  std::vector<uint32_t> used;  // per block; writers may take more nodes meanwhile
  used.reserve(blocks_.size());
  size_t most = 0;
  for (const Block& block : blocks_) {
    used.push_back(HeadOf(block.nodes)->used.load(std::memory_order_acquire));
    most += used.back() - block.first;
  }
  Items fresh(most, boost::container::default_init);
  std::vector<std::pair<Block*, uint32_t>> taken;
  taken.reserve(most);
  for (size_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    // Nodes may be published in any order, so a bit per node marks those that are in a run.
    if (block.first == used[b]) continue;
    if (block.is_taken.empty()) block.is_taken.resize(block_nodes_);
    for (uint32_t i = block.first; i < used[b]; ++i) {
      const Node& node = *At(block.nodes + i * kNodeUnits);
      const uint64_t entry = node.entry.load(std::memory_order_acquire);
      if (!IsPublished(entry) || block.is_taken[i]) continue;
      fresh[taken.size()] = {node.prefix, entry};
      taken.emplace_back(&block, i);
    }
  }
  fresh.resize(taken.size());
  if (fresh.empty()) return runs_;
  Sort(&fresh);
  std::vector<std::shared_ptr<const Run>> runs = runs_;
  size_t kept = runs.size();
  // Each run is at least four times as large as the next newer one, so there are at most log4 n runs.
  for (size_t joined = fresh.size(); kept > 0 && runs[kept - 1]->items.size() < 4 * joined;) joined += runs[--kept]->items.size();
  auto run = std::make_shared<Run>();
  if (kept < runs.size()) {
    fresh = Join(std::span(runs).subspan(kept), {fresh.data(), fresh.size()});
    // A run with most of the items has most of the sizes: the reads of entries are saved.
    if (runs[kept]->items.size() >= fresh.size() / 2) run->fetch_bytes = runs[kept]->fetch_bytes;
  }
  runs.resize(kept);
  run->items = std::move(fresh);
  run->steps.Build(run->items.size(), [&run](size_t i) { return run->items[i].prefix; });
  const Items& items = run->items;
  run->alike.Build(ArrayOf(items.data(), items.size(), *regions_), *order_);
  if (run->fetch_bytes == 0)
    run->fetch_bytes = TypicalEntryBytes(items.size(), [&](uint64_t i) { return regions_->Resolve<LogEntry>(items[i].Entry()); });
  runs.push_back(std::move(run));
  uint64_t bytes = 0;
  for (const auto& each : runs) bytes += each->items.size() * sizeof(Item) + each->steps.bytes() + each->alike.bytes();

  // Step 5: nothing throws from here on, except this copy, which comes first.
  auto result = runs;
  runs_ = std::move(runs);
  run_bytes_.store(bytes, std::memory_order_relaxed);
  for (const auto& [block, i] : taken) block->is_taken[i] = true;
  for (Block& block : blocks_) {
    while (block.first < block_nodes_ && !block.is_taken.empty() && block.is_taken[block.first]) ++block.first;
  }
  std::erase_if(blocks_, [this](const Block& block) { return block.first == block_nodes_; });
  return result;
}

// Nodes' bits stay unset, since the flush calls this function once.
std::vector<std::shared_ptr<const HashMemtable::Run>> HashMemtable::RunsOfAll() const {
  std::lock_guard lock(runs_mutex_);
  TakeNewBlocks();
  auto fresh = std::make_shared<Run>();
  fresh->items.reserve(blocks_.size() * block_nodes_);
  for (const Block& block : blocks_) {
    const Node* const nodes = At(block.nodes);
    const uint32_t used = HeadOf(block.nodes)->used.load(std::memory_order_acquire);
    for (uint32_t i = block.first; i < used; ++i) {
      const uint64_t entry = nodes[i].entry.load(std::memory_order_acquire);
      if (!IsPublished(entry) || (!block.is_taken.empty() && block.is_taken[i])) continue;
      fresh->items.push_back({nodes[i].prefix, entry});
    }
  }
  auto runs = runs_;
  if (!fresh->items.empty()) {
    Sort(&fresh->items);
    runs.push_back(std::move(fresh));
  }
  return runs;
}

void HashMemtable::AddCursors(std::vector<std::unique_ptr<EntryCursor>>*, std::vector<OrderedArray>* arrays) const {
  for (const auto& run : TakeRuns())
    arrays->push_back({run->items.data(), run->items.size(), &run->steps, &run->alike, run->fetch_bytes, run});
}

class HashMemtableWalker final : public Memtable::Walker {
 public:
  // Merges all runs into one; the last run is the newest.
  explicit HashMemtableWalker(const HashMemtable* table) {
    const auto runs = table->RunsOfAll();
    if (runs.size() == 1) {
      all_ = runs.front();
    } else if (runs.size() > 1) {
      auto joined = std::make_shared<HashMemtable::Run>();
      const auto& newest = runs.back()->items;
      joined->items = table->Join(std::span(runs).first(runs.size() - 1), {newest.data(), newest.size()});
      all_ = std::move(joined);
    }
  }
  size_t Next(PmPtr* pointers, size_t capacity) override {
    size_t count = 0;
    const size_t size = all_ == nullptr ? 0 : all_->items.size();
    for (; count < capacity && at_ < size; ++count) pointers[count] = all_->items[at_++].Entry();
    return count;
  }

 private:
  std::shared_ptr<const HashMemtable::Run> all_;  // null if the memtable has no entry
  size_t at_ = 0;
};

std::unique_ptr<Memtable::Walker> HashMemtable::NewWalker() const { return std::make_unique<HashMemtableWalker>(this); }

uint64_t HashMemtable::DramBytes() const { return arena_->used_bytes() + run_bytes_.load(std::memory_order_relaxed); }

}  // namespace braiddb
