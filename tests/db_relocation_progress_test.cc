#include <gtest/gtest.h>

#include "db/relocation_progress.h"

namespace braiddb::test {
namespace {

constexpr uint64_t kSegment = 1 << 20;

// Relocations that may begin, up to 1000, if the garbage is `garbage_at(round)` before each.
template <class Garbage>
int Rounds(RelocationProgress* progress, const Garbage& garbage_at, uint64_t written = 0) {
  int rounds = 0;
  while (rounds < 1000 && progress->MayBegin(garbage_at(rounds), written, kSegment)) ++rounds;
  return rounds;
}

TEST(RelocationProgressTest, EndsWithoutGain) {
  RelocationProgress progress;
  EXPECT_LT(Rounds(&progress, [](int round) { return 10 * kSegment + static_cast<uint64_t>(round % 2) * 100; }), 100);
  EXPECT_EQ(Rounds(&progress, [](int) { return 10 * kSegment + kSegment / 2; }), 0) << "the same garbage";
}

TEST(RelocationProgressTest, GoesOnWhileGarbageFalls) {
  RelocationProgress progress;
  EXPECT_EQ(Rounds(&progress, [](int round) { return (2000 - static_cast<uint64_t>(round)) * kSegment / 4; }), 1000);
}

TEST(RelocationProgressTest, BeginsAgainAfterWritesAndWithOtherGarbage) {
  RelocationProgress progress;
  const auto same = [](int) { return 10 * kSegment; };
  EXPECT_LT(Rounds(&progress, same), 100);
  EXPECT_GT(Rounds(&progress, same, 2 * kSegment), 0);
  EXPECT_EQ(Rounds(&progress, same, 2 * kSegment), 0);
  EXPECT_GT(Rounds(
                &progress, [](int) { return 12 * kSegment; }, 2 * kSegment),
            0);
  EXPECT_GT(Rounds(
                &progress, [](int) { return 5 * kSegment; }, 2 * kSegment),
            0);
}

TEST(RelocationProgressTest, FailuresDoNotCount) {
  RelocationProgress progress;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(progress.MayBegin(10 * kSegment, 0, kSegment));
    progress.NoteFailed();
  }
}

}  // namespace
}  // namespace braiddb::test
