// Searches by PrefixSteps end where those of the whole array do.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "index/prefix_steps.h"
#include "util/random.h"

namespace braiddb {
namespace {

// What Find promises, of each target that could matter.
void ExpectGroups(const std::vector<uint64_t>& prefixes) {
  PrefixSteps steps;
  steps.Build(prefixes.size(), [&prefixes](size_t i) { return prefixes[i]; });
  std::vector<uint64_t> targets = {0, UINT64_MAX};
  for (const uint64_t prefix : prefixes) targets.insert(targets.end(), {prefix - 1, prefix, prefix + 1});
  for (const uint64_t target : targets) {
    const size_t first = static_cast<size_t>(std::lower_bound(prefixes.begin(), prefixes.end(), target) - prefixes.begin());
    const size_t group = steps.Find(target);
    ASSERT_EQ(group, first / PrefixSteps::kFanout * PrefixSteps::kFanout) << prefixes.size() << " prefixes, target " << target;
  }
}

TEST(PrefixStepsTest, ArraysOfEverySize) {
  for (size_t size = 0; size < 600; ++size) {
    std::vector<uint64_t> prefixes(size);
    for (size_t i = 0; i < size; ++i) prefixes[i] = 10 + 2 * i;
    ExpectGroups(prefixes);
  }
}

TEST(PrefixStepsTest, EqualPrefixes) {
  Random random(7);
  for (const uint64_t range : {1, 2, 5, 50, 100'000}) {
    for (const size_t size : {15, 16, 17, 255, 256, 257, 4095, 4096, 4097, 10'000}) {
      std::vector<uint64_t> prefixes(size);
      for (uint64_t& prefix : prefixes) prefix = 1 + random.Uniform(range);
      std::sort(prefixes.begin(), prefixes.end());
      ExpectGroups(prefixes);
    }
  }
}

TEST(PrefixStepsTest, TheLargestAndTheSmallest) {
  ExpectGroups(std::vector<uint64_t>(100, 0));
  ExpectGroups(std::vector<uint64_t>(100, UINT64_MAX));
  std::vector<uint64_t> both(50, 0);
  both.resize(100, UINT64_MAX);
  ExpectGroups(both);
}

TEST(PrefixStepsTest, BuiltAnew) {
  PrefixSteps steps;
  steps.Build(1000, [](size_t i) { return i; });
  EXPECT_GT(steps.bytes(), 0u);
  steps.Build(10, [](size_t i) { return i; });
  EXPECT_EQ(steps.bytes(), 0u);
  EXPECT_EQ(steps.Find(5), 0u);
}

}  // namespace
}  // namespace braiddb
