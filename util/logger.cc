#include "util/logger.h"

#include <fcntl.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>

#include "util/file.h"
#include "util/format.h"

namespace braiddb {

namespace {

class LogFile {
 public:
  explicit LogFile(int fd) : fd_(fd) {}
  ~LogFile() { close(fd_); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // One append of one line: with O_APPEND lines of different threads do not mix, without a lock.
  void Append(std::string_view line) const {
    char newline = '\n';
    const iovec parts[] = {{const_cast<char*>(line.data()), line.size()}, {&newline, 1}};
    [[maybe_unused]] const ssize_t written = writev(fd_, parts, 2);
  }

 private:
  const int fd_;
};

std::string Stamp() {
  timeval now;
  gettimeofday(&now, nullptr);
  tm local;
  localtime_r(&now.tv_sec, &local);
  return Format("%04d/%02d/%02d-%02d:%02d:%02d.%06ld %d ", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday, local.tm_hour,
                local.tm_min, local.tm_sec, static_cast<long>(now.tv_usec), gettid());
}

}  // namespace

Logger::Logger(std::function<void(std::string_view)> sink) : sink_(std::move(sink)) {}

Status Logger::OpenFile(const std::string& path, std::unique_ptr<Logger>* logger) {
  const std::string old_path = path + ".old";
  if (rename(path.c_str(), old_path.c_str()) != 0 && errno != ENOENT) {
    return StatusFromErrno(errno, "cannot rename the log file " + path);
  }
  const int fd = OpenOwnFile(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
  if (fd < 0) return StatusFromErrno(errno, "cannot create the log file " + path);
  *logger = std::make_unique<Logger>([file = std::make_shared<LogFile>(fd)](std::string_view line) { file->Append(line); });
  return Status::OK();
}

// A message is one line, whatever is in the names that it has.
void Logger::Log(std::string_view message) {
  if (!sink_) return;
  std::string line = Stamp();
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte != 127) {
      line += c;
    } else {
      line += Format("\\x%02x", byte);
    }
  }
  sink_(line);
}

}  // namespace braiddb
