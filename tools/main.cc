// braiddb: inspects closed databases and their locations.
#include <cstdio>
#include <string_view>

#include "tools/command.h"

namespace {

using braiddb::tools::Arguments;

struct Verb {
  std::string_view name;
  int (*run)(const Arguments& arguments);
  const char* what;
};

constexpr Verb kVerbs[] = {
    {"check", braiddb::tools::RunCheck, "check <database>                  verify everything, change nothing"},
    {"doctor", braiddb::tools::RunDoctor, "doctor <path>...                  say what a place is worth, and what to change"},
    {"dump", braiddb::tools::RunDump, "dump <database>                   print what is in it"},
    {"repair", braiddb::tools::RunRepair, "repair <database> <new database>  save what is intact into a new database"},
    {"serve", braiddb::tools::RunServe, "serve <database>                  show it in a browser, and to Prometheus"},
    {"top", braiddb::tools::RunTop, "top <database>                    show its figures in the terminal"},
};

void PrintUsage(std::FILE* out) {
  std::fprintf(out, "braiddb %s: looks at databases that are not open, and at places for them\n\n", BRAIDDB_VERSION);
  for (const Verb& verb : kVerbs) std::fprintf(out, "  braiddb %s\n", verb.what);
  std::fprintf(out,
               "\n`braiddb <verb> --help` lists the options of a verb.\n"
               "Exit codes: 0 nothing is wrong, 1 something is damaged, lost, or to be changed, 2 it could not be done.\n");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  for (const Verb& verb : kVerbs) {
    if (name == verb.name) return verb.run(Arguments(argv + 2, argv + argc));
  }
  const bool help = name == "--help" || name == "--version";
  if (!help && !name.empty()) std::fprintf(stderr, "braiddb: there is no verb '%s'\n\n", argv[1]);
  PrintUsage(help ? stdout : stderr);
  return help ? braiddb::tools::kSound : braiddb::tools::kCannotLook;
}
