// Functions of LevelDB's C API whose signature differs from the function of the same name in braiddb/c.h. capi/functions.txt
// lists them.
#pragma once

#include "braiddb/c.h"

extern "C" {

BRAIDDB_C_API void braiddb_leveldb_approximate_sizes(braiddb_t* db, int count, const char* const* start_keys,
                                                     const size_t* start_key_lengths, const char* const* limit_keys,
                                                     const size_t* limit_key_lengths, uint64_t* sizes);
BRAIDDB_C_API braiddb_filterpolicy_t* braiddb_leveldb_filterpolicy_create_bloom(int bits_per_key);
BRAIDDB_C_API int braiddb_leveldb_major_version();
BRAIDDB_C_API int braiddb_leveldb_minor_version();

}  // extern "C"
