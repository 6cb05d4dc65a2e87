// Bank: accounts in two column families, between which all threads transfer money. Whatever comes between, every view and every
// recovery shows the same sum, and no transfer that was acknowledged is missing.
#pragma once

#include <mutex>
#include <string>

#include "db_stress/expected_state.h"
#include "db_stress/flags.h"
#include "db_stress/store.h"
#include "util/random.h"

namespace braiddb::stress {

// An account's value is its balance and the number of transfers that it took part in, so the sum of these is twice the number of
// transfers that are there. A transfer is a transaction, where the store has such; else a batch, one at a time.
// Thread safety: all methods but Recover may be called concurrently.
class Bank {
 public:
  static constexpr uint32_t kAccounts = 8;  // of each family

  // REQUIRES: store->has_accounts().
  Bank(Store* store, ExpectedState* expected) : store_(store), expected_(expected) {}

  // After an open, while nobody transfers: opens the accounts if there are none, and takes what is there for what is.
  Violation Recover(const ReadOptions& read);
  // Whether an open may find transfers that are prepared, and may so be refused to who does not know of transactions.
  bool MayHavePrepared() const;
  // One transfer, or a conflict or a rollback in its place.
  Violation Transfer(const WriteOptions& write, Random* random, Injection injection);
  // Reads all accounts by one view, in one of the ways in which that can be done.
  Violation Audit(const ReadOptions& read, Random* random);
  // Empties both families.
  Status Close();

 private:
  struct Totals {
    uint32_t accounts = 0;
    int64_t balance = 0;
    uint64_t transfers = 0;
  };
  struct Account {
    int64_t balance = 0;
    uint64_t transfers = 0;
  };
  struct Order {
    uint32_t from_family, from, to_family, to;
    int64_t amount;
  };

  static std::string Name(uint32_t account) { return "account" + std::to_string(account); }
  static std::string Encode(const Account& account);
  static Violation Decode(Slice value, Account* account);
  static Violation Add(Slice value, Totals* totals);
  Order DrawOrder(Random* random) const;
  Violation ReadByIterators(const ReadOptions& read, Totals* totals) const;
  Violation ReadByMultiGet(const ReadOptions& read, Totals* totals) const;

  Violation TransferByBatch(const WriteOptions& write, const Order& order, bool torn);
  Violation TransferByTransaction(const WriteOptions& write, const Order& order, Random* random, Injection injection);
  // `lost`: a bug, it is said to be prepared and is not.
  Status Prepare(Transaction* transaction, Random* random, bool lost);
  Violation DecidePrepared();
  // A bug: reads without protection, and a write that nobody compares.
  Violation TransferUnprotected(const WriteOptions& write, const Order& order);
  // Of a transfer that was refused.
  Violation Refused(const Status& status);

  Store* const store_;
  ExpectedState* const expected_;
  std::mutex mutex_;  // of transfers by batches
};

}  // namespace braiddb::stress
