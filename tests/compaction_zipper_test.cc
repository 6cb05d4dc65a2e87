// Zipper compaction without a database: what a merge leaves, and what readers see meanwhile.
#include <gtest/gtest.h>

#include "tests/support/merge_case.h"

namespace braiddb::test {
namespace {

class ZipperTest : public testing::TestWithParam<uint32_t> {
 protected:
  LevelStore& store() { return merge_.store(); }
  uint64_t DeadCounted() {
    uint64_t dead = 0;
    store().segments()->ForEachLog([&](Segment* segment) { dead += segment->dead_entries; });
    return dead;
  }
  // Sequence numbers of the last level, in its order.
  std::vector<uint64_t> LastLevel() { return LevelStore::Sequences(store().Dump(store().l1())); }

  MergeCase merge_{GetParam()};
  Random random_{51};
};

INSTANTIATE_TEST_SUITE_P(Regions, ZipperTest, testing::Values(1, 2, 4));

TEST_P(ZipperTest, MergesOfRandomTables) {
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::vector<uint64_t> snapshots;
    for (uint64_t tables = random_.Range(1, 4); tables > 0; --tables) {
      merge_.AddTable(merge_.Draw(&random_, random_.Skewed(400), random_.OneIn(3) ? 10 : 500, random_.Range(2, 6)));
      if (random_.OneIn(2)) snapshots.push_back(merge_.NextSequence());
    }
    if (random_.OneIn(2)) snapshots.push_back(random_.Uniform(merge_.NextSequence()));
    const uint64_t dead = DeadCounted();
    const auto expected = merge_.Expected(snapshots);
    merge_.Merge(snapshots);
    EXPECT_EQ(DeadCounted() - dead, expected.dead.size());
    if (HasFailure()) return;
  }
}

// Many chunks, several of them scanned ahead on other threads.
TEST_P(ZipperTest, MergesOfManyChunks) {
  const size_t count = 30'000 / kSlowdown;
  merge_.AddTable(merge_.Draw(&random_, count, count, 8));
  merge_.Merge({});
  merge_.AddTable(merge_.Draw(&random_, count / 2, count, 4));
  merge_.AddTable(merge_.Draw(&random_, count / 2, 2 * count, 4));
  const auto expected = merge_.Expected({});
  const uint64_t dead = DeadCounted();
  ASSERT_OK(merge_.Run({}, PmPtr(), nullptr, nullptr, 3));
  merge_.ExpectMerged(expected);
  merge_.Forget(expected);
  EXPECT_EQ(DeadCounted() - dead, expected.dead.size());
  // Few entries, far apart: the scan starts on upper layers.
  merge_.AddTable(merge_.Draw(&random_, 25, 2 * count, 4));
  merge_.Merge({});
}

TEST_P(ZipperTest, NothingToMerge) {
  merge_.Merge({});
  merge_.AddTable({});
  merge_.Merge({});
  merge_.FillLastLevel({{"a"}, {"b"}});
  merge_.AddTable({});
  merge_.AddTable({});
  merge_.Merge({});
}

TEST_P(ZipperTest, BeforeBehindAndBetween) {
  merge_.FillLastLevel({{"d"}, {"f"}});
  merge_.AddTable({{"a"}, {"b"}});
  merge_.AddTable({{"x"}, {"y"}});
  merge_.AddTable({{"e"}, {""}});
  merge_.Merge({});
  EXPECT_EQ(LastLevel().size(), 8u);
}

// Sequence numbers go 1, 2, 3, … in the order in which versions are listed here.
TEST_P(ZipperTest, WhichVersionsStay) {
  struct Case {
    const char* name;
    std::vector<std::vector<bool>> tables;  // versions of one key, true: a tombstone; the first table is the last level
    std::vector<uint64_t> snapshots;
    std::vector<uint64_t> stay;
  };
  const std::vector<Case> cases = {
      {"an overwrite takes the place", {{false}, {false}}, {}, {2}},
      {"a snapshot keeps what it sees", {{false}, {false}}, {1}, {2, 1}},
      {"a snapshot of the newest keeps nothing else", {{false}, {false}}, {2}, {2}},
      {"a delete leaves nothing", {{false}, {true}}, {}, {}},
      {"a delete that a snapshot does not see yet stays", {{false}, {true}}, {1}, {2, 1}},
      {"a delete of nothing leaves nothing", {{}, {true}}, {}, {}},
      {"a snapshot of a delete of nothing needs no tombstone", {{}, {true}}, {1}, {}},
      {"of two tombstones none stays", {{false}, {true}, {true}}, {}, {}},
      {"between a delete and a put", {{false}, {true, false}}, {2}, {3}},
      {"a snapshot of the first put needs the delete only if it is seen", {{false}, {true, false}}, {1}, {3, 1}},
      {"all three are seen", {{false}, {true, false}}, {1, 2}, {3, 2, 1}},
      {"several tables, newest wins", {{}, {false}, {false}, {false}}, {}, {3}},
      {"several tables, one snapshot between", {{}, {false}, {false}, {false}}, {2}, {3, 2}},
      {"a put after a delete in tables only", {{}, {false}, {true}, {false}}, {}, {3}},
      {"put, delete, snapshot, put", {{}, {false}, {true}, {false}}, {2}, {3}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    MergeCase merge(GetParam());
    // Neighbours before and behind, and towers of all kinds.
    const auto versions = [&](const std::vector<bool>& tombstones) {
      std::vector<Version> result;
      for (const bool tombstone : tombstones) {
        result.push_back(
            {"k", 0, tombstone, static_cast<uint32_t>(random_.Uniform(GetParam())), static_cast<uint32_t>(random_.Range(1, 4))});
      }
      return result;
    };
    merge.FillLastLevel(versions(c.tables[0]));
    for (size_t i = 1; i < c.tables.size(); ++i) merge.AddTable(versions(c.tables[i]));
    merge.Merge(c.snapshots);
    EXPECT_EQ(LevelStore::Sequences(merge.store().Dump(merge.store().l1())), c.stay);
  }
}

// The last level and the tables have next to nothing in common: each is in a region of its own.
TEST_P(ZipperTest, RegionsThatHaveNextToNothing) {
  const uint32_t last_region = GetParam() - 1;
  const auto move = [](std::vector<Version> versions, uint32_t region) {
    for (Version& version : versions) version.region = region;
    return versions;
  };
  merge_.FillLastLevel(move(merge_.Draw(&random_, 3000, 4000, 8), 0));
  merge_.AddTable(move(merge_.Draw(&random_, 300, 4000, 4), last_region));
  merge_.Merge({});
  merge_.AddTable(move(merge_.Draw(&random_, 2, 4000, 4), last_region));
  merge_.Merge({});
  merge_.AddTable(move(merge_.Draw(&random_, 4000, 4000, 2), 0));
  merge_.Merge({});
}

// ---- Sweeping

TEST_P(ZipperTest, ASweepTakesWhatNobodySeesAnyMore) {
  merge_.FillLastLevel(merge_.Draw(&random_, 3000, 500, 4));
  std::map<std::string, std::vector<Version>> by_key;
  for (const Version& version : merge_.in_last_level()) by_key[version.key].push_back(version);
  const std::string from = NumberedKey(100), to = NumberedKey(300);
  const Slice begin(from), end(to);
  struct Range {
    const Slice* begin;
    const Slice* end;
    std::vector<uint64_t> snapshots;
  };
  const std::vector<uint64_t> some = {700, 1500};
  for (const Range& range : {Range{&begin, &end, some}, Range{nullptr, &begin, {}}, Range{&end, nullptr, some},
                             Range{nullptr, nullptr, {}}, Range{nullptr, nullptr, {}}}) {
    MergeCase::Outcome expected;
    for (auto& [key, versions] : by_key) {
      const bool inside = (range.begin == nullptr || key >= *range.begin) && (range.end == nullptr || key < *range.end);
      if (inside && !versions.empty()) {
        const std::vector<Version> stay = SeenOf(versions, range.snapshots, true);
        for (const Version& version : versions) {
          if (std::find(stay.begin(), stay.end(), version) == stay.end()) expected.dead.insert(version.sequence);
        }
        versions = stay;
      }
      expected.last_level.insert(expected.last_level.end(), versions.begin(), versions.end());
    }
    MergeStats stats;
    ASSERT_OK(merge_.Sweep(range.snapshots, range.begin, range.end, &stats));
    merge_.ExpectMerged(expected);
    EXPECT_EQ(stats.unlinked, expected.dead.size());
    EXPECT_EQ(stats.merged + stats.dropped, 0u);
  }
}

// ---- Readers

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
