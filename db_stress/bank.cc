#include "db_stress/bank.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

namespace braiddb::stress {

namespace {

constexpr int64_t kInitialBalance = 1000;
constexpr int64_t kSum = kInitialBalance * Bank::kAccounts * Store::kAccountFamilies;

}  // namespace

std::string Bank::Encode(const Account& account) {
  return std::to_string(account.balance) + " " + std::to_string(account.transfers);
}

Violation Bank::Decode(Slice value, Account* account) {
  const std::string text(value);
  if (std::sscanf(text.c_str(), "%" SCNd64 " %" SCNu64, &account->balance, &account->transfers) == 2 &&
      Encode(*account) == text) {
    return std::nullopt;
  }
  return "an account has the value " + Printable(value) + ", which nobody wrote";
}

Violation Bank::Add(Slice value, Totals* totals) {
  Account account;
  if (auto wrong = Decode(value, &account)) return wrong;
  ++totals->accounts;
  totals->balance += account.balance;
  totals->transfers += account.transfers;
  return std::nullopt;
}

// ---- Reading

Violation Bank::ReadByIterators(const ReadOptions& read, Totals* totals) const {
  for (ColumnFamilyHandle* family : store_->accounts()) {
    const auto iterator = store_->db()->NewIterator(read, family);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      if (auto wrong = Add(iterator->value(), totals)) return wrong;
    }
    if (!iterator->status().ok()) return "iterator: " + iterator->status().ToString();
  }
  return std::nullopt;
}

Violation Bank::ReadByMultiGet(const ReadOptions& read, Totals* totals) const {
  std::vector<ColumnFamilyHandle*> families;
  std::vector<std::string> names;
  for (uint32_t i = 0; i < kAccounts * Store::kAccountFamilies; ++i) {
    families.push_back(store_->accounts()[i / kAccounts]);
    names.push_back(Name(i % kAccounts));
  }
  std::vector<std::string> values;
  const auto statuses = store_->db()->MultiGet(read, families, {names.begin(), names.end()}, &values);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!statuses[i].ok()) return "MultiGet of " + names[i] + ": " + statuses[i].ToString();
    if (auto wrong = Add(values[i], totals)) return wrong;
  }
  return std::nullopt;
}

Violation Bank::Audit(const ReadOptions& read, Random* random) {
  const TransferCounts& counts = expected_->transfers();
  const uint64_t least = counts.committed.load(), failed = counts.failed.load();
  ReadOptions options = read;
  Totals totals;
  Violation wrong;
  const char* how = "a snapshot";
  uint64_t begun = 0;
  if (random->OneIn(2)) {
    how = "MultiGet";
    wrong = ReadByMultiGet(options, &totals);
    begun = counts.begun.load();
  } else {
    options.snapshot = store_->db()->GetSnapshot();
    begun = counts.begun.load();
    if (random->OneIn(4)) std::this_thread::sleep_for(std::chrono::microseconds(random->Uniform(500)));
    wrong = random->OneIn(2) ? ReadByIterators(options, &totals) : ReadByMultiGet(options, &totals);
    store_->db()->ReleaseSnapshot(options.snapshot);
  }
  expected_->counters().audits.fetch_add(1, std::memory_order_relaxed);
  if (wrong) return wrong;
  if (totals.accounts != kAccounts * Store::kAccountFamilies || totals.balance != kSum || totals.transfers % 2 != 0) {
    return "the sum of all accounts, by " + std::string(how) + ", is " + std::to_string(totals.balance) + " in " +
           std::to_string(totals.accounts) + " accounts after " + std::to_string(totals.transfers) +
           " halves of transfers, not " + std::to_string(kSum);
  }
  const uint64_t seen = totals.transfers / 2;
  if (seen >= least && seen <= begun - failed) return std::nullopt;
  return "the accounts, by " + std::string(how) + ", show " + std::to_string(seen) + " transfers, of which at least " +
         std::to_string(least) + " were acknowledged before, and at most " + std::to_string(begun - failed) + " begun";
}

bool Bank::MayHavePrepared() const {
  const TransferCounts& counts = expected_->transfers();
  return counts.prepare_begun.load() > counts.decided.load();
}

// Decides the prepared transfers. Each acknowledged and undecided transfer must be prepared, and no decided one may be. No view
// shows them before the decision.
Violation Bank::DecidePrepared() {
  TransferCounts& counts = expected_->transfers();
  std::vector<std::unique_ptr<Transaction>> prepared;
  if (store_->pessimistic() != nullptr) store_->pessimistic()->GetAllPreparedTransactions(&prepared);
  const uint64_t least = counts.prepared.load() - std::min(counts.prepared.load(), counts.decision_begun.load());
  const uint64_t most = counts.prepare_begun.load() - counts.decided.load();
  if (prepared.size() < least || prepared.size() > most) {
    return "there are " + std::to_string(prepared.size()) + " prepared transfers, not " + std::to_string(least) + " to " +
           std::to_string(most);
  }
  Random random(counts.begun.load() + prepared.size());
  for (const auto& transaction : prepared) {
    counts.decision_begun.fetch_add(1);
    const bool commits = random.OneIn(2);
    const Status status = commits ? transaction->Commit() : transaction->Rollback();
    if (!status.ok()) return "deciding prepared transfer '" + transaction->GetName() + "': " + status.ToString();
    (commits ? counts.committed : counts.failed).fetch_add(1);
    counts.decided.fetch_add(1);
    expected_->counters().recovered.fetch_add(1, std::memory_order_relaxed);
  }
  // This order is safe if the process is killed between the stores: the allowed set of outcomes never becomes too small.
  counts.prepared = 0;
  counts.decision_begun = 0;
  counts.decided = 0;
  counts.prepare_begun = 0;
  return std::nullopt;
}

Violation Bank::Recover(const ReadOptions& read) {
  Totals totals;
  if (auto wrong = ReadByIterators(read, &totals)) return wrong;
  TransferCounts& counts = expected_->transfers();
  if (totals.accounts == 0 && counts.begun.load() == 0) {
    WriteBatch batch;
    for (ColumnFamilyHandle* family : store_->accounts()) {
      for (uint32_t i = 0; i < kAccounts; ++i) batch.Put(family, Name(i), Encode({kInitialBalance, 0}));
    }
    const Status status = store_->db()->Write({}, batch);
    return status.ok() ? std::nullopt : Violation("opening accounts: " + status.ToString());
  }
  Random random(1);
  if (auto wrong = Audit(read, &random)) return "after a recovery: " + *wrong;
  if (auto wrong = DecidePrepared()) return "after a recovery: " + *wrong;
  if (auto wrong = Audit(read, &random)) return "after decisions: " + *wrong;
  totals = Totals();
  if (auto wrong = ReadByIterators(read, &totals)) return wrong;
  // This order is safe if the process is killed between the stores: the allowed set of outcomes never becomes too small.
  counts.committed = totals.transfers / 2;
  counts.failed = 0;
  counts.begun = totals.transfers / 2;
  return std::nullopt;
}

// ---- Transfers

Bank::Order Bank::DrawOrder(Random* random) const {
  const auto draw = [&](uint64_t n) { return static_cast<uint32_t>(random->Uniform(n)); };
  Order order{draw(Store::kAccountFamilies), draw(kAccounts), draw(Store::kAccountFamilies), draw(kAccounts), 0};
  if (order.from_family == order.to_family && order.from == order.to) order.to = (order.to + 1) % kAccounts;
  order.amount = static_cast<int64_t>(random->Uniform(100));
  return order;
}

Violation Bank::Refused(const Status& status) {
  expected_->transfers().failed.fetch_add(1);
  if (status.IsBusy() || status.IsTimedOut()) {
    expected_->counters().conflicts.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  return "transfer: " + status.ToString();
}

Violation Bank::Transfer(const WriteOptions& write, Random* random, Injection injection) {
  const Order order = DrawOrder(random);
  if (injection == Injection::kLostUpdate && random->OneIn(4)) return TransferUnprotected(write, order);
  const bool torn = injection == Injection::kTornTransfer && random->OneIn(4);
  if (torn || !store_->has_transactions()) return TransferByBatch(write, order, torn);
  return TransferByTransaction(write, order, random, injection);
}

// Pauses between prepare and decision, so that kills hit this interval.
Status Bank::Prepare(Transaction* transaction, Random* random, bool lost) {
  TransferCounts& counts = expected_->transfers();
  Status status = transaction->SetName("transfer " + std::to_string(transaction->GetID()));
  if (!status.ok()) return status;
  counts.prepare_begun.fetch_add(1);
  if (!lost) status = transaction->Prepare();
  if (!status.ok()) {
    counts.decided.fetch_add(1);
    return status;
  }
  counts.prepared.fetch_add(1);
  expected_->counters().prepared.fetch_add(1, std::memory_order_relaxed);
  std::this_thread::sleep_for(std::chrono::microseconds(random->Uniform(random->OneIn(8) ? 5000 : 200)));
  counts.decision_begun.fetch_add(1);
  return status;
}

Violation Bank::TransferByTransaction(const WriteOptions& write, const Order& order, Random* random, Injection injection) {
  Counters& counters = expected_->counters();
  TransferCounts& counts = expected_->transfers();
  counters.transactions.fetch_add(1, std::memory_order_relaxed);
  const auto transaction = store_->Begin(write, random->OneIn(2));
  ColumnFamilyHandle* const from_family = store_->accounts()[order.from_family];
  ColumnFamilyHandle* const to_family = store_->accounts()[order.to_family];
  const std::string from = Name(order.from), to = Name(order.to);
  // Half of the transfers read through a snapshot. The snapshot is their only protection before the updates.
  ReadOptions read;
  const bool by_snapshot = random->OneIn(2);
  if (by_snapshot) transaction->SetSnapshot();
  read.snapshot = transaction->GetSnapshot();
  const auto get = [&](ColumnFamilyHandle* family, const std::string& name, std::string* value) {
    return by_snapshot ? transaction->Get(read, family, name, value) : transaction->GetForUpdate(read, family, name, value);
  };
  std::string left, right;
  Account payer, payee;
  Status status = get(from_family, from, &left);
  if (status.ok() && random->OneIn(4)) {  // updates that a save point reverts must leave no trace
    transaction->SetSavePoint();
    status = transaction->Put(to_family, to, "taken back");
    const Status undone = transaction->RollbackToSavePoint();
    if (!undone.ok()) return "RollbackToSavePoint: " + undone.ToString();
  }
  if (status.ok()) status = get(to_family, to, &right);
  const bool gives_up = random->OneIn(8);
  counts.begun.fetch_add(1);
  if (!status.ok()) return Refused(status);
  if (auto wrong = Decode(left, &payer)) return wrong;
  if (auto wrong = Decode(right, &payee)) return wrong;
  status = transaction->Put(from_family, from, Encode({payer.balance - order.amount, payer.transfers + 1}));
  if (status.ok()) status = transaction->Put(to_family, to, Encode({payee.balance + order.amount, payee.transfers + 1}));
  const bool lost = injection == Injection::kLostPrepare;
  const bool prepares = store_->pessimistic() != nullptr && (lost || random->OneIn(3));
  if (status.ok() && prepares) status = Prepare(transaction.get(), random, lost);
  const bool is_prepared = status.ok() && prepares;
  if (status.ok() && gives_up) {
    // otherwise the destructor ends the transaction
    status = is_prepared || random->OneIn(2) ? transaction->Rollback() : Status::OK();
    counts.failed.fetch_add(1);
    if (is_prepared) counts.decided.fetch_add(1);
    counters.rollbacks.fetch_add(1, std::memory_order_relaxed);
    return status.ok() ? std::nullopt : Violation("Rollback: " + status.ToString());
  }
  if (status.ok()) status = transaction->Commit();
  if (!status.ok()) return Refused(status);
  counts.committed.fetch_add(1);
  if (is_prepared) counts.decided.fetch_add(1);
  return std::nullopt;
}

Violation Bank::TransferByBatch(const WriteOptions& write, const Order& order, bool torn) {
  const std::lock_guard lock(mutex_);
  TransferCounts& counts = expected_->transfers();
  ColumnFamilyHandle* const from_family = store_->accounts()[order.from_family];
  ColumnFamilyHandle* const to_family = store_->accounts()[order.to_family];
  std::string left, right;
  Status status = store_->db()->Get({}, from_family, Name(order.from), &left);
  if (status.ok()) status = store_->db()->Get({}, to_family, Name(order.to), &right);
  counts.begun.fetch_add(1);
  if (!status.ok()) return Refused(status);
  Account payer, payee;
  if (auto wrong = Decode(left, &payer)) return wrong;
  if (auto wrong = Decode(right, &payee)) return wrong;
  WriteBatch batch;
  batch.Put(from_family, Name(order.from), Encode({payer.balance - order.amount, payer.transfers + 1}));
  if (torn) {
    status = store_->db()->Write(write, batch);
    if (!status.ok()) return Refused(status);
    batch.Clear();
  }
  batch.Put(to_family, Name(order.to), Encode({payee.balance + order.amount, payee.transfers + 1}));
  status = store_->db()->Write(write, batch);
  if (!status.ok()) return Refused(status);
  counts.committed.fetch_add(1);
  return std::nullopt;
}

Violation Bank::TransferUnprotected(const WriteOptions& write, const Order& order) {
  TransferCounts& counts = expected_->transfers();
  DB* const root = store_->db()->GetRootDB();
  ColumnFamilyHandle* const from_family = store_->accounts()[order.from_family];
  ColumnFamilyHandle* const to_family = store_->accounts()[order.to_family];
  std::string left, right;
  Status status = root->Get({}, from_family, Name(order.from), &left);
  if (status.ok()) status = root->Get({}, to_family, Name(order.to), &right);
  counts.begun.fetch_add(1);
  if (!status.ok()) return Refused(status);
  Account payer, payee;
  if (auto wrong = Decode(left, &payer)) return wrong;
  if (auto wrong = Decode(right, &payee)) return wrong;
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  WriteBatch batch;
  batch.Put(from_family, Name(order.from), Encode({payer.balance - order.amount, payer.transfers + 1}));
  batch.Put(to_family, Name(order.to), Encode({payee.balance + order.amount, payee.transfers + 1}));
  status = root->Write(write, batch);
  if (!status.ok()) return Refused(status);
  counts.committed.fetch_add(1);
  return std::nullopt;
}

Status Bank::Close() {
  Status status;
  for (ColumnFamilyHandle* family : store_->accounts()) {
    for (uint32_t i = 0; i < kAccounts && status.ok(); ++i) status = store_->db()->Delete({}, family, Name(i));
  }
  return status;
}

}  // namespace braiddb::stress
