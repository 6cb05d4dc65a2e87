// braiddb destroy: removes a database.
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "braiddb/db.h"
#include "pmem/database_file.h"
#include "tools/command.h"
#include "tools/import_state.h"

namespace braiddb::tools {

namespace po = boost::program_options;
using Takes = CommandLine::Takes;

namespace {

// Returns an error if no database is at `path`, or none can be reached. A damaged database is one, and so is a database whose
// creation or removal was interrupted: its mark is there.
Status CheckIsDatabase(const std::string& path) {
  std::vector<std::string> families;
  const Status status = DB::ListColumnFamilies({}, path, &families);
  if (!status.IsNotFound() && !status.IsIOError()) return Status::OK();
  DatabaseFile::State state = DatabaseFile::State::kNone;
  DatabaseFile file;
  const bool is_marked = DatabaseFile::Read(path, &state, &file).ok() && state != DatabaseFile::State::kNone;
  return is_marked ? Status::OK() : status;
}

}  // namespace

int RunDestroy(const Arguments& arguments) {
  CommandLine line("braiddb destroy [option...] <database>", {"database"}, Takes::kArguments);
  bool yes = false;
  line.Add()("yes", po::bool_switch(&yes), "do not ask");
  int exit_code = kSound;
  if (!line.Parse(arguments, &exit_code)) return exit_code;
  const std::string& path = line.Positional(0);
  if (Status status = CheckIsDatabase(path); !status.ok()) return CannotLook(status);
  if (!yes) {
    if (isatty(STDIN_FILENO) == 0) return line.Refuse("destroy asks first, and the standard input is no terminal; use --yes");
    std::fprintf(stderr, "Remove the database %s and all of its data? Type yes: ", path.c_str());
    std::string answer;
    std::getline(std::cin, answer);
    if (answer != "yes") return CannotLook(Status::Aborted("nothing was removed"));
  }
  Status status = DB::Destroy({}, path);
  if (status.ok()) status = RemoveImportState(path);
  return status.ok() ? kSound : CannotLook(status);
}

}  // namespace braiddb::tools
