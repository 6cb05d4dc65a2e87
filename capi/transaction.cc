// Transactions: not implemented, but for their options.
#include "capi/option_tables.h"
#include "capi/options.h"
#include "capi/result.h"

using namespace braiddb::capi;

// ---- Options

struct braiddb_transaction_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_TRANSACTION_OPTIONS)
};

braiddb_transaction_options_t* braiddb_transaction_options_create() { return new braiddb_transaction_options_t; }
void braiddb_transaction_options_destroy(braiddb_transaction_options_t* options) { delete options; }

#define DEFINE_BOTH(set_type, get_type, name, initial)
#define DEFINE_SET(type, name, initial) BRAIDDB_C_DEFINE_SET(transaction_options, braiddb_transaction_options_t, type, type, name)
BRAIDDB_C_TRANSACTION_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

// ---- Options

struct braiddb_transactiondb_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_TRANSACTIONDB_OPTIONS)
};

braiddb_transactiondb_options_t* braiddb_transactiondb_options_create() { return new braiddb_transactiondb_options_t; }
void braiddb_transactiondb_options_destroy(braiddb_transactiondb_options_t* options) { delete options; }

#define DEFINE_BOTH(set_type, get_type, name, initial)
#define DEFINE_SET(type, name, initial) \
  BRAIDDB_C_DEFINE_SET(transactiondb_options, braiddb_transactiondb_options_t, type, type, name)
BRAIDDB_C_TRANSACTIONDB_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

// ---- The functions

braiddb_transaction_t* braiddb_transaction_begin(braiddb_transactiondb_t*, const braiddb_writeoptions_t*,
                                                 const braiddb_transaction_options_t*, braiddb_transaction_t*) {
  return nullptr;
}

void braiddb_transaction_commit(braiddb_transaction_t*, char** errptr) { SaveNotImplemented(errptr, __func__, kNoTransactions); }

braiddb_iterator_t* braiddb_transaction_create_iterator(braiddb_transaction_t*, const braiddb_readoptions_t*) { return nullptr; }

braiddb_iterator_t* braiddb_transaction_create_iterator_cf(braiddb_transaction_t*, const braiddb_readoptions_t*,
                                                           braiddb_column_family_handle_t*) {
  return nullptr;
}

void braiddb_transaction_delete(braiddb_transaction_t*, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transaction_delete_cf(braiddb_transaction_t*, braiddb_column_family_handle_t*, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transaction_destroy(braiddb_transaction_t*) {}

char* braiddb_transaction_get(braiddb_transaction_t*, const braiddb_readoptions_t*, const char*, size_t, size_t* value_length,
                              char** errptr) {
  *value_length = 0;
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

char* braiddb_transaction_get_cf(braiddb_transaction_t*, const braiddb_readoptions_t*, braiddb_column_family_handle_t*,
                                 const char*, size_t, size_t* value_length, char** errptr) {
  *value_length = 0;
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

char* braiddb_transaction_get_for_update(braiddb_transaction_t*, const braiddb_readoptions_t*, const char*, size_t,
                                         size_t* value_length, unsigned char, char** errptr) {
  *value_length = 0;
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

char* braiddb_transaction_get_for_update_cf(braiddb_transaction_t*, const braiddb_readoptions_t*, braiddb_column_family_handle_t*,
                                            const char*, size_t, size_t* value_length, unsigned char, char** errptr) {
  *value_length = 0;
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

char* braiddb_transaction_get_name(braiddb_transaction_t*, size_t* value_length) {
  *value_length = 0;
  return nullptr;
}

braiddb_pinnableslice_t* braiddb_transaction_get_pinned(braiddb_transaction_t*, const braiddb_readoptions_t*, const char*, size_t,
                                                        char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

braiddb_pinnableslice_t* braiddb_transaction_get_pinned_cf(braiddb_transaction_t*, const braiddb_readoptions_t*,
                                                           braiddb_column_family_handle_t*, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

braiddb_pinnableslice_t* braiddb_transaction_get_pinned_for_update(braiddb_transaction_t*, const braiddb_readoptions_t*,
                                                                   const char*, size_t, unsigned char, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

braiddb_pinnableslice_t* braiddb_transaction_get_pinned_for_update_cf(braiddb_transaction_t*, const braiddb_readoptions_t*,
                                                                      braiddb_column_family_handle_t*, const char*, size_t,
                                                                      unsigned char, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

const braiddb_snapshot_t* braiddb_transaction_get_snapshot(braiddb_transaction_t*) { return nullptr; }

braiddb_writebatch_wi_t* braiddb_transaction_get_writebatch_wi(braiddb_transaction_t*) { return nullptr; }

void braiddb_transaction_merge(braiddb_transaction_t*, const char*, size_t, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transaction_merge_cf(braiddb_transaction_t*, braiddb_column_family_handle_t*, const char*, size_t, const char*,
                                  size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transaction_multi_get(braiddb_transaction_t*, const braiddb_readoptions_t*, size_t count, const char* const*,
                                   const size_t*, char** values, size_t* value_lengths, char** errors) {
  for (size_t i = 0; i < count; ++i) {
    values[i] = nullptr;
    value_lengths[i] = 0;
    errors[i] = nullptr;
    SaveNotImplemented(&errors[i], __func__, kNoTransactions);
  }
}

void braiddb_transaction_multi_get_cf(braiddb_transaction_t*, const braiddb_readoptions_t*,
                                      const braiddb_column_family_handle_t* const*, size_t count, const char* const*,
                                      const size_t*, char** values, size_t* value_lengths, char** errors) {
  for (size_t i = 0; i < count; ++i) {
    values[i] = nullptr;
    value_lengths[i] = 0;
    errors[i] = nullptr;
    SaveNotImplemented(&errors[i], __func__, kNoTransactions);
  }
}

void braiddb_transaction_prepare(braiddb_transaction_t*, char** errptr) { SaveNotImplemented(errptr, __func__, kNoTransactions); }

void braiddb_transaction_put(braiddb_transaction_t*, const char*, size_t, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transaction_put_cf(braiddb_transaction_t*, braiddb_column_family_handle_t*, const char*, size_t, const char*, size_t,
                                char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transaction_rebuild_from_writebatch(braiddb_transaction_t*, braiddb_writebatch_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transaction_rebuild_from_writebatch_wi(braiddb_transaction_t*, braiddb_writebatch_wi_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transaction_rollback(braiddb_transaction_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transaction_rollback_to_savepoint(braiddb_transaction_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transaction_set_commit_timestamp(braiddb_transaction_t*, uint64_t) {}

void braiddb_transaction_set_name(braiddb_transaction_t*, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transaction_set_read_timestamp_for_validation(braiddb_transaction_t*, uint64_t) {}

void braiddb_transaction_set_savepoint(braiddb_transaction_t*) {}

braiddb_checkpoint_t* braiddb_transactiondb_checkpoint_object_create(braiddb_transactiondb_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

void braiddb_transactiondb_close(braiddb_transactiondb_t*) {}

braiddb_column_family_handle_t* braiddb_transactiondb_create_column_family(braiddb_transactiondb_t*, const braiddb_options_t*,
                                                                           const char*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

braiddb_iterator_t* braiddb_transactiondb_create_iterator(braiddb_transactiondb_t*, const braiddb_readoptions_t*) {
  return nullptr;
}

braiddb_iterator_t* braiddb_transactiondb_create_iterator_cf(braiddb_transactiondb_t*, const braiddb_readoptions_t*,
                                                             braiddb_column_family_handle_t*) {
  return nullptr;
}

const braiddb_snapshot_t* braiddb_transactiondb_create_snapshot(braiddb_transactiondb_t*) { return nullptr; }

void braiddb_transactiondb_delete(braiddb_transactiondb_t*, const braiddb_writeoptions_t*, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transactiondb_delete_cf(braiddb_transactiondb_t*, const braiddb_writeoptions_t*, braiddb_column_family_handle_t*,
                                     const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transactiondb_flush(braiddb_transactiondb_t*, const braiddb_flushoptions_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transactiondb_flush_cf(braiddb_transactiondb_t*, const braiddb_flushoptions_t*, braiddb_column_family_handle_t*,
                                    char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transactiondb_flush_wal(braiddb_transactiondb_t*, unsigned char, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

char* braiddb_transactiondb_get(braiddb_transactiondb_t*, const braiddb_readoptions_t*, const char*, size_t, size_t* value_length,
                                char** errptr) {
  *value_length = 0;
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

char* braiddb_transactiondb_get_cf(braiddb_transactiondb_t*, const braiddb_readoptions_t*, braiddb_column_family_handle_t*,
                                   const char*, size_t, size_t* value_length, char** errptr) {
  *value_length = 0;
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

braiddb_pinnableslice_t* braiddb_transactiondb_get_pinned(braiddb_transactiondb_t*, const braiddb_readoptions_t*, const char*,
                                                          size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

braiddb_pinnableslice_t* braiddb_transactiondb_get_pinned_cf(braiddb_transactiondb_t*, const braiddb_readoptions_t*,
                                                             braiddb_column_family_handle_t*, const char*, size_t,
                                                             char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

braiddb_transaction_t** braiddb_transactiondb_get_prepared_transactions(braiddb_transactiondb_t*, size_t* count) {
  *count = 0;
  return nullptr;
}

void braiddb_transactiondb_merge(braiddb_transactiondb_t*, const braiddb_writeoptions_t*, const char*, size_t, const char*,
                                 size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transactiondb_merge_cf(braiddb_transactiondb_t*, const braiddb_writeoptions_t*, braiddb_column_family_handle_t*,
                                    const char*, size_t, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transactiondb_multi_get(braiddb_transactiondb_t*, const braiddb_readoptions_t*, size_t count, const char* const*,
                                     const size_t*, char** values, size_t* value_lengths, char** errors) {
  for (size_t i = 0; i < count; ++i) {
    values[i] = nullptr;
    value_lengths[i] = 0;
    errors[i] = nullptr;
    SaveNotImplemented(&errors[i], __func__, kNoTransactions);
  }
}

void braiddb_transactiondb_multi_get_cf(braiddb_transactiondb_t*, const braiddb_readoptions_t*,
                                        const braiddb_column_family_handle_t* const*, size_t count, const char* const*,
                                        const size_t*, char** values, size_t* value_lengths, char** errors) {
  for (size_t i = 0; i < count; ++i) {
    values[i] = nullptr;
    value_lengths[i] = 0;
    errors[i] = nullptr;
    SaveNotImplemented(&errors[i], __func__, kNoTransactions);
  }
}

braiddb_transactiondb_t* braiddb_transactiondb_open(const braiddb_options_t*, const braiddb_transactiondb_options_t*, const char*,
                                                    char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

braiddb_transactiondb_t* braiddb_transactiondb_open_column_families(const braiddb_options_t*,
                                                                    const braiddb_transactiondb_options_t*, const char*, int,
                                                                    const char* const*, const braiddb_options_t* const*,
                                                                    braiddb_column_family_handle_t**, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
  return nullptr;
}

int braiddb_transactiondb_property_int(braiddb_transactiondb_t*, const char*, uint64_t*) { return 0; }

char* braiddb_transactiondb_property_value(braiddb_transactiondb_t*, const char*) { return nullptr; }

void braiddb_transactiondb_put(braiddb_transactiondb_t*, const braiddb_writeoptions_t*, const char*, size_t, const char*, size_t,
                               char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transactiondb_put_cf(braiddb_transactiondb_t*, const braiddb_writeoptions_t*, braiddb_column_family_handle_t*,
                                  const char*, size_t, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}

void braiddb_transactiondb_release_snapshot(braiddb_transactiondb_t*, const braiddb_snapshot_t*) {}

void braiddb_transactiondb_write(braiddb_transactiondb_t*, const braiddb_writeoptions_t*, braiddb_writebatch_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTransactions);
}
