// The registry: one row for each metric, with the function that reads its value.
#include <algorithm>
#include <iterator>
#include <string>

#include "metrics/figures.h"
#include "util/format.h"

namespace braiddb {
namespace {

using Figures = MetricFigures;
using Labels = std::vector<std::pair<std::string, std::string>>;

// Receives the samples of one metric.
class Samples {
 public:
  explicit Samples(std::vector<MetricSample>* samples) : samples_(samples) {}
  template <class Number>
  void Add(Number value, Labels labels = {}) {
    samples_->push_back({std::move(labels), static_cast<double>(value), {}, 0, 0});
  }
  void Add(MetricSample sample) { samples_->push_back(std::move(sample)); }

 private:
  std::vector<MetricSample>* const samples_;
};

struct Row {
  MetricDescription description;
  void (*read)(const Figures& figures, Samples* samples);
};

constexpr MetricType kCounter = MetricType::kCounter;
constexpr MetricType kGauge = MetricType::kGauge;
constexpr MetricType kHistogram = MetricType::kHistogram;
constexpr double kMicrosPerSecond = 1e6;

template <uint64_t Statistics::*kField>
void Count(const Figures& figures, Samples* samples) {
  samples->Add(figures.statistics.*kField);
}

template <uint64_t Statistics::*kField>
void CountMicros(const Figures& figures, Samples* samples) {
  samples->Add(static_cast<double>(figures.statistics.*kField) / kMicrosPerSecond);
}

template <class Value>
void ForEachRegion(const Figures& figures, Samples* samples, const Value& value) {
  for (size_t i = 0; i < figures.regions.size(); ++i) samples->Add(value(figures.regions[i]), {{"region", std::to_string(i)}});
}

// Sums of segments by region and state, of the states that occur.
template <class Value>
void ForEachSegmentState(const Figures& figures, Samples* samples, const Value& value) {
  for (size_t region = 0; region < figures.regions.size(); ++region) {
    for (const char* const state : {"open", "sealed", "index", "copies"}) {
      uint64_t sum = 0;
      bool occurs = false;
      for (const SegmentFigures& segment : figures.segments) {
        if (segment.region != region || std::string_view(segment.state) != state) continue;
        sum += value(segment);
        occurs = true;
      }
      if (occurs) samples->Add(sum, {{"region", std::to_string(region)}, {"state", state}});
    }
  }
}

// A bucket of the engine's histograms begins at each power of two, so these counts are exact. The smallest bound is 256 of what
// is noted, and each bound is four times the one before.
template <HistogramKind kKind>
void Distribution(const Figures& figures, Samples* samples) {
  if (!figures.has_histograms) return;
  constexpr uint64_t kSmallest = 256;
  constexpr int kBounds = 14;
  const double unit = Histograms::IsDuration(kKind) ? 1e-9 : 1;
  MetricSample sample;
  uint64_t bound = kSmallest;
  for (int i = 0; i < kBounds; ++i, bound *= 4)
    sample.buckets.push_back({static_cast<double>(bound) * unit, figures.histograms.CountBelow(kKind, bound)});
  const HistogramData data = figures.histograms.Get(kKind);
  sample.count = data.count;
  sample.sum = Histograms::IsDuration(kKind) ? data.sum / kMicrosPerSecond : data.sum;
  samples->Add(std::move(sample));
}

template <SampledDurations MetricFigures::*kField>
void SampledDistribution(const Figures& figures, Samples* samples) {
  const SampledDurations& durations = figures.*kField;
  MetricSample sample;
  uint64_t bound = SampledDurations::kFirstBoundNs;
  for (size_t i = 0; i + 1 < SampledDurations::kBuckets; ++i, bound *= 4) {
    sample.count += durations.counts[i];
    sample.buckets.push_back({static_cast<double>(bound) * 1e-9, sample.count});
  }
  sample.count += durations.counts[SampledDurations::kBuckets - 1];
  sample.sum = static_cast<double>(durations.sum_ns) * 1e-9;
  samples->Add(std::move(sample));
}

const Row kRows[] = {
    // ---- Calls
    {{"braiddb_writes_total", kCounter, "updates", "", "Acknowledged updates; a batch counts each of its updates",
      "counters of threads"},
     Count<&Statistics::writes>},
    {{"braiddb_write_calls_total", kCounter, "calls", "", "Acknowledged calls that write", "counters of threads"},
     Count<&Statistics::batches>},
    {{"braiddb_log_written_bytes_total", kCounter, "bytes", "", "Log space of users' entries, with padding",
      "counters of threads"},
     Count<&Statistics::log_bytes>},
    {{"braiddb_gets_total", kCounter, "calls", "", "Point lookups", "counters of threads"}, Count<&Statistics::gets>},
    {{"braiddb_gets_found_total", kCounter, "calls", "", "Point lookups that found their key", "counters of threads"},
     Count<&Statistics::gets_found>},
    {{"braiddb_lookup_cache_hits_total", kCounter, "calls", "", "Point lookups that the lookup cache answered",
      "counters of threads"},
     Count<&Statistics::lookup_cache_hits>},
    {{"braiddb_filter_negatives_total", kCounter, "calls", "", "Point lookups of absent keys that filters answered",
      "counters of threads"},
     Count<&Statistics::filter_negatives>},
    {{"braiddb_node_visits_total", kCounter, "visits", "numa",
      "Visits of list nodes in persistent memory, by NUMA distance of the node", "counters of threads"},
     [](const Figures& f, Samples* s) {
       s->Add(f.statistics.local_visits, {{"numa", "local"}});
       s->Add(f.statistics.remote_visits, {{"numa", "remote"}});
     }},
    {{"braiddb_sampled_get_duration_seconds", kHistogram, "seconds", "",
      "Duration of a get, of those that begin up to a millisecond after GetMetrics", "samples of threads"},
     SampledDistribution<&MetricFigures::sampled_gets>},
    {{"braiddb_sampled_write_duration_seconds", kHistogram, "seconds", "",
      "Duration of a write, of those that begin up to a millisecond after GetMetrics", "samples of threads"},
     SampledDistribution<&MetricFigures::sampled_writes>},
    {{"braiddb_get_duration_seconds", kHistogram, "seconds", "", "Duration of a get; only with Options::histograms",
      "histograms of threads"},
     Distribution<HistogramKind::kGetMicros>},
    {{"braiddb_write_duration_seconds", kHistogram, "seconds", "", "Duration of a write; only with Options::histograms",
      "histograms of threads"},
     Distribution<HistogramKind::kWriteMicros>},
    {{"braiddb_multiget_duration_seconds", kHistogram, "seconds", "", "Duration of a MultiGet; only with Options::histograms",
      "histograms of threads"},
     Distribution<HistogramKind::kMultiGetMicros>},
    {{"braiddb_seek_duration_seconds", kHistogram, "seconds", "", "Duration of an iterator's seek; only with Options::histograms",
      "histograms of threads"},
     Distribution<HistogramKind::kSeekMicros>},
    {{"braiddb_write_delay_duration_seconds", kHistogram, "seconds", "",
      "Duration of one sleep of a write; only with Options::histograms", "histograms of threads"},
     Distribution<HistogramKind::kWriteStallMicros>},
    {{"braiddb_flush_duration_seconds", kHistogram, "seconds", "", "Duration of a flush; only with Options::histograms",
      "histograms of threads"},
     Distribution<HistogramKind::kFlushMicros>},
    {{"braiddb_merge_duration_seconds", kHistogram, "seconds", "",
      "Duration of a merge into a last level; only with Options::histograms", "histograms of threads"},
     Distribution<HistogramKind::kCompactionMicros>},
    {{"braiddb_read_value_bytes", kHistogram, "bytes", "", "Sizes of values that gets found; only with Options::histograms",
      "histograms of threads"},
     Distribution<HistogramKind::kBytesPerRead>},
    {{"braiddb_write_size_bytes", kHistogram, "bytes", "", "Log space of one write; only with Options::histograms",
      "histograms of threads"},
     Distribution<HistogramKind::kBytesPerWrite>},

    // ---- Back-pressure and backlog
    {{"braiddb_write_delays_total", kCounter, "sleeps", "", "Sleeps of writes because background work is behind",
      "counters of threads"},
     Count<&Statistics::write_delays>},
    {{"braiddb_write_delay_seconds_total", kCounter, "seconds", "", "Duration of these sleeps", "counters of threads"},
     CountMicros<&Statistics::write_delay_us>},
    {{"braiddb_writes_throttled", kGauge, "", "reason", "1 while this reason delays or stops writes, else 0",
      "the conditions that writers check"},
     [](const Figures& f, Samples* s) {
       s->Add(f.throttle.by_flushes ? 1 : 0, {{"reason", "flushes_behind"}});
       s->Add(f.throttle.by_merges ? 1 : 0, {{"reason", "merges_behind"}});
       s->Add(f.throttle.by_space ? 1 : 0, {{"reason", "space_bound"}});
       s->Add(f.throttle.by_full_region ? 1 : 0, {{"reason", "region_full"}});
       s->Add(f.throttle.is_stopped ? 1 : 0, {{"reason", "background_error"}});
     }},
    {{"braiddb_write_delay_per_entry_seconds", kGauge, "seconds", "", "Delay that a written entry owes because merges are behind",
      "the write throttle"},
     [](const Figures& f, Samples* s) { s->Add(f.throttle.delay_ns / 1e9); }},
    {{"braiddb_waiting_writers", kGauge, "threads", "", "Writers that wait for space or for room in a full region",
      "waiting writers"},
     [](const Figures& f, Samples* s) { s->Add(f.throttle.waiting_writers); }},
    {{"braiddb_immutable_memtables", kGauge, "memtables", "", "Memtables that wait for their flush", "the read view"},
     [](const Figures& f, Samples* s) { s->Add(f.immutable_memtables); }},
    {{"braiddb_merge_backlog_entries", kGauge, "entries", "", "Entries of L0 that no merge has settled",
      "the read view, the running merge"},
     [](const Figures& f, Samples* s) { s->Add(f.backlog_entries); }},
    {{"braiddb_merge_backlog_bytes", kGauge, "bytes", "", "Log space of memtables and L0 tables", "the read view"},
     [](const Figures& f, Samples* s) { s->Add(f.backlog_bytes); }},

    // ---- Levels
    {{"braiddb_entries", kGauge, "entries", "family,level", "Entries of a level; an estimate for memtables and the last level",
      "the read view"},
     [](const Figures& f, Samples* s) {
       for (const Figures::Family& family : f.families) {
         const std::string name = Escaped(family.name);
         s->Add(family.memtable_entries, {{"family", name}, {"level", "memtable"}});
         s->Add(family.immutable_entries, {{"family", name}, {"level", "immutable"}});
         s->Add(family.l0_entries, {{"family", name}, {"level", "l0"}});
         s->Add(family.l1_entries, {{"family", name}, {"level", "l1"}});
       }
     }},
    {{"braiddb_l0_tables", kGauge, "tables", "family", "Tables of L0", "the read view"},
     [](const Figures& f, Samples* s) {
       for (const Figures::Family& family : f.families) s->Add(family.l0_tables, {{"family", Escaped(family.name)}});
     }},
    {{"braiddb_l0_tables_without_index", kGauge, "tables", "family", "Tables of L0 that lookups search as lists",
      "the read view"},
     [](const Figures& f, Samples* s) {
       for (const Figures::Family& family : f.families) s->Add(family.unindexed_tables, {{"family", Escaped(family.name)}});
     }},
    {{"braiddb_last_level_dram_bytes", kGauge, "bytes", "family", "DRAM of the last level and its indexes", "the last level"},
     [](const Figures& f, Samples* s) {
       for (const Figures::Family& family : f.families) s->Add(family.l1_dram, {{"family", Escaped(family.name)}});
     }},
    {{"braiddb_range_tombstones", kGauge, "ranges", "", "Deleted ranges that still hide keys", "the range tombstones"},
     [](const Figures& f, Samples* s) { s->Add(f.range_tombstones); }},

    // ---- Space
    {{"braiddb_region_file_bytes", kGauge, "bytes", "region", "File space of a region", "the region's parts"},
     [](const Figures& f, Samples* s) { ForEachRegion(f, s, [](const Figures::Region& region) { return region.reserved; }); }},
    {{"braiddb_region_segments_bytes", kGauge, "bytes", "region", "Space of segments in use", "the segment allocator"},
     [](const Figures& f, Samples* s) {
       ForEachRegion(f, s, [](const Figures::Region& region) { return region.segment_bytes; });
     }},
    {{"braiddb_region_free_bytes", kGauge, "bytes", "region", "Space of segments that are kept for reuse",
      "the segment allocator"},
     [](const Figures& f, Samples* s) { ForEachRegion(f, s, [](const Figures::Region& region) { return region.free_bytes; }); }},
    {{"braiddb_region_punched_bytes", kGauge, "bytes", "region", "Of these: segments whose blocks the file system has back",
      "the segment allocator"},
     [](const Figures& f, Samples* s) {
       ForEachRegion(f, s, [](const Figures::Region& region) { return region.punched_bytes; });
     }},
    {{"braiddb_region_free_segments", kGauge, "segments", "region", "Segments that are kept for reuse", "the segment allocator"},
     [](const Figures& f, Samples* s) {
       ForEachRegion(f, s, [](const Figures::Region& region) { return region.free_segments; });
     }},
    {{"braiddb_segments", kGauge, "segments", "region,state", "Segments in use, by their state", "the segment allocator"},
     [](const Figures& f, Samples* s) { ForEachSegmentState(f, s, [](const SegmentFigures&) { return uint64_t{1}; }); }},
    {{"braiddb_segment_capacity_bytes", kGauge, "bytes", "region,state", "Capacity of these segments", "the segment allocator"},
     [](const Figures& f, Samples* s) {
       ForEachSegmentState(f, s, [](const SegmentFigures& segment) { return segment.capacity; });
     }},
    {{"braiddb_segment_live_bytes", kGauge, "bytes", "region,state", "Entries of these segments that are not known to be dead",
      "counters of segments"},
     [](const Figures& f, Samples* s) {
       ForEachSegmentState(f, s,
                           [](const SegmentFigures& segment) { return segment.used - std::min(segment.used, segment.dead); });
     }},
    {{"braiddb_segment_dead_bytes", kGauge, "bytes", "region,state", "Entries of these segments that are known to be dead",
      "counters of segments"},
     [](const Figures& f, Samples* s) { ForEachSegmentState(f, s, [](const SegmentFigures& segment) { return segment.dead; }); }},
    {{"braiddb_segment_releases_deferred", kGauge, "", "",
      "1 while another process reads and released segments wait for it, else 0", "the segment allocator"},
     [](const Figures& f, Samples* s) { s->Add(f.defers_releases ? 1 : 0); }},
    {{"braiddb_segments_allocated_total", kCounter, "segments", "", "Segments that were taken", "the segment allocator"},
     Count<&Statistics::segments_allocated>},
    {{"braiddb_segments_recycled_total", kCounter, "segments", "", "Segments that were given back", "the segment allocator"},
     Count<&Statistics::segments_recycled>},

    // ---- DRAM
    {{"braiddb_dram_bytes", kGauge, "bytes", "part", "DRAM by part, without running work", "the parts"},
     [](const Figures& f, Samples* s) {
       s->Add(f.dram.memtable, {{"part", "memtable"}});
       s->Add(f.dram.immutable_memtables, {{"part", "immutable_memtables"}});
       s->Add(f.dram.l0_orders, {{"part", "l0_orders"}});
       s->Add(f.dram.l0_indexes, {{"part", "l0_indexes"}});
       s->Add(f.dram.last_levels, {{"part", "last_levels"}});
       s->Add(f.dram.range_tombstones, {{"part", "range_tombstones"}});
       s->Add(f.dram.lookup_cache, {{"part", "lookup_cache"}});
       s->Add(f.dram.filter, {{"part", "filter"}});
     }},

    // ---- Background work
    {{"braiddb_rotations_total", kCounter, "rotations", "", "Memtables that became immutable", "counters of background work"},
     Count<&Statistics::rotations>},
    {{"braiddb_flushes_total", kCounter, "flushes", "", "Flushes", "counters of background work"}, Count<&Statistics::flushes>},
    {{"braiddb_flushed_entries_total", kCounter, "entries", "", "Entries that flushes linked", "counters of background work"},
     Count<&Statistics::flushed_entries>},
    {{"braiddb_checkpoints_total", kCounter, "checkpoints", "", "Checkpoints of tables", "counters of background work"},
     Count<&Statistics::checkpoints>},
    {{"braiddb_merges_total", kCounter, "merges", "", "Merges into a last level", "counters of background work"},
     Count<&Statistics::compactions>},
    {{"braiddb_merged_entries_total", kCounter, "entries", "", "Entries that merges linked into a last level",
      "counters of background work"},
     Count<&Statistics::merged_entries>},
    {{"braiddb_dropped_entries_total", kCounter, "entries", "", "Obsolete versions and tombstones that merges removed",
      "counters of background work"},
     Count<&Statistics::dropped_entries>},
    {{"braiddb_relocated_entries_total", kCounter, "entries", "", "Entries that were copied out of sparse segments",
      "counters of background work"},
     Count<&Statistics::relocated_entries>},
    {{"braiddb_relocated_bytes_total", kCounter, "bytes", "", "Log space of these copies", "counters of background work"},
     Count<&Statistics::relocated_bytes>},
    {{"braiddb_collapsed_keys_total", kCounter, "keys", "", "Keys whose operands were replaced by a put",
      "counters of background work"},
     Count<&Statistics::collapsed_keys>},
    {{"braiddb_job_running", kGauge, "", "job", "1 while this job runs or is pending, else 0", "the background threads"},
     [](const Figures& f, Samples* s) {
       for (const Figures::Job& job : f.jobs) s->Add(job.runs ? 1 : 0, {{"job", job.name}});
     }},
    {{"braiddb_job_progress_ratio", kGauge, "ratio", "job",
      "The part of a running job that is done, from 0 to 1, where it is known", "the background threads"},
     [](const Figures& f, Samples* s) {
       for (const Figures::Job& job : f.jobs) {
         if (job.runs && job.progress >= 0) s->Add(std::min(1.0, job.progress), {{"job", job.name}});
       }
     }},

    // ---- Persistence
    {{"braiddb_background_flushed_lines_total", kCounter, "lines", "", "Cache lines that background work flushed",
      "counters of background work"},
     Count<&Statistics::flushed_lines>},
    {{"braiddb_pm_written_lines_total", kCounter, "lines", "", "Cache lines flushed; 0 without Options::count_pm_writes",
      "counters of persistence"},
     Count<&Statistics::pm_written_lines>},
    {{"braiddb_pm_written_xplines_total", kCounter, "xplines", "",
      "Units of 256 bytes written, once between two fences of a thread; 0 without Options::count_pm_writes",
      "counters of persistence"},
     Count<&Statistics::pm_written_xplines>},
    {{"braiddb_pm_fences_total", kCounter, "fences", "", "Fences; 0 without Options::count_pm_writes", "counters of persistence"},
     Count<&Statistics::pm_fences>},

    // ---- Readers, recovery, health
    {{"braiddb_snapshots", kGauge, "snapshots", "", "Snapshots and iterators that are not released", "the list of snapshots"},
     [](const Figures& f, Samples* s) { s->Add(f.snapshots); }},
    {{"braiddb_oldest_snapshot_sequence", kGauge, "", "",
      "Sequence number of the oldest snapshot or iterator; 0 if there is none", "the list of snapshots"},
     [](const Figures& f, Samples* s) { s->Add(f.oldest_snapshot_sequence); }},
    {{"braiddb_oldest_snapshot_age_seconds", kGauge, "seconds", "", "Age of the oldest snapshot or iterator; 0 if there is none",
      "the list of snapshots"},
     [](const Figures& f, Samples* s) { s->Add(f.oldest_snapshot_seconds); }},
    {{"braiddb_last_sequence", kGauge, "", "", "The largest sequence number of a write", "counters of threads"},
     [](const Figures& f, Samples* s) { s->Add(f.last_sequence); }},
    {{"braiddb_recovery_replayed_entries", kGauge, "entries", "", "Log entries that the open replayed", "the recovery"},
     Count<&Statistics::replayed_entries>},
    {{"braiddb_recovery_duration_seconds", kGauge, "seconds", "", "Duration of the open until it could serve", "the recovery"},
     CountMicros<&Statistics::recovery_us>},
    {{"braiddb_damage_seen", kGauge, "", "", "1 after a read or a merge met a damaged pointer or entry, else 0", "the regions"},
     [](const Figures& f, Samples* s) { s->Add(f.damage_seen ? 1 : 0); }},
    {{"braiddb_info", kGauge, "", "persist_mode,last_level", "Always 1; its labels describe the database", "the options"},
     [](const Figures& f, Samples* s) {
       s->Add(1, {{"persist_mode", f.persist_mode}, {"last_level", f.last_level}});
     }},
};

const std::vector<MetricDescription>& Descriptions() {
  static const std::vector<MetricDescription> all = [] {
    std::vector<MetricDescription> descriptions;
    for (const Row& row : kRows) descriptions.push_back(row.description);
    return descriptions;
  }();
  return all;
}

}  // namespace

std::span<const MetricDescription> AllMetrics() { return Descriptions(); }

Metrics MakeMetrics(const MetricFigures& figures) {
  Metrics metrics;
  metrics.all.reserve(std::size(kRows));
  for (const Row& row : kRows) {
    Metric metric{&row.description, {}};
    Samples samples(&metric.samples);
    row.read(figures, &samples);
    if (!metric.samples.empty()) metrics.all.push_back(std::move(metric));
  }
  metrics.segments = figures.segments;
  return metrics;
}

const Metric* Metrics::Find(std::string_view name) const {
  for (const Metric& metric : all) {
    if (name == metric.description->name) return &metric;
  }
  return nullptr;
}

double Metrics::Value(std::string_view name, std::span<const std::string_view> label_values) const {
  const Metric* const metric = Find(name);
  if (metric == nullptr) return 0;
  for (const MetricSample& sample : metric->samples) {
    if (std::equal(sample.labels.begin(), sample.labels.end(), label_values.begin(), label_values.end(),
                   [](const auto& label, std::string_view value) { return label.second == value; }))
      return sample.value;
  }
  return 0;
}

}  // namespace braiddb
