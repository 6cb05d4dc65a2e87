// Iterators that pass hot keys backward while these are overwritten, deleted, flushed and merged: each sees its snapshot.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/model/reference_iterator.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

class DbHotKeyConcurrentTest : public testing::TestWithParam<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Regions, DbHotKeyConcurrentTest, testing::Values(1u, 2u));

TEST_P(DbHotKeyConcurrentTest, IteratorsSeeTheirSnapshotsBesideMerges) {
  TestDirectory directory;
  Options options = TinyOptions(GetParam());
  options.l0_compaction_trigger = 2;
  options.max_region_size *= 4;
  const auto db = OpenOrFail(options, directory.File("db"));
  ASSERT_NE(db, nullptr);
  const std::vector<std::string> keys = {"a", "hot1", "hot2", "hot45678", "m", "z"};
  std::mutex mutex;  // of the content, which is what the database has
  std::map<std::string, std::string> content;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    Random random(1);
    while (!stop) {
      const std::string& key = keys[random.Uniform(keys.size())];
      for (uint64_t i = random.Uniform(400); i > 0 && !stop; --i) {
        const std::lock_guard lock(mutex);
        if (random.OneIn(20)) {
          EXPECT_OK(db->Delete({}, key));
          content.erase(key);
        } else {
          const std::string value = std::to_string(random.Next());
          EXPECT_OK(db->Put({}, key, value));
          content[key] = value;
        }
      }
    }
  });
  Random random(2);
  const int rounds = 600 / kSlowdown;
  // More of them where merges are late.
  const auto has_merged = [&] { return db->GetStatistics().compactions > 2; };
  for (int round = 0; (round < rounds || (!has_merged() && round < 20 * rounds)) && !HasFailure(); ++round) {
    if (round >= rounds) std::this_thread::sleep_for(std::chrono::milliseconds(5));  // for the merges
    ReadOptions read;
    std::map<std::string, std::string> expected_content;
    {
      const std::lock_guard lock(mutex);
      read.snapshot = db->GetSnapshot();
      expected_content = content;
    }
    const auto iterator = db->NewIterator(read);
    // The writer goes on, so the hot keys have more and more versions that are newer than the view.
    for (int walk = 0; walk < 4; ++walk) {
      ReferenceIterator expected(VisiblePairs(expected_content, read));
      EXPECT_TRUE(WalkTogether(&expected, iterator.get(), keys, 30, &random)) << "round " << round;
      std::this_thread::yield();
    }
    EXPECT_TRUE(HoldsExactly(db.get(), expected_content, read)) << "round " << round;
    db->ReleaseSnapshot(read.snapshot);
  }
  stop = true;
  writer.join();
  EXPECT_GT(db->GetStatistics().compactions, 2u);
  EXPECT_TRUE(HoldsExactly(db.get(), content));
}

}  // namespace
}  // namespace braiddb::test
