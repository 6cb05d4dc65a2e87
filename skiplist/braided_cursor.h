// BraidedCursor: an EntryCursor over a braided list, with or without an index into it.
#pragma once

#include "skiplist/braided_list.h"
#include "skiplist/tall_index.h"

namespace braiddb {

// The list and the index must outlive the cursor. `index` may be null.
class BraidedCursor final : public EntryCursor {
 public:
  BraidedCursor(const BraidedList* list, const TallIndex* index) : list_(list), index_(index) {}

  void SeekToFirst() override { entry_ = list_->First(); }
  void SeekToLast() override { entry_ = list_->FindLast(); }
  void Seek(const SearchKey& target) override { entry_ = list_->FindFrom(StartFor(target), target, nullptr); }
  void SeekBefore(const SearchKey& target) override { entry_ = list_->FindLessFrom(StartFor(target), target); }
  void Next() override { entry_ = list_->Next(entry_); }
  void Prev() override { SeekBefore(SearchKey(list_->order(), entry_->key(), entry_->sequence())); }
  const LogEntry* entry() const override { return entry_; }

 private:
  BraidedList::Start StartFor(const SearchKey& target) const {
    const BraidedList::Start home = list_->Home();
    return index_ == nullptr ? home : index_->Start(home.region, target);
  }

  const BraidedList* list_;
  const TallIndex* index_;
  const LogEntry* entry_ = nullptr;
};

}  // namespace braiddb
