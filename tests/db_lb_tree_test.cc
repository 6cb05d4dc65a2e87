// A database whose last level is an LB+-Tree: keys that begin alike, and opens that find larger ranges than before. The rest is
// tested by what runs with each kind.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/comparator.h"
#include "braiddb/db.h"
#include "braiddb/iterator.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

struct Shape {
  const char* name;
  std::string (*key)(uint64_t number);
};

std::string Printed(const char* format, uint64_t a, uint64_t b = 0) {
  char text[64];
  snprintf(text, sizeof(text), format, static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
  return text;
}

const Shape kShapes[] = {
    {"Numbers", [](uint64_t i) { return Printed("%016llu", i); }},
    {"Tenants", [](uint64_t i) { return Printed("tenant-%04llu/object/%08llu", i % 5, i); }},
    {"LongBeginning", [](uint64_t i) { return std::string(300, 'p') + Printed("%llu", i); }},
    {"Zeros", [](uint64_t i) { return std::string(i % 23, '\0') + (i % 2 == 0 ? Printed("%llu", i) : std::string()); }},
    {"Reversed", [](uint64_t i) { return Printed("user/%016llx", ~(i * i)); }},
    {"Lengths", [](uint64_t i) { return std::string("aaaaaaaabbbbbbbbcccccccc").substr(0, i % 25) + Printed("%llu", i / 25); }},
};

class DbLbTreeTest : public testing::TestWithParam<std::tuple<Shape, bool>> {
 protected:
  void SetUp() override {
    options_.l1 = L1Kind::kLbTree;
    options_.lookup_cache_size = 0;
    if (std::get<1>(GetParam())) options_.comparator = ReverseBytewiseComparator();
    Reopen();
  }
  // Without a close: the open builds the inner nodes from the leaves.
  void Reopen() {
    db_.reset();
    db_ = OpenOrFail(options_, directory_.File("db"));
    ASSERT_NE(db_, nullptr);
  }
  std::string Key(uint64_t number) const { return std::get<0>(GetParam()).key(number); }
  void Put(uint64_t number, const std::string& value) {
    ASSERT_OK(db_->Put({}, Key(number), value));
    content_[Key(number)] = value;
  }
  void Delete(uint64_t number) {
    ASSERT_OK(db_->Delete({}, Key(number)));
    content_.erase(Key(number));
  }
  void Merge() { ASSERT_OK(db_->CompactRange({}, nullptr, nullptr)); }

  // In the order of the comparator.
  std::vector<std::pair<std::string, std::string>> Ordered() const {
    std::vector<std::pair<std::string, std::string>> ordered(content_.begin(), content_.end());
    if (std::get<1>(GetParam())) std::reverse(ordered.begin(), ordered.end());
    return ordered;
  }
  void ExpectContent(uint64_t seed) {
    const auto expected = Ordered();
    const std::unique_ptr<Iterator> iterator = db_->NewIterator({});
    size_t at = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++at) {
      ASSERT_LT(at, expected.size());
      ASSERT_EQ(iterator->key(), expected[at].first);
      ASSERT_EQ(iterator->value(), expected[at].second);
    }
    ASSERT_OK(iterator->status());
    ASSERT_EQ(at, expected.size());
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) ASSERT_EQ(iterator->key(), expected[--at].first);
    ASSERT_EQ(at, 0u);
    Random random(seed);
    for (int i = 0; i < 400; ++i) {
      const std::string key = Key(random.Uniform(kNumbers + 50)) + (random.OneIn(3) ? "x" : "");
      const auto found = content_.find(key);
      ASSERT_EQ(GetOrText(db_.get(), key), found == content_.end() ? "<not found>" : found->second) << key;
      const auto before = [&](const auto& a, const std::string& b) { return options_.comparator->Compare(a.first, b) < 0; };
      const auto behind = std::lower_bound(expected.begin(), expected.end(), key, before);
      iterator->Seek(key);
      ASSERT_EQ(iterator->Valid(), behind != expected.end()) << key;
      if (iterator->Valid()) {
        ASSERT_EQ(iterator->key(), behind->first);
      }
      const bool has_key = behind != expected.end() && behind->first == key;
      iterator->SeekForPrev(key);
      ASSERT_EQ(iterator->Valid(), has_key || behind != expected.begin()) << key;
      if (iterator->Valid()) {
        ASSERT_EQ(iterator->key(), has_key ? key : std::prev(behind)->first);
      }
    }
  }

  static constexpr uint64_t kNumbers = 6000 / kSlowdown;
  TestDirectory directory_;
  Options options_ = TinyOptions(1);
  std::unique_ptr<DB> db_;
  std::map<std::string, std::string> content_;
};

INSTANTIATE_TEST_SUITE_P(Shapes, DbLbTreeTest, testing::Combine(testing::ValuesIn(kShapes), testing::Bool()),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + (std::get<1>(test.param) ? "Reverse" : "");
                         });

// Writes, deletions of single keys and of stretches, merges, closes, and opens without a close. After a stretch was deleted, an
// open finds that the leaf before it has a larger range; later writes go there.
TEST_P(DbLbTreeTest, HasWhatWasWritten) {
  Random random(5);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const uint64_t from = random.Uniform(kNumbers), count = random.Uniform(kNumbers / 3);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t number = round % 2 == 0 ? random.Uniform(kNumbers) : (from + i) % kNumbers;
      Put(number, std::to_string(round) + "/" + std::to_string(i));
      if (random.OneIn(10)) Delete(random.Uniform(kNumbers));
    }
    if (round % 3 == 1) {
      const uint64_t begin = random.Uniform(kNumbers);
      for (uint64_t i = begin; i < std::min(begin + kNumbers / 4, kNumbers); ++i) Delete(i);
    }
    Merge();
    ExpectContent(static_cast<uint64_t>(round));
    if (round % 4 == 2) {
      ASSERT_OK(db_->Close());
    }
    if (round % 2 == 0) {
      Reopen();
      ExpectContent(100 + static_cast<uint64_t>(round));
    }
    if (HasFatalFailure()) return;
  }
  db_.reset();
  EXPECT_TRUE(ChecksAsSound(directory_.File("db")));
}

// Snapshots keep more versions of a key than a leaf has room for, while other keys come and go.
TEST_P(DbLbTreeTest, VersionsOfOneKeyInSeveralLeaves) {
  for (uint64_t i = 0; i < 200; ++i) Put(i, "first");
  std::vector<const Snapshot*> snapshots;
  for (uint64_t version = 0; version < 120; ++version) {
    Put(50, std::to_string(version));
    snapshots.push_back(db_->GetSnapshot());
    if (version % 25 == 0) Merge();
  }
  Merge();
  const auto expect = [&](const char* when) {
    for (uint64_t version = 0; version < snapshots.size(); ++version) {
      if (snapshots[version] == nullptr) continue;
      ReadOptions read;
      read.snapshot = snapshots[version];
      std::string value;
      ASSERT_OK(db_->Get(read, Key(50), &value)) << when;
      ASSERT_EQ(value, std::to_string(version)) << when;
    }
    ExpectContent(1);
  };
  expect("after the merge");
  for (uint64_t version = 0; version < snapshots.size(); ++version) {
    if (version % 3 == 0) continue;
    db_->ReleaseSnapshot(snapshots[version]);
    snapshots[version] = nullptr;
  }
  Put(50, "last");
  Merge();
  expect("after two of three were released");
  for (const Snapshot* snapshot : snapshots) {
    if (snapshot != nullptr) db_->ReleaseSnapshot(snapshot);
  }
  snapshots.clear();
  Put(51, "last");
  Merge();
  expect("after all were released");
}

// Keys that ascend, while those of before go: leaves that become empty are merged, and their space is used again.
TEST(DbLbTreeSpaceTest, AQueueStaysSmall) {
  const TestDirectory directory;
  Options options = TinyOptions(1);
  options.l1 = L1Kind::kLbTree;
  const auto db = OpenOrFail(options, directory.File("db"));
  ASSERT_NE(db, nullptr);
  constexpr uint64_t kKeys = 4000 / kSlowdown;
  uint64_t bytes = 0;
  for (uint64_t round = 0; round < 24; ++round) {
    for (uint64_t i = 0; i < kKeys; ++i) {
      ASSERT_OK(db->Put({}, NumberedKey(round * kKeys + i), "value"));
      if (round > 0) {
        ASSERT_OK(db->Delete({}, NumberedKey((round - 1) * kKeys + i)));
      }
    }
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    ASSERT_TRUE(db->GetIntProperty("braiddb.l1-pm-bytes", &bytes));
    EXPECT_LE(bytes, 1u << 20) << round;
  }
}

// A search has found the leaf, and has not read it, when the leaf is split in place.
class DbLbTreeSplitTest : public testing::Test {
 protected:
  void SetUp() override {
    Options options = TinyOptions(1);
    options.l1 = L1Kind::kLbTree;
    options.lookup_cache_size = 0;
    options.filter_bits_per_key = 0;
    db_ = OpenOrFail(options, directory_.File("db"));
    ASSERT_NE(db_, nullptr);
    for (int i = 0; i < 20; ++i) Put(10 * i);
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    SyncPoints::Instance().SetCallback("LbEntryTree::FoundLeaf", [this](void*) {
      if (std::this_thread::get_id() != reader_ || std::exchange(is_split_, true)) return;
      std::thread([this] {
        for (int i = 0; i < 20; ++i) Put(10 * i + 5);
        EXPECT_OK(db_->CompactRange({}, nullptr, nullptr));
      }).join();
    });
    SyncPoints::Instance().Enable();
  }
  void TearDown() override { SyncPoints::Instance().Clear(); }
  // Their first bytes differ, or the leaf would be replaced by others.
  static std::string Key(int number) { return NumberedKey(static_cast<uint64_t>(number)); }
  void Put(int number) { ASSERT_OK(db_->Put({}, Key(number), "value")); }

  TestDirectory directory_;
  std::unique_ptr<DB> db_;
  const std::thread::id reader_ = std::this_thread::get_id();
  bool is_split_ = false;
};

TEST_F(DbLbTreeSplitTest, AGetFindsTheKey) {
  EXPECT_EQ(GetOrText(db_.get(), Key(190)), "value");
  EXPECT_TRUE(is_split_);
}

TEST_F(DbLbTreeSplitTest, ScansFindAllKeys) {
  for (const bool forward : {true, false}) {
    is_split_ = !forward;  // once is enough
    const std::unique_ptr<Iterator> iterator = db_->NewIterator({});
    std::vector<std::string> found;
    for (forward ? iterator->SeekToFirst() : iterator->SeekToLast(); iterator->Valid();
         forward ? iterator->Next() : iterator->Prev())
      found.emplace_back(iterator->key());
    EXPECT_OK(iterator->status());
    EXPECT_EQ(found.size(), forward ? 20u : 40u);
    EXPECT_TRUE(is_split_);
  }
}

TEST_F(DbLbTreeSplitTest, ASeekFindsTheKey) {
  const std::unique_ptr<Iterator> iterator = db_->NewIterator({});
  iterator->Seek(Key(190));
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), Key(190));
  EXPECT_TRUE(is_split_);
}

}  // namespace
}  // namespace braiddb::test
