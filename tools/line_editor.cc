#include "tools/line_editor.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#ifdef BRAIDDB_LIBEDIT
#include <editline/readline.h>
#include <poll.h>

#include <algorithm>
#include <clocale>
#endif

namespace braiddb::tools {

#ifdef BRAIDDB_LIBEDIT

namespace {

constexpr int kHistoryLines = 1000;

LineEditor::Complete completer;
std::vector<std::string> candidates;

// The bytes of the first `count` characters of a text in UTF-8.
size_t BytesOfCharacters(const char* text, size_t count) {
  const auto is_inside = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  size_t bytes = 0;
  for (; text[bytes] != '\0' && count > 0; --count) {
    do {
      ++bytes;
    } while (is_inside(text[bytes]));
  }
  return bytes;
}

// libedit asks for one candidate at a time, with a state of 0 for the first one, and frees them.
char* NextCandidate(const char*, int state) {
  static size_t next = 0;
  if (state == 0) next = 0;
  return next < candidates.size() ? strdup(candidates[next++].c_str()) : nullptr;
}

// libedit ends words at quotes and blanks. It replaces `text` only, which may be the end of a word in quotes.
char** CompleteWord(const char* text, int, int) {
  rl_attempted_completion_over = 1;  // no names of files
  const std::string line(rl_line_buffer, BytesOfCharacters(rl_line_buffer, static_cast<size_t>(rl_point)));
  size_t begin = line.size();
  candidates = completer(line, &begin);
  const size_t text_begin = line.size() - std::min(line.size(), std::strlen(text));
  const size_t kept = text_begin - std::min(text_begin, begin);
  std::erase_if(candidates, [&](const std::string& candidate) { return line.compare(begin, kept, candidate, 0, kept) != 0; });
  for (std::string& candidate : candidates) candidate.erase(0, kept);
  return rl_completion_matches(text, NextCandidate);
}

// ---- The line that is being typed. libedit has one editor.

volatile std::sig_atomic_t is_dropped = 0;
bool is_read = false;  // the line is complete, or the input has ended
bool has_ended = false;
std::string typed;

void DropLine(int) { is_dropped = 1; }

void TakeLine(char* text) {
  is_read = true;
  has_ended = text == nullptr;
  if (text != nullptr) typed = text;
  std::free(text);
  rl_callback_handler_remove();
}

// libedit reads and prints the characters of the locale.
void UseUtf8() {
  std::setlocale(LC_CTYPE, "");
  if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

LineEditor::LineEditor(std::string history_file, Complete complete)
    : is_interactive_(isatty(STDIN_FILENO) != 0), history_file_(std::move(history_file)) {
  if (!is_interactive_) return;
  completer = std::move(complete);
  UseUtf8();
  struct sigaction action {};
  action.sa_handler = DropLine;
  sigaction(SIGINT, &action, nullptr);
  rl_readline_name = const_cast<char*>("braiddb");
  rl_attempted_completion_function = CompleteWord;
  using_history();
  stifle_history(kHistoryLines);
  if (!history_file_.empty()) read_history(history_file_.c_str());
}

LineEditor::~LineEditor() {
  if (is_interactive_) std::signal(SIGINT, SIG_DFL);
}

// SIGINT comes only while ppoll waits, so that none is missed.
bool LineEditor::Read(const std::string& prompt, std::string* line) {
  if (!is_interactive_) return static_cast<bool>(std::getline(std::cin, *line));
  sigset_t interrupt;
  sigset_t before;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  sigprocmask(SIG_BLOCK, &interrupt, &before);
  sigset_t waiting = before;
  sigdelset(&waiting, SIGINT);
  is_read = false;
  is_dropped = 0;
  rl_callback_handler_install(prompt.c_str(), TakeLine);
  while (!is_read) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ready = ppoll(&input, 1, nullptr, &waiting);
    if (is_dropped != 0) {
      is_dropped = 0;
      rl_callback_handler_remove();
      std::printf("^C\n");
      std::fflush(stdout);
      rl_callback_handler_install(prompt.c_str(), TakeLine);
    } else if (ready > 0) {
      if ((input.revents & POLLIN) != 0) rl_callback_read_char();
      if (!is_read && (input.revents & (POLLHUP | POLLERR)) != 0) TakeLine(nullptr);
    }
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (has_ended) return false;
  *line = typed;
  if (line->empty()) return true;
  add_history(line->c_str());
  if (!history_file_.empty()) write_history(history_file_.c_str());  // a signal may end the process
  return true;
}

#else

namespace {

std::string shown_prompt;

// The terminal has dropped the line.
void ShowPromptAgain(int) {
  const ssize_t written = write(STDOUT_FILENO, "\n", 1) + write(STDOUT_FILENO, shown_prompt.data(), shown_prompt.size());
  (void)written;
}

}  // namespace

LineEditor::LineEditor(std::string history_file, Complete)
    : is_interactive_(isatty(STDIN_FILENO) != 0), history_file_(std::move(history_file)) {
  struct sigaction action {};
  action.sa_handler = ShowPromptAgain;
  action.sa_flags = SA_RESTART;
  if (is_interactive_) sigaction(SIGINT, &action, nullptr);
}

LineEditor::~LineEditor() {
  if (is_interactive_) std::signal(SIGINT, SIG_DFL);
}

bool LineEditor::Read(const std::string& prompt, std::string* line) {
  shown_prompt = prompt;
  if (is_interactive_) std::cout << prompt << std::flush;
  return static_cast<bool>(std::getline(std::cin, *line));
}

#endif

}  // namespace braiddb::tools
