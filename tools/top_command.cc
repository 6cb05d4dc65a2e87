// braiddb top: the figures of a database in the terminal, again and again. Changes nothing in the database.
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/serve/json.h"
#include "tools/serve/source.h"
#include "tools/serve/top_view.h"

namespace braiddb::tools {
namespace {

volatile std::sig_atomic_t stopped = 0;

void EndOnSignal(int) { stopped = 1; }

struct TopOptions {
  bool once = false;
  bool as_json = false;
  double interval = 1;  // seconds
};

// Waits for the interval, or until a signal or the key q comes.
void Pause(double seconds, bool reads_keys) {
  pollfd keys{STDIN_FILENO, POLLIN, 0};
  const int ready = poll(&keys, reads_keys ? 1 : 0, static_cast<int>(seconds * 1000));
  char key = 0;
  if (ready > 0 && (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q')) stopped = 1;
}

void Show(const Source& source, const TopOptions& options) {
  const bool is_terminal = isatty(STDOUT_FILENO) != 0 && !options.as_json && !options.once;
  const bool reads_keys = is_terminal && isatty(STDIN_FILENO) != 0;
  const std::string title = "braiddb top  " + source.path() +
                            (source.is_secondary() ? "  (a copy of a database that is open elsewhere)" : "  (closed, read)");
  TopView view;
  for (bool is_first = true; stopped == 0; is_first = false) {
    if (!is_first) Pause(options.interval, reads_keys);
    if (stopped != 0) break;
    const Metrics metrics = source.db()->GetMetrics();
    const std::string text =
        options.as_json ? Dump(MetricsJson(metrics)) : view.Render(title, metrics, std::chrono::steady_clock::now());
    // Cursor home, text, erase to the end of the screen.
    if (is_terminal) std::fputs("\033[H\033[J", stdout);
    if (!is_first && !is_terminal && !options.as_json) std::fputs("\n", stdout);
    std::fputs(text.c_str(), stdout);
    if (is_terminal) std::fputs("\nq and Enter, or Ctrl-C, end the program.\n", stdout);
    if (std::fflush(stdout) != 0 || options.once) break;  // who read the output may be gone
  }
}

}  // namespace

int RunTop(const Arguments& arguments) {
  namespace po = boost::program_options;
  CommandLine line("braiddb top [option...] <database>", {"database"});
  TopOptions options;
  SourceOptions source_options;
  line.Add()("once", po::bool_switch(&options.once), "print the figures once")("json", po::bool_switch(&options.as_json),
                                                                               "print one line of JSON each time")(
      "interval", po::value(&options.interval)->value_name("SECONDS"), "between two times; default: 1, at least 0.1")(
      "secondary", po::value(&source_options.secondary_path)->value_name("DIRECTORY"),
      "where the copy lies if the database is open elsewhere; default: a temporary directory");
  int exit_code = kSound;
  if (!line.Parse(arguments, &exit_code)) return exit_code;
  if (!(options.interval >= 0.1 && options.interval <= 86400))
    return CannotLook(Status::InvalidArgument("--interval must be from 0.1 to 86400 seconds"));
  const CheckOptions common = line.MakeCheckOptions({});
  source_options.path = line.Positional(0);
  source_options.region_paths = common.region_paths;
  source_options.comparator = common.comparator;
  std::unique_ptr<Source> source;
  if (const Status status = Source::Open(source_options, &source); !status.ok()) return CannotLook(status);
  CatchEnd(EndOnSignal);
  std::signal(SIGPIPE, SIG_IGN);
  Show(*source, options);
  return kSound;
}

}  // namespace braiddb::tools
