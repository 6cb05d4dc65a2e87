// IndexedCursor: an EntryCursor over an index in DRAM that has every node of a level.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "index/cursor.h"
#include "skiplist/ordered_nodes.h"

namespace braiddb {

// HOW   The cursor moves along the index, and does not follow the list. So it knows the prefix and the address of its entry
//     without reading the entry, and it prefetches entries that lie ahead.
// SEEK  In up to five calls of FetchForSeek: group, block, and place or, among nodes with the target's prefix, range, candidate,
//     place. Each call reads the lines that the call before has prefetched, so a merging cursor interleaves the seeks of several
//     levels.
// STEPS at_ is the node of the cursor, fetched_ the end of the prefetched nodes, ahead_ their distance. While the distance grows,
//     FetchMoreForward and FetchMoreBackward count; when it is kMost (Steady), a step prefetches exactly one entry without
//     counting.
// WHY A STALE INDEX IS SAFE  An index belongs to one read view, and has every node that the list had when the view was
//     installed. Entries that were linked later are in tables of the view, or are newer than the view. An entry that was marked
//     later stays readable while a reader of the view lives. Its mark is right for every reader (DBIterator::Counts): a moved
//     entry has the content of its copy, and no registered snapshot needs a dead entry.
// COST  A seek searches the index, and prefetches the entries near the result before it reads one. It reads entries only among
//     keys with the target's prefix. A step prefetches one entry, kMost entries ahead; after a seek the distance grows to
//     kMost.
// Thread safety: one thread at a time, concurrent with any change of the list. The list and the index must outlive the cursor.
// kIsNear: the index is_near() (IndexTree), so a step has no branch for other indexes.
template <bool kIsNear>
class IndexedCursor final : public EntryCursor {
 public:
  // REQUIRES: the index has every node, and kIsNear is right.
  IndexedCursor(const OrderedNodes* index, const KeyOrder* order)
      : EntryCursor(true, index->fetch_bytes),
        index_(*index),
        order_(*order),
        nodes_(index->nodes),
        at_(&nodes_),
        fetched_(&nodes_) {}

  // The next step of the search for `target`. Returns true if a further call has work to do. REQUIRES: the same target as in
  // the calls since the last seek.
  bool FetchForSeek(const SearchKey& target) override {
    switch (found_) {
      case Found::kNothing:
        sought_ = nodes_.GroupOf(target.prefix);
        found_ = Found::kGroup;
        return true;
      case Found::kGroup:
        sought_ = nodes_.BlockOf(sought_, target.prefix);
        found_ = Found::kBlock;
        return true;
      case Found::kBlock:
        sought_ = nodes_.FirstInBlock(sought_, target.prefix);
        if (sought_ < nodes_.End() && nodes_.PrefixAt(sought_) == target.prefix) {
          among_ = index_.BeginAmong(order_, sought_, target);
          sought_ = IndexTree::Iterator::kBeforeFirst;
          if (among_.high - among_.low > 1) {
            found_ = Found::kRange;
            return true;
          }
          GoTo(among_.low);  // the place, or the one before it
          found_ = Found::kCandidate;
          return true;
        }
        FetchFirst();
        found_ = Found::kPlace;
        return false;
      case Found::kRange:
        index_.ChooseAmong(order_, target, &among_);
        found_ = Found::kCandidate;
        return true;
      case Found::kCandidate:
        GoTo(index_.EndAmong(order_, target, among_));
        found_ = Found::kPlace;
        return false;
      case Found::kPlace:
        return false;
    }
    return false;
  }
  void SeekToFirst() override { Begin(0); }
  uint64_t entries() const override { return nodes_.nodes(); }
  void SeekToLast() override { Begin(Before(nodes_.End())); }
  void Seek(const SearchKey& target) override { Begin(Place(target)); }
  void SeekBefore(const SearchKey& target) override { Begin(Before(Place(target))); }
  void Next() override {
    Show(at_.Next());
    FetchForward();
  }
  void NextKey() override { IndexedCursor::Next(); }
  bool gives_items() const override { return true; }
  // Writes up to `count` items from the cursor's position on, in the direction of `forward`, and moves behind them. Backward,
  // the items are the last ones of items[0, count), in ascending order. Reads no entry.
  size_t TakeItems(OrderedItem* items, size_t count, bool forward) override {
    uint64_t taken = 0;
    while (taken < count && !at_.is_out())
      taken += forward ? TakeForward(items + taken, count - taken) : TakeBackward(items, count - taken);
    if (at_.is_out()) return taken;
    if (forward) {
      nodes_.FetchForward(at_.place(), count);
    } else {
      nodes_.FetchBackward(at_.place() + 1, count);
    }
    return taken;
  }
  // A step back from the first entry leads to the end.
  void Prev() override {
    Show(at_.Prev());
    FetchBackward();
  }

 protected:
  void ForgetFetched() override { found_ = Found::kNothing; }

 private:
  // The prefetch distance, in entries. It begins small, since many seeks are followed by a few steps only.
  static constexpr uint64_t kFirst = 4;
  static constexpr uint64_t kGrowth = 2;  // growth of the distance with each step, up to kSome
  static constexpr uint64_t kSome = 16;   // from here on the distance grows by one in kStepsForOne steps
  static constexpr uint64_t kStepsForOne = 8;
  static constexpr uint64_t kMost = 24;

  // How far the search for the next seek's target is. sought_ is the group, then the block of the first node whose prefix is not
  // less than the target's. If that node has the target's prefix, the search goes on in a range of such nodes (among_), and with
  // a candidate; sought_ is then the place that is prefetched, or kBeforeFirst. Last, it is the place of the first node that is
  // not before the target.
  enum class Found : uint8_t { kNothing, kGroup, kBlock, kRange, kCandidate, kPlace };

  // The direction in which the prefetch distance is kMost; kNo while the distance grows.
  enum class Steady : uint8_t { kNo, kForward, kBackward };

  // Returns the place of the first node at or after the target.
  uint64_t Place(const SearchKey& target) {
    if (found_ == Found::kNothing) return index_.Find(order_, target);
    while (FetchForSeek(target)) {
    }
    return sought_;
  }
  static const LogEntry* EntryOf(const IndexTree::Iterator& at) { return kIsNear ? at.near_entry() : at.entry(); }
  uint64_t Before(uint64_t place) const { return place == 0 ? IndexTree::Iterator::kBeforeFirst : nodes_.Prev(place); }
  void GoTo(uint64_t place) {
    if (std::exchange(sought_, place) != place) FetchFirst();
  }
  // Prefetches the entry before the place that was found, and kFirst entries from there on.
  void FetchFirst() {
    if (sought_ > 0) Fetch(nodes_.EntryAt(nodes_.Prev(sought_)));
    fetched_.Set(sought_);
    for (ahead_ = 0; ahead_ < kFirst && !fetched_.is_out(); ++ahead_, fetched_.Next()) Fetch(EntryOf(fetched_));
  }
  // Ends a seek at `place`: the prefetched entries are kept if the place is the one around which they lie.
  void Begin(uint64_t place) {
    at_.Set(place);
    if (found_ != Found::kPlace || place != sought_) {
      fetched_ = at_;
      ahead_ = 0;
    }
    found_ = Found::kNothing;
    goes_back_ = false;
    steady_ = Steady::kNo;
    distance_ = kFirst;
    Show(!at_.is_out());
  }
  // Sets the fields of EntryCursor to the node at at_; to the end if there is none.
  void Show(bool is_there) {
    if (__builtin_expect(is_there, 1)) {
      prefix_ = at_.prefix();
      entry_ = EntryOf(at_);
    } else {
      entry_ = nullptr;
    }
  }
  // Prefetches one entry for each step, and more entries until the distance is kMost.
  void FetchForward() {
    if (__builtin_expect(steady_ != Steady::kForward, 0)) return FetchMoreForward();
    if (__builtin_expect(fetched_.is_out(), 0)) return;
    Fetch(EntryOf(fetched_));
    fetched_.Next();
  }
  void FetchMoreForward() {
    if (goes_back_) Turn(false);
    CountStep();
    for (; ahead_ < distance_ && !fetched_.is_out(); ++ahead_, fetched_.Next()) Fetch(EntryOf(fetched_));
    if (ahead_ == kMost) steady_ = Steady::kForward;
  }
  // As FetchForward. Backward, fetched_ is the last node that was prefetched.
  void FetchBackward() {
    if (__builtin_expect(steady_ != Steady::kBackward, 0)) return FetchMoreBackward();
    if (!fetched_.is_out() && fetched_.Prev()) Fetch(EntryOf(fetched_));
  }
  void FetchMoreBackward() {
    if (at_.is_out()) return;
    if (!goes_back_) Turn(true);
    CountStep();
    for (; ahead_ < distance_ && fetched_.place() > 0; ++ahead_) {
      fetched_.Prev();
      Fetch(EntryOf(fetched_));
    }
    if (ahead_ == kMost) steady_ = Steady::kBackward;
  }
  // Counts a step toward fetched_, and enlarges the distance. If no prefetched entry is left, prefetching begins at the
  // position.
  void CountStep() {
    if (distance_ < kMost) Grow();
    if (ahead_ > 0) {
      --ahead_;
    } else {
      fetched_ = at_;
    }
  }
  void Grow() {
    if (distance_ < kSome) {
      distance_ += kGrowth;
    } else if (at_.place() % kStepsForOne == 0) {
      ++distance_;
    }
  }
  // Begins prefetching in the other direction, with the small distance.
  void Turn(bool back) {
    goes_back_ = back;
    steady_ = Steady::kNo;
    fetched_ = at_;
    ahead_ = 0;
    distance_ = kFirst;
  }
  // Takes items forward, up to the end of the piece of the index.
  size_t TakeForward(OrderedItem* items, uint64_t count) {
    const uint64_t taken = std::min(count, at_.left_forward());
    const uint64_t first = at_.place();
    for (uint64_t i = 0; i < taken; ++i) items[i] = ItemAt(first + i);
    at_.Set(nodes_.Next(first + taken - 1));
    return taken;
  }
  // Takes items backward, down to the first node of the piece, into the last of `count` items.
  size_t TakeBackward(OrderedItem* items, uint64_t count) {
    const uint64_t taken = std::min(count, at_.left_backward() + 1);
    const uint64_t first = at_.place() + 1 - taken;
    for (uint64_t i = 0; i < taken; ++i) items[count - taken + i] = ItemAt(first + i);
    at_.Set(Before(first));
    return taken;
  }
  OrderedItem ItemAt(uint64_t place) const {
    const uint64_t word = at_.WordAt(place);
    return {at_.PrefixAt(place), IndexNode::ItemWordOf(word)};
  }

  const OrderedNodes& index_;
  const KeyOrder& order_;
  const IndexTree& nodes_;
  IndexTree::Iterator at_;       // the node of entry_
  IndexTree::Iterator fetched_;  // forward: the first node that is not prefetched; backward: the last one that is
  uint64_t ahead_ = 0;           // nodes between at_ and fetched_
  uint64_t distance_ = 0;        // the present prefetch distance
  bool goes_back_ = false;       // the direction of prefetches
  Steady steady_ = Steady::kNo;
  Found found_ = Found::kNothing;
  uint64_t sought_ = 0;
  OrderedNodes::Among among_;
};

// REQUIRES: the index has every node. It and the order must outlive the cursor.
inline std::unique_ptr<EntryCursor> NewIndexedCursor(const OrderedNodes* index, const KeyOrder* order) {
  if (index->nodes.is_near()) return std::make_unique<IndexedCursor<true>>(index, order);
  return std::make_unique<IndexedCursor<false>>(index, order);
}

}  // namespace braiddb
