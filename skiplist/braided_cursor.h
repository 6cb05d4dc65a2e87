// BraidedCursor: an EntryCursor over a braided list, with an index of its taller nodes, or without an index. IndexedCursor
// serves lists whose index has every node.
#pragma once

#include <memory>

#include "skiplist/braided_list.h"
#include "skiplist/list_span.h"
#include "skiplist/tall_index.h"

namespace braiddb {

// READ-AHEAD  With an index, a cursor that moves in one direction reads spans (ListSpan): groups of entries that several walks
//             find side by side. After kStepsAlone steps the walks begin; after kStepsBeside steps the cursor uses their
//             results. While the cursor moves through the second half of a span, it advances the walks of the next one.
// STATES      span_ is null: no index; each step follows the list.
//             size_ == 0: the cursor steps alone; |steps_| counts the steps since the last seek or turn.
//             size_ > 0: the cursor is at (*span_)[at_]; entry_ equals this element.
//             A seek and a turn of direction lead back to size_ == 0.
// COST        A step within a span reads no entry that is not in the cache. A step alone costs a cache miss forward, and a
// search backward. CONCURRENCY One thread at a time, concurrent with any change of the list. Entries that were read ahead may
// be marked meanwhile, so
//             the user of the cursor checks marks at the cursor's position (ListSpan).
// LIFETIME    The list and the index must outlive the cursor.
class BraidedCursor final : public EntryCursor {
 public:
  // `index`: an index of the list; may be null.
  BraidedCursor(const BraidedList* list, const TallIndex* index) : list_(list), index_(index) {
    if (index != nullptr) span_ = std::make_unique<ListSpan>(list, index);
  }

  // Seeks search the list from the index's start, or from the head. They end a span.
  bool FetchForSeek(const SearchKey& target) override;
  void SeekToFirst() override { Set(list_->First()); }
  void SeekToLast() override { Set(list_->FindLast()); }
  void Seek(const SearchKey& target) override { Set(list_->FindFrom(TakeStart(target), target, nullptr)); }
  void SeekBefore(const SearchKey& target) override { Set(list_->FindLessFrom(TakeStart(target), target)); }
  // Moves within the span if it has a next entry, which is the common case during a scan.
  void Next() override {
    if (at_ + 1 >= size_) return LeaveForward();
    entry_ = (*span_)[++at_];
    if (size_ - at_ <= ahead_) GoAhead();
  }
  // As Next, backward. `at_ - 1` of at_ == 0 is the largest number, so one comparison finds both ends.
  void Prev() override {
    if (at_ - 1 >= size_) return LeaveBackward();
    entry_ = (*span_)[--at_];
  }

 protected:
  void ForgetFetched() override { has_start_ = false; }

 private:
  // Steps in one direction after which the walks begin, and after which the cursor uses their results.
  static constexpr int32_t kStepsAlone = 1;
  static constexpr int32_t kStepsBeside = 4;
  // The approximate number of rounds of a span's walks. The rounds are spread over the second half of the span before.
  static constexpr size_t kRounds = 10;

  // Returns the start of a search: from the index, or from the head without an index.
  BraidedList::Start StartFor(const SearchKey& target) const {
    const BraidedList::Start home = list_->Home();
    return index_ == nullptr ? home : index_->Start(home.reader, target);
  }
  // Returns the start that FetchForSeek has found for this target, or finds one.
  BraidedList::Start TakeStart(const SearchKey& target) const { return has_start_ ? start_ : StartFor(target); }
  // Moves the cursor to the result of a seek.
  void Set(const LogEntry* entry) {
    has_start_ = false;
    entry_ = entry;
    steps_ = 0;
    if (span_ != nullptr) LeaveSpan();
  }
  // Forgets the span and its walks.
  void LeaveSpan() {
    span_->Clear();
    at_ = size_ = 0;
  }
  // Advances the walks of the next span by one round.
  void GoAhead();
  // Moves to the successor or the predecessor when the span is used up: into the next span, or by one step along the list.
  void LeaveForward();
  void LeaveBackward();

  const BraidedList* list_;
  const TallIndex* index_;
  std::unique_ptr<ListSpan> span_;  // null without an index
  size_t at_ = 0;                   // the cursor's position in the span, if the span has entries
  size_t size_ = 0;                 // entries in the span
  size_t ahead_ = 0;                // distance from the span's end at which the next round is due
  int32_t steps_ = 0;               // steps since the last seek or turn, without a span; < 0 backward
  bool has_start_ = false;          // start_ is the start of the next seek
  BraidedList::Start start_{};
};

}  // namespace braiddb
