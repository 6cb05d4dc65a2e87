// RocksDB's rocksdb/c.h, and what RocksDB 7 removed or changed of the functions that Dragonboat v3's plugin names. The plugin's log
// store calls none of these functions. They exist so that the plugin compiles.
#ifndef BRAIDDB_EXAMPLES_CLUSTER_LEGACY_ROCKSDB_C_H_
#define BRAIDDB_EXAMPLES_CLUSTER_LEGACY_ROCKSDB_C_H_

#include_next <rocksdb/c.h>

#define BRAIDDB_REMOVED_OPTION(name, type) \
  static inline void rocksdb_options_set_##name(rocksdb_options_t* options, type value) { (void)options, (void)value; }

BRAIDDB_REMOVED_OPTION(hard_rate_limit, double)
BRAIDDB_REMOVED_OPTION(max_mem_compaction_level, int)
BRAIDDB_REMOVED_OPTION(purge_redundant_kvs_while_flush, unsigned char)
BRAIDDB_REMOVED_OPTION(rate_limit_delay_max_milliseconds, unsigned int)
BRAIDDB_REMOVED_OPTION(skip_log_error_on_recovery, unsigned char)
BRAIDDB_REMOVED_OPTION(soft_rate_limit, double)
BRAIDDB_REMOVED_OPTION(table_cache_remove_scan_count_limit, int)
#undef BRAIDDB_REMOVED_OPTION

static inline rocksdb_filterpolicy_t* rocksdb_filterpolicy_create(
    void* state, void (*destructor)(void*),
    char* (*create_filter)(void*, const char* const*, const size_t*, int, size_t*),
    unsigned char (*key_may_match)(void*, const char*, size_t, const char*, size_t),
    void (*delete_filter)(void*, const char*, size_t), const char* (*name)(void*)) {
  (void)state, (void)destructor, (void)create_filter, (void)key_may_match, (void)delete_filter, (void)name;
  return NULL;
}

// RocksDB 7 reports errors of approximate_sizes, and takes the bits of a key as double.
static inline void braiddb_legacy_approximate_sizes(rocksdb_t* db, int count, const char* const* starts, const size_t* start_lengths,
                                                    const char* const* limits, const size_t* limit_lengths, uint64_t* sizes) {
  char* error = NULL;
  rocksdb_approximate_sizes(db, count, starts, start_lengths, limits, limit_lengths, sizes, &error);
  rocksdb_free(error);
}

static inline void braiddb_legacy_approximate_sizes_cf(rocksdb_t* db, rocksdb_column_family_handle_t* family, int count,
                                                       const char* const* starts, const size_t* start_lengths,
                                                       const char* const* limits, const size_t* limit_lengths, uint64_t* sizes) {
  char* error = NULL;
  rocksdb_approximate_sizes_cf(db, family, count, starts, start_lengths, limits, limit_lengths, sizes, &error);
  rocksdb_free(error);
}

static inline rocksdb_filterpolicy_t* braiddb_legacy_filterpolicy_create_bloom(int bits_per_key) {
  return rocksdb_filterpolicy_create_bloom(bits_per_key);
}

#define rocksdb_approximate_sizes braiddb_legacy_approximate_sizes
#define rocksdb_approximate_sizes_cf braiddb_legacy_approximate_sizes_cf
#define rocksdb_filterpolicy_create_bloom braiddb_legacy_filterpolicy_create_bloom

#endif
