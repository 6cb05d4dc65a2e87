#include "compaction/indexed_scan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "compaction/scan_lanes.h"
#include "log/entry_sort.h"
#include "log/fetch_entry.h"
#include "util/check.h"

namespace braiddb {
namespace {

// Batch size of the pipeline: each step prefetches, for this many entries, the data of the next step. The prefetches of a batch
// follow each other directly, so that many are in flight at once.
constexpr size_t kAhead = 32;

// Walks one piece after the other, and appends the entries to the result.
class IndexLane {
 public:
  IndexLane(const RegionSet* regions, const KeyOrder* order, ScanResult* result)
      : regions_(*regions), order_(*order), result_(result) {}

  bool idle() const { return !current_; }

  void Begin(const MergePiece& piece) {
    end_ = piece.end;
    before_ = nullptr;
    GoTo(piece.begin);
  }

  // Appends the prefetched entry, and prefetches its successor.
  void Step() {
    if (!IsEntryOnLayer(regions_, current_, 0)) return Fail();
    auto* const entry = regions_.Resolve<LogEntry>(current_);
    const uint64_t prefix = order_.Prefix(entry->key());
    // Entries of a table's list must ascend, so the walk ends.
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
  // A list is damaged. Ends the whole scan.
  void Fail() {
    result_->damaged = true;
    current_ = PmPtr();
  }

  const RegionSet& regions_;
  const KeyOrder& order_;
  ScanResult* const result_;
  PmPtr current_;  // null: the piece is finished
  PmPtr end_;
  const LogEntry* before_ = nullptr;
  uint64_t prefix_ = 0;  // of before_
};

// Steps S2 to S4 for entries in ascending order. Runs as a software pipeline over batches of kAhead entries: batch n is in Find
// while batch n-1 is in Place and batch n-2 is in Check. Each stage prefetches the lines that the next stage reads.
//
// WHY THE PREDECESSORS ARE RIGHT  The index has all nodes in key order with their heights. The predecessor of a position on a
//                                 layer is the last node before the position that is taller than the layer. The merge of later
//                                 chunks adds and removes only nodes behind all entries of this chunk, so the predecessors stay
//                                 valid. Only the pointers in the towers may have changed. The merge loads these itself.
class Placer {
 public:
  Placer(const BraidedList& l1, const TallIndex& index, ScanResult* result)
      : l1_(l1), regions_(l1.regions()), order_(l1.order()), index_(index), nodes_(index.NodesOf(0)), result_(result) {}

  // Iteration `begin` runs Find on its own batch, Place on the previous batch, and Check on the batch before that. Two more
  // iterations after the last batch empty the pipeline. The loop ends early at damage, because later stages trust the results of
  // earlier stages.
  void PlaceAll() {
    std::vector<MergeItem>& items = result_->items;
    places_.resize(items.size());
    exact_places_.resize(items.size());
    result_->towers.reserve(2 * items.size());
    // The prefetches of a batch follow each other directly: see kAhead.
    const size_t count = items.size();
    const auto each_of = [&](size_t begin, auto&& step) {
      for (size_t i = begin; i < std::min(count, begin + kAhead) && !result_->damaged; ++i) step(i);
    };
    for (size_t begin = 0; begin < count + 2 * kAhead && !result_->damaged; begin += kAhead) {
      if (begin < count) {
        each_of(begin, [this](size_t i) { Find(i); });
        FetchFound();
      }
      if (begin >= kAhead && begin - kAhead < count) {
        const size_t towers = result_->towers.size();
        each_of(begin - kAhead, [this](size_t i) { Place(i); });
        for (size_t i = towers; i < result_->towers.size(); ++i) Prefetch(regions_.Resolve<uint64_t>(result_->towers[i]));
      }
      if (begin >= 2 * kAhead) each_of(begin - 2 * kAhead, [this](size_t i) { Check(i); });
    }
  }

 private:
  static constexpr uint64_t kNear = 64;
  static constexpr uint64_t kUnknown = UINT64_MAX;

  const LogEntry* At(uint64_t place) const { return nodes_.EntryAt(place); }
  uint32_t HeightAt(uint64_t place) const { return IndexNode::HeightOf(nodes_.WordAt(place)); }
  // Whether the node at index position `place` has the item's key. Calls Fail if it finds damage.
  bool IsOfKey(uint64_t place, const MergeItem& item) {
    if (nodes_.PrefixAt(place) != item.prefix) return false;
    const LogEntry* const node = At(place);
    if (IsEntryOnLayer(regions_, regions_.ToPmPtr(0, node), 0)) return order_.Same(node->key(), item.entry->key());
    Fail();
    return false;
  }

  // Holes count as nodes: where the index has holes, fewer nodes are prefetched.
  uint64_t EndOfAhead(uint64_t place) const { return std::min(nodes_.End(), place + kAhead); }

  // Step S2: stores the first index position whose prefix is not smaller. Collects the nodes with an equal prefix for
  // prefetching, because Place must compare their keys.
  void Find(size_t i) {
    const uint64_t prefix = result_->items[i].prefix;
    const uint64_t place = places_[i] = index_.FindPrefixNear(0, i == 0 ? 0 : places_[i - 1], prefix);
    // If several nodes have the prefix, the entry's position is not before that of the last placed entry.
    const uint64_t begin = std::max(place, place_);
    for (fetched_ = std::max(fetched_, begin); fetched_ < EndOfAhead(begin); fetched_ = nodes_.Next(fetched_)) {
      if (nodes_.PrefixAt(fetched_) != prefix) break;
      found_.push_back(At(fetched_));
    }
  }
  void FetchFound() {
    for (const LogEntry* const node : found_) FetchEntry(node);
    found_.clear();
  }
  // Prefetches more nodes with the same prefix, if Find did not reach the entry's position.
  void FetchAlike(uint64_t place) {
    const uint64_t prefix = nodes_.PrefixAt(place);
    for (fetched_ = std::max(fetched_, place); fetched_ < EndOfAhead(place); fetched_ = nodes_.Next(fetched_)) {
      if (nodes_.PrefixAt(fetched_) != prefix) return;
      FetchEntry(At(fetched_));
    }
  }

  // The first node at or after `from` that is not smaller than the target. The first node's prefix is equal to the target's or
  // larger. Sets damaged if it finds damage.
  uint64_t FindAmongEqual(uint64_t from, const SearchKey& target) {
    return nodes_.Gallop(from, [&](uint64_t at) {
      if (nodes_.PrefixAt(at) != target.prefix) return false;
      const LogEntry* const node = At(at);
      if (IsEntryOnLayer(regions_, regions_.ToPmPtr(0, node), 0)) return CompareEntry(order_, *node, target) < 0;
      Fail();
      return false;
    });
  }

  // Step S3: finds the exact position by key and sequence number, and the predecessor tower on each layer.
  void Place(size_t i) {
    MergeItem& item = result_->items[i];
    const SearchKey target(item.prefix, item.entry->key(), item.entry->sequence());
    const uint64_t place = place_ = exact_places_[i] = FindAmongEqual(std::max(places_[i], place_), target);
    // The last check of the index's own order: later steps compare no keys of neighbours.
    if ((place > 0 && nodes_.PrefixAt(nodes_.Prev(place)) > item.prefix) ||
        (place < nodes_.End() && nodes_.PrefixAt(place) < item.prefix))
      return Fail();
    if (place < nodes_.End() && nodes_.PrefixAt(place) == item.prefix) FetchAlike(place);
    const MergeItem* const newer = i == 0 ? nullptr : &result_->items[i - 1];
    const bool same_key = newer != nullptr && newer->prefix == item.prefix && order_.Same(newer->entry->key(), item.entry->key());
    // Counts the versions of the key that the last level has; these are the successors of the position. A key may have many
    // versions (operands), so only the key's newest entry walks over them.
    if (same_key) item.key_below = newer->key_below;
    uint64_t behind = place;
    for (; !same_key && behind < nodes_.End() && IsOfKey(behind, item); behind = nodes_.Next(behind)) {
      item.key_below = true;
      item.layers = std::max(item.layers, std::min(kMaxHeight, HeightAt(behind)));
    }
    if (item.key_below && !same_key && behind < nodes_.End()) item.behind = regions_.ToPmPtr(0, At(behind));
    item.before = static_cast<uint32_t>(result_->towers.size());
    GoTo(place);
    for (uint32_t layer = 0; layer < item.layers; ++layer) {
      const uint64_t behind_it = BehindTower(layer);
      result_->towers.push_back(behind_it == 0 ? regions_.ToPmPtr(0, l1_.head(0))
                                               : regions_.ToPmPtr(0, At(nodes_.Prev(behind_it))) + kTowerOffset);
    }
  }

  // After it, BehindTower refers to the nodes before `place`. Updates the array by the heights of the nodes between the old and
  // the new position. If the positions are far apart, it clears the array, and BehindTower searches backward on demand.
  void GoTo(uint64_t place) {
    uint32_t layers = 0;  // number of layers whose predecessor is known
    if (place - seen_ > kNear) {
      seen_ = place;
      behind_towers_.fill(kUnknown);
    }
    for (uint64_t at = place; at > seen_; at = nodes_.Prev(at)) {
      for (const uint32_t height = std::min(HeightAt(nodes_.Prev(at)), kMaxHeight); layers < height; ++layers)
        behind_towers_[layers] = at;
    }
    seen_ = place;
  }
  // One plus the position of the last node before the current position that reaches the layer. 0 if no node reaches it. The
  // backward search takes on average as many steps as nodes of that height are apart, and taller layers are needed as rarely.
  uint64_t BehindTower(uint32_t layer) {
    uint64_t& behind = behind_towers_[layer];
    if (behind == kUnknown) {
      behind = layer == 0 ? seen_ : BehindTower(layer - 1);
      while (behind > 0) {
        const uint64_t before = nodes_.Prev(behind);
        if (HeightAt(before) > layer) break;
        behind = before;
      }
    }
    return behind;
  }

  // Step S4: checks that each tower belongs to a node of the index and leads behind the entry.
  void Check(size_t i) {
    const MergeItem& item = result_->items[i];
    uint64_t next = exact_places_[i];
    for (uint32_t layer = 0; layer < item.layers; ++layer) {
      const PmPtr tower = result_->towers[item.before + layer];
      const bool is_head = tower == regions_.ToPmPtr(0, l1_.head(0));
      if (!is_head && !IsEntryOnLayer(regions_, PmPtr(tower.raw() - kTowerOffset), layer)) return Fail();
      // If the expected successor is far away in the index, reading the node that the tower leads to is cheaper.
      const uint64_t far = std::min(nodes_.End(), next + kNear);
      while (next < far && HeightAt(next) <= layer) next = nodes_.Next(next);
      const PmPtr expected = next < far ? regions_.ToPmPtr(0, At(next)) : PmPtr();
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
  const IndexTree& nodes_;
  ScanResult* const result_;
  std::vector<uint64_t> places_;        // per item: first position whose prefix is not smaller
  std::vector<uint64_t> exact_places_;  // per item: first position whose node is not smaller
  uint64_t place_ = 0;                  // the last of exact_places_
  std::vector<const LogEntry*> found_;  // nodes to prefetch
  uint64_t seen_ = 0;                   // position that behind_towers_ refers to
  std::array<uint64_t, kMaxHeight> behind_towers_ = {};
  uint64_t fetched_ = 0;  // nodes before this position are prefetched already
};

void Clear(ScanResult* result) {
  result->damaged = false;
  result->items.clear();
  result->towers.clear();
}

}  // namespace

void ScanChunkByIndex(const std::vector<MergePiece>& pieces, const BraidedList& l1, const TallIndex& index, ScanResult* result) {
  Clear(result);
  WalkPieces(pieces, IndexLane(&l1.regions(), &l1.order(), result), *result);
  if (result->damaged) return;
  SortEntries(l1.order(), result->items.begin(), result->items.end());
  // Two equal entries mean that two pieces led to the same entry: a list is damaged.
  for (size_t i = 1; i < result->items.size(); ++i) result->damaged |= result->items[i].entry == result->items[i - 1].entry;
  if (!result->damaged) Placer(l1, index, result).PlaceAll();
}

// Reads the entries in batches: first the addresses and prefixes from the array, then the prefetched entries. Each entry is
// checked against its prefix and its predecessor, because the lists are not walked and so cannot reveal damage.
void ScanOrderByIndex(const TableOrder& tables, uint64_t begin, uint64_t end, const BraidedList& l1, const TallIndex& index,
                      ScanResult* result) {
  const RegionSet& regions = l1.regions();
  const KeyOrder& order = l1.order();
  Clear(result);
  std::vector<MergeItem>& items = result->items;
  items.reserve(end - begin);
  // Whether item i is an entry, has the array's prefix, and is larger than its predecessor.
  const auto is_sound = [&](size_t i) {
    const MergeItem& item = items[i];
    if (!IsEntryOnLayer(regions, item.pointer, 0) || order.Prefix(item.entry->key()) != item.prefix) return false;
    if (i == 0 || items[i - 1].prefix < item.prefix) return true;
    return items[i - 1].prefix == item.prefix && CompareEntries(order, *items[i - 1].entry, *item.entry) < 0;
  };
  const size_t count = end - begin;
  for (size_t next = 0; next < count + kAhead; next += kAhead) {
    for (size_t i = next; i < std::min(count, next + kAhead); ++i) {
      const PmPtr place = tables.EntryAt(begin + i);
      items.push_back({tables.PrefixAt(begin + i), regions.Resolve<LogEntry>(place), place, 0, 0, false});
    }
    for (size_t i = next; i < std::min(count, next + kAhead); ++i) FetchEntry(items[i].entry);
    for (size_t i = next < kAhead ? count : next - kAhead; i < std::min(count, next); ++i) {
      if (!is_sound(i)) {
        result->damaged = true;
        return;
      }
      items[i].layers = items[i].entry->height();
    }
  }
  Placer(l1, index, result).PlaceAll();
}

}  // namespace braiddb
