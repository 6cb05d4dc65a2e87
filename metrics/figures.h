// MetricFigures: the numbers of a database from which the rows of the registry take their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "braiddb/metrics.h"
#include "braiddb/statistics.h"

namespace braiddb {

// Durations of a sample of calls. Bucket 0 has those below kFirstBoundNs. Each further bucket ends at four times the bound before
// it; the last bucket has no bound.
struct SampledDurations {
  static constexpr uint64_t kFirstBoundNs = 256;
  static constexpr size_t kBuckets = 15;
  uint64_t counts[kBuckets] = {};
  uint64_t sum_ns = 0;
};

// Plain numbers, so that the registry knows no part of the engine. Sizes are in bytes.
struct MetricFigures {
  Statistics statistics;
  bool has_histograms = false;
  Histograms histograms;
  SampledDurations sampled_gets;
  SampledDurations sampled_writes;
  const char* persist_mode = "";
  std::string last_level;  // of the default family

  struct Family {
    std::string name;
    uint64_t memtable_entries = 0;
    uint64_t immutable_entries = 0;
    uint64_t l0_entries = 0;
    uint64_t l1_entries = 0;
    uint64_t l0_tables = 0;
    uint64_t unindexed_tables = 0;  // of these
    uint64_t l1_dram = 0;
  };
  std::vector<Family> families;

  struct Region {
    uint64_t reserved = 0;  // file space
    uint64_t segments = 0;  // in use
    uint64_t segment_bytes = 0;
    uint64_t free_segments = 0;
    uint64_t free_bytes = 0;
    uint64_t punched_bytes = 0;  // of these: given back to the file system
  };
  std::vector<Region> regions;
  std::vector<SegmentFigures> segments;
  bool defers_releases = false;

  struct Dram {
    uint64_t memtable = 0;
    uint64_t immutable_memtables = 0;
    uint64_t l0_orders = 0;
    uint64_t l0_indexes = 0;
    uint64_t last_levels = 0;
    uint64_t range_tombstones = 0;
    uint64_t lookup_cache = 0;
    uint64_t filter = 0;

    uint64_t Sum() const {
      return memtable + immutable_memtables + l0_orders + l0_indexes + last_levels + range_tombstones + lookup_cache + filter;
    }
  } dram;

  struct Throttle {
    bool by_flushes = false;
    bool by_merges = false;
    bool by_space = false;
    bool by_full_region = false;
    bool is_stopped = false;
    double delay_ns = 0;           // per entry, because of merges
    uint64_t waiting_writers = 0;  // for space or for room in a region
  } throttle;

  uint64_t immutable_memtables = 0;
  uint64_t backlog_entries = 0;  // of L0 that no merge has settled
  uint64_t backlog_bytes = 0;    // log space of memtables and L0
  uint64_t snapshots = 0;
  uint64_t oldest_snapshot_sequence = 0;
  double oldest_snapshot_seconds = 0;
  uint64_t last_sequence = 0;
  uint64_t range_tombstones = 0;
  bool damage_seen = false;

  struct Job {
    const char* name;
    bool runs = false;
    double progress = 0;  // in [0, 1]; -1: unknown
  };
  std::vector<Job> jobs;
};

// The registry's rows applied to the figures.
Metrics MakeMetrics(const MetricFigures& figures);

}  // namespace braiddb
