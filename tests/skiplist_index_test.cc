// The search tree over tall nodes: a search that begins there ends where one from the head does.
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "skiplist/list_cursor.h"
#include "skiplist/tall_index.h"
#include "tests/support/key_kinds.h"
#include "tests/support/level_store.h"

namespace braiddb::test {
namespace {

class TallIndexTest : public testing::TestWithParam<std::tuple<uint32_t, size_t>> {
 protected:
  void ExpectSameAsFromTheHead(const BraidedList& list, const TallIndex& index, const std::string& key, uint64_t sequence) {
    const SearchKey target(store_.order(), key, sequence);
    const BraidedList::Start start = index.Start(list.Home().region, target);
    LookupTrace trace;
    EXPECT_EQ(list.FindFrom(start, target, &trace), list.FindGreaterOrEqual(target)) << Printable(key);
    EXPECT_EQ(list.FindLessFrom(start, target), list.FindLess(target)) << Printable(key);
  }

  LevelStore store_{std::get<0>(GetParam())};
  const KeyKind& keys_ = KindAt(std::get<1>(GetParam()));
  Random random_{3};
};

INSTANTIATE_TEST_SUITE_P(Lists, TallIndexTest, testing::Combine(testing::Values(1, 2), testing::Range<size_t>(0, kAllKinds)),
                         [](const auto& suite) {
                           return std::string(KindAt(std::get<1>(suite.param)).name) + std::to_string(std::get<0>(suite.param));
                         });

TEST_P(TallIndexTest, LeadsToTheSamePlaces) {
  uint64_t sequence = 1;
  for (const size_t count : {0, 1, 3, 40, 3000}) {
    std::vector<Version> versions;
    for (size_t i = 0; i < count; ++i) {
      versions.push_back({keys_.draw(&random_), sequence++, false,
                          static_cast<uint32_t>(random_.Uniform(std::get<0>(GetParam()))), RandomHeight(random_.Next())});
    }
    const auto table = store_.MakeTable(versions);
    // None, a few nodes, an estimate that is far too low or too high, and enough for all.
    const std::pair<uint64_t, uint64_t> sizes[] = {{count, 0}, {count, 2000}, {1, 2000}, {1000000, 100000}, {count, 1 << 20}};
    for (const auto& [estimate, max_bytes] : sizes) {
      const TallIndex index(table->list, estimate, max_bytes);
      for (int i = 0; i < 200; ++i)
        ExpectSameAsFromTheHead(table->list, index, keys_.draw(&random_), random_.Uniform(2 * sequence));
      for (int i = 0; i < 200 && count > 0; ++i) {
        const Version& version = versions[random_.Uniform(count)];
        ExpectSameAsFromTheHead(table->list, index, version.key, version.sequence + random_.Uniform(3) - 1);
      }
      ExpectSameAsFromTheHead(table->list, index, "", kMaxSequence);
      ExpectSameAsFromTheHead(table->list, index, std::string(20, '\xff'), 0);
    }
  }
}

// A database that is being closed wants no index: the walk and the pass over the index of before end at once.
TEST_P(TallIndexTest, IsEmptyWhenStopped) {
  std::vector<Version> versions;
  for (uint64_t i = 0; i < 3000 + 1; ++i) {
    versions.push_back({keys_.draw(&random_), i + 1, false, static_cast<uint32_t>(random_.Uniform(std::get<0>(GetParam()))),
                        RandomHeight(random_.Next())});
  }
  const auto table = store_.MakeTable(versions);
  const TallIndex whole(table->list, versions.size(), 1 << 20);
  const std::atomic<bool> stop{true};
  const TallIndex walked(table->list, versions.size(), 1 << 20, &stop);
  const TallIndex changed(whole, whole.NewChanges(), versions.size(), 1 << 20, &stop);
  for (uint32_t reader = 0; reader < std::get<0>(GetParam()); ++reader) {
    EXPECT_GT(whole.size(reader), 0u);
    EXPECT_EQ(walked.size(reader), 0u);
    EXPECT_FALSE(walked.HasEveryNode(reader));
    EXPECT_EQ(changed.size(reader), 0u);
    EXPECT_FALSE(changed.HasEveryNode(reader));
  }
  for (const Version& version : versions) ExpectSameAsFromTheHead(table->list, walked, version.key, version.sequence);
}

// Eight bytes each, so that no two prefixes are equal, and whole groups of each level, one less, and one more: no place is to be
// taken for one of another level.
TEST(TallIndexOfWholeGroupsTest, FindsEachPlaceAndTheEnd) {
  const auto& key = EightByteKey;
  for (const uint64_t whole : {8, 128, 256, 2048, 4096, 6144, 32768, 34816}) {
    for (const uint64_t count : {whole - 1, whole, whole + 1}) {
      SCOPED_TRACE(count);
      LevelStore store(1);
      std::vector<Version> versions;
      for (uint64_t i = 0; i < count; ++i) versions.push_back({key(10 * i + 10), i + 1, false, 0, RandomHeight(i * 7919)});
      const auto table = store.MakeTable(versions);
      const TallIndex index(table->list, count, 16 << 20);
      ASSERT_TRUE(index.HasEveryNode(0));
      ASSERT_EQ(index.size(0), count);
      const auto cursor = NewListCursor(&table->list, &index);
      for (uint64_t number : {0, 1, 10}) EXPECT_EQ(index.FindPrefix(0, number), 0u);
      for (uint64_t i = 0; i < count; i += 1 + i % 7) {
        ASSERT_EQ(index.FindPrefix(0, 10 * i + 9), i);
        ASSERT_EQ(index.FindPrefix(0, 10 * i + 10), i);
        ASSERT_EQ(index.FindPrefix(0, 10 * i + 11), i + 1);
        ASSERT_EQ(index.FindPrefixNear(0, i / 2, 10 * i + 11), i + 1);
      }
      for (const uint64_t beyond : {10 * count + 11, uint64_t{1} << 40, UINT64_MAX - 1, UINT64_MAX}) {
        ASSERT_EQ(index.FindPrefix(0, beyond), count);
        ASSERT_EQ(index.FindPrefixNear(0, 0, beyond), count);
        const std::string bytes = key(beyond);
        const SearchKey target(store.order(), bytes, kMaxSequence);
        EXPECT_EQ(table->list.FindFrom(index.Start(0, target), target, nullptr), nullptr);
        for (const bool fetches : {false, true}) {
          while (fetches && cursor->FetchForSeek(target)) {
          }
          cursor->Seek(target);
          EXPECT_EQ(cursor->entry(), nullptr);
          cursor->SeekBefore(target);
          ASSERT_NE(cursor->entry(), nullptr);
          EXPECT_EQ(cursor->entry()->key(), key(10 * count));
        }
      }
    }
  }
}

// A reader whose region has next to nothing begins in the region that has most.
TEST_P(TallIndexTest, HelpsReadersOfARegionWithoutEntries) {
  const uint32_t last = std::get<0>(GetParam()) - 1;
  uint64_t sequence = 1;
  std::vector<Version> versions;
  for (size_t i = 0; i < 3000; ++i) {
    versions.push_back({keys_.draw(&random_), sequence++, false, i == 7 ? last : 0, RandomHeight(random_.Next())});
  }
  const auto table = store_.MakeTable(versions);
  const TallIndex index(table->list, versions.size(), 1 << 20);
  for (uint32_t reader = 0; reader <= last; ++reader) {
    LookupTrace trace;
    for (const Version& version : versions) {
      const SearchKey target(store_.order(), version.key, version.sequence);
      const LogEntry* found = table->list.FindFrom(index.Start(reader, target), target, &trace);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->sequence(), version.sequence);
    }
    EXPECT_LT(trace.local + trace.remote, versions.size() * kBranching * 11 / 10);
    EXPECT_GT(reader == 0 ? trace.local : trace.remote, versions.size() / 2) << "who is local is the reader's matter";
  }
}

// What the index is for, and what it may cost.
TEST_P(TallIndexTest, ShortensSearchesWithinItsBudget) {
  uint64_t sequence = 1;
  std::vector<Version> versions;
  for (size_t i = 0; i < 5000; ++i)
    versions.push_back({keys_.draw(&random_), sequence++, false, 0, RandomHeight(random_.Next())});
  const auto table = store_.MakeTable(versions);
  const auto visits = [&](const TallIndex& index) {
    LookupTrace trace;
    for (const Version& version : versions) {
      const SearchKey target(store_.order(), version.key, version.sequence);
      table->list.FindFrom(index.Start(0, target), target, &trace);
    }
    return trace.local + trace.remote;
  };
  const TallIndex none(table->list);
  const TallIndex small(table->list, versions.size(), 16 << 10);
  const TallIndex large(table->list, versions.size(), 256 << 10);
  EXPECT_EQ(none.bytes(), 0u);
  EXPECT_GT(small.bytes(), 0u);
  EXPECT_LE(small.bytes(), 16u << 10);
  EXPECT_LE(large.bytes(), 256u << 10);
  EXPECT_LT(visits(small), visits(none));
  EXPECT_LT(visits(large), visits(small));
  // Every kBranching-th entry is indexed, or all are: about as many steps, and what is found.
  EXPECT_LT(visits(large), versions.size() * (kBranching + 1));
  // With one region it has all: a search looks at what it finds, and at nothing besides; the first one's comes from the head.
  if (std::get<0>(GetParam()) == 1) {
    EXPECT_LE(visits(large), versions.size() + kMaxHeight);
  }
}

}  // namespace
}  // namespace braiddb::test
