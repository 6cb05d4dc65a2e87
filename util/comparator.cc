#include "braiddb/comparator.h"

namespace braiddb {

namespace {

// std::string_view compares as memcmp does, then by length: unsigned bytes, shorter first.
class BytewiseComparatorImpl final : public Comparator {
 public:
  int Compare(Slice a, Slice b) const override { return a.compare(b); }
  const char* Name() const override { return "braiddb.BytewiseComparator"; }
};

class ReverseBytewiseComparatorImpl final : public Comparator {
 public:
  int Compare(Slice a, Slice b) const override { return b.compare(a); }
  const char* Name() const override { return "braiddb.ReverseBytewiseComparator"; }
};

}  // namespace

// Never destroyed: databases with static storage may outlive any order of destruction.
const Comparator* BytewiseComparator() {
  static const auto* const kInstance = new BytewiseComparatorImpl();
  return kInstance;
}

const Comparator* ReverseBytewiseComparator() {
  static const auto* const kInstance = new ReverseBytewiseComparatorImpl();
  return kInstance;
}

}  // namespace braiddb
