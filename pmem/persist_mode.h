// ResolvePersistMode: chooses the PersistMode for a file system, and refuses modes that would not make stores durable there.
//
//   medium                          kAuto becomes               also allowed
//   DAX file system, dax device     kEadr or kCacheLine         the other one if the platform has it; kPage on a file system
//   tmpfs, hugetlbfs                kEmulated                   kPage
//   other file systems              kPage                       none
#pragma once

#include <span>
#include <string>

#include "braiddb/options.h"
#include "braiddb/status.h"

namespace braiddb {

// Sets *resolved for an existing regular file or dax device, which is opened for probing and does not change. A request other
// than kAuto is the result if it is safe on the medium. InvalidArgument, with advice: the request is not safe there. IOError,
// NotFound: the file cannot be probed. Thread-safe.
Status ResolvePersistMode(const std::string& file, PersistMode requested, PersistMode* resolved);

// The name of a mode in options files, properties and on command lines. The C API uses the same names for its environment
// variable; it has its own table, since it includes public headers only.
struct PersistModeName {
  PersistMode mode;
  const char* name;
};
// Returns the names of all modes.
std::span<const PersistModeName> PersistModeNames();
// Returns the name of a mode, or "unknown" for a value that is no mode.
const char* NameOf(PersistMode mode);

}  // namespace braiddb
