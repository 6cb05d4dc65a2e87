// Transactions of the C API.
#pragma once

#include <memory>

#include "braiddb/transaction.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"
#include "capi/wire_batch.h"

struct braiddb_transaction_t final : braiddb::capi::OpenObject {
  // Registers the transaction in the database's list.
  braiddb_transaction_t(braiddb_t* of, std::unique_ptr<braiddb::Transaction> begun) : db(of), rep(std::move(begun)) {
    db->open_objects.Add(this);
  }

  braiddb_t* db;  // the database that began it
  std::unique_ptr<braiddb::Transaction> rep;
  bool contradicts_itself = false;  // its write options contradict themselves
  braiddb::capi::WireForm wire;     // encoded data for views of its batch (batch.h)

 private:
  // The same effect as destruction: a prepared transaction waits for the next open.
  void EndBeforeClose() noexcept override { rep.reset(); }
};

namespace braiddb::capi {

// Begins a transaction, in the object `old` if `old` is not null. Returns null if memory is short.
template <class Begin>
braiddb_transaction_t* BeginTransaction(braiddb_t* db, const braiddb_writeoptions_t* options, braiddb_transaction_t* old,
                                        const Begin& begin) {
  std::unique_ptr<Transaction> begun;
  const Status status = Guarded([&] { return begun = begin(), Status::OK(); });
  if (!status.ok()) return nullptr;
  auto* const transaction = old != nullptr ? old : Make<braiddb_transaction_t>(db, nullptr);
  if (transaction == nullptr) return nullptr;
  transaction->rep = std::move(begun);
  transaction->wire.Restart();
  transaction->db = db;
  transaction->contradicts_itself = options->contradicts_itself();
  db->open_objects.Add(transaction);
  return transaction;
}

}  // namespace braiddb::capi
