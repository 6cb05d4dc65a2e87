#include "skiplist/braided_cursor.h"

#include <algorithm>

#include "util/prefetch.h"

namespace braiddb {

// Finds the start of the seek and prefetches the first two entries that the search reads. Returns false: one call is enough.
bool BraidedCursor::FetchForSeek(const SearchKey& target) {
  if (index_ == nullptr || has_start_) return false;
  start_ = StartFor(target);
  has_start_ = true;
  Prefetch(start_.tower);
  Prefetch(list_->regions().Resolve(start_.bound));
  return false;
}

void BraidedCursor::GoAhead() {
  span_->RoundAfter(*(*span_)[size_ - 1]);
  const size_t distance = size_ / (2 * kRounds) + 1;
  ahead_ = ahead_ > distance ? ahead_ - distance : 0;
}

// STEPS  1 without an index: one step along the list  2 for the first steps: one step, and from kStepsAlone on a round of the
//        walks 3 later: finish the walks, and enter the span that they have found  4 if they have found nothing: one step.
void BraidedCursor::LeaveForward() {
  if (span_ == nullptr) {
    entry_ = list_->Next(entry_);
    // Other lists of a merging cursor move first, so there is time to prefetch the successor.
    if (entry_ != nullptr) Prefetch(list_->Next(entry_));
    return;
  }
  if (steps_ < 0) {
    steps_ = 0;
    LeaveSpan();
  }
  ++steps_;
  const bool is_first = size_ == 0;
  if (!is_first || steps_ > kStepsBeside) {
    span_->FinishAfter(*entry_);
    size_ = span_->size();
    ahead_ = size_ / 2;
    at_ = 0;
    // The first walks began before the cursor's last steps, so they may have found entries that the cursor has passed.
    while (is_first && at_ < size_ && CompareEntries(list_->order(), *(*span_)[at_], *entry_) <= 0) ++at_;
    if (at_ < size_) {
      entry_ = (*span_)[at_];
      return;
    }
    LeaveSpan();
  } else if (steps_ > kStepsAlone) {
    span_->RoundAfter(*entry_);
  }
  entry_ = list_->Next(entry_);
}

// The list has no backward pointers: without a span, each step back is a search for the last smaller entry.
void BraidedCursor::LeaveBackward() {
  if (span_ != nullptr) {
    if (steps_ > 0) {
      steps_ = 0;
      LeaveSpan();
    }
    if (--steps_ < -kStepsAlone) {
      span_->CollectBefore(*entry_);
      size_ = span_->size();
      if (size_ != 0) {
        at_ = size_ - 1;
        entry_ = (*span_)[at_];
        return;
      }
    }
    LeaveSpan();
  }
  const SearchKey here(list_->order(), entry_->key(), entry_->sequence());
  entry_ = list_->FindLessFrom(StartFor(here), here);
}

}  // namespace braiddb
