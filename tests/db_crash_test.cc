// Power cuts, simulated: whatever lines (or words) of what was not yet flushed and fenced are lost, every acknowledged write is
// there after recovery, and each one in flight is there whole or not at all; also when the power fails again during recovery or
// after it.
//
// BRAIDDB_CRASH_IMAGES and BRAIDDB_CRASH_SEED extend or vary a run; runs are not deterministic, since threads are not.
#include <gtest/gtest.h>

#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include "tests/crash/crash_runner.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

void Report(const std::string& name, const CrashRunResult& result) {
  std::printf("%s: %llu databases, %llu crash points, %llu first and %llu second images, %.1f dirty lines per point;",
              name.c_str(), static_cast<unsigned long long>(result.databases), static_cast<unsigned long long>(result.points),
              static_cast<unsigned long long>(result.first_images), static_cast<unsigned long long>(result.second_images),
              static_cast<double>(result.dirty_lines) / static_cast<double>(std::max<uint64_t>(1, result.points)));
  for (size_t kind = 0; kind < result.by_kind.size(); ++kind) {
    std::printf(" %llu %s%s", static_cast<unsigned long long>(result.by_kind[kind]), NameOf(static_cast<ImageKind>(kind)),
                kind + 1 < result.by_kind.size() ? "," : "\n");
  }
}

class DbCrashTest : public testing::TestWithParam<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Regions, DbCrashTest, testing::Values(1, 2),
                         [](const auto& test) { return std::to_string(test.param); });

// [CC-2] [CC-3] [CC-4] [CC-5] [CC-6] [CC-7]
TEST_P(DbCrashTest, EveryImageRecovers) {
  CrashRunOptions options;
  options.regions = GetParam();
  options.seed = EnvNumber("BRAIDDB_CRASH_SEED", 1) * 100 + GetParam();
  options.images = EnvNumber("BRAIDDB_CRASH_IMAGES", 200 * GetParam() / kSlowdown);
  const CrashRunResult result = CrashRunner(options).Run();
  Report(testing::UnitTest::GetInstance()->current_test_info()->name(), result);
  EXPECT_EQ(result.violation, "");
  // Otherwise nothing was tested.
  EXPECT_GE(result.images(), options.images);
  EXPECT_GT(result.second_images, 0u);
  for (uint64_t images : result.by_kind) EXPECT_GT(images, 0u);
  EXPECT_GT(result.dirty_lines, result.points);
  EXPECT_GT(result.work.checkpoints, 0u);
  EXPECT_GT(result.work.compactions, 0u);
}

// ---- Canaries: with a bug put in, the same run must find it. Entries and fences of writes: [CC-6]; MANIFEST: [CC-2]; pointers:
// [CC-3]; journal and heads: [CC-4]; fences of flush and merge: [CC-3] [CC-4]; descriptors: [CC-36]

struct Canary {
  const char* name;
  DropRule drop;
};

void PrintTo(const Canary& canary, std::ostream* out) { *out << canary.name; }

class DbCrashCanaryTest : public testing::TestWithParam<Canary> {};

using What = DropRule::What;

INSTANTIATE_TEST_SUITE_P(Bugs, DbCrashCanaryTest,
                         testing::Values(Canary{"EntryNotFlushed", {What::kFlush, RangeKind::kSegment, true, 20}},
                                         Canary{"WriteNotFenced", {What::kFence, RangeKind::kSegment, true, 20}},
                                         Canary{"ManifestNotFlushed", {What::kFlush, RangeKind::kManifest, false, 5}},
                                         Canary{"JournalNotFlushed", {What::kFlush, RangeKind::kJournal, false, 1}},
                                         Canary{"PointersNotFlushed", {What::kFlush, RangeKind::kSegment, false, 20}},
                                         Canary{"HeadNotFlushed", {What::kFlush, RangeKind::kL1Head, false, 1}},
                                         Canary{"DescriptorNotFlushed", {What::kFlush, RangeKind::kDirectory, true, 1}},
                                         Canary{"BackgroundNotFenced", {What::kFence, RangeKind::kSegment, false, 5}}),
                         [](const auto& test) { return test.param.name; });

// In a child: what a broken database does (failing a check, following a wild pointer, never ending) must not end the test, and it
// counts as found, too.
int RunCanary(const Canary& canary, uint64_t seed, int not_found, int found) {
  return RunInChild(
      [&] {
        if (std::freopen("/dev/null", "w", stderr) == nullptr) return 1;
        CrashRunOptions options;
        options.seed = seed;
        options.images = EnvNumber("BRAIDDB_CRASH_CANARY_IMAGES", 400);
        options.drop = canary.drop;
        options.keep_images = false;
        const CrashRunResult result = CrashRunner(options).Run();
        Report(canary.name, result);
        std::printf("  %llu times the bug; %s\n", static_cast<unsigned long long>(result.dropped), result.violation.c_str());
        std::fflush(stdout);
        return result.violation.empty() || result.dropped == 0 ? not_found : found;
      },
      100'000 * kSlowdown);
}

TEST_P(DbCrashCanaryTest, IsFound) {
  constexpr int kNotFound = 0;
  constexpr int kFound = 42;
  const uint64_t seeds = EnvNumber("BRAIDDB_CRASH_CANARY_SEEDS", kSlowdown > 1 ? 1 : 3);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const int exit_code = RunCanary(GetParam(), seed, kNotFound, kFound);
    std::printf("%s, seed %llu: exit %d\n", GetParam().name, static_cast<unsigned long long>(seed), exit_code);
    EXPECT_NE(exit_code, kNotFound) << "seed " << seed;
    EXPECT_NE(exit_code, 1) << "seed " << seed;
  }
}

}  // namespace
}  // namespace braiddb::test
