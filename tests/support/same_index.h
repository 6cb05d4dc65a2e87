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
    const IndexTree& nodes = a.NodesOf(reader);
    const IndexTree& others = b.NodesOf(reader);
    uint64_t other = 0;
    for (uint64_t at = 0; at < nodes.End(); at = nodes.Next(at), other = others.Next(other)) {
      if (nodes.WordAt(at) != others.WordAt(other) || nodes.PrefixAt(at) != others.PrefixAt(other))
        return testing::AssertionFailure() << "not the same node at " << at << " of " << a.size(reader);
    }
    if (other != others.End()) return testing::AssertionFailure() << "places do not end with the nodes";
  }
  return testing::AssertionSuccess();
}

}  // namespace braiddb::test
