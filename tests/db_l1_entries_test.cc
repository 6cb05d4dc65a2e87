// The number of entries of the last level is right again after merges that closes have cut short.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "braiddb/db.h"
#include "braiddb/iterator.h"
#include "db/test_hooks.h"
#include "log/log_reader.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

struct Case {
  const char* name;
  L1Kind kind;
  uint32_t regions = 1;
  bool has_index = true;
};

class DbL1EntriesTest : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Kinds, DbL1EntriesTest,
                         testing::Values(Case{"Skiplist", L1Kind::kBraidedSkipList}, Case{"Braided", L1Kind::kBraidedSkipList, 2},
                                         Case{"WithoutIndex", L1Kind::kBraidedSkipList, 1, false},
                                         Case{"NvTree", L1Kind::kNvTree}, Case{"Hybrid", L1Kind::kHybrid},
                                         Case{"LbTree", L1Kind::kLbTree}),
                         [](const auto& test) { return test.param.name; });

uint64_t Count(DB* db) {
  uint64_t count = 0;
  const std::unique_ptr<Iterator> iterator = db->NewIterator({});
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++count;
  EXPECT_OK(iterator->status());
  return count;
}

TEST_P(DbL1EntriesTest, IsExactAfterACompaction) {
  const TestDirectory directory;
  Options options = TinyOptions(GetParam().regions);
  options.l1 = GetParam().kind;
  if (!GetParam().has_index) options.l1_index_size = 0;
  Random random(3);
  constexpr int kCycles = 12;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    const std::unique_ptr<DB> db = OpenOrFail(options, directory.File("db"));
    ASSERT_NE(db, nullptr);
    for (uint64_t i = 0; i < 12'000 / kSlowdown; ++i) {
      const std::string key = NumberedKey(random.Uniform(9000));
      ASSERT_OK(i % 7 == 0 ? db->Delete({}, key) : db->Put({}, key, "value"));
    }
    if (cycle % 3 != 0) {
      ASSERT_OK(db->Close());  // usually cuts a merge short
    }
  }
  for (int open = 0; open < 3; ++open) {
    SCOPED_TRACE(open);
    const std::unique_ptr<DB> db = OpenOrFail(options, directory.File("db"));
    ASSERT_NE(db, nullptr);
    const uint64_t count = Count(db.get());
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    uint64_t entries = 0;
    ASSERT_TRUE(db->GetIntProperty("braiddb.num-entries-l1", &entries));
    EXPECT_EQ(entries, count);
    ASSERT_OK(db->Close());
  }
}

// Each session draws other heights. Otherwise all entries of sessions with one put had one height, and the list had no layers.
TEST(DbHeightsTest, SessionsDrawOtherHeights) {
  const TestDirectory directory;
  Options options = TinyOptions(1);
  options.l1 = L1Kind::kBraidedSkipList;
  constexpr int kSessions = 60;
  for (int i = 0; i < kSessions; ++i) {
    const std::unique_ptr<DB> db = OpenOrFail(options, directory.File("db"));
    ASSERT_NE(db, nullptr);
    ASSERT_OK(db->Put({}, NumberedKey(i), "value"));
    ASSERT_OK(db->Flush());
  }
  const std::unique_ptr<DB> db = OpenOrFail(options, directory.File("db"));
  ASSERT_NE(db, nullptr);
  ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
  std::map<uint32_t, int> entries;  // by height
  int all = 0;
  SegmentsOf(db.get())->ForEachLog([&](Segment* segment) {
    LogReader reader(*segment, segment->used_bytes.load());
    while (const LogEntry* entry = reader.NextValid()) {
      if (entry->key().starts_with("key")) ++entries[entry->height()], ++all;
    }
  });
  EXPECT_GE(entries.size(), 3u);
  EXPECT_LE(entries[1], all * 9 / 10);
}

}  // namespace
}  // namespace braiddb::test
