// EntryFilter: asks the user's compaction filter about versions that a merge or a sweep would keep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "log/log_entry.h"
#include "util/mutant.h"

namespace braiddb {

// Used by one thread of a job.
// Thread safety: one thread at a time. Called outside of epochs, so a call may take any time.
class EntryFilter {
 public:
  virtual ~EntryFilter() = default;

  // Asks about a put that is the newest of the kept versions. True: the put is dropped like a tombstone that hides nothing.
  // `from_table`: the put is in L0; otherwise in the last level. `alone`: no other version of the key is kept. True may be
  // returned only if `alone`, because an older version would become visible again.
  // Example: put@9 is kept for readers, put@4 for a snapshot. If put@9 were dropped, new readers would find put@4. So Drops
  // must return false. The implementation may write a deletion instead.
  virtual bool Drops(const LogEntry& entry, bool from_table, bool alone) = 0;

  // Tells the filter that a dropped entry is marked dead and that new readers skip it. Called before the entry's segment can be
  // released.
  virtual void Forget(const LogEntry& entry) = 0;
};

// Creates the filters of one job, one for each thread.
// Thread safety: any number of threads.
class EntryFilterSource {
 public:
  virtual ~EntryFilterSource() = default;
  // Returns null if nothing is filtered.
  virtual std::unique_ptr<EntryFilter> NewFilter() = 0;
};

// Call after VersionFilter::Decide. Asks the filter about the newest kept version. If the filter drops the version, clears its
// `keep` and returns it. Otherwise returns null.
// If the newest version of all is a put that a range tombstone hides, the function returns that put without asking. If that put
// was marked dead by an earlier run, the function returns null.
// `versions`: all versions of one key, newest first, as for Decide.
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
