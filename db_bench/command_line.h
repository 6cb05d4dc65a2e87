// Parses the command line by the rules of gflags, which RocksDB's db_bench uses, on top of Boost.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

namespace braiddb::bench {

// Converts gflags' syntax to Boost's: one dash to two, --noflag and --flag=t of switches, and --flagfile=file to the flags in the
// file, one per line. Throws std::invalid_argument if the file does not exist.
std::vector<std::string> NormalizeArguments(const std::vector<std::string>& arguments,
                                            const boost::program_options::options_description& known);

// Accepts unknown flags that have no effect, with a note. For others throws std::invalid_argument with the reason.
void JudgeUnknown(const std::vector<boost::program_options::option>& options);

// If a flag is given twice, the last value counts. Scripts can therefore append flags.
void KeepLast(std::vector<boost::program_options::option>* options);

}  // namespace braiddb::bench
