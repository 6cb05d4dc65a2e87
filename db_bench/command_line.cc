#include "db_bench/command_line.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "db_bench/foreign_flags.h"

namespace braiddb::bench {

namespace {

namespace po = boost::program_options;

// A flag file may name further files, up to this depth.
constexpr int kDeepestFlagfile = 8;

// Only switches have no value.
bool IsSwitch(const po::options_description& known, const std::string& name) {
  const po::option_description* const option = known.find_nothrow(name, false);
  return option != nullptr && option->semantic()->min_tokens() == 0;
}

// gflags accepts t, y, f, n in addition to Boost's words, in upper and lower case.
std::string SwitchValue(std::string value) {
  std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::tolower(c); });
  if (value == "t" || value == "y") return "true";
  if (value == "f" || value == "n") return "false";
  return value;
}

void Normalize(const std::vector<std::string>& arguments, const po::options_description& known, int depth,
               std::vector<std::string>* normalized);

void ReadFlagfile(const std::string& path, const po::options_description& known, int depth,
                  std::vector<std::string>* normalized) {
  std::ifstream file(path);
  if (!file || depth > kDeepestFlagfile) throw std::invalid_argument("--flagfile=" + path + " cannot be read");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    const size_t begin = line.find_first_not_of(" \t"), end = line.find_last_not_of(" \t\r");
    if (begin != std::string::npos && line[begin] != '#') lines.push_back(line.substr(begin, end + 1 - begin));
  }
  if (file.bad()) throw std::invalid_argument("--flagfile=" + path + " cannot be read");  // of a directory
  Normalize(lines, known, depth, normalized);
}

void Normalize(const std::vector<std::string>& arguments, const po::options_description& known, int depth,
               std::vector<std::string>* normalized) {
  constexpr std::string_view kFlagfile = "--flagfile";
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string argument = arguments[i];
    if (argument.size() > 2 && argument[0] == '-' && argument[1] != '-') argument.insert(0, "-");
    if (argument == kFlagfile && i + 1 < arguments.size()) argument += "=" + arguments[++i];
    if (argument.starts_with("--flagfile=")) {
      ReadFlagfile(argument.substr(kFlagfile.size() + 1), known, depth + 1, normalized);
      continue;
    }
    const size_t equals = argument.find('=');
    if (argument.starts_with("--no") && known.find_nothrow(argument.substr(2), false) == nullptr) {
      if (IsSwitch(known, argument.substr(4))) argument = "--" + argument.substr(4) + "=false";
    } else if (argument.starts_with("--") && equals != std::string::npos && IsSwitch(known, argument.substr(2, equals - 2))) {
      argument = argument.substr(0, equals + 1) + SwitchValue(argument.substr(equals + 1));
    }
    normalized->push_back(std::move(argument));
  }
}

}  // namespace

std::vector<std::string> NormalizeArguments(const std::vector<std::string>& arguments, const po::options_description& known) {
  std::vector<std::string> normalized;
  Normalize(arguments, known, 0, &normalized);
  return normalized;
}

void JudgeUnknown(const std::vector<po::option>& options) {
  for (size_t i = 0; i < options.size(); ++i) {
    const po::option& option = options[i];
    if (option.position_key >= 0) throw std::invalid_argument("'" + option.value.front() + "' is not of the form --flag=value");
    if (!option.unregistered) continue;
    std::string value = option.value.empty() ? "" : option.value.front();
    // "--foreign value": Boost does not know that the flag has a value, and parses the value as a positional argument.
    if (option.value.empty() && i + 1 < options.size() && options[i + 1].position_key >= 0) value = options[++i].value.front();
    const ForeignFlag judged = JudgeForeignFlag(option.string_key, value);
    if (!judged.accepted) throw std::invalid_argument(judged.message);
    std::fprintf(stderr, "note: %s\n", judged.message.c_str());
  }
}

void KeepLast(std::vector<po::option>* options) {
  std::set<std::string> seen;
  std::vector<po::option> kept;
  for (auto option = options->rbegin(); option != options->rend(); ++option) {
    if (option->unregistered || seen.insert(option->string_key).second) kept.push_back(std::move(*option));
  }
  options->assign(kept.rbegin(), kept.rend());
}

}  // namespace braiddb::bench
