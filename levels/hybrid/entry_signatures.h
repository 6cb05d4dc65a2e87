// EntrySignatures: the signatures of the keys of log entries, for the hash index of a hybrid level.
#pragma once

#include "hash_index/hash_index.h"
#include "log/fetch_entry.h"
#include "log/log_entry.h"
#include "pmem/region_set.h"

namespace braiddb {

class EntrySignatures final : public HashKeys {
 public:
  // `regions`: must outlive the object. `tree_id`: of the hash index.
  EntrySignatures(const RegionSet* regions, uint64_t tree_id) : regions_(*regions), tree_id_(tree_id) {}

  // False if the entry would not lie in the regions as a whole.
  bool SignatureOf(PmPtr place, uint64_t* signature) const override {
    if (!regions_.Holds(place)) return false;
    const auto* const entry = regions_.Resolve<LogEntry>(place);
    if (entry->height() == 0 || entry->height() > kMaxHeight) return false;
    if (!regions_.Holds(place + (LogEntrySize(entry->height(), entry->key_size(), 0) - 8))) return false;
    *signature = KeySignature(tree_id_, entry->key());
    return true;
  }
  void Prefetch(PmPtr place) const override {
    if (regions_.Holds(place)) FetchEntry(regions_.Resolve<LogEntry>(place));
  }

 private:
  const RegionSet& regions_;
  const uint64_t tree_id_;
};

}  // namespace braiddb
