// Command: common parts of the subcommands of the program `braiddb`.
#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braiddb/check.h"

namespace braiddb::tools {

// Exit codes of all subcommands.
enum ExitCode : int {
  kSound = 0,       // done, no errors found
  kDamaged = 1,     // done; data is damaged or lost, or something must be changed
  kCannotLook = 2,  // not done: wrong arguments, no database, the database is open, or no permission
};

// The arguments behind the subcommand.
using Arguments = std::vector<std::string>;

int RunBackup(const Arguments& arguments);
int RunBench(const Arguments& arguments);
int RunCheck(const Arguments& arguments);
int RunCheckpoint(const Arguments& arguments);
int RunDestroy(const Arguments& arguments);
int RunDoctor(const Arguments& arguments);
int RunDump(const Arguments& arguments);
int RunExport(const Arguments& arguments);
int RunImport(const Arguments& arguments);
int RunLoad(const Arguments& arguments);
int RunReaders(const Arguments& arguments);
int RunRepair(const Arguments& arguments);
int RunRestore(const Arguments& arguments);
int RunShell(const Arguments& arguments);
int RunServe(const Arguments& arguments);
int RunTop(const Arguments& arguments);

// ---- Parsing

// Parses options into `map`, and calls their notifiers. Throws boost::program_options::error, also for a negative number where
// the option is unsigned: boost would convert it to a large one.
void ParseOptions(const Arguments& arguments, const boost::program_options::options_description& options,
                  const boost::program_options::positional_options_description& places,
                  boost::program_options::variables_map* map);

// Parses options, and one positional argument for each of `positional`. If the subcommand must not run, prints the help or an
// error and sets *exit_code.
class CommandLine {
 public:
  enum class Takes : uint8_t { kDatabase, kPaths, kArguments };
  // kPaths: without the database options; the last positional argument may be repeated.
  // kArguments: without the database options; up to `optional` positional arguments may follow.
  CommandLine(std::string usage, std::vector<std::string> positional, Takes takes = Takes::kDatabase, size_t optional = 0);

  // Call Add before Parse. --help always exists, and for kDatabase also --region-path and --comparator.
  boost::program_options::options_description_easy_init Add() { return options_.add_options(); }
  bool Parse(const Arguments& arguments, int* exit_code);

  // Prints `why` and the usage. Returns kCannotLook.
  int Refuse(const std::string& why) const;

  const std::string& Positional(size_t index) const { return values_[index]; }
  const std::vector<std::string>& values() const { return values_; }
  // Options for a check. If the standard error is a terminal, shows a progress line with the names of `passes`, if there are any.
  CheckOptions MakeCheckOptions(const std::vector<std::string>& passes) const;

 private:
  bool Fail(const std::string& why, int* exit_code) const;

  const std::string usage_;
  const std::vector<std::string> positional_;
  const Takes takes_;
  const size_t optional_;
  std::vector<std::string> values_;
  std::vector<std::string> region_paths_;
  std::string comparator_;
  boost::program_options::options_description options_{"Options"};
};

// ---- Output

// Prints on the standard error why the subcommand could not run. Returns kCannotLook.
int CannotLook(const Status& status);
// Writes out what is left in the buffer of the standard output. Returns `exit_code`, or kCannotLook after an error message if any
// output was lost.
int FinishOutput(int exit_code);
// Formats as "1.5 MiB".
std::string BytesText(uint64_t bytes);
void PrintFinding(const CheckFinding& finding);
// Ends the progress line, if one is shown.
void EndProgress();

}  // namespace braiddb::tools
