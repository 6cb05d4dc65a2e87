// braiddb bench: runs db_bench.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "tools/child_job.h"
#include "tools/command.h"
#include "util/file.h"

namespace braiddb::tools {
namespace {

// Replaces this process, a child, by db_bench, which lies beside the program braiddb.
int ExecuteBench(const Arguments& arguments) {
  const std::string& directory = arguments[0];
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "db_bench";
  std::vector<std::string> texts{program};
  texts.insert(texts.end(), arguments.begin() + 1, arguments.end());
  texts.push_back("--db=" + directory);  // last, so that it counts
  std::vector<char*> argv;
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return CannotLook(StatusFromErrno(errno, program));
}

}  // namespace

int RunBench(const Arguments& arguments) {
  if (arguments.empty() || arguments[0] == "--help") {
    std::printf(
        "usage: braiddb bench <directory> [flag...]\n\n"
        "Runs db_bench with --db=<directory>, which must not exist or be empty. `db_bench --help` lists the flags.\n\n"
        "Options:\n  --help                this text\n");
    return arguments.empty() ? kCannotLook : kSound;
  }
  std::error_code error;
  const std::string& directory = arguments[0];
  if (directory.starts_with('-')) {
    return CannotLook(Status::InvalidArgument(directory +
                                              " stands in place of the directory; the directory comes first, then the " +
                                              "flags. A directory with this name is ./" + directory));
  }
  if (directory.empty()) return CannotLook(Status::InvalidArgument("the directory is an empty text"));
  if (std::filesystem::exists(directory, error) && !std::filesystem::is_empty(directory, error))
    return CannotLook(Status::InvalidArgument(directory + ": is there and is not empty; choose another directory"));
  return ChildJob{.action = "running db_bench",
                  .work = [&] { return ExecuteBench(arguments); },
                  .after = [&] { return "what it wrote is in " + directory; },
                  .outlives_reader = false}
      .Run();
}

}  // namespace braiddb::tools
