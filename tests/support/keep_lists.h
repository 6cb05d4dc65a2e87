// KeepListsOfRestoredTables: tables of L0 that an open restores stay lists, for tests of lists.
#pragma once

#include "util/sync_point.h"

namespace braiddb::test {

// No background thread builds an index and a sorted run of restored tables, until SyncPoints::Clear.
inline void KeepListsOfRestoredTables() {
  SyncPoints::Instance().SetCallback("DBImpl::IndexRestoredTables",
                                     [](void* is_put_off) { *static_cast<bool*>(is_put_off) = true; });
  SyncPoints::Instance().Enable();
}

}  // namespace braiddb::test
