#include "lsm/table_order.h"

#include <algorithm>
#include <atomic>

#include "log/fetch_entry.h"
#include "lsm/alike_items.h"
#include "lsm/merging_cursor.h"
#include "lsm/ordered_merge.h"
#include "util/check.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

uint64_t NextId() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

HugeArray<OrderedItem> TableOrder::Allocate(uint64_t entries, SharedHeap* heap) {
  return HugeArray<Item>(entries, heap, HugeArray<Item>::Sharing::kOptional);
}

TableOrder::TableOrder(uint64_t entries, SharedHeap* heap)
    : id_(NextId()), heap_(heap), items_(Allocate(entries == 0 ? 1 : entries, heap)) {
  items_.Populate();
}

std::shared_ptr<const TableOrder> TableOrder::Attach(const SharedMemory& memory, const Shared& shared) {
  if (shared.offset == 0 || shared.offset % alignof(Item) != 0 || shared.offset >= memory.bytes() || shared.entries == 0 ||
      shared.entries > (memory.bytes() - shared.offset) / sizeof(Item))
    return nullptr;
  return std::shared_ptr<const TableOrder>(
      new TableOrder(&memory, HugeArray<Item>::Attach(memory, shared.offset, shared.entries), shared));
}

void TableOrder::MakeSteps() const {
  std::call_once(steps_are_made_, [this] {
    steps_.Build(size_, [this](size_t i) { return items_[i].prefix; });
    alike_ = AlikeSteps::Attach(*memory_, shared_alike_, size_);
    BRAIDDB_SYNC_POINT("TableOrder::MakeSteps:Made");
  });
}

// Doubles the capacity. Without memory the array becomes empty, and Finish returns false.
bool TableOrder::Grow() {
  HugeArray<Item> larger = Allocate(2 * items_.size(), heap_);
  if (larger.empty()) {
    items_ = {};
    size_ = 0;
    return false;
  }
  std::memcpy(&larger[0], &items_[0], size_ * sizeof(Item));
  items_ = std::move(larger);
  return true;
}

bool TableOrder::Finish(const RegionSet& regions, const KeyOrder& order, const Stop& stop) {
  if (items_.empty()) return false;
  bool stopped = false;
  try {
    steps_.Build(size_, [this](size_t i) { return items_[i].prefix; });
    AlikeSteps::Array array = ArrayOf(&items_[0], size_, regions);
    array.stops = [&stop, &stopped] { return stopped = stop(); };
    alike_.Build(array, order, items_.heap_offset() == 0 ? nullptr : heap_);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (stopped) return false;
  fetch_bytes_ = TypicalEntryBytes(size_, [&](uint64_t i) { return regions.Resolve<LogEntry>(items_[i].Entry()); });
  return true;
}

std::unique_ptr<EntryCursor> TableOrder::NewCursor(const RegionSet* regions, const KeyOrder* order) const {
  return std::make_unique<MergingCursor>(regions, order, std::vector{array()});
}

// Calls `stop` after every kItemsPerStop items of work, and at the first opportunity.
class TableOrder::Stopper {
 public:
  explicit Stopper(const Stop& stop) : stop_(stop) {}
  // Called before work on `items` items. Returns true if the merge should give up.
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

// Brings items that are sorted by prefix into entry order and sets kOlder, batch by batch. If keys fit their prefixes, items with
// equal prefixes are versions of one key, and newer tables have the newer ones, so their order is right already. Gets rely on the
// same (FamilyView::FindInTables).
class TableOrder::Alike {
 public:
  // `inputs`: the arrays that were merged; they must outlive the object.
  Alike(Item* items, const std::vector<OrderedFunnel::Items>& inputs, const RegionSet& regions, const KeyOrder& order)
      : items_(items), inputs_(inputs), regions_(regions), order_(order), alike_(&regions, &order) {}

  // Processes the items up to `there`; `size`: the final number. False: `stop` returned true. May throw std::bad_alloc.
  bool Order(size_t there, size_t size, Stopper* stopper) {
    if (MarkWhole(there)) return true;
    while (begin_ < there) {
      // The group may have begun in an earlier batch, which has examined the items before examined_.
      bool all_whole = examined_ > begin_ ? begin_is_whole_ : items_[begin_].IsWhole();
      const size_t known = std::max(examined_, begin_ + 1);
      size_t end = known;
      for (; end < there && items_[end].prefix == items_[begin_].prefix; ++end) all_whole &= items_[end].IsWhole();
      examined_ = end;
      if (end - begin_ <= kMostFewAlike) FetchAlike(end, there);
      if (all_whole) MarkOlder(known, end);
      // The group may continue in the next batch, so it is not sorted yet.
      if (end == there && there != size) {
        begin_is_whole_ = all_whole;
        break;
      }
      if (!all_whole && end - begin_ > kMostFewAlike) {
        if (!MergeAlike(begin_, stopper)) return false;
      } else if (!all_whole && end - begin_ > 1) {
        if (stopper->Stops((end - begin_) * kCostOfALook)) return false;
        OrderByKey(begin_, end);
      }
      begin_ = end;
    }
    done_ = there;
    return true;
  }

 private:
  static constexpr size_t kAhead = 16;
  static constexpr size_t kCostOfALook = 32;  // cost of comparing one item, in items that are only moved

  const LogEntry& At(const Item& item) const { return *regions_.Resolve<LogEntry>(item.Entry()); }
  bool Before(const Item& a, const Item& b) const { return a.Entry() != b.Entry() && CompareEntries(order_, At(a), At(b)) < 0; }

  // Fast path: all items of the batch, and the group that the batch may continue, fit their prefixes. Reads no entry and has no
  // branch per item.
  bool MarkWhole(size_t there) {
    uint64_t whole = begin_is_whole_ ? Item::kWhole : 0;
    for (size_t i = done_; i < there; ++i) whole &= items_[i].word;
    if (whole == 0) return false;
    if (done_ < there) begin_ = MarkOlder(std::max<size_t>(done_, 1), there);
    done_ = there;
    examined_ = there;
    return true;
  }

  // Sets kOlder of each item that has the prefix of its predecessor. Returns the start of the last group of equal prefixes.
  size_t MarkOlder(size_t begin, size_t end) {
    size_t last = begin_;
    for (size_t i = begin; i < end; ++i) {
      const bool is_older = items_[i].prefix == items_[i - 1].prefix;
      BRAIDDB_DCHECK(!is_older || Before(items_[i - 1], items_[i]));
      items_[i].SetOlder(is_older);
      last = is_older ? last : i;
    }
    return last;
  }

  // Prefetches the entries that OrderByKey compares soon.
  void FetchAlike(size_t end, size_t there) {
    for (fetched_ = std::max(fetched_, begin_ + 1); fetched_ < std::min(end + kAhead, there); ++fetched_) {
      const Item& item = items_[fetched_];
      const Item& last = items_[fetched_ - 1];
      if (item.prefix != last.prefix || (item.IsWhole() && last.IsWhole())) continue;
      FetchEntry(&At(last));
      FetchEntry(&At(item));
    }
  }

  // Merges a large group again, by its entries, from the items that the inputs have with its prefix.
  bool MergeAlike(size_t begin, Stopper* stopper) {
    const uint64_t prefix = items_[begin].prefix;
    std::vector<OrderedFunnel::Items> alike;
    for (const OrderedFunnel::Items& input : inputs_) {
      const auto [first, last] = std::ranges::equal_range(input, prefix, {}, &Item::prefix);
      if (first != last) alike.emplace_back(first, last);
    }
    const auto stop = [stopper](size_t items) { return stopper->Stops(items * kCostOfALook); };
    return alike_.Merge(alike, items_ + begin, stop);
  }

  // Sorts a group by its entries. The merge kept the order of tables, so that most groups are sorted already.
  void OrderByKey(size_t begin, size_t end) {
    const auto before = [this](const Item& a, const Item& b) { return Before(a, b); };
    for (size_t i = begin; i < end; ++i) items_[i].SetOlder(false);
    if (!std::is_sorted(items_ + begin, items_ + end, before)) std::sort(items_ + begin, items_ + end, before);
    for (size_t i = begin + 1; i < end; ++i) items_[i].SetOlder(order_.Same(At(items_[i - 1]).key(), At(items_[i]).key()));
  }

  Item* const items_;
  const std::vector<OrderedFunnel::Items>& inputs_;
  const RegionSet& regions_;
  const KeyOrder& order_;
  const AlikeItems alike_;
  size_t done_ = 0;             // number of processed items
  size_t begin_ = 0;            // start of the last group of equal prefixes among them
  size_t examined_ = 0;         // end of the items whose group is known
  bool begin_is_whole_ = true;  // all examined items of that group fit their prefixes
  size_t fetched_ = 0;
};

// COST  One pass over the items: batches are merged and post-processed in the cache. Entries are read only for keys that do not
//       fit their prefixes and share one. If many keys share a prefix, a second pass over their items merges them by their
//       entries, which are prefetched.
std::shared_ptr<const TableOrder> TableOrder::Merge(const Orders& orders, const RegionSet& regions, const KeyOrder& order,
                                                    const Stop& stop, SharedHeap* heap) {
  uint64_t entries = 0;
  for (const auto& one : orders) entries += one->size_;
  auto merged = std::make_shared<TableOrder>(entries, heap);
  if (merged->items_.empty()) return nullptr;
  std::vector<OrderedFunnel::Items> inputs;
  for (const auto& one : orders) inputs.emplace_back(&one->items_[0], one->size_);
  OrderedFunnel funnel(inputs);
  Item* const items = &merged->items_[0];
  Alike alike(items, inputs, regions, order);
  Stopper stopper(stop);
  for (uint64_t& size = merged->size_; size != entries;) {
    // The funnel fills the next batch behind the processed items; Alike then sorts groups of equal prefixes in place.
    if (stopper.Stops(kItemsAtOnce)) return nullptr;
    size += funnel.Take(items + size, kItemsAtOnce);
    if (!alike.Order(size, entries, &stopper)) return nullptr;
  }
  if (stop() || !merged->Finish(regions, order, stop)) return nullptr;
  return merged;
}

}  // namespace braiddb
