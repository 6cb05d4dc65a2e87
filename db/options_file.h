// The options file of a database. This file declares how it is written; braiddb/options_file.h declares how it is read.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "braiddb/options_file.h"

namespace braiddb {

inline constexpr const char* kOptionsFile = "/OPTIONS";

// Returns InvalidArgument for a name of foreign options that the file cannot have, or that is an own option of a family.
Status CheckForeignOptions(const std::map<std::string, std::string>& foreign);

// Sets *paths to the region_paths in the options file of the directory. False if the file cannot be read.
bool NotedRegionPaths(const std::string& path, std::vector<std::string>* paths);

// Replaces the options file in the directory, atomically and durably, if its content would change.
Status WriteOptionsFile(const Options& options, const std::vector<ColumnFamilyDescriptor>& families, const std::string& path);

// The options as lines of the LOG, in RocksDB's form: "Options.<name>: <value>", with 1 and 0 for true and false. The lines of a
// family follow "--------------- Options for column family [<name>]:".
std::vector<std::string> OptionsAsLogLines(const Options& options, const std::vector<ColumnFamilyDescriptor>& families);

}  // namespace braiddb
