#include "skiplist/indexed_cursor.h"

#include <algorithm>

#include "log/fetch_entry.h"

namespace braiddb {

void IndexedCursor::FetchForSeek(const SearchKey& target) {
  found_ = index_->Find(reader_, target);
  has_found_ = true;
  for (uint64_t place = found_ == 0 ? 0 : found_ - 1; place < std::min(nodes_, found_ + 1 + kFirst); ++place)
    FetchEntry(index_->At(reader_, place));
}

void IndexedCursor::SeekToFirst() { Set(list_->First(), 0); }

void IndexedCursor::SeekToLast() { Set(list_->FindLast(), nodes_); }

void IndexedCursor::Seek(const SearchKey& target) {
  const uint64_t place = TakePlace(target);
  Set(list_->FindFrom(index_->StartBefore(reader_, place), target, nullptr), place);
}

void IndexedCursor::SeekBefore(const SearchKey& target) {
  const uint64_t place = TakePlace(target);
  Set(list_->FindLessFrom(index_->StartBefore(reader_, place), target), place);
}

bool IndexedCursor::IsBehind(uint64_t place, uint64_t prefix) const {
  const uint64_t its_prefix = index_->PrefixOf(reader_, place);
  if (its_prefix != prefix) return its_prefix > prefix;
  return CompareEntries(list_->order(), *index_->At(reader_, place), *entry_) > 0;
}

void IndexedCursor::Set(const LogEntry* entry, uint64_t place) {
  has_found_ = false;
  goes_back_ = false;
  entry_ = entry;
  place_ = place;
  if (entry == nullptr) return;
  const uint64_t prefix = list_->order().Prefix(entry->key());
  while (place_ > 0 && IsBehind(place_ - 1, prefix)) --place_;
  while (place_ < nodes_ && !IsBehind(place_, prefix)) ++place_;
  fetched_ = place_;
  distance_ = kFirst;
}

void IndexedCursor::FetchForward() {
  if (goes_back_) {
    goes_back_ = false;
    fetched_ = place_;
    distance_ = kFirst;
  }
  distance_ = std::min(distance_ + kGrowth, kMost);
  if (place_ + kEndAhead < fetched_) FetchEntryEnd(index_->At(reader_, place_ + kEndAhead));
  const uint64_t end = std::min(place_ + distance_, nodes_);
  for (fetched_ = std::max(fetched_, place_); fetched_ < end; ++fetched_) FetchEntry(index_->At(reader_, fetched_));
}

void IndexedCursor::FetchBackward() {
  if (!goes_back_) {
    goes_back_ = true;
    fetched_ = place_;
    distance_ = kFirst;
  }
  distance_ = std::min(distance_ + kGrowth, kMost);
  if (place_ > fetched_ + kEndAhead) FetchEntryEnd(index_->At(reader_, place_ - kEndAhead - 1));
  const uint64_t end = place_ - std::min(place_, distance_);
  for (fetched_ = std::min(fetched_, place_); fetched_ > end; --fetched_) FetchEntry(index_->At(reader_, fetched_ - 1));
}

void IndexedCursor::Next() {
  const LogEntry* const next = list_->Next(entry_);
  entry_ = next;
  if (next == nullptr) return;
  if (place_ < nodes_ && index_->At(reader_, place_) == next) {
    ++place_;
  } else {
    const uint64_t prefix = list_->order().Prefix(next->key());
    while (place_ < nodes_ && !IsBehind(place_, prefix)) ++place_;
  }
  FetchForward();
}

void IndexedCursor::Prev() {
  if (place_ > 0 && index_->At(reader_, place_ - 1) == entry_) --place_;
  const LogEntry* const before = place_ > 0 ? index_->At(reader_, place_ - 1) : nullptr;
  if (before != nullptr && list_->Next(before) == entry_) {
    entry_ = before;
  } else {
    const SearchKey here(list_->order(), entry_->key(), entry_->sequence());
    entry_ = list_->FindLessFrom(index_->StartBefore(reader_, place_), here);
  }
  FetchBackward();
}

}  // namespace braiddb
