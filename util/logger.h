// Logger: lines of text about what the database does, for the person who operates it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "braiddb/status.h"

namespace braiddb {

// Each line starts with the local time, in microseconds, and the thread's id in the kernel. A line is written whole, by one
// call of the system, and so survives the process. Thread safety: all methods may be called concurrently.
class Logger {
 public:
  // Hands each line, without a newline, to `sink`, which must be thread-safe.
  explicit Logger(std::function<void(std::string_view line)> sink);
  // Writes to the file `path`; one that exists is renamed to `path`.old first.
  static Status OpenFile(const std::string& path, std::unique_ptr<Logger>* logger);
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  // Errors of the file are ignored: a database must not fail because its diary does.
  void Log(std::string_view message);

 private:
  std::function<void(std::string_view)> sink_;
};

}  // namespace braiddb
