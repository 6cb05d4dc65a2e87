// NamedTransactions: the pessimistic transactions of a database that have names and are not over.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "txn/pessimistic_transaction.h"

namespace braiddb {

class NamedTransactions;

// What a handle of a user's has: the transaction, in which it is counted.
class HeldTransaction {
 public:
  HeldTransaction(std::shared_ptr<PessimisticTransaction> transaction, NamedTransactions* names) noexcept
      : transaction_(std::move(transaction)), names_(names) {}
  ~HeldTransaction();
  HeldTransaction(HeldTransaction&&) noexcept = default;
  HeldTransaction& operator=(HeldTransaction&&) = delete;

  PessimisticTransaction* operator->() const { return transaction_.get(); }
  explicit operator bool() const { return transaction_ != nullptr; }

 private:
  std::shared_ptr<PessimisticTransaction> transaction_;
  NamedTransactions* const names_;
};

// Has them together with the users' handles, which it counts: without handles, it keeps those that have a record.
// Thread safety: all methods.
class NamedTransactions {
 public:
  using Pointer = std::shared_ptr<PessimisticTransaction>;

  NamedTransactions() = default;
  NamedTransactions(const NamedTransactions&) = delete;
  NamedTransactions& operator=(const NamedTransactions&) = delete;

  // False, and nothing changes, if another one has the name. `handles`: that there are.
  bool Add(Pointer transaction, uint32_t handles);
  // It is over. Its handles go on.
  void Remove(const PessimisticTransaction& transaction) noexcept;
  // Before the database is closed, and when there are no handles.
  void Clear();

  // Nothing: there is none with that name.
  HeldTransaction Find(const std::string& name);
  // In the order of their names.
  std::vector<HeldTransaction> FindPrepared();
  // A handle is destroyed.
  void Leave(const PessimisticTransaction& transaction) noexcept;

  // A transaction is prepared, or a column family of it is dropped, and never both: who begins second is told so, with false.
  bool BeginPrepare(PessimisticTransaction* transaction);
  void CancelPrepare(PessimisticTransaction* transaction) noexcept;
  bool BeginDrop(uint32_t family);
  void EndDrop(uint32_t family) noexcept;

 private:
  struct Entry {
    Pointer transaction;
    uint32_t handles;
  };
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::set<uint32_t> dropped_;  // column families that are being dropped
};

}  // namespace braiddb
