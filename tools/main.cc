// braiddb: reads, writes, moves, verifies and repairs databases.
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "tools/command.h"
#include "tools/database_verb.h"
#include "util/standard_streams.h"

namespace {

using braiddb::tools::Arguments;

struct Verb {
  std::string_view name;
  int (*run)(const Arguments& arguments);
  const char* what;
};

// The verbs that open a database themselves. DatabaseVerbs() has all others.
constexpr Verb kVerbs[] = {
    {"backup", braiddb::tools::RunBackup, "backup <database> <directory>          add a backup to a directory of backups"},
    {"bench", braiddb::tools::RunBench, "bench <directory> [flag...]            run db_bench in a new directory"},
    {"check", braiddb::tools::RunCheck, "check <database>                       verify everything, change nothing"},
    {"checkpoint", braiddb::tools::RunCheckpoint, "checkpoint <database> <new database>   copy a database"},
    {"destroy", braiddb::tools::RunDestroy, "destroy <database>                     remove a database"},
    {"doctor", braiddb::tools::RunDoctor, "doctor <path>...                       say what a place is worth, and what to change"},
    {"dump", braiddb::tools::RunDump, "dump <database>                        print segments, levels and log entries"},
    {"export", braiddb::tools::RunExport, "export <database> [<file>]             write keys and values to a file"},
    {"import", braiddb::tools::RunImport, "import <database> [<file>]             write the entries of a file or another store"},
    {"load", braiddb::tools::RunLoad, "load <database> [<file>]               import lines of ldb dump --hex"},
    {"readers", braiddb::tools::RunReaders,
     "readers <database>                     list the processes that read beside a program"},
    {"repair", braiddb::tools::RunRepair, "repair <database> <new database>       save what is intact into a new database"},
    {"restore", braiddb::tools::RunRestore, "restore <directory> <database>         make a database of a backup"},
    {"shell", braiddb::tools::RunShell, "shell <database>                       type verbs, or read them from a pipe"},
    {"serve", braiddb::tools::RunServe, "serve <database>                       show it in a browser, and to Prometheus"},
    {"top", braiddb::tools::RunTop, "top <database>                         show its figures in the terminal"},
};

void PrintUsage(std::FILE* out) {
  std::fprintf(out, "braiddb %s: reads, writes, moves, verifies and repairs databases\n\n", BRAIDDB_VERSION);
  for (const Verb& verb : kVerbs) std::fprintf(out, "  braiddb %s\n", verb.what);
  std::fprintf(out, "\nOn one database, also in the shell:\n\n");
  for (const braiddb::tools::DatabaseVerb& verb : braiddb::tools::DatabaseVerbs()) {
    std::string call(verb.name);
    call += " <database>";
    if (!verb.arguments.empty()) call += " " + std::string(verb.arguments);
    std::fprintf(out, "  braiddb %-38s %s\n", call.c_str(), std::string(verb.what).c_str());
  }
  std::fprintf(
      out,
      "\n`braiddb <verb> --help` lists the options of a verb.\n"
      "Exit codes: 0 nothing is wrong, 1 something is missing, damaged, lost, or to be changed, 2 it could not be done.\n");
}

int Run(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  for (const Verb& verb : kVerbs) {
    if (name == verb.name) return verb.run(Arguments(argv + 2, argv + argc));
  }
  if (const auto* verb = braiddb::tools::FindDatabaseVerb(name); verb != nullptr)
    return RunDatabaseVerb(*verb, Arguments(argv + 2, argv + argc));
  const bool help = name == "--help" || name == "--version";
  if (!help && !name.empty()) std::fprintf(stderr, "braiddb: there is no verb '%s'\n\n", argv[1]);
  PrintUsage(help ? stdout : stderr);
  return help ? braiddb::tools::kSound : braiddb::tools::kCannotLook;
}

}  // namespace

int main(int argc, char** argv) {
  braiddb::OpenStandardStreams();
  try {
    return braiddb::tools::FinishOutput(Run(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "braiddb: %s\n", error.what());
    return braiddb::tools::kCannotLook;
  }
}
