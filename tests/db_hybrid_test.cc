// A database whose last level is a hybrid index: what is its own; the rest is tested by what runs with each kind.
#include <gtest/gtest.h>

#include <atomic>
#include <cctype>
#include <map>
#include <string>
#include <thread>

#include "braiddb/check.h"
#include "braiddb/comparator.h"
#include "braiddb/db.h"
#include "braiddb/iterator.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

using Content = std::map<std::string, std::string>;

class DbHybridTest : public DbTest {
 protected:
  void SetUp() override {
    options_.l1 = L1Kind::kHybrid;
    options_.lookup_cache_size = 0;
    options_.filter_bits_per_key = 0;  // to fill a filter, the database iterates over the level
    SyncPoints::Instance().SetCallback("OrderedIndex::Build", [this](void*) { ++builds_; });
    SyncPoints::Instance().Enable();
    DbTest::SetUp();
  }
  void TearDown() override {
    db_.reset();
    SyncPoints::Instance().Clear();
  }
  void Write(uint64_t from, uint64_t to, const std::string& text, Content* content) {
    for (uint64_t i = from; i < to; ++i) {
      ASSERT_OK(db_->Put({}, NumberedKey(i), text + std::to_string(i)));
      (*content)[NumberedKey(i)] = text + std::to_string(i);
    }
  }
  void Merge() { ASSERT_OK(db_->CompactRange({}, nullptr, nullptr)); }
  uint64_t DramOfLevel() {
    uint64_t bytes = 0;
    EXPECT_TRUE(db_->GetIntProperty("braiddb.l1-dram-bytes", &bytes));
    return bytes;
  }
  void ExpectContent(const Content& content) {
    const std::unique_ptr<Iterator> iterator = db_->NewIterator({});
    auto expected = content.begin();
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++expected) {
      ASSERT_NE(expected, content.end());
      ASSERT_EQ(iterator->key(), expected->first);
      ASSERT_EQ(iterator->value(), expected->second);
    }
    ASSERT_OK(iterator->status());
    EXPECT_EQ(expected, content.end());
  }

  std::atomic<uint64_t> builds_{0};
};

INSTANTIATE_TEST_SUITE_P(Regions, DbHybridTest, testing::Values(1, 2),
                         [](const auto& test) { return std::to_string(test.param); });

// With l1_index_size 0 gets need no DRAM that grows with the keys. The first iterator builds the ordered index.
TEST_P(DbHybridTest, GetsNeedNoIndexInDram) {
  constexpr uint64_t kKeys = 60'000 / kSlowdown;
  options_.l1_index_size = 0;
  Reopen();
  Content content;
  Write(0, kKeys, "a", &content);
  Merge();
  Reopen();
  builds_ = 0;
  for (uint64_t i = 0; i < kKeys; i += 7) ASSERT_EQ(GetOrText(db_.get(), NumberedKey(i)), content[NumberedKey(i)]);
  EXPECT_EQ(GetOrText(db_.get(), "no such key"), "<not found>");
  EXPECT_LT(DramOfLevel(), 64u << 10);
  EXPECT_EQ(builds_, 0u);
  ExpectContent(content);
  EXPECT_EQ(builds_, 1u);
  EXPECT_GT(DramOfLevel(), kKeys * 16);
}

// Later indexes are made of the one before and of the changes of a merge or a sweep. Only a merge that was stopped and resumed
// has an index built anew.
TEST_P(DbHybridTest, MergesChangeTheOrderedIndex) {
  Content content;
  Write(0, 3000, "a", &content);
  Merge();
  ExpectContent(content);
  const uint64_t builds = builds_;
  Random random(3);
  for (int round = 0; round < 12; ++round) {
    const uint64_t from = random.Uniform(6000);
    Write(from, from + random.Uniform(2000), "b" + std::to_string(round), &content);
    const std::string begin = NumberedKey(random.Uniform(6000)), end = NumberedKey(random.Uniform(6000));
    if (begin < end && round % 3 == 0) {
      ASSERT_OK(db_->DeleteRange({}, begin, end));
      content.erase(content.lower_bound(begin), content.lower_bound(end));
    }
    for (int i = 0; i < 200; ++i) {
      const std::string key = NumberedKey(random.Uniform(8000));
      ASSERT_OK(db_->Delete({}, key));
      content.erase(key);
    }
    Merge();
    ExpectContent(content);
  }
  EXPECT_LE(builds_, builds + 3) << "of at least 12 merges";
  db_.reset();
  EXPECT_TRUE(ChecksAsSound(directory_.File("db")));
}

// Equal keys have different bytes, so their signatures differ.
class AnyCaseComparator final : public Comparator {
 public:
  const char* Name() const override { return "any case"; }
  int Compare(Slice a, Slice b) const override { return Lower(a).compare(Lower(b)); }

 private:
  static std::string Lower(Slice key) {
    std::string text(key);
    for (char& byte : text) byte = static_cast<char>(std::tolower(static_cast<unsigned char>(byte)));
    return text;
  }
};

TEST_P(DbHybridTest, EqualKeysMayHaveDifferentBytes) {
  static const AnyCaseComparator comparator;
  options_.comparator = &comparator;
  db_.reset();
  ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
  Reopen();
  for (int i = 0; i < 500; ++i) ASSERT_OK(db_->Put({}, "Key" + std::to_string(i), "old"));
  Merge();
  for (int i = 0; i < 500; i += 2) ASSERT_OK(db_->Put({}, "kEY" + std::to_string(i), "new"));
  for (int i = 1; i < 500; i += 4) ASSERT_OK(db_->Delete({}, "KEY" + std::to_string(i)));
  Merge();
  for (const bool reopens : {false, true}) {
    if (reopens) Reopen();
    for (int i = 0; i < 500; ++i) {
      const std::string expected = i % 2 == 0 ? "new" : i % 4 == 1 ? "<not found>" : "old";
      ASSERT_EQ(GetOrText(db_.get(), "key" + std::to_string(i)), expected) << i;
    }
    int count = 0;
    const std::unique_ptr<Iterator> iterator = db_->NewIterator({});
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++count;
    EXPECT_EQ(count, 375);
  }
}

// While merges split and join pages of the hash index.
TEST_P(DbHybridTest, ReadersFindEachKeyWhileMergesChangeThePages) {
  constexpr uint64_t kKeys = 20'000 / kSlowdown;
  Content content;
  Write(0, kKeys, "a", &content);
  Merge();
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> reads{0};
  std::vector<std::thread> readers;
  for (uint64_t reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&, reader] {
      Random random(reader);
      while (!stop && !HasFailure()) {
        const uint64_t i = random.Uniform(kKeys);
        std::string value;
        ASSERT_OK(db_->Get({}, NumberedKey(i), &value)) << i;
        ASSERT_EQ(value.substr(1), std::to_string(i));
        ++reads;
      }
    });
  }
  for (int round = 0; round < 3; ++round) {
    Content more;
    Write(0, kKeys, std::string(1, static_cast<char>('b' + round)), &content);
    Write(kKeys, 4 * kKeys, "x", &more);
    Merge();
    for (uint64_t i = kKeys; i < 4 * kKeys; ++i) ASSERT_OK(db_->Delete({}, NumberedKey(i)));
    Merge();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(reads, 0u);
  ExpectContent(content);
}

}  // namespace
}  // namespace braiddb::test
