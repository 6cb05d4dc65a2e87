#include "nvtree/nv_cursor.h"

#include <algorithm>
#include <utility>

namespace braiddb {

NvCursor::Border::Border(const Separator& separator) {
  prefix = separator.prefix;
  has_rest = separator.rest != nullptr;
  if (!has_rest) return;
  key.assign(separator.rest->key_data, separator.rest->key_size);
  sequence = separator.rest->sequence;
}

template <class Target>
size_t NvCursor::Copy(const Target& target, bool before, Border* high) {
  tree_->CopyLeaf(target, before, &copy_, enough_);
  const size_t at = FirstAtOrBehind(target);  // inside the guard: it may look at what elements stand for
  const LeafPart& part = copy_.part;
  const bool to_the_end = part.to == LeafPart::kToTheEnd;
  *high = to_the_end ? (copy_.range.is_last ? Border() : Border(copy_.range.high)) : Border(Separator{part.to, nullptr});
  return at;
}

template <class Target>
void NvCursor::Load(const Target& target, bool before) {
  const EpochManager::Guard guard = tree_->epochs()->Enter();
  // If there is no memory, it stands where it was, or nowhere.
  at_ = kEnd;
  Border high;
  const size_t at = Copy(target, before, &high);
  Border low(copy_.part.from <= copy_.range.low.prefix ? copy_.range.low : Separator{copy_.part.from, nullptr});
  elements_.swap(copy_.elements);
  low_ = std::move(low);
  high_ = std::move(high);
  is_last_ = high_.is_first();
  enough_ = std::min(enough_ * kGrowth, Leaf::kMaxElements);
  last_copied_ = 0;
  at_ = at;
}

void NvCursor::FetchMore() const {
  if (is_last_) return;
  const EpochManager::Guard guard = tree_->epochs()->Enter();
  high_.With([this](const auto& place) { tree_->FetchLeafOf(place); });
}

// Of what was there, what was copied last stays, if it stands in that: so there are never much more than two leaves' elements.
void NvCursor::CopyMore() {
  // If there is no memory, it stands nowhere.
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
    enough_ = std::min(enough_ * kGrowth, Leaf::kMaxElements);
  }
  at_ = at;
}

size_t NvCursor::FirstAtOrBehind(const SearchKey& target) const {
  const auto before = [&](const Element& element) { return tree_->Compare(element, target) < 0; };
  const auto& elements = copy_.elements;
  return static_cast<size_t>(std::partition_point(elements.begin(), elements.end(), before) - elements.begin());
}

size_t NvCursor::FirstAtOrBehind(const Separator& place) const {
  const auto before = [&](const Element& element) { return element.key < place.prefix; };
  const auto& elements = copy_.elements;
  return static_cast<size_t>(std::partition_point(elements.begin(), elements.end(), before) - elements.begin());
}

// What is left of this leaf, or the next. Leaves can be empty; and when two were merged, what is before the border was here
// already.
void NvCursor::ToNextLeaf() {
  while (!is_last_) {
    const Border border = high_;
    border.With([this](const auto& place) { Load(place, false); });
    if (at_ < elements_.size()) return;
  }
  at_ = kEnd;
}

void NvCursor::ToPreviousLeaf() {
  while (!low_.is_first()) {
    const Border border = low_;
    border.With([this](const auto& place) { Load(place, true); });
    if (at_-- > 0) return;
  }
  at_ = kEnd;
}

void NvCursor::SeekToFirst() {
  Load(Separator(), false);
  at_ = 0;
  if (elements_.empty()) ToNextLeaf();
}

void NvCursor::SeekToLast() {
  Load(Separator{UINT64_MAX, nullptr}, false);
  // Keys with the largest prefix may take several leaves.
  while (!is_last_) {
    const Border border = high_;
    border.With([this](const auto& place) { Load(place, false); });
  }
  at_ = elements_.size();
  if (at_-- == 0) ToPreviousLeaf();
}

void NvCursor::Seek(const SearchKey& target) {
  enough_ = kFirst;
  Load(target, false);
  if (at_ == elements_.size()) ToNextLeaf();
}

void NvCursor::SeekBefore(const SearchKey& target) {
  Load(target, true);
  if (at_-- == 0) ToPreviousLeaf();
}

}  // namespace braiddb
