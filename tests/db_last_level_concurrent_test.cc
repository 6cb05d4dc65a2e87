// Readers beside merges and sweeps that split, replace and empty the leaves or pages of a last level. TSan runs it.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/iterator.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

// The keys begin alike. Kept keys are always there, and their values only grow; others come and go between them.
class DbLastLevelConcurrentTest : public testing::TestWithParam<L1Kind> {
 protected:
  static constexpr int kKept = 150;
  static constexpr int kBetween = 60;
  static constexpr const char* kBeginning = "tenant-0042/object/";

  void SetUp() override {
    Options options = TinyOptions(1);
    options.l1 = GetParam();
    options.lookup_cache_size = 0;
    options.filter_bits_per_key = 0;
    db_ = OpenOrFail(options, directory_.File("db"));
    ASSERT_NE(db_, nullptr);
    for (int i = 0; i < kKept; ++i) PutKept(i);
  }
  static std::string Key(int number) {
    const std::string digits = std::to_string(number);
    return kBeginning + std::string(8 - digits.size(), '0') + digits;
  }
  static std::string Kept(int i) { return Key(i * (kBetween + 1)) + "!"; }
  void PutKept(int i) {
    const uint32_t value = acknowledged_[static_cast<size_t>(i)] + 1;
    ASSERT_OK(db_->Put({}, Kept(i), std::to_string(value)));
    acknowledged_[static_cast<size_t>(i)] = value;
  }
  uint32_t Acknowledged(int i) const { return acknowledged_[static_cast<size_t>(i)]; }

  void Write() {
    Random random(11);
    for (int round = 0; round < 12 / (kSlowdown > 1 ? 2 : 1); ++round) {
      const int end = kKept * (kBetween + 1);
      for (int i = static_cast<int>(random.Uniform(7)); i < end; i += 1 + static_cast<int>(random.Uniform(4))) {
        ASSERT_OK(round % 3 == 2 ? db_->Delete({}, Key(i)) : db_->Put({}, Key(i), "between"));
        if (i % 5 == 0) PutKept(static_cast<int>(random.Uniform(kKept)));
      }
      if (round % 3 == 2) {
        ASSERT_OK(db_->DeleteRange({}, Key(end / 3), Key(end / 2)));
        for (int i = 0; i < kKept; ++i) PutKept(i);
      }
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    }
  }
  void Get(uint64_t seed) {
    for (Random random(seed); !done_;) {
      const int i = static_cast<int>(random.Uniform(kKept));
      const uint32_t least = Acknowledged(i);
      std::string value;
      const Status status = db_->Get({}, Kept(i), &value);
      if (status.IsNotFound() && InRange(i)) continue;  // DeleteRange takes kept keys away for a moment
      ASSERT_OK(status);
      if (!InRange(i)) {
        ASSERT_GE(std::stoul(value), least) << Kept(i);
      }
    }
  }
  void Scan() {
    for (bool forward = true; !done_; forward = !forward) {
      const std::unique_ptr<Iterator> iterator = db_->NewIterator({});
      std::string last;
      int kept = 0;
      for (forward ? iterator->SeekToFirst() : iterator->SeekToLast(); iterator->Valid();
           forward ? iterator->Next() : iterator->Prev()) {
        const std::string key(iterator->key());
        ASSERT_TRUE(last.empty() || (forward ? last < key : last > key)) << key;
        last = key;
        kept += key.back() == '!' &&
                !InRange(static_cast<int>(std::stoul(key.substr(std::string(kBeginning).size())) / (kBetween + 1)));
      }
      ASSERT_OK(iterator->status());
      ASSERT_EQ(kept, kOutside) << (forward ? "forward" : "backward");
    }
  }
  // Whether the range deletions of Write take the kept key.
  static bool InRange(int i) {
    constexpr int kEnd = kKept * (kBetween + 1);
    return Kept(i) >= Key(kEnd / 3) && Kept(i) < Key(kEnd / 2);
  }

  static inline const int kOutside = [] {
    int outside = 0;
    for (int i = 0; i < kKept; ++i) outside += !InRange(i);
    return outside;
  }();
  TestDirectory directory_;
  std::unique_ptr<DB> db_;
  std::array<std::atomic<uint32_t>, kKept> acknowledged_ = {};
  std::atomic<bool> done_{false};
};

INSTANTIATE_TEST_SUITE_P(Kinds, DbLastLevelConcurrentTest,
                         testing::Values(L1Kind::kBraidedSkipList, L1Kind::kNvTree, L1Kind::kHybrid, L1Kind::kLbTree),
                         [](const auto& test) { return NameOfL1(static_cast<uint8_t>(test.param)).substr(1); });

TEST_P(DbLastLevelConcurrentTest, ReadersFindWhatIsThere) {
  std::vector<std::thread> readers;
  readers.emplace_back([this] { Get(1); });
  readers.emplace_back([this] { Get(2); });
  readers.emplace_back([this] { Scan(); });
  Write();
  done_ = true;
  for (std::thread& reader : readers) reader.join();
  for (int i = 0; i < kKept; ++i) EXPECT_EQ(GetOrText(db_.get(), Kept(i)), std::to_string(Acknowledged(i)));
  ASSERT_OK(db_->Close());
  db_.reset();
  EXPECT_TRUE(ChecksAsSound(directory_.File("db")));
}

}  // namespace
}  // namespace braiddb::test
