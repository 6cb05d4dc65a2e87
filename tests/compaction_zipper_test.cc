// Zipper compaction without a database: what readers see at each of its stores. What it leaves: compaction_last_level_test.cc.
#include <gtest/gtest.h>

#include "tests/support/merge_case.h"

namespace braiddb::test {
namespace {

class ZipperTest : public testing::TestWithParam<uint32_t> {
 protected:
  LevelStore& store() { return merge_.store(); }

  MergeCase merge_{GetParam()};
  Random random_{51};
};

INSTANTIATE_TEST_SUITE_P(Regions, ZipperTest, testing::Values(1, 2, 4));

// Does the stores of each batch one by one and lets `look` look after each, before the merge does them itself.
class EveryStore final : public PersistObserver {
 public:
  EveryStore(RegionSet* regions, std::function<void()> look) : regions_(regions), look_(std::move(look)) {
    uint64_t bytes = 0;
    journal_ = static_cast<const uint8_t*>(regions->Metadata(0, MetadataSlot::kMergeJournal, &bytes));
    journal_end_ = journal_ + bytes;
    regions->persistence()->SetObserver(this);
  }
  ~EveryStore() override { regions_->persistence()->SetObserver(nullptr); }

  void OnFlush(const void* address, size_t) override {
    const auto* at = static_cast<const uint8_t*>(address);
    if (at >= journal_ && at < journal_end_) record_ = static_cast<const uint64_t*>(address);
  }
  void OnDrain() override {
    if (record_ == nullptr) return;
    const uint64_t count = record_[3];  // docs/FORMAT.md
    const auto* stores = reinterpret_cast<const JournalStore*>(record_ + 8);
    record_ = nullptr;
    for (uint64_t i = 0; i < count; ++i) {
      StoreRelease(regions_->Resolve<uint64_t>(PmPtr(stores[i].address)), stores[i].value);
      look_();
      ++stores_;
    }
  }
  uint64_t stores() const { return stores_; }

 private:
  RegionSet* const regions_;
  const std::function<void()> look_;
  const uint8_t* journal_;
  const uint8_t* journal_end_;
  const uint64_t* record_ = nullptr;
  uint64_t stores_ = 0;
};

// After each store of a merge, readers of now and of registered snapshots find in tables and last level what they found before.
TEST_P(ZipperTest, ReadersFindTheSameAfterEveryStore) {
  constexpr uint64_t kKeys = 60;
  for (int round = 0; round < 6; ++round) {
    merge_.FillLastLevel(merge_.Draw(&random_, 80, kKeys, 4));
    std::vector<uint64_t> readers = {kMaxSequence, merge_.NextSequence()};
    for (int table = 0; table < 3; ++table) {
      merge_.AddTable(merge_.Draw(&random_, 50, kKeys, 4));
      if (random_.OneIn(2)) readers.push_back(merge_.NextSequence());
    }
    std::map<std::pair<std::string, uint64_t>, uint64_t> answers;  // key, reader: sequence number of the answer, 0 if none
    const auto look = [&](bool first) {
      for (const uint64_t reader : readers) {
        for (uint64_t number = 0; number < kKeys; ++number) {
          const std::string key = NumberedKey(number);
          const SearchKey target(store().order(), key, reader);
          LookupTrace trace;
          const LogEntry* found = nullptr;
          for (size_t i = merge_.tables().size(); i-- > 0 && found == nullptr;)
            found = merge_.tables()[i]->list.Find(target, &trace);
          if (found == nullptr) found = store().l1().Find(target, &trace);
          const uint64_t answer = found == nullptr || found->type() == EntryType::kDelete ? 0 : found->sequence();
          uint64_t& expected = answers[{key, reader}];
          if (first) expected = answer;
          ASSERT_EQ(answer, expected) << key << " at " << reader;
        }
      }
    };
    look(true);
    const std::vector<uint64_t> snapshots(readers.begin() + 1, readers.end());
    EveryStore every(store().regions(), [&] {
      if (!HasFatalFailure()) look(false);
    });
    merge_.Merge(snapshots);
    EXPECT_GT(every.stores(), 100u);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace braiddb::test
