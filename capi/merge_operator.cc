#include "capi/merge_operator.h"

#include "capi/result.h"

using braiddb::capi::kNoMerge;
using braiddb::capi::SaveNotImplemented;

braiddb_mergeoperator_t* braiddb_mergeoperator_create(
    void* state, void (*destructor)(void*),
    char* (*full_merge)(void*, const char*, size_t, const char*, size_t, const char* const*, const size_t*, int, unsigned char*,
                        size_t*),
    char* (*partial_merge)(void*, const char*, size_t, const char* const*, const size_t*, int, unsigned char*, size_t*),
    void (*delete_value)(void*, const char*, size_t), const char* (*name)(void*)) {
  return new braiddb_mergeoperator_t{state, destructor, full_merge, partial_merge, delete_value, name};
}

void braiddb_mergeoperator_destroy(braiddb_mergeoperator_t* merge_operator) { delete merge_operator; }

void braiddb_merge(braiddb_t*, const braiddb_writeoptions_t*, const char*, size_t, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoMerge);
}

void braiddb_merge_cf(braiddb_t*, const braiddb_writeoptions_t*, braiddb_column_family_handle_t*, const char*, size_t,
                      const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoMerge);
}
