// KeyRange: a half-open range of user keys.
#pragma once

#include <vector>

#include "braiddb/slice.h"

namespace braiddb {

// [begin, end). Null: unbounded on that side. The slices outlive the range.
struct KeyRange {
  const Slice* begin = nullptr;
  const Slice* end = nullptr;
};

// Ascending and disjoint.
using KeyRanges = std::vector<KeyRange>;

}  // namespace braiddb
