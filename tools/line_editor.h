// LineEditor: lines that a person types, with history and completion if the program was built with libedit, or lines of a pipe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace braiddb::tools {

// Thread safety: one thread; at most one editor exists at a time.
class LineEditor {
 public:
  // Returns what may stand in place of the last word of `line`, which may be empty. Sets *begin to the start of that word.
  using Complete = std::function<std::vector<std::string>(const std::string& line, size_t* begin)>;

  // Edits only if the standard input is a terminal. Reads the history from the file, and adds each line to it; no history if the
  // path is empty. Ctrl-C drops the line that is being typed, and otherwise has no effect.
  LineEditor(std::string history_file, Complete complete);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Returns false at the end of the input.
  bool Read(const std::string& prompt, std::string* line);
  bool is_interactive() const { return is_interactive_; }

 private:
  const bool is_interactive_;
  const std::string history_file_;
};

}  // namespace braiddb::tools
