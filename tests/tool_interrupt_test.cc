// Ctrl-C in the verbs of the program braiddb: exit code 2, a message, and nothing half done.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/tool_fixture.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

class InterruptTest : public ToolRunner {
 protected:
  // Runs the program with SIGINT once `has_begun` returns true. The standard output is a pipe that is full: a verb that prints
  // waits there.
  ToolResult Interrupt(std::vector<std::string> arguments, const std::function<bool()>& has_begun) {
    const std::string error_file = directory_.File("stderr");
    int pipe_ends[2] = {};
    EXPECT_EQ(pipe2(pipe_ends, O_NONBLOCK), 0);
    const std::string zeros(4096, '\0');
    while (write(pipe_ends[1], zeros.data(), zeros.size()) > 0) {
    }
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(fcntl(pipe_ends[1], F_SETFL, 0), 0);
    const pid_t child = fork();
    if (child == 0) {
      dup2(pipe_ends[1], STDOUT_FILENO);
      dup2(open(error_file.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), STDERR_FILENO);
      arguments.insert(arguments.begin(), BRAIDDB_TOOL);
      std::vector<char*> argv;
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv(BRAIDDB_TOOL, argv.data());
      _exit(99);
    }
    for (int i = 0; i < 1000 && !has_begun(); ++i) usleep(5'000);
    kill(child, SIGINT);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), "", ReadFileOrDie(error_file)};
  }
  // The time by which each verb waits at the full pipe.
  static std::function<bool()> Later() {
    return [calls = 0]() mutable { return ++calls > 60; };
  }
};

TEST_F(InterruptTest, VerbsForDamageEnd) {
  Fill(TinyOptions(1), 300);
  const std::string fresh = directory_.File("fresh");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"check", path_}, {"dump", "--entries", path_}, {"repair", path_, fresh}}) {
    const ToolResult result = Interrupt(arguments, Later());
    EXPECT_EQ(result.exit_code, 2) << arguments[0];
    EXPECT_TRUE(Has(result.error, ": stopped; ")) << arguments[0] << result.error;
  }
  // The report waits, but the new database is complete.
  EXPECT_EQ(Run("count " + fresh).out, "keys: 300\n");
  EXPECT_EQ(Run("check " + path_).exit_code, 0);
}

TEST_F(InterruptTest, RepairsLeaveNothing) {
  Fill(TinyOptions(1), 20'000);
  const std::string fresh = directory_.File("fresh");
  const ToolResult result = Interrupt({"repair", path_, fresh}, [&] { return fs::exists(fresh + ".tmp"); });
  EXPECT_EQ(result.exit_code, 2) << result.error;
  EXPECT_FALSE(fs::exists(fresh + ".tmp"));
  EXPECT_TRUE(Has(result.error, fs::exists(fresh) ? "is complete" : "nothing is left")) << result.error;
}

// A compaction may have ended before the signal comes.
TEST_F(InterruptTest, CompactionsEndAndLoseNothing) {
  Options options;
  options.create_if_missing = true;
  options.disable_auto_compaction = true;
  {
    auto db = OpenOrFail(options, path_);
    for (int i = 0; i < 200'000; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), "value"));
    ASSERT_OK(db->Close());
  }
  const ToolResult result = Interrupt({"compact", path_}, Later());
  EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 2) << result.exit_code << result.error;
  if (result.exit_code == 2) {
    EXPECT_TRUE(Has(result.error, "compacting: stopped; the next open")) << result.error;
  }
  EXPECT_EQ(Run("count " + path_).out, "keys: 200000\n");
  EXPECT_EQ(Run("check " + path_).exit_code, 0);
  EXPECT_EQ(Run("compact " + path_).exit_code, 0);
  EXPECT_EQ(Run("count " + path_).out, "keys: 200000\n");
}

TEST_F(InterruptTest, BenchmarksEnd) {
  if (!fs::exists(fs::path(BRAIDDB_TOOL).parent_path() / "db_bench")) GTEST_SKIP() << "this build has no db_bench";
  const std::string made = directory_.File("new");
  const ToolResult result = Interrupt({"bench", made, "--benchmarks=fillseq", "--num=100000000"}, Later());
  EXPECT_EQ(result.exit_code, 2) << result.error;
  EXPECT_TRUE(Has(result.error, "running db_bench: stopped; what it wrote is in " + made)) << result.error;
}

// A reader that goes away ends verbs that only print.
TEST_F(InterruptTest, OutputThatNobodyReadsEndsAVerb) {
  Fill(TinyOptions(1), 20'000);
  const ToolResult result =
      RunCommand("bash -c '" + std::string(BRAIDDB_TOOL) + " dump --entries " + path_ + " | head -1; exit ${PIPESTATUS[0]}'");
  EXPECT_EQ(result.exit_code, 128 + SIGPIPE) << result.error;
  EXPECT_EQ(result.error, "");
}

}  // namespace
}  // namespace braiddb::test
