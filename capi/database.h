// Opening and closing, for the parts of the C API that open databases of their own.
#pragma once

#include <string>

#include "braiddb/status.h"
#include "capi/objects.h"

namespace braiddb::capi {

Status OpenDatabase(const braiddb_options_t& options, const std::string& path, braiddb_t** db);
Status CloseDatabase(braiddb_t* db);

}  // namespace braiddb::capi
