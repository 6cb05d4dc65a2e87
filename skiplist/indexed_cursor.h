// IndexedCursor: an EntryCursor over a braided list of which a tall index has every node.
#pragma once

#include <algorithm>
#include <cstdint>

#include "index/cursor.h"
#include "skiplist/tall_index.h"

namespace braiddb {

// It goes along the index and does not follow the list: where it stands is known without a look at an entry, and what comes is
// fetched long before.
//
// WHY A STALE INDEX IS SAFE  An index belongs to one read view. It has every node that the list had then; what was linked since
//     is in tables of the view, or came after it. A node that was marked since, dead or moved, lies where it was while a reader
//     of the view lives, and what a mark says holds for whoever comes upon it (DBIterator::Counts): a moved entry is as good as
//     its copy; a dead one is the answer for no registered snapshot.
// COST  Behind a seek, what is near in the index is fetched before any entry is looked at; a step fetches one entry, kMost ahead,
//     more of them at first. Only among keys with the target's prefix a seek waits for entries.
// Thread safety: one thread at a time, concurrent with any change of the list. The list and the index must outlive the cursor.
class IndexedCursor final : public EntryCursor {
 public:
  // REQUIRES: index->HasEveryNode(reader).
  IndexedCursor(const TallIndex* index, uint32_t reader, const RegionSet* regions)
      : EntryCursor(true, index->FetchBytes(reader)),
        index_(index),
        reader_(reader),
        regions_(regions),
        nodes_(index->NodesOf(reader)),
        at_(&nodes_),
        fetched_(&nodes_) {}

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
        found_ = Found::kPlace;
        FetchFirst();
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
  // From the first one to the end.
  void Prev() override {
    Show(at_.Prev());
    FetchBackward();
  }

 protected:
  void ForgetFetched() override { found_ = Found::kNothing; }

 private:
  // How far ahead it fetches: of many seeks there come a few steps only.
  static constexpr uint64_t kFirst = 4;
  static constexpr uint64_t kGrowth = 2;  // with each step
  static constexpr uint64_t kSome = 16;
  static constexpr uint64_t kStepsForOne = 8;  // from there on it grows by one in so many steps
  static constexpr uint64_t kMost = 24;

  // For the next seek, what sought_ is: the group or block of the index, or the place, of the first node whose prefix is not less
  // than its target's.
  enum class Found : uint8_t { kNothing, kGroup, kBlock, kPlace };

  // The way in which it fetches as far ahead as it ever does.
  enum class Steady : uint8_t { kNo, kForward, kBackward };

  // Of the first node at or after the target.
  uint64_t Place(const SearchKey& target) {
    if (found_ == Found::kNothing) return index_->Find(reader_, target);
    while (FetchForSeek(target)) {
    }
    return index_->FindFrom(reader_, sought_, target);
  }
  uint64_t Before(uint64_t place) const { return place == 0 ? IndexTree::Iterator::kBeforeFirst : nodes_.Prev(place); }
  // What is near the place that was found: one node before it, and some from there on.
  void FetchFirst() {
    if (sought_ > 0) Fetch(nodes_.EntryAt(nodes_.Prev(sought_)));
    fetched_.Set(sought_);
    for (ahead_ = 0; ahead_ < kFirst && !fetched_.is_out(); ++ahead_, fetched_.Next()) Fetch(fetched_.entry());
  }
  void Begin(uint64_t place) {
    at_.Set(place);
    // Among equal prefixes it may be far from where the search began.
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
  void Show(bool is_there) {
    if (__builtin_expect(is_there, 1)) {
      prefix_ = at_.prefix();
      entry_ = at_.entry();
    } else {
      entry_ = nullptr;
    }
  }
  // With each step one node, and some more until the distance is reached.
  void FetchForward() {
    if (__builtin_expect(steady_ != Steady::kForward, 0)) return FetchMoreForward();
    if (__builtin_expect(fetched_.is_out(), 0)) return;
    Fetch(fetched_.entry());
    fetched_.Next();
  }
  void FetchMoreForward() {
    if (goes_back_) Turn(false);
    CountStep();
    for (; ahead_ < distance_ && !fetched_.is_out(); ++ahead_, fetched_.Next()) Fetch(fetched_.entry());
    if (ahead_ == kMost) steady_ = Steady::kForward;
  }
  // fetched_ is the last one that is fetched.
  void FetchBackward() {
    if (__builtin_expect(steady_ != Steady::kBackward, 0)) return FetchMoreBackward();
    if (!fetched_.is_out() && fetched_.Prev()) Fetch(fetched_.entry());
  }
  void FetchMoreBackward() {
    if (at_.is_out()) return;
    if (!goes_back_) Turn(true);
    CountStep();
    for (; ahead_ < distance_ && fetched_.place() > 0; ++ahead_) {
      fetched_.Prev();
      Fetch(fetched_.entry());
    }
    if (ahead_ == kMost) steady_ = Steady::kBackward;
  }
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
  void Turn(bool back) {
    goes_back_ = back;
    steady_ = Steady::kNo;
    fetched_ = at_;
    ahead_ = 0;
    distance_ = kFirst;
  }
  // Of the piece that it stands in. Where an index has every node, all are in one region.
  size_t TakeForward(OrderedItem* items, uint64_t count) {
    const uint64_t taken = std::min(count, at_.left_forward());
    const uint64_t first = at_.place();
    for (uint64_t i = 0; i < taken; ++i) items[i] = ItemAt(first + i);
    at_.Set(nodes_.Next(first + taken - 1));
    return taken;
  }
  // The last of so many items, downward.
  size_t TakeBackward(OrderedItem* items, uint64_t count) {
    const uint64_t taken = std::min(count, at_.left_backward() + 1);
    const uint64_t first = at_.place() + 1 - taken;
    for (uint64_t i = 0; i < taken; ++i) items[count - taken + i] = ItemAt(first + i);
    at_.Set(Before(first));
    return taken;
  }
  OrderedItem ItemAt(uint64_t place) const {
    const uint64_t word = at_.WordAt(place);
    return {at_.PrefixAt(place), regions_->ToPmPtr(reader_, IndexNode::EntryOf(word)).raw() | IndexNode::ItemBitsOf(word)};
  }

  const TallIndex* const index_;
  const uint32_t reader_;
  const RegionSet* const regions_;
  const IndexTree& nodes_;
  IndexTree::Iterator at_;       // the node of entry_
  IndexTree::Iterator fetched_;  // the first node that is not fetched; going backward, the last one that is
  uint64_t ahead_ = 0;           // so many nodes from at_
  uint64_t distance_ = 0;        // how far ahead it fetches
  bool goes_back_ = false;       // the way in which it fetches
  Steady steady_ = Steady::kNo;
  Found found_ = Found::kNothing;
  uint64_t sought_ = 0;
};

}  // namespace braiddb
