// KeyRange: user keys from one to another.
#pragma once

#include <vector>

#include "braiddb/slice.h"

namespace braiddb {

// [begin, end); null: unbounded on that side. What is pointed to outlives it.
struct KeyRange {
  const Slice* begin = nullptr;
  const Slice* end = nullptr;
};

// Ascending, without a key in two of them.
using KeyRanges = std::vector<KeyRange>;

}  // namespace braiddb
