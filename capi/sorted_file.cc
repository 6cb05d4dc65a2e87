// Files of sorted keys: not implemented, but for the options.
#include "capi/option_tables.h"
#include "capi/options.h"
#include "capi/result.h"

using namespace braiddb::capi;

// ---- Options

struct braiddb_ingestexternalfileoptions_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_INGEST_OPTIONS)
};

braiddb_ingestexternalfileoptions_t* braiddb_ingestexternalfileoptions_create() {
  return new braiddb_ingestexternalfileoptions_t;
}
void braiddb_ingestexternalfileoptions_destroy(braiddb_ingestexternalfileoptions_t* options) { delete options; }

#define DEFINE_BOTH(set_type, get_type, name, initial)
#define DEFINE_SET(type, name, initial) \
  BRAIDDB_C_DEFINE_SET(ingestexternalfileoptions, braiddb_ingestexternalfileoptions_t, type, type, name)
BRAIDDB_C_INGEST_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

// ---- The functions

void braiddb_ingest_external_file(braiddb_t*, const char* const*, size_t, const braiddb_ingestexternalfileoptions_t*,
                                  char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoSortedFiles);
}

void braiddb_sstfilewriter_add(braiddb_sstfilewriter_t*, const char*, size_t, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoSortedFiles);
}

braiddb_sstfilewriter_t* braiddb_sstfilewriter_create(const braiddb_envoptions_t*, const braiddb_options_t*) { return nullptr; }

braiddb_sstfilewriter_t* braiddb_sstfilewriter_create_with_comparator(const braiddb_envoptions_t*, const braiddb_options_t*,
                                                                      const braiddb_comparator_t*) {
  return nullptr;
}

void braiddb_sstfilewriter_delete(braiddb_sstfilewriter_t*, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoSortedFiles);
}

void braiddb_sstfilewriter_delete_range(braiddb_sstfilewriter_t*, const char*, size_t, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoSortedFiles);
}

void braiddb_sstfilewriter_destroy(braiddb_sstfilewriter_t*) {}

void braiddb_sstfilewriter_file_size(braiddb_sstfilewriter_t*, uint64_t*) {}

void braiddb_sstfilewriter_finish(braiddb_sstfilewriter_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoSortedFiles);
}

void braiddb_sstfilewriter_merge(braiddb_sstfilewriter_t*, const char*, size_t, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoSortedFiles);
}

void braiddb_sstfilewriter_open(braiddb_sstfilewriter_t*, const char*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoSortedFiles);
}

void braiddb_sstfilewriter_put(braiddb_sstfilewriter_t*, const char*, size_t, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoSortedFiles);
}
