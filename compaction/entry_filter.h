// EntryFilter: what the user's compaction filter says of the versions that a merge or a sweep is about to keep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "log/log_entry.h"
#include "util/mutant.h"

namespace braiddb {

// Of one thread of a job.
// Thread safety: one thread at a time, outside of epochs: it may take as long as it likes.
class EntryFilter {
 public:
  virtual ~EntryFilter() = default;

  // A put that is the newest of the versions that stay. True: it goes, as a tombstone with nothing to hide does. `from_table`: it
  // comes from L0; otherwise it is in the last level. `alone`: nothing else of its key stays; only then true is an answer, for
  // what is older would come back.
  virtual bool Drops(const LogEntry& entry, bool from_table, bool alone) = 0;

  // An entry that went is marked dead, for whoever looks from now on. Called before its segment can be released.
  virtual void Forget(const LogEntry& entry) = 0;
};

// Of one job, for its threads.
// Thread safety: any number of threads.
class EntryFilterSource {
 public:
  virtual ~EntryFilterSource() = default;
  // Null: nothing is filtered.
  virtual std::unique_ptr<EntryFilter> NewFilter() = 0;
};

// After VersionFilter::Decide: asks about the newest version that stays, and returns it if it goes; its `keep` is false then. A
// put that is the newest version of all, and does not stay, since a range tombstone hides it, is returned, and nothing is asked;
// one that was marked by an earlier run is nobody's business any more.
// `versions`: of one key, from the newest to the oldest, as Decide has them.
template <class Version, class IsFromTable>
const Version* FilterNewest(EntryFilter* filter, const IsFromTable& is_from_table, std::vector<Version>* versions) {
  const auto first = std::find_if(versions->begin(), versions->end(), [](const Version& version) { return !version.moved; });
  if (first != versions->end() && !first->keep && first->entry->type() == EntryType::kPut) {
    return first->entry->is_dead() ? nullptr : &*first;
  }
  Version* newest = nullptr;
  size_t kept = 0;
  for (Version& version : *versions) {
    if (!version.keep) continue;
    if (kept++ == 0) newest = &version;
  }
  if (newest == nullptr || newest->entry->type() != EntryType::kPut) return nullptr;
  if (!filter->Drops(*newest->entry, is_from_table(*newest), kept == 1 || BRAIDDB_MUTANT("filter-drops-above-older")))
    return nullptr;
  newest->keep = false;
  return newest;
}

}  // namespace braiddb
