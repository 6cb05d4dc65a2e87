// Options as text: not implemented.
#include "capi/option_tables.h"
#include "capi/options.h"
#include "capi/result.h"

using namespace braiddb::capi;

// ---- The functions

void braiddb_get_options_from_string(const braiddb_options_t*, const char*, braiddb_options_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoOptionTexts);
}

void braiddb_load_latest_options(const char*, braiddb_env_t*, bool, braiddb_cache_t*, braiddb_options_t**, size_t*, char***,
                                 braiddb_options_t***, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoOptionTexts);
}

void braiddb_load_latest_options_destroy(braiddb_options_t*, char**, braiddb_options_t**, size_t) {}

void braiddb_set_options(braiddb_t*, int, const char* const*, const char* const*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoOptionTexts);
}
