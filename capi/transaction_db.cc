// Databases with pessimistic transactions. Functions that concern no transaction use those of every database.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "capi/batch.h"
#include "capi/database.h"
#include "capi/option_tables.h"
#include "capi/options.h"
#include "capi/result.h"
#include "capi/transaction.h"

using braiddb::DB;
using braiddb::Options;
using braiddb::Status;
using braiddb::Transaction;
using braiddb::TransactionDB;
using namespace braiddb::capi;

namespace {

// A braiddb_transactiondb_t is the braiddb_t whose `db` is a TransactionDB. Programs pass one type for the other where RocksDB
// has no separate function, for example to drop a column family.
braiddb_t* BaseOf(braiddb_transactiondb_t* db) { return reinterpret_cast<braiddb_t*>(db); }
TransactionDB* TransactionsOf(braiddb_transactiondb_t* db) { return static_cast<TransactionDB*>(BaseOf(db)->db.get()); }

}  // namespace

// ---- Options

struct braiddb_transaction_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_TRANSACTION_OPTIONS)
};

braiddb_transaction_options_t* braiddb_transaction_options_create() { return Make<braiddb_transaction_options_t>(); }
void braiddb_transaction_options_destroy(braiddb_transaction_options_t* options) { delete options; }

#define DEFINE_BOTH(set_type, get_type, name, initial)
#define DEFINE_SET(type, name, initial) BRAIDDB_C_DEFINE_SET(transaction_options, braiddb_transaction_options_t, type, type, name)
BRAIDDB_C_TRANSACTION_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

struct braiddb_transactiondb_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_TRANSACTIONDB_OPTIONS)
};

braiddb_transactiondb_options_t* braiddb_transactiondb_options_create() { return Make<braiddb_transactiondb_options_t>(); }
void braiddb_transactiondb_options_destroy(braiddb_transactiondb_options_t* options) { delete options; }

#define DEFINE_BOTH(set_type, get_type, name, initial)
#define DEFINE_SET(type, name, initial) \
  BRAIDDB_C_DEFINE_SET(transactiondb_options, braiddb_transactiondb_options_t, type, type, name)
BRAIDDB_C_TRANSACTIONDB_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

// ---- Open

namespace {

braiddb::TransactionDBOptions MakeOptions(const braiddb_transactiondb_options_t& from) {
  braiddb::TransactionDBOptions to;
  to.max_locks = static_cast<uint64_t>(std::max<int64_t>(0, from.max_num_locks));
  to.stripes = static_cast<uint32_t>(std::clamp<size_t>(from.num_stripes, 1, 1 << 20));
  to.lock_timeout_ms = from.transaction_lock_timeout;
  to.default_lock_timeout_ms = from.default_lock_timeout;
  return to;
}

braiddb::TransactionOptions MakeOptions(const braiddb_transaction_options_t& from) {
  braiddb::TransactionOptions to;
  to.set_snapshot = from.set_snapshot != 0;
  to.deadlock_detect = from.deadlock_detect != 0;
  to.deadlock_detect_depth = static_cast<uint32_t>(std::clamp<int64_t>(from.deadlock_detect_depth, 1, UINT32_MAX));
  to.lock_timeout_ms = from.lock_timeout;
  to.expiration_ms = from.expiration;
  to.max_write_batch_size = from.max_write_batch_size;
  to.skip_prepare = from.skip_prepare != 0;
  return to;
}

// Calls `open` with an opener for this kind of database.
template <class Open>
Status OpenTransactions(const braiddb_transactiondb_options_t& options, braiddb_transactiondb_t** result, const Open& open) {
  braiddb_t* base = nullptr;
  Status status = open(&base, [&](const Options& own, const std::string& path, const Families& families, FamilyHandles* handles,
                                  std::unique_ptr<DB>* made) {
    std::unique_ptr<TransactionDB> transactions;
    Status opening = TransactionDB::Open(own, MakeOptions(options), path, families, handles, &transactions);
    *made = std::move(transactions);
    return opening;
  });
  if (status.ok()) *result = reinterpret_cast<braiddb_transactiondb_t*>(base);
  return status;
}

}  // namespace

braiddb_transactiondb_t* braiddb_transactiondb_open(const braiddb_options_t* options,
                                                    const braiddb_transactiondb_options_t* transactiondb_options,
                                                    const char* path, char** errptr) {
  braiddb_transactiondb_t* db = nullptr;
  SaveError(errptr, Guarded([&] {
              return OpenTransactions(*transactiondb_options, &db, [&](braiddb_t** base, const Opener& open) {
                return OpenDatabase(*options, path, base, open);
              });
            }));
  return db;
}

braiddb_transactiondb_t* braiddb_transactiondb_open_column_families(const braiddb_options_t* options,
                                                                    const braiddb_transactiondb_options_t* transactiondb_options,
                                                                    const char* path, int count,
                                                                    const char* const* column_family_names,
                                                                    const braiddb_options_t* const* column_family_options,
                                                                    braiddb_column_family_handle_t** handles, char** errptr) {
  braiddb_transactiondb_t* db = nullptr;
  SaveError(errptr, Guarded([&] {
              return OpenTransactions(*transactiondb_options, &db, [&](braiddb_t** base, const Opener& open) {
                return OpenFamilies(*options, path, count, column_family_names, column_family_options, handles, base, open);
              });
            }));
  return db;
}

void braiddb_transactiondb_close(braiddb_transactiondb_t* db) { braiddb_close(BaseOf(db)); }

braiddb_transaction_t* braiddb_transaction_begin(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options,
                                                 const braiddb_transaction_options_t* transaction_options,
                                                 braiddb_transaction_t* old_transaction) {
  return BeginTransaction(BaseOf(db), options, old_transaction, [&] {
    return TransactionsOf(db)->BeginTransaction(options->rep(), MakeOptions(*transaction_options));
  });
}

// Returns an array that the caller frees by braiddb_free. Its transactions are freed by braiddb_transaction_destroy, which leaves
// them prepared. Returns NULL if none exists, or if memory is short.
braiddb_transaction_t** braiddb_transactiondb_get_prepared_transactions(braiddb_transactiondb_t* db, size_t* count) {
  std::vector<std::unique_ptr<braiddb_transaction_t>> prepared;
  std::vector<std::unique_ptr<Transaction>> found;
  const Status status = Guarded([&] {
    TransactionsOf(db)->GetAllPreparedTransactions(&found);
    prepared.reserve(found.size());
    for (auto& transaction : found) {
      prepared.emplace_back(new braiddb_transaction_t(BaseOf(db), std::move(transaction)));
    }
    return Status::OK();
  });
  *count = 0;
  if (!status.ok() || prepared.empty()) return nullptr;
  const size_t bytes = prepared.size() * sizeof(braiddb_transaction_t*);
  auto** const result = static_cast<braiddb_transaction_t**>(std::malloc(bytes));
  if (result == nullptr) return nullptr;
  for (auto& transaction : prepared) result[(*count)++] = transaction.release();
  return result;
}

// ---- Functions of every database

braiddb_checkpoint_t* braiddb_transactiondb_checkpoint_object_create(braiddb_transactiondb_t* db, char** errptr) {
  return braiddb_checkpoint_object_create(BaseOf(db), errptr);
}

braiddb_column_family_handle_t* braiddb_transactiondb_create_column_family(braiddb_transactiondb_t* db,
                                                                           const braiddb_options_t* options, const char* name,
                                                                           char** errptr) {
  return braiddb_create_column_family(BaseOf(db), options, name, errptr);
}

braiddb_iterator_t* braiddb_transactiondb_create_iterator(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options) {
  return braiddb_create_iterator(BaseOf(db), options);
}

braiddb_iterator_t* braiddb_transactiondb_create_iterator_cf(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options,
                                                             braiddb_column_family_handle_t* column_family) {
  return braiddb_create_iterator_cf(BaseOf(db), options, column_family);
}

const braiddb_snapshot_t* braiddb_transactiondb_create_snapshot(braiddb_transactiondb_t* db) {
  return braiddb_create_snapshot(BaseOf(db));
}

void braiddb_transactiondb_delete(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options, const char* key,
                                  size_t key_length, char** errptr) {
  braiddb_delete(BaseOf(db), options, key, key_length, errptr);
}

void braiddb_transactiondb_delete_cf(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options,
                                     braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                     char** errptr) {
  braiddb_delete_cf(BaseOf(db), options, column_family, key, key_length, errptr);
}

void braiddb_transactiondb_flush(braiddb_transactiondb_t* db, const braiddb_flushoptions_t* options, char** errptr) {
  braiddb_flush(BaseOf(db), options, errptr);
}

void braiddb_transactiondb_flush_cf(braiddb_transactiondb_t* db, const braiddb_flushoptions_t* options,
                                    braiddb_column_family_handle_t* column_family, char** errptr) {
  braiddb_flush_cf(BaseOf(db), options, column_family, errptr);
}

void braiddb_transactiondb_flush_wal(braiddb_transactiondb_t* db, unsigned char sync, char** errptr) {
  braiddb_flush_wal(BaseOf(db), sync, errptr);
}

char* braiddb_transactiondb_get(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options, const char* key,
                                size_t key_length, size_t* value_length, char** errptr) {
  return braiddb_get(BaseOf(db), options, key, key_length, value_length, errptr);
}

char* braiddb_transactiondb_get_cf(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options,
                                   braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                   size_t* value_length, char** errptr) {
  return braiddb_get_cf(BaseOf(db), options, column_family, key, key_length, value_length, errptr);
}

braiddb_pinnableslice_t* braiddb_transactiondb_get_pinned(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options,
                                                          const char* key, size_t key_length, char** errptr) {
  return braiddb_get_pinned(BaseOf(db), options, key, key_length, errptr);
}

braiddb_pinnableslice_t* braiddb_transactiondb_get_pinned_cf(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options,
                                                             braiddb_column_family_handle_t* column_family, const char* key,
                                                             size_t key_length, char** errptr) {
  return braiddb_get_pinned_cf(BaseOf(db), options, column_family, key, key_length, errptr);
}

void braiddb_transactiondb_merge(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options, const char* key,
                                 size_t key_length, const char* value, size_t value_length, char** errptr) {
  braiddb_merge(BaseOf(db), options, key, key_length, value, value_length, errptr);
}

void braiddb_transactiondb_merge_cf(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options,
                                    braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                    const char* value, size_t value_length, char** errptr) {
  braiddb_merge_cf(BaseOf(db), options, column_family, key, key_length, value, value_length, errptr);
}

void braiddb_transactiondb_multi_get(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options, size_t count,
                                     const char* const* keys, const size_t* key_lengths, char** values, size_t* value_lengths,
                                     char** errors) {
  braiddb_multi_get(BaseOf(db), options, count, keys, key_lengths, values, value_lengths, errors);
}

void braiddb_transactiondb_multi_get_cf(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options,
                                        const braiddb_column_family_handle_t* const* column_families, size_t count,
                                        const char* const* keys, const size_t* key_lengths, char** values, size_t* value_lengths,
                                        char** errors) {
  braiddb_multi_get_cf(BaseOf(db), options, column_families, count, keys, key_lengths, values, value_lengths, errors);
}

int braiddb_transactiondb_property_int(braiddb_transactiondb_t* db, const char* property, uint64_t* value) {
  return braiddb_property_int(BaseOf(db), property, value);
}

char* braiddb_transactiondb_property_value(braiddb_transactiondb_t* db, const char* property) {
  return braiddb_property_value(BaseOf(db), property);
}

void braiddb_transactiondb_put(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options, const char* key,
                               size_t key_length, const char* value, size_t value_length, char** errptr) {
  braiddb_put(BaseOf(db), options, key, key_length, value, value_length, errptr);
}

void braiddb_transactiondb_put_cf(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options,
                                  braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                  const char* value, size_t value_length, char** errptr) {
  braiddb_put_cf(BaseOf(db), options, column_family, key, key_length, value, value_length, errptr);
}

void braiddb_transactiondb_release_snapshot(braiddb_transactiondb_t* db, const braiddb_snapshot_t* snapshot) {
  braiddb_release_snapshot(BaseOf(db), snapshot);
}

void braiddb_transactiondb_write(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options, braiddb_writebatch_t* batch,
                                 char** errptr) {
  braiddb_write(BaseOf(db), options, batch, errptr);
}
