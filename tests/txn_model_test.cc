// Random operations on column families, alone and by several open transactions at once, against a model: what every call answers,
// what everybody sees, and what is there in the end.
//
// A failure prints the seed; BRAIDDB_MODEL_SEED and BRAIDDB_MODEL_STEPS repeat or extend a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/transaction.h"
#include "tests/model/transaction_model.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

enum class Kind : uint8_t { kPlain, kPessimistic, kOptimistic };

struct ModelCase {
  Kind kind;
  uint64_t seed;
  std::string Name() const {
    const char* const names[] = {"Plain", "Pessimistic", "Optimistic"};
    return names[static_cast<int>(kind)] + std::string("Seed") + std::to_string(seed);
  }
};
void PrintTo(const ModelCase& test, std::ostream* out) { *out << test.Name(); }

class TransactionModelTest : public testing::TestWithParam<ModelCase> {
 protected:
  using World = std::shared_ptr<const ModelWorld>;
  using Key = ModelWorld::Key;
  struct Operation {
    const char* name;
    uint32_t weight;
    void (TransactionModelTest::*run)();
    bool of_transactions;
  };
  struct Family {
    uint32_t number = 0;  // in the model
    std::string name;
    bool reverse = false;
    L1Kind l1 = L1Kind::kBraidedSkipList;
    std::unique_ptr<ColumnFamilyHandle> handle;
  };
  struct View {
    const Snapshot* snapshot;
    World world;
  };
  struct Open {
    std::unique_ptr<Transaction> transaction;
    ModelTransaction model;
  };

  static constexpr size_t kKeys = 24;  // few, so that conflicts are frequent
  static constexpr size_t kTransactions = 4;

  void SetUp() override {
    families_.push_back({next_family_++, kDefaultColumnFamilyName, false, TestedL1(), nullptr});
    families_.push_back({next_family_++, "other", true, Other(TestedL1()), nullptr});
    OpenDb();
  }
  void TearDown() override { CloseDb(); }
  static L1Kind Other(L1Kind kind) { return kind == L1Kind::kNvTree ? L1Kind::kBraidedSkipList : L1Kind::kNvTree; }

  static ColumnFamilyOptions OptionsOf(const Family& family, const Options& options) {
    ColumnFamilyOptions result(options);
    result.comparator = family.reverse ? ReverseBytewiseComparator() : BytewiseComparator();
    result.l1 = family.l1;
    return result;
  }
  void OpenDb() {
    Options options = TinyOptions(static_cast<uint32_t>(random_.Range(1, 2)));
    options.regions = opened_ ? 0 : options.regions;
    opened_ = true;
    options.create_missing_column_families = true;
    options.memtable = random_.OneIn(2) ? MemtableKind::kHash : MemtableKind::kSkipList;
    options.l0_compaction_trigger = static_cast<uint32_t>(random_.Range(1, 4));
    std::vector<ColumnFamilyDescriptor> descriptors;
    for (const Family& family : families_) descriptors.push_back({family.name, OptionsOf(family, options)});
    std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
    const std::string path = directory_.File("db");
    if (GetParam().kind == Kind::kPessimistic) {
      TransactionDBOptions transactions;
      transactions.lock_timeout_ms = 0;
      transactions.default_lock_timeout_ms = 0;
      std::unique_ptr<TransactionDB> db;
      ASSERT_OK(TransactionDB::Open(options, transactions, path, descriptors, &handles, &db));
      pessimistic_ = db.get();
      db_ = std::move(db);
    } else if (GetParam().kind == Kind::kOptimistic) {
      std::unique_ptr<OptimisticTransactionDB> db;
      ASSERT_OK(OptimisticTransactionDB::Open(options, path, descriptors, &handles, &db));
      optimistic_ = db.get();
      db_ = std::move(db);
    } else {
      ASSERT_OK(DB::Open(options, path, descriptors, &handles, &db_));
    }
    for (size_t i = 0; i < families_.size(); ++i) families_[i].handle = std::move(handles[i]);
  }
  void CloseDb() {
    open_.clear();
    for (const View& view : views_) db_->ReleaseSnapshot(view.snapshot);
    views_.clear();
    for (Family& family : families_) family.handle.reset();
    if (db_ == nullptr) return;
    EXPECT_OK(db_->Close());
    db_.reset();
  }

  // ---- Drawing

  const Family& AnyFamily() { return families_[random_.Uniform(families_.size())]; }
  const Family& FamilyOf(const Key& key) const {
    return *std::find_if(families_.begin(), families_.end(), [&](const Family& family) { return family.number == key.first; });
  }
  ColumnFamilyHandle* HandleOf(const Key& key) const { return FamilyOf(key).handle.get(); }
  Key AnyKey() { return {AnyFamily().number, keys_[random_.Uniform(keys_.size())]}; }
  std::string NewValue() { return RandomValue(&random_, 256 << 10, false); }
  World Now() { return std::make_shared<const ModelWorld>(world_); }
  Open* AnyTransaction() { return open_.empty() ? nullptr : &open_[random_.Uniform(open_.size())]; }

  // ---- Comparing

  void Expect(const ModelWorld& world, const ModelWorld::Updates& updates, const Key& key, const Status& status, Slice value) {
    const auto own = updates.find(key);
    const auto expected = own != updates.end() ? own->second : world.At(key).value;
    if (expected) {
      ASSERT_OK(status);
      ASSERT_EQ(value, *expected) << key.first << " " << Printable(key.second);
    } else {
      ASSERT_CODE(status, kNotFound) << key.first << " " << Printable(key.second);
    }
  }
  void ExpectScan(Iterator* iterator, const Family& family, std::map<std::string, std::string> expected) {
    Pairs pairs(expected.begin(), expected.end()), forward, backward;
    if (family.reverse) std::reverse(pairs.begin(), pairs.end());
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) forward.emplace_back(iterator->key(), iterator->value());
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) backward.emplace_back(iterator->key(), iterator->value());
    ASSERT_OK(iterator->status());
    ASSERT_EQ(forward, pairs) << family.name;
    std::reverse(backward.begin(), backward.end());
    ASSERT_EQ(backward, pairs) << family.name;
  }
  // Does the answer fit? Counts those that are no OK.
  bool Judge(Verdict verdict, const Status& status) {
    bool fits = status.ok();
    if (verdict == Verdict::kTimedOut) fits = status.IsTimedOut();
    if (verdict == Verdict::kBusy) fits = status.IsBusy();
    if (verdict == Verdict::kBusyOrOk) fits = status.ok() || status.IsBusy();
    EXPECT_TRUE(fits) << "expected verdict " << static_cast<int>(verdict) << ", got " << status.ToString();
    timeouts_ += status.IsTimedOut();
    conflicts_ += status.IsBusy();
    return status.ok();
  }

  // ---- Without transactions, which may hold the keys

  void Write() {
    WriteBatch batch;
    std::vector<std::pair<Key, std::optional<std::string>>> updates(random_.OneIn(2) ? 1 : random_.Range(2, 12));
    bool locked = false;
    for (auto& [key, value] : updates) {
      key = AnyKey();
      if (!random_.OneIn(3)) value = NewValue();
      value ? batch.Put(HandleOf(key), key.second, *value) : batch.Delete(HandleOf(key), key.second);
      for (const Open& open : open_) locked |= open.model.Excludes(key, true);
    }
    Status status;
    if (updates.size() == 1 && random_.OneIn(2)) {
      const auto& [key, value] = updates[0];
      status = value ? db_->Put({}, HandleOf(key), key.second, *value) : db_->Delete({}, HandleOf(key), key.second);
    } else {
      status = db_->Write({}, batch);
    }
    locked &= GetParam().kind == Kind::kPessimistic;
    if (!Judge(locked ? Verdict::kTimedOut : Verdict::kOk, status)) return;
    for (auto& [key, value] : updates) world_.Write(key, std::move(value));
  }
  // A view to read from: mostly now, at times a snapshot.
  World PickView(ReadOptions* options) {
    if (views_.empty() || !random_.OneIn(3)) return Now();
    const View& view = views_[random_.Uniform(views_.size())];
    options->snapshot = view.snapshot;
    return view.world;
  }
  void Get() {
    ReadOptions options;
    const World world = PickView(&options);
    const Key key = AnyKey();
    std::string value;
    const Status status = db_->Get(options, HandleOf(key), key.second, &value);
    Expect(*world, {}, key, status, value);
  }
  void MultiGet() {
    ReadOptions options;
    const World world = PickView(&options);
    std::vector<Key> keys(random_.Range(1, 12));
    for (Key& key : keys) key = AnyKey();
    std::vector<ColumnFamilyHandle*> handles;
    std::vector<Slice> names;
    for (const Key& key : keys) handles.push_back(HandleOf(key)), names.push_back(key.second);
    std::vector<std::string> values;
    const auto statuses = db_->MultiGet(options, handles, names, &values);
    for (size_t i = 0; i < keys.size(); ++i) ASSERT_NO_FATAL_FAILURE(Expect(*world, {}, keys[i], statuses[i], values[i]));
  }
  void Scan() {
    ReadOptions options;
    const World world = PickView(&options);
    const Family& family = AnyFamily();
    ExpectScan(db_->NewIterator(options, family.handle.get()).get(), family, world->Family(family.number));
  }
  void TakeView() {
    if (views_.size() < 3) return views_.push_back({db_->GetSnapshot(), Now()});
    const auto victim = views_.begin() + static_cast<int>(random_.Uniform(views_.size()));
    db_->ReleaseSnapshot(victim->snapshot);
    views_.erase(victim);
  }
  void Flush() { ASSERT_OK(db_->Flush()); }
  void Compact() { ASSERT_OK(db_->CompactRange({}, AnyFamily().handle.get(), nullptr, nullptr)); }

  // ---- Families

  void CreateFamily() {
    if (families_.size() == 5) return;
    Family family{next_family_, "family" + std::to_string(random_.Uniform(4)), random_.OneIn(2), TestedL1(), nullptr};
    if (random_.OneIn(2)) family.l1 = Other(family.l1);
    const bool there =
        std::any_of(families_.begin(), families_.end(), [&](const Family& other) { return other.name == family.name; });
    const Status status = db_->CreateColumnFamily(OptionsOf(family, db_->GetOptions()), family.name, &family.handle);
    if (there) {
      ASSERT_CODE(status, kInvalidArgument);
      return;
    }
    ASSERT_OK(status);
    ++next_family_;
    families_.push_back(std::move(family));
  }
  // Transactions that have met it are not to be committed.
  void DropFamily() {
    if (families_.size() <= 2 || !open_.empty()) return;
    const auto victim = families_.begin() + static_cast<int>(random_.Range(2, families_.size() - 1));
    ASSERT_OK(db_->DropColumnFamily(victim->handle.get()));
    // A handle goes on to show what there was.
    ExpectScan(db_->NewIterator({}, victim->handle.get()).get(), *victim, world_.Family(victim->number));
    ASSERT_CODE(db_->Put({}, victim->handle.get(), "key", "value"), kInvalidArgument);
    world_.Forget(victim->number);
    families_.erase(victim);
  }
  void Reopen() {
    ASSERT_NO_FATAL_FAILURE(CloseDb());
    std::vector<std::string> names, expected;
    ASSERT_OK(DB::ListColumnFamilies({}, directory_.File("db"), &names));
    for (const Family& family : families_) expected.push_back(family.name);
    std::sort(names.begin(), names.end());
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(names, expected);
    ASSERT_NO_FATAL_FAILURE(OpenDb());
    for (const Family& family : families_) {
      ASSERT_NO_FATAL_FAILURE(ExpectScan(db_->NewIterator({}, family.handle.get()).get(), family, world_.Family(family.number)));
    }
  }

  // ---- Transactions

  void Begin() {
    if (open_.size() == kTransactions) return;
    const bool set_snapshot = random_.OneIn(3);
    Open open;
    if (pessimistic_ != nullptr) {
      TransactionOptions options;
      options.set_snapshot = set_snapshot;
      open.transaction = pessimistic_->BeginTransaction({}, options);
    } else {
      OptimisticTransactionOptions options;
      options.set_snapshot = set_snapshot;
      open.transaction = optimistic_->BeginTransaction({}, options);
    }
    if (set_snapshot) open.model.snapshot = Now();
    open_.push_back(std::move(open));
  }
  // What the protection of a key must give; notes what it leaves. `through`: what it is read by.
  Verdict Protect(Open* own, const Key& key, bool exclusive, const World& through) {
    Verdict verdict = Verdict::kOk;
    if (pessimistic_ != nullptr) {
      const auto mine = own->model.protections.find(key);
      const bool has_it = mine != own->model.protections.end() && (mine->second.exclusive || !exclusive);
      for (const Open& other : open_) {
        if (&other != own && !has_it && other.model.Excludes(key, exclusive)) return Verdict::kTimedOut;
      }
      if (own->model.snapshot != nullptr) verdict = WrittenSince(*own->model.snapshot, world_, key);
    }
    if (through != nullptr) verdict = Either(verdict, WrittenSince(*through, world_, key));
    return verdict;
  }
  void TransactionUpdate() {
    Open* const own = AnyTransaction();
    if (own == nullptr) return;
    const Key key = AnyKey();
    std::optional<std::string> value;
    if (!random_.OneIn(4)) value = NewValue();
    const Verdict verdict = Protect(own, key, true, nullptr);
    const Status status =
        value ? own->transaction->Put(HandleOf(key), key.second, *value) : own->transaction->Delete(HandleOf(key), key.second);
    const bool done = Judge(verdict, status);
    if (!status.IsTimedOut()) own->model.Protect(key, true, Now(), done);
    if (done) own->model.updates[key] = std::move(value);
  }
  void GetForUpdate() {
    Open* const own = AnyTransaction();
    if (own == nullptr) return;
    const Key key = AnyKey();
    const bool exclusive = random_.OneIn(2);
    ReadOptions options;
    World through;
    if (random_.OneIn(2)) {
      through = own->model.snapshot;
      options.snapshot = own->transaction->GetSnapshot();
    }
    const Verdict verdict = Protect(own, key, exclusive, through);
    std::string value;
    const Status status = own->transaction->GetForUpdate(options, HandleOf(key), key.second, &value, exclusive);
    const bool held = Judge(verdict, status.IsNotFound() ? Status::OK() : status);
    if (!status.IsTimedOut()) own->model.Protect(key, exclusive, Now(), held);
    if (held) Expect(through != nullptr ? *through : world_, own->model.updates, key, status, value);
  }
  void TransactionGet() {
    Open* const own = AnyTransaction();
    if (own == nullptr) return;
    ReadOptions options;
    const World world = PickView(own, &options);
    const Key key = AnyKey();
    std::string value;
    const Status status = own->transaction->Get(options, HandleOf(key), key.second, &value);
    Expect(*world, own->model.updates, key, status, value);
  }
  void TransactionScan() {
    Open* const own = AnyTransaction();
    if (own == nullptr) return;
    ReadOptions options;
    const World world = PickView(own, &options);
    const Family& family = AnyFamily();
    ExpectScan(own->transaction->NewIterator(options, family.handle.get()).get(), family,
               world->Family(family.number, own->model.updates));
  }
  World PickView(const Open* own, ReadOptions* options) {
    if (own->model.snapshot == nullptr || random_.OneIn(3)) return Now();
    options->snapshot = own->transaction->GetSnapshot();
    return own->model.snapshot;
  }
  void SetSnapshot() {
    Open* const own = AnyTransaction();
    if (own == nullptr) return;
    const bool set = !random_.OneIn(3);
    set ? own->transaction->SetSnapshot() : own->transaction->ClearSnapshot();
    own->model.snapshot = set ? Now() : nullptr;
  }
  void SetSavePoint() {
    Open* const own = AnyTransaction();
    if (own == nullptr) return;
    own->transaction->SetSavePoint();
    own->model.SetSavePoint();
  }
  void EndSavePoint() {
    Open* const own = AnyTransaction();
    if (own == nullptr) return;
    const bool rolls_back = !random_.OneIn(3);
    const Status status = rolls_back ? own->transaction->RollbackToSavePoint() : own->transaction->PopSavePoint();
    if (own->model.save_points.empty()) {
      ASSERT_CODE(status, kNotFound);
      return;
    }
    ASSERT_OK(status);
    rolls_back ? own->model.RollbackToSavePoint() : own->model.save_points.pop_back();
  }
  void Commit() {
    Open* const own = AnyTransaction();
    if (own == nullptr) return;
    const Verdict verdict = optimistic_ != nullptr ? own->model.CompareWith(world_) : Verdict::kOk;
    if (Judge(verdict, own->transaction->Commit())) {
      for (auto& [key, value] : own->model.updates) world_.Write(key, value);
      ++commits_;
      if (optimistic_ != nullptr && random_.OneIn(2)) {  // it may go on
        own->model.Rollback();
        return;
      }
      if (pessimistic_ != nullptr) {
        ASSERT_CODE(own->transaction->Commit(), kInvalidArgument);
      }
      open_.erase(open_.begin() + (own - open_.data()));
    } else {
      ASSERT_OK(own->transaction->Rollback());
      own->model.Rollback();
    }
  }
  void GiveUp() {
    Open* const own = AnyTransaction();
    if (own == nullptr) return;
    if (random_.OneIn(2)) {  // it may go on
      ASSERT_OK(own->transaction->Rollback());
      own->model.Rollback();
    } else {
      open_.erase(open_.begin() + (own - open_.data()));
    }
  }

  static const std::vector<Operation>& Operations() {
    using T = TransactionModelTest;
    static const std::vector<Operation> operations = {
        {"Write", 150, &T::Write, false},
        {"Get", 60, &T::Get, false},
        {"MultiGet", 30, &T::MultiGet, false},
        {"Scan", 30, &T::Scan, false},
        {"TakeView", 10, &T::TakeView, false},
        {"Flush", 6, &T::Flush, false},
        {"Compact", 6, &T::Compact, false},
        {"CreateFamily", 4, &T::CreateFamily, false},
        {"DropFamily", 12, &T::DropFamily, false},
        {"Reopen", 2, &T::Reopen, false},
        {"Begin", 80, &T::Begin, true},
        {"TransactionUpdate", 200, &T::TransactionUpdate, true},
        {"GetForUpdate", 80, &T::GetForUpdate, true},
        {"TransactionGet", 60, &T::TransactionGet, true},
        {"TransactionScan", 30, &T::TransactionScan, true},
        {"SetSnapshot", 20, &T::SetSnapshot, true},
        {"SetSavePoint", 30, &T::SetSavePoint, true},
        {"EndSavePoint", 30, &T::EndSavePoint, true},
        {"Commit", 60, &T::Commit, true},
        {"GiveUp", 20, &T::GiveUp, true},
    };
    return operations;
  }
  const Operation& PickOperation() {
    for (;;) {
      const Operation& operation = Operations()[random_.Uniform(Operations().size())];
      if (operation.of_transactions && GetParam().kind == Kind::kPlain) continue;
      if (random_.Uniform(200) < operation.weight) return operation;
    }
  }

  const uint64_t seed_ = EnvNumber("BRAIDDB_MODEL_SEED", GetParam().seed);
  Random random_{seed_};
  const std::vector<std::string> keys_ = MakeKeyUniverse(&random_, kKeys, false);
  TestDirectory directory_;
  std::unique_ptr<DB> db_;
  TransactionDB* pessimistic_ = nullptr;  // db_, or null
  OptimisticTransactionDB* optimistic_ = nullptr;
  std::vector<Family> families_;
  std::vector<Open> open_;
  std::vector<View> views_;
  ModelWorld world_;
  uint32_t next_family_ = 0;
  bool opened_ = false;
  uint64_t timeouts_ = 0, conflicts_ = 0, commits_ = 0;
};

TEST_P(TransactionModelTest, AgreesWithTheModel) {
  const uint64_t steps = EnvNumber("BRAIDDB_MODEL_STEPS", 12'000 / kSlowdown);
  SCOPED_TRACE("seed " + std::to_string(seed_));
  for (uint64_t step = 0; step < steps; ++step) {
    const Operation& operation = PickOperation();
    (this->*operation.run)();
    if (HasFailure()) FAIL() << "in " << operation.name << ", step " << step << " of " << GetParam().Name();
  }
  ASSERT_NO_FATAL_FAILURE(Reopen());
  // A run in which these did not happen has tested nothing.
  if (GetParam().kind == Kind::kPlain) return;
  const uint64_t some = steps / 240;
  EXPECT_GT(commits_, some);
  EXPECT_GT(conflicts_, some);
  EXPECT_EQ(timeouts_ > some, GetParam().kind == Kind::kPessimistic);
}

std::vector<ModelCase> Cases() {
  std::vector<ModelCase> cases;
  for (const Kind kind : {Kind::kPlain, Kind::kPessimistic, Kind::kOptimistic}) {
    for (uint64_t seed : {1ull, 2ull, 3ull}) cases.push_back({kind, seed});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Runs, TransactionModelTest, testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.Name(); });

}  // namespace
}  // namespace braiddb::test
