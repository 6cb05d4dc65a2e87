// Random operations on a family with timestamps and on a map: both must agree, for each read timestamp and snapshot.
//
// A failure prints the seed; BRAIDDB_MODEL_SEED and BRAIDDB_MODEL_STEPS repeat or extend a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/timestamps.h"

namespace braiddb::test {
namespace {

using Strings = std::vector<std::string>;

struct Version {
  enum class Kind { kPut, kDelete, kSingleDelete } kind;
  std::string value;
};
// The versions of each key, the newest first.
using Versions = std::map<uint64_t, Version, std::greater<>>;
using Content = std::map<std::string, Versions>;

class TimestampModelTest : public testing::TestWithParam<uint32_t> {
 protected:
  struct Frozen {
    const Snapshot* snapshot;
    Content content;
  };

  void SetUp() override { Open(); }
  void TearDown() override { Close(); }

  void Open() {
    Options options = TinyOptions(1 + static_cast<uint32_t>(random_.Uniform(2)));
    if (db_made_) options.regions = 0;
    db_made_ = true;
    options.comparator = BytewiseComparatorWithU64Ts();
    options.l0_compaction_trigger = static_cast<uint32_t>(random_.Range(1, 4));
    db_ = OpenOrFail(options, directory_.File("db"));
    ASSERT_NE(db_, nullptr);
    std::string limit;
    ASSERT_OK(db_->GetFullHistoryTsLow(Family(), &limit));
    ASSERT_EQ(limit, low_ == 0 ? "" : Ts(low_));
  }
  void Close() {
    for (const Frozen& frozen : snapshots_) db_->ReleaseSnapshot(frozen.snapshot);
    snapshots_.clear();
    if (db_ == nullptr) return;
    EXPECT_OK(db_->Close());
    db_.reset();
  }
  ColumnFamilyHandle* Family() { return db_->DefaultColumnFamily(); }

  std::string RandomKey() { return NumberedKey(random_.Skewed(kKeys)); }
  // Mostly a new timestamp, at times one of before.
  uint64_t WriteTime() { return random_.OneIn(4) ? random_.Range(std::max<uint64_t>(low_, 1), now_) : ++now_; }
  uint64_t ReadTime() { return random_.OneIn(3) ? now_ : random_.Range(low_, now_ + 1); }
  std::string NewValue() {
    return random_.OneIn(10) ? PatternedValue(now_, random_.Uniform(3000)) : std::to_string(random_.Next());
  }

  // ---- The model

  static const Version* Seen(const Versions& versions, uint64_t timestamp, uint64_t* found) {
    const auto version = versions.lower_bound(timestamp);
    if (version == versions.end() || version->second.kind != Version::Kind::kPut) return nullptr;
    *found = version->first;
    return &version->second;
  }
  static std::string ExpectedGet(const Content& content, const std::string& key, uint64_t timestamp) {
    uint64_t found = 0;
    const auto versions = content.find(key);
    const Version* const version = versions == content.end() ? nullptr : Seen(versions->second, timestamp, &found);
    return version == nullptr ? "<not found>" : version->value + "@" + std::to_string(found);
  }
  static Strings ExpectedScan(const Content& content, const std::string& begin, const std::string& end, uint64_t timestamp) {
    Strings shown;
    for (auto key = content.lower_bound(begin); key != content.end() && key->first < end; ++key) {
      const std::string got = ExpectedGet(content, key->first, timestamp);
      if (got != "<not found>") shown.push_back(key->first + "=" + got);
    }
    return shown;
  }
  static Strings ExpectedVersions(const Content& content, const std::string& begin, const std::string& end, uint64_t start,
                                  uint64_t timestamp) {
    Strings shown;
    for (auto key = content.lower_bound(begin); key != content.end() && key->first < end; ++key) {
      for (const auto& [at, version] : key->second) {
        if (at > timestamp || at < start) continue;
        const std::string text = version.kind == Version::Kind::kPut      ? "=" + version.value
                                 : version.kind == Version::Kind::kDelete ? "-"
                                                                          : "~";
        shown.push_back(key->first + text + "@" + std::to_string(at));
      }
    }
    return shown;
  }
  void DeleteRangeInModel(const std::string& begin, const std::string& end, uint64_t timestamp) {
    for (auto key = model_.lower_bound(begin); key != model_.end() && key->first < end; ++key) {
      uint64_t found = 0;
      if (Seen(key->second, timestamp, &found) != nullptr) key->second[timestamp] = {Version::Kind::kDelete, ""};
    }
  }

  // ---- Operations

  void Put() {
    const std::string key = RandomKey(), value = NewValue();
    const uint64_t timestamp = WriteTime();
    ASSERT_OK(db_->PutAt({}, Family(), key, Ts(timestamp), value));
    model_[key][timestamp] = {Version::Kind::kPut, value};
  }
  void Delete() {
    const std::string key = RandomKey();
    const uint64_t timestamp = WriteTime();
    const bool is_single = random_.OneIn(2);
    ASSERT_OK(is_single ? db_->SingleDeleteAt({}, Family(), key, Ts(timestamp))
                        : db_->DeleteAt({}, Family(), key, Ts(timestamp)));
    model_[key][timestamp] = {is_single ? Version::Kind::kSingleDelete : Version::Kind::kDelete, ""};
  }
  std::pair<std::string, std::string> NewRange() {
    const uint64_t begin = random_.Uniform(kKeys);
    return {NumberedKey(begin), NumberedKey(begin + random_.Uniform(10))};
  }
  void DeleteRange() {
    const auto [begin, end] = NewRange();
    const uint64_t timestamp = WriteTime();
    ASSERT_OK(db_->DeleteRangeAt({}, Family(), begin, end, Ts(timestamp)));
    DeleteRangeInModel(begin, end, timestamp);
  }
  // All updates of a batch have one timestamp, as in a program that gives one to each commit.
  void Batch() {
    WriteBatch batch;
    const uint64_t timestamp = WriteTime();
    for (uint64_t i = random_.Uniform(20); i > 0; --i) {
      const std::string key = RandomKey(), value = NewValue();
      if (random_.OneIn(6)) {
        const auto [begin, end] = NewRange();
        batch.DeleteRangeAt(nullptr, begin, end, Ts(timestamp));
        DeleteRangeInModel(begin, end, timestamp);
      } else if (random_.OneIn(3)) {
        batch.DeleteAt(nullptr, key, Ts(timestamp));
        model_[key][timestamp] = {Version::Kind::kDelete, ""};
      } else {
        batch.PutAt(nullptr, key, Ts(timestamp), value);
        model_[key][timestamp] = {Version::Kind::kPut, value};
      }
    }
    ASSERT_OK(db_->Write({}, batch));
  }
  void Snapshots() {
    if (snapshots_.size() < 4) {
      snapshots_.push_back({db_->GetSnapshot(), model_});
    } else {
      const size_t i = random_.Uniform(snapshots_.size());
      db_->ReleaseSnapshot(snapshots_[i].snapshot);
      snapshots_.erase(snapshots_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  const Content& PickView(const Snapshot** snapshot) {
    *snapshot = nullptr;
    if (snapshots_.empty() || random_.OneIn(2)) return model_;
    const Frozen& frozen = snapshots_[random_.Uniform(snapshots_.size())];
    *snapshot = frozen.snapshot;
    return frozen.content;
  }
  void Gets() {
    const Snapshot* snapshot = nullptr;
    const Content& content = PickView(&snapshot);
    const uint64_t timestamp = ReadTime();
    const ReadAt options(timestamp, snapshot);
    Strings keys, values, timestamps;
    for (int i = 0; i < 10; ++i) keys.push_back(RandomKey());
    const std::vector<Slice> wanted(keys.begin(), keys.end());
    const auto statuses =
        db_->MultiGetAt(options, std::vector<ColumnFamilyHandle*>(keys.size(), Family()), wanted, &values, &timestamps);
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::string expected = ExpectedGet(content, keys[i], timestamp);
      ASSERT_EQ(GetAtOrText(db_.get(), keys[i], options), expected) << keys[i] << " at " << timestamp;
      ASSERT_EQ(statuses[i].ok() ? values[i] + "@" + std::to_string(NumberOf(timestamps[i])) : "<not found>", expected);
      PinnableSlice pinned;
      const Status status = db_->Get(options, Family(), keys[i], &pinned);
      if (status.ok()) {
        ASSERT_EQ(pinned.ToString(), values[i]);
      }
      ASSERT_EQ(status.ok(), statuses[i].ok());
    }
  }
  void Scan() {
    const Snapshot* snapshot = nullptr;
    const Content& content = PickView(&snapshot);
    const auto [begin, end] = random_.OneIn(2) ? NewRange() : std::make_pair(std::string(), std::string("z"));
    const uint64_t timestamp = ReadTime();
    const bool shows_versions = random_.OneIn(2);
    const uint64_t start = random_.Range(low_, timestamp);
    ReadAt options(start, timestamp, snapshot);
    if (!shows_versions) options->iter_start_ts.reset();
    options->iterate_lower_bound = begin;
    options->iterate_upper_bound = end;
    Strings expected =
        shows_versions ? ExpectedVersions(content, begin, end, start, timestamp) : ExpectedScan(content, begin, end, timestamp);
    ASSERT_EQ(ScanAt(db_.get(), options), expected) << "from " << start << " to " << timestamp;
    std::reverse(expected.begin(), expected.end());
    ASSERT_EQ(ScanAt(db_.get(), options, false), expected) << "from " << start << " to " << timestamp;
  }
  // Random movements of one iterator.
  void Walk() {
    const Snapshot* snapshot = nullptr;
    const Content& content = PickView(&snapshot);
    const uint64_t timestamp = ReadTime();
    const Strings expected = ExpectedScan(content, "", "z", timestamp);
    const auto key_of = [](const std::string& shown) { return shown.substr(0, shown.find('=')); };
    const ReadAt options(timestamp, snapshot);
    const auto iterator = db_->NewIterator(options);
    auto position = expected.end();
    for (int step = 0; step < 30; ++step) {
      const std::string target = RandomKey();
      const uint64_t choice = random_.Uniform(position == expected.end() ? 3 : 9);
      const auto at_or_after =
          std::find_if(expected.begin(), expected.end(), [&](const auto& shown) { return key_of(shown) >= target; });
      if (choice == 0) {
        iterator->Seek(target);
        position = at_or_after;
      } else if (choice == 1) {
        iterator->SeekForPrev(target);
        const bool is_there = at_or_after != expected.end() && key_of(*at_or_after) == target;
        position = is_there ? at_or_after : at_or_after == expected.begin() ? expected.end() : std::prev(at_or_after);
      } else if (choice == 2) {
        iterator->SeekToLast();
        position = expected.empty() ? expected.end() : std::prev(expected.end());
      } else if (choice < 6) {
        iterator->Next();
        ++position;
      } else {
        iterator->Prev();
        position = position == expected.begin() ? expected.end() : std::prev(position);
      }
      ASSERT_OK(iterator->status());
      ASSERT_EQ(iterator->Valid(), position != expected.end()) << "choice " << choice << ", step " << step;
      if (iterator->Valid()) {
        ASSERT_EQ(Shown(*iterator, false), *position) << "choice " << choice << ", step " << step;
      }
    }
  }
  void Flush() { ASSERT_OK(db_->Flush()); }
  void Compact() { ASSERT_OK(db_->CompactRange({}, nullptr, nullptr)); }
  void Increase() {
    if (now_ < 50) return;
    const uint64_t low = random_.Range(low_, now_ - 20);
    if (low == 0) return;
    ASSERT_OK(db_->IncreaseFullHistoryTsLow(Family(), Ts(low)));
    low_ = low;
    if (low > 1) {
      ASSERT_CODE(db_->NewIterator(ReadAt(low - 1))->status(), kInvalidArgument);
    }
  }
  void Reopen() {
    Close();
    Open();
  }

  struct Operation {
    uint32_t weight;
    void (TimestampModelTest::*run)();
  };
  static const Operation kOperations[12];
  static constexpr size_t kKeys = 60;

  const uint64_t seed_ = EnvNumber("BRAIDDB_MODEL_SEED", GetParam());
  Random random_{seed_};
  TestDirectory directory_;
  bool db_made_ = false;
  std::unique_ptr<DB> db_;
  Content model_;
  std::vector<Frozen> snapshots_;
  uint64_t now_ = 1;
  uint64_t low_ = 0;
};

const TimestampModelTest::Operation TimestampModelTest::kOperations[12] = {
    {60, &TimestampModelTest::Put},    {15, &TimestampModelTest::Delete},   {3, &TimestampModelTest::DeleteRange},
    {6, &TimestampModelTest::Batch},   {3, &TimestampModelTest::Snapshots}, {8, &TimestampModelTest::Gets},
    {6, &TimestampModelTest::Scan},    {6, &TimestampModelTest::Walk},      {2, &TimestampModelTest::Flush},
    {1, &TimestampModelTest::Compact}, {1, &TimestampModelTest::Increase},  {1, &TimestampModelTest::Reopen},
};

TEST_P(TimestampModelTest, AgreesWithAMap) {
  uint32_t weights = 0;
  for (const Operation& operation : kOperations) weights += operation.weight;
  const uint64_t steps = EnvNumber("BRAIDDB_MODEL_STEPS", 4000 / kSlowdown);
  for (uint64_t step = 0; step < steps; ++step) {
    uint64_t choice = random_.Uniform(weights);
    const Operation* operation = kOperations;
    for (; choice >= operation->weight; ++operation) choice -= operation->weight;
    (this->*operation->run)();
    if (HasFatalFailure()) FAIL() << "seed " << seed_ << ", step " << step << ", operation " << operation - kOperations;
  }
  if (low_ > 0) Compact();
  Scan();
}

INSTANTIATE_TEST_SUITE_P(Seeds, TimestampModelTest, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace braiddb::test
