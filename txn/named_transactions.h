// NamedTransactions: the undecided pessimistic transactions of a database that have names.
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

// A user's counted reference to a transaction.
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

// Owns the transactions together with the users' handles, and counts these handles. Keeps a transaction without handles if it has
// a record.
// Thread safety: all methods.
class NamedTransactions {
 public:
  using Pointer = std::shared_ptr<PessimisticTransaction>;

  NamedTransactions() = default;
  NamedTransactions(const NamedTransactions&) = delete;
  NamedTransactions& operator=(const NamedTransactions&) = delete;

  // Returns false, without any change, if another transaction has the name. `handles`: number of existing handles.
  bool Add(Pointer transaction, uint32_t handles);
  // Removes a decided transaction. Its handles stay valid.
  void Remove(const PessimisticTransaction& transaction) noexcept;
  // REQUIRES: no handles exist. Call before the database is closed.
  void Clear();

  // Returns an empty reference if no transaction has the name.
  HeldTransaction Find(const std::string& name);
  // Sorted by name.
  std::vector<HeldTransaction> FindPrepared();
  // Called when a handle is destroyed.
  void Leave(const PessimisticTransaction& transaction) noexcept;

  // A column family cannot be dropped while a transaction that uses it is being prepared or is prepared. The operation that
  // begins second returns false.
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
