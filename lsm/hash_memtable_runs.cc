// The order of a hash memtable: sorted runs for cursors and for the flush.
#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "log/fetch_entry.h"
#include "lsm/alike_items.h"
#include "lsm/hash_memtable.h"
#include "lsm/ordered_merge.h"

namespace braiddb {
namespace {

// Arrays with fewer items are sorted by comparison. A counting pass uses at most kMostRadixBits / 2 bits.
constexpr size_t kLeastForRadix = 64;
constexpr int kMostRadixBits = 20;
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
  const auto last = static_cast<uint32_t>(last_block_->load(std::memory_order_acquire));
  size_t added = 0;
  uint32_t steps = 0;
  for (uint32_t nodes = last; nodes != known_block_ && nodes > kNodeUnits; nodes = HeadOf(nodes)->before) {
    if (!MayStep(&steps)) return;
    ++added;
  }
  blocks_.resize(blocks_.size() + added);
  auto block = blocks_.rbegin();
  for (uint32_t nodes = last; added > 0; nodes = HeadOf(nodes)->before, --added) *block++ = {nodes, 0, {}};
  known_block_ = last;
}

// STEPS  1. Collect published nodes that are in no run.  2. Sort them.  3. Merge them with the newest runs, as long as a run is
//        smaller than four times the sum.  4. Build the search steps.  5. Store the runs and set the nodes' bits.
// EXCEPTIONS  All memory is allocated before step 5, so std::bad_alloc leaves the runs as they were.
// COST   Each entry takes part in at most 4 log4 n merges.
void HashMemtable::TakeRuns() const {
  TakeNewBlocks();
  if (std::ranges::all_of(blocks_, [this](const Block& block) { return UsedOf(block) == block.first; })) return;
  std::vector<uint32_t> used;  // per block; writers may take more nodes meanwhile
  used.reserve(blocks_.size());
  size_t most = 0;
  for (const Block& block : blocks_) {
    used.push_back(UsedOf(block));
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
      if (__builtin_expect(arena_->is_attached(), 0) && !regions_->Holds(PmPtr(entry))) continue;
      fresh[taken.size()] = {node.prefix, entry};
      taken.emplace_back(&block, i);
    }
  }
  fresh.resize(taken.size());
  if (fresh.empty()) return;
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

  // Step 5: nothing throws from here on.
  runs_ = std::move(runs);
  run_bytes_.store(bytes, std::memory_order_relaxed);
  for (const auto& [block, i] : taken) block->is_taken[i] = true;
  for (Block& block : blocks_) {
    while (block.first < block_nodes_ && !block.is_taken.empty() && block.is_taken[block.first]) ++block.first;
  }
  std::erase_if(blocks_, [this](const Block& block) { return block.first == block_nodes_; });
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
  std::lock_guard lock(runs_mutex_);
  TakeRuns();
  for (const auto& run : runs_)
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

}  // namespace braiddb
