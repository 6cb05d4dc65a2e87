// Copies of a database: what checkpoints and backups are.
#pragma once

#include <string>

#include "braiddb/db.h"

namespace braiddb::capi {

// Makes a database in `path` with what `db` has now; other threads may go on writing. It has the same comparator, last level and
// number of regions. InvalidArgument if there is something at `path`. Everything is read and written once.
// CRASH  What is at <path>.tmp then is not complete, and the next copy to that path removes it.
// `inside`: its regions are in its directory, also where the environment variables put those of others elsewhere.
Status CopyDatabase(DB* db, const std::string& path, bool inside);

// Puts a copy of the files of a closed database that has its regions in its directory in the place of what is at `path`, which is
// destroyed when the copy has its name. Busy if that is open. Throws std::filesystem::filesystem_error.
Status CopyClosedDatabase(const std::string& from, const std::string& path);

}  // namespace braiddb::capi
