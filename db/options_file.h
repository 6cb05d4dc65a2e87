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

// A message of the LOG, and lines that belong to it.
struct OptionsLogMessage {
  std::string line;
  std::vector<std::string> details = {};
};

// The options as RocksDB's LOG has them: "Options.<name>: <value>", with 1 and 0 for true and false. Those of a family follow
// "--------------- Options for column family [<name>]:". The foreign options of its tables are details of one message, in the
// form "<name>: <value>"; the size of the block cache is "block_cache_options:" and "  capacity : <bytes>".
std::vector<OptionsLogMessage> OptionsAsLogMessages(const Options& options, const std::vector<ColumnFamilyDescriptor>& families);

}  // namespace braiddb
