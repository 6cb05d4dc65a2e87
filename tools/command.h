// Command: what the verbs of the program `braiddb` share.
#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braiddb/check.h"

namespace braiddb::tools {

// Exit codes, of every verb.
enum ExitCode : int {
  kSound = 0,       // done; nothing is wrong
  kDamaged = 1,     // done; something is damaged or lost, or must be changed
  kCannotLook = 2,  // not done: wrong arguments, no database there, it is open, no permission
};

// The arguments behind the verb.
using Arguments = std::vector<std::string>;

int RunCheck(const Arguments& arguments);
int RunDoctor(const Arguments& arguments);
int RunDump(const Arguments& arguments);
int RunRepair(const Arguments& arguments);

// ---- Parsing

// Options, and one positional argument for each of `positional`. Prints the help, or what is wrong, and sets *exit_code if the
// verb is not to be run.
class CommandLine {
 public:
  enum class Takes : uint8_t { kDatabase, kPaths };
  // kPaths: the options of databases are not there, and the last positional argument may be repeated.
  CommandLine(std::string usage, std::vector<std::string> positional, Takes takes = Takes::kDatabase);

  // Add options before Parse. --help is there, and of kDatabase --region-path and --comparator.
  boost::program_options::options_description_easy_init Add() { return options_.add_options(); }
  bool Parse(const Arguments& arguments, int* exit_code);

  const std::string& Positional(size_t index) const { return values_[index]; }
  const std::vector<std::string>& values() const { return values_; }
  // How to look, with a progress line if the standard error is a terminal; `action` is the word in it.
  CheckOptions MakeCheckOptions(const std::string& action) const;

 private:
  bool Fail(const std::string& why, int* exit_code) const;

  const std::string usage_;
  const std::vector<std::string> positional_;
  const Takes takes_;
  std::vector<std::string> values_;
  std::vector<std::string> region_paths_;
  std::string comparator_;
  boost::program_options::options_description options_{"Options"};
};

// ---- Printing

// Says on the standard error that it could not be done; returns kCannotLook.
int CannotLook(const Status& status);
// "1.5 MiB".
std::string BytesText(uint64_t bytes);
void PrintFinding(const CheckFinding& finding);
// Ends the progress line, if there is one.
void EndProgress();

}  // namespace braiddb::tools
