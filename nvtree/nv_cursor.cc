#include "nvtree/nv_cursor.h"

#include <algorithm>

namespace braiddb {

NvCursor::Border::Border(const Separator& separator) {
  prefix = separator.prefix;
  has_rest = separator.rest != nullptr;
  if (!has_rest) return;
  key.assign(separator.rest->key_data, separator.rest->key_size);
  sequence = separator.rest->sequence;
}

template <class Target>
void NvCursor::Load(const Target& target, bool before) {
  const EpochManager::Guard guard = tree_->epochs()->Enter();
  // If there is no memory, it stands where it was, or nowhere.
  at_ = kEnd;
  tree_->CopyLeaf(target, before, &copy_, enough_);
  const size_t at = FirstAtOrBehind(target);  // inside the guard: it may look at what elements stand for
  const LeafPart& part = copy_.part;
  const bool to_the_end = part.to == LeafPart::kToTheEnd;
  const bool is_last = to_the_end && copy_.range.is_last;
  Border low(part.from <= copy_.range.low.prefix ? copy_.range.low : Separator{part.from, nullptr});
  Border high;
  if (!is_last) high = Border(to_the_end ? copy_.range.high : Separator{part.to, nullptr});
  low_ = std::move(low);
  high_ = std::move(high);
  is_last_ = is_last;
  enough_ = std::min(enough_ * kGrowth, Leaf::kMaxElements);
  at_ = at;
}

size_t NvCursor::FirstAtOrBehind(const SearchKey& target) const {
  const auto before = [&](const Element& element) { return tree_->Compare(element, target) < 0; };
  return static_cast<size_t>(std::partition_point(elements_.begin(), elements_.end(), before) - elements_.begin());
}

size_t NvCursor::FirstAtOrBehind(const Separator& place) const {
  const auto before = [&](const Element& element) { return element.key < place.prefix; };
  return static_cast<size_t>(std::partition_point(elements_.begin(), elements_.end(), before) - elements_.begin());
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
