// Whatever is merged into a skiplist, the index that comes of the one before and of what the merge noted is that of a walk.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "skiplist/braided_skiplist.h"
#include "tests/support/db_fixture.h"
#include "tests/support/merge_operators.h"
#include "tests/support/same_index.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

// Where no index was made, there is nothing to compare.
testing::AssertionResult HasNodesOfAWalk(const BraidedSkipList& list) {
  const TallIndex& index = list.index();
  const uint32_t regions = list.list().regions().count();
  if (index.bytes() == 0) return testing::AssertionSuccess();
  // The estimate says how far apart nodes are.
  for (uint64_t entries = 1;; entries *= 2) {
    const TallIndex walked(list.list(), entries, 2 * index.bytes() + 4096);
    if (walked.Distance(0) == index.Distance(0)) return HaveSameNodes(index, walked, regions);
    if (entries > uint64_t{1} << 40) return testing::AssertionFailure() << "no index has nodes so far apart";
  }
}

class DbIndexChangesTest : public DbTest {
 protected:
  void SetUp() override {
    options_.l1 = L1Kind::kBraidedSkipList;
    options_.max_space_amplification = 1.1;
    options_.space_slack = 64 << 10;
    options_.l0_compaction_trigger = 1;
    options_.merge_operator = std::make_shared<AppendOperator>();
    // Nothing merges while an index is installed.
    SyncPoints::Instance().SetCallback("BraidedLevel::Refresh", [this](void* argument) {
      if (argument == nullptr) return;
      checks_ = true;
      EXPECT_TRUE(HasNodesOfAWalk(*static_cast<const BraidedSkipList*>(argument)));
      checks_ = false;
      ++indexes_;
    });
    SyncPoints::Instance().SetCallback("TallIndex::Walked", [this](void*) { walks_ += checks_ ? 0 : 1; });
    SyncPoints::Instance().Enable();
    Reopen();
  }
  void TearDown() override {
    db_.reset();
    SyncPoints::Instance().Clear();
  }

  std::atomic<uint64_t> indexes_{0};
  std::atomic<uint64_t> walks_{0};  // that the database made
  std::atomic<bool> checks_{false};
};

INSTANTIATE_TEST_SUITE_P(Regions, DbIndexChangesTest, testing::Values(1, 2));

TEST_P(DbIndexChangesTest, OfEachKindOfWrite) {
  constexpr uint64_t kKeys = 3000;
  Random random(91);
  std::map<std::string, std::string> expected;
  std::deque<const Snapshot*> snapshots;
  const auto release_all = [&] {
    for (; !snapshots.empty(); snapshots.pop_front()) db_->ReleaseSnapshot(snapshots.front());
  };
  for (int i = 0; i < 40'000 / kSlowdown; ++i) {
    const std::string key = NumberedKey(random.OneIn(4) ? random.Uniform(50) : random.Uniform(kKeys));
    if (random.OneIn(8)) {
      ASSERT_OK(db_->Delete({}, key));
      expected.erase(key);
    } else if (random.OneIn(8)) {
      ASSERT_OK(db_->Merge({}, key, "x"));
      std::string& value = expected[key];
      value = AppendOperator::Apply(value, "x");
    } else {
      expected[key] = PatternedValue(i, random.Skewed(300));
      ASSERT_OK(db_->Put({}, key, expected[key]));
    }
    if (random.OneIn(2000)) {
      const uint64_t begin = random.Uniform(kKeys), end = begin + random.Skewed(300);
      ASSERT_OK(db_->DeleteRange({}, db_->DefaultColumnFamily(), NumberedKey(begin), NumberedKey(end)));
      expected.erase(expected.lower_bound(NumberedKey(begin)), expected.lower_bound(NumberedKey(end)));
    }
    if (random.OneIn(2000)) {
      const std::string bounds[] = {NumberedKey(random.Uniform(kKeys)), NumberedKey(random.Uniform(kKeys))};
      const Slice begin(std::min(bounds[0], bounds[1])), end(std::max(bounds[0], bounds[1]));
      ASSERT_OK(db_->CompactRange({}, &begin, &end));
    }
    if (random.OneIn(400)) snapshots.push_back(db_->GetSnapshot());
    if (snapshots.size() > 3) release_all();
    if (random.OneIn(300)) {  // however slow merges are beside this, many come in between
      ASSERT_OK(db_->WaitForCompaction());
    }
    if (random.OneIn(10'000)) {
      release_all();
      Reopen();
    }
    if (HasFailure()) return;
  }
  release_all();
  ASSERT_OK(db_->WaitForCompaction());
  const auto iterator = db_->NewIterator({});
  auto next = expected.begin();
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++next) {
    ASSERT_NE(next, expected.end());
    EXPECT_EQ(iterator->key(), next->first);
    EXPECT_EQ(iterator->value(), next->second);
  }
  EXPECT_OK(iterator->status());
  EXPECT_EQ(next, expected.end());
  const Statistics statistics = db_->GetStatistics();
  EXPECT_GT(statistics.relocated_entries, 0u);
  EXPECT_GT(statistics.collapsed_keys, 0u);
  // Walked are those after an open, in each region.
  EXPECT_GT(indexes_ * GetParam(), 4 * walks_) << walks_;
}

// A sweep tells the next index what it has removed, so the list is not walked.
TEST_P(DbIndexChangesTest, OfSweeps) {
  constexpr int kKeys = 20'000;
  for (int round = 0; round < 3; ++round) {
    const Snapshot* const snapshot = round == 0 ? nullptr : db_->GetSnapshot();  // for which the sweep finds old versions
    for (int i = 0; i < kKeys; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), std::to_string(round)));
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    db_->ReleaseSnapshot(snapshot);
    const uint64_t walks = walks_;
    for (const int begin : {kKeys - 1, 100, 5000, 0}) {
      const std::string bounds[] = {NumberedKey(begin), NumberedKey(begin + 1 + begin / 2)};
      const Slice first(bounds[0]), last(bounds[1]);
      const uint64_t indexes = indexes_;
      ASSERT_OK(db_->Put({}, "b", "1"));
      ASSERT_OK(db_->CompactRange({}, &first, &last));
      EXPECT_GT(indexes_.load(), indexes);
    }
    EXPECT_EQ(walks_.load(), walks);
    for (const int key : {kKeys - 1, 100, 5000, 0}) EXPECT_EQ(GetOrText(db_.get(), NumberedKey(key)), std::to_string(round));
  }
}

// Keys behind all that the last level has, where that fills whole groups of its index.
TEST_P(DbIndexChangesTest, OfKeysBehindTheLastOne) {
  const auto& key = EightByteKey;
  uint64_t keys = 0;
  for (const uint64_t until : {2048, 4096, 6144, 8192, 34816}) {
    for (; keys < until; ++keys) ASSERT_OK(db_->Put({}, key(10 * keys), "value"));
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    const auto iterator = db_->NewIterator({});
    iterator->Seek(key(10 * until));
    EXPECT_FALSE(iterator->Valid());
    iterator->SeekForPrev(key(10 * until));
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->key(), key(10 * until - 10));
    uint64_t seen = 0;
    for (iterator->SeekToFirst(); iterator->Valid() && seen <= until; iterator->Next(), ++seen) {
      ASSERT_EQ(iterator->key(), key(10 * seen));
      ASSERT_EQ(GetOrText(db_.get(), key(10 * seen)), "value");
    }
    EXPECT_EQ(seen, until);
    EXPECT_OK(iterator->status());
  }
}

}  // namespace
}  // namespace braiddb::test
