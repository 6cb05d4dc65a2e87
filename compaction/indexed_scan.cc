#include "compaction/indexed_scan.h"

#include <algorithm>
#include <utility>

#include "compaction/scan_lanes.h"
#include "log/entry_sort.h"
#include "log/fetch_entry.h"
#include "util/check.h"

namespace braiddb {
namespace {

// Entries for which a step fetches what the next step looks at, before that is made for the first of them.
constexpr size_t kAhead = 16;
constexpr uint64_t kTowerOffset = offsetof(LogEntry, next);

// Walks one piece after the other.
class Lane {
 public:
  Lane(const RegionSet* regions, const KeyOrder* order, ScanResult* result)
      : regions_(*regions), order_(*order), result_(result) {}

  bool idle() const { return !current_; }

  void Begin(const MergePiece& piece) {
    end_ = piece.end;
    before_ = nullptr;
    GoTo(piece.begin);
  }

  // Takes the entry that was fetched, and fetches the next.
  void Step() {
    if (!IsEntryOnLayer(regions_, current_, 0)) return Fail();
    auto* const entry = regions_.Resolve<LogEntry>(current_);
    const uint64_t prefix = order_.Prefix(entry->key());
    // The list of a table is in order, and so ends.
    if (before_ != nullptr && (prefix < prefix_ || (prefix == prefix_ && CompareEntries(order_, *before_, *entry) >= 0)))
      return Fail();
    before_ = entry;
    prefix_ = prefix;
    result_->items.push_back({prefix, entry, current_, 0, entry->height(), false});
    const PmPtr next = entry->Next(0);
    if (!next || next == end_) {
      current_ = PmPtr();
    } else {
      GoTo(next);
    }
  }

 private:
  void GoTo(PmPtr place) {
    current_ = place;
    if (!regions_.Holds(place)) return Fail();
    FetchEntry(regions_.Resolve<LogEntry>(place));
  }
  // A list is damaged. The whole scan ends.
  void Fail() {
    result_->damaged = true;
    current_ = PmPtr();
  }

  const RegionSet& regions_;
  const KeyOrder& order_;
  ScanResult* const result_;
  PmPtr current_;  // null: the piece is at its end
  PmPtr end_;
  const LogEntry* before_ = nullptr;
  uint64_t prefix_ = 0;  // of before_
};

// The places of entries, given in order, in the index, and the towers before them.
class Placer {
 public:
  Placer(const BraidedList& l1, const TallIndex& index, ScanResult* result)
      : l1_(l1), regions_(l1.regions()), order_(l1.order()), index_(index), nodes_(index.size(0)), result_(result) {}

  void PlaceAll() {
    std::vector<MergeItem>& items = result_->items;
    places_.resize(items.size());
    exact_places_.resize(items.size());
    result_->towers.reserve(2 * items.size());
    const size_t end = items.size() + 2 * kAhead;
    for (size_t i = 0; i < end && !result_->damaged; ++i) {
      if (i < items.size()) Find(i);
      if (i >= kAhead && i - kAhead < items.size()) Place(i - kAhead);
      if (i >= 2 * kAhead) Check(i - 2 * kAhead);
    }
  }

 private:
  const LogEntry* At(uint64_t place) const { return index_.At(0, place); }
  // Fails if it comes upon damage.
  bool IsOfKey(uint64_t place, const MergeItem& item) {
    if (index_.PrefixOf(0, place) != item.prefix) return false;
    const LogEntry* const node = At(place);
    if (IsEntryOnLayer(regions_, regions_.ToPmPtr(0, node), 0)) return order_.Same(node->key(), item.entry->key());
    Fail();
    return false;
  }

  // By its prefix.
  void Find(size_t i) {
    const uint64_t prefix = result_->items[i].prefix;
    const uint64_t place = places_[i] = index_.FindPrefixNear(0, i == 0 ? 0 : places_[i - 1], prefix);
    // Where several have the prefix, the entry's place is behind those of the entries before, of which the last one was found
    // for the entry kAhead before this one.
    const uint64_t begin = std::max(place, place_);
    for (fetched_ = std::max(fetched_, begin); fetched_ < std::min(nodes_, begin + kAhead); ++fetched_) {
      if (index_.PrefixOf(0, fetched_) != prefix) break;
      FetchEntry(At(fetched_));
    }
  }

  // Of the nodes from `from` on, the first that is not before the target, which has the prefix of the first of them or a lesser
  // one. Sets damaged if it comes upon damage.
  uint64_t FindAmongEqual(uint64_t from, const SearchKey& target) {
    const auto is_before = [&](uint64_t at) {
      if (at >= nodes_ || index_.PrefixOf(0, at) != target.prefix) return false;
      const LogEntry* const node = At(at);
      if (!IsEntryOnLayer(regions_, regions_.ToPmPtr(0, node), 0)) {
        Fail();
        return false;
      }
      return CompareEntry(order_, *node, target) < 0;
    };
    uint64_t low = from;  // everything before it is before the target
    uint64_t step = 1;
    for (; is_before(low + step - 1); step *= 2) low += step;
    for (uint64_t high = low + step - 1; low < high;) {
      const uint64_t middle = low + (high - low) / 2;
      if (is_before(middle)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  // By key and sequence number, with the towers that lead there.
  void Place(size_t i) {
    MergeItem& item = result_->items[i];
    const SearchKey target(item.prefix, item.entry->key(), item.entry->sequence());
    const uint64_t place = place_ = exact_places_[i] = FindAmongEqual(std::max(places_[i], place_), target);
    // Nothing behind this looks at keys again.
    BRAIDDB_DCHECK(place == 0 || index_.PrefixOf(0, place - 1) <= item.prefix);
    BRAIDDB_DCHECK(place == nodes_ || index_.PrefixOf(0, place) >= item.prefix);
    const MergeItem* const newer = i == 0 ? nullptr : &result_->items[i - 1];
    const bool same_key = newer != nullptr && newer->prefix == item.prefix && order_.Same(newer->entry->key(), item.entry->key());
    // Versions of the key that the last level has follow at once. They may be very many (operands): one walk is enough.
    if (same_key) item.key_below = newer->key_below;
    uint64_t behind = place;
    for (; !same_key && behind < nodes_ && IsOfKey(behind, item); ++behind) {
      item.key_below = true;
      item.layers = std::max(item.layers, index_.HeightAt(0, behind));
    }
    if (item.key_below && !same_key && behind < nodes_) item.behind = regions_.ToPmPtr(0, At(behind));
    item.before = static_cast<uint32_t>(result_->towers.size());
    // A node that reaches a layer is, on average, as many nodes before the place as entries that reach it are apart.
    uint64_t at = place;
    for (uint32_t layer = 0; layer < item.layers; ++layer) {
      while (at > 0 && index_.HeightAt(0, at - 1) <= layer) --at;
      const PmPtr tower = at == 0 ? regions_.ToPmPtr(0, l1_.head(0)) : regions_.ToPmPtr(0, At(at - 1)) + kTowerOffset;
      Prefetch(regions_.Resolve<uint64_t>(tower));
      result_->towers.push_back(tower);
    }
  }

  // Whether the towers are those of nodes as the index has them, and lead behind the entry.
  void Check(size_t i) {
    const MergeItem& item = result_->items[i];
    uint64_t next = exact_places_[i];
    for (uint32_t layer = 0; layer < item.layers; ++layer) {
      const PmPtr tower = result_->towers[item.before + layer];
      const bool is_head = tower == regions_.ToPmPtr(0, l1_.head(0));
      if (!is_head && !IsEntryOnLayer(regions_, PmPtr(tower.raw() - kTowerOffset), layer)) return Fail();
      while (next < nodes_ && index_.HeightAt(0, next) <= layer) ++next;
      const PmPtr expected = next < nodes_ ? regions_.ToPmPtr(0, At(next)) : PmPtr();
      const PmPtr found(LoadAcquire(regions_.Resolve<uint64_t>(tower) + layer) & ~LogEntry::kTagBits);
      if (found == expected || !found) continue;
      if (!regions_.Holds(found) || !IsEntryOnLayer(regions_, found, layer)) return Fail();
      if (CompareEntries(order_, *regions_.Resolve<LogEntry>(found), *item.entry) < 0) return Fail();
    }
  }
  void Fail() { result_->damaged = true; }

  const BraidedList& l1_;
  const RegionSet& regions_;
  const KeyOrder& order_;
  const TallIndex& index_;
  const uint64_t nodes_;
  ScanResult* const result_;
  std::vector<uint64_t> places_;        // of the first node whose prefix is not less than the entry's
  std::vector<uint64_t> exact_places_;  // … and which is not before the entry
  uint64_t place_ = 0;                  // the last of those
  uint64_t fetched_ = 0;                // nodes before it are not to be fetched for Place any more
};

void Clear(ScanResult* result) {
  result->damaged = false;
  result->items.clear();
  result->towers.clear();
}

}  // namespace

void ScanChunkByIndex(const std::vector<MergePiece>& pieces, const BraidedList& l1, const TallIndex& index, ScanResult* result) {
  Clear(result);
  WalkPieces(pieces, Lane(&l1.regions(), &l1.order(), result), *result);
  if (result->damaged) return;
  SortEntries(l1.order(), result->items.begin(), result->items.end());
  // Two pieces that came to the same entry.
  for (size_t i = 1; i < result->items.size(); ++i) result->damaged |= result->items[i].entry == result->items[i - 1].entry;
  if (!result->damaged) Placer(l1, index, result).PlaceAll();
}

void ScanOrderByIndex(const TableOrder& tables, uint64_t begin, uint64_t end, const BraidedList& l1, const TallIndex& index,
                      ScanResult* result) {
  const RegionSet& regions = l1.regions();
  const KeyOrder& order = l1.order();
  Clear(result);
  std::vector<MergeItem>& items = result->items;
  items.reserve(end - begin);
  // Whether it is an entry, of that prefix and behind the one before it.
  const auto is_sound = [&](size_t i) {
    const MergeItem& item = items[i];
    if (!IsEntryOnLayer(regions, item.pointer, 0) || order.Prefix(item.entry->key()) != item.prefix) return false;
    if (i == 0 || items[i - 1].prefix < item.prefix) return true;
    return items[i - 1].prefix == item.prefix && CompareEntries(order, *items[i - 1].entry, *item.entry) < 0;
  };
  for (uint64_t next = begin; next < end + kAhead; ++next) {
    if (next < end) {
      const PmPtr place = tables.EntryAt(next);
      auto* const entry = regions.Resolve<LogEntry>(place);
      FetchEntry(entry);
      items.push_back({tables.PrefixAt(next), entry, place, 0, 0, false});
    }
    if (next < begin + kAhead) continue;
    const size_t i = next - begin - kAhead;
    if (!is_sound(i)) {
      result->damaged = true;
      return;
    }
    items[i].layers = items[i].entry->height();
  }
  Placer(l1, index, result).PlaceAll();
}

}  // namespace braiddb
