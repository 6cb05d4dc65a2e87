// Transactions of all kinds of databases.
#include "capi/transaction.h"

#include <cstdlib>

#include "capi/batch.h"
#include "capi/iterator.h"
#include "capi/options.h"
#include "capi/pinned.h"
#include "capi/result.h"

using braiddb::Slice;
using braiddb::Status;
using namespace braiddb::capi;

namespace {

// The value for the caller. A missing key gives null without an error.
char* GiveValue(const Status& status, const std::string& value, size_t* length, char** errptr) {
  *length = 0;
  if (!status.ok()) {
    if (!status.IsNotFound()) SaveError(errptr, status);
    return nullptr;
  }
  char* const result = CopyBytes(value);
  if (result == nullptr) {
    SaveError(errptr, NoMemory());
  } else {
    *length = value.size();
  }
  return result;
}

braiddb_pinnableslice_t* GivePinned(const Status& status, const std::string& value, char** errptr) {
  if (status.ok()) {
    braiddb_pinnableslice_t* const pinned = CopyPinned(value);
    if (pinned == nullptr) SaveError(errptr, NoMemory());
    return pinned;
  }
  if (!status.IsNotFound()) SaveError(errptr, status);
  return nullptr;
}

// Adds the updates of a batch, if the batch is fit.
Status AddBatch(braiddb_transaction_t* transaction, const braiddb_writebatch_t& batch) {
  if (!batch.unfit.ok()) return batch.unfit;
  return transaction->rep->RebuildFromWriteBatch(batch.rep);
}

// As in RocksDB, the snapshot of the read options only decides which value is read. The transaction's snapshot alone decides
// which writes of other transactions are conflicts.
Status ReadForUpdate(braiddb::Transaction* transaction, const braiddb_readoptions_t& options, braiddb::ColumnFamilyHandle* family,
                     Slice key, bool exclusive, std::string* value) {
  return Guarded([&] {
    braiddb::ReadOptions newest = options.rep;
    newest.snapshot = nullptr;
    const bool is_old = options.rep.snapshot != nullptr;
    const Status status = transaction->GetForUpdate(newest, family, key, is_old ? nullptr : value, exclusive);
    return status.ok() && is_old ? transaction->Get(options.rep, family, key, value) : status;
  });
}

// For the default family.
Status ReadForUpdate(const braiddb_transaction_t& transaction, const braiddb_readoptions_t& options, Slice key, bool exclusive,
                     std::string* value) {
  return ReadForUpdate(transaction.rep.get(), options, transaction.db->db->DefaultColumnFamily(), key, exclusive, value);
}

}  // namespace

void braiddb_transaction_destroy(braiddb_transaction_t* transaction) { delete transaction; }

void braiddb_transaction_commit(braiddb_transaction_t* transaction, char** errptr) {
  SaveError(errptr, transaction->contradicts_itself ? Contradiction() : transaction->rep->Commit());
  transaction->wire.Restart();
}

void braiddb_transaction_rollback(braiddb_transaction_t* transaction, char** errptr) {
  SaveError(errptr, transaction->rep->Rollback());
  transaction->wire.Restart();
}

void braiddb_transaction_set_savepoint(braiddb_transaction_t* transaction) {
  const Status ignored = Guarded([&] { return transaction->rep->SetSavePoint(), Status::OK(); });
  (void)ignored;  // if memory is short, no save point exists, and the rollback to it returns an error
}

void braiddb_transaction_rollback_to_savepoint(braiddb_transaction_t* transaction, char** errptr) {
  SaveError(errptr, transaction->rep->RollbackToSavePoint());
  transaction->wire.Restart();
}

// ---- Updates

void braiddb_transaction_put(braiddb_transaction_t* transaction, const char* key, size_t key_length, const char* value,
                             size_t value_length, char** errptr) {
  SaveError(errptr, transaction->rep->Put({key, key_length}, {value, value_length}));
}

void braiddb_transaction_put_cf(braiddb_transaction_t* transaction, braiddb_column_family_handle_t* column_family,
                                const char* key, size_t key_length, const char* value, size_t value_length, char** errptr) {
  SaveError(errptr, transaction->rep->Put(FamilyOf(column_family), {key, key_length}, {value, value_length}));
}

void braiddb_transaction_delete(braiddb_transaction_t* transaction, const char* key, size_t key_length, char** errptr) {
  SaveError(errptr, transaction->rep->Delete({key, key_length}));
}

void braiddb_transaction_delete_cf(braiddb_transaction_t* transaction, braiddb_column_family_handle_t* column_family,
                                   const char* key, size_t key_length, char** errptr) {
  SaveError(errptr, transaction->rep->Delete(FamilyOf(column_family), {key, key_length}));
}

void braiddb_transaction_merge(braiddb_transaction_t* transaction, const char* key, size_t key_length, const char* value,
                               size_t value_length, char** errptr) {
  SaveError(errptr, transaction->rep->Merge({key, key_length}, {value, value_length}));
}

void braiddb_transaction_merge_cf(braiddb_transaction_t* transaction, braiddb_column_family_handle_t* column_family,
                                  const char* key, size_t key_length, const char* value, size_t value_length, char** errptr) {
  SaveError(errptr, transaction->rep->Merge(FamilyOf(column_family), {key, key_length}, {value, value_length}));
}

void braiddb_transaction_rebuild_from_writebatch(braiddb_transaction_t* transaction, braiddb_writebatch_t* batch, char** errptr) {
  SaveError(errptr, Guarded([&] { return AddBatch(transaction, *batch); }));
}

void braiddb_transaction_rebuild_from_writebatch_wi(braiddb_transaction_t* transaction, braiddb_writebatch_wi_t* batch,
                                                    char** errptr) {
  SaveError(errptr, Guarded([&] {
              const braiddb::WriteBatch* updates = nullptr;
              const Status status = UpdatesOf(*batch, &updates);
              return status.ok() ? transaction->rep->RebuildFromWriteBatch(*updates) : status;
            }));
}

// ---- Reads

char* braiddb_transaction_get(braiddb_transaction_t* transaction, const braiddb_readoptions_t* options, const char* key,
                              size_t key_length, size_t* value_length, char** errptr) {
  std::string value;
  const Status status = Guarded([&] { return transaction->rep->Get(options->rep, {key, key_length}, &value); });
  return GiveValue(status, value, value_length, errptr);
}

char* braiddb_transaction_get_cf(braiddb_transaction_t* transaction, const braiddb_readoptions_t* options,
                                 braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                 size_t* value_length, char** errptr) {
  std::string value;
  const Status status = Guarded([&] {
    return transaction->rep->Get(options->rep, FamilyOf(column_family), {key, key_length}, &value);
  });
  return GiveValue(status, value, value_length, errptr);
}

char* braiddb_transaction_get_for_update(braiddb_transaction_t* transaction, const braiddb_readoptions_t* options,
                                         const char* key, size_t key_length, size_t* value_length, unsigned char exclusive,
                                         char** errptr) {
  std::string value;
  const Status status = ReadForUpdate(*transaction, *options, {key, key_length}, exclusive != 0, &value);
  return GiveValue(status, value, value_length, errptr);
}

char* braiddb_transaction_get_for_update_cf(braiddb_transaction_t* transaction, const braiddb_readoptions_t* options,
                                            braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                            size_t* value_length, unsigned char exclusive, char** errptr) {
  std::string value;
  const Status status =
      ReadForUpdate(transaction->rep.get(), *options, FamilyOf(column_family), {key, key_length}, exclusive != 0, &value);
  return GiveValue(status, value, value_length, errptr);
}

braiddb_pinnableslice_t* braiddb_transaction_get_pinned(braiddb_transaction_t* transaction, const braiddb_readoptions_t* options,
                                                        const char* key, size_t key_length, char** errptr) {
  std::string value;
  const Status status = Guarded([&] { return transaction->rep->Get(options->rep, {key, key_length}, &value); });
  return GivePinned(status, value, errptr);
}

braiddb_pinnableslice_t* braiddb_transaction_get_pinned_cf(braiddb_transaction_t* transaction,
                                                           const braiddb_readoptions_t* options,
                                                           braiddb_column_family_handle_t* column_family, const char* key,
                                                           size_t key_length, char** errptr) {
  std::string value;
  const Status status = Guarded([&] {
    return transaction->rep->Get(options->rep, FamilyOf(column_family), {key, key_length}, &value);
  });
  return GivePinned(status, value, errptr);
}

braiddb_pinnableslice_t* braiddb_transaction_get_pinned_for_update(braiddb_transaction_t* transaction,
                                                                   const braiddb_readoptions_t* options, const char* key,
                                                                   size_t key_length, unsigned char exclusive, char** errptr) {
  std::string value;
  const Status status = ReadForUpdate(*transaction, *options, {key, key_length}, exclusive != 0, &value);
  return GivePinned(status, value, errptr);
}

braiddb_pinnableslice_t* braiddb_transaction_get_pinned_for_update_cf(braiddb_transaction_t* transaction,
                                                                      const braiddb_readoptions_t* options,
                                                                      braiddb_column_family_handle_t* column_family,
                                                                      const char* key, size_t key_length, unsigned char exclusive,
                                                                      char** errptr) {
  std::string value;
  const Status status =
      ReadForUpdate(transaction->rep.get(), *options, FamilyOf(column_family), {key, key_length}, exclusive != 0, &value);
  return GivePinned(status, value, errptr);
}

namespace {

// `read` reads the keys into *values and returns a status for each.
template <class Read>
void GiveValues(const Read& read, size_t count, const char* const* keys, const size_t* key_lengths, char** values,
                size_t* value_lengths, char** errors) {
  std::vector<std::string> found;
  std::vector<Status> statuses;
  const Status all = Guarded([&] {
    std::vector<Slice> wanted;
    for (size_t i = 0; i < count; ++i) wanted.emplace_back(keys[i], key_lengths[i]);
    statuses = read(wanted, &found);
    return Status::OK();
  });
  for (size_t i = 0; i < count; ++i) {
    errors[i] = nullptr;
    values[i] = all.ok() ? GiveValue(statuses[i], found[i], &value_lengths[i], &errors[i])
                         : GiveValue(all, std::string(), &value_lengths[i], &errors[i]);
  }
}

}  // namespace

void braiddb_transaction_multi_get(braiddb_transaction_t* transaction, const braiddb_readoptions_t* options, size_t count,
                                   const char* const* keys, const size_t* key_lengths, char** values, size_t* value_lengths,
                                   char** errors) {
  const auto read = [&](const std::vector<Slice>& wanted, std::vector<std::string>* found) {
    return transaction->rep->MultiGet(options->rep, wanted, found);
  };
  GiveValues(read, count, keys, key_lengths, values, value_lengths, errors);
}

void braiddb_transaction_multi_get_cf(braiddb_transaction_t* transaction, const braiddb_readoptions_t* options,
                                      const braiddb_column_family_handle_t* const* column_families, size_t count,
                                      const char* const* keys, const size_t* key_lengths, char** values, size_t* value_lengths,
                                      char** errors) {
  const auto read = [&](const std::vector<Slice>& wanted, std::vector<std::string>* found) {
    std::vector<braiddb::ColumnFamilyHandle*> families;
    for (size_t i = 0; i < count; ++i) families.push_back(FamilyOf(column_families[i]));
    return transaction->rep->MultiGet(options->rep, families, wanted, found);
  };
  GiveValues(read, count, keys, key_lengths, values, value_lengths, errors);
}

braiddb_iterator_t* braiddb_transaction_create_iterator(braiddb_transaction_t* transaction,
                                                        const braiddb_readoptions_t* options) {
  return MakeIterator(*transaction->db, *options,
                      [transaction](const braiddb::ReadOptions& read) { return transaction->rep->NewIterator(read); });
}

braiddb_iterator_t* braiddb_transaction_create_iterator_cf(braiddb_transaction_t* transaction,
                                                           const braiddb_readoptions_t* options,
                                                           braiddb_column_family_handle_t* column_family) {
  const auto make = [transaction, family = SharedFamily(column_family)](const braiddb::ReadOptions& read) {
    return transaction->rep->NewIterator(read, family.get());
  };
  return MakeIterator(*transaction->db, *options, make);
}

// The caller frees the result by braiddb_free, as in RocksDB. The transaction owns the snapshot. Returns NULL if the transaction
// has no snapshot; reads then see the newest state.
const braiddb_snapshot_t* braiddb_transaction_get_snapshot(braiddb_transaction_t* transaction) {
  auto* const snapshot = static_cast<braiddb_snapshot_t*>(std::malloc(sizeof(braiddb_snapshot_t)));
  if (snapshot != nullptr) new (snapshot) braiddb_snapshot_t{transaction->rep->GetSnapshot()};
  return snapshot;
}

// ---- Two-phase commit

char* braiddb_transaction_get_name(braiddb_transaction_t* transaction, size_t* name_length) {
  const std::string& name = transaction->rep->GetName();
  *name_length = name.size();
  return CopyBytes(name);
}

void braiddb_transaction_set_name(braiddb_transaction_t* transaction, const char* name, size_t name_length, char** errptr) {
  SaveError(errptr, Guarded([&] { return transaction->rep->SetName(std::string(name, name_length)); }));
}

void braiddb_transaction_prepare(braiddb_transaction_t* transaction, char** errptr) {
  SaveError(errptr, transaction->contradicts_itself ? Contradiction() : transaction->rep->Prepare());
}

braiddb_writebatch_wi_t* braiddb_transaction_get_writebatch_wi(braiddb_transaction_t* transaction) {
  return MakeView(transaction);
}

void braiddb_transaction_set_commit_timestamp(braiddb_transaction_t*, uint64_t) {}
void braiddb_transaction_set_read_timestamp_for_validation(braiddb_transaction_t*, uint64_t) {}
