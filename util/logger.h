// Logger: lines of text about what the database does, for the person who operates it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace braiddb {

// Each line starts with the local time, in microseconds, and the thread's id in the kernel. A line is written whole, by one
// call of the system, and so survives the process. Control characters of a message become \xNN.
// Thread safety: all methods may be called concurrently.
class Logger {
 public:
  // A file that has this size is renamed; with those of before, so many are kept.
  static constexpr uint64_t kMaxFileBytes = 4 << 20;
  static constexpr int kMaxFiles = 5;

  // Hands each line, without a newline, to `sink`, which must be thread-safe.
  explicit Logger(std::function<void(std::string_view line)> sink);
  // Appends to the file `path`. Errors of the file are ignored, so a database works without its log: a file that cannot be opened
  // gets no lines, and one that cannot be renamed grows on.
  static std::unique_ptr<Logger> OpenFile(const std::string& path, uint64_t max_bytes = kMaxFileBytes);
  // The files of a log, newest first: `path`, `path`.old, `path`.old.2, and so on.
  static std::vector<std::string> Files(const std::string& path);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void Log(std::string_view message);
  // From here on the file is renamed when it is full. Before, it only grows, so opens that are refused drop no lines of others.
  void BeginRotation();

 private:
  class File;
  Logger();

  const std::function<void(std::string_view)> sink_;
  std::unique_ptr<File> file_;  // null: lines go to sink_
};

}  // namespace braiddb
