// The command line as gflags, which RocksDB's db_bench uses, would read it, for Boost.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

namespace braiddb::bench {

// One dash becomes two, --noflag and --flag=t of a switch what Boost calls them, and --flagfile=file the flags that are in the
// file, one a line. Throws std::invalid_argument if there is no such file.
std::vector<std::string> NormalizeArguments(const std::vector<std::string>& arguments,
                                            const boost::program_options::options_description& known);

// Notes what Boost did not recognize and has no effect; throws std::invalid_argument, which says why, for the rest of it.
void JudgeUnknown(const std::vector<boost::program_options::option>& options);

// Of a flag that is given twice the last one counts: so scripts can append to a command.
void KeepLast(std::vector<boost::program_options::option>* options);

}  // namespace braiddb::bench
