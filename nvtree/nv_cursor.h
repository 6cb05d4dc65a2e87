// NvCursor: walks an NV-Tree in order, both ways, a leaf at a time, or behind a seek, when few elements may do, a part of one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvtree/nv_tree.h"

namespace braiddb {

// What a leaf has when its elements are copied, some before the cursor comes to them, is what the cursor sees of it: elements
// that were there when the cursor was made and that nothing takes back are never missed, and come once.
// Thread safety: one thread at a time, concurrent with any change of the tree. It enters epoch guards of its own: REQUIRES: the
// thread holds none.
class NvCursor {
 public:
  explicit NvCursor(const NvTree* tree) : tree_(tree) {}

  void SeekToFirst();
  void SeekToLast();
  // To the first element at or after the target.
  void Seek(const SearchKey& target);
  // To the last element before the target.
  void SeekBefore(const SearchKey& target);
  // REQUIRES: element() != nullptr.
  void Next() {
    if (++at_ >= elements_.size()) ToNextLeaf();
  }
  void Prev() {
    if (at_-- == 0) ToPreviousLeaf();
  }
  // Fetches what CopyMore will look at.
  void FetchMore() const;
  // Copies what comes behind the elements that are there, if something does, for who prefetches what elements stand for. What was
  // copied before those it stands among goes. REQUIRES: element() != nullptr.
  void CopyMore();
  // Null at the ends.
  const Element* element() const { return at_ < elements_.size() ? &elements_[at_] : nullptr; }
  // The elements that were copied, in order: what comes next and before, for those who prefetch.
  const Element* begin() const { return elements_.data(); }
  const Element* end() const { return elements_.data() + elements_.size(); }

 private:
  static constexpr size_t kEnd = SIZE_MAX;
  // Elements that are copied behind a seek, and how many times as many then.
  static constexpr uint32_t kFirst = 32;
  static constexpr uint32_t kGrowth = 4;

  // A separator that outlives epoch guards.
  struct Border {
    uint64_t prefix = 0;
    bool has_rest = false;
    std::string key;
    uint64_t sequence = 0;

    Border() = default;
    explicit Border(const Separator& separator);
    bool is_first() const { return prefix == 0 && !has_rest; }
    // Calls `use` with what stands for the place.
    template <class Use>
    auto With(const Use& use) const {
      return has_rest ? use(SearchKey(prefix, key, sequence)) : use(Separator{prefix, nullptr});
    }
  };

  template <class Target>
  void Load(const Target& target, bool before);
  // To copy_; where the first element at or behind the target is in that. *high: where what was copied ends; no key: at the end.
  template <class Target>
  size_t Copy(const Target& target, bool before, Border* high);
  size_t FirstAtOrBehind(const SearchKey& target) const;
  size_t FirstAtOrBehind(const Separator& place) const;
  void ToNextLeaf();
  void ToPreviousLeaf();

  const NvTree* const tree_;
  NvTree::LeafCopy copy_;
  std::vector<Element> elements_;
  size_t at_ = kEnd;
  uint32_t enough_ = Leaf::kMaxElements;  // of the next copy
  Border low_, high_;                     // of elements_
  bool is_last_ = true;
  size_t last_copied_ = 0;  // where what was copied last begins in elements_; if that is not the begin, its border:
  Border last_low_;
};

}  // namespace braiddb
