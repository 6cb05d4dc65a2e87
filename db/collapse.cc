// Collapse: merge operands in the last level are replaced by puts. The puts are written to a table of copies, which becomes the
// oldest table of L0, as in a relocation.
#include "compaction/collapse.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "util/format.h"
#include "util/sync_point.h"

namespace braiddb {

// The number of keys per family that are remembered until a collapse takes them. Keys wait if readers hold old copies, or if the
// family has no merge operator.
static constexpr size_t kMaxWaitingKeys = MergeStats::kMostOperandKeys;

// REQUIRES: compaction_mutex_
void DBImpl::NoteOperandKeys(const Family& family, std::vector<std::string> keys) {
  if (family.options.merge_operator == nullptr || keys.empty()) return;
  std::vector<std::string>& waiting = operand_keys_[family.id];
  if (waiting.empty()) {
    waiting = std::move(keys);
  } else {
    std::move(keys.begin(), keys.end(), std::back_inserter(waiting));
  }
  if (waiting.size() > kMaxWaitingKeys) waiting.resize(kMaxWaitingKeys);
}

// REQUIRES: as RelocateSparse.
Status DBImpl::CollapseOperands(bool* collapsed) try {
  *collapsed = false;
  if (operand_keys_.empty()) return Status::OK();
  const uint64_t boundary = BoundaryOfCopies();
  Status status;
  while (boundary != 0 && !operand_keys_.empty() && status.ok() && !*collapsed) {
    const auto waiting = operand_keys_.begin();
    const Family* const family = FindFamily(waiting->first);
    if (family == nullptr || family->is_gone.load(std::memory_order_acquire)) {
      operand_keys_.erase(waiting);
      continue;
    }
    status = CollapseFamily(*family, &waiting->second, collapsed);
    if (waiting->second.empty()) operand_keys_.erase(waiting);
    if (OutcomeOf(Work::kMakeCopies, status) != Outcome::kLater) continue;
    Log("collapse: " + status.ToString());
    return Status::OK();  // reads of uncollapsed operands are right; a later call collapses them
  }
  return status;
} catch (const std::bad_alloc&) {
  Settle(Work::kInstall, NoMemory());  // the MANIFEST may list the table although the view does not have it
  return NoMemory();
}

// Takes keys from the end of *keys.
Status DBImpl::CollapseFamily(const Family& family, std::vector<std::string>* keys, bool* collapsed) {
  const KeyOrder& order = family.order;
  std::sort(keys->begin(), keys->end(), [&](const auto& a, const auto& b) { return order.Compare(a, b) < 0; });
  keys->erase(std::unique(keys->begin(), keys->end(), [&](const auto& a, const auto& b) { return order.Same(a, b); }),
              keys->end());
  const PinnedView pinned(this);
  std::vector<RelocationJob::Family> families(family.id + 1);
  families[family.id] = {&order, pinned.view().Of(family.id)->l1.get(), MergedBoundary(family)};
  Relocation relocation;
  const std::shared_ptr<const RangeTombstones> ranges = RangesOf(family);
  const RelocationJob job{regions_.get(), segments_.get(), std::move(families), &stopping_,
                          live_heap_.load(std::memory_order_acquire)};
  const VersionFilter snapshots(CopySnapshots());
  Status status = CollapseKeys(job, family.id, *family.options.merge_operator, ranges.get(), snapshots, dram_.most_relocated,
                               keys, &relocation);
  counters_.flushed_lines.fetch_add(relocation.flushed_lines, std::memory_order_relaxed);
  if (!status.ok() || relocation.tables.empty()) return status;
  status = PublishCopies(&relocation);
  if (!status.ok()) {
    Settle(Work::kMakeCopies, status);
    return status;
  }
  counters_.collapsed_keys.fetch_add(relocation.moves.size(), std::memory_order_relaxed);
  Log(Format("collapse: operands of %zu keys, %llu bytes", relocation.moves.size(),
             static_cast<unsigned long long>(relocation.bytes)));
  *collapsed = true;
  return status;
}

// REQUIRES: as RelocateSparse.
Status DBImpl::CollapseAll() {
  for (bool more = true; more;) {
    // Threads of the database read a view for a moment only, unless they have no CPU.
    if (!operand_keys_.empty()) ReleaseMovedWithin(std::chrono::milliseconds(50));
    Status status = CollapseOperands(&more);
    if (status.ok() && more) status = CompactTables();
    if (!status.ok()) return status;
  }
  return Status::OK();
}

}  // namespace braiddb
