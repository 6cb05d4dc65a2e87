#include "leaf_tree/leaf_cursor.h"

#include <algorithm>
#include <utility>

namespace braiddb {

void LeafCursor::Border::Set(const Separator& place) {
  if (place.rest != nullptr) return Set(SearchKey(place.prefix, place.rest->key(), place.rest->sequence));
  prefix = place.prefix;
  has_rest = false;
}

void LeafCursor::Border::Set(const SearchKey& place) {
  prefix = place.prefix;
  has_rest = true;
  key.assign(place.key);
  sequence = place.sequence;
}

template <class Target>
void LeafCursor::SetLow(const Target& target, bool before, Border* border) const {
  if (!copy_.is_exact)
    return border->Set(copy_.from <= copy_.range.low.prefix ? copy_.range.low : Separator{copy_.from, nullptr});
  if (!before) return border->Set(target);
  copy_.is_cut ? border->Set(copy_.Cut(*tree_)) : border->Set(copy_.range.low);
}

template <class Target>
void LeafCursor::SetHigh(const Target& target, bool before, Border* border) const {
  if (copy_.is_exact && before) return border->Set(target);
  if (copy_.is_exact && copy_.is_cut) return border->Set(copy_.Cut(*tree_));
  if (!copy_.is_exact && copy_.to != LeafTree::LeafCopy::kToTheEnd) return border->Set(Separator{copy_.to, nullptr});
  border->Set(copy_.range.is_last ? Separator() : copy_.range.high);
}

template <class Target>
size_t LeafCursor::Copy(const Target& target, bool before, Border* high) {
  tree_->CopyLeaf(target, before, &copy_, enough_);
  // Within the guard, since borders and comparisons may read entries.
  SetHigh(target, before, high);
  if (copy_.is_exact) return before ? copy_.elements.size() : 0;
  return FirstAtOrBehind(target);
}

// Replaces elements_ by a new copy. std::bad_alloc leaves the cursor invalid: the position is at the end until the next seek.
template <class Target>
void LeafCursor::Load(const Target& target, bool before) {
  const EpochManager::Guard guard = tree_->epochs()->Enter();
  at_ = kEnd;
  const size_t at = Copy(target, before, &high_);
  SetLow(target, before, &low_);
  elements_.swap(copy_.elements);
  is_last_ = high_.is_first();
  enough_ = std::min(enough_ * kGrowth, LeafTree::kAllElements);
  last_copied_ = 0;
  at_ = at;
}

void LeafCursor::FetchMore() const {
  if (is_last_) return;
  const EpochManager::Guard guard = tree_->epochs()->Enter();
  high_.With([this](const auto& place) { tree_->FetchLeafOf(place); });
}

// Keeps only the last copy, if the position is in it, so that at most about two leaves' elements are held.
void LeafCursor::CopyMore() {
  // If there is no memory, the cursor stays at its end position.
  size_t at = std::exchange(at_, kEnd);
  for (size_t size = elements_.size(); size == elements_.size() && !is_last_;) {
    if (at >= last_copied_) {
      if (last_copied_ > 0) low_ = std::move(last_low_);
      elements_.erase(elements_.begin(), elements_.begin() + static_cast<std::ptrdiff_t>(last_copied_));
      at -= last_copied_;
      size = last_copied_ = elements_.size();
      last_low_ = high_;
    }
    const EpochManager::Guard guard = tree_->epochs()->Enter();
    Border high;
    const size_t first = high_.With([&](const auto& place) { return Copy(place, false, &high); });
    elements_.insert(elements_.end(), copy_.elements.begin() + static_cast<std::ptrdiff_t>(first), copy_.elements.end());
    high_ = std::move(high);
    is_last_ = high_.is_first();
    enough_ = std::min(enough_ * kGrowth, LeafTree::kAllElements);
  }
  at_ = at;
}

size_t LeafCursor::FirstAtOrBehind(const SearchKey& target) const {
  const auto before = [&](const Element& element) { return tree_->Compare(element, target) < 0; };
  const auto& elements = copy_.elements;
  return static_cast<size_t>(std::partition_point(elements.begin(), elements.end(), before) - elements.begin());
}

size_t LeafCursor::FirstAtOrBehind(const Separator& place) const {
  const auto before = [&](const Element& element) { return element.key < place.prefix; };
  const auto& elements = copy_.elements;
  return static_cast<size_t>(std::partition_point(elements.begin(), elements.end(), before) - elements.begin());
}

// Loads the rest of this leaf or the next one. The loop skips empty leaves. After a merge of leaves, elements before the border
// were returned already; the search for the border skips them.
void LeafCursor::ToNextLeaf() {
  while (!is_last_) {
    const Border border = high_;
    border.With([this](const auto& place) { Load(place, false); });
    if (at_ < elements_.size()) return;
  }
  at_ = kEnd;
}

// Loads the last leaf that begins before the current range. Its elements at or behind the border were returned already, so the
// cursor moves to the last one before it.
void LeafCursor::ToPreviousLeaf() {
  while (!low_.is_first()) {
    const Border border = low_;
    border.With([this](const auto& place) { Load(place, true); });
    if (at_-- > 0) return;
  }
  at_ = kEnd;
}

void LeafCursor::SeekToFirst() {
  Load(Separator(), false);
  at_ = 0;
  if (elements_.empty()) ToNextLeaf();
}

void LeafCursor::SeekToLast() {
  Load(Separator{UINT64_MAX, nullptr}, false);
  // Keys with the largest prefix may extend over several leaves.
  while (!is_last_) {
    const Border border = high_;
    border.With([this](const auto& place) { Load(place, false); });
  }
  at_ = elements_.size();
  if (at_-- == 0) ToPreviousLeaf();
}

// A seek copies few elements first, because it may be followed by few steps. The limit grows with each further copy.
void LeafCursor::Seek(const SearchKey& target) {
  enough_ = kFirst;
  Load(target, false);
  if (at_ == elements_.size()) ToNextLeaf();
}

void LeafCursor::SeekBefore(const SearchKey& target) {
  enough_ = kFirst;
  Load(target, true);
  if (at_-- == 0) ToPreviousLeaf();
}

}  // namespace braiddb
