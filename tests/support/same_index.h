// Test support: whether two indexes of one list have the same nodes.
#pragma once

#include <gtest/gtest.h>

#include "skiplist/tall_index.h"

namespace braiddb::test {

inline testing::AssertionResult HaveSameNodes(const TallIndex& a, const TallIndex& b, uint32_t regions) {
  for (uint32_t reader = 0; reader < regions; ++reader) {
    if (a.size(reader) != b.size(reader) || a.Distance(reader) != b.Distance(reader))
      return testing::AssertionFailure() << a.size(reader) << " nodes, one of " << a.Distance(reader) << ", and "
                                         << b.size(reader) << ", one of " << b.Distance(reader);
    for (uint64_t at = 0; at < a.size(reader); ++at) {
      if (a.At(reader, at) != b.At(reader, at) || a.PrefixOf(reader, at) != b.PrefixOf(reader, at) ||
          a.HeightAt(reader, at) != b.HeightAt(reader, at))
        return testing::AssertionFailure() << "not the same node at " << at << " of " << a.size(reader);
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace braiddb::test
