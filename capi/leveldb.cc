#include "capi/leveldb.h"

// After an error the sizes are 0.
void braiddb_leveldb_approximate_sizes(braiddb_t* db, int count, const char* const* start_keys, const size_t* start_key_lengths,
                                       const char* const* limit_keys, const size_t* limit_key_lengths, uint64_t* sizes) {
  braiddb_approximate_sizes(db, count, start_keys, start_key_lengths, limit_keys, limit_key_lengths, sizes, nullptr);
}

braiddb_filterpolicy_t* braiddb_leveldb_filterpolicy_create_bloom(int bits_per_key) {
  return braiddb_filterpolicy_create_bloom(bits_per_key);
}

// The LevelDB version whose API this is.
int braiddb_leveldb_major_version() { return 1; }
int braiddb_leveldb_minor_version() { return 23; }
