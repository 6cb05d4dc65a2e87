// Shared by the properties with numbers (int_properties.cc) and those with texts (admin.cc).
#pragma once

#include <string_view>

#include "db/family.h"
#include "lsm/memtable.h"

namespace braiddb {

// The part of a property's name after "braiddb." or "rocksdb."; empty if the name begins with neither.
std::string_view StripPropertyPrefix(std::string_view property);

// The number of the family's entries in a memtable. The counter of the default family's memtable includes the entries of all
// families, and is updated in portions. The counters of the other families are their own. `uncharged`: entries that the counter
// of the default family's memtable has not yet.
uint64_t EntriesIn(const Memtable& set, const Family& family, uint64_t uncharged = 0);

}  // namespace braiddb
