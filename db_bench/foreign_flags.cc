#include "db_bench/foreign_flags.h"

namespace braiddb::bench {

namespace {

// Flags that are accepted without effect on the measurement, and the reason.
struct Group {
  enum class Of { kAll, kBraidDb };

  Of of;  // the engines that the reason concerns: all, or braiddb only, if rocksdb has the option
  const char* reason;
  std::string_view names;  // separated by spaces
};

const Group kIgnored[] = {
    {Group::Of::kBraidDb, "the log is the data, so there is none to tune",
     "wal_dir wal_bytes_per_sync manual_wal_flush wal_compression wal_size_limit_MB wal_ttl_seconds max_total_wal_size "
     "rate_limit_auto_wal_flush track_and_verify_wals_in_manifest track_and_verify_wals async_wal_precreate "
     "avoid_flush_during_recovery avoid_flush_during_shutdown"},
    {Group::Of::kBraidDb, "there are no blocks and no cache of blocks or rows",
     "block_size cache_size cache_type cache_uri cache_numshardbits cache_index_and_filter_blocks "
     "compressed_cache_size block_restart_interval index_block_restart_interval index_block_search_type "
     "pin_l0_filter_and_index_blocks_in_cache row_cache_size simcache_size format_version partition_index_and_filters "
     "decouple_partitioned_filters data_block_index_type index_shortening_mode use_data_block_hash_index block_align "
     "block_protection_bytes_per_key cache_high_pri_pool_ratio cache_low_pri_pool_ratio charge_blob_cache "
     "charge_compression_dictionary_building_buffer charge_file_metadata charge_filter_construction "
     "charge_table_reader checksum_type cost_write_buffer_to_cache data_block_hash_table_util_ratio "
     "enable_index_compression file_checksum index_with_first_key metadata_block_size partition_index "
     "pin_top_level_index_and_filter prepopulate_block_cache read_amp_bytes_per_bit read_cache_direct_read "
     "read_cache_direct_write read_cache_path read_cache_size secondary_cache_uri separate_key_value_in_data_block "
     "super_block_alignment_size super_block_alignment_space_overhead_ratio table_cache_numshardbits tiered_adm_policy "
     "uncache_aggressiveness uniform_cv_threshold use_cache_jemalloc_no_dump_allocator "
     "use_cache_memkind_kmem_allocator use_compressed_secondary_cache use_tiered_cache use_trie_index "
     "compressed_secondary_cache_compress_format_version compressed_secondary_cache_compression_level "
     "compressed_secondary_cache_compression_type compressed_secondary_cache_high_pri_pool_ratio "
     "compressed_secondary_cache_low_pri_pool_ratio compressed_secondary_cache_numshardbits "
     "compressed_secondary_cache_size paranoid_checks cuckoo_hash_ratio use_cuckoo_table use_hash_search "
     "use_plain_table use_adaptive_mutex identity_as_first_hash"},
    {Group::Of::kBraidDb, "there is one filter, of whole keys, for all levels below the memtables; --bloom_bits sets it",
     "memtable_bloom_size_ratio memtable_whole_key_filtering whole_key_filtering optimize_filters_for_hits "
     "use_block_based_filter use_ribbon_filter bloom_locality optimize_filters_for_memory use_keep_filter"},
    {Group::Of::kBraidDb, "nothing is compressed",
     "compression_type compression_level compression_ratio compression_max_dict_bytes compression_threads "
     "compression_manager min_level_to_compress compression_use_zstd_dict_trainer compression_zstd_max_train_bytes "
     "compression_max_dict_buffer_bytes compression_parallel_threads sample_for_compression verify_compression"},
    {Group::Of::kBraidDb, "there are two levels, merged in place or, with --l1=sorted_runs, by sizes of its own",
     "num_levels compaction_style target_file_size_base target_file_size_multiplier max_bytes_for_level_base "
     "max_bytes_for_level_multiplier level_compaction_dynamic_level_bytes level0_file_num_compaction_trigger "
     "level0_slowdown_writes_trigger level0_stop_writes_trigger soft_pending_compaction_bytes_limit "
     "hard_pending_compaction_bytes_limit subcompactions universal_size_ratio universal_min_merge_width "
     "universal_max_size_amplification_percent universal_max_read_amp universal_reduce_file_locking "
     "universal_stop_style max_compaction_bytes max_compaction_trigger_wakeup_seconds compaction_readahead_size "
     "compaction_pri fifo_compaction_max_table_files_size_mb fifo_compaction_max_data_files_size_mb "
     "fifo_compaction_use_kv_ratio_compaction periodic_compaction_seconds ttl_seconds fifo_age_for_warm "
     "fifo_compaction_allow_compaction fifo_compaction_ttl force_consistency_checks "
     "max_bytes_for_level_multiplier_additional preclude_last_level_data_seconds preserve_internal_time_seconds "
     "read_triggered_compaction_threshold universal_allow_trivial_move universal_compression_size_percent "
     "universal_incremental universal_max_merge_width disable_seek_compaction compaction_fadvice"},
    {Group::Of::kBraidDb, "memory is mapped; there are no files of tables to tune",
     "mmap_read mmap_write use_direct_reads use_direct_io_for_flush_and_compaction use_direct_io_for_compaction_reads "
     "open_files open_files_async bytes_per_sync use_fsync advise_random_on_open file_opening_threads "
     "rate_limiter_bytes_per_sec rate_limiter_single_burst_bytes writable_file_max_buffer_size "
     "random_access_max_buffer_size readahead_size auto_readahead_size adaptive_readahead async_io "
     "use_multi_thread_write hdfs env_uri fs_uri rate_limit_bg_reads rate_limit_user_ops rate_limiter_auto_tuned "
     "rate_limiter_refill_period_us initial_auto_readahead_size max_auto_readahead_size "
     "num_file_reads_for_auto_readahead log_readahead_size io_uring_enabled delete_obsolete_files_period_micros "
     "max_manifest_file_size max_manifest_space_amp_pct verify_manifest_content_on_close skip_stats_update_on_db_open "
     "io_dispatcher_max_prefetch_memory_bytes"},
    {Group::Of::kBraidDb, "background threads are set by --compaction_threads",
     "max_background_jobs max_background_compactions max_background_flushes num_low_pri_threads num_high_pri_threads "
     "num_bottom_pri_threads enable_cpu_prio enable_io_prio enable_numa"},
    {Group::Of::kBraidDb, "memtables are set by --memtable, --memtable_size and --max_immutable_memtables",
     "max_write_buffer_number min_write_buffer_number_to_merge max_write_buffer_number_to_maintain "
     "max_write_buffer_size_to_maintain db_write_buffer_size memtablerep memtable_insert_with_hint_prefix_size "
     "arena_block_size write_buffer_manager inplace_update_support memtable_use_huge_page "
     "memtable_protection_bytes_per_key memtable_batch_lookup_optimization memtable_op_scan_flush_trigger "
     "memtable_verify_per_key_checksum_on_seek min_tombstones_for_range_conversion paranoid_memory_checks "
     "hash_bucket_count skip_list_lookahead inplace_update_num_locks max_successive_merges "
     "strict_max_successive_merges experimental_mempurge_threshold check_flush_compaction_key_order"},
    {Group::Of::kBraidDb, "writers do not share a write group",
     "allow_concurrent_memtable_write enable_write_thread_adaptive_yield enable_pipelined_write unordered_write "
     "write_thread_max_yield_usec write_thread_slow_yield_usec two_write_queues delayed_write_rate "
     "write_batch_protection_bytes_per_key"},
    {Group::Of::kBraidDb, "values of any size are stored alike",
     "blob_cache_numshardbits blob_cache_size blob_compaction_readahead_size blob_compression_type "
     "blob_db_bytes_per_sync blob_db_compression_type blob_db_enable_gc blob_db_file_size blob_db_gc_cutoff "
     "blob_db_is_fifo blob_db_max_db_size blob_db_max_ttl_range blob_db_min_blob_size blob_db_ttl_range_secs "
     "blob_direct_write_partitions blob_file_size blob_file_starting_level blob_garbage_collection_age_cutoff "
     "blob_garbage_collection_force_threshold enable_blob_direct_write enable_blob_garbage_collection min_blob_size "
     "prepopulate_blob_cache use_shared_block_and_blob_cache"},
    {Group::Of::kAll, "the counters are always on; --statistics prints them",
     "stats_level stats_dump_period_sec stats_persist_period_sec statistics_string stats_per_interval "
     "persist_stats_to_disk stats_history_buffer_size"},
    {Group::Of::kAll, "db_bench does not print that",
     "thread_status_per_interval report_file_operations report_open_timing print_malloc_stats "
     "show_table_properties slow_usecs build_info report_bg_io_stats dump_malloc_stats use_stderr_info_logger "
     "allow_data_in_errors"},
    {Group::Of::kAll, "progress is shown on a terminal only, in place", "progress_reports"},
    {Group::Of::kAll, "the clock is looked at every 1000 operations", "ops_between_duration_checks"},
    {Group::Of::kAll, "MultiGet always works on the whole batch", "multiread_batched optimize_multiget_for_io"},
    {Group::Of::kAll, "iterators are as the engine makes them", "iter_k_ahead auto_refresh_iterator_with_snapshot"},
    {Group::Of::kAll, "db_bench sets no prefix extractor", "prefix_size prefix_same_as_start total_order_seek auto_prefix_mode"},
    {Group::Of::kAll, "values are random bytes, and no engine here stores equal ones in less space", "same_value_percentage"},
    {Group::Of::kAll, "the first error ends db_bench", "tolerate_io_errors_for_remote_dbs fatal_shutdown_watchdog_seconds"},
    {Group::Of::kAll, "it is of a benchmark or a mode that is not here",
     "backup_dir backup_rate_limit restore_dir restore_rate_limit block_cache_trace_max_trace_file_size_in_bytes "
     "block_cache_trace_sampling_frequency trace_replay_fast_forward trace_replay_threads secondary_path "
     "secondary_update_interval leader_path disposable_entries_delete_delay disposable_entries_value_size "
     "persistent_entries_value_size key_id_range time_range num_deletion_threads expire_style numdistinct "
     "transaction_lock_timeout transaction_set_snapshot transaction_sets transaction_sleep overwrite_window_size "
     "simulate_hybrid_fs_file simulate_hybrid_hdd_multipliers io_trace_file truth_db stddev "
     "read_with_latest_user_timestamp use_single_deletes deletepercent use_multiscan multiscan_coalesce_threshold "
     "multiscan_max_prefetch_size multiscan_size multiscan_stride multiscan_use_async_io coro_jobs_per_thread "
     "embedded_blob_min_size num_wide_columns num_short_wide_columns ingest_external_file_batch_size "
     "ingest_external_file_file_opening_threads ingest_external_file_fill_cache ingest_external_file_num_batches "
     "ingest_external_file_prefetch_lmax_index_and_filter_blocks ingest_external_file_use_file_info "
     "openandcompact_allow_resumption openandcompact_cancel_after_millseconds openandcompact_test_cancel_on_odd"},
    {Group::Of::kAll, "RocksDB's db_bench does not look at it either", "mix_accesses mix_ave_kv_size"},
    {Group::Of::kAll, "every flag that is unknown is told", "undefok"},
};

// Flags that would change the measurement. Refused unless their value equals db_bench's behavior.
struct Refused {
  std::string_view name;
  std::string_view neutral;
  const char* reason;
};

const Refused kRefused[] = {
    {"num_hot_column_families", "0", "keys choose among all column families alike"},
    {"column_family_distribution", "", "keys choose among all column families alike"},
    {"num_multi_db", "0", "db_bench works on one database"},
    {"keys_per_prefix", "0", "keys are the number, padded"},
    {"value_size_distribution_type", "fixed", "all values have --value_size bytes, but for mixgraph's"},
    {"value_size_min", "100", "all values have --value_size bytes, but for mixgraph's"},
    {"value_size_max", "102400", "all values have --value_size bytes, but for mixgraph's"},
    {"read_random_exp_range", "0", "random keys are uniform, or follow --zipf"},
    {"use_existing_keys", "false", "keys are made from numbers below --num"},
    {"overwrite_probability", "0", "fills do not come back to keys on purpose; overwrite and mixgraph do"},
    {"disposable_entries_batch_size", "0", "fills do not delete; deleterandom and --writes_per_range_tombstone do"},
    {"persistent_entries_batch_size", "0", "fills do not delete; deleterandom and --writes_per_range_tombstone do"},
    {"use_tailing_iterator", "false", "each seek of seekrandom is by a new iterator"},
    {"user_timestamp_size", "0", "user timestamps are not supported"},
    {"use_uint64_comparator", "false", "db_bench orders keys by their bytes"},
    {"transaction_db", "false", "db_bench opens databases without transactions"},
    {"optimistic_transaction_db", "false", "db_bench opens databases without transactions"},
    {"use_secondary_db", "false", "db_bench does not open secondaries: no one writes the primary meanwhile"},
    {"open_as_follower", "false", "db_bench does not open followers: no one writes the leader meanwhile"},
    {"enable_blob_files", "false", "values of any size are stored alike"},
    {"use_blob_db", "false", "values of any size are stored alike"},
    {"use_blob_cache", "false", "values of any size are stored alike"},
    {"ttl", "0", "db_bench opens databases whose entries do not expire"},
    {"trace_file", "", "db_bench writes no traces"},
    {"block_cache_trace_file", "", "db_bench writes no traces"},
    {"options_file", "", "db_bench sets options by its own flags, and for rocksdb by --rocksdb_options"},
    {"optionsstring", "", "db_bench sets options by its own flags, and for rocksdb by --rocksdb_options"},
    {"simulate_hdd", "false", "--emulate_write_latency_ns and its like make memory slower"},
    {"fault_injection_read_after_reads", "0", "db_bench injects no faults"},
    {"fromenv", "", "flags are read from the command line and from --flagfile"},
    {"tryfromenv", "", "flags are read from the command line and from --flagfile"},
};

bool HasWord(std::string_view words, std::string_view word) {
  for (size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

bool IsFalse(std::string_view value) { return value == "false" || value == "0" || value == "no" || value == "f" || value == "n"; }

}  // namespace

ForeignFlag JudgeForeignFlag(std::string_view name, std::string_view value) {
  const std::string flag = "--" + std::string(name);
  // The form --noflag of gflags.
  const std::string_view positive = name.starts_with("no") ? name.substr(2) : name;
  for (const Group& group : kIgnored) {
    if (!HasWord(group.names, name) && !HasWord(group.names, positive)) continue;
    if (group.of == Group::Of::kAll) return {true, flag + " has no effect: " + group.reason};
    return {true, flag + " has no effect on braiddb: " + group.reason + "; for rocksdb use --rocksdb_options"};
  }
  for (const Refused& refused : kRefused) {
    const bool negated = positive == refused.name && name != positive;
    if (!negated && name != refused.name) continue;
    const bool neutral = negated || value == refused.neutral || (IsFalse(refused.neutral) && IsFalse(value));
    return {neutral, flag + (neutral ? " has no effect: " : (value.empty() ? "" : "=" + std::string(value)) + " is refused: ") +
                         refused.reason};
  }
  return {false, "unknown flag " + flag + "; --help lists what there is"};
}

}  // namespace braiddb::bench
