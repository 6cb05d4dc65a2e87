// Bank: accounts in two column families. All threads transfer money between them. Every view and every recovery must show the
// same total, and every acknowledged transfer.
#pragma once

#include <mutex>
#include <string>

#include "db_stress/expected_state.h"
#include "db_stress/flags.h"
#include "db_stress/store.h"
#include "util/random.h"

namespace braiddb::stress {

// The value of an account is its balance and the number of its transfers. The sum of these numbers is twice the number of
// transfers. A transfer is a transaction if the store supports transactions. Otherwise it is a batch, and transfers run one at a
// time.
// Thread safety: all methods but Recover may be called concurrently.
class Bank {
 public:
  static constexpr uint32_t kAccounts = 8;  // of each family

  // REQUIRES: store->has_accounts().
  Bank(Store* store, ExpectedState* expected) : store_(store), expected_(expected) {}

  // Call after an open, while no transfer runs. Creates missing accounts, checks the existing accounts, and takes their state as
  // the new expected state.
  Violation Recover(const ReadOptions& read);
  // Whether an open may find prepared transfers. An open that does not support transactions may then be refused.
  bool MayHavePrepared() const;
  // Executes one transfer, or ends in a conflict or a rollback.
  Violation Transfer(const WriteOptions& write, Random* random, Injection injection);
  // Reads all accounts in one view, by a randomly chosen method.
  Violation Audit(const ReadOptions& read, Random* random);
  // Deletes all keys of both families.
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
  // `lost`: an injected bug: the transfer is reported as prepared and is not.
  Status Prepare(Transaction* transaction, Random* random, bool lost);
  Violation DecidePrepared();
  // An injected bug: reads without protection, and a write without a conflict check.
  Violation TransferUnprotected(const WriteOptions& write, const Order& order);
  // The result of a refused transfer.
  Violation Refused(const Status& status);

  Store* const store_;
  ExpectedState* const expected_;
  std::mutex mutex_;  // serializes transfers by batches
};

}  // namespace braiddb::stress
