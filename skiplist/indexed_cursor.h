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
        nodes_(index->NodesOf(reader)) {}

  bool FetchForSeek(const SearchKey& target) override {
    switch (found_) {
      case Found::kNothing:
        sought_ = index_->FindGroup(reader_, target.prefix);
        found_ = Found::kGroup;
        return true;
      case Found::kGroup:
        sought_ = index_->FindBlock(reader_, sought_, target.prefix);
        found_ = Found::kBlock;
        return true;
      case Found::kBlock:
        sought_ = index_->FindInBlock(reader_, sought_, target.prefix);
        found_ = Found::kPlace;
        fetched_ = std::min(nodes_.size(), sought_ + kFirst);
        for (uint64_t place = sought_ == 0 ? 0 : sought_ - 1; place < fetched_; ++place) Fetch(nodes_.EntryAt(place));
        return false;
      case Found::kPlace:
        return false;
    }
    return false;
  }
  void SeekToFirst() override { Begin(0); }
  uint64_t entries() const override { return nodes_.size(); }
  void SeekToLast() override { Begin(nodes_.size() - 1); }
  void Seek(const SearchKey& target) override { Begin(Place(target)); }
  void SeekBefore(const SearchKey& target) override { Begin(Place(target) - 1); }
  void Next() override {
    Set(place_ + 1);
    FetchForward();
  }
  void NextKey() override { IndexedCursor::Next(); }
  bool gives_items() const override { return true; }
  size_t TakeItems(OrderedItem* items, size_t count, bool forward) override {
    if (place_ >= nodes_.size()) return 0;
    const uint64_t taken = std::min<uint64_t>(count, forward ? nodes_.size() - place_ : place_ + 1);
    const uint64_t first = forward ? place_ : place_ + 1 - taken;
    OrderedItem* const to = forward ? items : items + (count - taken);
    // Where an index has every node, all are in one region.
    for (uint64_t i = 0; i < taken; ++i) to[i] = nodes_.ItemAt(first + i, *regions_, reader_);
    place_ = forward ? first + taken : first - 1;
    const uint64_t next = forward ? count : std::min<uint64_t>(first, count);
    nodes_.FetchItems(forward ? place_ : first - next, next);
    return taken;
  }
  // From the first one to the end.
  void Prev() override {
    Set(place_ - 1);
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

  // Of the first node at or after the target.
  uint64_t Place(const SearchKey& target) {
    if (found_ == Found::kNothing) return index_->Find(reader_, target);
    while (FetchForSeek(target)) {
    }
    return index_->FindFrom(reader_, sought_, target);
  }
  void Begin(uint64_t place) {
    // Among equal prefixes it may be far from where the search began.
    if (found_ != Found::kPlace || fetched_ < place || fetched_ > place + kFirst) fetched_ = place;
    found_ = Found::kNothing;
    goes_back_ = false;
    distance_ = kFirst;
    Set(place);
  }
  void Set(uint64_t place) {
    place_ = place;
    entry_ = nullptr;
    if (place >= nodes_.size()) return;
    prefix_ = nodes_.PrefixAt(place);
    entry_ = nodes_.EntryAt(place);
  }
  void FetchForward() {
    if (__builtin_expect(goes_back_, 0)) Turn(false);
    if (distance_ < kMost) Grow();
    const uint64_t end = std::min(place_ + distance_, nodes_.size());
    for (; fetched_ < end; ++fetched_) Fetch(nodes_.EntryAt(fetched_));
  }
  void FetchBackward() {
    if (place_ >= nodes_.size()) return;
    if (__builtin_expect(!goes_back_, 0)) Turn(true);
    if (distance_ < kMost) Grow();
    const uint64_t end = place_ - std::min(place_, distance_);
    for (fetched_ = std::min(fetched_, place_); fetched_ > end; --fetched_) Fetch(nodes_.EntryAt(fetched_ - 1));
  }
  void Grow() {
    if (distance_ < kSome) {
      distance_ += kGrowth;
    } else if (place_ % kStepsForOne == 0) {
      ++distance_;
    }
  }
  void Turn(bool back) {
    goes_back_ = back;
    fetched_ = place_;
    distance_ = kFirst;
  }

  const TallIndex* const index_;
  const uint32_t reader_;
  const RegionSet* const regions_;
  const TallIndex::Nodes nodes_;
  uint64_t place_ = 0;      // of entry_
  uint64_t fetched_ = 0;    // the first place that is not fetched; going backward, the last one that is
  uint64_t distance_ = 0;   // how far ahead it fetches
  bool goes_back_ = false;  // the way in which it fetches
  Found found_ = Found::kNothing;
  uint64_t sought_ = 0;
};

}  // namespace braiddb
