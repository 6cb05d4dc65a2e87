// Keys with many versions: iterators pass them by searches, and find what each snapshot sees.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/perf_context.h"
#include "tests/model/reference_iterator.h"
#include "tests/support/db_test_util.h"
#include "tests/support/merge_operators.h"

namespace braiddb::test {
namespace {

struct HotCase {
  const char* name;
  MemtableKind memtable;
  bool merges;
};

void PrintTo(const HotCase& test, std::ostream* out) { *out << test.name; }

class DbHotKeyTest : public testing::TestWithParam<HotCase> {
 protected:
  using Content = std::map<std::string, std::string>;
  struct View {
    const Snapshot* snapshot;
    Content content;
  };

  void SetUp() override {
    options_ = TinyOptions(1);
    options_.memtable = GetParam().memtable;
    options_.memtable_size = 32 << 20;
    options_.memtable_max_entries = 1 << 20;
    options_.disable_auto_compaction = true;
    if (GetParam().merges) options_.merge_operator = std::make_shared<AppendOperator>();
    Open();
  }
  void TearDown() override {
    SetPerfLevel(PerfLevel::kDisable);
    ReleaseSnapshots();
  }
  void ReleaseSnapshots() {
    for (const View& view : views_) db_->ReleaseSnapshot(view.snapshot);
    views_.clear();
  }
  void Open() {
    db_.reset();
    db_ = OpenOrFail(options_, directory_.File("db"));
    ASSERT_NE(db_, nullptr);
  }

  void Put(const std::string& key, const std::string& value) {
    ASSERT_OK(db_->Put({}, key, value));
    content_[key] = value;
  }
  // An update that readers need the versions below of.
  void Append(const std::string& key, const std::string& operand) {
    ASSERT_OK(db_->Merge({}, key, operand));
    std::string& value = content_[key];
    value = AppendOperator::Apply(value, operand);
  }
  void TakeSnapshot() { views_.push_back({db_->GetSnapshot(), content_}); }

  // The number of entries that a movement steps over.
  template <class Move>
  static uint64_t StepsOf(const Move& move) {
    SetPerfLevel(PerfLevel::kEnableCount);
    PerfContext& counters = *GetPerfContext();
    counters.Reset();
    move();
    SetPerfLevel(PerfLevel::kDisable);
    return counters.internal_key_skipped_count + counters.internal_delete_skipped_count + counters.internal_recent_skipped_count;
  }

  TestDirectory directory_;
  Options options_;
  std::unique_ptr<DB> db_;
  Content content_;
  std::vector<View> views_;
};

INSTANTIATE_TEST_SUITE_P(Memtables, DbHotKeyTest,
                         testing::Values(HotCase{"Hash", MemtableKind::kHash, false},
                                         HotCase{"SkipList", MemtableKind::kSkipList, false},
                                         HotCase{"HashMerges", MemtableKind::kHash, true},
                                         HotCase{"SkipListMerges", MemtableKind::kSkipList, true}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(DbHotKeyTest, MovementsPassVersionsBySearches) {
  constexpr uint64_t kVersions = 20'000;
  constexpr uint64_t kMostSteps = 100;
  Put("a", "before");
  Put("c", "behind");
  for (uint64_t i = 0; i < kVersions; ++i) {
    Put("hot", std::to_string(i));
    if (i == kVersions / 2) TakeSnapshot();
  }
  Put("z", "behind");
  for (const char* place : {"memtable", "L0", "L1"}) {
    SCOPED_TRACE(place);
    if (place == std::string("L0")) {
      ASSERT_OK(db_->Flush());
    }
    if (place == std::string("L1")) {
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    }
    for (const bool is_old : {false, true}) {
      SCOPED_TRACE(is_old ? "a snapshot" : "the newest state");
      const std::string value = is_old ? std::to_string(kVersions / 2) : std::to_string(kVersions - 1);
      ReadOptions read;
      if (is_old) read.snapshot = views_.front().snapshot;
      const auto iterator = db_->NewIterator(read);
      const auto expect_at = [&](const char* key, uint64_t steps) {
        ASSERT_OK(iterator->status());
        ASSERT_TRUE(iterator->Valid());
        EXPECT_EQ(iterator->key(), key);
        EXPECT_LT(steps, kMostSteps) << "to " << key;
        if (key == std::string("hot")) {
          EXPECT_EQ(iterator->value(), value);
        }
      };
      expect_at("hot", StepsOf([&] { iterator->SeekForPrev("hot"); }));
      expect_at("c", StepsOf([&] { iterator->Prev(); }));
      expect_at("hot", StepsOf([&] { iterator->Next(); }));
      expect_at("c", StepsOf([&] { iterator->Prev(); }));
      expect_at("hot", StepsOf([&] { iterator->Seek("d"); }));
      if (is_old) {
        EXPECT_LT(StepsOf([&] { iterator->Next(); }), kMostSteps);
        EXPECT_FALSE(iterator->Valid());
        EXPECT_LT(StepsOf([&] { iterator->SeekToLast(); }), kMostSteps);
        EXPECT_EQ(iterator->key(), "hot");
      } else {
        expect_at("z", StepsOf([&] { iterator->Next(); }));
        expect_at("hot", StepsOf([&] { iterator->Prev(); }));
      }
    }
  }
}

// Some hot keys among others, snapshots between their versions; whatever the versions are, each view has its own.
TEST_P(DbHotKeyTest, EveryMovementInEveryView) {
  Random random(41);
  std::vector<std::string> keys;
  for (int i = 0; i < 12; ++i) keys.push_back(NumberedKey(i));
  for (int i = 0; i < 4; ++i) keys.push_back("8bytes0" + std::to_string(i));  // prefixes say all of these
  const auto write = [&](const std::string& key) {
    if (random.OneIn(40)) {
      ASSERT_OK(db_->Delete({}, key));
      content_.erase(key);
    } else if (GetParam().merges && random.OneIn(3)) {
      const auto value = content_.find(key);
      if (value != content_.end() && value->second.size() > 200) return Put(key, "short");
      Append(key, std::to_string(random.Uniform(10)));
    } else {
      Put(key, std::to_string(random.Next()));
    }
  };
  const int rounds = 60 / std::min(kSlowdown, 4);
  for (int round = 0; round < rounds; ++round) {
    for (const std::string& key : keys) {
      if (random.OneIn(3)) write(key);
    }
    for (int hot = 0; hot < 2; ++hot) {
      const std::string& key = keys[random.Uniform(keys.size())];
      const uint64_t versions = random.OneIn(2) ? random.Uniform(30) : random.Uniform(3000);
      for (uint64_t i = 0; i < versions; ++i) {
        write(key);
        if (random.OneIn(400)) TakeSnapshot();
      }
    }
    if (random.OneIn(4)) {
      const std::string& key = keys[random.Uniform(keys.size())];
      const std::string end = key + '\0';
      ASSERT_OK(db_->DeleteRange({}, key, end));
      content_.erase(key);
    }
    if (random.OneIn(4)) {
      ASSERT_OK(db_->Flush());
    }
    if (random.OneIn(6)) {
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    }
    if (random.OneIn(8)) {  // cursors follow the lists of tables from before an open
      ASSERT_OK(db_->Flush());
      ReleaseSnapshots();
      ASSERT_NO_FATAL_FAILURE(Open());
    }
    TakeSnapshot();
    while (views_.size() > 8) {
      const auto gone = views_.begin() + static_cast<std::ptrdiff_t>(random.Uniform(views_.size() - 1));
      db_->ReleaseSnapshot(gone->snapshot);
      views_.erase(gone);
    }
    for (const View& view : views_) {
      ReadOptions read;
      read.snapshot = view.snapshot;
      read.verify_checksums = random.OneIn(4);
      if (random.OneIn(3)) SetPerfLevel(PerfLevel::kEnableCount);
      ASSERT_TRUE(HoldsExactly(db_.get(), view.content, read)) << "round " << round;
      ReferenceIterator expected(VisiblePairs(view.content, read));
      const auto iterator = db_->NewIterator(read);
      ASSERT_TRUE(WalkTogether(&expected, iterator.get(), keys, 300, &random)) << "round " << round;
      SetPerfLevel(PerfLevel::kDisable);
    }
  }
}

}  // namespace
}  // namespace braiddb::test
