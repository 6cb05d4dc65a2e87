#include "db/dram_budget.h"

#include <algorithm>

#include "index/level_kind.h"

namespace braiddb {
namespace {

constexpr uint64_t kFixedBytes = 6ull << 20;
constexpr uint64_t kBytesPerRegion = 12ull << 20;
constexpr uint64_t kShares = 8;
// Bytes of DRAM per entry. A memtable takes 32 bytes for a node, 16 to 32 for the hash table and two sorted runs of 16, which
// concurrent iterators mostly share. kEntryEverywhere is the sum over all structures that have an entry of the size of one
// memtable: nine memtables; in L0, at 18 bytes an entry, up to four indexes of 16 tables each; and the sorted runs of three times
// kSlowdownTables tables, at up to 20 bytes an entry. While sorted runs of 16 tables are merged, by the flush thread and by a
// merge at once, they take twice as much more, and the runs of four tables from which they were merged still exist. (If memtables
// do not have a power of two of entries, an index takes up to 36 bytes an entry; if keys begin alike, a sorted run may take up to
// 22. These bytes are in the reserve beyond the budget.)
constexpr uint64_t kMemtableEntry = 96;
constexpr uint64_t kEntryEverywhere = 4096;
// The number of tables at which writers are throttled. L0 stays below three times this number.
constexpr uint32_t kSlowdownTables = 12;
constexpr uint32_t kMaxImmutables = 4;
constexpr WritePace::Slope kPace{2, 20, false};
constexpr uint64_t kMinEntries = 1024;

}  // namespace

DramBudget DramBudget::Share(Options* options) {
  DramBudget budget;
  if (options->dram_budget == 0) return budget;
  const uint64_t share = options->dram_budget / kShares;
  budget.total = options->dram_budget;
  options->memtable_max_entries =
      std::clamp(share / kEntryEverywhere / kMinEntries * kMinEntries, kMinEntries, options->memtable_max_entries);
  budget.kept_arena = options->memtable_max_entries * kMemtableEntry;
  if (options->l0_slowdown_writes_trigger == 0 || options->l0_slowdown_writes_trigger > kSlowdownTables)
    options->l0_slowdown_writes_trigger = kSlowdownTables;
  options->l0_compaction_trigger = std::min(options->l0_compaction_trigger, kSlowdownTables / 4);
  options->max_immutable_memtables = std::min(options->max_immutable_memtables, kMaxImmutables);
  budget.pace = kPace;
  budget.most_relocated = std::min(budget.most_relocated, share / 2);
  uint64_t rest = budget.total - kFixedBytes - options->regions * kBytesPerRegion - 2 * share;
  if (FindLevelKind(options->l1)->dram == LevelDram::kIndexShare) {
    options->l1_index_size = std::min(options->l1_index_size, share / 2);
    rest -= 2 * options->l1_index_size;
  }
  budget.cached = rest;
  budget.ranges = share / 2;
  budget.filter = options->filter_bits_per_key == 0 ? 0 : rest / 4;
  if (options->lookup_cache_size != 0) options->lookup_cache_size = rest - budget.filter;
  return budget;
}

}  // namespace braiddb
