// Which PersistMode is right for a file system.
#pragma once

#include <string>

#include "braiddb/options.h"
#include "braiddb/status.h"

namespace braiddb {

// `file` is an existing regular file, opened for nothing but probing. kAuto becomes kEadr or kCacheLine on DAX, kEmulated on
// tmpfs and hugetlbfs, kPage elsewhere. Any other request is passed on if it is safe there, and is InvalidArgument, with
// advice, if it is not.
Status ResolvePersistMode(const std::string& file, PersistMode requested, PersistMode* resolved);

// As options files have it: "cache-line".
const char* NameOf(PersistMode mode);

}  // namespace braiddb
