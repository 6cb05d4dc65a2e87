// DB::GetMetrics: what the registry (metrics/registry.cc) needs to know of a database.
#include "braiddb/metrics.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "db/db_impl.h"
#include "db/property.h"
#include "metrics/figures.h"
#include "pmem/persist_mode.h"

namespace braiddb {

Metrics DB::GetMetrics() const { return {}; }

// The samples of the window that begins here are in the result of the next call.
Metrics DBImpl::GetMetrics() const {
  MetricFigures figures;
  AddSamples(&figures);
  BeginSampling();
  figures.statistics = GetStatistics();
  figures.has_histograms = GetHistograms(&figures.histograms);
  figures.persist_mode = is_read_only() ? "read-only" : NameOf(regions_->persistence()->mode());
  figures.last_level = NameOfL1(static_cast<uint8_t>(options_.l1));
  AddFamilies(&figures);
  AddSpace(&figures);
  AddDram(&figures);
  AddThrottle(&figures);
  AddJobs(&figures);
  figures.snapshots = snapshots_.size();
  const uint64_t oldest = snapshots_.Oldest();
  figures.oldest_snapshot_sequence = oldest == UINT64_MAX ? 0 : oldest;
  figures.oldest_snapshot_seconds = snapshots_.OldestAge();
  figures.last_sequence = GetLatestSequenceNumber();
  figures.range_tombstones = CountRanges();
  figures.damage_seen = regions_->damage_seen();
  return MakeMetrics(figures);
}

void DBImpl::AddSamples(MetricFigures* figures) const {
  threads_.ForEach([figures](const ThreadState& thread) {
    thread.sampled_gets.AddTo(&figures->sampled_gets);
    thread.sampled_writes.AddTo(&figures->sampled_writes);
  });
}

void DBImpl::BeginSampling() const {
  sampling_end_ns_.store(perf::NowNs() + kSampleWindowNs, std::memory_order_relaxed);
  observes_.store(true, std::memory_order_relaxed);
}

void DBImpl::AddFamilies(MetricFigures* figures) const {
  std::shared_ptr<const ReadView> view;
  std::vector<std::pair<const Family*, std::shared_ptr<const LastLevel>>> families;
  {
    std::lock_guard lock(view_mutex_);
    view = current_view_;
    // Under the lock: a family that leaves the view loses its entry in by_id_ later, under the same lock.
    view->ForEach([&](uint32_t id, const FamilyView&) {
      const Family* const family = FindFamily(id);
      families.emplace_back(family, family->last_level);
    });
  }
  figures->immutable_memtables = view->immutables.size();
  for (const auto& [family, level] : families) {
    MetricFigures::Family& own = figures->families.emplace_back();
    own.name = family->name;
    own.memtable_entries = EntriesInActive(*view, *family);
    for (const auto& memtable : view->immutables) own.immutable_entries += EntriesIn(*memtable, *family);
    for (const auto& table : view->Of(family->id)->l0) {
      own.l0_entries += table->entries;
      ++own.l0_tables;
      own.unindexed_tables += table->index() == nullptr;
    }
    own.l1_entries = family->l1_entries.load(std::memory_order_relaxed);
    own.l1_dram = level == nullptr ? 0 : level->DramBytes();
  }
}

void DBImpl::AddSpace(MetricFigures* figures) const {
  for (uint32_t region = 0; region < regions_->count(); ++region) {
    const SegmentAllocator::Usage usage = segments_->GetUsage(region);
    figures->regions.push_back({.reserved = regions_->ReservedBytes(region),
                                .segments = usage.segments,
                                .segment_bytes = usage.segment_bytes,
                                .free_segments = usage.free_segments,
                                .free_bytes = usage.free_bytes,
                                .punched_bytes = usage.punched_bytes});
  }
  const auto add = [figures](const Segment& segment, const char* state, uint64_t used, bool is_dead_known) {
    const uint64_t dead = std::min(used, segment.dead_bytes.load(std::memory_order_relaxed));
    figures->segments.push_back({segment.region(), state, segment.capacity(), used, dead, is_dead_known});
  };
  segments_->ForEachLog([&add](const Segment* segment) {
    if (segment->state() != SegmentState::kSealed)
      return add(*segment, "open", segment->used_bytes.load(std::memory_order_relaxed), true);
    // The entries of an earlier session are counted in the background.
    add(*segment, "sealed", segment->sealed_bytes(), segment->entries.load(std::memory_order_relaxed) != 0);
  });
  segments_->ForEachIndex([&add](const Segment* segment) { add(*segment, "index", segment->capacity(), true); });
  const auto add_copies = [&add](const Segment* segment) {
    add(*segment, "copies", segment->used_bytes.load(std::memory_order_relaxed), true);
  };
  segments_->ForEachCopies(add_copies);
  segments_->ForEachFlushed(add_copies);
  figures->defers_releases = segments_->has_deferred();
}

// The conditions are those of PaceWrites and DelayWrite (pace.cc), HoldForSpace (space.cc) and WaitForRoom (room.cc).
void DBImpl::AddThrottle(MetricFigures* figures) const {
  MetricFigures::Throttle& throttle = figures->throttle;
  if (is_read_only()) return;
  const double slowdown = changing_.SlowdownTrigger();
  throttle.by_flushes = figures->immutable_memtables > changing_.max_immutable_memtables.load(std::memory_order_relaxed);
  throttle.by_merges = changing_.MergesByItself() && L0Pressure(slowdown) > slowdown;
  throttle.delay_ns = throttle.by_merges ? pace_.last_ns() : 0;
  throttle.by_space = BoundsSpace() && IsHeldForSpace();
  const uint32_t waits_for_room = waiting_for_room_.load(std::memory_order_relaxed);
  throttle.by_full_region = waits_for_room > 0;
  throttle.waiting_writers = waits_for_room + held_writers_.load(std::memory_order_relaxed);
  throttle.is_stopped = write_failed_.load(std::memory_order_acquire);
  figures->backlog_entries = l0_load_.NotSettled();
  figures->backlog_bytes = BytesNotMerged();
}

void DBImpl::AddJobs(MetricFigures* figures) const {
  uint64_t merging = 0;  // entries of the tables that a merge takes
  {
    std::lock_guard lock(view_mutex_);
    current_view_->ForEach([&](uint32_t id, const FamilyView& levels) {
      const size_t tables = std::min(FindFamily(id)->merging_tables, levels.l0.size());
      for (size_t i = 0; i < tables; ++i) merging += levels.l0[levels.l0.size() - 1 - i]->entries;
    });
  }
  bool flushes = false;
  bool compacts = false;
  {
    std::lock_guard lock(work_mutex_);
    flushes = flush_running_;
    compacts = compaction_running_;
  }
  constexpr double kUnknown = -1;
  const auto settled = static_cast<double>(l0_load_.settled());
  figures->jobs = {
      {"flush", flushes, kUnknown},
      {"merge", compacts, compacts && merging > 0 ? settled / static_cast<double>(merging) : kUnknown},
      {"resume_merge", resume_merge_.load(std::memory_order_relaxed), kUnknown},
      {"remove_deleted_ranges", ranges_wait_.load(std::memory_order_relaxed), kUnknown},
      {"remove_dropped_families", purge_waits_.load(std::memory_order_relaxed), kUnknown},
      {"release_relocated_segments", moved_waits_.load(std::memory_order_relaxed), kUnknown},
      {"resize_lookup_cache", cache_is_resized_.load(std::memory_order_relaxed), kUnknown},
  };
}

}  // namespace braiddb
