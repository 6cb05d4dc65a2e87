// The error of every call that gets an empty path of a database.
#pragma once

#include "braiddb/status.h"

namespace braiddb {

inline Status NoPath() { return Status::InvalidArgument("the path of the database is empty; name a directory"); }

}  // namespace braiddb
