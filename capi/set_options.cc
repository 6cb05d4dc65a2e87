// Options that a program changes while a database is open.
#include "capi/objects.h"
#include "capi/result.h"

using namespace braiddb::capi;

void braiddb_set_options(braiddb_t*, int, const char* const*, const char* const*, char** errptr) {
  SaveNotImplemented(errptr, __func__, "options that change while a database is open");
}

void braiddb_set_options_cf(braiddb_t* db, braiddb_column_family_handle_t*, int count, const char* const* names,
                            const char* const* values, char** errptr) {
  braiddb_set_options(db, count, names, values, errptr);
}
