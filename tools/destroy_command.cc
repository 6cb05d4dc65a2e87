// braiddb destroy: removes a database.
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "braiddb/db.h"
#include "tools/command.h"
#include "tools/import_state.h"

namespace braiddb::tools {

namespace po = boost::program_options;
using Takes = CommandLine::Takes;

int RunDestroy(const Arguments& arguments) {
  CommandLine line("braiddb destroy [option...] <database>", {"database"}, Takes::kArguments);
  bool yes = false;
  line.Add()("yes", po::bool_switch(&yes), "do not ask");
  int exit_code = kSound;
  if (!line.Parse(arguments, &exit_code)) return exit_code;
  const std::string& path = line.Positional(0);
  std::vector<std::string> families;
  if (Status status = DB::ListColumnFamilies({}, path, &families); status.IsNotFound()) return CannotLook(status);
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
