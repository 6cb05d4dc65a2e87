// Logger: writes lines of text about the database's actions for its operator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braiddb {

// Each line starts with the local time in microseconds and the kernel's thread id. A line is written by one system call, so it is
// complete and survives the process. Control characters of a message become \xNN.
// CONCURRENCY  All methods may be called concurrently.
class Logger {
 public:
  // A file of this size is renamed. kMaxFiles: number of files kept, including the current one.
  static constexpr uint64_t kMaxFileBytes = 4 << 20;
  static constexpr int kMaxFiles = 5;

  // Passes each line, without a newline, to `sink`, which must be thread-safe.
  explicit Logger(std::function<void(std::string_view line)> sink);
  // Appends to the file `path`. Errors of the file are ignored, so that a database works without its log. A file that cannot be
  // opened gets no lines; a file that cannot be renamed grows further.
  static std::unique_ptr<Logger> OpenFile(const std::string& path, uint64_t max_bytes = kMaxFileBytes);
  // The files of a log, newest first: `path`, `path`.old, `path`.old.2, and so on.
  static std::vector<std::string> Files(const std::string& path);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  // `details`: lines that belong to the message. They have no time and begin with two blanks, as in RocksDB's log.
  void Log(std::string_view message, std::span<const std::string> details = {});
  // Enables renaming. Before, the file only grows, so that opens that are refused drop no lines of other opens.
  void BeginRotation();

 private:
  class File;
  Logger();

  const std::function<void(std::string_view)> sink_;
  std::unique_ptr<File> file_;  // null: lines go to sink_
};

}  // namespace braiddb
