// Properties with texts, and statistics.
#include <algorithm>

#include "braiddb/metrics.h"
#include "db/db_impl.h"
#include "db/property.h"
#include "pmem/persist_mode.h"
#include "util/format.h"

namespace braiddb {

bool DBImpl::GetIntProperty(std::string_view property, uint64_t* value) { return IntProperty(default_family_, property, value); }

bool DBImpl::GetIntProperty(ColumnFamilyHandle* family, std::string_view property, uint64_t* value) {
  Status status;
  const Family* const known = FamilyOf(family, &status);
  return known != nullptr && IntProperty(*known, property, value);
}

bool DBImpl::GetProperty(std::string_view property, std::string* value) { return Property(default_family_, property, value); }

bool DBImpl::GetProperty(ColumnFamilyHandle* family, std::string_view property, std::string* value) {
  Status status;
  const Family* const known = FamilyOf(family, &status);
  return known != nullptr && Property(*known, property, value);
}

bool DBImpl::Property(const Family& family, std::string_view property, std::string* value) {
  const std::string_view name = StripPropertyPrefix(property);
  if (name == "stats") {
    *value = GetStatistics().ToString();
    return true;
  }
  if (name == "metrics") {
    *value = MetricsText(GetMetrics());
    return true;
  }
  if (name == "visits-per-get") {
    const Statistics s = GetStatistics();
    const auto gets = static_cast<double>(std::max<uint64_t>(1, s.gets));
    *value = Format("%.2f local, %.2f remote", static_cast<double>(s.local_visits) / gets,
                    static_cast<double>(s.remote_visits) / gets);
    return true;
  }
  if (name == "region-nodes") {
    *value = regions_->nodes().ToString();
    return true;
  }
  if (name == "persist-mode") {
    *value = is_read_only() ? "read-only" : NameOf(regions_->persistence()->mode());
    return true;
  }
  if (name == "levels" || name == "levelstats") {
    std::shared_ptr<const ReadView> view;
    {
      std::lock_guard lock(view_mutex_);
      view = current_view_;
    }
    *value = Format("level      tables    entries\nmemtable %8zu %10llu\n", 1 + view->immutables.size(),
                    static_cast<unsigned long long>(EntriesInActive(*view, family)));
    const FamilyView& levels = *view->Of(family.id);
    uint64_t l0_entries = 0;
    for (const auto& table : levels.l0) l0_entries += table->entries;
    *value += Format("L0       %8zu %10llu\nL1       %8d %10llu\n", levels.l0.size(), static_cast<unsigned long long>(l0_entries),
                     1, static_cast<unsigned long long>(family.l1_entries.load()));
    return true;
  }
  if (name == "l1") {
    const std::shared_ptr<const LastLevel> level = LevelOf(family);
    if (level == nullptr) return false;
    *value = level->Describe();
    return true;
  }
  uint64_t number = 0;
  if (!IntProperty(family, property, &number)) return false;
  *value = std::to_string(number);
  return true;
}

Statistics DBImpl::GetStatistics() const {
  Statistics s;
  threads_.ForEach([&s](const ThreadState& thread) {
    s.writes += thread.writes.value();
    s.batches += thread.batches.value();
    s.log_bytes += thread.log_bytes.value();
    const uint64_t plain_hits = thread.plain_hits.value();
    const uint64_t plain_misses = thread.plain_misses.value();
    s.gets += plain_hits + plain_misses + thread.gets.value();
    s.gets_found += plain_hits + thread.gets_found.value();
    s.lookup_cache_hits += plain_hits + thread.lookup_cache_hits.value();
    s.local_visits += plain_hits + thread.local_visits.value();
    s.filter_negatives += plain_misses + thread.filter_negatives.value();
    s.remote_visits += thread.remote_visits.value();
    s.write_delays += thread.write_delays.value();
    s.write_delay_us += thread.write_delay_us.value();
  });
  s.rotations = counters_.rotations.load();
  s.flushes = counters_.flushes.load();
  s.flushed_entries = counters_.flushed_entries.load();
  s.checkpoints = counters_.checkpoints.load();
  s.compactions = counters_.compactions.load();
  s.merged_entries = counters_.merged.load();
  s.dropped_entries = counters_.dropped.load();
  s.relocated_entries = counters_.relocated_entries.load();
  s.collapsed_keys = counters_.collapsed_keys.load();
  s.relocated_bytes = counters_.relocated_bytes.load();
  s.flushed_lines = counters_.flushed_lines.load();
  const PmWrites pm = regions_->persistence()->writes();
  s.pm_written_lines = pm.lines;
  s.pm_written_xplines = pm.xp_lines;
  s.pm_fences = pm.fences;
  s.segments_allocated = segments_->allocated_count();
  s.segments_recycled = segments_->recycled_count();
  s.replayed_entries = replayed_entries_;
  s.recovery_us = recovery_us_;
  return s;
}

}  // namespace braiddb
