#include "levels/sorted_runs/sorted_runs_level.h"

#include "levels/sorted_runs/runs_media.h"
#include "util/format.h"
#include "util/mutant.h"

namespace braiddb {
namespace {

// Segments per run. The last segment of a run is half empty on average, in each region, so one segment per run would waste a
// large share.
constexpr uint64_t kRunSegments = 4;
constexpr uint64_t kCrashTestRun = 1024;

}  // namespace

constinit const LevelKind SortedRunsLevel::kKind = {
    .id = L1Kind::kSortedRuns,
    .name = "sorted_runs",
    .constant = "kSortedRuns",
    .copies_entries = true,
    .needs_space_to_merge = true,
    .manifest_flag = 64,
    .create = [](const Options&, RegionSet* regions, SegmentAllocator*,
                 const LevelPlace& place) { return SortedRuns::Create(regions, place); },
    .open = [](const Options& options, const Parts& parts, uint64_t /*job*/,
               std::unique_ptr<LastLevel>* result) { return Open(options, parts, result); },
    .new_media = []() -> std::unique_ptr<LevelMedia> { return std::make_unique<RunsMedia>(); },
};

// Opens the list of runs. No journal exists: an interrupted merge is run again by the caller.
Status SortedRunsLevel::Open(const Options& options, const Parts& parts, std::unique_ptr<LastLevel>* result) {
  const uint64_t usual = kCrashTest ? kCrashTestRun : kRunSegments * options.segment_size;
  const RunSizes sizes{parts.run_bytes == 0 ? usual : parts.run_bytes, options.l1_index_size};
  std::unique_ptr<SortedRunsLevel> level(new SortedRunsLevel(parts, sizes));
  Status status = SortedRuns::Open(parts.regions, parts.segments, parts.epochs, parts.order, parts.place, &level->runs_);
  if (status.ok()) *result = std::move(level);
  return status;
}

Status SortedRunsLevel::Merge(const MergeJob& job, const std::vector<const PmTable*>& tables, MergeStats* stats) {
  return tables.empty() ? Sweep(job, {KeyRange()}, stats) : MergeIntoRuns(parts_, runs_.get(), sizes_, job, tables, stats);
}

Status SortedRunsLevel::Sweep(const MergeJob& job, const KeyRanges& ranges, MergeStats* stats) {
  return SweepRuns(parts_, runs_.get(), sizes_, job, ranges, stats);
}

std::string SortedRunsLevel::Describe() const {
  const SortedRuns::Stats stats = runs_->GetStats();
  return Format("sorted runs: %llu, of %llu entries, in segments of %llu bytes; indexes over tall nodes: %llu bytes\n",
                static_cast<unsigned long long>(stats.runs), static_cast<unsigned long long>(stats.entries),
                static_cast<unsigned long long>(stats.bytes), static_cast<unsigned long long>(stats.index_bytes));
}

}  // namespace braiddb
