// InnerNodes: searches among keys that begin alike, while the node that they read changes.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/inner_nodes_test.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

constexpr uint64_t kVersions = 5;
const LeafStart kFirst{"user:aaaaaaaa", 1};
const std::string kHot = "user:mmmmmmmm";

class InnerNodesConcurrentTest : public InnerNodesTest {
 protected:
  InnerNodesConcurrentTest() {
    std::vector<LeafStart> starts{kFirst};
    for (uint64_t version = kVersions; version > 0; --version) starts.push_back({kHot, version});
    for (char letter = 'n'; letter <= 'z'; ++letter) starts.push_back({"user:" + std::string(8, letter), 1});
    for (char letter = 'b'; letter <= 'k'; ++letter) between_.push_back({"user:" + std::string(8, letter), 1});
    const auto guard = epochs_.Enter();
    Build(starts);
  }
  ~InnerNodesConcurrentTest() override { SyncPoints::Instance().Clear(); }

  std::vector<LeafStart> between_;  // starts of ranges between kFirst and kHot
};

// Between the two binary searches that bound the separators with the target's word, these separators move to the right. The
// search reads nothing beyond the node, and finds the leaf in the changed node.
TEST_F(InnerNodesConcurrentTest, SeparatorsMoveBehindTheSlotDuringASearch) {
  const auto guard = epochs_.Enter();
  int passed = 0;
  SyncPoints::Instance().SetCallback("InnerNodes::SlotOf:NotReached", [&](void*) {
    if (passed++ == 0) ReplaceBehind(kFirst, 0, between_);
  });
  SyncPoints::Instance().Enable();
  const InnerNodes::Range range = nodes_.Find(SearchKey(order_, kHot, kVersions + 1));
  EXPECT_EQ(passed, 2) << "the changed node is searched again";
  ASSERT_NE(range.low.rest, nullptr);
  EXPECT_EQ(range.low.rest->key(), between_.back().key);
  ASSERT_NE(range.high.rest, nullptr);
  EXPECT_EQ(range.high.rest->key(), kHot);
  EXPECT_EQ(range.high.rest->sequence, kVersions);
}

TEST_F(InnerNodesConcurrentTest, RangesContainTheTargetsWhileANodeChanges) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> searches{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed) && !HasFailure()) {
        for (uint64_t version = 1; version <= kVersions + 1; ++version) {
          const auto guard = epochs_.Enter();
          const SearchKey target(order_, kHot, version);
          EXPECT_TRUE(Contains(nodes_.Find(target), target)) << version;
          searches.fetch_add(1, std::memory_order_relaxed);
        }
      }
    });
  }
  const auto some = [&] { return searches.load(std::memory_order_relaxed) > 0 || HasFailure(); };
  EXPECT_TRUE(WaitUntil(some));
  for (Rounds rounds(20'000); rounds.Next() && !HasFailure();) {
    {
      const auto guard = epochs_.Enter();
      ReplaceBehind(kFirst, 0, between_);
      ReplaceBehind(kFirst, static_cast<uint32_t>(between_.size()), {});
    }
    epochs_.Reclaim();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace braiddb::test
