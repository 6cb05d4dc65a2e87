// User timestamps: not implemented.
#include "capi/batch.h"
#include "capi/option_tables.h"
#include "capi/options.h"
#include "capi/result.h"

using namespace braiddb::capi;

// ---- The functions

void braiddb_delete_cf_with_ts(braiddb_t*, const braiddb_writeoptions_t*, braiddb_column_family_handle_t*, const char*, size_t,
                               const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTimestamps);
}

void braiddb_delete_with_ts(braiddb_t*, const braiddb_writeoptions_t*, const char*, size_t, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTimestamps);
}

char* braiddb_get_cf_with_ts(braiddb_t*, const braiddb_readoptions_t*, braiddb_column_family_handle_t*, const char*, size_t,
                             size_t* value_length, char**, size_t*, char** errptr) {
  *value_length = 0;
  SaveNotImplemented(errptr, __func__, kNoTimestamps);
  return nullptr;
}

char* braiddb_get_full_history_ts_low(braiddb_t*, braiddb_column_family_handle_t*, size_t* value_length, char** errptr) {
  *value_length = 0;
  SaveNotImplemented(errptr, __func__, kNoTimestamps);
  return nullptr;
}

char* braiddb_get_with_ts(braiddb_t*, const braiddb_readoptions_t*, const char*, size_t, size_t* value_length, char**, size_t*,
                          char** errptr) {
  *value_length = 0;
  SaveNotImplemented(errptr, __func__, kNoTimestamps);
  return nullptr;
}

void braiddb_increase_full_history_ts_low(braiddb_t*, braiddb_column_family_handle_t*, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTimestamps);
}

const char* braiddb_iter_timestamp(const braiddb_iterator_t*, size_t* length) {
  *length = 0;
  return nullptr;
}

void braiddb_multi_get_cf_with_ts(braiddb_t*, const braiddb_readoptions_t*, const braiddb_column_family_handle_t* const*,
                                  size_t count, const char* const*, const size_t*, char** values, size_t* value_lengths, char**,
                                  size_t*, char** errors) {
  for (size_t i = 0; i < count; ++i) {
    values[i] = nullptr;
    value_lengths[i] = 0;
    errors[i] = nullptr;
    SaveNotImplemented(&errors[i], __func__, kNoTimestamps);
  }
}

void braiddb_multi_get_with_ts(braiddb_t*, const braiddb_readoptions_t*, size_t count, const char* const*, const size_t*,
                               char** values, size_t* value_lengths, char**, size_t*, char** errors) {
  for (size_t i = 0; i < count; ++i) {
    values[i] = nullptr;
    value_lengths[i] = 0;
    errors[i] = nullptr;
    SaveNotImplemented(&errors[i], __func__, kNoTimestamps);
  }
}

braiddb_t* braiddb_open_and_trim_history(const braiddb_options_t*, const char*, int, const char* const*,
                                         const braiddb_options_t* const*, braiddb_column_family_handle_t**, char*, size_t,
                                         char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTimestamps);
  return nullptr;
}

void braiddb_put_cf_with_ts(braiddb_t*, const braiddb_writeoptions_t*, braiddb_column_family_handle_t*, const char*, size_t,
                            const char*, size_t, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTimestamps);
}

void braiddb_put_with_ts(braiddb_t*, const braiddb_writeoptions_t*, const char*, size_t, const char*, size_t, const char*, size_t,
                         char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTimestamps);
}

void braiddb_singledelete_cf_with_ts(braiddb_t*, const braiddb_writeoptions_t*, braiddb_column_family_handle_t*, const char*,
                                     size_t, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTimestamps);
}

void braiddb_singledelete_with_ts(braiddb_t*, const braiddb_writeoptions_t*, const char*, size_t, const char*, size_t,
                                  char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTimestamps);
}

void braiddb_sstfilewriter_delete_with_ts(braiddb_sstfilewriter_t*, const char*, size_t, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTimestamps);
}

void braiddb_sstfilewriter_put_with_ts(braiddb_sstfilewriter_t*, const char*, size_t, const char*, size_t, const char*, size_t,
                                       char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoTimestamps);
}

void braiddb_writebatch_delete_cf_with_ts(braiddb_writebatch_t* batch, braiddb_column_family_handle_t*, const char*, size_t,
                                          const char*, size_t) {
  batch->Refuse(__func__, kNoTimestamps);
}

void braiddb_writebatch_put_cf_with_ts(braiddb_writebatch_t* batch, braiddb_column_family_handle_t*, const char*, size_t,
                                       const char*, size_t, const char*, size_t) {
  batch->Refuse(__func__, kNoTimestamps);
}

void braiddb_writebatch_singledelete_cf_with_ts(braiddb_writebatch_t* batch, braiddb_column_family_handle_t*, const char*, size_t,
                                                const char*, size_t) {
  batch->Refuse(__func__, kNoTimestamps);
}
