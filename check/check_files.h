// CheckFiles: CheckDatabase for a caller who holds the database's lock already.
#pragma once

#include <string>

#include "braiddb/check.h"

namespace braiddb {

Status CheckFiles(const CheckOptions& options, const std::string& path, CheckReport* report);

}  // namespace braiddb
