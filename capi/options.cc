// Options of a database.
#include "capi/options.h"

#include <algorithm>

#include "capi/result.h"

using namespace braiddb::capi;

#define DEFINE_BOTH(set_type, get_type, name, initial)                       \
  BRAIDDB_C_DEFINE_SET(options, braiddb_options_t, set_type, get_type, name) \
  BRAIDDB_C_DEFINE_GET(options, braiddb_options_t, get_type, name)
#define DEFINE_SET(type, name, initial) BRAIDDB_C_DEFINE_SET(options, braiddb_options_t, type, type, name)
BRAIDDB_C_OPTIONS(DEFINE_BOTH, DEFINE_SET)

braiddb_options_t* braiddb_options_create() { return Make<braiddb_options_t>(); }
braiddb_options_t* braiddb_options_create_copy(braiddb_options_t* options) { return Make<braiddb_options_t>(*options); }
void braiddb_options_destroy(braiddb_options_t* options) { delete options; }

// ---- Objects

void braiddb_options_set_comparator(braiddb_options_t* options, braiddb_comparator_t* comparator) {
  options->comparator = comparator;
}

// The options own the transform, as in RocksDB. NULL removes it.
void braiddb_options_set_prefix_extractor(braiddb_options_t* options, braiddb_slicetransform_t* transform) {
  DoOrNote(&options->unfit, [&] {
    std::shared_ptr<braiddb_slicetransform_t> owned(transform);
    const bool is_built_in = transform != nullptr && transform->built_in != nullptr;
    options->own.prefix_extractor = is_built_in ? transform->built_in : std::move(owned);
  });
}

void braiddb_options_set_merge_operator(braiddb_options_t* options, braiddb_mergeoperator_t* merge_operator) {
  DoOrNote(&options->unfit, [&] { options->own.merge_operator.reset(merge_operator); });
}

void braiddb_options_set_uint64add_merge_operator(braiddb_options_t* options) {
  DoOrNote(&options->unfit, [&] { options->own.merge_operator = braiddb::UInt64AddOperator(); });
}

void braiddb_options_set_compaction_filter(braiddb_options_t* options, braiddb_compactionfilter_t* filter) {
  options->compaction_filter = filter;
}

void braiddb_options_set_compaction_filter_factory(braiddb_options_t* options, braiddb_compactionfilterfactory_t* factory) {
  options->compaction_filter_factory.reset(factory);
}

void braiddb_options_set_env(braiddb_options_t* options, braiddb_env_t* env) { options->env = env; }
void braiddb_options_set_info_log(braiddb_options_t* options, braiddb_logger_t* logger) { options->info_log = logger; }

void braiddb_options_set_blob_cache(braiddb_options_t* options, braiddb_cache_t* cache) {
  options->blob_cache = cache == nullptr ? nullptr : cache->rep;
}

void braiddb_options_set_row_cache(braiddb_options_t* options, braiddb_cache_t* cache) {
  options->row_cache = cache == nullptr ? nullptr : cache->rep;
}

void braiddb_options_set_ratelimiter(braiddb_options_t* options, braiddb_ratelimiter_t* limiter) {
  options->ratelimiter = limiter == nullptr ? braiddb_ratelimiter_t() : *limiter;
}

void braiddb_options_set_block_based_table_factory(braiddb_options_t* options, braiddb_block_based_table_options_t* table) {
  options->table = table == nullptr ? braiddb_block_based_table_options_t() : *table;
}

void braiddb_options_set_cuckoo_table_factory(braiddb_options_t* options, braiddb_cuckoo_table_options_t* table) {
  options->cuckoo = table == nullptr ? braiddb_cuckoo_table_options_t() : *table;
}

void braiddb_options_set_universal_compaction_options(braiddb_options_t* options,
                                                      braiddb_universal_compaction_options_t* compaction) {
  options->universal = compaction == nullptr ? braiddb_universal_compaction_options_t() : *compaction;
}

void braiddb_options_set_fifo_compaction_options(braiddb_options_t* options, braiddb_fifo_compaction_options_t* compaction) {
  options->fifo = compaction == nullptr ? braiddb_fifo_compaction_options_t() : *compaction;
}

// ---- Options with more than one number

void braiddb_options_set_plain_table_factory(braiddb_options_t* options, uint32_t user_key_length, int bloom_bits_per_key,
                                             double hash_table_ratio, size_t index_sparseness) {
  DoOrNote(&options->unfit, [&] {
    options->plain_table = {static_cast<double>(user_key_length), static_cast<double>(bloom_bits_per_key), hash_table_ratio,
                            static_cast<double>(index_sparseness)};
  });
}

void braiddb_options_set_memtable_vector_rep(braiddb_options_t* options) {
  options->memtable_rep = braiddb_options_t::Memtable::kVector;
  options->memtable_parameters.clear();
}

void braiddb_options_set_hash_skip_list_rep(braiddb_options_t* options, size_t bucket_count, int32_t height,
                                            int32_t branching_factor) {
  options->memtable_rep = braiddb_options_t::Memtable::kHashSkipList;
  DoOrNote(&options->unfit, [&] {
    options->memtable_parameters = {static_cast<int64_t>(bucket_count), height, branching_factor};
  });
}

void braiddb_options_set_hash_link_list_rep(braiddb_options_t* options, size_t bucket_count) {
  options->memtable_rep = braiddb_options_t::Memtable::kHashLinkList;
  DoOrNote(&options->unfit, [&] { options->memtable_parameters = {static_cast<int64_t>(bucket_count)}; });
}

void braiddb_options_set_compression_options(braiddb_options_t* options, int window_bits, int level, int strategy,
                                             int max_dict_bytes) {
  DoOrNote(&options->unfit, [&] { options->compression_options = {window_bits, level, strategy, max_dict_bytes}; });
}

void braiddb_options_set_bottommost_compression_options(braiddb_options_t* options, int window_bits, int level, int strategy,
                                                        int max_dict_bytes, unsigned char enabled) {
  DoOrNote(&options->unfit, [&] { options->bottommost_compression_options = {window_bits, level, strategy, max_dict_bytes}; });
  options->bottommost_compression_options_enabled = enabled != 0;
}

void braiddb_options_set_bottommost_compression_options_max_dict_buffer_bytes(braiddb_options_t* options, uint64_t value,
                                                                              unsigned char enabled) {
  options->bottommost_compression_options_max_dict_buffer_bytes = value;
  options->bottommost_compression_options_enabled = enabled != 0;
}

void braiddb_options_set_bottommost_compression_options_zstd_max_train_bytes(braiddb_options_t* options, int value,
                                                                             unsigned char enabled) {
  options->bottommost_compression_options_zstd_max_train_bytes = value;
  options->bottommost_compression_options_enabled = enabled != 0;
}

void braiddb_options_set_bottommost_compression_options_use_zstd_dict_trainer(braiddb_options_t* options, unsigned char value,
                                                                              unsigned char enabled) {
  options->bottommost_compression_options_use_zstd_dict_trainer = value != 0;
  options->bottommost_compression_options_enabled = enabled != 0;
}

unsigned char braiddb_options_get_bottommost_compression_options_use_zstd_dict_trainer(braiddb_options_t* options) {
  return options->bottommost_compression_options_use_zstd_dict_trainer;
}

void braiddb_options_set_compression_per_level(braiddb_options_t* options, const int* levels, size_t count) {
  DoOrNote(&options->unfit, [&] { options->compression_per_level.assign(levels, levels + count); });
}

void braiddb_options_set_max_bytes_for_level_multiplier_additional(braiddb_options_t* options, int* values, size_t count) {
  DoOrNote(&options->unfit, [&] { options->max_bytes_for_level_multiplier_additional.assign(values, values + count); });
}

void braiddb_options_set_db_paths(braiddb_options_t* options, const braiddb_dbpath_t** paths, size_t count) {
  options->db_paths.clear();
  DoOrNote(&options->unfit, [&] {
    for (size_t i = 0; i < count; ++i) options->db_paths.push_back(*paths[i]);
  });
}

void braiddb_options_set_db_log_dir(braiddb_options_t* options, const char* path) {
  DoOrNote(&options->unfit, [&] { options->db_log_dir = path == nullptr ? "" : path; });
}

void braiddb_options_set_wal_dir(braiddb_options_t* options, const char* path) {
  DoOrNote(&options->unfit, [&] { options->wal_dir = path == nullptr ? "" : path; });
}

void braiddb_options_compaction_readahead_size(braiddb_options_t* options, size_t value) {
  options->compaction_readahead_size = value;
}

size_t braiddb_options_get_compaction_readahead_size(braiddb_options_t* options) { return options->compaction_readahead_size; }

void braiddb_options_add_compact_on_deletion_collector_factory(braiddb_options_t* options, size_t window_size, size_t deletions) {
  DoOrNote(&options->unfit, [&] { options->deletion_collectors.emplace_back(window_size, deletions); });
}

void braiddb_options_enable_statistics(braiddb_options_t* options) {
  DoOrNote(&options->unfit, [&] { options->statistics = std::make_shared<braiddb::capi::SharedStatistics>(); });
}

char* braiddb_options_statistics_get_string(braiddb_options_t* options) {
  if (options->statistics == nullptr) return nullptr;
  char* text = nullptr;
  const braiddb::Status status = braiddb::capi::Guarded([&] {
    text = braiddb::capi::CopyBytes(options->statistics->ToString());
    return braiddb::Status::OK();
  });
  return status.ok() ? text : nullptr;
}

// ---- Functions that set several options, with RocksDB's values

void braiddb_options_increase_parallelism(braiddb_options_t* options, int threads) {
  options->max_background_jobs = std::max(1, threads);
}

void braiddb_options_optimize_for_point_lookup(braiddb_options_t* options, uint64_t block_cache_size_mb) {
  options->optimized_cache_bytes = block_cache_size_mb << 20;
  options->memtable_prefix_bloom_size_ratio = 0.02;
  options->memtable_whole_key_filtering = 1;
}

void braiddb_options_optimize_level_style_compaction(braiddb_options_t* options, uint64_t memtable_memory_budget) {
  options->write_buffer_size = memtable_memory_budget / 4;
  options->min_write_buffer_number_to_merge = 2;
  options->max_write_buffer_number = 6;
  options->level0_file_num_compaction_trigger = 2;
  options->target_file_size_base = memtable_memory_budget / 8;
  options->max_bytes_for_level_base = memtable_memory_budget;
  options->compaction_style = braiddb_level_compaction;
}

void braiddb_options_optimize_universal_style_compaction(braiddb_options_t* options, uint64_t memtable_memory_budget) {
  options->write_buffer_size = memtable_memory_budget / 4;
  options->min_write_buffer_number_to_merge = 2;
  options->max_write_buffer_number = 6;
  options->compaction_style = braiddb_universal_compaction;
}

void braiddb_options_prepare_for_bulk_load(braiddb_options_t* options) {
  options->level0_file_num_compaction_trigger = 1 << 30;
  options->level0_slowdown_writes_trigger = 1 << 30;
  options->level0_stop_writes_trigger = 1 << 30;
  options->disable_auto_compactions = 1;
  options->max_compaction_bytes = uint64_t{1} << 60;
  options->num_levels = 2;
  options->max_write_buffer_number = 6;
  options->min_write_buffer_number_to_merge = 1;
  options->max_background_flushes = 4;
  options->max_background_compactions = 2;
  options->target_file_size_base = 256 << 20;
}

// ---- Small objects

braiddb_dbpath_t* braiddb_dbpath_create(const char* path, uint64_t target_size) {
  std::unique_ptr<braiddb_dbpath_t> result;
  braiddb::Status status;
  DoOrNote(&status, [&] { result = std::make_unique<braiddb_dbpath_t>(braiddb_dbpath_t{path, target_size}); });
  return result.release();
}
void braiddb_dbpath_destroy(braiddb_dbpath_t* path) { delete path; }

braiddb_ratelimiter_t* braiddb_ratelimiter_create(int64_t bytes_per_second, int64_t refill_period_us, int32_t fairness) {
  return Make<braiddb_ratelimiter_t>(bytes_per_second, refill_period_us, fairness);
}
void braiddb_ratelimiter_destroy(braiddb_ratelimiter_t* limiter) { delete limiter; }

// ---- Options of BraidDB only

#define DEFINE_OWN(type, name, field)                                                                     \
  void braiddb_options_set_##name(braiddb_options_t* options, type value) { options->own.field = value; } \
  type braiddb_options_get_##name(braiddb_options_t* options) { return options->own.field; }
// Stores an invalid kind as well; the open refuses it.
#define DEFINE_OWN_KIND(name, field)                                                          \
  void braiddb_options_set_##name(braiddb_options_t* options, int value) {                    \
    const bool fits = value >= 0 && value < UINT8_MAX;                                        \
    options->own.field = static_cast<decltype(options->own.field)>(fits ? value : UINT8_MAX); \
  }                                                                                           \
  int braiddb_options_get_##name(braiddb_options_t* options) { return static_cast<int>(options->own.field); }
DEFINE_OWN_KIND(l1_kind, l1)
DEFINE_OWN(uint32_t, nv_leaf_size, nv_leaf_size)
DEFINE_OWN(uint32_t, regions, regions)
DEFINE_OWN_KIND(list_kind, list_kind)
DEFINE_OWN(uint64_t, max_region_size, max_region_size)
DEFINE_OWN(uint64_t, initial_region_size, initial_region_size)
DEFINE_OWN(uint64_t, segment_size, segment_size)
DEFINE_OWN_KIND(persist_mode, persist_mode)
DEFINE_OWN(uint64_t, dram_budget, dram_budget)
DEFINE_OWN_KIND(memtable_kind, memtable)
DEFINE_OWN(uint64_t, memtable_max_entries, memtable_max_entries)
DEFINE_OWN(uint32_t, checkpoint_tables, checkpoint_tables)
DEFINE_OWN(uint64_t, l1_index_size, l1_index_size)
DEFINE_OWN(uint64_t, lookup_cache_size, lookup_cache_size)
DEFINE_OWN(uint32_t, filter_bits_per_key, filter_bits_per_key)
DEFINE_OWN(uint32_t, recovery_threads, recovery_threads)
DEFINE_OWN(double, max_space_amplification, max_space_amplification)
DEFINE_OWN(uint64_t, space_slack, space_slack)
DEFINE_OWN(uint64_t, kept_free_space, kept_free_space)

void braiddb_options_set_bound_space(braiddb_options_t* options, unsigned char value) { options->own.bound_space = value != 0; }
unsigned char braiddb_options_get_bound_space(braiddb_options_t* options) { return options->own.bound_space; }

void braiddb_options_set_index_unified_logging(braiddb_options_t* options, unsigned char value) {
  options->own.index_unified_logging = value != 0;
}
unsigned char braiddb_options_get_index_unified_logging(braiddb_options_t* options) { return options->own.index_unified_logging; }

void braiddb_options_set_verify_at_open(braiddb_options_t* options, unsigned char value) {
  options->own.verify_at_open = value != 0;
}
unsigned char braiddb_options_get_verify_at_open(braiddb_options_t* options) { return options->own.verify_at_open; }

void braiddb_options_set_refresh_live_readers(braiddb_options_t* options, unsigned char value) {
  options->own.refresh_live_readers = value != 0;
}
unsigned char braiddb_options_get_refresh_live_readers(braiddb_options_t* options) { return options->own.refresh_live_readers; }
void braiddb_options_set_count_pm_writes(braiddb_options_t* options, unsigned char value) {
  options->own.count_pm_writes = value != 0;
}
unsigned char braiddb_options_get_count_pm_writes(braiddb_options_t* options) { return options->own.count_pm_writes; }

void braiddb_options_set_region_nodes(braiddb_options_t* options, const int* nodes, size_t count) {
  DoOrNote(&options->unfit, [&] { options->own.region_nodes.assign(nodes, nodes + count); });
}
void braiddb_options_set_region_paths(braiddb_options_t* options, const char* const* paths, size_t count) {
  DoOrNote(&options->unfit, [&] { options->own.region_paths.assign(paths, paths + count); });
}

void braiddb_options_set_info_log_callback(braiddb_options_t* options, void* state,
                                           void (*log)(void* state, const char* line, size_t length)) {
  if (log == nullptr) {
    options->own.info_log = nullptr;
  } else {
    DoOrNote(&options->unfit,
             [&] { options->own.info_log = [state, log](std::string_view line) { log(state, line.data(), line.size()); }; });
  }
}

// ---- Options of LevelDB

void braiddb_options_set_cache(braiddb_options_t* options, braiddb_cache_t* cache) {
  options->cache = cache == nullptr ? nullptr : cache->rep;
}
void braiddb_options_set_block_size(braiddb_options_t* options, size_t value) { options->table.block_size = value; }
void braiddb_options_set_block_restart_interval(braiddb_options_t* options, int value) {
  options->table.block_restart_interval = value;
}
void braiddb_options_set_max_file_size(braiddb_options_t* options, size_t value) { options->target_file_size_base = value; }
void braiddb_options_set_filter_policy(braiddb_options_t* options, braiddb_filterpolicy_t* policy) {
  options->leveldb_policy = policy;
}
