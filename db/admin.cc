// Properties and statistics.
#include <algorithm>

#include "braiddb/metrics.h"
#include "db/db_impl.h"
#include "pmem/persist_mode.h"
#include "util/format.h"

namespace braiddb {
namespace {

// The name behind "braiddb." or "rocksdb."; empty if it has neither.
std::string_view StripPrefix(std::string_view property) {
  for (const std::string_view prefix : {"braiddb.", "rocksdb."}) {
    if (property.starts_with(prefix)) return property.substr(prefix.size());
  }
  return {};
}

}  // namespace

uint64_t DBImpl::EntriesIn(const Memtable& set, const Family& family) {
  const Memtable* const memtable = set.Of(family.id);
  uint64_t entries = memtable == nullptr ? 0 : memtable->entry_count.load(std::memory_order_relaxed);
  if (family.id != 0) return entries;
  set.ForEachSibling([&](uint32_t, const Memtable* sibling) {
    entries -= std::min(entries, sibling->entry_count.load(std::memory_order_relaxed));
  });
  return entries;
}

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

bool DBImpl::IntProperty(const Family& family, std::string_view property, uint64_t* value) {
  const std::string_view name = StripPrefix(property);
  std::shared_ptr<const ReadView> view;
  {
    std::lock_guard lock(view_mutex_);
    view = current_view_;
  }
  const FamilyView& levels = *view->Of(family.id);
  const auto bytes_of = [&family](const Memtable& set) {
    const Memtable* const memtable = set.Of(family.id);
    return memtable == nullptr ? 0 : memtable->DramBytes();
  };
  const auto usage = [this](uint64_t SegmentAllocator::Usage::*field) {
    uint64_t sum = 0;
    for (uint32_t region = 0; region < regions_->count(); ++region) sum += segments_->GetUsage(region).*field;
    return sum;
  };
  if (name == "num-immutable-mem-table") {
    *value = view->immutables.size();
  } else if (name == "num-l0-tables" || name == "num-files-at-level0") {
    *value = levels.l0.size();
  } else if (name == "estimate-num-keys") {
    *value = family.l1_entries.load() + EntriesIn(*view->active, family);
    for (const auto& memtable : view->immutables) *value += EntriesIn(*memtable, family);
    for (const auto& table : levels.l0) *value += table->entries;
  } else if (name == "num-entries-active-mem-table") {
    *value = EntriesIn(*view->active, family);
  } else if (name == "num-entries-imm-mem-tables") {
    *value = 0;
    for (const auto& memtable : view->immutables) *value += EntriesIn(*memtable, family);
  } else if (name == "num-entries-l0") {
    *value = 0;
    for (const auto& table : levels.l0) *value += table->entries;
  } else if (name == "num-entries-l1") {
    *value = family.l1_entries.load();
  } else if (name == "cur-size-active-mem-table") {
    *value = bytes_of(*view->active);
  } else if (name == "cur-size-all-mem-tables") {
    *value = bytes_of(*view->active);
    for (const auto& memtable : view->immutables) *value += bytes_of(*memtable);
  } else if (name == "pm-bytes-reserved") {
    *value = 0;
    for (uint32_t region = 0; region < regions_->count(); ++region) *value += regions_->ReservedBytes(region);
  } else if (name == "pm-bytes-in-segments") {
    *value = usage(&SegmentAllocator::Usage::segment_bytes);
  } else if (name == "pm-bytes-live") {
    *value = 0;
    segments_->ForEachLog([value](Segment* segment) {
      const uint64_t used = segment->state() == SegmentState::kSealed ? segment->sealed_bytes() : segment->used_bytes.load();
      *value += used - std::min(used, segment->dead_bytes.load());
    });
  } else if (name == "num-segments") {
    *value = usage(&SegmentAllocator::Usage::segments);
  } else if (name == "num-free-segments") {
    *value = usage(&SegmentAllocator::Usage::free_segments);
  } else if (name == "l1-dram-bytes") {
    const std::shared_ptr<const LastLevel> level = LevelOf(family);
    *value = level == nullptr ? 0 : level->DramBytes();
  } else if (name == "dram-bytes") {
    *value = DramBytes();
  } else if (name == "lookup-cache-bytes") {
    *value = lookup_cache_ == nullptr ? 0 : lookup_cache_->bytes();
  } else if (name == "filter-bytes") {
    const auto guard = epochs_.Enter();
    const KeyFilter* const filter = filter_.load(std::memory_order_acquire);
    *value = filter == nullptr ? 0 : filter->bytes();
  } else if (name == "l1-pm-bytes") {
    *value = 0;
    segments_->ForEachIndex([value](Segment* segment) { *value += segment->capacity(); });
  } else if (name == "num-range-tombstones") {
    *value = CountRanges();
  } else if (name == "num-running-flushes") {
    const std::lock_guard lock(work_mutex_);
    *value = flush_running_ ? 1 : 0;
  } else if (name == "num-running-compactions") {
    const std::lock_guard lock(work_mutex_);
    *value = compaction_running_ ? 1 : 0;
  } else if (name == "oldest-snapshot-sequence") {
    const uint64_t oldest = snapshots_.Oldest();
    *value = oldest == UINT64_MAX ? 0 : oldest;
  } else if (name == "num-snapshots") {
    *value = snapshots_.size();
  } else if (name == "last-sequence-number") {
    *value = GetLatestSequenceNumber();
  } else if (name == "background-errors" || name == "is-write-stopped") {
    *value = write_failed_.load() && !is_read_only() ? 1 : 0;
  } else {
    return false;
  }
  return true;
}

bool DBImpl::Property(const Family& family, std::string_view property, std::string* value) {
  const std::string_view name = StripPrefix(property);
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
                    static_cast<unsigned long long>(EntriesIn(*view->active, family)));
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
