// BraidedCursor: an EntryCursor over a braided list, with or without an index into it (IndexedCursor where that has every node).
#pragma once

#include <memory>

#include "skiplist/braided_list.h"
#include "skiplist/list_span.h"
#include "skiplist/tall_index.h"

namespace braiddb {

// With an index, who goes on in one direction reads ahead, in spans. The list and the index must outlive the cursor.
class BraidedCursor final : public EntryCursor {
 public:
  // `index`: may be null.
  BraidedCursor(const BraidedList* list, const TallIndex* index) : list_(list), index_(index) {
    if (index != nullptr) span_ = std::make_unique<ListSpan>(list, index);
  }

  bool FetchForSeek(const SearchKey& target) override;
  void SeekToFirst() override { Set(list_->First()); }
  void SeekToLast() override { Set(list_->FindLast()); }
  void Seek(const SearchKey& target) override { Set(list_->FindFrom(TakeStart(target), target, nullptr)); }
  void SeekBefore(const SearchKey& target) override { Set(list_->FindLessFrom(TakeStart(target), target)); }
  void Next() override {
    if (at_ + 1 >= size_) return LeaveForward();
    entry_ = (*span_)[++at_];
    if (size_ - at_ <= ahead_) GoAhead();
  }
  void Prev() override {
    if (at_ - 1 >= size_) return LeaveBackward();
    entry_ = (*span_)[--at_];
  }

 protected:
  void ForgetFetched() override { has_start_ = false; }

 private:
  // Steps in one direction after which the walks ahead begin, and after which what they found is used.
  static constexpr int32_t kStepsAlone = 1;
  static constexpr int32_t kStepsBeside = 4;
  // Rounds that a span takes, about: they are spread over the second half of the one before.
  static constexpr size_t kRounds = 10;

  BraidedList::Start StartFor(const SearchKey& target) const {
    const BraidedList::Start home = list_->Home();
    return index_ == nullptr ? home : index_->Start(home.reader, target);
  }
  // What FetchForSeek has found, if it was called.
  BraidedList::Start TakeStart(const SearchKey& target) const { return has_start_ ? start_ : StartFor(target); }
  void Set(const LogEntry* entry) {
    has_start_ = false;
    entry_ = entry;
    steps_ = 0;
    if (span_ != nullptr) LeaveSpan();
  }
  void LeaveSpan() {
    span_->Clear();
    at_ = size_ = 0;
  }
  // A round of the next span's walks.
  void GoAhead();
  // Out of the span, or to the next one.
  void LeaveForward();
  void LeaveBackward();

  const BraidedList* list_;
  const TallIndex* index_;
  std::unique_ptr<ListSpan> span_;  // null without an index
  size_t at_ = 0;                   // in the span, if it has entries
  size_t size_ = 0;                 // the span's
  size_t ahead_ = 0;                // so far from the span's end it is time for a round of the next one's walks
  int32_t steps_ = 0;               // alone, < 0 backward
  bool has_start_ = false;          // of the next seek
  BraidedList::Start start_{};
};

}  // namespace braiddb
