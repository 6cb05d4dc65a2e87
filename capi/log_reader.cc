// Reading the log: not implemented.
#include "capi/option_tables.h"
#include "capi/options.h"
#include "capi/result.h"

using namespace braiddb::capi;

// ---- The functions

braiddb_wal_iterator_t* braiddb_get_updates_since(braiddb_t*, uint64_t, const braiddb_wal_readoptions_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoLogReader);
  return nullptr;
}

void braiddb_wal_iter_destroy(const braiddb_wal_iterator_t*) {}

braiddb_writebatch_t* braiddb_wal_iter_get_batch(const braiddb_wal_iterator_t*, uint64_t*) { return nullptr; }

void braiddb_wal_iter_next(braiddb_wal_iterator_t*) {}

void braiddb_wal_iter_status(const braiddb_wal_iterator_t*, char** errptr) { SaveNotImplemented(errptr, __func__, kNoLogReader); }

unsigned char braiddb_wal_iter_valid(const braiddb_wal_iterator_t*) { return 0; }
