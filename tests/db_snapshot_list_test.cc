// The list of registered sequence numbers against a model, and what it costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "db/snapshot_list.h"
#include "tests/support/db_test_util.h"
#include "tests/support/thread_cpu_time.h"

namespace braiddb::test {
namespace {

TEST(SnapshotListTest, HasWhatIsRegistered) {
  Random random(1);
  SnapshotList list;
  std::multiset<uint64_t> model;
  uint64_t next = 1;
  for (int i = 0; i < 20'000; ++i) {
    // Sometimes more come, sometimes more go.
    if (model.empty() || random.Percent(i / 2000 % 2 == 0 ? 60 : 40)) {
      next += random.Uniform(3);
      const uint64_t largest = model.empty() ? 0 : *model.rbegin();
      const auto choose = [next, largest](uint64_t least) {
        EXPECT_EQ(least, largest);
        return next;
      };
      EXPECT_EQ(list.Register(choose), next);
      model.insert(next);
    } else if (random.OneIn(4)) {
      auto it = model.lower_bound(random.Range(1, next));
      const uint64_t again = it == model.end() ? random.Range(1, next) : *it;
      list.RegisterAgain(again);
      model.insert(again);
    } else {
      const uint64_t wanted = random.OneIn(4) ? *model.begin() : random.OneIn(3) ? *model.rbegin() : random.Range(1, next);
      auto it = model.lower_bound(wanted);
      if (it == model.end()) it = model.begin();
      list.Unregister(*it);
      model.erase(it);
    }
    ASSERT_EQ(list.size(), model.size());
    ASSERT_EQ(list.Oldest(), model.empty() ? UINT64_MAX : *model.begin());
    if (i % 50 != 0) continue;
    const std::vector<uint64_t> copy = list.Copy();
    const std::set<uint64_t> numbers(model.begin(), model.end());
    ASSERT_EQ(copy, std::vector<uint64_t>(numbers.begin(), numbers.end()));
  }
}

// If each release walked along the list, this would take minutes.
TEST(SnapshotListTest, ReleasesTakeTheirTimeInAnyOrder) {
  constexpr uint64_t kNumbers = 400'000;
  const double start = ThreadCpuSeconds();
  for (const int order : {0, 1, 2}) {
    SnapshotList list;
    std::vector<uint64_t> numbers;
    for (uint64_t i = 1; i <= kNumbers; ++i) numbers.push_back(list.Register([i](uint64_t) { return i; }));
    if (order == 1) std::reverse(numbers.begin(), numbers.end());
    if (order == 2) std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(3));
    for (const uint64_t number : numbers) list.Unregister(number);
    EXPECT_EQ(list.size(), 0u);
  }
  EXPECT_LT(ThreadCpuSeconds() - start, 5 * kSlowdown) << "seconds";
}

}  // namespace
}  // namespace braiddb::test
