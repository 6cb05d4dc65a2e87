// Random operations on a database and on a map: whatever is done, and in whatever order, both must agree.
//
// A failure prints the seed; BRAIDDB_MODEL_SEED and BRAIDDB_MODEL_STEPS repeat or extend a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "tests/model/model_db.h"
#include "tests/model/reference_iterator.h"
#include "tests/support/db_test_util.h"
#include "tests/support/merge_operators.h"

namespace braiddb::test {
namespace {

struct ModelCase {
  uint32_t regions;
  uint64_t memtable_size;
  uint64_t seed;
  bool merges;
  bool begin_alike = false;  // all keys have the first bytes in common
  std::string Name() const {
    return "Regions" + std::to_string(regions) + "Memtable" + std::to_string(memtable_size >> 10) + "KSeed" +
           std::to_string(seed) + (merges ? "Merges" : "") + (begin_alike ? "Alike" : "");
  }
};

void PrintTo(const ModelCase& test, std::ostream* out) { *out << test.Name(); }

class DbModelTest : public testing::TestWithParam<ModelCase> {
 protected:
  struct Operation {
    const char* name;
    uint32_t weight;
    void (DbModelTest::*run)();
  };
  struct FrozenSnapshot {
    const Snapshot* snapshot;
    std::shared_ptr<const ModelDb::Content> content;
  };
  struct OpenIterator {
    std::unique_ptr<Iterator> iterator;
    ReferenceIterator expected;
  };
  struct Pin {
    PinnableSlice slice;
    std::string expected;
  };

  static constexpr size_t kKeys = 600;
  static constexpr size_t kMaxViews = 4;

  void SetUp() override { Open(); }
  void TearDown() override { Close(); }

  void Open() {
    // Other options at every open: nothing of what was stored may depend on them.
    Options options = TinyOptions(GetParam().regions);
    options.memtable_size = GetParam().memtable_size;
    options.list_kind = random_.OneIn(2) ? ListKind::kOblivious : ListKind::kBraided;  // the creation sets it
    options.index_unified_logging = !random_.OneIn(3);
    options.checkpoint_tables = static_cast<uint32_t>(random_.Range(1, 4));
    options.compaction_threads = static_cast<uint32_t>(random_.Range(1, 3));
    options.recovery_threads = static_cast<uint32_t>(random_.Range(1, 3));
    options.l0_compaction_trigger = static_cast<uint32_t>(random_.Range(1, 4));
    options.segment_size = (256ull << 10) * random_.Range(1, 2);
    if (TestedL1() == L1Kind::kSortedRuns) options.max_region_size *= 4;  // see WithSpace
    if (GetParam().merges) options.merge_operator = std::make_shared<AppendOperator>(random_.OneIn(2));
    db_ = OpenOrFail(options, directory_.File("db"));
    ASSERT_NE(db_, nullptr);
  }
  void Close() {
    iterators_.clear();
    pins_.clear();
    for (const auto& view : snapshots_) db_->ReleaseSnapshot(view.snapshot);
    snapshots_.clear();
    if (db_ == nullptr) return;
    Accumulate(&total_, db_->GetStatistics());
    EXPECT_OK(db_->Close());
    db_.reset();
  }

  std::vector<std::string> MakeKeys() {
    std::vector<std::string> keys = MakeKeyUniverse(&random_, kKeys, true);
    const std::string begin = GetParam().begin_alike ? "tenant-0042/object/" : "";
    for (std::string& key : keys) key.insert(0, begin.substr(0, kMaxKeySize - std::min(kMaxKeySize, key.size())));
    return keys;
  }
  const std::string& RandomKey() { return keys_[random_.Skewed(keys_.size())]; }
  std::string NewValue() { return RandomValue(&random_, 256 << 10, true); }

  // A view to read from: mostly now, at times a snapshot.
  const ModelDb::Content& PickView(ReadOptions* options) {
    if (snapshots_.empty() || !random_.OneIn(3)) return model_.content();
    const auto& view = snapshots_[random_.Uniform(snapshots_.size())];
    options->snapshot = view.snapshot;
    return *view.content;
  }

  void Put() {
    const std::string& key = RandomKey();
    const std::string value = NewValue();
    ASSERT_OK(db_->Put({}, key, value));
    model_.Put(key, value);
  }
  std::string Merged(const std::string& key, const std::string& operand) const {
    const std::string* value = Lookup(model_.content(), key);
    return AppendOperator::Apply(value == nullptr ? "" : *value, operand);
  }
  std::string NewOperand() { return "," + std::to_string(random_.Uniform(1000)); }
  // At times to one key again and again.
  void Merge() {
    if (!GetParam().merges) return;
    const std::string& key = RandomKey();
    for (uint64_t i = random_.OneIn(10) ? random_.Uniform(200) : 1; i > 0; --i) {
      const std::string operand = NewOperand();
      ASSERT_OK(db_->Merge({}, key, operand));
      model_.Put(key, Merged(key, operand));
    }
  }
  // Of a few keys of the universe.
  std::pair<std::string, std::string> NewRange() {
    std::string begin = RandomKey();
    auto end = model_.content().upper_bound(begin);
    for (uint64_t i = random_.Uniform(20); i > 0 && end != model_.content().end(); --i) ++end;
    if (random_.OneIn(3) || end == model_.content().end()) return {begin, begin + std::string(1, '\0')};
    return {begin, end->first};
  }
  void DeleteRange() {
    const auto [begin, end] = NewRange();
    ASSERT_OK(db_->DeleteRange({}, begin, end));
    model_.DeleteRange(begin, end);
  }
  void MixedBatch() {
    WriteBatch batch;
    for (uint64_t i = random_.Uniform(20); i > 0; --i) {
      const std::string& key = RandomKey();
      if (random_.OneIn(8)) {
        const auto [begin, end] = NewRange();
        batch.DeleteRange(begin, end);
        model_.DeleteRange(begin, end);
      } else if (random_.OneIn(3)) {
        const std::string value = NewValue();
        batch.Put(key, value);
        model_.Put(key, value);
      } else if (random_.OneIn(4)) {
        batch.Delete(key);
        model_.Delete(key);
      } else if (GetParam().merges) {
        const std::string operand = NewOperand();
        batch.Merge(key, operand);
        model_.Put(key, Merged(key, operand));
      }
    }
    ASSERT_OK(db_->Write({}, batch));
  }
  void Delete() {
    const std::string& key = RandomKey();
    ASSERT_OK(db_->Delete({}, key));
    model_.Delete(key);
  }
  void Batch() {
    WriteBatch batch;
    std::vector<std::pair<std::string, std::optional<std::string>>> updates(random_.OneIn(20) ? random_.Uniform(300)
                                                                                              : random_.Uniform(12));
    for (auto& [key, value] : updates) {
      key = RandomKey();
      if (!random_.OneIn(4)) value = NewValue();
      value ? batch.Put(key, *value) : batch.Delete(key);
    }
    ASSERT_OK(db_->Write({}, batch));
    for (auto& [key, value] : updates) value ? model_.Put(key, std::move(*value)) : model_.Delete(key);
  }
  void DeleteRun() {
    // A run of neighbours, so that tombstones lie side by side.
    auto from = model_.content().lower_bound(RandomKey());
    std::vector<std::string> run;
    for (int i = 0; i < 30 && from != model_.content().end(); ++i, ++from) run.push_back(from->first);
    for (const auto& key : run) {
      ASSERT_OK(db_->Delete({}, key));
      model_.Delete(key);
    }
  }
  // Many versions of one key, and snapshots and iterators between them.
  void Overwrite() {
    const std::string& key = RandomKey();
    for (uint64_t i = random_.Uniform(random_.OneIn(4) ? 2000 : 100); i > 0; --i) {
      if (random_.OneIn(300)) random_.OneIn(2) ? TakeSnapshot() : OpenIteratorNow();
      if (random_.OneIn(50)) {
        ASSERT_OK(db_->Delete({}, key));
        model_.Delete(key);
      } else {
        const std::string value = std::to_string(random_.Uniform(1000));
        ASSERT_OK(db_->Put({}, key, value));
        model_.Put(key, value);
      }
    }
    WalkIterator();
    ScanSnapshot();
  }
  void Get() {
    ReadOptions options;
    const auto& content = PickView(&options);
    const std::string& key = keys_[random_.Uniform(keys_.size())];
    std::string value;
    const Status status = db_->Get(options, key, &value);
    ASSERT_TRUE(Agrees(key, Lookup(content, key), status, value));
  }
  void GetPinned() {
    ReadOptions options;
    const auto& content = PickView(&options);
    const std::string& key = RandomKey();
    PinnableSlice slice;
    const Status status = db_->Get(options, key, &slice);
    ASSERT_TRUE(Agrees(key, Lookup(content, key), status, slice.slice()));
    if (!status.ok()) return;
    if (pins_.size() == kMaxViews) pins_.erase(pins_.begin() + static_cast<int>(random_.Uniform(kMaxViews)));
    std::string copy = slice.ToString();
    pins_.push_back({std::move(slice), std::move(copy)});
  }
  void CheckPins() {
    for (const auto& pin : pins_) {
      ASSERT_EQ(pin.slice.slice(), pin.expected);
    }
  }
  void MultiGet() {
    ReadOptions options;
    const auto& content = PickView(&options);
    std::vector<Slice> keys;
    for (uint64_t i = random_.Uniform(30); i > 0; --i) keys.push_back(RandomKey());
    std::vector<std::string> values;
    const auto statuses = db_->MultiGet(options, keys, &values);
    ASSERT_EQ(statuses.size(), keys.size());
    ASSERT_EQ(values.size(), keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::string key(keys[i]);
      ASSERT_TRUE(Agrees(key, Lookup(content, key), statuses[i], values[i]));
    }
  }
  void TakeSnapshot() {
    if (snapshots_.size() == kMaxViews) ReleaseSnapshot();
    snapshots_.push_back({db_->GetSnapshot(), model_.Freeze()});
  }
  void ReleaseSnapshot() {
    if (snapshots_.empty()) return;
    const auto victim = snapshots_.begin() + static_cast<int>(random_.Uniform(snapshots_.size()));
    db_->ReleaseSnapshot(victim->snapshot);
    snapshots_.erase(victim);
  }
  void ScanSnapshot() {
    if (snapshots_.empty()) return;
    const auto& view = snapshots_[random_.Uniform(snapshots_.size())];
    ReadOptions options;
    options.snapshot = view.snapshot;
    ASSERT_TRUE(HoldsExactly(db_.get(), *view.content, options));
  }
  void ScanAll() { ASSERT_TRUE(HoldsExactly(db_.get(), model_.content())); }
  void ScanRange() {
    ReadOptions options;
    const auto& content = PickView(&options);
    const std::string lower = RandomKey();
    const std::string upper = RandomKey();
    if (random_.OneIn(2)) options.iterate_lower_bound = lower;
    if (random_.OneIn(2)) options.iterate_upper_bound = upper;
    if (random_.OneIn(4)) options.prefix = Slice(lower).substr(0, random_.Uniform(6));
    ReferenceIterator expected(VisiblePairs(content, options));
    auto actual = db_->NewIterator(options);
    ASSERT_TRUE(WalkTogether(&expected, actual.get(), keys_, 60, &random_));
  }
  void OpenIteratorNow() {
    ReadOptions options;
    const auto& content = PickView(&options);
    if (iterators_.size() == kMaxViews) iterators_.erase(iterators_.begin() + static_cast<int>(random_.Uniform(kMaxViews)));
    iterators_.push_back({db_->NewIterator(options), ReferenceIterator(VisiblePairs(content, options))});
  }
  void WalkIterator() {
    if (iterators_.empty()) return;
    auto& open = iterators_[random_.Uniform(iterators_.size())];
    ASSERT_TRUE(WalkTogether(&open.expected, open.iterator.get(), keys_, 40, &random_));
  }
  void Flush() { ASSERT_OK(db_->Flush()); }
  void Compact() {
    CompactRangeOptions options;
    options.sweep_last_level = random_.OneIn(2);
    const Slice begin = RandomKey();
    const Slice end = RandomKey();
    const Slice* const from = random_.OneIn(2) ? &begin : nullptr;
    const Slice* const to = random_.OneIn(2) ? &end : nullptr;
    ASSERT_OK(WithSpace([&] { return db_->CompactRange(options, from, to); }));
  }
  void Wait() {
    ASSERT_OK(WithSpace([this] { return db_->WaitForCompaction(); }));
  }
  // Sorted runs are copied by merges, and what the views here hold of old copies adds up.
  template <class Work>
  Status WithSpace(const Work& work) {
    const Status status = work();
    if (!status.IsNoSpace() || TestedL1() != L1Kind::kSortedRuns) return status;
    iterators_.clear();
    pins_.clear();
    return db_->CompactRange({}, nullptr, nullptr);
  }
  void Reopen() {
    ASSERT_NO_FATAL_FAILURE(Close());
    ASSERT_NO_FATAL_FAILURE(Open());
    ASSERT_TRUE(HoldsExactly(db_.get(), model_.content()));
  }

  static const std::vector<Operation>& Operations() {
    using T = DbModelTest;
    static const std::vector<Operation> operations = {
        {"Put", 500, &T::Put},
        {"Delete", 120, &T::Delete},
        {"Merge", 400, &T::Merge},
        {"MixedBatch", 40, &T::MixedBatch},
        {"Batch", 60, &T::Batch},
        {"DeleteRun", 2, &T::DeleteRun},
        {"Overwrite", 8, &T::Overwrite},
        {"DeleteRange", 15, &T::DeleteRange},
        {"Get", 200, &T::Get},
        {"GetPinned", 20, &T::GetPinned},
        {"CheckPins", 10, &T::CheckPins},
        {"MultiGet", 20, &T::MultiGet},
        {"TakeSnapshot", 8, &T::TakeSnapshot},
        {"ReleaseSnapshot", 8, &T::ReleaseSnapshot},
        {"ScanSnapshot", 2, &T::ScanSnapshot},
        {"ScanAll", 3, &T::ScanAll},
        {"ScanRange", 20, &T::ScanRange},
        {"OpenIterator", 6, &T::OpenIteratorNow},
        {"WalkIterator", 20, &T::WalkIterator},
        {"Flush", 2, &T::Flush},
        {"Compact", 2, &T::Compact},
        {"Wait", 2, &T::Wait},
        {"Reopen", 2, &T::Reopen},
    };
    return operations;
  }
  // However the background work was scheduled so far: now all of it happens, and at last everything dies.
  void FinishWithMerges() {
    for (int round = 0; round < 12; ++round) {
      for (int i = 0; i < 50; ++i) Put();
      for (int i = 0; i < 50; ++i) Merge();
      Delete();
      Compact();
      ScanAll();
    }
    while (!snapshots_.empty()) ReleaseSnapshot();
    iterators_.clear();
    pins_.clear();
    while (!model_.content().empty()) {
      const std::string key = model_.content().begin()->first;
      ASSERT_OK(db_->Delete({}, key));
      model_.Delete(key);
    }
    Compact();
    Compact();
    ScanAll();
  }
  const Operation& PickOperation() {
    static const uint64_t total = [] {
      uint64_t sum = 0;
      for (const auto& operation : Operations()) sum += operation.weight;
      return sum;
    }();
    uint64_t ticket = random_.Uniform(total);
    for (const auto& operation : Operations()) {
      if (ticket < operation.weight) return operation;
      ticket -= operation.weight;
    }
    return Operations().front();
  }

  const uint64_t seed_ = EnvNumber("BRAIDDB_MODEL_SEED", GetParam().seed);
  Random random_{seed_};
  const std::vector<std::string> keys_ = MakeKeys();
  TestDirectory directory_;
  std::unique_ptr<DB> db_;
  ModelDb model_;
  std::vector<FrozenSnapshot> snapshots_;
  std::vector<OpenIterator> iterators_;
  std::vector<Pin> pins_;
  Statistics total_;
};

TEST_P(DbModelTest, AgreesWithAMap) {
  const uint64_t steps = EnvNumber("BRAIDDB_MODEL_STEPS", 12'000 / kSlowdown);
  SCOPED_TRACE("seed " + std::to_string(seed_));
  std::map<std::string, int> done;
  for (uint64_t step = 0; step < steps; ++step) {
    const Operation& operation = PickOperation();
    ++done[operation.name];
    (this->*operation.run)();
    if (HasFailure()) FAIL() << "in " << operation.name << ", step " << step << " of " << GetParam().Name();
  }
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ASSERT_NO_FATAL_FAILURE(FinishWithMerges());
  ASSERT_NO_FATAL_FAILURE(Close());

  // A run in which these did not happen has tested nothing.
  for (const auto& operation : Operations()) {
    EXPECT_GT(done[operation.name], 0) << operation.name;
  }
  EXPECT_GT(total_.rotations, 10u);
  EXPECT_GT(total_.flushes, 10u);
  EXPECT_GT(total_.checkpoints, 5u);
  EXPECT_GT(total_.compactions, 10u);
  EXPECT_GT(total_.merged_entries, 1000u);
  EXPECT_GT(total_.dropped_entries, 500u);
  EXPECT_GT(total_.segments_allocated, 5u);
  EXPECT_GT(total_.segments_recycled, 0u);
  EXPECT_EQ(total_.collapsed_keys > 100, GetParam().merges);
}

std::vector<ModelCase> Cases() {
  std::vector<ModelCase> cases;
  for (uint32_t regions : {1u, 2u}) {
    for (uint64_t memtable_size : {16ull << 10, 64ull << 10}) {
      for (uint64_t seed : {1ull, 2ull, 3ull}) cases.push_back({regions, memtable_size, seed, false});
      for (uint64_t seed : {4ull, 5ull}) cases.push_back({regions, memtable_size, seed, true});
      cases.push_back({regions, memtable_size, 6, memtable_size > 16 << 10, true});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Runs, DbModelTest, testing::ValuesIn(Cases()), [](const auto& test) { return test.param.Name(); });

}  // namespace
}  // namespace braiddb::test
