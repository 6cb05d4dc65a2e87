// Counters of the calling thread (braiddb/perf_context.h), by RocksDB's numbers.
#include "braiddb/perf_context.h"

#include <iterator>
#include <string>

#include "capi/objects.h"
#include "capi/result.h"

using braiddb::PerfContext;
using braiddb::PerfLevel;

// An empty object: it always refers to the counters of the thread that uses it, as in RocksDB.
struct braiddb_perfcontext_t {};

namespace {

struct Metric {
  const char* name;
  uint64_t PerfContext::*counter;  // null: not counted
};

constexpr Metric kMetrics[] = {
#define COUNTED(name) \
  { #name, &PerfContext::name }
#define NOT_COUNTED(name) \
  { #name, nullptr }
    COUNTED(user_key_comparison_count),
    COUNTED(block_cache_hit_count),
    NOT_COUNTED(block_read_count),
    NOT_COUNTED(block_read_byte),
    NOT_COUNTED(block_read_time),
    NOT_COUNTED(block_checksum_time),
    NOT_COUNTED(block_decompress_time),
    COUNTED(get_read_bytes),
    COUNTED(multiget_read_bytes),
    COUNTED(iter_read_bytes),
    COUNTED(internal_key_skipped_count),
    COUNTED(internal_delete_skipped_count),
    COUNTED(internal_recent_skipped_count),
    COUNTED(internal_merge_count),
    COUNTED(get_snapshot_time),
    COUNTED(get_from_memtable_time),
    COUNTED(get_from_memtable_count),
    COUNTED(get_post_process_time),
    COUNTED(get_from_output_files_time),
    COUNTED(seek_on_memtable_time),
    COUNTED(seek_on_memtable_count),
    NOT_COUNTED(next_on_memtable_count),
    NOT_COUNTED(prev_on_memtable_count),
    COUNTED(seek_child_seek_time),
    COUNTED(seek_child_seek_count),
    NOT_COUNTED(seek_min_heap_time),
    NOT_COUNTED(seek_max_heap_time),
    COUNTED(seek_internal_seek_time),
    COUNTED(find_next_user_entry_time),
    COUNTED(write_wal_time),
    COUNTED(write_memtable_time),
    COUNTED(write_delay_time),
    COUNTED(write_pre_and_post_process_time),
    COUNTED(db_mutex_lock_nanos),
    NOT_COUNTED(db_condition_wait_nanos),
    COUNTED(merge_operator_time_nanos),
    NOT_COUNTED(read_index_block_nanos),
    NOT_COUNTED(read_filter_block_nanos),
    NOT_COUNTED(new_table_block_iter_nanos),
    NOT_COUNTED(new_table_iterator_nanos),
    NOT_COUNTED(block_seek_nanos),
    NOT_COUNTED(find_table_nanos),
    NOT_COUNTED(bloom_memtable_hit_count),
    NOT_COUNTED(bloom_memtable_miss_count),
    COUNTED(bloom_sst_hit_count),
    COUNTED(bloom_sst_miss_count),
    COUNTED(key_lock_wait_time),
    COUNTED(key_lock_wait_count),
    NOT_COUNTED(env_new_sequential_file_nanos),
    NOT_COUNTED(env_new_random_access_file_nanos),
    NOT_COUNTED(env_new_writable_file_nanos),
    NOT_COUNTED(env_reuse_writable_file_nanos),
    NOT_COUNTED(env_new_random_rw_file_nanos),
    NOT_COUNTED(env_new_directory_nanos),
    NOT_COUNTED(env_file_exists_nanos),
    NOT_COUNTED(env_get_children_nanos),
    NOT_COUNTED(env_get_children_file_attributes_nanos),
    NOT_COUNTED(env_delete_file_nanos),
    NOT_COUNTED(env_create_dir_nanos),
    NOT_COUNTED(env_create_dir_if_missing_nanos),
    NOT_COUNTED(env_delete_dir_nanos),
    NOT_COUNTED(env_get_file_size_nanos),
    NOT_COUNTED(env_get_file_modification_time_nanos),
    NOT_COUNTED(env_rename_file_nanos),
    NOT_COUNTED(env_link_file_nanos),
    NOT_COUNTED(env_lock_file_nanos),
    NOT_COUNTED(env_unlock_file_nanos),
    NOT_COUNTED(env_new_logger_nanos),
    NOT_COUNTED(number_async_seek),
    NOT_COUNTED(blob_cache_hit_count),
    NOT_COUNTED(blob_read_count),
    NOT_COUNTED(blob_read_byte),
    NOT_COUNTED(blob_read_time),
    NOT_COUNTED(blob_checksum_time),
    NOT_COUNTED(blob_decompress_time),
    NOT_COUNTED(internal_range_del_reseek_count),
#undef NOT_COUNTED
#undef COUNTED
};
static_assert(std::size(kMetrics) == braiddb_internal_range_del_reseek_count + 1);

uint64_t ValueOf(const Metric& metric) { return metric.counter == nullptr ? 0 : braiddb::GetPerfContext()->*metric.counter; }

}  // namespace

// RocksDB's C API has fewer levels than its C++ API, so enable_time enables all times.
void braiddb_set_perf_level(int level) {
  braiddb::SetPerfLevel(level >= braiddb_enable_time ? PerfLevel::kEnableTime : static_cast<PerfLevel>(level));
}

// RocksDB counts events by default. A program that only reads counters therefore sets no level.
braiddb_perfcontext_t* braiddb_perfcontext_create() {
  if (braiddb::GetPerfLevel() == PerfLevel::kUninitialized) braiddb::SetPerfLevel(PerfLevel::kEnableCount);
  return braiddb::capi::Make<braiddb_perfcontext_t>();
}

void braiddb_perfcontext_destroy(braiddb_perfcontext_t* context) { delete context; }

void braiddb_perfcontext_reset(braiddb_perfcontext_t*) { braiddb::GetPerfContext()->Reset(); }

// Returns NULL if memory is short.
char* braiddb_perfcontext_report(braiddb_perfcontext_t*, unsigned char exclude_zero_counters) {
  char* report = nullptr;
  (void)braiddb::capi::Guarded([&] {
    std::string text;
    for (const Metric& metric : kMetrics) {
      const uint64_t value = ValueOf(metric);
      if (exclude_zero_counters != 0 && value == 0) continue;
      text.append(metric.name).append(" = ").append(std::to_string(value)).append(", ");
    }
    report = braiddb::capi::CopyBytes(text);
    return braiddb::Status::OK();
  });
  return report;
}

uint64_t braiddb_perfcontext_metric(braiddb_perfcontext_t*, int metric) {
  return metric >= 0 && static_cast<size_t>(metric) < std::size(kMetrics) ? ValueOf(kMetrics[metric]) : 0;
}
