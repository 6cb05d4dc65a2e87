// The scan of a merge by an index that has every node finds what the scan by the last level itself finds.
#include <gtest/gtest.h>

#include "compaction/indexed_scan.h"
#include "tests/support/merge_case.h"

namespace braiddb::test {
namespace {

class IndexedScanTest : public testing::Test {
 protected:
  // Of `count` keys, 8 bytes each and `apart` from each other.
  std::vector<Version> MakeVersions(uint64_t first, uint64_t count, uint64_t apart) {
    std::vector<Version> versions;
    for (uint64_t i = 0; i < count; ++i)
      versions.push_back({EightByteKey(first + i * apart), next_++, false, 0, RandomHeight(random_.Next())});
    return versions;
  }
  // Of all of a table.
  ScanResult Scan(MergeCase* merge, const PmTable& table, const TallIndex* index) {
    const std::vector<MergePiece> pieces = {{merge->store().regions()->Find(table.list.First()), PmPtr()}};
    ScanResult result;
    if (index != nullptr) {
      ScanChunkByIndex(pieces, merge->store().l1(), *index, &result);
    } else {
      ScanChunk(pieces, merge->store().l1(), 3, &result);
    }
    return result;
  }

  Random random_{17};
  uint64_t next_ = 1;
};

TEST_F(IndexedScanTest, IsAsTheScanByTheLastLevel) {
  for (const uint64_t nodes : {1, 100, 2048, 4096, 5000}) {
    SCOPED_TRACE(nodes);
    MergeCase merge(1);
    merge.FillLastLevel(MakeVersions(10, nodes, 10));
    const TallIndex index(merge.store().l1(), nodes, 16 << 20);
    ASSERT_TRUE(index.HasEveryNode(0));
    ASSERT_EQ(index.size(0), nodes);
    // Before all, among them, of equal keys, and behind all.
    for (const auto& [first, apart] :
         {std::pair<uint64_t, uint64_t>{0, 1}, {15, 10}, {10, 10}, {10 * nodes - 5, 3}, {1 << 20, 1}}) {
      const auto table = merge.store().MakeTable(MakeVersions(first, 300, apart));
      const ScanResult by_list = Scan(&merge, *table, nullptr);
      const ScanResult by_index = Scan(&merge, *table, &index);
      ASSERT_FALSE(by_list.damaged);
      ASSERT_FALSE(by_index.damaged);
      ASSERT_EQ(by_list.items.size(), 300u);
      ASSERT_EQ(by_index.items.size(), 300u);
      for (size_t i = 0; i < by_list.items.size(); ++i) {
        const MergeItem& expected = by_list.items[i];
        const MergeItem& item = by_index.items[i];
        ASSERT_EQ(item.entry, expected.entry);
        EXPECT_EQ(item.key_below, expected.key_below);
        ASSERT_EQ(item.layers, expected.layers);
        for (uint32_t layer = 0; layer < item.layers; ++layer)
          ASSERT_EQ(by_index.towers[item.before + layer].raw(), by_list.towers[expected.before + layer].raw()) << i;
      }
    }
  }
}

}  // namespace
}  // namespace braiddb::test
