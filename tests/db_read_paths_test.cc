// All ways to read a key give the same answer: gets by the short paths, measured, verified and as of a snapshot, MultiGet, pinned
// values, iterators. The states are random; a std::map says what is right.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/perf_context.h"
#include "tests/support/db_fixture.h"
#include "tests/support/merge_operators.h"

namespace braiddb::test {
namespace {

constexpr int kKeys = 200;
constexpr int kRounds = 60 / kSlowdown;
constexpr int kUpdatesPerRound = 60;

struct Variant {
  const char* name;
  MemtableKind memtable;
  uint64_t lookup_cache_size;
  uint32_t filter_bits_per_key;
};

class DbReadPathsTest : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    options_.memtable = GetParam().memtable;
    options_.lookup_cache_size = GetParam().lookup_cache_size;
    options_.filter_bits_per_key = GetParam().filter_bits_per_key;
    options_.merge_operator = std::make_shared<AppendOperator>();
    options_.create_missing_column_families = true;
    Open();
  }
  void TearDown() override { SetPerfLevel(PerfLevel::kDisable); }

  void Open() {
    family_.clear();
    db_.reset();
    options_.disable_auto_compaction = random_.OneIn(2);
    const ColumnFamilyOptions of_each(options_);
    const std::vector<ColumnFamilyDescriptor> families{{kDefaultColumnFamilyName, of_each}, {"other", of_each}};
    ASSERT_OK(DB::Open(options_, directory_.File("db"), families, &family_, &db_));
  }
  ColumnFamilyHandle* AnyFamily(size_t* number) {
    *number = random_.Uniform(family_.size());
    return family_[*number].get();
  }

  void Update() {
    size_t number = 0;
    ColumnFamilyHandle* const family = AnyFamily(&number);
    auto& model = models_[number];
    const uint64_t first = random_.Uniform(kKeys);
    const std::string key = NumberedKey(first), value = std::to_string(updates_++) + " ";
    if (random_.Percent(65)) {
      ASSERT_OK(db_->Put({}, family, key, value));
      model[key] = value;
    } else if (random_.Percent(60)) {
      ASSERT_OK(db_->Delete({}, family, key));
      model.erase(key);
    } else if (random_.Percent(80)) {
      ASSERT_OK(db_->Merge({}, family, key, value));
      model[key] += value;
    } else {
      const std::string end = NumberedKey(first + random_.Uniform(10));
      ASSERT_OK(db_->DeleteRange({}, family, key, end));
      model.erase(model.lower_bound(key), model.lower_bound(end));
    }
  }

  void ChangeLevels() {
    size_t number = 0;
    ColumnFamilyHandle* const family = AnyFamily(&number);
    if (random_.OneIn(5)) {
      ASSERT_OK(db_->CompactRange({}, family, nullptr, nullptr));
    } else if (random_.OneIn(5)) {
      Open();
    } else {
      ASSERT_OK(db_->Flush());
    }
  }

  std::string Read(const ReadOptions& options, ColumnFamilyHandle* family, const std::string& key) {
    std::string value;
    const Status status = db_->Get(options, family, key, &value);
    return status.IsNotFound() ? "<not found>" : status.ok() ? value : status.ToString();
  }

  void Check(size_t number, const Snapshot* snapshot) {
    ColumnFamilyHandle* const family = family_[number].get();
    const auto& model = models_[number];
    ReadOptions plain, verified, fixed;
    verified.verify_checksums = true;
    fixed.snapshot = snapshot;
    const auto iterator = db_->NewIterator({}, family);
    // Runs of missing keys, after which gets check the filters first.
    const uint64_t begin = random_.Uniform(kKeys);
    for (uint64_t i = 0; i < 2 * kKeys; ++i) {
      const std::string key = NumberedKey((begin + i) % (2 * kKeys));
      const auto found = model.find(key);
      const std::string expected = found == model.end() ? "<not found>" : found->second;
      SCOPED_TRACE(key);
      ASSERT_EQ(Read(plain, family, key), expected);
      ASSERT_EQ(Read(plain, family, key), expected) << "the lookup cache may have it now";
      SetPerfLevel(PerfLevel::kEnableTime);
      ASSERT_EQ(Read(plain, family, key), expected) << "measured";
      SetPerfLevel(PerfLevel::kDisable);
      ASSERT_EQ(Read(verified, family, key), expected) << "verified";
      ASSERT_EQ(Read(fixed, family, key), expected) << "as of a snapshot";
      PinnableSlice pinned;
      const Status status = db_->Get(plain, family, key, &pinned);
      ASSERT_EQ(status.IsNotFound() ? "<not found>" : std::string(pinned.slice()), expected) << "pinned";
      iterator->Seek(key);
      const bool is_there = iterator->Valid() && iterator->key() == key;
      ASSERT_EQ(is_there ? std::string(iterator->value()) : "<not found>", expected) << "by an iterator";
    }
    std::vector<std::string> keys, values;
    for (int i = 0; i < 40; ++i) keys.push_back(NumberedKey(random_.Uniform(2 * kKeys)));
    const std::vector<Slice> slices(keys.begin(), keys.end());
    const std::vector<ColumnFamilyHandle*> families(keys.size(), family);
    for (const bool is_measured : {false, true}) {
      SetPerfLevel(is_measured ? PerfLevel::kEnableTime : PerfLevel::kDisable);
      const std::vector<Status> statuses = db_->MultiGet(random_.OneIn(2) ? plain : fixed, families, slices, &values);
      for (size_t i = 0; i < keys.size(); ++i) {
        const auto found = model.find(keys[i]);
        ASSERT_EQ(statuses[i].IsNotFound() ? "<not found>" : values[i], found == model.end() ? "<not found>" : found->second)
            << keys[i];
      }
    }
    SetPerfLevel(PerfLevel::kDisable);
  }

  Random random_{301};
  uint64_t updates_ = 0;
  TestDirectory directory_;
  Options options_ = TinyOptions();
  std::unique_ptr<DB> db_;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> family_;  // destroyed before the database
  std::map<std::string, std::string> models_[2];
};

TEST_P(DbReadPathsTest, AgreeInEveryState) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    for (int i = 0; i < kUpdatesPerRound; ++i) {
      Update();
      if (random_.OneIn(20)) ChangeLevels();
      if (HasFatalFailure()) return;
    }
    const Snapshot* const snapshot = db_->GetSnapshot();
    for (size_t number = 0; number < family_.size() && !HasFatalFailure(); ++number) Check(number, snapshot);
    db_->ReleaseSnapshot(snapshot);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DbReadPathsTest,
                         testing::Values(Variant{"hash", MemtableKind::kHash, 1 << 20, 10},
                                         Variant{"hash_without_cache", MemtableKind::kHash, 0, 10},
                                         Variant{"hash_without_filter", MemtableKind::kHash, 0, 0},
                                         Variant{"skiplist", MemtableKind::kSkipList, 1 << 20, 10},
                                         Variant{"skiplist_without_cache", MemtableKind::kSkipList, 0, 10}),
                         [](const auto& variant) { return variant.param.name; });

}  // namespace
}  // namespace braiddb::test
