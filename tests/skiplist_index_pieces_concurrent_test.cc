// Readers go along versions of an index, and drop them, while merges make others that share pieces with them.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "skiplist/tall_index.h"
#include "tests/support/key_kinds.h"
#include "tests/support/level_store.h"

namespace braiddb::test {
namespace {

struct Published {
  std::mutex mutex;
  std::shared_ptr<const TallIndex> index;

  std::shared_ptr<const TallIndex> Get() {
    const std::lock_guard lock(mutex);
    return index;
  }
  void Set(std::shared_ptr<const TallIndex> fresh) {
    const std::lock_guard lock(mutex);
    index.swap(fresh);
  }
};

// Whether each node's prefix is greater than that of the one before, both ways, and there are as many as it says.
bool IsInOrder(const IndexTree& nodes) {
  IndexTree::Iterator at(&nodes);
  uint64_t count = 0;
  uint64_t last = 0;
  for (at.Set(nodes.Normalize(0)); !at.is_out(); at.Next(), ++count) {
    if (at.prefix() <= last) return false;
    last = at.prefix();
  }
  if (count != nodes.nodes()) return false;
  for (at.Set(nodes.Prev(nodes.End())); !at.is_out(); at.Prev(), --count) {
    if (at.prefix() > last) return false;
    last = at.prefix();
  }
  return count == 0;
}

TEST(IndexPiecesConcurrentTest, ReadersKeepTheirVersions) {
  constexpr uint64_t kNodes = 8000;
  constexpr uint64_t kMerges = 300 / kSlowdown + 30;
  constexpr uint64_t kBytes = 1 << 24;
  LevelStore store(1);
  std::vector<Version> versions;
  for (uint64_t i = 0; i < kNodes; ++i) versions.push_back({EightByteKey(10 * i + 10), i + 1, false, 0, 1});
  const auto table = store.MakeTable(versions);
  Published published;
  published.Set(std::make_shared<TallIndex>(table->list, kNodes, kBytes));
  std::vector<const LogEntry*> added;
  for (uint64_t i = 0; i < kMerges; ++i)
    added.push_back(store.Resolve(store.Write({EightByteKey(10 * (i * 7919 % kNodes) + 15), kNodes + i + 1, false, 0, 1})));

  std::atomic<bool> ends{false};
  std::atomic<bool> is_right{true};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&, i] {
      Random random(static_cast<uint64_t>(i) + 1);
      while (!ends) {
        const auto index = published.Get();
        const uint64_t number = random.Uniform(kNodes);
        const uint64_t place = index->FindPrefix(0, 10 * number + 10);
        if (index->At(0, place) != store.Resolve(store.Find(number + 1))) is_right = false;
        if (!IsInOrder(index->NodesOf(0))) is_right = false;
      }
    });
  }
  for (uint64_t i = 0; i < kMerges; ++i) {
    const auto before = published.Get();
    IndexChanges changes = before->NewChanges();
    const LogEntry* const leads = store.Resolve(store.Find(i * 7919 % kNodes + 1));
    changes.Add(0, added[i], store.regions()->Find(added[i]), store.order().Prefix(added[i]->key()), true,
                [leads](uint32_t) { return leads; });
    auto fresh = std::make_shared<TallIndex>(*before, changes, kNodes, kBytes);
    EXPECT_LE(fresh->written_nodes(), 2 * IndexTree::kPieceNodes);
    EXPECT_EQ(fresh->size(0), kNodes + i + 1);
    published.Set(std::move(fresh));
  }
  ends = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_TRUE(is_right);
  EXPECT_TRUE(IsInOrder(published.Get()->NodesOf(0)));
}

}  // namespace
}  // namespace braiddb::test
