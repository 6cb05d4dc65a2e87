#include "compaction/zipper_scan.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "compaction/scan_lanes.h"
#include "log/entry_sort.h"
#include "util/prefetch.h"

namespace braiddb {
namespace {

// Number of steps to the right on one layer before a lane climbs to the next higher layer.
constexpr uint32_t kStepsBeforeClimb = 6;

// A lane runs one search at a time, and advances it by one memory access per Step.
//
// FINGER SEARCH  The entries of a piece ascend. rightmost(layer) is the last tower before the previous entry, so the next search
//                starts there, on the layer where neighbours are about as far apart as entries. After kStepsBeforeClimb steps on
//                one layer the search climbs. So the number of visited nodes grows with the logarithm of the distance and not of
//                the list.
// INVARIANT  On layers up to top_, rightmost() is the predecessor tower of entry_ when Found is called. Higher layers are brought
//            up to date by CatchUp, and only if the entry needs them.
//
//   kIdle ──Begin──► kEntry ──► kSearch ──► (found) ──► kEntry of the next entry … ──► kIdle at the end of the piece
class SearchLane {
 public:
  SearchLane(const BraidedList& l1, uint32_t start_layer, ScanResult* result)
      : l1_(l1),
        regions_(l1.regions()),
        order_(l1.order()),
        start_layer_(start_layer),
        result_(result),
        rightmost_(regions_.count() * kMaxHeight) {}

  bool idle() const { return state_ == State::kIdle; }

  // Starts at the heads: the piece has no predecessor whose search could be continued.
  void Begin(const MergePiece& piece) {
    current_ = piece.begin;
    end_ = piece.end;
    for (uint32_t region = 0; region < regions_.count(); ++region) {
      for (uint32_t layer = 0; layer < kMaxHeight; ++layer) {
        rightmost_[region * kMaxHeight + layer] = regions_.ToPmPtr(region, l1_.head(region));
      }
    }
    seen_regions_ = 0;
    entry_ = nullptr;
    if (!regions_.Holds(current_)) return Fail();
    Prefetch(regions_.Resolve(current_));
    state_ = State::kEntry;
  }

  // Works until the next memory access that is likely to miss the cache, and prefetches it.
  void Step() {
    if (state_ == State::kEntry) {
      if (!BeginSearch()) return Fail();
      Advance();
    } else {
      Compare();
    }
  }

 private:
  enum class State : uint8_t { kIdle, kEntry, kSearch };

  PmPtr& rightmost(uint32_t layer) { return rightmost_[(layer == 0 ? 0 : region_) * kMaxHeight + layer]; }
  uint64_t LoadNext(PmPtr tower, uint32_t layer) const {
    return LoadAcquire(regions_.Resolve<uint64_t>(tower) + layer) & ~LogEntry::kTagBits;
  }

  // A list is damaged. Ends the whole scan.
  void Fail() {
    result_->damaged = true;
    state_ = State::kIdle;
  }
  bool IsEntry(PmPtr place, uint32_t layer) const { return IsEntryOnLayer(regions_, place, layer); }

  // Reads the prefetched entry, checks that it follows its predecessor, and chooses the start layer. The first search in a region
  // starts at the top. Later searches start at start_layer_, or higher if the entry is taller.
  bool BeginSearch() {
    if (!IsEntry(current_, 0)) return false;
    const LogEntry* before = std::exchange(entry_, regions_.Resolve<LogEntry>(current_));
    // Entries of a table's list must ascend, so the walk ends.
    if (before != nullptr && CompareEntries(order_, *before, *entry_) >= 0) return false;
    const uint64_t prefix_before = std::exchange(prefix_, order_.Prefix(entry_->key()));
    same_key_ = before != nullptr && prefix_ == prefix_before && order_.Same(before->key(), entry_->key());
    key_ = entry_->key();
    region_ = regions_.ListRegion(current_.region());
    const PmPtr next = entry_->Next(0);
    if (next && next != end_ && regions_.Holds(next)) Prefetch(regions_.Resolve(next));
    const bool first = (seen_regions_ >> region_ & 1) == 0;  // no tower of this region is known yet: start on the top layer
    seen_regions_ |= 1u << region_;
    layer_ = first ? kMaxHeight - 1 : std::min(kMaxHeight - 1, std::max(start_layer_, entry_->height() - 1));
    top_ = layer_;
    low_ = layer_;
    tower_ = rightmost(layer_);
    moved_ = false;
    moved_since_climb_ = false;
    steps_ = 0;
    visited_ = 0;
    bound_ = 0;
    return true;
  }

  bool BeforeTarget(const LogEntry& node) const {
    const uint64_t prefix = order_.Prefix(node.key());
    if (prefix != prefix_) return prefix < prefix_;
    const int by_key = order_.Compare(node.key(), key_);
    return by_key != 0 ? by_key < 0 : node.sequence() > entry_->sequence();
  }

  // Moves from tower_ on layer_ to the next node to compare. Descends where the list ends or the bound is reached. `bound_` is
  // the smallest node known not to be before the target, so lower layers stop there without a comparison.
  void Advance() {
    for (;;) {
      const uint64_t next = LoadNext(tower_, layer_);
      if (next != 0 && next != bound_) {
        candidate_ = PmPtr(next);
        if (!regions_.Holds(candidate_)) return Fail();
        Prefetch(regions_.Resolve(candidate_));
        state_ = State::kSearch;
        return;
      }
      rightmost(layer_) = tower_;
      if (layer_ == 0) return Found();
      Descend();
    }
  }

  // Compares the prefetched node. A node before the target becomes the new tower. Any other node becomes the bound.
  void Compare() {
    const auto* node = regions_.Resolve<LogEntry>(candidate_);
    if (!IsEntry(candidate_, layer_) || InACircle(regions_, ++visited_)) return Fail();
    if (BeforeTarget(*node)) {
      tower_ = candidate_ + kTowerOffset;
      moved_ = true;
      moved_since_climb_ = true;
      if (++steps_ > kStepsBeforeClimb && layer_ + 1 < kMaxHeight) {
        if (layer_ == 0 && regions_.ListRegion(candidate_.region()) != region_ && node->height() > 1) {
          Leap(*node);
        } else {
          Climb();
        }
      }
      return Advance();
    }
    bound_ = candidate_.raw();
    Advance();
  }

  // Many steps on one layer mean that the target is far. The search continues on the next higher layer, from the farthest tower
  // that is known there.
  void Climb() {
    rightmost(layer_) = tower_;
    ++layer_;
    top_ = std::max(top_, layer_);
    tower_ = rightmost(layer_);
    moved_since_climb_ = false;
    steps_ = 0;
  }

  // If this region has few nodes, most nodes on the bottom layer belong to other regions. The upper layers of such a node's
  // region then lead closer to the target.
  void Leap(const LogEntry& node) {
    const BraidedList::Start start{candidate_.region(), node.next, node.height() - 1, candidate_.region()};
    const LogEntry* last = l1_.FindLessFrom(start, SearchKey(order_, key_, entry_->sequence()));
    // The search starts at a node before the target. A null result therefore means damage.
    if (last == nullptr || l1_.regions().damage_seen()) {
      result_->damaged = true;
      return;
    }
    tower_ = regions_.Find(last) + kTowerOffset;
    steps_ = 0;
  }

  // Enters the next lower layer. If the search has not moved to the right, the recorded tower of the lower layer is farther to
  // the right than tower_, because the previous search ended there. If the search has moved, it passed nodes behind the previous
  // entry, and tower_ is farther to the right.
  void Descend() {
    --layer_;
    steps_ = 0;
    const PmPtr known = rightmost(layer_);
    const bool stale = layer_ < low_ ? moved_ : moved_since_climb_;
    low_ = std::min(low_, layer_);
    if (!stale) {
      tower_ = known;
    } else if (layer_ == 0 && regions_.count() > 1 && IsLater(known, tower_)) {
      tower_ = known;  // the search of another region went farther on the shared bottom layer
    }
  }

  bool IsHead(PmPtr tower) const { return tower == regions_.ToPmPtr(tower.region(), l1_.head(tower.region())); }
  // Whether tower a lies behind tower b in entry order. A head lies before all entries.
  bool IsLater(PmPtr a, PmPtr b) const {
    if (IsHead(a)) return false;
    if (IsHead(b)) return true;
    const auto* entry_a = regions_.Resolve<LogEntry>(PmPtr(a.raw() - kTowerOffset));
    const auto* entry_b = regions_.Resolve<LogEntry>(PmPtr(b.raw() - kTowerOffset));
    return CompareEntries(order_, *entry_a, *entry_b) > 0;
  }

  // The search reached its end on the bottom layer. Records the entry with its predecessor towers, and selects the next entry of
  // the piece.
  void Found() {
    uint32_t layers = entry_->height();
    bool key_below = same_key_ && key_below_;
    // The versions of the key in the last level are the next nodes. A key may have many versions (operands), so only the key's
    // newest entry walks over them.
    for (uint64_t raw = same_key_ ? 0 : bound_; raw != 0;) {
      if (!regions_.Holds(PmPtr(raw)) || !IsEntry(PmPtr(raw), 0) || InACircle(regions_, ++visited_)) return Fail();
      const auto* node = regions_.Resolve<LogEntry>(PmPtr(raw));
      if (order_.Prefix(node->key()) != prefix_ || order_.Compare(node->key(), key_) != 0) break;
      key_below = true;
      if (regions_.ListRegion(PmPtr(raw).region()) == region_) layers = std::max(layers, node->height());
      raw = node->Next(0).raw();
    }
    key_below_ = key_below;
    for (uint32_t layer = top_ + 1; layer < layers; ++layer) {
      if (!CatchUp(layer)) return Fail();
    }
    result_->items.push_back({prefix_, entry_, current_, static_cast<uint32_t>(result_->towers.size()), layers, key_below});
    for (uint32_t layer = 0; layer < layers; ++layer) result_->towers.push_back(rightmost(layer));
    const PmPtr next = entry_->Next(0);
    current_ = next;
    if (next && next != end_ && !regions_.Holds(next)) return Fail();
    state_ = !next || next == end_ ? State::kIdle : State::kEntry;
  }

  // Moves the tower of a layer above top_ to the last node before the entry.
  bool CatchUp(uint32_t layer) {
    PmPtr& tower = rightmost(layer);
    for (uint64_t next = LoadNext(tower, layer); next != 0; next = LoadNext(tower, layer)) {
      if (!regions_.Holds(PmPtr(next)) || !IsEntry(PmPtr(next), layer) || InACircle(regions_, ++visited_)) return false;
      if (!BeforeTarget(*regions_.Resolve<LogEntry>(PmPtr(next)))) break;
      tower = PmPtr(next) + kTowerOffset;
    }
    return true;
  }

  const BraidedList& l1_;
  const RegionSet& regions_;
  const KeyOrder& order_;
  const uint32_t start_layer_;
  ScanResult* result_;
  std::vector<PmPtr> rightmost_;  // [region][layer]; layer 0 is shared by all regions, in the slot of region 0
  uint32_t seen_regions_ = 0;
  State state_ = State::kIdle;

  PmPtr current_;
  PmPtr end_;
  LogEntry* entry_ = nullptr;
  Slice key_;
  uint64_t prefix_ = 0;
  uint32_t region_ = 0;  // the region whose upper layers link the entry
  uint32_t layer_ = 0;
  uint32_t top_ = 0;  // rightmost() is exact up to this layer
  uint32_t low_ = 0;  // lowest layer that this search has visited
  uint32_t steps_ = 0;
  uint64_t visited_ = 0;
  bool same_key_ = false;           // the entry has the key of the previous entry
  bool key_below_ = false;          // the last level has versions of the previous entry's key
  bool moved_ = false;              // the search moved to the right
  bool moved_since_climb_ = false;  // the search moved to the right since it last climbed
  PmPtr tower_;
  PmPtr candidate_;
  uint64_t bound_ = 0;
};

}  // namespace

void ScanChunk(const std::vector<MergePiece>& pieces, const BraidedList& l1, uint32_t start_layer, ScanResult* result) {
  result->damaged = false;
  result->items.clear();
  result->towers.clear();
  WalkPieces(pieces, SearchLane(l1, start_layer, result), *result);
  SortEntries(l1.order(), result->items.begin(), result->items.end());
  // Two equal entries mean that two pieces led to the same entry: a list is damaged.
  for (size_t i = 1; i < result->items.size(); ++i) result->damaged |= result->items[i].entry == result->items[i - 1].entry;
}

}  // namespace braiddb
