// braiddb shell: verbs on one open database, typed or from a pipe.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "tools/command.h"
#include "tools/line_editor.h"
#include "tools/shell.h"

namespace braiddb::tools {
namespace {

namespace po = boost::program_options;

std::string HistoryFile() {
  const char* const home = std::getenv("HOME");
  return home == nullptr ? std::string() : std::string(home) + "/.braiddb_history";
}

// The exit code is the largest one of all lines.
int RunLines(Session* session) {
  LineEditor editor(HistoryFile(),
                    [session](const std::string& line, size_t* begin) { return CompleteLine(*session, line, begin); });
  if (editor.is_interactive()) {
    if (isatty(STDOUT_FILENO) != 0 && session->style.output == OutputForm::kRaw) session->style.output = OutputForm::kTable;
    std::printf("%s, open for %s. Type help.\n", session->path.c_str(),
                session->access == Access::kRead ? "reading only" : "reading and writing");
  }
  int worst = kSound;
  bool ends = false;
  for (std::string line; !ends && editor.Read("braiddb:" + session->family + "> ", &line);) {
    worst = std::max(worst, RunLine(session, line, &ends));
    std::fflush(stdout);
  }
  if (editor.is_interactive() && !ends) std::printf("\n");
  if (!ends && (std::cin.bad() || std::ferror(stdin) != 0))
    return CannotLook(Status::IOError("the standard input cannot be read"));
  return worst;
}

}  // namespace

int RunShell(const Arguments& given) {
  CommandLine line("braiddb shell [option...] <database>", {"database"}, CommandLine::Takes::kArguments);
  OpenSettings settings;
  bool as_json = false;
  bool as_table = false;
  bool read_only = false;
  bool creates = false;
  line.Add()("read-only", po::bool_switch(&read_only), "open for reading only; other programs may do the same")(
      "create", po::bool_switch(&creates), "create the database if it does not exist")(
      "secondary", po::value(&settings.secondary)->value_name("DIRECTORY"),
      "read beside a program that has the database open; DIRECTORY keeps a copy of the database")(
      "json", po::bool_switch(&as_json), "print JSON")("table", po::bool_switch(&as_table), "print columns");
  int exit_code = kSound;
  if (!line.Parse(given, &exit_code)) return exit_code;
  const bool reads = read_only || !settings.secondary.empty();
  if (reads && creates) return line.Refuse("--create needs a database that is open for writing");
  settings.access = reads ? Access::kRead : creates ? Access::kCreate : Access::kWrite;
  Session session;
  if (Status status = session.Open(line.Positional(0), settings); !status.ok()) return CannotLook(status);
  session.style.output = as_json ? OutputForm::kJson : as_table ? OutputForm::kTable : OutputForm::kRaw;
  exit_code = RunLines(&session);
  const Status status = session.Close();
  return status.ok() ? exit_code : CannotLook(status);
}

}  // namespace braiddb::tools
