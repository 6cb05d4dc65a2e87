// The database whose content a checkpoint or a backup copies. Defined in txn/secondary_db.cc.
#pragma once

#include "db/db_impl.h"

namespace braiddb {

// Returns the database below all wrappers. For a secondary: the database that holds its copy of the primary, which GetRootDB does
// not give away because callers could write to it. Null if `db` is of a class of the user's own.
DBImpl* CopiedDatabase(DB* db);

}  // namespace braiddb
