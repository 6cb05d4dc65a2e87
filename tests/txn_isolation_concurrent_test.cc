// Histories of concurrent transactions over column families: snapshot isolation holds, write skew occurs, and bugs that are
// played are found.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/transaction.h"
#include "tests/concurrent/concurrent_workload.h"
#include "tests/model/isolation_history.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

// ---- The check finds each anomaly, and accepts what is right

// "r1=5": reads value 5 of key 1; "w1=6": writes it.
struct Step {
  char kind;
  uint32_t key;
  uint64_t value;
};
TransactionRecord Record(uint64_t start, uint64_t end, const std::vector<Step>& steps, bool committed = true) {
  TransactionRecord record;
  record.start = start;
  record.end = end;
  record.committed = committed;
  for (const Step& step : steps) {
    if (step.kind == 'r') {
      record.reads.emplace(step.key, step.value);
    } else {
      if (record.writes.contains(step.key)) record.overwritten.insert(record.writes[step.key]);
      record.writes[step.key] = step.value;
    }
  }
  return record;
}
std::string Judge(std::vector<TransactionRecord> records, size_t* write_skews = nullptr) {
  IsolationHistory history;
  for (auto& record : records) history.Add(std::move(record));
  const auto wrong = history.Violation();
  if (write_skews != nullptr) *write_skews = history.write_skews();
  return wrong ? wrong->substr(0, wrong->find(':')) : "";
}

TEST(IsolationHistory, AcceptsWhatIsRight) {
  EXPECT_EQ(Judge({}), "");
  EXPECT_EQ(Judge({Record(1, 2, {{'r', 1, 0}, {'w', 1, 5}}), Record(3, 4, {{'r', 1, 5}, {'w', 1, 6}})}), "");
  // Concurrent with the writer: of before, and of after.
  EXPECT_EQ(Judge({Record(1, 5, {{'r', 1, 0}, {'w', 1, 5}}), Record(2, 4, {{'r', 1, 0}, {'r', 2, 0}})}), "");
  EXPECT_EQ(Judge({Record(1, 5, {{'r', 1, 0}, {'w', 1, 5}}), Record(2, 6, {{'r', 1, 5}, {'r', 2, 0}})}), "");
}

TEST(IsolationHistory, FindsEachAnomaly) {
  const auto write = [](uint32_t key, uint64_t old, uint64_t value) {
    return std::vector<Step>{{'r', key, old}, {'w', key, value}};
  };
  EXPECT_EQ(Judge({Record(1, 4, write(1, 0, 5)), Record(2, 5, write(1, 0, 6))}), "lost update");
  EXPECT_EQ(Judge({Record(1, 4, write(1, 0, 5), false), Record(2, 5, {{'r', 1, 5}})}), "dirty read");
  // An intermediate value is none that was committed.
  EXPECT_EQ(Judge({Record(1, 4, {{'r', 1, 0}, {'w', 1, 5}, {'w', 1, 6}}), Record(2, 5, {{'r', 1, 5}})}), "dirty read");
  EXPECT_EQ(Judge({Record(1, 2, write(1, 0, 5)), Record(3, 4, {{'r', 1, 0}})}), "stale read");
  // Half of a transaction.
  EXPECT_EQ(Judge({Record(1, 4, {{'r', 1, 0}, {'r', 2, 0}, {'w', 1, 5}, {'w', 2, 6}}), Record(2, 6, {{'r', 1, 5}, {'r', 2, 0}})}),
            "read skew");
  // Two keys that are written by two transactions, seen in the wrong order.
  EXPECT_EQ(Judge({Record(1, 9, write(1, 0, 5)), Record(2, 9, {{'r', 1, 5}, {'r', 2, 0}, {'w', 2, 6}}),
                   Record(3, 9, {{'r', 2, 6}, {'r', 1, 0}})}),
            "read skew");
  EXPECT_EQ(Judge({Record(1, 9, {{'r', 1, 0}, {'r', 2, 6}, {'w', 1, 5}}), Record(2, 9, {{'r', 2, 0}, {'r', 1, 5}, {'w', 2, 6}})}),
            "circular reads");
}

TEST(IsolationHistory, PermitsWriteSkewAndCountsIt) {
  size_t skews = 0;
  EXPECT_EQ(Judge({Record(1, 8, {{'r', 1, 0}, {'r', 2, 0}, {'w', 1, 5}}), Record(2, 9, {{'r', 1, 0}, {'r', 2, 0}, {'w', 2, 6}})},
                  &skews),
            "");
  EXPECT_GT(skews, 0u);
  EXPECT_EQ(Judge({Record(1, 4, {{'r', 1, 0}, {'r', 2, 0}, {'w', 1, 5}}), Record(2, 9, {{'r', 1, 5}, {'r', 2, 0}, {'w', 2, 6}})},
                  &skews),
            "");
  EXPECT_EQ(skews, 0u);
}

// ---- Databases

enum class Class : uint8_t { kPessimistic, kOptimistic };
// How transactions read what they do not write, and which bug is played.
enum class Manner : uint8_t {
  kSnapshot,      // SetSnapshot, and Get through it
  kForUpdate,     // GetForUpdate of all keys: serializable
  kUnprotected,   // a bug: Get without a snapshot, and a batch that goes below the transactions
  kByFamily,      // a bug: the updates of each family are committed by themselves
  kKeepsUpdates,  // a bug: what is given up is written all the same
};

struct IsolationCase {
  Class kind;
  Manner manner;
  std::string Name() const {
    const char* const manners[] = {"Snapshot", "ForUpdate", "Unprotected", "ByFamily", "KeepsUpdates"};
    return std::string(kind == Class::kPessimistic ? "Pessimistic" : "Optimistic") + manners[static_cast<int>(manner)];
  }
};
void PrintTo(const IsolationCase& test, std::ostream* out) { *out << test.Name(); }

class TransactionIsolationTest : public testing::TestWithParam<IsolationCase> {
 protected:
  static constexpr uint32_t kKeys = 6;
  static constexpr int kThreads = 4;

  void SetUp() override {
    Options options = TinyOptions(1);
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    options.memtable_size = 16 << 10;
    ColumnFamilyOptions other(options);
    other.comparator = ReverseBytewiseComparator();
    other.l1 = options.l1 == L1Kind::kNvTree ? L1Kind::kBraidedSkipList : L1Kind::kNvTree;
    const std::vector<ColumnFamilyDescriptor> families{{kDefaultColumnFamilyName, ColumnFamilyOptions(options)},
                                                       {"other", other}};
    if (GetParam().kind == Class::kPessimistic) {
      ASSERT_OK(TransactionDB::Open(options, {}, directory_.File("db"), families, &handles_, &pessimistic_));
      db_ = pessimistic_.get();
    } else {
      ASSERT_OK(OptimisticTransactionDB::Open(options, directory_.File("db"), families, &handles_, &optimistic_));
      db_ = optimistic_.get();
    }
  }
  void TearDown() override { handles_.clear(); }

  static uint64_t Now() { return clock_.fetch_add(1); }
  ColumnFamilyHandle* FamilyOf(uint32_t key) const { return handles_[key % handles_.size()].get(); }
  std::unique_ptr<Transaction> Begin(bool patient) {
    if (optimistic_ != nullptr) return optimistic_->BeginTransaction({});
    TransactionOptions options;
    options.deadlock_detect = patient;
    options.lock_timeout_ms = patient ? 60'000 : 1;
    return pessimistic_->BeginTransaction({}, options);
  }

  // What there is of a key, and that another look shows the same.
  Status Read(Transaction* transaction, uint32_t key, bool for_update, uint64_t* value) {
    ReadOptions options;
    options.snapshot = transaction->GetSnapshot();
    std::string text, again;
    Status status = for_update ? transaction->GetForUpdate(options, FamilyOf(key), NumberedKey(key), &text)
                               : transaction->Get(options, FamilyOf(key), NumberedKey(key), &text);
    if (!status.ok() && !status.IsNotFound()) return status;
    if (options.snapshot != nullptr || for_update) {
      const Status second = transaction->Get(options, FamilyOf(key), NumberedKey(key), &again);
      // Optimistic reads for update may be overtaken: then the commit is refused.
      const bool must_repeat = options.snapshot != nullptr || GetParam().kind == Class::kPessimistic;
      if (must_repeat && (second.ToString() != status.ToString() || text != again)) ADD_FAILURE() << "a read did not repeat";
    }
    const auto tag = status.ok() ? TagOf(text) : IsolationHistory::kInitial;
    if (!tag) ADD_FAILURE() << "a value that nobody wrote: " << Printable(text);
    *value = tag.value_or(0);
    return Status::OK();
  }

  // Reads some keys and writes some of these.
  Status RunOne(Random* random, TransactionRecord* record) {
    const Manner manner = GetParam().manner;
    const auto transaction = Begin(random->OneIn(2));
    record->start = Now();
    if (manner == Manner::kSnapshot || manner == Manner::kByFamily || manner == Manner::kKeepsUpdates) transaction->SetSnapshot();
    record->one_view = transaction->GetSnapshot() != nullptr;
    const uint32_t first = static_cast<uint32_t>(random->Uniform(kKeys));
    const auto count = static_cast<uint32_t>(random->Range(2, 4));
    const bool writes = !random->OneIn(4);
    Status status;
    for (uint32_t i = 0; i < count && status.ok(); ++i) {
      const uint32_t key = (first + i) % kKeys;
      uint64_t value = 0;
      const bool protect =
          manner == Manner::kForUpdate || (writes && i == 0 && manner != Manner::kUnprotected && random->OneIn(2));
      status = Read(transaction.get(), key, protect, &value);
      if (status.ok()) record->reads.emplace(key, value);
    }
    if (random->OneIn(4)) std::this_thread::yield();
    const bool gives_up = random->OneIn(6);
    WriteBatch below;
    std::vector<WriteBatch> parts(handles_.size());
    const auto put = [&](uint32_t key, uint64_t tag) {
      const std::string value = TaggedValue(tag);
      below.Put(FamilyOf(key), NumberedKey(key), value);
      parts[key % parts.size()].Put(FamilyOf(key), NumberedKey(key), value);
      return manner == Manner::kUnprotected ? Status::OK() : transaction->Put(FamilyOf(key), NumberedKey(key), value);
    };
    for (uint32_t i = 0; i < count && status.ok() && writes; ++i) {
      const uint32_t key = (first + i) % kKeys;
      if (i > 0 && random->OneIn(2)) continue;
      if (random->OneIn(3)) {  // an intermediate value, overwritten or taken back
        const uint64_t tag = next_tag_.fetch_add(1);
        record->overwritten.insert(tag);
        transaction->SetSavePoint();
        status = put(key, tag);
        const Status undone = random->OneIn(2) ? transaction->RollbackToSavePoint() : transaction->PopSavePoint();
        EXPECT_OK(undone);
        if (!status.ok()) break;
      }
      const uint64_t tag = next_tag_.fetch_add(1);
      status = put(key, tag);
      record->writes[key] = tag;
    }
    if (status.ok() && gives_up) {
      if (manner == Manner::kKeepsUpdates && writes) {
        EXPECT_OK(db_->GetRootDB()->Write({}, below));
      }
      EXPECT_OK(transaction->Rollback());
      record->end = Now();
      return Status::OK();
    }
    if (status.ok()) {
      if (manner == Manner::kUnprotected) {
        status = db_->GetRootDB()->Write({}, below);
      } else if (manner == Manner::kByFamily) {
        for (const WriteBatch& part : parts) EXPECT_OK(db_->GetRootDB()->Write({}, part));
        EXPECT_OK(transaction->Rollback());
      } else {
        status = transaction->Commit();
      }
    }
    record->end = Now();
    record->committed = status.ok();
    if (!status.ok()) (void)transaction->Rollback();
    return status.IsBusy() || status.IsTimedOut() ? Status::OK() : status;
  }

  void Work(int transactions) {
    Crew crew;
    for (int thread = 0; thread < kThreads; ++thread) {
      crew.Start([&, thread] {
        Random random(static_cast<uint64_t>(thread) + 1);
        for (int i = 0; i < transactions && !crew.stopped(); ++i) {
          TransactionRecord record;
          if (!crew.Check(RunOne(&random, &record), "transaction")) return;
          const std::lock_guard lock(mutex_);
          history_.Add(std::move(record));
        }
      });
    }
    crew.Join();
  }

  TestDirectory directory_;
  std::unique_ptr<TransactionDB> pessimistic_;
  std::unique_ptr<OptimisticTransactionDB> optimistic_;
  DB* db_ = nullptr;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles_;
  std::mutex mutex_;
  IsolationHistory history_;
  std::atomic<uint64_t> next_tag_{1};
  static std::atomic<uint64_t> clock_;
};

std::atomic<uint64_t> TransactionIsolationTest::clock_{1};

TEST_P(TransactionIsolationTest, HistoriesAreWhatTheyShouldBe) {
  const Manner manner = GetParam().manner;
  const bool sound = manner == Manner::kSnapshot || manner == Manner::kForUpdate;
  std::optional<std::string> wrong;
  size_t skews = 0;
  // Whatever threads do, in some round they meet.
  for (int round = 0; round < 40; ++round) {
    Work(400 / kSlowdown);
    if (HasFailure()) return;
    wrong = history_.Violation();
    skews += history_.write_skews();
    if (wrong || (sound && round >= 4 && (manner == Manner::kForUpdate || skews > 0))) break;
  }
  if (!sound) {
    EXPECT_TRUE(wrong.has_value()) << "a bug was not found";
    return;
  }
  EXPECT_GT(history_.committed(), 100u);
  EXPECT_FALSE(wrong.has_value()) << *wrong;
  // Write skew is possible, unless everything is read for update.
  EXPECT_EQ(skews > 0, manner == Manner::kSnapshot) << skews;
}

std::vector<IsolationCase> Cases() {
  std::vector<IsolationCase> cases;
  for (const Class kind : {Class::kPessimistic, Class::kOptimistic}) {
    for (const Manner manner :
         {Manner::kSnapshot, Manner::kForUpdate, Manner::kUnprotected, Manner::kByFamily, Manner::kKeepsUpdates}) {
      cases.push_back({kind, manner});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Manners, TransactionIsolationTest, testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.Name(); });

}  // namespace
}  // namespace braiddb::test
