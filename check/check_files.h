// CheckFiles: CheckDatabase for a caller who holds the database's lock already.
#pragma once

#include <string>
#include <vector>

#include "braiddb/check.h"
#include "check/media.h"
#include "index/key_order.h"
#include "pmem/posix.h"

namespace braiddb {

Status CheckFiles(const CheckOptions& options, const std::string& path, CheckReport* report);

// Keeps others from opening the database, as far as a lock can that changes no file. Busy if it is open.
Status LockForReading(const std::string& path, posix::Fd* lock);

// One of the options or a built-in one, whichever has the name that the MANIFEST gives for the family; NotSupported if none has.
Status ChooseComparator(const CheckOptions& options, const MediaFamily& family, const Comparator** result);
// Of each of media.families().
Status ChooseOrders(const CheckOptions& options, const Media& media, std::vector<KeyOrder>* orders);

}  // namespace braiddb
