// CheckOptions::progress: each pass of a check and of a repair reports how far it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/check.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

class CheckProgressTest : public DbOpenTest {
 protected:
  using Call = std::pair<uint64_t, uint64_t>;

  // More entries than one report covers.
  void Make() {
    Options options = TinyOptions(1);
    options.max_region_size = 64 << 20;
    Fill(options, 40'000);
  }
  // Checks that a pass begins with 0, and that its calls ascend to the total. Returns the number of calls of each pass.
  static std::vector<size_t> Passes(const std::vector<Call>& calls) {
    std::vector<size_t> passes;
    uint64_t before = 0;
    for (const auto& [done, total] : calls) {
      if (done == 0) passes.push_back(0);
      EXPECT_FALSE(passes.empty());
      EXPECT_GT(total, 0u);
      EXPECT_LE(done, total);
      if (done != 0) {
        EXPECT_GE(done, before);
      }
      before = done;
      if (!passes.empty()) ++passes.back();
    }
    return passes;
  }
};

TEST_F(CheckProgressTest, AChecksListsAreAPass) {
  Make();
  std::vector<Call> calls;
  CheckOptions options;
  options.progress = [&calls](uint64_t done, uint64_t total) { calls.emplace_back(done, total); };
  CheckReport report;
  ASSERT_OK(CheckDatabase(options, path_, &report));
  const std::vector<size_t> passes = Passes(calls);
  ASSERT_EQ(passes.size(), 2u);
  EXPECT_GT(passes[0], 1u) << "segments";
  EXPECT_GT(passes[1], 2u) << "lists";
  EXPECT_GE(calls.back().first, calls.back().second / 2);
}

TEST_F(CheckProgressTest, ARepairSortsAndWrites) {
  Make();
  std::vector<Call> calls;
  RepairOptions options;
  options.source.progress = [&calls](uint64_t done, uint64_t total) { calls.emplace_back(done, total); };
  RepairReport report;
  ASSERT_OK(RepairDatabase(options, path_, directory_.File("fresh"), &report));
  EXPECT_EQ(report.keys, 40'000u);
  const std::vector<size_t> passes = Passes(calls);
  ASSERT_EQ(passes.size(), 3u);
  for (const size_t pass : passes) EXPECT_GT(pass, 1u);
  EXPECT_EQ(calls.back().first, calls.back().second);
}

// A damaged or empty database has no entries to write.
TEST_F(CheckProgressTest, AnEmptyDatabaseIsRepaired) {
  OpenOrFail(TinyOptions(1), path_).reset();
  uint64_t calls = 0;
  RepairOptions options;
  options.source.progress = [&calls](uint64_t, uint64_t) { ++calls; };
  RepairReport report;
  ASSERT_OK(RepairDatabase(options, path_, directory_.File("fresh"), &report));
  EXPECT_GE(calls, 3u);
  EXPECT_EQ(report.keys, 0u);
}

}  // namespace
}  // namespace braiddb::test
