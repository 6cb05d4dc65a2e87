// CheckFiles: CheckDatabase for a caller who holds the database's lock already.
#pragma once

#include <string>

#include "braiddb/check.h"
#include "pmem/posix.h"

namespace braiddb {

Status CheckFiles(const CheckOptions& options, const std::string& path, CheckReport* report);

// Keeps others from opening the database, as far as a lock can that changes no file. Busy if it is open.
Status LockForReading(const std::string& path, posix::Fd* lock);

// `wanted` or a built-in one, whichever has the name; NotSupported if neither has.
Status ChooseComparator(const std::string& name, const Comparator* wanted, const Comparator** result);

}  // namespace braiddb
