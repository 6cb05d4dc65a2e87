#include "braiddb/comparator.h"

namespace braiddb {

namespace {

// std::string_view compares like memcmp, then by length: unsigned bytes, shorter first.
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

// Never destroyed, since databases with static storage may be destroyed later.
const Comparator* BytewiseComparator() {
  static const auto* const kInstance = new BytewiseComparatorImpl();
  return kInstance;
}

const Comparator* ReverseBytewiseComparator() {
  static const auto* const kInstance = new ReverseBytewiseComparatorImpl();
  return kInstance;
}

}  // namespace braiddb
