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
    {"the log is the data, so there is none to switch off", {"disable_wal", "wal_dir", "wal_bytes_per_sync", "manual_wal_flush"}},
    {"there are no blocks and no block cache",
     {"block_size", "cache_size", "cache_type", "cache_numshardbits", "cache_index_and_filter_blocks", "compressed_cache_size",
      "block_restart_interval", "index_block_restart_interval", "pin_l0_filter_and_index_blocks_in_cache", "row_cache_size",
      "simcache_size", "verify_checksum", "format_version", "partition_index_and_filters", "data_block_index_type",
      "index_shortening_mode", "use_data_block_hash_index"}},
    {"there is one filter, of whole keys, for all levels below the memtables",
     {"memtable_bloom_size_ratio", "memtable_whole_key_filtering", "whole_key_filtering", "optimize_filters_for_hits",
      "use_block_based_filter", "use_ribbon_filter", "prefix_size"}},
    {"nothing is compressed",
     {"compression_type", "compression_level", "compression_ratio", "compression_max_dict_bytes", "compression_threads",
      "min_level_to_compress", "compression_use_zstd_dict_trainer", "compression_zstd_max_train_bytes"}},
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
      "ttl_seconds"}},
    {"persistent memory is mapped; there are no files to tune",
     {"mmap_read", "mmap_write", "use_direct_reads", "use_direct_io_for_flush_and_compaction", "open_files", "bytes_per_sync",
      "use_fsync", "advise_random_on_open", "file_opening_threads", "rate_limiter_bytes_per_sec", "writable_file_max_buffer_size",
      "random_access_max_buffer_size", "readahead_size", "async_io", "use_multi_thread_write", "hdfs", "env_uri", "fs_uri"}},
    {"background threads are set by --compaction_threads",
     {"max_background_jobs", "max_background_compactions", "max_background_flushes", "num_low_pri_threads",
      "num_high_pri_threads", "num_bottom_pri_threads"}},
    {"memtables are set by --memtable_size and --max_immutable_memtables",
     {"max_write_buffer_number", "min_write_buffer_number_to_merge", "max_write_buffer_number_to_maintain",
      "max_write_buffer_size_to_maintain", "db_write_buffer_size", "memtablerep", "memtable_insert_with_hint_prefix_size",
      "arena_block_size", "write_buffer_manager", "inplace_update_support"}},
    {"writers do not share a write group",
     {"allow_concurrent_memtable_write", "enable_write_thread_adaptive_yield", "enable_pipelined_write", "unordered_write",
      "write_thread_max_yield_usec", "write_thread_slow_yield_usec", "two_write_queues", "delayed_write_rate"}},
    {"the counters are always on; --statistics prints them",
     {"perf_level", "stats_level", "stats_dump_period_sec", "stats_persist_period_sec", "statistics_string",
      "stats_per_interval"}},
    {"MultiGet always works on the whole batch", {"multiread_batched"}},
    {"iterators always read from memory",
     {"use_tailing_iterator", "iter_k_ahead", "total_order_seek", "auto_prefix_mode", "max_scan_distance", "adaptive_readahead"}},
    {"there is no options file",
     {"options_file", "optionsstring", "report_bg_io_stats", "dump_malloc_stats", "progress_reports", "finish_after_writes",
      "seek_missing_prefix", "ops_between_duration_checks"}},
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
    {"sine_write_rate", "false", "rates are constant"},
    {"sine_mix_rate", "false", "rates are constant"},
    {"trace_file", "", "traces are not written"},
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
