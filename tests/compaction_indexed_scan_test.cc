// The scan of a merge by an index that has every node finds what the scan by the last level itself finds.
#include <gtest/gtest.h>

#include "compaction/indexed_scan.h"
#include "tests/support/merge_case.h"
#include "tests/support/order_of_tables.h"

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
  ScanResult ScanByList(MergeCase* merge, const PmTable& table, const TallIndex* index) {
    const std::vector<MergePiece> pieces = {{merge->store().regions()->Find(table.list.First()), PmPtr()}};
    ScanResult result;
    if (index != nullptr) {
      ScanChunkByIndex(pieces, merge->store().l1(), *index, &result);
    } else {
      ScanChunk(pieces, merge->store().l1(), 3, &result);
    }
    return result;
  }
  ScanResult ScanByOrder(MergeCase* merge, const TableOrder& order, uint64_t begin, uint64_t end, const TallIndex& index) {
    ScanResult result;
    ScanOrderByIndex(order, begin, end, merge->store().l1(), index, &result);
    return result;
  }
  static void ExpectSame(const ScanResult& found, const ScanResult& expected) {
    ASSERT_FALSE(found.damaged);
    ASSERT_FALSE(expected.damaged);
    ASSERT_EQ(found.items.size(), expected.items.size());
    for (size_t i = 0; i < expected.items.size(); ++i) {
      const MergeItem& item = found.items[i];
      ASSERT_EQ(item.entry, expected.items[i].entry);
      EXPECT_EQ(item.pointer.raw(), expected.items[i].pointer.raw());
      EXPECT_EQ(item.prefix, expected.items[i].prefix);
      EXPECT_EQ(item.key_below, expected.items[i].key_below);
      ASSERT_EQ(item.layers, expected.items[i].layers);
      for (uint32_t layer = 0; layer < item.layers; ++layer)
        ASSERT_EQ(found.towers[item.before + layer].raw(), expected.towers[expected.items[i].before + layer].raw()) << i;
    }
  }

  static uint64_t Number(Slice eight_byte_key) {
    uint64_t number = 0;
    for (const char byte : eight_byte_key) number = number << 8 | static_cast<uint8_t>(byte);
    return number;
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
    // Before all, among them, of equal keys, behind all, and with few or many nodes between.
    for (const auto& [first, apart] :
         {std::pair<uint64_t, uint64_t>{0, 1}, {15, 10}, {10, 10}, {10 * nodes - 5, 3}, {1 << 20, 1}, {7, 160}, {5, 690}}) {
      const auto table = merge.store().MakeTable(MakeVersions(first, 300, apart));
      const ScanResult by_list = ScanByList(&merge, *table, nullptr);
      ASSERT_EQ(by_list.items.size(), 300u);
      ExpectSame(ScanByList(&merge, *table, &index), by_list);
      const auto order = OrderOfTables(merge.store(), {table.get()});
      ExpectSame(ScanByOrder(&merge, *order, 0, 300, index), by_list);
    }
  }
}

// Of three versions of each key, with entries of others between, so that the index knows what is behind them.
TEST_F(IndexedScanTest, KnowsWhatIsBehindAKeysVersions) {
  MergeCase merge(1);
  std::vector<Version> versions;
  for (int i = 0; i < 3; ++i) {
    for (const Version& version : MakeVersions(10, 100, 10)) versions.push_back(version);
  }
  merge.FillLastLevel(versions);
  const TallIndex index(merge.store().l1(), 300, 16 << 20);
  ASSERT_EQ(index.size(0), 300u);
  const auto table = merge.store().MakeTable(MakeVersions(0, 220, 5));
  const auto order = OrderOfTables(merge.store(), {table.get()});
  const ScanResult found = ScanByOrder(&merge, *order, 0, 220, index);
  ASSERT_EQ(found.items.size(), 220u);
  for (const MergeItem& item : found.items) {
    const uint64_t number = Number(item.entry->key());
    EXPECT_EQ(item.key_below, number >= 10 && number <= 1000 && number % 10 == 0) << number;
    if (!item.key_below || number == 1000) {
      EXPECT_FALSE(item.behind) << number;
    } else {
      const LogEntry* const behind = merge.store().Resolve(item.behind);
      EXPECT_EQ(Number(behind->key()), number + 10);
      EXPECT_EQ(behind->sequence(), 200 + (number + 10) / 10) << "the newest of these";
    }
  }
  // A merge does not look at them again.
  auto* const oldest = const_cast<LogEntry*>(index.At(0, 2));
  ASSERT_EQ(Number(oldest->key()), 10u);
  const uint32_t shape = oldest->shape;
  oldest->shape = 0;  // of no height
  EXPECT_TRUE(ScanByOrder(&merge, *order, 0, 3, index).damaged);
  oldest->shape = shape;
  EXPECT_FALSE(ScanByOrder(&merge, *order, 0, 3, index).damaged);
}

// What is damaged is not merged: an entry of another prefix than the order has for it, or one that is no entry.
TEST_F(IndexedScanTest, AnOrderWithDamagedEntriesIsDamaged) {
  MergeCase merge(1);
  merge.FillLastLevel(MakeVersions(10, 100, 10));
  const TallIndex index(merge.store().l1(), 100, 16 << 20);
  const auto table = merge.store().MakeTable(MakeVersions(5, 50, 3));
  const auto order = OrderOfTables(merge.store(), {table.get()});
  ASSERT_FALSE(ScanByOrder(&merge, *order, 0, 50, index).damaged);
  LogEntry* const entry = merge.store().Resolve(order->EntryAt(30));
  auto* const key = const_cast<char*>(entry->key().data());
  key[7] ^= 1;
  EXPECT_TRUE(ScanByOrder(&merge, *order, 0, 50, index).damaged);
  EXPECT_FALSE(ScanByOrder(&merge, *order, 0, 30, index).damaged);
  key[7] ^= 1;
  const uint32_t shape = entry->shape;
  entry->shape = 0;  // of no height
  EXPECT_TRUE(ScanByOrder(&merge, *order, 0, 50, index).damaged);
  entry->shape = shape;
  EXPECT_FALSE(ScanByOrder(&merge, *order, 0, 50, index).damaged);
}

}  // namespace
}  // namespace braiddb::test
