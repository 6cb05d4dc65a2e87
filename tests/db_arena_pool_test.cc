// ArenaPool: which arenas are kept, and which are taken again.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "db/arena_pool.h"

namespace braiddb::test {
namespace {

constexpr uint64_t kSmall = 64 << 10;
constexpr uint64_t kLarge = 256 << 10;

TEST(ArenaPool, GivesTheLastArenaThatIsLargeEnough) {
  ArenaPool pool;
  EXPECT_TRUE(pool.empty());
  EXPECT_EQ(pool.Take(kSmall), nullptr);
  pool.Keep(Arena::Create(false, kLarge), ArenaPool::kMost);
  pool.Keep(Arena::Create(false, kSmall), ArenaPool::kMost);
  EXPECT_FALSE(pool.empty());
  const std::unique_ptr<Arena> taken = pool.Take(kLarge);
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(taken->first_bytes(), kLarge);
  EXPECT_TRUE(pool.empty()) << "the small one is freed";
}

TEST(ArenaPool, KeepsNoMoreThanAllowed) {
  ArenaPool pool;
  for (int i = 0; i < 5; ++i) pool.Keep(Arena::Create(false, kSmall), 2);
  EXPECT_NE(pool.Take(kSmall), nullptr);
  EXPECT_NE(pool.Take(kSmall), nullptr);
  EXPECT_EQ(pool.Take(kSmall), nullptr);
  pool.Keep(Arena::Create(false, kSmall), 0);
  EXPECT_TRUE(pool.empty());
}

TEST(ArenaPool, Clears) {
  ArenaPool pool;
  pool.Keep(Arena::Create(false, kSmall), ArenaPool::kMost);
  pool.Clear();
  EXPECT_TRUE(pool.empty());
}

}  // namespace
}  // namespace braiddb::test
