/* The C API: BraidDB for C, and for every language that can call C.

   1. The functions of RocksDB's C API (7.8.3), with the prefix braiddb_ instead of rocksdb_ and the same parameters.
   2. At the end of the file, BraidDB's own functions and LevelDB's.

   docs/C_API.md lists the options that have an effect and the functions that do nothing. librocksdb.so.7.8 and libleveldb.so.1d
   export the same functions under their original names.

   Strings    a pointer and a length, of any bytes. Parameters named path, name or property end with a 0 byte
   Booleans   unsigned char
   NULL       an object may be NULL only where this file says so; all destroy functions accept NULL
   Ownership  docs/C_API.md, "Who owns what, and until when"

   Errors     *errptr must be NULL or malloc'ed before the call. Success leaves it as it is. A failure frees it and stores a
              text, which the caller frees by braiddb_free; the function returns NULL or 0. With errptr NULL, no error is
              reported. A text begins with one of these:
                "NotFound: "               "Corruption: "
                "Not implemented: "        "Invalid argument: "
                "IO error: "               "No space left on device: " (behind "IO error: ")
                "Resource busy: "          "Operation timed out: "
                "Operation aborted: "      "Memory limit reached: " (behind "Operation aborted: ")
                "Operation expired: "      "Result incomplete: " */

#ifndef BRAIDDB_C_H_
#define BRAIDDB_C_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define BRAIDDB_C_API __attribute__((visibility("default")))
#else
#define BRAIDDB_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct braiddb_t braiddb_t;
typedef struct braiddb_backup_engine_info_t braiddb_backup_engine_info_t;
typedef struct braiddb_backup_engine_options_t braiddb_backup_engine_options_t;
typedef struct braiddb_backup_engine_t braiddb_backup_engine_t;
typedef struct braiddb_block_based_table_options_t braiddb_block_based_table_options_t;
typedef struct braiddb_cache_t braiddb_cache_t;
typedef struct braiddb_checkpoint_t braiddb_checkpoint_t;
typedef struct braiddb_column_family_handle_t braiddb_column_family_handle_t;
typedef struct braiddb_column_family_metadata_t braiddb_column_family_metadata_t;
typedef struct braiddb_compactionfilter_t braiddb_compactionfilter_t;
typedef struct braiddb_compactionfiltercontext_t braiddb_compactionfiltercontext_t;
typedef struct braiddb_compactionfilterfactory_t braiddb_compactionfilterfactory_t;
typedef struct braiddb_compactoptions_t braiddb_compactoptions_t;
typedef struct braiddb_comparator_t braiddb_comparator_t;
typedef struct braiddb_cuckoo_table_options_t braiddb_cuckoo_table_options_t;
typedef struct braiddb_dbpath_t braiddb_dbpath_t;
typedef struct braiddb_env_t braiddb_env_t;
typedef struct braiddb_envoptions_t braiddb_envoptions_t;
typedef struct braiddb_fifo_compaction_options_t braiddb_fifo_compaction_options_t;
typedef struct braiddb_filterpolicy_t braiddb_filterpolicy_t;
typedef struct braiddb_flushoptions_t braiddb_flushoptions_t;
typedef struct braiddb_ingestexternalfileoptions_t braiddb_ingestexternalfileoptions_t;
typedef struct braiddb_iterator_t braiddb_iterator_t;
typedef struct braiddb_level_metadata_t braiddb_level_metadata_t;
typedef struct braiddb_livefiles_t braiddb_livefiles_t;
typedef struct braiddb_logger_t braiddb_logger_t;
typedef struct braiddb_lru_cache_options_t braiddb_lru_cache_options_t;
typedef struct braiddb_memory_allocator_t braiddb_memory_allocator_t;
typedef struct braiddb_memory_consumers_t braiddb_memory_consumers_t;
typedef struct braiddb_memory_usage_t braiddb_memory_usage_t;
typedef struct braiddb_mergeoperator_t braiddb_mergeoperator_t;
typedef struct braiddb_optimistictransaction_options_t braiddb_optimistictransaction_options_t;
typedef struct braiddb_optimistictransactiondb_t braiddb_optimistictransactiondb_t;
typedef struct braiddb_options_t braiddb_options_t;
typedef struct braiddb_perfcontext_t braiddb_perfcontext_t;
typedef struct braiddb_pinnableslice_t braiddb_pinnableslice_t;
typedef struct braiddb_ratelimiter_t braiddb_ratelimiter_t;
typedef struct braiddb_readoptions_t braiddb_readoptions_t;
typedef struct braiddb_restore_options_t braiddb_restore_options_t;
typedef struct braiddb_slicetransform_t braiddb_slicetransform_t;
typedef struct braiddb_snapshot_t braiddb_snapshot_t;
typedef struct braiddb_sst_file_metadata_t braiddb_sst_file_metadata_t;
typedef struct braiddb_sstfilewriter_t braiddb_sstfilewriter_t;
typedef struct braiddb_transaction_options_t braiddb_transaction_options_t;
typedef struct braiddb_transaction_t braiddb_transaction_t;
typedef struct braiddb_transactiondb_options_t braiddb_transactiondb_options_t;
typedef struct braiddb_transactiondb_t braiddb_transactiondb_t;
typedef struct braiddb_universal_compaction_options_t braiddb_universal_compaction_options_t;
typedef struct braiddb_wal_iterator_t braiddb_wal_iterator_t;
typedef struct braiddb_wal_readoptions_t braiddb_wal_readoptions_t;
typedef struct braiddb_writebatch_t braiddb_writebatch_t;
typedef struct braiddb_writebatch_wi_t braiddb_writebatch_wi_t;
typedef struct braiddb_writeoptions_t braiddb_writeoptions_t;

/* ---- Values of options. The numbers are RocksDB's. */

enum {
  braiddb_block_based_table_index_type_binary_search = 0,
  braiddb_block_based_table_index_type_hash_search = 1,
  braiddb_block_based_table_index_type_two_level_index_search = 2
};
enum {
  braiddb_block_based_table_data_block_index_type_binary_search = 0,
  braiddb_block_based_table_data_block_index_type_binary_search_and_hash = 1
};
enum { braiddb_prepopulate_blob_disable = 0, braiddb_prepopulate_blob_flush_only = 1 };
enum {
  braiddb_tolerate_corrupted_tail_records_recovery = 0,
  braiddb_absolute_consistency_recovery = 1,
  braiddb_point_in_time_recovery = 2,
  braiddb_skip_any_corrupted_records_recovery = 3
};
enum {
  braiddb_no_compression = 0,
  braiddb_snappy_compression = 1,
  braiddb_zlib_compression = 2,
  braiddb_bz2_compression = 3,
  braiddb_lz4_compression = 4,
  braiddb_lz4hc_compression = 5,
  braiddb_xpress_compression = 6,
  braiddb_zstd_compression = 7
};
enum { braiddb_level_compaction = 0, braiddb_universal_compaction = 1, braiddb_fifo_compaction = 2 };
enum {
  braiddb_uninitialized = 0,
  braiddb_disable = 1,
  braiddb_enable_count = 2,
  braiddb_enable_time_except_for_mutex = 3,
  braiddb_enable_time = 4,
  braiddb_out_of_bounds = 5
};
enum {
  braiddb_user_key_comparison_count = 0,
  braiddb_block_cache_hit_count,
  braiddb_block_read_count,
  braiddb_block_read_byte,
  braiddb_block_read_time,
  braiddb_block_checksum_time,
  braiddb_block_decompress_time,
  braiddb_get_read_bytes,
  braiddb_multiget_read_bytes,
  braiddb_iter_read_bytes,
  braiddb_internal_key_skipped_count,
  braiddb_internal_delete_skipped_count,
  braiddb_internal_recent_skipped_count,
  braiddb_internal_merge_count,
  braiddb_get_snapshot_time,
  braiddb_get_from_memtable_time,
  braiddb_get_from_memtable_count,
  braiddb_get_post_process_time,
  braiddb_get_from_output_files_time,
  braiddb_seek_on_memtable_time,
  braiddb_seek_on_memtable_count,
  braiddb_next_on_memtable_count,
  braiddb_prev_on_memtable_count,
  braiddb_seek_child_seek_time,
  braiddb_seek_child_seek_count,
  braiddb_seek_min_heap_time,
  braiddb_seek_max_heap_time,
  braiddb_seek_internal_seek_time,
  braiddb_find_next_user_entry_time,
  braiddb_write_wal_time,
  braiddb_write_memtable_time,
  braiddb_write_delay_time,
  braiddb_write_pre_and_post_process_time,
  braiddb_db_mutex_lock_nanos,
  braiddb_db_condition_wait_nanos,
  braiddb_merge_operator_time_nanos,
  braiddb_read_index_block_nanos,
  braiddb_read_filter_block_nanos,
  braiddb_new_table_block_iter_nanos,
  braiddb_new_table_iterator_nanos,
  braiddb_block_seek_nanos,
  braiddb_find_table_nanos,
  braiddb_bloom_memtable_hit_count,
  braiddb_bloom_memtable_miss_count,
  braiddb_bloom_sst_hit_count,
  braiddb_bloom_sst_miss_count,
  braiddb_key_lock_wait_time,
  braiddb_key_lock_wait_count,
  braiddb_env_new_sequential_file_nanos,
  braiddb_env_new_random_access_file_nanos,
  braiddb_env_new_writable_file_nanos,
  braiddb_env_reuse_writable_file_nanos,
  braiddb_env_new_random_rw_file_nanos,
  braiddb_env_new_directory_nanos,
  braiddb_env_file_exists_nanos,
  braiddb_env_get_children_nanos,
  braiddb_env_get_children_file_attributes_nanos,
  braiddb_env_delete_file_nanos,
  braiddb_env_create_dir_nanos,
  braiddb_env_create_dir_if_missing_nanos,
  braiddb_env_delete_dir_nanos,
  braiddb_env_get_file_size_nanos,
  braiddb_env_get_file_modification_time_nanos,
  braiddb_env_rename_file_nanos,
  braiddb_env_link_file_nanos,
  braiddb_env_lock_file_nanos,
  braiddb_env_unlock_file_nanos,
  braiddb_env_new_logger_nanos,
  braiddb_number_async_seek,
  braiddb_blob_cache_hit_count,
  braiddb_blob_read_count,
  braiddb_blob_read_byte,
  braiddb_blob_read_time,
  braiddb_blob_checksum_time,
  braiddb_blob_decompress_time,
  braiddb_internal_range_del_reseek_count,
  braiddb_total_metric_count = 78
};
enum { braiddb_similar_size_compaction_stop_style = 0, braiddb_total_size_compaction_stop_style = 1 };

/* ---- Databases
   One process at a time may open a database for writing. Any number of threads may use its handle at once.

   braiddb_close               is the last call; destroy iterators, snapshots and pinned values before it. Ignores errors:
                               braiddb_close_database reports them
   braiddb_open_for_read_only  any number of processes at once, also beside a process that writes: then each
                               call sees the newest state; changes no file
   braiddb_open_as_secondary   reads beside a process that writes: creates a copy, which
                               braiddb_try_catch_up_with_primary brings up to date
   braiddb_repair_db           replaces a damaged database by its intact data; the damaged one is kept as PATH.damaged */

BRAIDDB_C_API void braiddb_close(braiddb_t* db);
BRAIDDB_C_API void braiddb_destroy_db(const braiddb_options_t* options, const char* path, char** errptr);
BRAIDDB_C_API void braiddb_free(void* pointer);
BRAIDDB_C_API braiddb_t* braiddb_open(const braiddb_options_t* options, const char* path, char** errptr);
BRAIDDB_C_API braiddb_t* braiddb_open_as_secondary(const braiddb_options_t* options, const char* path, const char* secondary_path,
                                                   char** errptr);
BRAIDDB_C_API braiddb_t* braiddb_open_for_read_only(const braiddb_options_t* options, const char* path,
                                                    unsigned char error_if_wal_file_exists, char** errptr);
BRAIDDB_C_API braiddb_t* braiddb_open_with_ttl(const braiddb_options_t* options, const char* path, int ttl, char** errptr);
BRAIDDB_C_API void braiddb_repair_db(const braiddb_options_t* options, const char* path, char** errptr);
BRAIDDB_C_API void braiddb_try_catch_up_with_primary(braiddb_t* db, char** errptr);

/* ---- Reads and writes
   A get returns memory that the caller frees by braiddb_free. If the key does not exist, it returns NULL and length 0 without an
   error. A pinned value of more than a kilobyte is not copied: it holds its space until it is destroyed, and the counters count
   two reads. */

BRAIDDB_C_API void braiddb_delete(braiddb_t* db, const braiddb_writeoptions_t* options, const char* key, size_t key_length,
                                  char** errptr);
BRAIDDB_C_API char* braiddb_get(braiddb_t* db, const braiddb_readoptions_t* options, const char* key, size_t key_length,
                                size_t* value_length, char** errptr);
BRAIDDB_C_API braiddb_pinnableslice_t* braiddb_get_pinned(braiddb_t* db, const braiddb_readoptions_t* options, const char* key,
                                                          size_t key_length, char** errptr);
BRAIDDB_C_API unsigned char braiddb_key_may_exist(braiddb_t* db, const braiddb_readoptions_t* options, const char* key,
                                                  size_t key_length, char** value, size_t* value_length, const char* timestamp,
                                                  size_t timestamp_length, unsigned char* value_found);
BRAIDDB_C_API void braiddb_multi_get(braiddb_t* db, const braiddb_readoptions_t* options, size_t count, const char* const* keys,
                                     const size_t* key_lengths, char** values, size_t* value_lengths, char** errors);
BRAIDDB_C_API void braiddb_pinnableslice_destroy(braiddb_pinnableslice_t* value);
BRAIDDB_C_API const char* braiddb_pinnableslice_value(const braiddb_pinnableslice_t* value, size_t* length);
BRAIDDB_C_API void braiddb_put(braiddb_t* db, const braiddb_writeoptions_t* options, const char* key, size_t key_length,
                               const char* value, size_t value_length, char** errptr);
BRAIDDB_C_API void braiddb_singledelete(braiddb_t* db, const braiddb_writeoptions_t* options, const char* key, size_t key_length,
                                        char** errptr);
BRAIDDB_C_API void braiddb_write(braiddb_t* db, const braiddb_writeoptions_t* options, braiddb_writebatch_t* batch,
                                 char** errptr);

/* ---- Iterators
   One thread at a time. A new iterator has no position. Keys and values are valid until the iterator moves. */

BRAIDDB_C_API braiddb_iterator_t* braiddb_create_iterator(braiddb_t* db, const braiddb_readoptions_t* options);
BRAIDDB_C_API braiddb_iterator_t* braiddb_create_iterator_cf(braiddb_t* db, const braiddb_readoptions_t* options,
                                                             braiddb_column_family_handle_t* column_family);
BRAIDDB_C_API void braiddb_create_iterators(braiddb_t* db, braiddb_readoptions_t* options,
                                            braiddb_column_family_handle_t** column_families, braiddb_iterator_t** iterators,
                                            size_t count, char** errptr);
BRAIDDB_C_API void braiddb_iter_destroy(braiddb_iterator_t* iterator);
BRAIDDB_C_API void braiddb_iter_get_error(const braiddb_iterator_t* iterator, char** errptr);
BRAIDDB_C_API const char* braiddb_iter_key(const braiddb_iterator_t* iterator, size_t* length);
BRAIDDB_C_API void braiddb_iter_next(braiddb_iterator_t* iterator);
BRAIDDB_C_API void braiddb_iter_prev(braiddb_iterator_t* iterator);
BRAIDDB_C_API void braiddb_iter_seek(braiddb_iterator_t* iterator, const char* key, size_t key_length);
BRAIDDB_C_API void braiddb_iter_seek_for_prev(braiddb_iterator_t* iterator, const char* key, size_t key_length);
BRAIDDB_C_API void braiddb_iter_seek_to_first(braiddb_iterator_t* iterator);
BRAIDDB_C_API void braiddb_iter_seek_to_last(braiddb_iterator_t* iterator);
BRAIDDB_C_API unsigned char braiddb_iter_valid(const braiddb_iterator_t* iterator);
BRAIDDB_C_API const char* braiddb_iter_value(const braiddb_iterator_t* iterator, size_t* length);

/* ---- Snapshots */

BRAIDDB_C_API const braiddb_snapshot_t* braiddb_create_snapshot(braiddb_t* db);
BRAIDDB_C_API void braiddb_release_snapshot(braiddb_t* db, const braiddb_snapshot_t* snapshot);

/* ---- Properties
   Names begin with "braiddb.", "rocksdb." or "leveldb."; DB::GetProperty in braiddb/db.h lists them. NULL or -1 if there is no
   such property. */

BRAIDDB_C_API void braiddb_approximate_sizes(braiddb_t* db, int count, const char* const* start_keys,
                                             const size_t* start_key_lengths, const char* const* limit_keys,
                                             const size_t* limit_key_lengths, uint64_t* sizes, char** errptr);
BRAIDDB_C_API int braiddb_property_int(braiddb_t* db, const char* property, uint64_t* value);
BRAIDDB_C_API char* braiddb_property_value(braiddb_t* db, const char* property);

/* ---- Work in the background */

BRAIDDB_C_API void braiddb_cancel_all_background_work(braiddb_t* db, unsigned char wait);
BRAIDDB_C_API void braiddb_compact_range(braiddb_t* db, const char* start_key, size_t start_key_length, const char* limit_key,
                                         size_t limit_key_length);
BRAIDDB_C_API void braiddb_compact_range_cf_opt(braiddb_t* db, braiddb_column_family_handle_t* column_family,
                                                braiddb_compactoptions_t* options, const char* start_key, size_t start_key_length,
                                                const char* limit_key, size_t limit_key_length);
BRAIDDB_C_API void braiddb_compact_range_opt(braiddb_t* db, braiddb_compactoptions_t* options, const char* start_key,
                                             size_t start_key_length, const char* limit_key, size_t limit_key_length);
BRAIDDB_C_API void braiddb_disable_manual_compaction(braiddb_t* db);
BRAIDDB_C_API void braiddb_enable_manual_compaction(braiddb_t* db);
BRAIDDB_C_API void braiddb_flush(braiddb_t* db, const braiddb_flushoptions_t* options, char** errptr);
BRAIDDB_C_API void braiddb_flush_wal(braiddb_t* db, unsigned char sync, char** errptr);
BRAIDDB_C_API void braiddb_suggest_compact_range(braiddb_t* db, const char* start_key, size_t start_key_length,
                                                 const char* limit_key, size_t limit_key_length, char** errptr);

/* ---- Batches
   The updates of a batch become durable and visible together, or not at all. They are applied in the order in which they were
   added: the last update of a key wins. If an update could not be added (key too long, no memory), the write of the batch fails
   and says so. */

BRAIDDB_C_API void braiddb_writebatch_clear(braiddb_writebatch_t* batch);
BRAIDDB_C_API int braiddb_writebatch_count(braiddb_writebatch_t* batch);
BRAIDDB_C_API braiddb_writebatch_t* braiddb_writebatch_create(void);
BRAIDDB_C_API braiddb_writebatch_t* braiddb_writebatch_create_from(const char* data, size_t data_length);
BRAIDDB_C_API const char* braiddb_writebatch_data(braiddb_writebatch_t* batch, size_t* length);
BRAIDDB_C_API void braiddb_writebatch_delete(braiddb_writebatch_t* batch, const char* key, size_t key_length);
BRAIDDB_C_API void braiddb_writebatch_delete_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                                const char* key, size_t key_length);
BRAIDDB_C_API void braiddb_writebatch_delete_range(braiddb_writebatch_t* batch, const char* start_key, size_t start_key_length,
                                                   const char* limit_key, size_t limit_key_length);
BRAIDDB_C_API void braiddb_writebatch_delete_range_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                                      const char* start_key, size_t start_key_length, const char* limit_key,
                                                      size_t limit_key_length);
BRAIDDB_C_API void braiddb_writebatch_delete_rangev(braiddb_writebatch_t* batch, int key_parts, const char* const* start_keys,
                                                    const size_t* start_key_lengths, const char* const* limit_keys,
                                                    const size_t* limit_key_lengths);
BRAIDDB_C_API void braiddb_writebatch_delete_rangev_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                                       int key_parts, const char* const* start_keys,
                                                       const size_t* start_key_lengths, const char* const* limit_keys,
                                                       const size_t* limit_key_lengths);
BRAIDDB_C_API void braiddb_writebatch_deletev(braiddb_writebatch_t* batch, int key_parts, const char* const* keys,
                                              const size_t* key_lengths);
BRAIDDB_C_API void braiddb_writebatch_deletev_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                                 int key_parts, const char* const* keys, const size_t* key_lengths);
BRAIDDB_C_API void braiddb_writebatch_destroy(braiddb_writebatch_t* batch);
BRAIDDB_C_API void braiddb_writebatch_iterate(braiddb_writebatch_t* batch, void* state,
                                              void (*put)(void*, const char*, size_t, const char*, size_t),
                                              void (*deleted)(void*, const char*, size_t));
BRAIDDB_C_API void braiddb_writebatch_merge(braiddb_writebatch_t* batch, const char* key, size_t key_length, const char* value,
                                            size_t value_length);
BRAIDDB_C_API void braiddb_writebatch_merge_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                               const char* key, size_t key_length, const char* value, size_t value_length);
BRAIDDB_C_API void braiddb_writebatch_mergev(braiddb_writebatch_t* batch, int key_parts, const char* const* keys,
                                             const size_t* key_lengths, int value_parts, const char* const* values,
                                             const size_t* value_lengths);
BRAIDDB_C_API void braiddb_writebatch_mergev_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                                int key_parts, const char* const* keys, const size_t* key_lengths,
                                                int value_parts, const char* const* values, const size_t* value_lengths);
BRAIDDB_C_API void braiddb_writebatch_pop_save_point(braiddb_writebatch_t* batch, char** errptr);
BRAIDDB_C_API void braiddb_writebatch_put(braiddb_writebatch_t* batch, const char* key, size_t key_length, const char* value,
                                          size_t value_length);
BRAIDDB_C_API void braiddb_writebatch_put_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                             const char* key, size_t key_length, const char* value, size_t value_length);
BRAIDDB_C_API void braiddb_writebatch_put_log_data(braiddb_writebatch_t* batch, const char* blob, size_t blob_length);
BRAIDDB_C_API void braiddb_writebatch_putv(braiddb_writebatch_t* batch, int key_parts, const char* const* keys,
                                           const size_t* key_lengths, int value_parts, const char* const* values,
                                           const size_t* value_lengths);
BRAIDDB_C_API void braiddb_writebatch_putv_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                              int key_parts, const char* const* keys, const size_t* key_lengths, int value_parts,
                                              const char* const* values, const size_t* value_lengths);
BRAIDDB_C_API void braiddb_writebatch_rollback_to_save_point(braiddb_writebatch_t* batch, char** errptr);
BRAIDDB_C_API void braiddb_writebatch_set_save_point(braiddb_writebatch_t* batch);
BRAIDDB_C_API void braiddb_writebatch_singledelete(braiddb_writebatch_t* batch, const char* key, size_t key_length);
BRAIDDB_C_API void braiddb_writebatch_singledelete_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                                      const char* key, size_t key_length);

/* ---- Batches with an index
   A batch that can be read before it is written. Its keys are in bytewise order;
   braiddb_writebatch_wi_create_with_comparator takes another order. */

BRAIDDB_C_API void braiddb_write_writebatch_wi(braiddb_t* db, const braiddb_writeoptions_t* options,
                                               braiddb_writebatch_wi_t* batch, char** errptr);
BRAIDDB_C_API void braiddb_writebatch_wi_clear(braiddb_writebatch_wi_t* batch);
BRAIDDB_C_API int braiddb_writebatch_wi_count(braiddb_writebatch_wi_t* batch);
BRAIDDB_C_API braiddb_writebatch_wi_t* braiddb_writebatch_wi_create(size_t reserved_bytes, unsigned char overwrite_keys);
BRAIDDB_C_API braiddb_writebatch_wi_t* braiddb_writebatch_wi_create_from(const char* data, size_t data_length);
BRAIDDB_C_API braiddb_iterator_t* braiddb_writebatch_wi_create_iterator_with_base(braiddb_writebatch_wi_t* batch,
                                                                                  braiddb_iterator_t* iterator);
BRAIDDB_C_API braiddb_iterator_t* braiddb_writebatch_wi_create_iterator_with_base_cf(
    braiddb_writebatch_wi_t* batch, braiddb_iterator_t* iterator, braiddb_column_family_handle_t* column_family);
BRAIDDB_C_API const char* braiddb_writebatch_wi_data(braiddb_writebatch_wi_t* batch, size_t* length);
BRAIDDB_C_API void braiddb_writebatch_wi_delete(braiddb_writebatch_wi_t* batch, const char* key, size_t key_length);
BRAIDDB_C_API void braiddb_writebatch_wi_delete_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family,
                                                   const char* key, size_t key_length);
BRAIDDB_C_API void braiddb_writebatch_wi_delete_range(braiddb_writebatch_wi_t* batch, const char* start_key,
                                                      size_t start_key_length, const char* limit_key, size_t limit_key_length);
BRAIDDB_C_API void braiddb_writebatch_wi_delete_range_cf(braiddb_writebatch_wi_t* batch,
                                                         braiddb_column_family_handle_t* column_family, const char* start_key,
                                                         size_t start_key_length, const char* limit_key, size_t limit_key_length);
BRAIDDB_C_API void braiddb_writebatch_wi_delete_rangev(braiddb_writebatch_wi_t* batch, int key_parts,
                                                       const char* const* start_keys, const size_t* start_key_lengths,
                                                       const char* const* limit_keys, const size_t* limit_key_lengths);
BRAIDDB_C_API void braiddb_writebatch_wi_delete_rangev_cf(braiddb_writebatch_wi_t* batch,
                                                          braiddb_column_family_handle_t* column_family, int key_parts,
                                                          const char* const* start_keys, const size_t* start_key_lengths,
                                                          const char* const* limit_keys, const size_t* limit_key_lengths);
BRAIDDB_C_API void braiddb_writebatch_wi_deletev(braiddb_writebatch_wi_t* batch, int key_parts, const char* const* keys,
                                                 const size_t* key_lengths);
BRAIDDB_C_API void braiddb_writebatch_wi_deletev_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family,
                                                    int key_parts, const char* const* keys, const size_t* key_lengths);
BRAIDDB_C_API void braiddb_writebatch_wi_destroy(braiddb_writebatch_wi_t* batch);
BRAIDDB_C_API char* braiddb_writebatch_wi_get_from_batch(braiddb_writebatch_wi_t* batch, const braiddb_options_t* options,
                                                         const char* key, size_t key_length, size_t* value_length, char** errptr);
BRAIDDB_C_API char* braiddb_writebatch_wi_get_from_batch_and_db(braiddb_writebatch_wi_t* batch, braiddb_t* db,
                                                                const braiddb_readoptions_t* options, const char* key,
                                                                size_t key_length, size_t* value_length, char** errptr);
BRAIDDB_C_API char* braiddb_writebatch_wi_get_from_batch_and_db_cf(braiddb_writebatch_wi_t* batch, braiddb_t* db,
                                                                   const braiddb_readoptions_t* options,
                                                                   braiddb_column_family_handle_t* column_family, const char* key,
                                                                   size_t key_length, size_t* value_length, char** errptr);
BRAIDDB_C_API char* braiddb_writebatch_wi_get_from_batch_cf(braiddb_writebatch_wi_t* batch, const braiddb_options_t* options,
                                                            braiddb_column_family_handle_t* column_family, const char* key,
                                                            size_t key_length, size_t* value_length, char** errptr);
BRAIDDB_C_API void braiddb_writebatch_wi_iterate(braiddb_writebatch_wi_t* batch, void* state,
                                                 void (*put)(void*, const char*, size_t, const char*, size_t),
                                                 void (*deleted)(void*, const char*, size_t));
BRAIDDB_C_API void braiddb_writebatch_wi_merge(braiddb_writebatch_wi_t* batch, const char* key, size_t key_length,
                                               const char* value, size_t value_length);
BRAIDDB_C_API void braiddb_writebatch_wi_merge_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family,
                                                  const char* key, size_t key_length, const char* value, size_t value_length);
BRAIDDB_C_API void braiddb_writebatch_wi_mergev(braiddb_writebatch_wi_t* batch, int key_parts, const char* const* keys,
                                                const size_t* key_lengths, int value_parts, const char* const* values,
                                                const size_t* value_lengths);
BRAIDDB_C_API void braiddb_writebatch_wi_mergev_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family,
                                                   int key_parts, const char* const* keys, const size_t* key_lengths,
                                                   int value_parts, const char* const* values, const size_t* value_lengths);
BRAIDDB_C_API void braiddb_writebatch_wi_put(braiddb_writebatch_wi_t* batch, const char* key, size_t key_length,
                                             const char* value, size_t value_length);
BRAIDDB_C_API void braiddb_writebatch_wi_put_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family,
                                                const char* key, size_t key_length, const char* value, size_t value_length);
BRAIDDB_C_API void braiddb_writebatch_wi_put_log_data(braiddb_writebatch_wi_t* batch, const char* blob, size_t blob_length);
BRAIDDB_C_API void braiddb_writebatch_wi_putv(braiddb_writebatch_wi_t* batch, int key_parts, const char* const* keys,
                                              const size_t* key_lengths, int value_parts, const char* const* values,
                                              const size_t* value_lengths);
BRAIDDB_C_API void braiddb_writebatch_wi_putv_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family,
                                                 int key_parts, const char* const* keys, const size_t* key_lengths,
                                                 int value_parts, const char* const* values, const size_t* value_lengths);
BRAIDDB_C_API void braiddb_writebatch_wi_rollback_to_save_point(braiddb_writebatch_wi_t* batch, char** errptr);
BRAIDDB_C_API void braiddb_writebatch_wi_set_save_point(braiddb_writebatch_wi_t* batch);
BRAIDDB_C_API void braiddb_writebatch_wi_singledelete(braiddb_writebatch_wi_t* batch, const char* key, size_t key_length);
BRAIDDB_C_API void braiddb_writebatch_wi_singledelete_cf(braiddb_writebatch_wi_t* batch,
                                                         braiddb_column_family_handle_t* column_family, const char* key,
                                                         size_t key_length);

/* ---- Options of a database
   Options without a meaning here are stored and returned only; docs/C_API.md lists the options with a meaning. */

BRAIDDB_C_API braiddb_dbpath_t* braiddb_dbpath_create(const char* path, uint64_t target_size);
BRAIDDB_C_API void braiddb_dbpath_destroy(braiddb_dbpath_t* path);
BRAIDDB_C_API void braiddb_get_options_from_string(const braiddb_options_t* base, const char* text, braiddb_options_t* result,
                                                   char** errptr);
BRAIDDB_C_API void braiddb_load_latest_options(const char* path, braiddb_env_t* env, bool ignore_unknown_options,
                                               braiddb_cache_t* cache, braiddb_options_t** options, size_t* column_family_count,
                                               char*** column_family_names, braiddb_options_t*** column_family_options,
                                               char** errptr);
BRAIDDB_C_API void braiddb_load_latest_options_destroy(braiddb_options_t* options, char** column_family_names,
                                                       braiddb_options_t** column_family_options, size_t count);
BRAIDDB_C_API void braiddb_options_add_compact_on_deletion_collector_factory(braiddb_options_t* options, size_t window_size,
                                                                             size_t deletions);
BRAIDDB_C_API void braiddb_options_compaction_readahead_size(braiddb_options_t* options, size_t value);
BRAIDDB_C_API braiddb_options_t* braiddb_options_create(void);
BRAIDDB_C_API braiddb_options_t* braiddb_options_create_copy(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_destroy(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_enable_statistics(braiddb_options_t* options);
BRAIDDB_C_API uint64_t braiddb_options_get_WAL_size_limit_MB(braiddb_options_t* options);
BRAIDDB_C_API uint64_t braiddb_options_get_WAL_ttl_seconds(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_access_hint_on_compaction_start(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_advise_random_on_open(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_allow_concurrent_memtable_write(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_allow_ingest_behind(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_allow_mmap_reads(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_allow_mmap_writes(braiddb_options_t* options);
BRAIDDB_C_API size_t braiddb_options_get_arena_block_size(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_atomic_flush(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_avoid_unnecessary_blocking_io(braiddb_options_t* options);
BRAIDDB_C_API uint64_t braiddb_options_get_blob_compaction_readahead_size(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_blob_compression_type(braiddb_options_t* options);
BRAIDDB_C_API uint64_t braiddb_options_get_blob_file_size(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_blob_file_starting_level(braiddb_options_t* options);
BRAIDDB_C_API double braiddb_options_get_blob_gc_age_cutoff(braiddb_options_t* options);
BRAIDDB_C_API double braiddb_options_get_blob_gc_force_threshold(braiddb_options_t* options);
BRAIDDB_C_API uint32_t braiddb_options_get_bloom_locality(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_bottommost_compression(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_bottommost_compression_options_use_zstd_dict_trainer(braiddb_options_t* options);
BRAIDDB_C_API uint64_t braiddb_options_get_bytes_per_sync(braiddb_options_t* options);
BRAIDDB_C_API size_t braiddb_options_get_compaction_readahead_size(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_compaction_style(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_compression(braiddb_options_t* options);
BRAIDDB_C_API uint64_t braiddb_options_get_compression_options_max_dict_buffer_bytes(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_compression_options_parallel_threads(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_compression_options_use_zstd_dict_trainer(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_compression_options_zstd_max_train_bytes(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_create_if_missing(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_create_missing_column_families(braiddb_options_t* options);
BRAIDDB_C_API size_t braiddb_options_get_db_write_buffer_size(braiddb_options_t* options);
BRAIDDB_C_API uint64_t braiddb_options_get_delete_obsolete_files_period_micros(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_disable_auto_compactions(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_enable_blob_files(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_enable_blob_gc(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_enable_pipelined_write(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_enable_write_thread_adaptive_yield(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_error_if_exists(braiddb_options_t* options);
BRAIDDB_C_API double braiddb_options_get_experimental_mempurge_threshold(braiddb_options_t* options);
BRAIDDB_C_API size_t braiddb_options_get_hard_pending_compaction_bytes_limit(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_info_log_level(braiddb_options_t* options);
BRAIDDB_C_API size_t braiddb_options_get_inplace_update_num_locks(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_inplace_update_support(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_is_fd_close_on_exec(braiddb_options_t* options);
BRAIDDB_C_API size_t braiddb_options_get_keep_log_file_num(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_level0_file_num_compaction_trigger(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_level0_slowdown_writes_trigger(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_level0_stop_writes_trigger(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_level_compaction_dynamic_level_bytes(braiddb_options_t* options);
BRAIDDB_C_API size_t braiddb_options_get_log_file_time_to_roll(braiddb_options_t* options);
BRAIDDB_C_API size_t braiddb_options_get_manifest_preallocation_size(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_manual_wal_flush(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_max_background_compactions(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_max_background_flushes(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_max_background_jobs(braiddb_options_t* options);
BRAIDDB_C_API uint64_t braiddb_options_get_max_bytes_for_level_base(braiddb_options_t* options);
BRAIDDB_C_API double braiddb_options_get_max_bytes_for_level_multiplier(braiddb_options_t* options);
BRAIDDB_C_API uint64_t braiddb_options_get_max_compaction_bytes(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_max_file_opening_threads(braiddb_options_t* options);
BRAIDDB_C_API size_t braiddb_options_get_max_log_file_size(braiddb_options_t* options);
BRAIDDB_C_API size_t braiddb_options_get_max_manifest_file_size(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_max_open_files(braiddb_options_t* options);
BRAIDDB_C_API uint64_t braiddb_options_get_max_sequential_skip_in_iterations(braiddb_options_t* options);
BRAIDDB_C_API uint32_t braiddb_options_get_max_subcompactions(braiddb_options_t* options);
BRAIDDB_C_API size_t braiddb_options_get_max_successive_merges(braiddb_options_t* options);
BRAIDDB_C_API uint64_t braiddb_options_get_max_total_wal_size(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_max_write_buffer_number(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_max_write_buffer_number_to_maintain(braiddb_options_t* options);
BRAIDDB_C_API int64_t braiddb_options_get_max_write_buffer_size_to_maintain(braiddb_options_t* options);
BRAIDDB_C_API size_t braiddb_options_get_memtable_huge_page_size(braiddb_options_t* options);
BRAIDDB_C_API double braiddb_options_get_memtable_prefix_bloom_size_ratio(braiddb_options_t* options);
BRAIDDB_C_API uint64_t braiddb_options_get_min_blob_size(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_min_write_buffer_number_to_merge(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_num_levels(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_optimize_filters_for_hits(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_paranoid_checks(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_prepopulate_blob_cache(braiddb_options_t* options);
BRAIDDB_C_API size_t braiddb_options_get_recycle_log_file_num(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_report_bg_io_stats(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_skip_checking_sst_file_sizes_on_db_open(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_skip_stats_update_on_db_open(braiddb_options_t* options);
BRAIDDB_C_API size_t braiddb_options_get_soft_pending_compaction_bytes_limit(braiddb_options_t* options);
BRAIDDB_C_API unsigned int braiddb_options_get_stats_dump_period_sec(braiddb_options_t* options);
BRAIDDB_C_API unsigned int braiddb_options_get_stats_persist_period_sec(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_table_cache_numshardbits(braiddb_options_t* options);
BRAIDDB_C_API uint64_t braiddb_options_get_target_file_size_base(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_target_file_size_multiplier(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_unordered_write(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_use_adaptive_mutex(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_use_direct_io_for_flush_and_compaction(braiddb_options_t* options);
BRAIDDB_C_API unsigned char braiddb_options_get_use_direct_reads(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_use_fsync(braiddb_options_t* options);
BRAIDDB_C_API uint64_t braiddb_options_get_wal_bytes_per_sync(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_wal_compression(braiddb_options_t* options);
BRAIDDB_C_API int braiddb_options_get_wal_recovery_mode(braiddb_options_t* options);
BRAIDDB_C_API uint64_t braiddb_options_get_writable_file_max_buffer_size(braiddb_options_t* options);
BRAIDDB_C_API size_t braiddb_options_get_write_buffer_size(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_increase_parallelism(braiddb_options_t* options, int threads);
BRAIDDB_C_API void braiddb_options_optimize_for_point_lookup(braiddb_options_t* options, uint64_t block_cache_size_mb);
BRAIDDB_C_API void braiddb_options_optimize_level_style_compaction(braiddb_options_t* options, uint64_t memtable_memory_budget);
BRAIDDB_C_API void braiddb_options_optimize_universal_style_compaction(braiddb_options_t* options,
                                                                       uint64_t memtable_memory_budget);
BRAIDDB_C_API void braiddb_options_prepare_for_bulk_load(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_WAL_size_limit_MB(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_options_set_WAL_ttl_seconds(braiddb_options_t* options, uint64_t ttls);
BRAIDDB_C_API void braiddb_options_set_access_hint_on_compaction_start(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_advise_random_on_open(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_allow_concurrent_memtable_write(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_allow_ingest_behind(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_allow_mmap_reads(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_allow_mmap_writes(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_arena_block_size(braiddb_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_options_set_atomic_flush(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_avoid_unnecessary_blocking_io(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_blob_cache(braiddb_options_t* options, braiddb_cache_t* cache);
BRAIDDB_C_API void braiddb_options_set_blob_compaction_readahead_size(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_options_set_blob_compression_type(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_blob_file_size(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_options_set_blob_file_starting_level(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_blob_gc_age_cutoff(braiddb_options_t* options, double value);
BRAIDDB_C_API void braiddb_options_set_blob_gc_force_threshold(braiddb_options_t* options, double value);
BRAIDDB_C_API void braiddb_options_set_block_based_table_factory(braiddb_options_t* options,
                                                                 braiddb_block_based_table_options_t* options2);
BRAIDDB_C_API void braiddb_options_set_bloom_locality(braiddb_options_t* options, uint32_t value);
BRAIDDB_C_API void braiddb_options_set_bottommost_compression(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_bottommost_compression_options(braiddb_options_t* options, int window_bits, int level,
                                                                      int strategy, int max_dict_bytes, unsigned char enabled);
BRAIDDB_C_API void braiddb_options_set_bottommost_compression_options_max_dict_buffer_bytes(braiddb_options_t* options,
                                                                                            uint64_t value,
                                                                                            unsigned char enabled);
BRAIDDB_C_API void braiddb_options_set_bottommost_compression_options_use_zstd_dict_trainer(braiddb_options_t* options,
                                                                                            unsigned char value,
                                                                                            unsigned char enabled);
BRAIDDB_C_API void braiddb_options_set_bottommost_compression_options_zstd_max_train_bytes(braiddb_options_t* options, int value,
                                                                                           unsigned char enabled);
BRAIDDB_C_API void braiddb_options_set_bytes_per_sync(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_options_set_compaction_filter(braiddb_options_t* options, braiddb_compactionfilter_t* filter);
BRAIDDB_C_API void braiddb_options_set_compaction_filter_factory(braiddb_options_t* options,
                                                                 braiddb_compactionfilterfactory_t* factory);
BRAIDDB_C_API void braiddb_options_set_compaction_style(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_comparator(braiddb_options_t* options, braiddb_comparator_t* comparator);
BRAIDDB_C_API void braiddb_options_set_compression(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_compression_options(braiddb_options_t* options, int window_bits, int level, int strategy,
                                                           int max_dict_bytes);
BRAIDDB_C_API void braiddb_options_set_compression_options_max_dict_buffer_bytes(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_options_set_compression_options_parallel_threads(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_compression_options_use_zstd_dict_trainer(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_compression_options_zstd_max_train_bytes(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_compression_per_level(braiddb_options_t* options, const int* levels, size_t count);
BRAIDDB_C_API void braiddb_options_set_create_if_missing(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_create_missing_column_families(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_cuckoo_table_factory(braiddb_options_t* options,
                                                            braiddb_cuckoo_table_options_t* cuckoo_table_options);
BRAIDDB_C_API void braiddb_options_set_db_log_dir(braiddb_options_t* options, const char* path);
BRAIDDB_C_API void braiddb_options_set_db_paths(braiddb_options_t* options, const braiddb_dbpath_t** paths, size_t count);
BRAIDDB_C_API void braiddb_options_set_db_write_buffer_size(braiddb_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_options_set_delete_obsolete_files_period_micros(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_options_set_disable_auto_compactions(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_dump_malloc_stats(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_enable_blob_files(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_enable_blob_gc(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_enable_pipelined_write(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_enable_write_thread_adaptive_yield(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_env(braiddb_options_t* options, braiddb_env_t* env);
BRAIDDB_C_API void braiddb_options_set_error_if_exists(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_experimental_mempurge_threshold(braiddb_options_t* options, double value);
BRAIDDB_C_API void braiddb_options_set_fifo_compaction_options(braiddb_options_t* options,
                                                               braiddb_fifo_compaction_options_t* fifo_compaction_options);
BRAIDDB_C_API void braiddb_options_set_hard_pending_compaction_bytes_limit(braiddb_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_options_set_hash_link_list_rep(braiddb_options_t* options, size_t bucket_count);
BRAIDDB_C_API void braiddb_options_set_hash_skip_list_rep(braiddb_options_t* options, size_t bucket_count, int32_t height,
                                                          int32_t branching_factor);
BRAIDDB_C_API void braiddb_options_set_info_log(braiddb_options_t* options, braiddb_logger_t* logger);
BRAIDDB_C_API void braiddb_options_set_info_log_level(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_inplace_update_num_locks(braiddb_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_options_set_inplace_update_support(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_is_fd_close_on_exec(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_keep_log_file_num(braiddb_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_options_set_level0_file_num_compaction_trigger(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_level0_slowdown_writes_trigger(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_level0_stop_writes_trigger(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_level_compaction_dynamic_level_bytes(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_log_file_time_to_roll(braiddb_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_options_set_manifest_preallocation_size(braiddb_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_options_set_manual_wal_flush(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_max_background_compactions(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_max_background_flushes(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_max_background_jobs(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_max_bytes_for_level_base(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_options_set_max_bytes_for_level_multiplier(braiddb_options_t* options, double value);
BRAIDDB_C_API void braiddb_options_set_max_bytes_for_level_multiplier_additional(braiddb_options_t* options, int* values,
                                                                                 size_t count);
BRAIDDB_C_API void braiddb_options_set_max_compaction_bytes(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_options_set_max_file_opening_threads(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_max_log_file_size(braiddb_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_options_set_max_manifest_file_size(braiddb_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_options_set_max_open_files(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_max_sequential_skip_in_iterations(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_options_set_max_subcompactions(braiddb_options_t* options, uint32_t value);
BRAIDDB_C_API void braiddb_options_set_max_successive_merges(braiddb_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_options_set_max_total_wal_size(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_options_set_max_write_buffer_number(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_max_write_buffer_number_to_maintain(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_max_write_buffer_size_to_maintain(braiddb_options_t* options, int64_t value);
BRAIDDB_C_API void braiddb_options_set_memtable_huge_page_size(braiddb_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_options_set_memtable_prefix_bloom_size_ratio(braiddb_options_t* options, double value);
BRAIDDB_C_API void braiddb_options_set_memtable_vector_rep(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_memtable_whole_key_filtering(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_merge_operator(braiddb_options_t* options, braiddb_mergeoperator_t* merge_operator);
BRAIDDB_C_API void braiddb_options_set_min_blob_size(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_options_set_min_level_to_compress(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_min_write_buffer_number_to_merge(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_num_levels(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_optimize_filters_for_hits(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_paranoid_checks(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_plain_table_factory(braiddb_options_t* options, uint32_t user_key_length,
                                                           int bloom_bits_per_key, double hash_table_ratio,
                                                           size_t index_sparseness);
BRAIDDB_C_API void braiddb_options_set_prefix_extractor(braiddb_options_t* options, braiddb_slicetransform_t* transform);
BRAIDDB_C_API void braiddb_options_set_prepopulate_blob_cache(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_ratelimiter(braiddb_options_t* options, braiddb_ratelimiter_t* ratelimiter);
BRAIDDB_C_API void braiddb_options_set_recycle_log_file_num(braiddb_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_options_set_report_bg_io_stats(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_row_cache(braiddb_options_t* options, braiddb_cache_t* cache);
BRAIDDB_C_API void braiddb_options_set_skip_checking_sst_file_sizes_on_db_open(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_skip_stats_update_on_db_open(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_soft_pending_compaction_bytes_limit(braiddb_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_options_set_stats_dump_period_sec(braiddb_options_t* options, unsigned int value);
BRAIDDB_C_API void braiddb_options_set_stats_persist_period_sec(braiddb_options_t* options, unsigned int value);
BRAIDDB_C_API void braiddb_options_set_table_cache_numshardbits(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_target_file_size_base(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_options_set_target_file_size_multiplier(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_uint64add_merge_operator(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_universal_compaction_options(
    braiddb_options_t* options, braiddb_universal_compaction_options_t* universal_compaction_options);
BRAIDDB_C_API void braiddb_options_set_unordered_write(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_use_adaptive_mutex(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_use_direct_io_for_flush_and_compaction(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_use_direct_reads(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_options_set_use_fsync(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_wal_bytes_per_sync(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_options_set_wal_compression(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_wal_dir(braiddb_options_t* options, const char* path);
BRAIDDB_C_API void braiddb_options_set_wal_recovery_mode(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_writable_file_max_buffer_size(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_options_set_write_buffer_size(braiddb_options_t* options, size_t value);
BRAIDDB_C_API char* braiddb_options_statistics_get_string(braiddb_options_t* options);
BRAIDDB_C_API braiddb_ratelimiter_t* braiddb_ratelimiter_create(int64_t bytes_per_second, int64_t refill_period_us,
                                                                int32_t fairness);
BRAIDDB_C_API void braiddb_ratelimiter_destroy(braiddb_ratelimiter_t* ratelimiter);
BRAIDDB_C_API void braiddb_set_options(braiddb_t* db, int count, const char* const* names, const char* const* values,
                                       char** errptr);
BRAIDDB_C_API void braiddb_set_options_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family, int count,
                                          const char* const* names, const char* const* values, char** errptr);

/* ---- Options of blocks */

BRAIDDB_C_API braiddb_block_based_table_options_t* braiddb_block_based_options_create(void);
BRAIDDB_C_API void braiddb_block_based_options_destroy(braiddb_block_based_table_options_t* options);
BRAIDDB_C_API void braiddb_block_based_options_set_block_cache(braiddb_block_based_table_options_t* options,
                                                               braiddb_cache_t* cache);
BRAIDDB_C_API void braiddb_block_based_options_set_block_cache_compressed(braiddb_block_based_table_options_t* options,
                                                                          braiddb_cache_t* cache);
BRAIDDB_C_API void braiddb_block_based_options_set_block_restart_interval(braiddb_block_based_table_options_t* options,
                                                                          int value);
BRAIDDB_C_API void braiddb_block_based_options_set_block_size(braiddb_block_based_table_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_block_based_options_set_block_size_deviation(braiddb_block_based_table_options_t* options, int value);
BRAIDDB_C_API void braiddb_block_based_options_set_cache_index_and_filter_blocks(braiddb_block_based_table_options_t* options,
                                                                                 unsigned char value);
BRAIDDB_C_API void braiddb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(
    braiddb_block_based_table_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_block_based_options_set_checksum(braiddb_block_based_table_options_t* options, char value);
BRAIDDB_C_API void braiddb_block_based_options_set_data_block_hash_ratio(braiddb_block_based_table_options_t* options,
                                                                         double value);
BRAIDDB_C_API void braiddb_block_based_options_set_data_block_index_type(braiddb_block_based_table_options_t* options, int value);
BRAIDDB_C_API void braiddb_block_based_options_set_filter_policy(braiddb_block_based_table_options_t* options,
                                                                 braiddb_filterpolicy_t* policy);
BRAIDDB_C_API void braiddb_block_based_options_set_format_version(braiddb_block_based_table_options_t* options, int value);
BRAIDDB_C_API void braiddb_block_based_options_set_index_block_restart_interval(braiddb_block_based_table_options_t* options,
                                                                                int value);
BRAIDDB_C_API void braiddb_block_based_options_set_index_type(braiddb_block_based_table_options_t* options, int value);
BRAIDDB_C_API void braiddb_block_based_options_set_metadata_block_size(braiddb_block_based_table_options_t* options,
                                                                       uint64_t value);
BRAIDDB_C_API void braiddb_block_based_options_set_no_block_cache(braiddb_block_based_table_options_t* options,
                                                                  unsigned char value);
BRAIDDB_C_API void braiddb_block_based_options_set_partition_filters(braiddb_block_based_table_options_t* options,
                                                                     unsigned char value);
BRAIDDB_C_API void braiddb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(
    braiddb_block_based_table_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_block_based_options_set_pin_top_level_index_and_filter(braiddb_block_based_table_options_t* options,
                                                                                  unsigned char value);
BRAIDDB_C_API void braiddb_block_based_options_set_use_delta_encoding(braiddb_block_based_table_options_t* options,
                                                                      unsigned char value);
BRAIDDB_C_API void braiddb_block_based_options_set_whole_key_filtering(braiddb_block_based_table_options_t* options,
                                                                       unsigned char value);
BRAIDDB_C_API braiddb_cuckoo_table_options_t* braiddb_cuckoo_options_create(void);
BRAIDDB_C_API void braiddb_cuckoo_options_destroy(braiddb_cuckoo_table_options_t* options);
BRAIDDB_C_API void braiddb_cuckoo_options_set_cuckoo_block_size(braiddb_cuckoo_table_options_t* options, uint32_t value);
BRAIDDB_C_API void braiddb_cuckoo_options_set_hash_ratio(braiddb_cuckoo_table_options_t* options, double value);
BRAIDDB_C_API void braiddb_cuckoo_options_set_identity_as_first_hash(braiddb_cuckoo_table_options_t* options,
                                                                     unsigned char value);
BRAIDDB_C_API void braiddb_cuckoo_options_set_max_search_depth(braiddb_cuckoo_table_options_t* options, uint32_t value);
BRAIDDB_C_API void braiddb_cuckoo_options_set_use_module_hash(braiddb_cuckoo_table_options_t* options, unsigned char value);

/* ---- Options of compactions */

BRAIDDB_C_API braiddb_fifo_compaction_options_t* braiddb_fifo_compaction_options_create(void);
BRAIDDB_C_API void braiddb_fifo_compaction_options_destroy(braiddb_fifo_compaction_options_t* options);
BRAIDDB_C_API uint64_t braiddb_fifo_compaction_options_get_max_table_files_size(braiddb_fifo_compaction_options_t* options);
BRAIDDB_C_API void braiddb_fifo_compaction_options_set_max_table_files_size(braiddb_fifo_compaction_options_t* options,
                                                                            uint64_t value);
BRAIDDB_C_API braiddb_universal_compaction_options_t* braiddb_universal_compaction_options_create(void);
BRAIDDB_C_API void braiddb_universal_compaction_options_destroy(braiddb_universal_compaction_options_t* options);
BRAIDDB_C_API int braiddb_universal_compaction_options_get_compression_size_percent(
    braiddb_universal_compaction_options_t* options);
BRAIDDB_C_API int braiddb_universal_compaction_options_get_max_merge_width(braiddb_universal_compaction_options_t* options);
BRAIDDB_C_API int braiddb_universal_compaction_options_get_max_size_amplification_percent(
    braiddb_universal_compaction_options_t* options);
BRAIDDB_C_API int braiddb_universal_compaction_options_get_min_merge_width(braiddb_universal_compaction_options_t* options);
BRAIDDB_C_API int braiddb_universal_compaction_options_get_size_ratio(braiddb_universal_compaction_options_t* options);
BRAIDDB_C_API int braiddb_universal_compaction_options_get_stop_style(braiddb_universal_compaction_options_t* options);
BRAIDDB_C_API void braiddb_universal_compaction_options_set_compression_size_percent(
    braiddb_universal_compaction_options_t* options, int value);
BRAIDDB_C_API void braiddb_universal_compaction_options_set_max_merge_width(braiddb_universal_compaction_options_t* options,
                                                                            int value);
BRAIDDB_C_API void braiddb_universal_compaction_options_set_max_size_amplification_percent(
    braiddb_universal_compaction_options_t* options, int value);
BRAIDDB_C_API void braiddb_universal_compaction_options_set_min_merge_width(braiddb_universal_compaction_options_t* options,
                                                                            int value);
BRAIDDB_C_API void braiddb_universal_compaction_options_set_size_ratio(braiddb_universal_compaction_options_t* options,
                                                                       int value);
BRAIDDB_C_API void braiddb_universal_compaction_options_set_stop_style(braiddb_universal_compaction_options_t* options,
                                                                       int value);

/* ---- Options of reads
   The bounds are copied. */

BRAIDDB_C_API braiddb_readoptions_t* braiddb_readoptions_create(void);
BRAIDDB_C_API void braiddb_readoptions_destroy(braiddb_readoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_readoptions_get_background_purge_on_iterator_cleanup(braiddb_readoptions_t* options);
BRAIDDB_C_API uint64_t braiddb_readoptions_get_deadline(braiddb_readoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_readoptions_get_fill_cache(braiddb_readoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_readoptions_get_ignore_range_deletions(braiddb_readoptions_t* options);
BRAIDDB_C_API uint64_t braiddb_readoptions_get_io_timeout(braiddb_readoptions_t* options);
BRAIDDB_C_API uint64_t braiddb_readoptions_get_max_skippable_internal_keys(braiddb_readoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_readoptions_get_pin_data(braiddb_readoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_readoptions_get_prefix_same_as_start(braiddb_readoptions_t* options);
BRAIDDB_C_API int braiddb_readoptions_get_read_tier(braiddb_readoptions_t* options);
BRAIDDB_C_API size_t braiddb_readoptions_get_readahead_size(braiddb_readoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_readoptions_get_tailing(braiddb_readoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_readoptions_get_total_order_seek(braiddb_readoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_readoptions_get_verify_checksums(braiddb_readoptions_t* options);
BRAIDDB_C_API void braiddb_readoptions_set_background_purge_on_iterator_cleanup(braiddb_readoptions_t* options,
                                                                                unsigned char value);
BRAIDDB_C_API void braiddb_readoptions_set_deadline(braiddb_readoptions_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_readoptions_set_fill_cache(braiddb_readoptions_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_readoptions_set_ignore_range_deletions(braiddb_readoptions_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_readoptions_set_io_timeout(braiddb_readoptions_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_readoptions_set_iter_start_ts(braiddb_readoptions_t* options, const char* timestamp,
                                                         size_t timestamp_length);
BRAIDDB_C_API void braiddb_readoptions_set_iterate_lower_bound(braiddb_readoptions_t* options, const char* key,
                                                               size_t key_length);
BRAIDDB_C_API void braiddb_readoptions_set_iterate_upper_bound(braiddb_readoptions_t* options, const char* key,
                                                               size_t key_length);
BRAIDDB_C_API void braiddb_readoptions_set_managed(braiddb_readoptions_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_readoptions_set_max_skippable_internal_keys(braiddb_readoptions_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_readoptions_set_pin_data(braiddb_readoptions_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_readoptions_set_prefix_same_as_start(braiddb_readoptions_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_readoptions_set_read_tier(braiddb_readoptions_t* options, int value);
BRAIDDB_C_API void braiddb_readoptions_set_readahead_size(braiddb_readoptions_t* options, size_t value);
BRAIDDB_C_API void braiddb_readoptions_set_snapshot(braiddb_readoptions_t* options, const braiddb_snapshot_t* snapshot);
BRAIDDB_C_API void braiddb_readoptions_set_tailing(braiddb_readoptions_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_readoptions_set_timestamp(braiddb_readoptions_t* options, const char* timestamp,
                                                     size_t timestamp_length);
BRAIDDB_C_API void braiddb_readoptions_set_total_order_seek(braiddb_readoptions_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_readoptions_set_verify_checksums(braiddb_readoptions_t* options, unsigned char value);

/* ---- Options of writes
   sync has an effect only on an ordinary file system (persist mode braiddb_persist_page). In all other modes each write is
   durable when it returns. Default: 0, as in RocksDB. */

BRAIDDB_C_API braiddb_writeoptions_t* braiddb_writeoptions_create(void);
BRAIDDB_C_API void braiddb_writeoptions_destroy(braiddb_writeoptions_t* options);
BRAIDDB_C_API void braiddb_writeoptions_disable_WAL(braiddb_writeoptions_t* options, int value);
BRAIDDB_C_API unsigned char braiddb_writeoptions_get_disable_WAL(braiddb_writeoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_writeoptions_get_ignore_missing_column_families(braiddb_writeoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_writeoptions_get_low_pri(braiddb_writeoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_writeoptions_get_memtable_insert_hint_per_batch(braiddb_writeoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_writeoptions_get_no_slowdown(braiddb_writeoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_writeoptions_get_sync(braiddb_writeoptions_t* options);
BRAIDDB_C_API void braiddb_writeoptions_set_ignore_missing_column_families(braiddb_writeoptions_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_writeoptions_set_low_pri(braiddb_writeoptions_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_writeoptions_set_memtable_insert_hint_per_batch(braiddb_writeoptions_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_writeoptions_set_no_slowdown(braiddb_writeoptions_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_writeoptions_set_sync(braiddb_writeoptions_t* options, unsigned char value);

/* ---- Options of flushes and compactions by hand */

BRAIDDB_C_API braiddb_compactoptions_t* braiddb_compactoptions_create(void);
BRAIDDB_C_API void braiddb_compactoptions_destroy(braiddb_compactoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_compactoptions_get_bottommost_level_compaction(braiddb_compactoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_compactoptions_get_change_level(braiddb_compactoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_compactoptions_get_exclusive_manual_compaction(braiddb_compactoptions_t* options);
BRAIDDB_C_API int braiddb_compactoptions_get_target_level(braiddb_compactoptions_t* options);
BRAIDDB_C_API void braiddb_compactoptions_set_bottommost_level_compaction(braiddb_compactoptions_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_compactoptions_set_change_level(braiddb_compactoptions_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_compactoptions_set_exclusive_manual_compaction(braiddb_compactoptions_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_compactoptions_set_target_level(braiddb_compactoptions_t* options, int value);
BRAIDDB_C_API braiddb_flushoptions_t* braiddb_flushoptions_create(void);
BRAIDDB_C_API void braiddb_flushoptions_destroy(braiddb_flushoptions_t* options);
BRAIDDB_C_API unsigned char braiddb_flushoptions_get_wait(braiddb_flushoptions_t* options);
BRAIDDB_C_API void braiddb_flushoptions_set_wait(braiddb_flushoptions_t* options, unsigned char value);

/* ---- Caches
   The capacity of a block cache is the limit of the lookup caches of all databases that are opened with it. */

BRAIDDB_C_API braiddb_cache_t* braiddb_cache_create_lru(size_t capacity);
BRAIDDB_C_API braiddb_cache_t* braiddb_cache_create_lru_opts(braiddb_lru_cache_options_t* options);
BRAIDDB_C_API braiddb_cache_t* braiddb_cache_create_lru_with_strict_capacity_limit(size_t capacity);
BRAIDDB_C_API void braiddb_cache_destroy(braiddb_cache_t* cache);
BRAIDDB_C_API void braiddb_cache_disown_data(braiddb_cache_t* cache);
BRAIDDB_C_API size_t braiddb_cache_get_capacity(braiddb_cache_t* cache);
BRAIDDB_C_API size_t braiddb_cache_get_pinned_usage(braiddb_cache_t* cache);
BRAIDDB_C_API size_t braiddb_cache_get_usage(braiddb_cache_t* cache);
BRAIDDB_C_API void braiddb_cache_set_capacity(braiddb_cache_t* cache, size_t value);
BRAIDDB_C_API braiddb_memory_allocator_t* braiddb_jemalloc_nodump_allocator_create(char** errptr);
BRAIDDB_C_API braiddb_lru_cache_options_t* braiddb_lru_cache_options_create(void);
BRAIDDB_C_API void braiddb_lru_cache_options_destroy(braiddb_lru_cache_options_t* options);
BRAIDDB_C_API void braiddb_lru_cache_options_set_capacity(braiddb_lru_cache_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_lru_cache_options_set_memory_allocator(braiddb_lru_cache_options_t* options,
                                                                  braiddb_memory_allocator_t* memory_allocator);
BRAIDDB_C_API void braiddb_lru_cache_options_set_num_shard_bits(braiddb_lru_cache_options_t* options, int value);
BRAIDDB_C_API void braiddb_memory_allocator_destroy(braiddb_memory_allocator_t* memory_allocator);

/* ---- Environment */

BRAIDDB_C_API braiddb_env_t* braiddb_create_default_env(void);
BRAIDDB_C_API void braiddb_create_dir_if_missing(braiddb_env_t* env, const char* path, char** errptr);
BRAIDDB_C_API braiddb_env_t* braiddb_create_mem_env(void);
BRAIDDB_C_API void braiddb_env_destroy(braiddb_env_t* env);
BRAIDDB_C_API int braiddb_env_get_background_threads(braiddb_env_t* env);
BRAIDDB_C_API int braiddb_env_get_bottom_priority_background_threads(braiddb_env_t* env);
BRAIDDB_C_API int braiddb_env_get_high_priority_background_threads(braiddb_env_t* env);
BRAIDDB_C_API int braiddb_env_get_low_priority_background_threads(braiddb_env_t* env);
BRAIDDB_C_API void braiddb_env_join_all_threads(braiddb_env_t* env);
BRAIDDB_C_API void braiddb_env_lower_high_priority_thread_pool_cpu_priority(braiddb_env_t* env);
BRAIDDB_C_API void braiddb_env_lower_high_priority_thread_pool_io_priority(braiddb_env_t* env);
BRAIDDB_C_API void braiddb_env_lower_thread_pool_cpu_priority(braiddb_env_t* env);
BRAIDDB_C_API void braiddb_env_lower_thread_pool_io_priority(braiddb_env_t* env);
BRAIDDB_C_API void braiddb_env_set_background_threads(braiddb_env_t* env, int value);
BRAIDDB_C_API void braiddb_env_set_bottom_priority_background_threads(braiddb_env_t* env, int value);
BRAIDDB_C_API void braiddb_env_set_high_priority_background_threads(braiddb_env_t* env, int value);
BRAIDDB_C_API void braiddb_env_set_low_priority_background_threads(braiddb_env_t* env, int value);

/* ---- Comparators */

BRAIDDB_C_API braiddb_comparator_t* braiddb_comparator_create(void* state, void (*destructor)(void*),
                                                              int (*compare)(void*, const char*, size_t, const char*, size_t),
                                                              const char* (*name)(void*));
BRAIDDB_C_API void braiddb_comparator_destroy(braiddb_comparator_t* comparator);

/* ---- Filter policies
   The bits of a Bloom or ribbon filter set filter_bits_per_key. braiddb_filterpolicy_create, below, takes a user's policy. */

BRAIDDB_C_API braiddb_filterpolicy_t* braiddb_filterpolicy_create_bloom(double bits_per_key);
BRAIDDB_C_API braiddb_filterpolicy_t* braiddb_filterpolicy_create_bloom_full(double bits_per_key);
BRAIDDB_C_API braiddb_filterpolicy_t* braiddb_filterpolicy_create_ribbon(double bloom_equivalent_bits_per_key);
BRAIDDB_C_API braiddb_filterpolicy_t* braiddb_filterpolicy_create_ribbon_hybrid(double bloom_equivalent_bits_per_key,
                                                                                int bloom_before_level);
BRAIDDB_C_API void braiddb_filterpolicy_destroy(braiddb_filterpolicy_t* policy);

/* ---- Merge operators
   The results of the functions are passed to delete_value, or to free(3) if delete_value is NULL. Any thread may call the
   functions. They must not call the database. */

BRAIDDB_C_API void braiddb_merge(braiddb_t* db, const braiddb_writeoptions_t* options, const char* key, size_t key_length,
                                 const char* value, size_t value_length, char** errptr);
BRAIDDB_C_API void braiddb_merge_cf(braiddb_t* db, const braiddb_writeoptions_t* options,
                                    braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                    const char* value, size_t value_length, char** errptr);
BRAIDDB_C_API braiddb_mergeoperator_t* braiddb_mergeoperator_create(
    void* state, void (*destructor)(void*),
    char* (*full_merge)(void*, const char*, size_t, const char*, size_t, const char* const*, const size_t*, int, unsigned char*,
                        size_t*),
    char* (*partial_merge)(void*, const char*, size_t, const char* const*, const size_t*, int, unsigned char*, size_t*),
    void (*delete_value)(void*, const char*, size_t), const char* (*name)(void*));
BRAIDDB_C_API void braiddb_mergeoperator_destroy(braiddb_mergeoperator_t* merge_operator);

/* ---- Compaction filters
   braiddb/compaction_filter.h describes when a filter is called.
   new value          remains the memory of the callback
   filter             owned by the caller; must outlive the databases that were opened with it
   filter of factory  destroyed by the database
   factory            destroyed by the last of the options and databases that use it */

BRAIDDB_C_API braiddb_compactionfilter_t* braiddb_compactionfilter_create(void* state, void (*destructor)(void*),
                                                                          unsigned char (*filter)(void*, int, const char*, size_t,
                                                                                                  const char*, size_t, char**,
                                                                                                  size_t*, unsigned char*),
                                                                          const char* (*name)(void*));
BRAIDDB_C_API void braiddb_compactionfilter_destroy(braiddb_compactionfilter_t* filter);
BRAIDDB_C_API void braiddb_compactionfilter_set_ignore_snapshots(braiddb_compactionfilter_t* filter, unsigned char value);
BRAIDDB_C_API unsigned char braiddb_compactionfiltercontext_is_full_compaction(braiddb_compactionfiltercontext_t* context);
BRAIDDB_C_API unsigned char braiddb_compactionfiltercontext_is_manual_compaction(braiddb_compactionfiltercontext_t* context);
BRAIDDB_C_API braiddb_compactionfilterfactory_t* braiddb_compactionfilterfactory_create(
    void* state, void (*destructor)(void*),
    braiddb_compactionfilter_t* (*create_filter)(void*, braiddb_compactionfiltercontext_t*), const char* (*name)(void*));
BRAIDDB_C_API void braiddb_compactionfilterfactory_destroy(braiddb_compactionfilterfactory_t* factory);

/* ---- Prefixes of keys
   For iterators with prefix_same_as_start. */

BRAIDDB_C_API braiddb_slicetransform_t* braiddb_slicetransform_create(void* state, void (*destructor)(void*),
                                                                      char* (*transform)(void*, const char*, size_t, size_t*),
                                                                      unsigned char (*in_domain)(void*, const char*, size_t),
                                                                      unsigned char (*in_range)(void*, const char*, size_t),
                                                                      const char* (*name)(void*));
BRAIDDB_C_API braiddb_slicetransform_t* braiddb_slicetransform_create_fixed_prefix(size_t length);
BRAIDDB_C_API braiddb_slicetransform_t* braiddb_slicetransform_create_noop(void);
BRAIDDB_C_API void braiddb_slicetransform_destroy(braiddb_slicetransform_t* transform);

/* ---- Column families
   A family has its own comparator and kind of last level, from the options with which it is created or opened. All other options
   are the database's. Destroy handles before the close. braiddb_list_column_families works also while the database is open. */

BRAIDDB_C_API void braiddb_approximate_sizes_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family, int count,
                                                const char* const* start_keys, const size_t* start_key_lengths,
                                                const char* const* limit_keys, const size_t* limit_key_lengths, uint64_t* sizes,
                                                char** errptr);
BRAIDDB_C_API void braiddb_batched_multi_get_cf(braiddb_t* db, const braiddb_readoptions_t* options,
                                                braiddb_column_family_handle_t* column_family, size_t count,
                                                const char* const* keys, const size_t* key_lengths,
                                                braiddb_pinnableslice_t** values, char** errors, bool sorted_input);
BRAIDDB_C_API void braiddb_column_family_handle_destroy(braiddb_column_family_handle_t* column_family);
BRAIDDB_C_API uint32_t braiddb_column_family_handle_get_id(braiddb_column_family_handle_t* column_family);
BRAIDDB_C_API char* braiddb_column_family_handle_get_name(braiddb_column_family_handle_t* column_family, size_t* length);
BRAIDDB_C_API void braiddb_compact_range_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family, const char* start_key,
                                            size_t start_key_length, const char* limit_key, size_t limit_key_length);
BRAIDDB_C_API braiddb_column_family_handle_t* braiddb_create_column_family(braiddb_t* db, const braiddb_options_t* options,
                                                                           const char* name, char** errptr);
BRAIDDB_C_API braiddb_column_family_handle_t* braiddb_create_column_family_with_ttl(braiddb_t* db,
                                                                                    const braiddb_options_t* options,
                                                                                    const char* name, int ttl, char** errptr);
BRAIDDB_C_API void braiddb_delete_cf(braiddb_t* db, const braiddb_writeoptions_t* options,
                                     braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                     char** errptr);
BRAIDDB_C_API void braiddb_delete_range_cf(braiddb_t* db, const braiddb_writeoptions_t* options,
                                           braiddb_column_family_handle_t* column_family, const char* start_key,
                                           size_t start_key_length, const char* limit_key, size_t limit_key_length,
                                           char** errptr);
BRAIDDB_C_API void braiddb_drop_column_family(braiddb_t* db, braiddb_column_family_handle_t* column_family, char** errptr);
BRAIDDB_C_API void braiddb_flush_cf(braiddb_t* db, const braiddb_flushoptions_t* options,
                                    braiddb_column_family_handle_t* column_family, char** errptr);
BRAIDDB_C_API char* braiddb_get_cf(braiddb_t* db, const braiddb_readoptions_t* options,
                                   braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                   size_t* value_length, char** errptr);
BRAIDDB_C_API braiddb_pinnableslice_t* braiddb_get_pinned_cf(braiddb_t* db, const braiddb_readoptions_t* options,
                                                             braiddb_column_family_handle_t* column_family, const char* key,
                                                             size_t key_length, char** errptr);
BRAIDDB_C_API unsigned char braiddb_key_may_exist_cf(braiddb_t* db, const braiddb_readoptions_t* options,
                                                     braiddb_column_family_handle_t* column_family, const char* key,
                                                     size_t key_length, char** value, size_t* value_length, const char* timestamp,
                                                     size_t timestamp_length, unsigned char* value_found);
BRAIDDB_C_API char** braiddb_list_column_families(const braiddb_options_t* options, const char* path, size_t* count,
                                                  char** errptr);
BRAIDDB_C_API void braiddb_list_column_families_destroy(char** names, size_t count);
BRAIDDB_C_API void braiddb_multi_get_cf(braiddb_t* db, const braiddb_readoptions_t* options,
                                        const braiddb_column_family_handle_t* const* column_families, size_t count,
                                        const char* const* keys, const size_t* key_lengths, char** values, size_t* value_lengths,
                                        char** errors);
BRAIDDB_C_API braiddb_t* braiddb_open_as_secondary_column_families(const braiddb_options_t* options, const char* path,
                                                                   const char* secondary_path, int count,
                                                                   const char* const* column_family_names,
                                                                   const braiddb_options_t* const* column_family_options,
                                                                   braiddb_column_family_handle_t** handles, char** errptr);
BRAIDDB_C_API braiddb_t* braiddb_open_column_families(const braiddb_options_t* options, const char* path, int count,
                                                      const char* const* column_family_names,
                                                      const braiddb_options_t* const* column_family_options,
                                                      braiddb_column_family_handle_t** handles, char** errptr);
BRAIDDB_C_API braiddb_t* braiddb_open_column_families_with_ttl(const braiddb_options_t* options, const char* path, int count,
                                                               const char* const* column_family_names,
                                                               const braiddb_options_t* const* column_family_options,
                                                               braiddb_column_family_handle_t** handles, const int* ttls,
                                                               char** errptr);
BRAIDDB_C_API braiddb_t* braiddb_open_for_read_only_column_families(const braiddb_options_t* options, const char* path, int count,
                                                                    const char* const* column_family_names,
                                                                    const braiddb_options_t* const* column_family_options,
                                                                    braiddb_column_family_handle_t** handles,
                                                                    unsigned char error_if_wal_file_exists, char** errptr);
BRAIDDB_C_API int braiddb_property_int_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family, const char* property,
                                          uint64_t* value);
BRAIDDB_C_API char* braiddb_property_value_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family, const char* property);
BRAIDDB_C_API void braiddb_put_cf(braiddb_t* db, const braiddb_writeoptions_t* options,
                                  braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                  const char* value, size_t value_length, char** errptr);
BRAIDDB_C_API void braiddb_singledelete_cf(braiddb_t* db, const braiddb_writeoptions_t* options,
                                           braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                           char** errptr);
BRAIDDB_C_API void braiddb_suggest_compact_range_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family,
                                                    const char* start_key, size_t start_key_length, const char* limit_key,
                                                    size_t limit_key_length, char** errptr);

/* ---- Transactions
   A prepared transaction stays prepared, with its locks, when its object is destroyed and after a crash.
   braiddb_transactiondb_get_prepared_transactions returns it again.
   braiddb_transaction_get_writebatch_wi returns a read-only view of the transaction's batch, valid until the transaction is over.
   Free the view by braiddb_free, not by braiddb_writebatch_wi_destroy. */

BRAIDDB_C_API braiddb_transaction_t* braiddb_transaction_begin(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options,
                                                               const braiddb_transaction_options_t* transaction_options,
                                                               braiddb_transaction_t* old_transaction);
BRAIDDB_C_API void braiddb_transaction_commit(braiddb_transaction_t* transaction, char** errptr);
BRAIDDB_C_API braiddb_iterator_t* braiddb_transaction_create_iterator(braiddb_transaction_t* transaction,
                                                                      const braiddb_readoptions_t* options);
BRAIDDB_C_API braiddb_iterator_t* braiddb_transaction_create_iterator_cf(braiddb_transaction_t* transaction,
                                                                         const braiddb_readoptions_t* options,
                                                                         braiddb_column_family_handle_t* column_family);
BRAIDDB_C_API void braiddb_transaction_delete(braiddb_transaction_t* transaction, const char* key, size_t key_length,
                                              char** errptr);
BRAIDDB_C_API void braiddb_transaction_delete_cf(braiddb_transaction_t* transaction,
                                                 braiddb_column_family_handle_t* column_family, const char* key,
                                                 size_t key_length, char** errptr);
BRAIDDB_C_API void braiddb_transaction_destroy(braiddb_transaction_t* transaction);
BRAIDDB_C_API char* braiddb_transaction_get(braiddb_transaction_t* transaction, const braiddb_readoptions_t* options,
                                            const char* key, size_t key_length, size_t* value_length, char** errptr);
BRAIDDB_C_API char* braiddb_transaction_get_cf(braiddb_transaction_t* transaction, const braiddb_readoptions_t* options,
                                               braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                               size_t* value_length, char** errptr);
BRAIDDB_C_API char* braiddb_transaction_get_for_update(braiddb_transaction_t* transaction, const braiddb_readoptions_t* options,
                                                       const char* key, size_t key_length, size_t* value_length,
                                                       unsigned char exclusive, char** errptr);
BRAIDDB_C_API char* braiddb_transaction_get_for_update_cf(braiddb_transaction_t* transaction,
                                                          const braiddb_readoptions_t* options,
                                                          braiddb_column_family_handle_t* column_family, const char* key,
                                                          size_t key_length, size_t* value_length, unsigned char exclusive,
                                                          char** errptr);
BRAIDDB_C_API char* braiddb_transaction_get_name(braiddb_transaction_t* transaction, size_t* value_length);
BRAIDDB_C_API braiddb_pinnableslice_t* braiddb_transaction_get_pinned(braiddb_transaction_t* transaction,
                                                                      const braiddb_readoptions_t* options, const char* key,
                                                                      size_t key_length, char** errptr);
BRAIDDB_C_API braiddb_pinnableslice_t* braiddb_transaction_get_pinned_cf(braiddb_transaction_t* transaction,
                                                                         const braiddb_readoptions_t* options,
                                                                         braiddb_column_family_handle_t* column_family,
                                                                         const char* key, size_t key_length, char** errptr);
BRAIDDB_C_API braiddb_pinnableslice_t* braiddb_transaction_get_pinned_for_update(braiddb_transaction_t* transaction,
                                                                                 const braiddb_readoptions_t* options,
                                                                                 const char* key, size_t key_length,
                                                                                 unsigned char exclusive, char** errptr);
BRAIDDB_C_API braiddb_pinnableslice_t* braiddb_transaction_get_pinned_for_update_cf(braiddb_transaction_t* transaction,
                                                                                    const braiddb_readoptions_t* options,
                                                                                    braiddb_column_family_handle_t* column_family,
                                                                                    const char* key, size_t key_length,
                                                                                    unsigned char exclusive, char** errptr);
BRAIDDB_C_API const braiddb_snapshot_t* braiddb_transaction_get_snapshot(braiddb_transaction_t* transaction);
BRAIDDB_C_API braiddb_writebatch_wi_t* braiddb_transaction_get_writebatch_wi(braiddb_transaction_t* transaction);
BRAIDDB_C_API void braiddb_transaction_merge(braiddb_transaction_t* transaction, const char* key, size_t key_length,
                                             const char* value, size_t value_length, char** errptr);
BRAIDDB_C_API void braiddb_transaction_merge_cf(braiddb_transaction_t* transaction, braiddb_column_family_handle_t* column_family,
                                                const char* key, size_t key_length, const char* value, size_t value_length,
                                                char** errptr);
BRAIDDB_C_API void braiddb_transaction_multi_get(braiddb_transaction_t* transaction, const braiddb_readoptions_t* options,
                                                 size_t count, const char* const* keys, const size_t* key_lengths, char** values,
                                                 size_t* value_lengths, char** errors);
BRAIDDB_C_API void braiddb_transaction_multi_get_cf(braiddb_transaction_t* transaction, const braiddb_readoptions_t* options,
                                                    const braiddb_column_family_handle_t* const* column_families, size_t count,
                                                    const char* const* keys, const size_t* key_lengths, char** values,
                                                    size_t* value_lengths, char** errors);
BRAIDDB_C_API braiddb_transaction_options_t* braiddb_transaction_options_create(void);
BRAIDDB_C_API void braiddb_transaction_options_destroy(braiddb_transaction_options_t* options);
BRAIDDB_C_API void braiddb_transaction_options_set_deadlock_detect(braiddb_transaction_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_transaction_options_set_deadlock_detect_depth(braiddb_transaction_options_t* options, int64_t value);
BRAIDDB_C_API void braiddb_transaction_options_set_expiration(braiddb_transaction_options_t* options, int64_t value);
BRAIDDB_C_API void braiddb_transaction_options_set_lock_timeout(braiddb_transaction_options_t* options, int64_t value);
BRAIDDB_C_API void braiddb_transaction_options_set_max_write_batch_size(braiddb_transaction_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_transaction_options_set_set_snapshot(braiddb_transaction_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_transaction_options_set_skip_prepare(braiddb_transaction_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_transaction_prepare(braiddb_transaction_t* transaction, char** errptr);
BRAIDDB_C_API void braiddb_transaction_put(braiddb_transaction_t* transaction, const char* key, size_t key_length,
                                           const char* value, size_t value_length, char** errptr);
BRAIDDB_C_API void braiddb_transaction_put_cf(braiddb_transaction_t* transaction, braiddb_column_family_handle_t* column_family,
                                              const char* key, size_t key_length, const char* value, size_t value_length,
                                              char** errptr);
BRAIDDB_C_API void braiddb_transaction_rebuild_from_writebatch(braiddb_transaction_t* transaction, braiddb_writebatch_t* batch,
                                                               char** errptr);
BRAIDDB_C_API void braiddb_transaction_rebuild_from_writebatch_wi(braiddb_transaction_t* transaction,
                                                                  braiddb_writebatch_wi_t* batch, char** errptr);
BRAIDDB_C_API void braiddb_transaction_rollback(braiddb_transaction_t* transaction, char** errptr);
BRAIDDB_C_API void braiddb_transaction_rollback_to_savepoint(braiddb_transaction_t* transaction, char** errptr);
BRAIDDB_C_API void braiddb_transaction_set_commit_timestamp(braiddb_transaction_t* transaction, uint64_t timestamp);
BRAIDDB_C_API void braiddb_transaction_set_name(braiddb_transaction_t* transaction, const char* name, size_t name_length,
                                                char** errptr);
BRAIDDB_C_API void braiddb_transaction_set_read_timestamp_for_validation(braiddb_transaction_t* transaction, uint64_t timestamp);
BRAIDDB_C_API void braiddb_transaction_set_savepoint(braiddb_transaction_t* transaction);
BRAIDDB_C_API braiddb_checkpoint_t* braiddb_transactiondb_checkpoint_object_create(braiddb_transactiondb_t* db, char** errptr);
BRAIDDB_C_API void braiddb_transactiondb_close(braiddb_transactiondb_t* db);
BRAIDDB_C_API braiddb_column_family_handle_t* braiddb_transactiondb_create_column_family(braiddb_transactiondb_t* db,
                                                                                         const braiddb_options_t* options,
                                                                                         const char* name, char** errptr);
BRAIDDB_C_API braiddb_iterator_t* braiddb_transactiondb_create_iterator(braiddb_transactiondb_t* db,
                                                                        const braiddb_readoptions_t* options);
BRAIDDB_C_API braiddb_iterator_t* braiddb_transactiondb_create_iterator_cf(braiddb_transactiondb_t* db,
                                                                           const braiddb_readoptions_t* options,
                                                                           braiddb_column_family_handle_t* column_family);
BRAIDDB_C_API const braiddb_snapshot_t* braiddb_transactiondb_create_snapshot(braiddb_transactiondb_t* db);
BRAIDDB_C_API void braiddb_transactiondb_delete(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options,
                                                const char* key, size_t key_length, char** errptr);
BRAIDDB_C_API void braiddb_transactiondb_delete_cf(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options,
                                                   braiddb_column_family_handle_t* column_family, const char* key,
                                                   size_t key_length, char** errptr);
BRAIDDB_C_API void braiddb_transactiondb_flush(braiddb_transactiondb_t* db, const braiddb_flushoptions_t* options, char** errptr);
BRAIDDB_C_API void braiddb_transactiondb_flush_cf(braiddb_transactiondb_t* db, const braiddb_flushoptions_t* options,
                                                  braiddb_column_family_handle_t* column_family, char** errptr);
BRAIDDB_C_API void braiddb_transactiondb_flush_wal(braiddb_transactiondb_t* db, unsigned char sync, char** errptr);
BRAIDDB_C_API char* braiddb_transactiondb_get(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options, const char* key,
                                              size_t key_length, size_t* value_length, char** errptr);
BRAIDDB_C_API char* braiddb_transactiondb_get_cf(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options,
                                                 braiddb_column_family_handle_t* column_family, const char* key,
                                                 size_t key_length, size_t* value_length, char** errptr);
BRAIDDB_C_API braiddb_pinnableslice_t* braiddb_transactiondb_get_pinned(braiddb_transactiondb_t* db,
                                                                        const braiddb_readoptions_t* options, const char* key,
                                                                        size_t key_length, char** errptr);
BRAIDDB_C_API braiddb_pinnableslice_t* braiddb_transactiondb_get_pinned_cf(braiddb_transactiondb_t* db,
                                                                           const braiddb_readoptions_t* options,
                                                                           braiddb_column_family_handle_t* column_family,
                                                                           const char* key, size_t key_length, char** errptr);
BRAIDDB_C_API braiddb_transaction_t** braiddb_transactiondb_get_prepared_transactions(braiddb_transactiondb_t* db, size_t* count);
BRAIDDB_C_API void braiddb_transactiondb_merge(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options,
                                               const char* key, size_t key_length, const char* value, size_t value_length,
                                               char** errptr);
BRAIDDB_C_API void braiddb_transactiondb_merge_cf(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options,
                                                  braiddb_column_family_handle_t* column_family, const char* key,
                                                  size_t key_length, const char* value, size_t value_length, char** errptr);
BRAIDDB_C_API void braiddb_transactiondb_multi_get(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options,
                                                   size_t count, const char* const* keys, const size_t* key_lengths,
                                                   char** values, size_t* value_lengths, char** errors);
BRAIDDB_C_API void braiddb_transactiondb_multi_get_cf(braiddb_transactiondb_t* db, const braiddb_readoptions_t* options,
                                                      const braiddb_column_family_handle_t* const* column_families, size_t count,
                                                      const char* const* keys, const size_t* key_lengths, char** values,
                                                      size_t* value_lengths, char** errors);
BRAIDDB_C_API braiddb_transactiondb_t* braiddb_transactiondb_open(const braiddb_options_t* options,
                                                                  const braiddb_transactiondb_options_t* transactiondb_options,
                                                                  const char* path, char** errptr);
BRAIDDB_C_API braiddb_transactiondb_t* braiddb_transactiondb_open_column_families(
    const braiddb_options_t* options, const braiddb_transactiondb_options_t* transactiondb_options, const char* path, int count,
    const char* const* column_family_names, const braiddb_options_t* const* column_family_options,
    braiddb_column_family_handle_t** handles, char** errptr);
BRAIDDB_C_API braiddb_transactiondb_options_t* braiddb_transactiondb_options_create(void);
BRAIDDB_C_API void braiddb_transactiondb_options_destroy(braiddb_transactiondb_options_t* options);
BRAIDDB_C_API void braiddb_transactiondb_options_set_default_lock_timeout(braiddb_transactiondb_options_t* options,
                                                                          int64_t value);
BRAIDDB_C_API void braiddb_transactiondb_options_set_max_num_locks(braiddb_transactiondb_options_t* options, int64_t value);
BRAIDDB_C_API void braiddb_transactiondb_options_set_num_stripes(braiddb_transactiondb_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_transactiondb_options_set_transaction_lock_timeout(braiddb_transactiondb_options_t* options,
                                                                              int64_t value);
BRAIDDB_C_API int braiddb_transactiondb_property_int(braiddb_transactiondb_t* db, const char* property, uint64_t* value);
BRAIDDB_C_API char* braiddb_transactiondb_property_value(braiddb_transactiondb_t* db, const char* property);
BRAIDDB_C_API void braiddb_transactiondb_put(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options, const char* key,
                                             size_t key_length, const char* value, size_t value_length, char** errptr);
BRAIDDB_C_API void braiddb_transactiondb_put_cf(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options,
                                                braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                                const char* value, size_t value_length, char** errptr);
BRAIDDB_C_API void braiddb_transactiondb_release_snapshot(braiddb_transactiondb_t* db, const braiddb_snapshot_t* snapshot);
BRAIDDB_C_API void braiddb_transactiondb_write(braiddb_transactiondb_t* db, const braiddb_writeoptions_t* options,
                                               braiddb_writebatch_t* batch, char** errptr);

/* ---- Optimistic transactions
   Optimistic transactions cannot be named or prepared. */

BRAIDDB_C_API braiddb_transaction_t* braiddb_optimistictransaction_begin(
    braiddb_optimistictransactiondb_t* db, const braiddb_writeoptions_t* options,
    const braiddb_optimistictransaction_options_t* optimistictransaction_options, braiddb_transaction_t* old_transaction);
BRAIDDB_C_API braiddb_optimistictransaction_options_t* braiddb_optimistictransaction_options_create(void);
BRAIDDB_C_API void braiddb_optimistictransaction_options_destroy(braiddb_optimistictransaction_options_t* options);
BRAIDDB_C_API void braiddb_optimistictransaction_options_set_set_snapshot(braiddb_optimistictransaction_options_t* options,
                                                                          unsigned char value);
BRAIDDB_C_API braiddb_checkpoint_t* braiddb_optimistictransactiondb_checkpoint_object_create(
    braiddb_optimistictransactiondb_t* db, char** errptr);
BRAIDDB_C_API void braiddb_optimistictransactiondb_close(braiddb_optimistictransactiondb_t* db);
BRAIDDB_C_API void braiddb_optimistictransactiondb_close_base_db(braiddb_t* db);
BRAIDDB_C_API braiddb_t* braiddb_optimistictransactiondb_get_base_db(braiddb_optimistictransactiondb_t* db);
BRAIDDB_C_API braiddb_optimistictransactiondb_t* braiddb_optimistictransactiondb_open(const braiddb_options_t* options,
                                                                                      const char* path, char** errptr);
BRAIDDB_C_API braiddb_optimistictransactiondb_t* braiddb_optimistictransactiondb_open_column_families(
    const braiddb_options_t* options, const char* path, int count, const char* const* column_family_names,
    const braiddb_options_t* const* column_family_options, braiddb_column_family_handle_t** handles, char** errptr);
BRAIDDB_C_API int braiddb_optimistictransactiondb_property_int(braiddb_optimistictransactiondb_t* db, const char* property,
                                                               uint64_t* value);
BRAIDDB_C_API char* braiddb_optimistictransactiondb_property_value(braiddb_optimistictransactiondb_t* db, const char* property);
BRAIDDB_C_API void braiddb_optimistictransactiondb_write(braiddb_optimistictransactiondb_t* db,
                                                         const braiddb_writeoptions_t* options, braiddb_writebatch_t* batch,
                                                         char** errptr);

/* ---- Checkpoints
   A checkpoint is a database at the path, with the contents of the original at the time of the call. */

BRAIDDB_C_API void braiddb_checkpoint_create(braiddb_checkpoint_t* checkpoint, const char* path, uint64_t log_size_for_flush,
                                             char** errptr);
BRAIDDB_C_API braiddb_checkpoint_t* braiddb_checkpoint_object_create(braiddb_t* db, char** errptr);
BRAIDDB_C_API void braiddb_checkpoint_object_destroy(braiddb_checkpoint_t* checkpoint);

/* ---- Backups
   Each backup is one file with a copy of all data. Ids of backups begin at 1. The index of an info begins at 0, the oldest. */

BRAIDDB_C_API void braiddb_backup_engine_close(braiddb_backup_engine_t* backup_engine);
BRAIDDB_C_API void braiddb_backup_engine_create_new_backup(braiddb_backup_engine_t* backup_engine, braiddb_t* db, char** errptr);
BRAIDDB_C_API void braiddb_backup_engine_create_new_backup_flush(braiddb_backup_engine_t* backup_engine, braiddb_t* db,
                                                                 unsigned char flush_before_backup, char** errptr);
BRAIDDB_C_API const braiddb_backup_engine_info_t* braiddb_backup_engine_get_backup_info(braiddb_backup_engine_t* backup_engine);
BRAIDDB_C_API uint32_t braiddb_backup_engine_info_backup_id(const braiddb_backup_engine_info_t* info, int index);
BRAIDDB_C_API int braiddb_backup_engine_info_count(const braiddb_backup_engine_info_t* info);
BRAIDDB_C_API void braiddb_backup_engine_info_destroy(const braiddb_backup_engine_info_t* info);
BRAIDDB_C_API uint32_t braiddb_backup_engine_info_number_files(const braiddb_backup_engine_info_t* info, int index);
BRAIDDB_C_API uint64_t braiddb_backup_engine_info_size(const braiddb_backup_engine_info_t* info, int index);
BRAIDDB_C_API int64_t braiddb_backup_engine_info_timestamp(const braiddb_backup_engine_info_t* info, int index);
BRAIDDB_C_API braiddb_backup_engine_t* braiddb_backup_engine_open(const braiddb_options_t* options, const char* path,
                                                                  char** errptr);
BRAIDDB_C_API braiddb_backup_engine_t* braiddb_backup_engine_open_opts(const braiddb_backup_engine_options_t* options,
                                                                       braiddb_env_t* env, char** errptr);
BRAIDDB_C_API braiddb_backup_engine_options_t* braiddb_backup_engine_options_create(const char* path);
BRAIDDB_C_API void braiddb_backup_engine_options_destroy(braiddb_backup_engine_options_t* options);
BRAIDDB_C_API unsigned char braiddb_backup_engine_options_get_backup_log_files(braiddb_backup_engine_options_t* options);
BRAIDDB_C_API uint64_t braiddb_backup_engine_options_get_backup_rate_limit(braiddb_backup_engine_options_t* options);
BRAIDDB_C_API uint64_t braiddb_backup_engine_options_get_callback_trigger_interval_size(braiddb_backup_engine_options_t* options);
BRAIDDB_C_API unsigned char braiddb_backup_engine_options_get_destroy_old_data(braiddb_backup_engine_options_t* options);
BRAIDDB_C_API int braiddb_backup_engine_options_get_max_background_operations(braiddb_backup_engine_options_t* options);
BRAIDDB_C_API int braiddb_backup_engine_options_get_max_valid_backups_to_open(braiddb_backup_engine_options_t* options);
BRAIDDB_C_API uint64_t braiddb_backup_engine_options_get_restore_rate_limit(braiddb_backup_engine_options_t* options);
BRAIDDB_C_API int braiddb_backup_engine_options_get_share_files_with_checksum_naming(braiddb_backup_engine_options_t* options);
BRAIDDB_C_API unsigned char braiddb_backup_engine_options_get_share_table_files(braiddb_backup_engine_options_t* options);
BRAIDDB_C_API unsigned char braiddb_backup_engine_options_get_sync(braiddb_backup_engine_options_t* options);
BRAIDDB_C_API void braiddb_backup_engine_options_set_backup_dir(braiddb_backup_engine_options_t* options, const char* path);
BRAIDDB_C_API void braiddb_backup_engine_options_set_backup_log_files(braiddb_backup_engine_options_t* options,
                                                                      unsigned char value);
BRAIDDB_C_API void braiddb_backup_engine_options_set_backup_rate_limit(braiddb_backup_engine_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_backup_engine_options_set_callback_trigger_interval_size(braiddb_backup_engine_options_t* options,
                                                                                    uint64_t value);
BRAIDDB_C_API void braiddb_backup_engine_options_set_destroy_old_data(braiddb_backup_engine_options_t* options,
                                                                      unsigned char value);
BRAIDDB_C_API void braiddb_backup_engine_options_set_env(braiddb_backup_engine_options_t* options, braiddb_env_t* env);
BRAIDDB_C_API void braiddb_backup_engine_options_set_max_background_operations(braiddb_backup_engine_options_t* options,
                                                                               int value);
BRAIDDB_C_API void braiddb_backup_engine_options_set_max_valid_backups_to_open(braiddb_backup_engine_options_t* options,
                                                                               int value);
BRAIDDB_C_API void braiddb_backup_engine_options_set_restore_rate_limit(braiddb_backup_engine_options_t* options, uint64_t value);
BRAIDDB_C_API void braiddb_backup_engine_options_set_share_files_with_checksum_naming(braiddb_backup_engine_options_t* options,
                                                                                      int value);
BRAIDDB_C_API void braiddb_backup_engine_options_set_share_table_files(braiddb_backup_engine_options_t* options,
                                                                       unsigned char value);
BRAIDDB_C_API void braiddb_backup_engine_options_set_sync(braiddb_backup_engine_options_t* options, unsigned char value);
BRAIDDB_C_API void braiddb_backup_engine_purge_old_backups(braiddb_backup_engine_t* backup_engine, uint32_t backups_to_keep,
                                                           char** errptr);
BRAIDDB_C_API void braiddb_backup_engine_restore_db_from_backup(braiddb_backup_engine_t* backup_engine, const char* db_path,
                                                                const char* wal_path,
                                                                const braiddb_restore_options_t* restore_options,
                                                                uint32_t backup_id, char** errptr);
BRAIDDB_C_API void braiddb_backup_engine_restore_db_from_latest_backup(braiddb_backup_engine_t* backup_engine,
                                                                       const char* db_path, const char* wal_path,
                                                                       const braiddb_restore_options_t* restore_options,
                                                                       char** errptr);
BRAIDDB_C_API void braiddb_backup_engine_verify_backup(braiddb_backup_engine_t* backup_engine, uint32_t backup_id, char** errptr);
BRAIDDB_C_API braiddb_restore_options_t* braiddb_restore_options_create(void);
BRAIDDB_C_API void braiddb_restore_options_destroy(braiddb_restore_options_t* options);
BRAIDDB_C_API void braiddb_restore_options_set_keep_log_files(braiddb_restore_options_t* options, int value);

/* ---- Files of sorted keys, and their ingestion
   The files have BraidDB's own format. An ingestion is atomic. */

BRAIDDB_C_API braiddb_envoptions_t* braiddb_envoptions_create(void);
BRAIDDB_C_API void braiddb_envoptions_destroy(braiddb_envoptions_t* options);
BRAIDDB_C_API void braiddb_ingest_external_file(braiddb_t* db, const char* const* paths, size_t count,
                                                const braiddb_ingestexternalfileoptions_t* ingestexternalfileoptions,
                                                char** errptr);
BRAIDDB_C_API void braiddb_ingest_external_file_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family,
                                                   const char* const* paths, size_t count,
                                                   const braiddb_ingestexternalfileoptions_t* ingestexternalfileoptions,
                                                   char** errptr);
BRAIDDB_C_API braiddb_ingestexternalfileoptions_t* braiddb_ingestexternalfileoptions_create(void);
BRAIDDB_C_API void braiddb_ingestexternalfileoptions_destroy(braiddb_ingestexternalfileoptions_t* options);
BRAIDDB_C_API void braiddb_ingestexternalfileoptions_set_allow_blocking_flush(braiddb_ingestexternalfileoptions_t* options,
                                                                              unsigned char value);
BRAIDDB_C_API void braiddb_ingestexternalfileoptions_set_allow_global_seqno(braiddb_ingestexternalfileoptions_t* options,
                                                                            unsigned char value);
BRAIDDB_C_API void braiddb_ingestexternalfileoptions_set_ingest_behind(braiddb_ingestexternalfileoptions_t* options,
                                                                       unsigned char value);
BRAIDDB_C_API void braiddb_ingestexternalfileoptions_set_move_files(braiddb_ingestexternalfileoptions_t* options,
                                                                    unsigned char value);
BRAIDDB_C_API void braiddb_ingestexternalfileoptions_set_snapshot_consistency(braiddb_ingestexternalfileoptions_t* options,
                                                                              unsigned char value);
BRAIDDB_C_API void braiddb_sstfilewriter_add(braiddb_sstfilewriter_t* writer, const char* key, size_t key_length,
                                             const char* value, size_t value_length, char** errptr);
BRAIDDB_C_API braiddb_sstfilewriter_t* braiddb_sstfilewriter_create(const braiddb_envoptions_t* options,
                                                                    const braiddb_options_t* options2);
BRAIDDB_C_API braiddb_sstfilewriter_t* braiddb_sstfilewriter_create_with_comparator(const braiddb_envoptions_t* options,
                                                                                    const braiddb_options_t* options2,
                                                                                    const braiddb_comparator_t* comparator);
BRAIDDB_C_API void braiddb_sstfilewriter_delete(braiddb_sstfilewriter_t* writer, const char* key, size_t key_length,
                                                char** errptr);
BRAIDDB_C_API void braiddb_sstfilewriter_delete_range(braiddb_sstfilewriter_t* writer, const char* start_key,
                                                      size_t start_key_length, const char* limit_key, size_t limit_key_length,
                                                      char** errptr);
BRAIDDB_C_API void braiddb_sstfilewriter_delete_with_ts(braiddb_sstfilewriter_t* writer, const char* key, size_t key_length,
                                                        const char* timestamp, size_t timestamp_length, char** errptr);
BRAIDDB_C_API void braiddb_sstfilewriter_destroy(braiddb_sstfilewriter_t* writer);
BRAIDDB_C_API void braiddb_sstfilewriter_file_size(braiddb_sstfilewriter_t* writer, uint64_t* size);
BRAIDDB_C_API void braiddb_sstfilewriter_finish(braiddb_sstfilewriter_t* writer, char** errptr);
BRAIDDB_C_API void braiddb_sstfilewriter_merge(braiddb_sstfilewriter_t* writer, const char* key, size_t key_length,
                                               const char* value, size_t value_length, char** errptr);
BRAIDDB_C_API void braiddb_sstfilewriter_open(braiddb_sstfilewriter_t* writer, const char* path, char** errptr);
BRAIDDB_C_API void braiddb_sstfilewriter_put(braiddb_sstfilewriter_t* writer, const char* key, size_t key_length,
                                             const char* value, size_t value_length, char** errptr);
BRAIDDB_C_API void braiddb_sstfilewriter_put_with_ts(braiddb_sstfilewriter_t* writer, const char* key, size_t key_length,
                                                     const char* timestamp, size_t timestamp_length, const char* value,
                                                     size_t value_length, char** errptr);

/* ---- Live files and metadata */

BRAIDDB_C_API void braiddb_column_family_metadata_destroy(braiddb_column_family_metadata_t* metadata);
BRAIDDB_C_API size_t braiddb_column_family_metadata_get_file_count(braiddb_column_family_metadata_t* metadata);
BRAIDDB_C_API size_t braiddb_column_family_metadata_get_level_count(braiddb_column_family_metadata_t* metadata);
BRAIDDB_C_API braiddb_level_metadata_t* braiddb_column_family_metadata_get_level_metadata(
    braiddb_column_family_metadata_t* metadata, size_t index);
BRAIDDB_C_API char* braiddb_column_family_metadata_get_name(braiddb_column_family_metadata_t* metadata);
BRAIDDB_C_API uint64_t braiddb_column_family_metadata_get_size(braiddb_column_family_metadata_t* metadata);
BRAIDDB_C_API void braiddb_delete_file(braiddb_t* db, const char* name);
BRAIDDB_C_API void braiddb_delete_file_in_range(braiddb_t* db, const char* start_key, size_t start_key_length,
                                                const char* limit_key, size_t limit_key_length, char** errptr);
BRAIDDB_C_API void braiddb_delete_file_in_range_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family,
                                                   const char* start_key, size_t start_key_length, const char* limit_key,
                                                   size_t limit_key_length, char** errptr);
BRAIDDB_C_API void braiddb_disable_file_deletions(braiddb_t* db, char** errptr);
BRAIDDB_C_API void braiddb_enable_file_deletions(braiddb_t* db, unsigned char force, char** errptr);
BRAIDDB_C_API braiddb_column_family_metadata_t* braiddb_get_column_family_metadata(braiddb_t* db);
BRAIDDB_C_API braiddb_column_family_metadata_t* braiddb_get_column_family_metadata_cf(
    braiddb_t* db, braiddb_column_family_handle_t* column_family);
BRAIDDB_C_API void braiddb_level_metadata_destroy(braiddb_level_metadata_t* metadata);
BRAIDDB_C_API size_t braiddb_level_metadata_get_file_count(braiddb_level_metadata_t* metadata);
BRAIDDB_C_API int braiddb_level_metadata_get_level(braiddb_level_metadata_t* metadata);
BRAIDDB_C_API uint64_t braiddb_level_metadata_get_size(braiddb_level_metadata_t* metadata);
BRAIDDB_C_API braiddb_sst_file_metadata_t* braiddb_level_metadata_get_sst_file_metadata(braiddb_level_metadata_t* metadata,
                                                                                        size_t index);
BRAIDDB_C_API const braiddb_livefiles_t* braiddb_livefiles(braiddb_t* db);
BRAIDDB_C_API const char* braiddb_livefiles_column_family_name(const braiddb_livefiles_t* files, int index);
BRAIDDB_C_API int braiddb_livefiles_count(const braiddb_livefiles_t* files);
BRAIDDB_C_API uint64_t braiddb_livefiles_deletions(const braiddb_livefiles_t* files, int index);
BRAIDDB_C_API void braiddb_livefiles_destroy(const braiddb_livefiles_t* files);
BRAIDDB_C_API uint64_t braiddb_livefiles_entries(const braiddb_livefiles_t* files, int index);
BRAIDDB_C_API const char* braiddb_livefiles_largestkey(const braiddb_livefiles_t* files, int index, size_t* length);
BRAIDDB_C_API int braiddb_livefiles_level(const braiddb_livefiles_t* files, int index);
BRAIDDB_C_API const char* braiddb_livefiles_name(const braiddb_livefiles_t* files, int index);
BRAIDDB_C_API size_t braiddb_livefiles_size(const braiddb_livefiles_t* files, int index);
BRAIDDB_C_API const char* braiddb_livefiles_smallestkey(const braiddb_livefiles_t* files, int index, size_t* length);
BRAIDDB_C_API void braiddb_sst_file_metadata_destroy(braiddb_sst_file_metadata_t* metadata);
BRAIDDB_C_API char* braiddb_sst_file_metadata_get_largestkey(braiddb_sst_file_metadata_t* metadata, size_t* length);
BRAIDDB_C_API char* braiddb_sst_file_metadata_get_relative_filename(braiddb_sst_file_metadata_t* metadata);
BRAIDDB_C_API uint64_t braiddb_sst_file_metadata_get_size(braiddb_sst_file_metadata_t* metadata);
BRAIDDB_C_API char* braiddb_sst_file_metadata_get_smallestkey(braiddb_sst_file_metadata_t* metadata, size_t* length);

/* ---- The log
   The history of writes, batch by batch. A sequence number that the log no longer has is NotFound. Destroy iterators before the
   close. */

BRAIDDB_C_API uint64_t braiddb_get_latest_sequence_number(braiddb_t* db);
BRAIDDB_C_API braiddb_wal_iterator_t* braiddb_get_updates_since(braiddb_t* db, uint64_t sequence,
                                                                const braiddb_wal_readoptions_t* options, char** errptr);
BRAIDDB_C_API void braiddb_wal_iter_destroy(const braiddb_wal_iterator_t* iterator);
BRAIDDB_C_API braiddb_writebatch_t* braiddb_wal_iter_get_batch(const braiddb_wal_iterator_t* iterator, uint64_t* sequence);
BRAIDDB_C_API void braiddb_wal_iter_next(braiddb_wal_iterator_t* iterator);
BRAIDDB_C_API void braiddb_wal_iter_status(const braiddb_wal_iterator_t* iterator, char** errptr);
BRAIDDB_C_API unsigned char braiddb_wal_iter_valid(const braiddb_wal_iterator_t* iterator);

/* ---- Memory usage */

BRAIDDB_C_API braiddb_memory_usage_t* braiddb_approximate_memory_usage_create(braiddb_memory_consumers_t* memory_consumers,
                                                                              char** errptr);
BRAIDDB_C_API void braiddb_approximate_memory_usage_destroy(braiddb_memory_usage_t* memory_usage);
BRAIDDB_C_API uint64_t braiddb_approximate_memory_usage_get_cache_total(braiddb_memory_usage_t* memory_usage);
BRAIDDB_C_API uint64_t braiddb_approximate_memory_usage_get_mem_table_readers_total(braiddb_memory_usage_t* memory_usage);
BRAIDDB_C_API uint64_t braiddb_approximate_memory_usage_get_mem_table_total(braiddb_memory_usage_t* memory_usage);
BRAIDDB_C_API uint64_t braiddb_approximate_memory_usage_get_mem_table_unflushed(braiddb_memory_usage_t* memory_usage);
BRAIDDB_C_API void braiddb_memory_consumers_add_cache(braiddb_memory_consumers_t* memory_consumers, braiddb_cache_t* cache);
BRAIDDB_C_API void braiddb_memory_consumers_add_db(braiddb_memory_consumers_t* memory_consumers, braiddb_t* db);
BRAIDDB_C_API braiddb_memory_consumers_t* braiddb_memory_consumers_create(void);
BRAIDDB_C_API void braiddb_memory_consumers_destroy(braiddb_memory_consumers_t* memory_consumers);

/* ---- Counters of a thread */

BRAIDDB_C_API braiddb_perfcontext_t* braiddb_perfcontext_create(void);
BRAIDDB_C_API void braiddb_perfcontext_destroy(braiddb_perfcontext_t* context);
BRAIDDB_C_API uint64_t braiddb_perfcontext_metric(braiddb_perfcontext_t* context, int metric);
BRAIDDB_C_API char* braiddb_perfcontext_report(braiddb_perfcontext_t* context, unsigned char exclude_zero_counters);
BRAIDDB_C_API void braiddb_perfcontext_reset(braiddb_perfcontext_t* context);
BRAIDDB_C_API void braiddb_set_perf_level(int level);

/* ---- Timestamps of the user: braiddb/db.h, DB::PutAt, and braiddb/comparator.h.
   Timestamps and values that a get returns are freed by braiddb_free. */

BRAIDDB_C_API void braiddb_compactoptions_set_full_history_ts_low(braiddb_compactoptions_t* options, char* timestamp,
                                                                  size_t timestamp_length);
BRAIDDB_C_API braiddb_comparator_t* braiddb_comparator_with_ts_create(
    void* state, void (*destructor)(void*), int (*compare)(void*, const char*, size_t, const char*, size_t),
    int (*compare_timestamps)(void*, const char*, size_t, const char*, size_t),
    int (*compare_without_timestamps)(void*, const char*, size_t, unsigned char, const char*, size_t, unsigned char),
    const char* (*name)(void*), size_t timestamp_size);
BRAIDDB_C_API void braiddb_delete_cf_with_ts(braiddb_t* db, const braiddb_writeoptions_t* options,
                                             braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                             const char* timestamp, size_t timestamp_length, char** errptr);
BRAIDDB_C_API void braiddb_delete_with_ts(braiddb_t* db, const braiddb_writeoptions_t* options, const char* key,
                                          size_t key_length, const char* timestamp, size_t timestamp_length, char** errptr);
BRAIDDB_C_API char* braiddb_get_cf_with_ts(braiddb_t* db, const braiddb_readoptions_t* options,
                                           braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                           size_t* value_length, char** timestamp, size_t* timestamp_length, char** errptr);
BRAIDDB_C_API char* braiddb_get_full_history_ts_low(braiddb_t* db, braiddb_column_family_handle_t* column_family,
                                                    size_t* value_length, char** errptr);
BRAIDDB_C_API char* braiddb_get_with_ts(braiddb_t* db, const braiddb_readoptions_t* options, const char* key, size_t key_length,
                                        size_t* value_length, char** timestamp, size_t* timestamp_length, char** errptr);
BRAIDDB_C_API void braiddb_increase_full_history_ts_low(braiddb_t* db, braiddb_column_family_handle_t* column_family,
                                                        const char* timestamp, size_t timestamp_length, char** errptr);
BRAIDDB_C_API const char* braiddb_iter_timestamp(const braiddb_iterator_t* iterator, size_t* length);
BRAIDDB_C_API void braiddb_multi_get_cf_with_ts(braiddb_t* db, const braiddb_readoptions_t* options,
                                                const braiddb_column_family_handle_t* const* column_families, size_t count,
                                                const char* const* keys, const size_t* key_lengths, char** values,
                                                size_t* value_lengths, char** timestamps, size_t* timestamp_lengths,
                                                char** errors);
BRAIDDB_C_API void braiddb_multi_get_with_ts(braiddb_t* db, const braiddb_readoptions_t* options, size_t count,
                                             const char* const* keys, const size_t* key_lengths, char** values,
                                             size_t* value_lengths, char** timestamps, size_t* timestamp_lengths, char** errors);
BRAIDDB_C_API braiddb_t* braiddb_open_and_trim_history(const braiddb_options_t* options, const char* path, int count,
                                                       const char* const* column_family_names,
                                                       const braiddb_options_t* const* column_family_options,
                                                       braiddb_column_family_handle_t** handles, char* trim_timestamp,
                                                       size_t trim_timestamp_length, char** errptr);
BRAIDDB_C_API void braiddb_put_cf_with_ts(braiddb_t* db, const braiddb_writeoptions_t* options,
                                          braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                          const char* timestamp, size_t timestamp_length, const char* value, size_t value_length,
                                          char** errptr);
BRAIDDB_C_API void braiddb_put_with_ts(braiddb_t* db, const braiddb_writeoptions_t* options, const char* key, size_t key_length,
                                       const char* timestamp, size_t timestamp_length, const char* value, size_t value_length,
                                       char** errptr);
BRAIDDB_C_API void braiddb_singledelete_cf_with_ts(braiddb_t* db, const braiddb_writeoptions_t* options,
                                                   braiddb_column_family_handle_t* column_family, const char* key,
                                                   size_t key_length, const char* timestamp, size_t timestamp_length,
                                                   char** errptr);
BRAIDDB_C_API void braiddb_singledelete_with_ts(braiddb_t* db, const braiddb_writeoptions_t* options, const char* key,
                                                size_t key_length, const char* timestamp, size_t timestamp_length, char** errptr);
BRAIDDB_C_API void braiddb_writebatch_delete_cf_with_ts(braiddb_writebatch_t* batch,
                                                        braiddb_column_family_handle_t* column_family, const char* key,
                                                        size_t key_length, const char* timestamp, size_t timestamp_length);
BRAIDDB_C_API void braiddb_writebatch_put_cf_with_ts(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                                     const char* key, size_t key_length, const char* timestamp,
                                                     size_t timestamp_length, const char* value, size_t value_length);
BRAIDDB_C_API void braiddb_writebatch_singledelete_cf_with_ts(braiddb_writebatch_t* batch,
                                                              braiddb_column_family_handle_t* column_family, const char* key,
                                                              size_t key_length, const char* timestamp, size_t timestamp_length);

/* ---- BraidDB's own.
   Each option sets the field of that name of braiddb::Options; braiddb/options.h has unit, default, range and trade-off. */

enum {
  braiddb_l1_braided_skiplist = 0,
  braiddb_l1_nv_tree = 1,
  braiddb_l1_sorted_runs = 2,
  braiddb_l1_hybrid = 3,
  braiddb_l1_lb_tree = 4
};
enum { braiddb_list_braided = 0, braiddb_list_oblivious = 1 };
enum { braiddb_memtable_skiplist = 0, braiddb_memtable_hash = 1 };
enum {
  braiddb_persist_auto = 0,
  braiddb_persist_cache_line = 1,
  braiddb_persist_eadr = 2,
  braiddb_persist_page = 3,
  braiddb_persist_emulated = 4
};

BRAIDDB_C_API void braiddb_options_set_l1_kind(braiddb_options_t* options, int value);
BRAIDDB_C_API int braiddb_options_get_l1_kind(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_nv_leaf_size(braiddb_options_t* options, uint32_t value);
BRAIDDB_C_API uint32_t braiddb_options_get_nv_leaf_size(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_regions(braiddb_options_t* options, uint32_t value);
BRAIDDB_C_API uint32_t braiddb_options_get_regions(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_list_kind(braiddb_options_t* options, int value);
BRAIDDB_C_API int braiddb_options_get_list_kind(braiddb_options_t* options);
/* The paths are copied; count 0: inside the database directory. */
BRAIDDB_C_API void braiddb_options_set_region_paths(braiddb_options_t* options, const char* const* paths, size_t count);
/* A NUMA node for each region; -1: the node of the region's device. count 0: -1 for all. */
BRAIDDB_C_API void braiddb_options_set_region_nodes(braiddb_options_t* options, const int* nodes, size_t count);
BRAIDDB_C_API void braiddb_options_set_max_region_size(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API uint64_t braiddb_options_get_max_region_size(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_initial_region_size(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API uint64_t braiddb_options_get_initial_region_size(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_segment_size(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API uint64_t braiddb_options_get_segment_size(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_persist_mode(braiddb_options_t* options, int value);
BRAIDDB_C_API int braiddb_options_get_persist_mode(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_dram_budget(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API uint64_t braiddb_options_get_dram_budget(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_memtable_kind(braiddb_options_t* options, int value);
BRAIDDB_C_API int braiddb_options_get_memtable_kind(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_memtable_max_entries(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API uint64_t braiddb_options_get_memtable_max_entries(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_checkpoint_tables(braiddb_options_t* options, uint32_t value);
BRAIDDB_C_API uint32_t braiddb_options_get_checkpoint_tables(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_index_unified_logging(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API unsigned char braiddb_options_get_index_unified_logging(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_l1_index_size(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API uint64_t braiddb_options_get_l1_index_size(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_lookup_cache_size(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API uint64_t braiddb_options_get_lookup_cache_size(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_filter_bits_per_key(braiddb_options_t* options, uint32_t value);
BRAIDDB_C_API uint32_t braiddb_options_get_filter_bits_per_key(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_recovery_threads(braiddb_options_t* options, uint32_t value);
BRAIDDB_C_API uint32_t braiddb_options_get_recovery_threads(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_max_space_amplification(braiddb_options_t* options, double value);
BRAIDDB_C_API double braiddb_options_get_max_space_amplification(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_space_slack(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API uint64_t braiddb_options_get_space_slack(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_kept_free_space(braiddb_options_t* options, uint64_t value);
BRAIDDB_C_API uint64_t braiddb_options_get_kept_free_space(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_bound_space(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API unsigned char braiddb_options_get_bound_space(braiddb_options_t* options);
BRAIDDB_C_API void braiddb_options_set_verify_at_open(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API unsigned char braiddb_options_get_verify_at_open(braiddb_options_t* options);
/* Property "braiddb.stats" shows the counts in lines that begin with "braiddb.pm.". */
BRAIDDB_C_API void braiddb_options_set_count_pm_writes(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API unsigned char braiddb_options_get_count_pm_writes(braiddb_options_t* options);
/* Live readers attach to the next process that writes by themselves; see braiddb_refresh. */
BRAIDDB_C_API void braiddb_options_set_refresh_live_readers(braiddb_options_t* options, unsigned char value);
BRAIDDB_C_API unsigned char braiddb_options_get_refresh_live_readers(braiddb_options_t* options);
/* Calls `log` for each line of the info log, from any thread, until the close. `log` may use the database but must not close it:
   see Options::info_log in braiddb/options.h. NULL: the lines go to the file LOG. */
BRAIDDB_C_API void braiddb_options_set_info_log_callback(braiddb_options_t* options, void* state,
                                                         void (*log)(void* state, const char* line, size_t length));
/* Iterators show only keys that begin with these bytes, which are copied. NULL: all keys. Bytewise comparator only. */
BRAIDDB_C_API void braiddb_readoptions_set_prefix(braiddb_readoptions_t* options, const char* prefix, size_t prefix_length);

/* A batch that orders and compares keys by this comparator; NULL: by their bytes. */
BRAIDDB_C_API braiddb_writebatch_wi_t* braiddb_writebatch_wi_create_with_comparator(const braiddb_comparator_t* comparator,
                                                                                    unsigned char overwrite_keys);
/* The user's comparator of restored databases; the options of backup_engine_open may also set it. */
BRAIDDB_C_API void braiddb_backup_engine_options_set_comparator(braiddb_backup_engine_options_t* options,
                                                                const braiddb_comparator_t* comparator);
/* The first bytes of a key, or the entire key if it is shorter. */
BRAIDDB_C_API braiddb_slicetransform_t* braiddb_slicetransform_create_capped_prefix(size_t length);
BRAIDDB_C_API void braiddb_delete_range(braiddb_t* db, const braiddb_writeoptions_t* options, const char* start_key,
                                        size_t start_key_length, const char* limit_key, size_t limit_key_length, char** errptr);
/* As braiddb_close; *errptr is set if not all data is on media. The handle is destroyed in both cases. */
BRAIDDB_C_API void braiddb_close_database(braiddb_t* db, char** errptr);
/* Functions of later versions of RocksDB, for column families. On an error, braiddb_create_column_families still returns the
   families created before. Free the array by braiddb_create_column_families_destroy, and each handle by itself. */
BRAIDDB_C_API braiddb_column_family_handle_t** braiddb_create_column_families(braiddb_t* db, const braiddb_options_t* options,
                                                                              int count, const char* const* names,
                                                                              size_t* created, char** errptr);
BRAIDDB_C_API void braiddb_create_column_families_destroy(braiddb_column_family_handle_t** list);
BRAIDDB_C_API braiddb_column_family_handle_t* braiddb_get_default_column_family_handle(braiddb_t* db);
/* Calls a function for each put and deletion, with the id of the column family. Skips operands and ranges. */
BRAIDDB_C_API void braiddb_writebatch_iterate_cf(braiddb_writebatch_t* batch, void* state,
                                                 void (*put)(void*, uint32_t column_family, const char* key, size_t key_length,
                                                             const char* value, size_t value_length),
                                                 void (*deleted)(void*, uint32_t column_family, const char* key,
                                                                 size_t key_length));
/* Returns when no flush and no merge is pending or running. */
BRAIDDB_C_API void braiddb_wait_for_compaction(braiddb_t* db, char** errptr);
/* Sleeps until there is a write with a larger sequence number than `sequence`, for at most `timeout_micros`. Returns a number up
   to which all writes are visible from now on, for the next call; 0 without an error if no write came (DB::WaitForUpdate). */
BRAIDDB_C_API uint64_t braiddb_wait_for_update(braiddb_t* db, uint64_t sequence, uint64_t timeout_micros, char** errptr);
/* Shows the newest state: attaches a live reader to the process that writes now (DB::Refresh). */
BRAIDDB_C_API void braiddb_refresh(braiddb_t* db, char** errptr);
/* Verifies a database that is not open (braiddb/check.h). Damage is "Corruption: ". */
BRAIDDB_C_API void braiddb_check_db(const braiddb_options_t* options, const char* path, char** errptr);
BRAIDDB_C_API int braiddb_major_version(void);
BRAIDDB_C_API int braiddb_minor_version(void);

/* ---- Functions of LevelDB that RocksDB does not have. */

BRAIDDB_C_API void braiddb_options_set_cache(braiddb_options_t* options, braiddb_cache_t* cache);
BRAIDDB_C_API void braiddb_options_set_block_size(braiddb_options_t* options, size_t value);
BRAIDDB_C_API void braiddb_options_set_block_restart_interval(braiddb_options_t* options, int value);
BRAIDDB_C_API void braiddb_options_set_max_file_size(braiddb_options_t* options, size_t value);
/* Not owned: the policy must outlive the database, or the last get. */
BRAIDDB_C_API void braiddb_options_set_filter_policy(braiddb_options_t* options, braiddb_filterpolicy_t* policy);
/* A user's policy. create_filter returns a malloc'ed filter of the keys and its length. key_may_match may return 0 only for a key
   that is not among them. braiddb_compact_range of all keys (NULL, NULL) creates the filters; see docs/C_API.md. */
BRAIDDB_C_API braiddb_filterpolicy_t* braiddb_filterpolicy_create(
    void* state, void (*destructor)(void* state),
    char* (*create_filter)(void* state, const char* const* keys, const size_t* key_lengths, int count, size_t* filter_length),
    unsigned char (*key_may_match)(void* state, const char* key, size_t key_length, const char* filter, size_t filter_length),
    const char* (*name)(void* state));
BRAIDDB_C_API void braiddb_writebatch_append(braiddb_writebatch_t* destination, const braiddb_writebatch_t* source);
/* Returns a directory for tests, which is created if necessary. The caller frees the name by braiddb_free. */
BRAIDDB_C_API char* braiddb_env_get_test_directory(braiddb_env_t* env);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* BRAIDDB_C_H_ */
