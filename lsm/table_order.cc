#include "lsm/table_order.h"

#include <algorithm>

#include "log/fetch_entry.h"
#include "lsm/merging_cursor.h"
#include "util/check.h"

namespace braiddb {

bool TableOrder::Grow() {
  HugeArray<Item> larger(2 * items_.size());
  if (larger.empty()) {
    items_ = {};
    size_ = 0;
    return false;
  }
  std::memcpy(&larger[0], &items_[0], size_ * sizeof(Item));
  items_ = std::move(larger);
  return true;
}

bool TableOrder::Finish(const RegionSet& regions) {
  if (items_.empty()) return false;
  try {
    steps_.Build(size_, [this](size_t i) { return items_[i].prefix; });
  } catch (const std::bad_alloc&) {
    return false;
  }
  fetch_bytes_ = TypicalEntryBytes(size_, [&](uint64_t i) { return regions.Resolve<LogEntry>(items_[i].Entry()); });
  return true;
}

std::unique_ptr<EntryCursor> TableOrder::NewCursor(const RegionSet* regions, const KeyOrder* order) const {
  return std::make_unique<MergingCursor>(regions, order, std::vector{array()});
}

// Asks whether to stop now and then, at once when it is new.
class TableOrder::Stopper {
 public:
  explicit Stopper(const Stop& stop) : stop_(stop) {}
  // Before work on so many items.
  bool Stops(size_t items) {
    done_ += items;
    if (done_ < kItemsPerStop) return false;
    done_ = 0;
    return stop_();
  }

 private:
  const Stop& stop_;
  size_t done_ = kItemsPerStop;
};

bool TableOrder::Copy(const Item* from, const Item* end, Item* to, Stopper* stopper) {
  while (from != end) {
    const size_t items = std::min(static_cast<size_t>(end - from), kItemsPerStop);
    if (stopper->Stops(items)) return false;
    to = std::copy_n(from, items, to);
    from += items;
  }
  return true;
}

// Which of two comes first is no branch: nothing foretells it. As many items are taken without a look at ends as the shorter of
// the two has left.
bool TableOrder::MergeTwo(const Item* a, size_t a_size, const Item* b, size_t b_size, Item* to, Stopper* stopper) {
  const Item* const a_end = a + a_size;
  const Item* const b_end = b + b_size;
  while (a != a_end && b != b_end) {
    const size_t items = std::min({static_cast<size_t>(a_end - a), static_cast<size_t>(b_end - b), kItemsPerStop});
    if (stopper->Stops(items)) return false;
    for (const Item* const until = to + items; to != until; ++to) {
      const bool takes_b = b->prefix < a->prefix;
      *to = *(takes_b ? b : a);
      a += !takes_b;
      b += takes_b;
    }
  }
  if (a != a_end) return Copy(a, a_end, to, stopper);  // it ends where b does
  return to == b || Copy(b, b_end, to, stopper);
}

// Halves in turn. `scratch`: room for all but those of the last order.
bool TableOrder::MergeAll(const Orders& orders, size_t begin, size_t end, Item* scratch, Item* to, Stopper* stopper) {
  const auto size_of = [&orders](size_t from, size_t until) {
    size_t size = 0;
    for (size_t i = from; i < until; ++i) size += orders[i]->size_;
    return size;
  };
  if (end - begin == 1) {
    const Item* const items = &orders[begin]->items_[0];
    return Copy(items, items + orders[begin]->size_, to, stopper);
  }
  const size_t middle = begin + (end - begin) / 2;
  const size_t first = size_of(begin, middle);
  const size_t second = size_of(middle, end);
  // The second half goes where it ends up last, and has the room before it for its own scratch.
  return MergeAll(orders, middle, end, scratch, to + first, stopper) && MergeAll(orders, begin, middle, to, scratch, stopper) &&
         MergeTwo(scratch, first, to + first, second, to, stopper);
}

// Where prefixes say all, those that are alike are versions of one key, of which the newer tables have the newer ones; gets rely
// on that, too (FamilyView::FindInTables).
bool TableOrder::OrderAlike(Item* items, size_t size, const RegionSet& regions, const KeyOrder& order, Stopper* stopper) {
  constexpr size_t kAhead = 16;
  constexpr size_t kCostOfALook = 32;  // in items that are not looked at
  const auto at = [&](const Item& item) -> const LogEntry& { return *regions.Resolve<LogEntry>(item.Entry()); };
  const auto before = [&](const Item& a, const Item& b) {
    return a.Entry() != b.Entry() && CompareEntries(order, at(a), at(b)) < 0;
  };
  size_t fetched = 0;
  for (size_t begin = 0; begin < size;) {
    bool all_whole = items[begin].IsWhole();
    size_t end = begin + 1;
    for (; end < size && items[end].prefix == items[begin].prefix; ++end) all_whole &= items[end].IsWhole();
    if (!all_whole && end - begin > kMostAlike) return false;
    const bool looks = !all_whole && end - begin > 1;
    if (stopper->Stops((end - begin) * (looks ? kCostOfALook : 1))) return false;
    for (fetched = std::max(fetched, begin + 1); fetched < std::min(end + kAhead, size); ++fetched) {
      const Item& item = items[fetched];
      const Item& last = items[fetched - 1];
      if (item.prefix != last.prefix || (item.IsWhole() && last.IsWhole())) continue;
      FetchEntry(&at(last));
      FetchEntry(&at(item));
    }
    if (all_whole) {
      for (size_t i = begin + 1; i < end; ++i) {
        items[i].SetOlder(true);
        BRAIDDB_DCHECK(before(items[i - 1], items[i]));
      }
    } else if (looks) {
      for (size_t i = begin; i < end; ++i) items[i].SetOlder(false);
      if (!std::is_sorted(items + begin, items + end, before)) std::sort(items + begin, items + end, before);
      for (size_t i = begin + 1; i < end; ++i) items[i].SetOlder(order.Same(at(items[i - 1]).key(), at(items[i]).key()));
    }
    begin = end;
  }
  return true;
}

std::shared_ptr<const TableOrder> TableOrder::Merge(const Orders& orders, const RegionSet& regions, const KeyOrder& order,
                                                    const Stop& stop) {
  uint64_t entries = 0;
  for (const auto& one : orders) entries += one->size_;
  auto merged = std::make_shared<TableOrder>(entries);
  HugeArray<Item> scratch(entries + 1);
  if (merged->items_.empty() || scratch.empty()) return nullptr;
  Stopper stopper(stop);
  if (!MergeAll(orders, 0, orders.size(), &scratch[0], &merged->items_[0], &stopper)) return nullptr;
  merged->size_ = entries;
  if (!OrderAlike(&merged->items_[0], entries, regions, order, &stopper)) return nullptr;
  if (stop() || !merged->Finish(regions)) return nullptr;
  return merged;
}

}  // namespace braiddb
