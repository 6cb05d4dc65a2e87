// The options that a database is opened with by a program that is not its own.
#pragma once

#include <string>
#include <vector>

#include "braiddb/db.h"

namespace braiddb::tools {

// Loads the stored options, for an open of an existing database, and one descriptor for each column family that exists. The file
// OPTIONS may be missing or older; families that it does not list have default options. Changes the results only on success.
//   `region_paths`: as Options::region_paths. `comparator`: of the default family; null: the stored one.
//   NotFound      there is no database
//   NotSupported  a family has a comparator that is not built in
Status LoadStoredFamilies(const std::string& path, const std::vector<std::string>& region_paths, const Comparator* comparator,
                          Options* options, std::vector<ColumnFamilyDescriptor>* families);

}  // namespace braiddb::tools
