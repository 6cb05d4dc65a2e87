// Transactions of the C API.
#pragma once

#include <memory>

#include "braiddb/transaction.h"
#include "capi/objects.h"
#include "capi/result.h"

struct braiddb_transaction_t {
  braiddb_t* db;  // in which it was begun
  std::unique_ptr<braiddb::Transaction> rep;
};

namespace braiddb::capi {

// Begins one, in the place of `old` if that is not null. Null without memory.
template <class Begin>
braiddb_transaction_t* BeginTransaction(braiddb_t* db, braiddb_transaction_t* old, const Begin& begin) {
  std::unique_ptr<Transaction> begun;
  const Status status = Guarded([&] { return begun = begin(), Status::OK(); });
  if (!status.ok()) return nullptr;
  if (old == nullptr) return Make<braiddb_transaction_t>(db, std::move(begun));
  old->rep = std::move(begun);
  return old;
}

}  // namespace braiddb::capi
