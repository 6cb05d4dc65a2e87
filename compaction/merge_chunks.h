// MergeChunks: merges the chunks of a plan on several threads, for kinds of last level whose chunks do not depend on each other.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "braiddb/status.h"
#include "compaction/chunk_reader.h"
#include "compaction/last_level.h"
#include "compaction/merge_plan.h"
#include "compaction/merge_stats.h"
#include "util/run_parallel.h"

namespace braiddb {

// STEPS  Threads claim chunks by fetch-and-increment, so each chunk is merged by one thread. The first error stops all threads.
// COST   Each thread counts separately, and adds its counts at the end.
//
// `Merger(&stats)` makes the merger of one thread: `MergeItems(items)` merges a chunk, `Finish()` makes all of its stores
// durable, also after an error; both return a Status. `on_merged(chunk, &merger)` is called after each chunk, by its thread.
// Returns Aborted if stopped.
template <class NewMerger, class OnMerged>
Status MergeChunks(const LastLevelParts& parts, const MergeJob& job, const MergePlan& plan, MergeStats* stats,
                   const NewMerger& new_merger, const OnMerged& on_merged) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  Status first;
  const auto merge = [&](auto* merger) {
    ChunkReader reader(parts.regions, parts.order);
    std::vector<ChunkItem> items;
    for (size_t chunk = next++; chunk < plan.chunks(); chunk = next++) {
      if (failed.load(std::memory_order_relaxed)) return Status::OK();
      if (job.stop != nullptr && job.stop->load(std::memory_order_acquire)) return Status::Aborted("stopped");
      if (!reader.Read(plan.pieces(chunk), &items)) return RegionSet::DamagedList();
      if (Status status = merger->MergeItems(items); !status.ok()) return status;
      on_merged(chunk, merger);
      if (job.settled != nullptr) job.settled->fetch_add(items.size(), std::memory_order_relaxed);
    }
    return Status::OK();
  };
  const auto threads = std::min<size_t>(std::max(1u, job.threads), std::max<size_t>(1, plan.chunks() / 4));
  RunParallel(static_cast<uint32_t>(threads), [&](uint32_t) {
    MergeStats own;
    Status status;
    {
      auto merger = new_merger(&own);
      status = merge(&merger);
      // ORDER: what the thread has stored is durable also if the merge fails or is stopped. The merge is done again, takes it for
      // done, and the MANIFEST forgets the tables. [CC-45]
      if (const Status finished = merger.Finish(); status.ok()) status = finished;
    }
    const std::lock_guard lock(mutex);
    stats->Add(own);
    if (!first.ok() || status.ok()) return;
    first = status;
    failed.store(true, std::memory_order_relaxed);
  });
  return first;
}

}  // namespace braiddb
