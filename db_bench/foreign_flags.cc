#include "db_bench/foreign_flags.h"

#include <initializer_list>

namespace braiddb::bench {

namespace {

// Flags that may be given without changing what is measured, and why.
struct Group {
  const char* reason;
  std::initializer_list<std::string_view> names;
};

const Group kIgnored[] = {
    {"the log is the data, so there is none to switch off",
     {"disable_wal", "wal_dir", "wal_bytes_per_sync", "manual_wal_flush", "wal_compression", "wal_size_limit_MB",
      "wal_ttl_seconds", "max_total_wal_size", "rate_limit_auto_wal_flush", "track_and_verify_wals_in_manifest",
      "avoid_flush_during_recovery"}},
    {"there are no blocks and no block cache",
     {"block_size",
      "cache_size",
      "cache_type",
      "cache_numshardbits",
      "cache_index_and_filter_blocks",
      "compressed_cache_size",
      "block_restart_interval",
      "index_block_restart_interval",
      "pin_l0_filter_and_index_blocks_in_cache",
      "row_cache_size",
      "simcache_size",
      "verify_checksum",
      "format_version",
      "partition_index_and_filters",
      "data_block_index_type",
      "index_shortening_mode",
      "use_data_block_hash_index",
      "block_align",
      "cache_high_pri_pool_ratio",
      "cache_low_pri_pool_ratio",
      "charge_blob_cache",
      "charge_compression_dictionary_building_buffer",
      "charge_file_metadata",
      "charge_filter_construction",
      "charge_table_reader",
      "checksum_type",
      "cost_write_buffer_to_cache",
      "data_block_hash_table_util_ratio",
      "enable_index_compression",
      "file_checksum",
      "index_with_first_key",
      "metadata_block_size",
      "partition_index",
      "pin_top_level_index_and_filter",
      "prepopulate_block_cache",
      "read_amp_bytes_per_bit",
      "read_cache_direct_read",
      "read_cache_direct_write",
      "read_cache_path",
      "read_cache_size",
      "secondary_cache_uri",
      "table_cache_numshardbits",
      "use_cache_jemalloc_no_dump_allocator",
      "use_cache_memkind_kmem_allocator",
      "use_compressed_secondary_cache",
      "compressed_secondary_cache_compression_type",
      "compressed_secondary_cache_high_pri_pool_ratio",
      "compressed_secondary_cache_low_pri_pool_ratio",
      "compressed_secondary_cache_numshardbits",
      "compressed_secondary_cache_size",
      "paranoid_checks",
      "cuckoo_hash_ratio",
      "use_cuckoo_table",
      "use_hash_search",
      "use_plain_table",
      "use_adaptive_mutex",
      "identity_as_first_hash"}},
    {"there is one filter, of whole keys, for all levels below the memtables",
     {"memtable_bloom_size_ratio", "memtable_whole_key_filtering", "whole_key_filtering", "optimize_filters_for_hits",
      "use_block_based_filter", "use_ribbon_filter", "prefix_size", "bloom_locality", "optimize_filters_for_memory",
      "use_keep_filter", "prefix_same_as_start"}},
    {"nothing is compressed",
     {"compression_type", "compression_level", "compression_ratio", "compression_max_dict_bytes", "compression_threads",
      "min_level_to_compress", "compression_use_zstd_dict_trainer", "compression_zstd_max_train_bytes",
      "compression_max_dict_buffer_bytes", "compression_parallel_threads", "sample_for_compression"}},
    {"there are two levels, merged in place",
     {"num_levels",
      "compaction_style",
      "target_file_size_base",
      "target_file_size_multiplier",
      "max_bytes_for_level_base",
      "max_bytes_for_level_multiplier",
      "level_compaction_dynamic_level_bytes",
      "level0_file_num_compaction_trigger",
      "level0_slowdown_writes_trigger",
      "level0_stop_writes_trigger",
      "soft_pending_compaction_bytes_limit",
      "hard_pending_compaction_bytes_limit",
      "subcompactions",
      "universal_size_ratio",
      "universal_min_merge_width",
      "universal_max_size_amplification_percent",
      "max_compaction_bytes",
      "compaction_readahead_size",
      "compaction_pri",
      "fifo_compaction_max_table_files_size_mb",
      "periodic_compaction_seconds",
      "ttl_seconds",
      "fifo_age_for_warm",
      "fifo_compaction_allow_compaction",
      "fifo_compaction_ttl",
      "force_consistency_checks",
      "max_bytes_for_level_multiplier_additional",
      "preclude_last_level_data_seconds",
      "preserve_internal_time_seconds",
      "universal_allow_trivial_move",
      "universal_compression_size_percent",
      "universal_incremental",
      "universal_max_merge_width",
      "disable_seek_compaction",
      "compaction_fadvice"}},
    {"persistent memory is mapped; there are no files to tune",
     {"mmap_read",
      "mmap_write",
      "use_direct_reads",
      "use_direct_io_for_flush_and_compaction",
      "open_files",
      "bytes_per_sync",
      "use_fsync",
      "advise_random_on_open",
      "file_opening_threads",
      "rate_limiter_bytes_per_sec",
      "writable_file_max_buffer_size",
      "random_access_max_buffer_size",
      "readahead_size",
      "async_io",
      "use_multi_thread_write",
      "hdfs",
      "env_uri",
      "fs_uri",
      "rate_limit_bg_reads",
      "rate_limit_user_ops",
      "rate_limiter_auto_tuned",
      "rate_limiter_refill_period_us",
      "initial_auto_readahead_size",
      "max_auto_readahead_size",
      "num_file_reads_for_auto_readahead",
      "log_readahead_size",
      "io_uring_enabled",
      "delete_obsolete_files_period_micros"}},
    {"background threads are set by --compaction_threads",
     {"max_background_jobs", "max_background_compactions", "max_background_flushes", "num_low_pri_threads",
      "num_high_pri_threads", "num_bottom_pri_threads", "enable_cpu_prio", "enable_io_prio", "enable_numa"}},
    {"memtables are set by --memtable_size and --max_immutable_memtables",
     {"max_write_buffer_number", "min_write_buffer_number_to_merge", "max_write_buffer_number_to_maintain",
      "max_write_buffer_size_to_maintain", "db_write_buffer_size", "memtablerep", "memtable_insert_with_hint_prefix_size",
      "arena_block_size", "write_buffer_manager", "inplace_update_support", "memtable_use_huge_page",
      "memtable_protection_bytes_per_key", "hash_bucket_count", "skip_list_lookahead", "inplace_update_num_locks",
      "max_successive_merges", "experimental_mempurge_threshold", "check_flush_compaction_key_order"}},
    {"writers do not share a write group",
     {"allow_concurrent_memtable_write", "enable_write_thread_adaptive_yield", "enable_pipelined_write", "unordered_write",
      "write_thread_max_yield_usec", "write_thread_slow_yield_usec", "two_write_queues", "delayed_write_rate",
      "write_batch_protection_bytes_per_key"}},
    {"the counters are always on; --statistics prints them",
     {"perf_level", "stats_level", "stats_dump_period_sec", "stats_persist_period_sec", "statistics_string", "stats_per_interval",
      "persist_stats_to_disk", "stats_history_buffer_size", "thread_status_per_interval", "report_file_operations",
      "report_open_timing", "print_malloc_stats", "show_table_properties", "slow_usecs", "build_info"}},
    {"MultiGet always works on the whole batch", {"multiread_batched", "optimize_multiget_for_io"}},
    {"iterators always read from memory",
     {"use_tailing_iterator", "iter_k_ahead", "total_order_seek", "auto_prefix_mode", "max_scan_distance", "adaptive_readahead"}},
    {"RocksDB's db_bench does not look at it either", {"mix_accesses", "mix_ave_kv_size"}},
    {"there is no options file",
     {"options_file", "optionsstring", "report_bg_io_stats", "dump_malloc_stats", "progress_reports", "finish_after_writes",
      "seek_missing_prefix", "ops_between_duration_checks", "confidence_interval_only", "use_stderr_info_logger",
      "allow_data_in_errors"}},
};

// Flags that would change what is measured, unless they say what holds here anyway.
struct Refused {
  std::string_view name;
  std::string_view neutral;
  const char* reason;
};

const Refused kRefused[] = {
    {"num_column_families", "1", "column families are not supported"},
    {"num_hot_column_families", "0", "column families are not supported"},
    {"num_multi_db", "0", "db_bench works on one database"},
    {"merge_operator", "", "merge operators are not supported"},
    {"keys_per_prefix", "0", "keys are the number, padded"},
    {"value_size_distribution_type", "fixed", "all values have --value_size bytes"},
    {"read_random_exp_range", "0", "random keys are uniform, or follow --zipf"},
    {"user_timestamp_size", "0", "user timestamps are not supported"},
    {"transaction_db", "false", "transactions are not supported"},
    {"optimistic_transaction_db", "false", "transactions are not supported"},
    {"enable_blob_files", "false", "values of any size are stored alike"},
    {"use_blob_db", "false", "values of any size are stored alike"},
    {"max_num_range_tombstones", "0", "range deletions are not supported"},
    {"writes_per_range_tombstone", "0", "range deletions are not supported"},
    {"use_secondary_db", "false", "a database is opened once"},
    {"readonly", "false", "a database is opened for reading and writing"},
    {"ttl", "0", "entries do not expire"},
    {"sine_write_rate", "false", "only mixgraph has a sine, --sine_mix_rate"},
    {"trace_file", "", "traces are not written"},
    {"block_cache_trace_file", "", "traces are not written"},
    {"column_family_distribution", "", "column families are not supported"},
    {"use_existing_keys", "false", "keys are made from numbers below --num"},
    {"use_single_deletes", "false", "there is one kind of deletion"},
    {"use_uint64_comparator", "false", "keys are ordered by their bytes"},
    {"value_size_min", "100", "values have --value_size bytes, but for mixgraph's"},
    {"value_size_max", "102400", "values have --value_size bytes, but for mixgraph's"},
    {"overwrite_probability", "0", "fills do not come back to keys on purpose; overwrite and mixgraph do"},
    {"simulate_hdd", "false", "--emulate_write_latency_ns and its like make memory slower"},
    {"use_blob_cache", "false", "values of any size are stored alike"},
    {"expand_range_tombstones", "false", "range deletions are not supported"},
    {"deletepercent", "2", "there is no benchmark randomwithverify"},
    {"mergereadpercent", "70", "merge operators are not supported"},
};

bool IsFalse(std::string_view value) { return value == "false" || value == "0" || value == "no"; }

}  // namespace

ForeignFlag JudgeForeignFlag(std::string_view name, std::string_view value) {
  const std::string flag = "--" + std::string(name);
  // gflags' --noflag.
  const std::string_view positive = name.starts_with("no") ? name.substr(2) : name;
  for (const Group& group : kIgnored) {
    for (const std::string_view ignored : group.names) {
      if (name == ignored || positive == ignored) return {true, flag + " has no effect: " + group.reason};
    }
  }
  for (const Refused& refused : kRefused) {
    const bool negated = positive == refused.name && name != positive;
    if (!negated && name != refused.name) continue;
    const bool neutral = negated || value == refused.neutral || (IsFalse(refused.neutral) && IsFalse(value));
    return {neutral, flag + (neutral ? " has no effect: " : "=" + std::string(value) + " is refused: ") + refused.reason};
  }
  return {false, "unknown flag " + flag + "; --help lists what there is"};
}

}  // namespace braiddb::bench
