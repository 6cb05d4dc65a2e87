// ParseCampaignFlags: what the programs of the long test campaigns do with their command line before they look at it.
#pragma once

#include <boost/program_options.hpp>
#include <iostream>
#include <optional>

namespace braiddb::test {

inline constexpr int kUsageError = 2;

// Fills *values and what `description` points to. An exit code if the program is to end at once: after --help, or a wrong flag.
inline std::optional<int> ParseCampaignFlags(int argc, char** argv, const char* program,
                                             const boost::program_options::options_description& description,
                                             boost::program_options::variables_map* values) {
  namespace po = boost::program_options;
  try {
    po::store(po::command_line_parser(argc, argv).options(description).run(), *values);
    po::notify(*values);
  } catch (const po::error& error) {
    std::cerr << program << ": " << error.what() << "; --help lists the options\n";
    return kUsageError;
  }
  if (values->count("help") == 0) return std::nullopt;
  std::cout << description;
  return 0;
}

}  // namespace braiddb::test
