// Databases with pessimistic transactions. What is not about transactions is done by the functions for every database.
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

struct braiddb_transactiondb_t {
  braiddb_t* base = nullptr;
  braiddb::TransactionDB* rep = nullptr;  // owned by base
};

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

// ---- Opening

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

// Runs `open` with what opens a database of this kind.
template <class Open>
Status OpenTransactions(const braiddb_transactiondb_options_t& options, braiddb_transactiondb_t** result, const Open& open) {
  auto opened = std::make_unique<braiddb_transactiondb_t>();
  Status status = open(&opened->base, [&](const Options& own, const std::string& path, const Families& families,
                                          FamilyHandles* handles, std::unique_ptr<DB>* made) {
    std::unique_ptr<TransactionDB> transactions;
    Status opening = TransactionDB::Open(own, MakeOptions(options), path, families, handles, &transactions);
    opened->rep = transactions.get();
    *made = std::move(transactions);
    return opening;
  });
  if (status.ok()) *result = opened.release();
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

void braiddb_transactiondb_close(braiddb_transactiondb_t* db) {
  braiddb_close(db->base);
  delete db;
}

braiddb_transaction_t* braiddb_transaction_begin(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options,
                                                 const braiddb_transaction_options_t* transaction_options,
                                                 braiddb_transaction_t* old_transaction) {
  return BeginTransaction(db->base, options, old_transaction,
                          [&] { return db->rep->BeginTransaction(options->rep(), MakeOptions(*transaction_options)); });
}

// An array for braiddb_free, of transactions for braiddb_transaction_destroy, which leaves them prepared. NULL of none, and
// without memory.
braiddb_transaction_t** braiddb_transactiondb_get_prepared_transactions(braiddb_transactiondb_t* db, size_t* count) {
  std::vector<std::unique_ptr<braiddb_transaction_t>> prepared;
  std::vector<std::unique_ptr<Transaction>> found;
  const Status status = Guarded([&] {
    db->rep->GetAllPreparedTransactions(&found);
    prepared.reserve(found.size());
    for (auto& transaction : found) {
      prepared.emplace_back(new braiddb_transaction_t(db->base, std::move(transaction)));
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

// ---- As of every database

braiddb_checkpoint_t* braiddb_transactiondb_checkpoint_object_create(braiddb_transactiondb_t* db, char** errptr) {
  return braiddb_checkpoint_object_create(db->base, errptr);
}

braiddb_column_family_handle_t* braiddb_transactiondb_create_column_family(braiddb_transactiondb_t* db,
                                                                           const braiddb_options_t* options, const char* name,
                                                                           char** errptr) {
  return braiddb_create_column_family(db->base, options, name, errptr);
}

braiddb_iterator_t* braiddb_transactiondb_create_iterator(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options) {
  return braiddb_create_iterator(db->base, options);
}

braiddb_iterator_t* braiddb_transactiondb_create_iterator_cf(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options,
                                                             braiddb_column_family_handle_t* column_family) {
  return braiddb_create_iterator_cf(db->base, options, column_family);
}

const braiddb_snapshot_t* braiddb_transactiondb_create_snapshot(braiddb_transactiondb_t* db) {
  return braiddb_create_snapshot(db->base);
}

void braiddb_transactiondb_delete(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options, const char* key,
                                  size_t key_length, char** errptr) {
  braiddb_delete(db->base, options, key, key_length, errptr);
}

void braiddb_transactiondb_delete_cf(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options,
                                     braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                     char** errptr) {
  braiddb_delete_cf(db->base, options, column_family, key, key_length, errptr);
}

void braiddb_transactiondb_flush(braiddb_transactiondb_t* db, const braiddb_flushoptions_t* options, char** errptr) {
  braiddb_flush(db->base, options, errptr);
}

void braiddb_transactiondb_flush_cf(braiddb_transactiondb_t* db, const braiddb_flushoptions_t* options,
                                    braiddb_column_family_handle_t* column_family, char** errptr) {
  braiddb_flush_cf(db->base, options, column_family, errptr);
}

void braiddb_transactiondb_flush_wal(braiddb_transactiondb_t* db, unsigned char sync, char** errptr) {
  braiddb_flush_wal(db->base, sync, errptr);
}

char* braiddb_transactiondb_get(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options, const char* key,
                                size_t key_length, size_t* value_length, char** errptr) {
  return braiddb_get(db->base, options, key, key_length, value_length, errptr);
}

char* braiddb_transactiondb_get_cf(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options,
                                   braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                   size_t* value_length, char** errptr) {
  return braiddb_get_cf(db->base, options, column_family, key, key_length, value_length, errptr);
}

braiddb_pinnableslice_t* braiddb_transactiondb_get_pinned(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options,
                                                          const char* key, size_t key_length, char** errptr) {
  return braiddb_get_pinned(db->base, options, key, key_length, errptr);
}

braiddb_pinnableslice_t* braiddb_transactiondb_get_pinned_cf(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options,
                                                             braiddb_column_family_handle_t* column_family, const char* key,
                                                             size_t key_length, char** errptr) {
  return braiddb_get_pinned_cf(db->base, options, column_family, key, key_length, errptr);
}

void braiddb_transactiondb_merge(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options, const char* key,
                                 size_t key_length, const char* value, size_t value_length, char** errptr) {
  braiddb_merge(db->base, options, key, key_length, value, value_length, errptr);
}

void braiddb_transactiondb_merge_cf(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options,
                                    braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                    const char* value, size_t value_length, char** errptr) {
  braiddb_merge_cf(db->base, options, column_family, key, key_length, value, value_length, errptr);
}

void braiddb_transactiondb_multi_get(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options, size_t count,
                                     const char* const* keys, const size_t* key_lengths, char** values, size_t* value_lengths,
                                     char** errors) {
  braiddb_multi_get(db->base, options, count, keys, key_lengths, values, value_lengths, errors);
}

void braiddb_transactiondb_multi_get_cf(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options,
                                        const braiddb_column_family_handle_t* const* column_families, size_t count,
                                        const char* const* keys, const size_t* key_lengths, char** values, size_t* value_lengths,
                                        char** errors) {
  braiddb_multi_get_cf(db->base, options, column_families, count, keys, key_lengths, values, value_lengths, errors);
}

int braiddb_transactiondb_property_int(braiddb_transactiondb_t* db, const char* property, uint64_t* value) {
  return braiddb_property_int(db->base, property, value);
}

char* braiddb_transactiondb_property_value(braiddb_transactiondb_t* db, const char* property) {
  return braiddb_property_value(db->base, property);
}

void braiddb_transactiondb_put(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options, const char* key,
                               size_t key_length, const char* value, size_t value_length, char** errptr) {
  braiddb_put(db->base, options, key, key_length, value, value_length, errptr);
}

void braiddb_transactiondb_put_cf(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options,
                                  braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                  const char* value, size_t value_length, char** errptr) {
  braiddb_put_cf(db->base, options, column_family, key, key_length, value, value_length, errptr);
}

void braiddb_transactiondb_release_snapshot(braiddb_transactiondb_t* db, const braiddb_snapshot_t* snapshot) {
  braiddb_release_snapshot(db->base, snapshot);
}

void braiddb_transactiondb_write(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options, braiddb_writebatch_t* batch,
                                 char** errptr) {
  braiddb_write(db->base, options, batch, errptr);
}
