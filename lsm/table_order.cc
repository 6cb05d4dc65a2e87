#include "lsm/table_order.h"

#include <algorithm>

#include "log/fetch_entry.h"

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

// Which of two comes first is no branch: nothing foretells it.
void TableOrder::MergeTwo(const Item* a, size_t a_size, const Item* b, size_t b_size, Item* to) {
  const Item* const a_end = a + a_size;
  const Item* const b_end = b + b_size;
  while (a != a_end && b != b_end) {
    const bool takes_b = b->prefix < a->prefix;
    *to++ = *(takes_b ? b : a);
    a += !takes_b;
    b += takes_b;
  }
  to = std::copy(a, a_end, to);
  if (to != b) std::copy(b, b_end, to);
}

// Halves in turn. `scratch`: room for all but those of the last order.
void TableOrder::MergeAll(const std::vector<std::shared_ptr<const TableOrder>>& orders, size_t begin, size_t end, Item* scratch,
                          Item* to) {
  const auto size_of = [&orders](size_t from, size_t until) {
    size_t size = 0;
    for (size_t i = from; i < until; ++i) size += orders[i]->size_;
    return size;
  };
  if (end - begin == 1) {
    std::copy_n(&orders[begin]->items_[0], orders[begin]->size_, to);
    return;
  }
  const size_t middle = begin + (end - begin) / 2;
  const size_t first = size_of(begin, middle);
  const size_t second = size_of(middle, end);
  // The second half goes where it ends up last, and has the room before it for its own scratch.
  MergeAll(orders, middle, end, scratch, to + first);
  MergeAll(orders, begin, middle, to, scratch);
  MergeTwo(scratch, first, to + first, second, to);
}

bool TableOrder::OrderAlike(Item* items, size_t size, const RegionSet& regions, const KeyOrder& order) {
  constexpr size_t kAhead = 16;
  const auto at = [&](const Item& item) -> const LogEntry& { return *regions.Resolve<LogEntry>(item.Entry()); };
  const auto before = [&](const Item& a, const Item& b) {
    return a.Entry() != b.Entry() && CompareEntries(order, at(a), at(b)) < 0;
  };
  for (size_t begin = 0; begin < size;) {
    size_t end = begin + 1;
    for (; end < size && items[end].prefix == items[begin].prefix; ++end) {
      if (end - begin == kMostAlike) return false;
    }
    for (size_t i = begin + kAhead; i < std::min(end + kAhead, size); ++i) {
      if (items[i].prefix != items[i - 1].prefix) continue;
      FetchEntry(&at(items[i - 1]));
      FetchEntry(&at(items[i]));
    }
    if (end - begin > 1) {
      for (size_t i = begin; i < end; ++i) items[i].word &= ~Item::kOlder;
      if (!std::is_sorted(items + begin, items + end, before)) std::sort(items + begin, items + end, before);
      for (size_t i = begin + 1; i < end; ++i) items[i].word |= uint64_t{order.Same(at(items[i - 1]).key(), at(items[i]).key())};
    }
    begin = end;
  }
  return true;
}

std::shared_ptr<const TableOrder> TableOrder::Merge(const std::vector<std::shared_ptr<const TableOrder>>& orders,
                                                    const RegionSet& regions, const KeyOrder& order) {
  uint64_t entries = 0;
  for (const auto& one : orders) entries += one->size_;
  auto merged = std::make_shared<TableOrder>(entries);
  HugeArray<Item> scratch(entries + 1);
  if (merged->items_.empty() || scratch.empty()) return nullptr;
  MergeAll(orders, 0, orders.size(), &scratch[0], &merged->items_[0]);
  merged->size_ = entries;
  if (!OrderAlike(&merged->items_[0], entries, regions, order) || !merged->Finish(regions)) return nullptr;
  return merged;
}

}  // namespace braiddb
