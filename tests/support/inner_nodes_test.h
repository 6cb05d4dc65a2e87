// Test support: InnerNodes without a tree. Leaves are only names, by the start of their range.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "index/key_order.h"
#include "leaf_tree/inner_nodes.h"
#include "nvtree/leaf.h"
#include "util/epoch.h"

namespace braiddb::test {

// Where the range of a leaf starts.
struct LeafStart {
  std::string key;
  uint64_t sequence;
};

class InnerNodesTest : public testing::Test {
 protected:
  // REQUIRES for both: an epoch guard, one thread at a time.
  // The first leaf begins before all keys, the others at `starts`.
  void Build(std::span<const LeafStart> starts) {
    InnerNodes::NewChildren children;
    children.Reserve(starts.size() + 1);
    children.Add({Separator(), NextLeaf()});
    for (const LeafStart& start : starts) children.Add(ChildOf(start));
    nodes_.Build(children.all());
    children.Give();
  }
  // Replaces `removed` leaves behind the one that begins at `at` by `added`, all in one node.
  void ReplaceBehind(const LeafStart& at, uint32_t removed, std::span<const LeafStart> added) {
    const SearchKey first(order_, at.key, at.sequence);
    const std::vector<InnerNodes::Child> old = nodes_.Neighbors(first, removed + 1);
    ASSERT_EQ(old.size(), removed + 1);
    InnerNodes::NewChildren children;
    children.Reserve(added.size() + 1);
    children.AddKnown(old.front());
    for (const LeafStart& start : added) children.Add(ChildOf(start));
    InnerNodes::Replacement change = nodes_.Prepare(first, removed + 1, children.all());
    children.Give();
    nodes_.Commit(&change);
    nodes_.Settle(change);
  }
  // Whether the range contains the target.
  bool Contains(const InnerNodes::Range& range, const SearchKey& target) const {
    return CompareToSeparator(order_, target, range.low) >= 0 &&
           (range.is_last || CompareToSeparator(order_, target, range.high) < 0);
  }

  const KeyOrder order_{BytewiseComparator()};
  EpochManager epochs_;
  InnerNodes nodes_{&order_, &epochs_};

 private:
  InnerNodes::Child ChildOf(const LeafStart& start) {
    return {{order_.Prefix(start.key), NewSeparatorRest(start.key, start.sequence)}, NextLeaf()};
  }
  PmPtr NextLeaf() { return PmPtr(0, kMinLeafBytes * ++leaves_); }

  uint64_t leaves_ = 0;
};

}  // namespace braiddb::test
