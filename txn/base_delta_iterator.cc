#include "txn/base_delta_iterator.h"

#include <iterator>
#include <utility>

namespace braiddb {

BaseDeltaIterator::BaseDeltaIterator(const WriteBatchWithIndex* delta, uint32_t family, const Comparator* comparator,
                                     std::unique_ptr<Iterator> base, const ReadOptions& options,
                                     std::shared_ptr<const MergeOperator> merge)
    : batch_(delta),
      family_(family),
      comparator_(comparator),
      empty_(WriteBatchWithIndex::Before{comparator}),
      base_(std::move(base)),
      merge_(std::move(merge)),
      delta_(empty_.end()) {
  if (options.iterate_lower_bound) lower_.emplace(*options.iterate_lower_bound);
  if (options.iterate_upper_bound) upper_.emplace(*options.iterate_upper_bound);
  if (!options.prefix || options.prefix->empty()) return;
  // As in DBIterator: the keys with the prefix are the range from the prefix to its successor. The successor is the prefix with
  // its last byte that is not 0xff incremented.
  const std::string prefix(*options.prefix);
  if (!lower_ || comparator_->Compare(*lower_, prefix) < 0) lower_ = prefix;
  std::string end = prefix;
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (end.empty()) return;
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  if (!upper_ || comparator_->Compare(end, *upper_) < 0) upper_ = std::move(end);
}

// Called at the begin of each step.
void BaseDeltaIterator::FindIndex() {
  const Index* const found = batch_->FindIndex(family_);
  index_ = found == nullptr ? &empty_ : found;
  merge_status_ = Status::OK();
}

// Checks the bounds for the delta only. The base iterator checks its own bounds.
bool BaseDeltaIterator::DeltaValid() const {
  if (delta_ == index_->end()) return false;
  if (lower_ && comparator_->Compare(delta_->first, *lower_) < 0) return false;
  return !upper_ || comparator_->Compare(delta_->first, *upper_) < 0;
}

void BaseDeltaIterator::SeekDelta(Slice target) {
  delta_ = index_->lower_bound(lower_ && comparator_->Compare(target, *lower_) < 0 ? Slice(*lower_) : target);
}

void BaseDeltaIterator::SeekDeltaForPrev(Slice target) {
  if (upper_ && comparator_->Compare(target, *upper_) >= 0) {
    delta_ = index_->lower_bound(*upper_);
  } else {
    delta_ = index_->upper_bound(target);
  }
  delta_ = delta_ == index_->begin() ? index_->end() : std::prev(delta_);
}

void BaseDeltaIterator::StepDelta() {
  if (forward_) {
    ++delta_;
  } else {
    delta_ = delta_ == index_->begin() ? index_->end() : std::prev(delta_);
  }
}

int BaseDeltaIterator::CompareCursors() const {
  const int order = comparator_->Compare(base_->key(), delta_->first);
  return forward_ ? order : -order;
}

void BaseDeltaIterator::TakeDelta() {
  const WriteBatchWithIndex::Update& update = delta_->second;
  current_ = Current::kDelta;
  delta_key_ = delta_->first;
  if (update.operands.empty()) {
    delta_value_.assign(batch_->At(update.value));
    return;
  }
  const bool exists = base_->Valid() && CompareCursors() == 0;
  const Slice existing = exists ? base_->value() : Slice();
  merge_status_ = batch_->Apply(merge_.get(), delta_key_, update, exists ? &existing : nullptr, &delta_value_);
  if (!merge_status_.ok()) current_ = Current::kNone;
}

// Moves both cursors to the next visible key. A deletion in the delta hides the base's entry with the same key.
void BaseDeltaIterator::FindNext() {
  for (;;) {
    const bool has_delta = DeltaValid();
    if (!base_->status().ok()) {
      current_ = Current::kNone;
      return;
    }
    if (!has_delta || (base_->Valid() && CompareCursors() < 0)) {
      current_ = base_->Valid() ? Current::kBase : Current::kNone;
      return;
    }
    if (delta_->second.base != WriteBatchWithIndex::Found::kDeletion || !delta_->second.operands.empty()) return TakeDelta();
    if (base_->Valid() && CompareCursors() == 0) forward_ ? base_->Next() : base_->Prev();
    StepDelta();
  }
}

void BaseDeltaIterator::SeekToFirst() {
  FindIndex();
  forward_ = true;
  base_->SeekToFirst();
  delta_ = lower_ ? index_->lower_bound(*lower_) : index_->begin();
  FindNext();
}

void BaseDeltaIterator::SeekToLast() {
  FindIndex();
  forward_ = false;
  base_->SeekToLast();
  delta_ = upper_ ? index_->lower_bound(*upper_) : index_->end();
  delta_ = delta_ == index_->begin() ? index_->end() : std::prev(delta_);
  FindNext();
}

void BaseDeltaIterator::Seek(Slice target) {
  FindIndex();
  forward_ = true;
  base_->Seek(target);
  SeekDelta(target);
  FindNext();
}

void BaseDeltaIterator::SeekForPrev(Slice target) {
  FindIndex();
  forward_ = false;
  base_->SeekForPrev(target);
  SeekDeltaForPrev(target);
  FindNext();
}

// Searches the delta again in each step, because updates may have been added since the last step.
void BaseDeltaIterator::Next() {
  const std::string from(key());
  FindIndex();
  if (!forward_) {
    forward_ = true;
    base_->Seek(from);
  }
  delta_ = index_->upper_bound(from);
  if (base_->Valid() && comparator_->Compare(base_->key(), from) == 0) base_->Next();
  FindNext();
}

void BaseDeltaIterator::Prev() {
  const std::string from(key());
  FindIndex();
  if (forward_) {
    forward_ = false;
    base_->SeekForPrev(from);
  }
  delta_ = index_->lower_bound(from);
  delta_ = delta_ == index_->begin() ? index_->end() : std::prev(delta_);
  if (base_->Valid() && comparator_->Compare(base_->key(), from) == 0) base_->Prev();
  FindNext();
}

}  // namespace braiddb
