// LeafCursor: iterates over a LeafTree in order, in both directions. It copies one leaf at a time, and only a part after a seek.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leaf_tree/leaf_tree.h"

namespace braiddb {

// GUARANTEE    The cursor returns the elements that a leaf had when the cursor copied it, which may be before the cursor reaches
//              them. An element that was present when the cursor was created and is not cancelled is returned exactly once.
// CONCURRENCY  One thread at a time, concurrent with any change of the tree. REQUIRES: the thread holds no epoch guard; the
//              cursor enters its own.
class LeafCursor {
 public:
  explicit LeafCursor(const LeafTree* tree) : tree_(tree) {}

  void SeekToFirst();
  void SeekToLast();
  // Moves to the first element at or after the target.
  void Seek(const SearchKey& target);
  // Moves to the last element before the target.
  void SeekBefore(const SearchKey& target);
  // REQUIRES: element() != nullptr.
  void Next() {
    if (++at_ >= elements_.size()) ToNextLeaf();
  }
  void Prev() {
    if (at_-- == 0) ToPreviousLeaf();
  }
  // Prefetches the lines that CopyMore will read.
  void FetchMore() const;
  // Copies the successors of the copied elements, if there are any, so that the caller can prefetch their entries. Elements of
  // older copies than the one with the cursor's position are dropped. REQUIRES: element() != nullptr.
  void CopyMore();
  // Null at the ends.
  const Element* element() const { return at_ < elements_.size() ? &elements_[at_] : nullptr; }
  // The copied elements, in order: the neighbors of the position, for prefetching.
  const Element* begin() const { return elements_.data(); }
  const Element* end() const { return elements_.data() + elements_.size(); }

 private:
  static constexpr size_t kEnd = SIZE_MAX;
  // Elements copied after a seek, and the growth factor of the following copies.
  static constexpr uint32_t kFirst = 32;
  static constexpr uint32_t kGrowth = 4;

  // A separator with its own copy of the key, which outlives epoch guards.
  struct Border {
    uint64_t prefix = 0;
    bool has_rest = false;
    std::string key;
    uint64_t sequence = 0;

    Border() = default;
    explicit Border(const Separator& place) { Set(place); }
    // Copies the key, since the place may belong to the inner nodes or to an entry. Reuses the memory of the key before.
    void Set(const Separator& place);
    void Set(const SearchKey& place);
    bool is_first() const { return prefix == 0 && !has_rest; }
    // Calls `use` with the border as a search target.
    template <class Use>
    auto With(const Use& use) const {
      return has_rest ? use(SearchKey(prefix, key, sequence)) : use(Separator{prefix, nullptr});
    }
  };

  // Replaces elements_ by the elements of a leaf, and sets the position to the first one at or after the target.
  template <class Target>
  void Load(const Target& target, bool before);
  // Copies a leaf, or a part of one, to copy_. Returns the index of the first element at or after the target. *high: as SetHigh.
  template <class Target>
  size_t Copy(const Target& target, bool before, Border* high);
  // Set *border to the start or the end of the range of copy_; at the end of the tree to a border without a key.
  template <class Target>
  void SetLow(const Target& target, bool before, Border* border) const;
  template <class Target>
  void SetHigh(const Target& target, bool before, Border* border) const;
  // Index in copy_ of the first element at or after the target; the number of elements if there is none.
  size_t FirstAtOrBehind(const SearchKey& target) const;
  size_t FirstAtOrBehind(const Separator& place) const;
  // Move to the first element of the next non-empty leaf, or to the last one of the previous non-empty leaf.
  void ToNextLeaf();
  void ToPreviousLeaf();

  const LeafTree* const tree_;
  LeafTree::LeafCopy copy_;
  std::vector<Element> elements_;
  size_t at_ = kEnd;
  uint32_t enough_ = LeafTree::kAllElements;  // limit of elements for the next copy
  Border low_, high_;                         // range of elements_
  bool is_last_ = true;
  size_t last_copied_ = 0;  // start of the last copy in elements_; if it is not 0, last_low_ is the start of its range
  Border last_low_;
};

}  // namespace braiddb
