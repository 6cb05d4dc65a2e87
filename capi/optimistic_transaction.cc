// Optimistic transactions: not implemented, but for their options.
#include "capi/option_tables.h"
#include "capi/options.h"
#include "capi/result.h"

using namespace braiddb::capi;

// ---- Options

struct braiddb_optimistictransaction_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_OPTIMISTIC_OPTIONS)
};

braiddb_optimistictransaction_options_t* braiddb_optimistictransaction_options_create() {
  return new braiddb_optimistictransaction_options_t;
}
void braiddb_optimistictransaction_options_destroy(braiddb_optimistictransaction_options_t* options) { delete options; }

#define DEFINE_BOTH(set_type, get_type, name, initial)
#define DEFINE_SET(type, name, initial) \
  BRAIDDB_C_DEFINE_SET(optimistictransaction_options, braiddb_optimistictransaction_options_t, type, type, name)
BRAIDDB_C_OPTIMISTIC_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

// ---- The functions

braiddb_transaction_t* braiddb_optimistictransaction_begin(braiddb_optimistictransactiondb_t*, const braiddb_writeoptions_t*,
                                                           const braiddb_optimistictransaction_options_t*,
                                                           braiddb_transaction_t*) {
  return nullptr;
}

braiddb_checkpoint_t* braiddb_optimistictransactiondb_checkpoint_object_create(braiddb_optimistictransactiondb_t*,
                                                                               char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

void braiddb_optimistictransactiondb_close(braiddb_optimistictransactiondb_t*) {}

void braiddb_optimistictransactiondb_close_base_db(braiddb_t*) {}

braiddb_t* braiddb_optimistictransactiondb_get_base_db(braiddb_optimistictransactiondb_t*) { return nullptr; }

braiddb_optimistictransactiondb_t* braiddb_optimistictransactiondb_open(const braiddb_options_t*, const char*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

braiddb_optimistictransactiondb_t* braiddb_optimistictransactiondb_open_column_families(const braiddb_options_t*, const char*,
                                                                                        int, const char* const*,
                                                                                        const braiddb_options_t* const*,
                                                                                        braiddb_column_family_handle_t**,
                                                                                        char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

int braiddb_optimistictransactiondb_property_int(braiddb_optimistictransactiondb_t*, const char*, uint64_t*) { return 0; }

char* braiddb_optimistictransactiondb_property_value(braiddb_optimistictransactiondb_t*, const char*) { return nullptr; }

void braiddb_optimistictransactiondb_write(braiddb_optimistictransactiondb_t*, const braiddb_writeoptions_t*,
                                           braiddb_writebatch_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}
