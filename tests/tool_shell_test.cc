// The shell of the program braiddb: scripts, completion, and lines that are typed.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/support/tool_fixture.h"
#include "tools/shell.h"

namespace braiddb::test {
namespace {

class ShellTest : public ToolRunner {
 protected:
  std::string Shell(const std::string& script, const std::string& arguments = "") {
    WriteFileOrDie(directory_.File("script"), script);
    const ToolResult result =
        RunCommand(std::string(BRAIDDB_TOOL) + " shell " + arguments + " " + path_ + " <" + directory_.File("script"));
    shell_exit_code_ = result.exit_code;
    return result.out + result.error;
  }
  std::vector<std::string> Complete(const tools::Session& session, const std::string& line) {
    return tools::CompleteLine(session, line, &begin_);
  }
  int shell_exit_code_ = 0;
  size_t begin_ = 0;
};

TEST_F(ShellTest, ShellRunsScripts) {
  const std::string out = Shell(
      "put a 1\n"
      "put \"b \\x00\\n\" 'two words'   # a comment\n"
      "scan --escape\n"
      "create-family other\n"
      "use other\n"
      "put a \"in other\"\n"
      "get a\n"
      "get --family default a\n"
      "output json\n"
      "scan\n"
      "bytes hex\n"
      "put 00 ff\n"
      "output raw\n"
      "scan\n"
      "help\n"
      "quit\n"
      "put never 1\n",
      "--create");
  EXPECT_EQ(shell_exit_code_, 0) << out;
  EXPECT_TRUE(Has(out, "a\t1\nb %00%0A\ttwo words\nin other\n1\n{\"key\":\"a\",\"value\":\"in other\"}\n00\tff\n61\t")) << out;
  EXPECT_TRUE(Has(out, "create-family <name>")) << out;
  EXPECT_EQ(Run("count --family other " + path_).out, "keys: 2\n");

  const std::string wrong = Shell("nonsense\nget a\nget 'a\noutput odd\nuse nothing\nscan --nonsense\nput --help\n");
  EXPECT_EQ(shell_exit_code_, 2);
  for (const char* part : {"there is no verb 'nonsense'", "\n1\n", "a quote is not closed", "output is raw, table or json",
                           "there is no column family 'nothing'", "nonsense", "usage: put [option...] <key> [<value>]"})
    EXPECT_TRUE(Has("\n" + wrong, part)) << part << " is not in\n" << wrong;
  EXPECT_TRUE(Has(Shell("put a 2\nscan\n", "--read-only --table"), "key")) << wrong;
  EXPECT_EQ(shell_exit_code_, 2) << "a write without the right to";
}

TEST_F(ShellTest, ShellCompletesVerbsOptionsAndFamilies) {
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  ASSERT_EQ(Run("create-family " + path_ + " other").exit_code, 0);
  tools::Session session;
  ASSERT_OK(session.Open(path_, {}));
  using Words = std::vector<std::string>;
  EXPECT_EQ(Complete(session, "co"), (Words{"compact", "count"}));
  EXPECT_EQ(Complete(session, "scan --re"), Words{"--reverse"});
  EXPECT_EQ(Complete(session, "use "), (Words{"default", "other"}));
  EXPECT_EQ(Complete(session, "get a --family o"), Words{"other"});
  EXPECT_EQ(Complete(session, "get 'a"), Words{});
  EXPECT_EQ(Complete(session, "# x"), Words{});
  EXPECT_GT(Complete(session, "").size(), 15u);
}

// A candidate is the word as the shell reads it.
TEST_F(ShellTest, CompletedNamesAreQuoted) {
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  for (const char* name : {"'two words'", "two\\\"", "twofold", "\"it's\""})
    ASSERT_EQ(Run("create-family " + path_ + " " + name).exit_code, 0) << name;
  tools::Session session;
  ASSERT_OK(session.Open(path_, {}));
  using Words = std::vector<std::string>;
  EXPECT_EQ(Complete(session, "use two"), (Words{"\"two words\"", "\"two\\\"\"", "\"twofold\""}));
  EXPECT_EQ(Complete(session, "use twof"), Words{"twofold"});
  EXPECT_EQ(Complete(session, "use \"two w"), Words{"\"two words\""});
  EXPECT_EQ(begin_, 4u);
  EXPECT_EQ(Complete(session, "use 'tw"), (Words{"'two words'", "'two\"'", "'twofold'"}));
  EXPECT_EQ(Complete(session, "use i"), Words{"\"it's\""});
  EXPECT_EQ(Complete(session, "use 'i"), Words{});
  for (const std::string& word : Complete(session, "use ")) {
    Words words;
    std::string error;
    EXPECT_TRUE(tools::SplitWords("use " + word, &words, &error)) << word << error;
    EXPECT_NE(session.Find(words.at(1)), nullptr) << word;
  }
}

// A shell on a terminal. Without libedit it reads plain lines, without history and completion.
class ShellTerminalTest : public ToolRunner {
 protected:
  void Start(const char* locale = "C.UTF-8") {
    out_.clear();
    child_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (child_ == 0) {
      setenv("HOME", directory_.path().c_str(), 1);
      setenv("TERM", "dumb", 1);
      setenv("LC_ALL", locale, 1);
      execl(BRAIDDB_TOOL, BRAIDDB_TOOL, "shell", "--create", path_.c_str(), nullptr);
      _exit(99);
    }
    EXPECT_TRUE(WaitFor("braiddb:default> ")) << out_;
  }
  // Reads until the terminal has shown `text` behind what an earlier call has found, or the shell has ended.
  bool WaitFor(const std::string& text) {
    char buffer[4096];
    size_t found;
    while ((found = out_.find(text)) == std::string::npos) {
      pollfd output{terminal_, POLLIN, 0};
      const ssize_t bytes = poll(&output, 1, kPatienceMs) == 1 ? read(terminal_, buffer, sizeof buffer) : 0;
      if (bytes <= 0) return false;
      out_.append(buffer, static_cast<size_t>(bytes));
    }
    out_.erase(0, found + text.size());
    return true;
  }
  void Type(const std::string& text) { ASSERT_EQ(write(terminal_, text.data(), text.size()), ssize_t(text.size())); }
  // Types a line, and waits for what it prints.
  void TypeAndWait(const std::string& line, const std::string& text) {
    Type(line);
    EXPECT_TRUE(WaitFor(text)) << line << out_;
    EXPECT_TRUE(WaitFor("braiddb:")) << out_;
  }
  // The system drops output that the terminal has not read at that moment, so the prompt may be missing.
  void TypeCtrlC() {
    Type("\x03");
    usleep(200'000);
  }
  // Returns the exit code, and 128 and more for a signal.
  int End() {
    (void)WaitFor("never shown");
    int status = 0;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    close(terminal_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string History() { return ReadFileOrDie(directory_.File(".braiddb_history")); }

  static constexpr int kPatienceMs = 20'000;
  int terminal_ = -1;
  pid_t child_ = 0;
  std::string out_;
};

TEST_F(ShellTerminalTest, LinesAreEdited) {
  Start();
  Type("put a 1\n");
  TypeAndWait("scan\n", "key  value");
#ifdef BRAIDDB_LIBEDIT
  TypeAndWait("cou\t\n", "keys: 1");
#endif
  Type("quit\n");
  EXPECT_EQ(End(), 0) << out_;
#ifdef BRAIDDB_LIBEDIT
  EXPECT_TRUE(Has(History(), "scan"));
#endif
}

TEST_F(ShellTerminalTest, CtrlCDropsTheLine) {
  Start();
  TypeAndWait("put a 1\n", "\n");
  Type("put b 2");
  EXPECT_TRUE(WaitFor("2")) << out_;
  TypeCtrlC();
  TypeAndWait("count\n", "keys: 1");
  TypeCtrlC();
  TypeCtrlC();
  TypeAndWait("count\n", "keys: 1");
  Type("\x04");
  EXPECT_EQ(End(), 0) << out_;
}

TEST_F(ShellTerminalTest, SignalsKeepTheHistory) {
  Start();
  TypeAndWait("put a 1\n", "\n");
  EXPECT_EQ(kill(child_, SIGTERM), 0);
  EXPECT_EQ(End(), 128 + SIGTERM);
#ifdef BRAIDDB_LIBEDIT
  EXPECT_TRUE(Has(History(), "put"));
#endif
}

// The terminal is gone.
TEST_F(ShellTerminalTest, AHangUpEndsTheShell) {
  Start();
  close(terminal_);
  int status = 0;
  EXPECT_EQ(waitpid(child_, &status, 0), child_);
  EXPECT_TRUE(WIFSIGNALED(status) || WIFEXITED(status));
}

TEST_F(ShellTerminalTest, Utf8IsTyped) {
  for (const char* locale : {"C.UTF-8", "C"}) {
    Start(locale);
    TypeAndWait("put ключ значение\n", "\n");
    Type("quit\n");
    EXPECT_EQ(End(), 0) << out_;
    EXPECT_EQ(Run("get " + path_ + " ключ").out, "значение\n") << locale;
    ASSERT_EQ(Run("delete " + path_ + " ключ").exit_code, 0);
  }
}

#ifdef BRAIDDB_LIBEDIT
TEST_F(ShellTerminalTest, NamesAreCompletedInQuotes) {
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  for (const char* name : {"'two words'", "'two weeks'", "вёсны", "plain"})
    ASSERT_EQ(Run("create-family " + path_ + " " + name).exit_code, 0);
  ASSERT_EQ(Run("put --family 'two words' " + path_ + " b 1").exit_code, 0);
  Start();
  const std::pair<const char*, const char*> lines[] = {{"use tw\to\t\n", "braiddb:two words> "},
                                                       {"use \"two we\t\n", "braiddb:two weeks> "},
                                                       {"use pl\t\n", "braiddb:plain> "},
                                                       {"use вё\t\n", "braiddb:вёсны> "}};
  for (const auto& [line, prompt] : lines) {
    Type(line);
    EXPECT_TRUE(WaitFor(prompt)) << line << out_;
  }
  Type("put ключ 1 --family \"two wo\t\n");
  Type("quit\n");
  EXPECT_EQ(End(), 0) << out_;
  EXPECT_EQ(Run("get --family 'two words' " + path_ + " ключ").out, "1\n");
}
#endif

}  // namespace
}  // namespace braiddb::test
