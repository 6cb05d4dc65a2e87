#include "braiddb/statistics.h"

namespace braiddb {

// One counter per line in the format of RocksDB's statistics, so that scripts for RocksDB can parse it.
std::string Statistics::ToString() const {
  const struct {
    const char* name;
    uint64_t value;
  } counters[] = {
      {"writes", writes},
      {"batches", batches},
      {"log.bytes", log_bytes},
      {"gets", gets},
      {"gets.found", gets_found},
      {"lookup-cache.hits", lookup_cache_hits},
      {"filter.negatives", filter_negatives},
      {"visits.local", local_visits},
      {"visits.remote", remote_visits},
      {"write.delays", write_delays},
      {"write.delay.micros", write_delay_us},
      {"rotations", rotations},
      {"flushes", flushes},
      {"flushed.entries", flushed_entries},
      {"checkpoints", checkpoints},
      {"compactions", compactions},
      {"merged.entries", merged_entries},
      {"dropped.entries", dropped_entries},
      {"relocated.entries", relocated_entries},
      {"collapsed.keys", collapsed_keys},
      {"relocated.bytes", relocated_bytes},
      {"segments.allocated", segments_allocated},
      {"segments.recycled", segments_recycled},
      {"flushed.lines", flushed_lines},
      {"pm.written.lines", pm_written_lines},
      {"pm.written.xplines", pm_written_xplines},
      {"pm.fences", pm_fences},
      {"recovery.replayed.entries", replayed_entries},
      {"recovery.micros", recovery_us},
  };
  std::string text;
  for (const auto& counter : counters) {
    text.append("braiddb.").append(counter.name).append(" COUNT : ").append(std::to_string(counter.value)).push_back('\n');
  }
  return text;
}

}  // namespace braiddb
