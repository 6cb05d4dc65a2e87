// The options that RocksDB 7.8.3 knows by name, and the format of their values. capi/option_strings.cc has the options with more
// than one value.
#pragma once

#include <string_view>

#include "capi/option_values.h"

namespace braiddb::capi {

// Names, separated by blanks.
struct OptionNames {
  OptionKind kind;
  std::string_view names;
};

// Options of databases and column families.
inline constexpr OptionNames kNamedOptions[] = {
    {OptionKind::kBool,
     "advise_random_on_open allow_2pc allow_concurrent_memtable_write allow_data_in_errors allow_fallocate "
     "allow_ingest_behind allow_mmap_reads allow_mmap_writes atomic_flush avoid_flush_during_recovery "
     "avoid_flush_during_shutdown avoid_unnecessary_blocking_io best_efforts_recovery check_flush_compaction_key_order "
     "create_if_missing create_missing_column_families disable_auto_compactions dump_malloc_stats enable_blob_files "
     "enable_blob_garbage_collection enable_pipelined_write enable_thread_tracking enable_write_thread_adaptive_yield "
     "enforce_single_del_contracts error_if_exists fail_if_options_file_error flush_verify_memtable_count "
     "force_consistency_checks ignore_max_compaction_bytes_for_input inplace_update_support is_fd_close_on_exec "
     "level_compaction_dynamic_file_size level_compaction_dynamic_level_bytes manual_wal_flush "
     "memtable_whole_key_filtering optimize_filters_for_hits paranoid_checks paranoid_file_checks "
     "persist_stats_to_disk report_bg_io_stats skip_checking_sst_file_sizes_on_db_open skip_stats_update_on_db_open "
     "strict_bytes_per_sync track_and_verify_wals_in_manifest two_write_queues unordered_write use_adaptive_mutex "
     "use_direct_io_for_flush_and_compaction use_direct_reads use_fsync verify_sst_unique_id_in_manifest "
     "write_dbid_to_manifest"},
    {OptionKind::kInt32,
     "blob_file_starting_level level0_file_num_compaction_trigger level0_slowdown_writes_trigger "
     "level0_stop_writes_trigger max_background_compactions max_background_flushes max_background_jobs "
     "max_bgerror_resume_count max_file_opening_threads max_open_files max_write_buffer_number "
     "max_write_buffer_number_to_maintain min_write_buffer_number_to_merge num_levels table_cache_numshardbits "
     "target_file_size_multiplier"},
    {OptionKind::kInt64, "max_write_buffer_size_to_maintain"},
    {OptionKind::kUint32,
     "bloom_locality max_subcompactions memtable_protection_bytes_per_key stats_dump_period_sec "
     "stats_persist_period_sec"},
    {OptionKind::kUint64,
     "WAL_size_limit_MB WAL_ttl_seconds arena_block_size bgerror_resume_retry_interval blob_compaction_readahead_size "
     "blob_file_size bytes_per_sync compaction_readahead_size db_write_buffer_size delayed_write_rate "
     "delete_obsolete_files_period_micros hard_pending_compaction_bytes_limit inplace_update_num_locks "
     "keep_log_file_num log_file_time_to_roll log_readahead_size manifest_preallocation_size max_bytes_for_level_base "
     "max_compaction_bytes max_log_file_size max_manifest_file_size max_sequential_skip_in_iterations "
     "max_successive_merges max_total_wal_size max_write_batch_group_size_bytes memtable_huge_page_size min_blob_size "
     "periodic_compaction_seconds preclude_last_level_data_seconds preserve_internal_time_seconds "
     "random_access_max_buffer_size rate_limiter_bytes_per_sec recycle_log_file_num sample_for_compression "
     "soft_pending_compaction_bytes_limit stats_history_buffer_size target_file_size_base ttl wal_bytes_per_sync "
     "writable_file_max_buffer_size write_buffer_size write_thread_max_yield_usec write_thread_slow_yield_usec"},
    {OptionKind::kDouble,
     "blob_garbage_collection_age_cutoff blob_garbage_collection_force_threshold max_bytes_for_level_multiplier "
     "memtable_prefix_bloom_size_ratio"},
    {OptionKind::kEnum,
     "access_hint_on_compaction_start info_log_level lowest_used_cache_tier prepopulate_blob_cache wal_recovery_mode"},
    {OptionKind::kWord,
     "blob_compression_type bottommost_compression compaction_pri compaction_style compression last_level_temperature "
     "wal_compression"},
    {OptionKind::kText,
     "allow_os_buffer base_background_compactions bottommost_temperature compaction_filter compaction_filter_factory "
     "compaction_measure_io_stats concurrent_prepare db_host_id db_log_dir disableDataSync disable_data_sync env "
     "expanded_compaction_factor experimental_allow_mempurge experimental_mempurge_policy "
     "experimental_mempurge_threshold file_checksum_gen_factory filter_deletes hard_rate_limit listeners "
     "max_grandparent_overlap_factor max_mem_compaction_level memtable memtable_factory "
     "memtable_insert_with_hint_prefix_extractor memtable_prefix_bloom_bits memtable_prefix_bloom_huge_page_tlb_size "
     "memtable_prefix_bloom_probes min_partial_merge_operands new_table_reader_for_compaction_inputs preserve_deletes "
     "purge_redundant_kvs_while_flush rate_limit_delay_max_milliseconds rate_limiter seq_per_batch "
     "skip_log_error_on_recovery snap_refresh_nanos soft_rate_limit source_compaction_factor sst_partitioner_factory "
     "statistics table_properties_collectors use_direct_writes verify_checksums_in_compaction wal_dir wal_filter"},
};

// Options of block-based tables.
inline constexpr OptionNames kNamedBlockOptions[] = {
    {OptionKind::kBool,
     "block_align cache_index_and_filter_blocks cache_index_and_filter_blocks_with_high_priority "
     "detect_filter_construct_corruption enable_index_compression no_block_cache optimize_filters_for_memory "
     "partition_filters pin_l0_filter_and_index_blocks_in_cache pin_top_level_index_and_filter verify_compression "
     "whole_key_filtering"},
    {OptionKind::kInt32, "block_restart_interval block_size_deviation index_block_restart_interval"},
    {OptionKind::kUint32, "format_version"},
    {OptionKind::kUint64,
     "block_size initial_auto_readahead_size max_auto_readahead_size metadata_block_size "
     "num_file_reads_for_auto_readahead read_amp_bytes_per_bit"},
    {OptionKind::kDouble, "data_block_hash_table_util_ratio"},
    {OptionKind::kEnum, "data_block_index_type index_shortening index_type prepopulate_block_cache"},
    {OptionKind::kWord, "checksum"},
    {OptionKind::kText,
     "flush_block_policy_factory hash_index_allow_collision index_per_partition reserve_table_builder_memory "
     "reserve_table_reader_memory skip_table_builder_flush"},
};

// Their metadata_cache_options.
inline constexpr OptionNames kNamedMetadataOptions[] = {
    {OptionKind::kEnum, "partition_pinning top_level_index_pinning unpartitioned_pinning"},
};

// Options of plain tables.
inline constexpr OptionNames kNamedPlainOptions[] = {
    {OptionKind::kBool, "full_scan_mode store_index_in_file"},
    {OptionKind::kInt32, "bloom_bits_per_key"},
    {OptionKind::kUint32, "user_key_len"},
    {OptionKind::kUint64, "huge_page_tlb_size index_sparseness"},
    {OptionKind::kDouble, "hash_table_ratio"},
    {OptionKind::kWord, "encoding_type"},
};

// Options of cuckoo tables.
inline constexpr OptionNames kNamedCuckooOptions[] = {
    {OptionKind::kBool, "identity_as_first_hash use_module_hash"},
    {OptionKind::kUint32, "cuckoo_block_size max_search_depth"},
    {OptionKind::kDouble, "hash_table_ratio"},
};

// Options of universal compaction.
inline constexpr OptionNames kNamedUniversalOptions[] = {
    {OptionKind::kBool, "allow_trivial_move incremental"},
    {OptionKind::kInt32, "compression_size_percent"},
    {OptionKind::kUint32, "max_merge_width max_size_amplification_percent min_merge_width size_ratio"},
    {OptionKind::kWord, "stop_style"},
};

// Options of FIFO compaction.
inline constexpr OptionNames kNamedFifoOptions[] = {
    {OptionKind::kBool, "allow_compaction"},
    {OptionKind::kUint64, "age_for_warm max_table_files_size"},
    {OptionKind::kText, "ttl"},
};

// Options of compression.
inline constexpr OptionNames kNamedCompressionOptions[] = {
    {OptionKind::kBool, "enabled use_zstd_dict_trainer"},
    {OptionKind::kInt32, "level max_dict_bytes strategy window_bits"},
    {OptionKind::kUint32, "parallel_threads zstd_max_train_bytes"},
    {OptionKind::kUint64, "max_dict_buffer_bytes"},
};

// Options of caches.
inline constexpr OptionNames kNamedCacheOptions[] = {
    {OptionKind::kBool, "strict_capacity_limit"},
    {OptionKind::kInt32, "num_shard_bits"},
    {OptionKind::kUint64, "capacity"},
    {OptionKind::kDouble, "high_pri_pool_ratio low_pri_pool_ratio"},
};

}  // namespace braiddb::capi
