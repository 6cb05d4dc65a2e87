// Which PersistMode is right for a file system.
#pragma once

#include <span>
#include <string>

#include "braiddb/options.h"
#include "braiddb/status.h"

namespace braiddb {

// `file` is an existing regular file, opened for nothing but probing. kAuto becomes kEadr or kCacheLine on DAX, kEmulated on
// tmpfs and hugetlbfs, kPage elsewhere. Any other request is passed on if it is safe there, and is InvalidArgument, with
// advice, if it is not.
Status ResolvePersistMode(const std::string& file, PersistMode requested, PersistMode* resolved);

// The names of all modes, for options files, properties and command lines. The C API, which sees public headers only, has the
// same names for its environment variable.
struct PersistModeName {
  PersistMode mode;
  const char* name;
};
std::span<const PersistModeName> PersistModeNames();
// "unknown" if it has none.
const char* NameOf(PersistMode mode);

}  // namespace braiddb
