// Tables of the options that are one number. Members, setters, and getters are generated from them.
//
// BOTH(setter type, getter type, name, default) has a setter and a getter. SET(type, name, default) has only a setter. The
// defaults are RocksDB 7.8.3's. Most options have no effect and are only stored; capi/open_options.cc has the others.
#pragma once

// Options of a database.
#define BRAIDDB_C_OPTIONS(BOTH, SET)                                               \
  BOTH(int, int, access_hint_on_compaction_start, 1)                               \
  BOTH(unsigned char, unsigned char, advise_random_on_open, 1)                     \
  BOTH(unsigned char, unsigned char, allow_concurrent_memtable_write, 1)           \
  BOTH(unsigned char, unsigned char, allow_ingest_behind, 0)                       \
  BOTH(unsigned char, unsigned char, allow_mmap_reads, 0)                          \
  BOTH(unsigned char, unsigned char, allow_mmap_writes, 0)                         \
  BOTH(size_t, size_t, arena_block_size, 0)                                        \
  BOTH(unsigned char, unsigned char, atomic_flush, 0)                              \
  BOTH(unsigned char, unsigned char, avoid_unnecessary_blocking_io, 0)             \
  BOTH(uint64_t, uint64_t, blob_compaction_readahead_size, 0)                      \
  BOTH(int, int, blob_compression_type, 0)                                         \
  BOTH(uint64_t, uint64_t, blob_file_size, 268435456)                              \
  BOTH(int, int, blob_file_starting_level, 0)                                      \
  BOTH(double, double, blob_gc_age_cutoff, 0.25)                                   \
  BOTH(double, double, blob_gc_force_threshold, 1)                                 \
  BOTH(uint32_t, uint32_t, bloom_locality, 0)                                      \
  BOTH(int, int, bottommost_compression, 255)                                      \
  BOTH(uint64_t, uint64_t, bytes_per_sync, 0)                                      \
  BOTH(int, int, compaction_style, 0)                                              \
  BOTH(int, int, compression, 1)                                                   \
  BOTH(uint64_t, uint64_t, compression_options_max_dict_buffer_bytes, 0)           \
  BOTH(int, int, compression_options_parallel_threads, 1)                          \
  BOTH(unsigned char, unsigned char, compression_options_use_zstd_dict_trainer, 1) \
  BOTH(int, int, compression_options_zstd_max_train_bytes, 0)                      \
  BOTH(unsigned char, unsigned char, create_if_missing, 0)                         \
  BOTH(unsigned char, unsigned char, create_missing_column_families, 0)            \
  BOTH(size_t, size_t, db_write_buffer_size, 0)                                    \
  BOTH(uint64_t, uint64_t, delete_obsolete_files_period_micros, 21600000000)       \
  BOTH(int, unsigned char, disable_auto_compactions, 0)                            \
  BOTH(unsigned char, unsigned char, enable_blob_files, 0)                         \
  BOTH(unsigned char, unsigned char, enable_blob_gc, 0)                            \
  BOTH(unsigned char, unsigned char, enable_pipelined_write, 0)                    \
  BOTH(unsigned char, unsigned char, enable_write_thread_adaptive_yield, 1)        \
  BOTH(unsigned char, unsigned char, error_if_exists, 0)                           \
  BOTH(double, double, experimental_mempurge_threshold, 0)                         \
  BOTH(size_t, size_t, hard_pending_compaction_bytes_limit, 274877906944)          \
  BOTH(int, int, info_log_level, 1)                                                \
  BOTH(size_t, size_t, inplace_update_num_locks, 10000)                            \
  BOTH(unsigned char, unsigned char, inplace_update_support, 0)                    \
  BOTH(unsigned char, unsigned char, is_fd_close_on_exec, 1)                       \
  BOTH(size_t, size_t, keep_log_file_num, 1000)                                    \
  BOTH(int, int, level0_file_num_compaction_trigger, 4)                            \
  BOTH(int, int, level0_slowdown_writes_trigger, 20)                               \
  BOTH(int, int, level0_stop_writes_trigger, 36)                                   \
  BOTH(unsigned char, unsigned char, level_compaction_dynamic_level_bytes, 0)      \
  BOTH(size_t, size_t, log_file_time_to_roll, 0)                                   \
  BOTH(size_t, size_t, manifest_preallocation_size, 4194304)                       \
  BOTH(unsigned char, unsigned char, manual_wal_flush, 0)                          \
  BOTH(int, int, max_background_compactions, -1)                                   \
  BOTH(int, int, max_background_flushes, -1)                                       \
  BOTH(int, int, max_background_jobs, 2)                                           \
  BOTH(uint64_t, uint64_t, max_bytes_for_level_base, 268435456)                    \
  BOTH(double, double, max_bytes_for_level_multiplier, 10)                         \
  BOTH(uint64_t, uint64_t, max_compaction_bytes, 0)                                \
  BOTH(int, int, max_file_opening_threads, 16)                                     \
  BOTH(size_t, size_t, max_log_file_size, 0)                                       \
  BOTH(size_t, size_t, max_manifest_file_size, 1073741824)                         \
  BOTH(int, int, max_open_files, -1)                                               \
  BOTH(uint64_t, uint64_t, max_sequential_skip_in_iterations, 8)                   \
  BOTH(uint32_t, uint32_t, max_subcompactions, 1)                                  \
  BOTH(size_t, size_t, max_successive_merges, 0)                                   \
  BOTH(uint64_t, uint64_t, max_total_wal_size, 0)                                  \
  BOTH(int, int, max_write_buffer_number, 2)                                       \
  BOTH(int, int, max_write_buffer_number_to_maintain, 0)                           \
  BOTH(int64_t, int64_t, max_write_buffer_size_to_maintain, 0)                     \
  BOTH(size_t, size_t, memtable_huge_page_size, 0)                                 \
  BOTH(double, double, memtable_prefix_bloom_size_ratio, 0)                        \
  BOTH(uint64_t, uint64_t, min_blob_size, 0)                                       \
  BOTH(int, int, min_write_buffer_number_to_merge, 1)                              \
  BOTH(int, int, num_levels, 7)                                                    \
  BOTH(int, unsigned char, optimize_filters_for_hits, 0)                           \
  BOTH(unsigned char, unsigned char, paranoid_checks, 1)                           \
  BOTH(int, int, prepopulate_blob_cache, 0)                                        \
  BOTH(size_t, size_t, recycle_log_file_num, 0)                                    \
  BOTH(int, unsigned char, report_bg_io_stats, 0)                                  \
  BOTH(unsigned char, unsigned char, skip_checking_sst_file_sizes_on_db_open, 0)   \
  BOTH(unsigned char, unsigned char, skip_stats_update_on_db_open, 0)              \
  BOTH(size_t, size_t, soft_pending_compaction_bytes_limit, 68719476736)           \
  BOTH(unsigned int, unsigned int, stats_dump_period_sec, 600)                     \
  BOTH(unsigned int, unsigned int, stats_persist_period_sec, 600)                  \
  BOTH(int, int, table_cache_numshardbits, 6)                                      \
  BOTH(uint64_t, uint64_t, target_file_size_base, 67108864)                        \
  BOTH(int, int, target_file_size_multiplier, 1)                                   \
  BOTH(unsigned char, unsigned char, unordered_write, 0)                           \
  BOTH(unsigned char, unsigned char, use_adaptive_mutex, 0)                        \
  BOTH(unsigned char, unsigned char, use_direct_io_for_flush_and_compaction, 0)    \
  BOTH(unsigned char, unsigned char, use_direct_reads, 0)                          \
  BOTH(int, int, use_fsync, 0)                                                     \
  BOTH(uint64_t, uint64_t, wal_bytes_per_sync, 0)                                  \
  BOTH(int, int, wal_compression, 0)                                               \
  BOTH(int, int, wal_recovery_mode, 2)                                             \
  BOTH(uint64_t, uint64_t, WAL_size_limit_MB, 0)                                   \
  BOTH(uint64_t, uint64_t, WAL_ttl_seconds, 0)                                     \
  BOTH(uint64_t, uint64_t, writable_file_max_buffer_size, 1048576)                 \
  BOTH(size_t, size_t, write_buffer_size, 67108864)                                \
  SET(unsigned char, dump_malloc_stats, 0)                                         \
  SET(unsigned char, memtable_whole_key_filtering, 0)                              \
  SET(int, min_level_to_compress, 0)

// Options of block-based tables.
#define BRAIDDB_C_BLOCK_OPTIONS(BOTH, SET)                                \
  SET(int, block_restart_interval, 16)                                    \
  SET(size_t, block_size, 4096)                                           \
  SET(int, block_size_deviation, 10)                                      \
  SET(unsigned char, cache_index_and_filter_blocks, 0)                    \
  SET(unsigned char, cache_index_and_filter_blocks_with_high_priority, 1) \
  SET(char, checksum, 4)                                                  \
  SET(double, data_block_hash_ratio, 0.75)                                \
  SET(int, data_block_index_type, 0)                                      \
  SET(int, format_version, 5)                                             \
  SET(int, index_block_restart_interval, 1)                               \
  SET(int, index_type, 0)                                                 \
  SET(uint64_t, metadata_block_size, 4096)                                \
  SET(unsigned char, no_block_cache, 0)                                   \
  SET(unsigned char, partition_filters, 0)                                \
  SET(unsigned char, pin_l0_filter_and_index_blocks_in_cache, 0)          \
  SET(unsigned char, pin_top_level_index_and_filter, 1)                   \
  SET(unsigned char, use_delta_encoding, 1)                               \
  SET(unsigned char, whole_key_filtering, 1)

// Options of cuckoo tables.
#define BRAIDDB_C_CUCKOO_OPTIONS(BOTH, SET)     \
  SET(uint32_t, cuckoo_block_size, 5)           \
  SET(double, hash_ratio, 0.9)                  \
  SET(unsigned char, identity_as_first_hash, 0) \
  SET(uint32_t, max_search_depth, 100)          \
  SET(unsigned char, use_module_hash, 1)

// Options of universal compaction.
#define BRAIDDB_C_UNIVERSAL_OPTIONS(BOTH, SET)        \
  BOTH(int, int, compression_size_percent, -1)        \
  BOTH(int, int, max_merge_width, -1)                 \
  BOTH(int, int, max_size_amplification_percent, 200) \
  BOTH(int, int, min_merge_width, 2)                  \
  BOTH(int, int, size_ratio, 1)                       \
  BOTH(int, int, stop_style, 1)

// Options of FIFO compaction.
#define BRAIDDB_C_FIFO_OPTIONS(BOTH, SET) BOTH(uint64_t, uint64_t, max_table_files_size, 1073741824)

// Options of reads.
#define BRAIDDB_C_READ_OPTIONS(BOTH, SET)                                     \
  BOTH(unsigned char, unsigned char, background_purge_on_iterator_cleanup, 0) \
  BOTH(uint64_t, uint64_t, deadline, 0)                                       \
  BOTH(unsigned char, unsigned char, fill_cache, 1)                           \
  BOTH(unsigned char, unsigned char, ignore_range_deletions, 0)               \
  BOTH(uint64_t, uint64_t, io_timeout, 0)                                     \
  BOTH(uint64_t, uint64_t, max_skippable_internal_keys, 0)                    \
  BOTH(unsigned char, unsigned char, pin_data, 0)                             \
  BOTH(unsigned char, unsigned char, prefix_same_as_start, 0)                 \
  BOTH(int, int, read_tier, 0)                                                \
  BOTH(size_t, size_t, readahead_size, 0)                                     \
  BOTH(unsigned char, unsigned char, tailing, 0)                              \
  BOTH(unsigned char, unsigned char, total_order_seek, 0)                     \
  SET(unsigned char, managed, 0)

// Options of writes.
#define BRAIDDB_C_WRITE_OPTIONS(BOTH, SET)                              \
  BOTH(unsigned char, unsigned char, ignore_missing_column_families, 0) \
  BOTH(unsigned char, unsigned char, low_pri, 0)                        \
  BOTH(unsigned char, unsigned char, memtable_insert_hint_per_batch, 0) \
  BOTH(unsigned char, unsigned char, no_slowdown, 0)                    \
  BOTH(unsigned char, unsigned char, sync, 0)

// Options of flushes.
#define BRAIDDB_C_FLUSH_OPTIONS(BOTH, SET) BOTH(unsigned char, unsigned char, wait, 1)

// Options of manual compactions.
#define BRAIDDB_C_COMPACT_OPTIONS(BOTH, SET)                         \
  BOTH(unsigned char, unsigned char, change_level, 0)                \
  BOTH(unsigned char, unsigned char, exclusive_manual_compaction, 0) \
  BOTH(int, int, target_level, -1)

// Options of caches.
#define BRAIDDB_C_LRU_CACHE_OPTIONS(BOTH, SET) \
  SET(size_t, capacity, 0)                     \
  SET(int, num_shard_bits, -1)

// Options of backups.
#define BRAIDDB_C_BACKUP_OPTIONS(BOTH, SET)                         \
  BOTH(unsigned char, unsigned char, backup_log_files, 1)           \
  BOTH(uint64_t, uint64_t, backup_rate_limit, 0)                    \
  BOTH(uint64_t, uint64_t, callback_trigger_interval_size, 4194304) \
  BOTH(unsigned char, unsigned char, destroy_old_data, 0)           \
  BOTH(int, int, max_background_operations, 1)                      \
  BOTH(int, int, max_valid_backups_to_open, 2147483647)             \
  BOTH(uint64_t, uint64_t, restore_rate_limit, 0)                   \
  BOTH(int, int, share_files_with_checksum_naming, -2147483647 + 1) \
  BOTH(unsigned char, unsigned char, share_table_files, 1)          \
  BOTH(unsigned char, unsigned char, sync, 1)

// Options of restores.
#define BRAIDDB_C_RESTORE_OPTIONS(BOTH, SET) SET(int, keep_log_files, 0)

// Options of ingestion.
#define BRAIDDB_C_INGEST_OPTIONS(BOTH, SET)   \
  SET(unsigned char, allow_blocking_flush, 1) \
  SET(unsigned char, allow_global_seqno, 1)   \
  SET(unsigned char, ingest_behind, 0)        \
  SET(unsigned char, move_files, 0)           \
  SET(unsigned char, snapshot_consistency, 1)

// Options of a transaction.
#define BRAIDDB_C_TRANSACTION_OPTIONS(BOTH, SET) \
  SET(unsigned char, deadlock_detect, 0)         \
  SET(int64_t, deadlock_detect_depth, 50)        \
  SET(int64_t, expiration, -1)                   \
  SET(int64_t, lock_timeout, -1)                 \
  SET(size_t, max_write_batch_size, 0)           \
  SET(unsigned char, set_snapshot, 0)            \
  SET(unsigned char, skip_prepare, 1)

// Options of a database with transactions.
#define BRAIDDB_C_TRANSACTIONDB_OPTIONS(BOTH, SET) \
  SET(int64_t, default_lock_timeout, 1000)         \
  SET(int64_t, max_num_locks, -1)                  \
  SET(size_t, num_stripes, 16)                     \
  SET(int64_t, transaction_lock_timeout, 1000)

// Options of an optimistic transaction.
#define BRAIDDB_C_OPTIMISTIC_OPTIONS(BOTH, SET) SET(unsigned char, set_snapshot, 0)

// Thread counts of an environment. Its low-priority threads are its background threads.
#define BRAIDDB_C_ENV_THREADS(BOTH, SET)                \
  BOTH(int, int, bottom_priority_background_threads, 0) \
  BOTH(int, int, high_priority_background_threads, 0)   \
  BOTH(int, int, low_priority_background_threads, 0)

// The member has the getter's type: an unsigned char is a truth value.
#define BRAIDDB_C_MEMBER(set_type, get_type, name, initial) get_type name = initial;
#define BRAIDDB_C_SET_MEMBER(type, name, initial) type name = initial;
#define BRAIDDB_C_MEMBERS(table) table(BRAIDDB_C_MEMBER, BRAIDDB_C_SET_MEMBER)
