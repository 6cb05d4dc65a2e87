#include "util/perf.h"

#include <iterator>
#include <type_traits>
#include <utility>

namespace braiddb {
namespace perf {

constinit thread_local PerfLevel t_level = PerfLevel::kUninitialized;
constinit thread_local bool t_counts = false;
constinit thread_local PerfContext t_context;
static_assert(std::is_trivially_destructible_v<PerfContext>, "used by calls in destructors of other thread_local objects");

}  // namespace perf

namespace {

constexpr std::pair<const char*, perf::Counter> kCounters[] = {
#define COUNTER(name) \
  { #name, &PerfContext::name }
    COUNTER(user_key_comparison_count),
    COUNTER(block_cache_hit_count),
    COUNTER(get_read_bytes),
    COUNTER(multiget_read_bytes),
    COUNTER(iter_read_bytes),
    COUNTER(internal_key_skipped_count),
    COUNTER(internal_delete_skipped_count),
    COUNTER(internal_recent_skipped_count),
    COUNTER(internal_merge_count),
    COUNTER(get_snapshot_time),
    COUNTER(get_from_memtable_time),
    COUNTER(get_from_memtable_count),
    COUNTER(get_post_process_time),
    COUNTER(get_from_output_files_time),
    COUNTER(seek_on_memtable_time),
    COUNTER(seek_on_memtable_count),
    COUNTER(seek_child_seek_time),
    COUNTER(seek_child_seek_count),
    COUNTER(seek_internal_seek_time),
    COUNTER(find_next_user_entry_time),
    COUNTER(write_wal_time),
    COUNTER(write_memtable_time),
    COUNTER(write_delay_time),
    COUNTER(write_pre_and_post_process_time),
    COUNTER(db_mutex_lock_nanos),
    COUNTER(merge_operator_time_nanos),
    COUNTER(bloom_sst_hit_count),
    COUNTER(bloom_sst_miss_count),
    COUNTER(key_lock_wait_time),
    COUNTER(key_lock_wait_count),
    COUNTER(lookup_cache_search_count),
    COUNTER(lookup_cache_fill_count),
    COUNTER(l0_index_search_count),
    COUNTER(l0_list_search_count),
    COUNTER(get_from_l0_time),
    COUNTER(last_level_search_count),
    COUNTER(get_from_last_level_time),
    COUNTER(get_repeated_count),
#undef COUNTER
};
static_assert(sizeof(PerfContext) == std::size(kCounters) * sizeof(uint64_t));

}  // namespace

void SetPerfLevel(PerfLevel level) {
  perf::t_level = level;
  perf::t_counts = level >= PerfLevel::kEnableCount;
}

PerfLevel GetPerfLevel() { return perf::t_level; }

PerfContext* GetPerfContext() { return &perf::t_context; }

std::string PerfContext::ToString(bool exclude_zero_counters) const {
  std::string text;
  for (const auto& [name, counter] : kCounters) {
    const uint64_t value = this->*counter;
    if (exclude_zero_counters && value == 0) continue;
    text.append(name).append(" = ").append(std::to_string(value)).append(", ");
  }
  return text;
}

}  // namespace braiddb
