// CheckFiles: CheckDatabase for a caller that holds the database's lock already.
#pragma once

#include <string>
#include <vector>

#include "braiddb/check.h"
#include "check/media.h"
#include "index/key_order.h"
#include "pmem/posix.h"

namespace braiddb {

Status CheckFiles(const CheckOptions& options, const std::string& path, CheckReport* report);

// Takes a shared lock of the database's file LOCK, which excludes opens to write. Does nothing if the file does not exist.
// Busy: the database is open. `lock` holds the lock until its destruction.
Status LockForReading(const std::string& path, posix::Fd* lock);

// Finds the comparator with the name that the MANIFEST has for the family, among the options' and the built-in ones.
// NotSupported: none has the name.
Status ChooseComparator(const CheckOptions& options, const MediaFamily& family, const Comparator** result);
// Sets *orders to the key order of each of media.families(). Errors as of ChooseComparator.
Status ChooseOrders(const CheckOptions& options, const Media& media, std::vector<KeyOrder>* orders);

}  // namespace braiddb
