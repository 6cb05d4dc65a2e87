// Databases with optimistic transactions.
#include "capi/batch.h"
#include "capi/database.h"
#include "capi/option_tables.h"
#include "capi/options.h"
#include "capi/result.h"
#include "capi/transaction.h"

using braiddb::DB;
using braiddb::OptimisticTransactionDB;
using braiddb::Options;
using braiddb::Status;
using namespace braiddb::capi;

struct braiddb_optimistictransactiondb_t {
  braiddb_t* base = nullptr;
  braiddb::OptimisticTransactionDB* rep = nullptr;  // owned by `base`
};

// ---- Options

struct braiddb_optimistictransaction_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_OPTIMISTIC_OPTIONS)
};

braiddb_optimistictransaction_options_t* braiddb_optimistictransaction_options_create() {
  return Make<braiddb_optimistictransaction_options_t>();
}
void braiddb_optimistictransaction_options_destroy(braiddb_optimistictransaction_options_t* options) { delete options; }

#define DEFINE_BOTH(set_type, get_type, name, initial)
#define DEFINE_SET(type, name, initial) \
  BRAIDDB_C_DEFINE_SET(optimistictransaction_options, braiddb_optimistictransaction_options_t, type, type, name)
BRAIDDB_C_OPTIMISTIC_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

// ---- Open

namespace {

// Calls `open` with an opener for this kind of database.
template <class Open>
Status OpenTransactions(braiddb_optimistictransactiondb_t** result, const Open& open) {
  auto opened = std::make_unique<braiddb_optimistictransactiondb_t>();
  Status status = open(&opened->base, [&](const Options& own, const std::string& path, const Families& families,
                                          FamilyHandles* handles, std::unique_ptr<DB>* made) {
    std::unique_ptr<OptimisticTransactionDB> transactions;
    Status opening = OptimisticTransactionDB::Open(own, path, families, handles, &transactions);
    opened->rep = transactions.get();
    *made = std::move(transactions);
    return opening;
  });
  if (status.ok()) *result = opened.release();
  return status;
}

}  // namespace

braiddb_optimistictransactiondb_t* braiddb_optimistictransactiondb_open(const braiddb_options_t* options, const char* path,
                                                                        char** errptr) {
  braiddb_optimistictransactiondb_t* db = nullptr;
  SaveError(errptr, Guarded([&] {
              return OpenTransactions(
                  &db, [&](braiddb_t** base, const Opener& open) { return OpenDatabase(*options, path, base, open); });
            }));
  return db;
}

braiddb_optimistictransactiondb_t* braiddb_optimistictransactiondb_open_column_families(
    const braiddb_options_t* options, const char* path, int count, const char* const* column_family_names,
    const braiddb_options_t* const* column_family_options, braiddb_column_family_handle_t** handles, char** errptr) {
  braiddb_optimistictransactiondb_t* db = nullptr;
  SaveError(errptr, Guarded([&] {
              return OpenTransactions(&db, [&](braiddb_t** base, const Opener& open) {
                return OpenFamilies(*options, path, count, column_family_names, column_family_options, handles, base, open);
              });
            }));
  return db;
}

void braiddb_optimistictransactiondb_close(braiddb_optimistictransactiondb_t* db) {
  braiddb_close(db->base);
  delete db;
}

// Writes through this object conflict with transactions, too.
braiddb_t* braiddb_optimistictransactiondb_get_base_db(braiddb_optimistictransactiondb_t* db) { return db->base; }

// The base database is closed together with the transaction database.
void braiddb_optimistictransactiondb_close_base_db(braiddb_t*) {}

braiddb_transaction_t* braiddb_optimistictransaction_begin(
    braiddb_optimistictransactiondb_t* db, const braiddb_writeoptions_t* options,
    const braiddb_optimistictransaction_options_t* optimistictransaction_options, braiddb_transaction_t* old_transaction) {
  braiddb::OptimisticTransactionOptions own;
  own.set_snapshot = optimistictransaction_options->set_snapshot != 0;
  return BeginTransaction(db->base, options, old_transaction, [&] { return db->rep->BeginTransaction(options->rep(), own); });
}

// ---- Functions of every database

braiddb_checkpoint_t* braiddb_optimistictransactiondb_checkpoint_object_create(braiddb_optimistictransactiondb_t* db,
                                                                               char** errptr) {
  return braiddb_checkpoint_object_create(db->base, errptr);
}

int braiddb_optimistictransactiondb_property_int(braiddb_optimistictransactiondb_t* db, const char* property, uint64_t* value) {
  return braiddb_property_int(db->base, property, value);
}

char* braiddb_optimistictransactiondb_property_value(braiddb_optimistictransactiondb_t* db, const char* property) {
  return braiddb_property_value(db->base, property);
}

void braiddb_optimistictransactiondb_write(braiddb_optimistictransactiondb_t* db, const braiddb_writeoptions_t* options,
                                           braiddb_writebatch_t* batch, char** errptr) {
  if (batch->rep.HasDeleteRange()) {
    SaveNotImplemented(errptr, __func__, "deletions of ranges, which cannot be compared at a commit");
  } else {
    braiddb_write(db->base, options, batch, errptr);
  }
}
