// Checkpoints: not implemented.
#include "capi/option_tables.h"
#include "capi/options.h"
#include "capi/result.h"

using namespace braiddb::capi;

// ---- The functions

void braiddb_checkpoint_create(braiddb_checkpoint_t*, const char*, uint64_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoCheckpoints);
}

braiddb_checkpoint_t* braiddb_checkpoint_object_create(braiddb_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoCheckpoints);
  return nullptr;
}

void braiddb_checkpoint_object_destroy(braiddb_checkpoint_t*) {}
