#include "tools/line_editor.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#ifdef BRAIDDB_LIBEDIT
#include <editline/readline.h>
#endif

namespace braiddb::tools {

#ifdef BRAIDDB_LIBEDIT

namespace {

constexpr int kHistoryLines = 1000;

LineEditor::Complete completer;

// libedit asks for one candidate at a time, with a state of 0 for the first one, and frees them.
char* NextCandidate(const char*, int state) {
  static std::vector<std::string> candidates;
  static size_t next = 0;
  if (state == 0) {
    candidates = completer(std::string(rl_line_buffer, static_cast<size_t>(rl_point)));
    next = 0;
  }
  return next < candidates.size() ? strdup(candidates[next++].c_str()) : nullptr;
}

char** CompleteWord(const char* text, int, int) {
  rl_attempted_completion_over = 1;  // no names of files
  return rl_completion_matches(text, NextCandidate);
}

}  // namespace

LineEditor::LineEditor(std::string history_file, Complete complete)
    : is_interactive_(isatty(STDIN_FILENO) != 0), history_file_(std::move(history_file)) {
  if (!is_interactive_) return;
  completer = std::move(complete);
  rl_readline_name = const_cast<char*>("braiddb");
  rl_attempted_completion_function = CompleteWord;
  using_history();
  stifle_history(kHistoryLines);
  if (!history_file_.empty()) read_history(history_file_.c_str());
}

LineEditor::~LineEditor() {
  if (is_interactive_ && !history_file_.empty()) write_history(history_file_.c_str());
}

bool LineEditor::Read(const std::string& prompt, std::string* line) {
  if (!is_interactive_) return static_cast<bool>(std::getline(std::cin, *line));
  char* const text = readline(prompt.c_str());
  if (text == nullptr) return false;
  *line = text;
  std::free(text);
  if (!line->empty()) add_history(line->c_str());
  return true;
}

#else

LineEditor::LineEditor(std::string history_file, Complete)
    : is_interactive_(isatty(STDIN_FILENO) != 0), history_file_(std::move(history_file)) {}

LineEditor::~LineEditor() = default;

bool LineEditor::Read(const std::string& prompt, std::string* line) {
  if (is_interactive_) std::cout << prompt << std::flush;
  return static_cast<bool>(std::getline(std::cin, *line));
}

#endif

}  // namespace braiddb::tools
