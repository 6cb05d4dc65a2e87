#include "util/logger.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <utility>

#include "util/file.h"
#include "util/format.h"

namespace braiddb {

// The file's size is counted under the mutex, since no other object writes to the file.
class Logger::File {
 public:
  File(std::string path, uint64_t max_bytes) : path_(std::move(path)), max_bytes_(max_bytes), limit_(max_bytes), fd_(Open()) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void BeginRotation() {
    const std::lock_guard lock(mutex_);
    rotates_ = true;
    if (bytes_ >= limit_) Rotate();
  }

  void Append(std::string_view line) {
    const std::lock_guard lock(mutex_);
    if (fd_ < 0) return;
    if (rotates_ && bytes_ >= limit_) Rotate();
    char newline = '\n';
    const iovec parts[] = {{const_cast<char*>(line.data()), line.size()}, {&newline, 1}};
    const ssize_t written = writev(fd_, parts, 2);
    if (written == static_cast<ssize_t>(line.size() + 1)) {
      bytes_ += line.size() + 1;
    } else if (written > 0) {  // the file system is full
      [[maybe_unused]] const int cut = ftruncate(fd_, static_cast<off_t>(bytes_));
    }
  }

 private:
  int Open() {
    const int fd = OpenOwnFile(path_, O_WRONLY | O_CREAT | O_APPEND);
    struct stat file;
    bytes_ = fd >= 0 && fstat(fd, &file) == 0 ? static_cast<uint64_t>(file.st_size) : 0;
    return fd;
  }

  // Renames the oldest file first, so that only the oldest one is replaced. After an error, the next attempt comes when the file
  // has grown by max_bytes_ again.
  void Rotate() {
    limit_ = bytes_ + max_bytes_;
    const std::vector<std::string> files = Logger::Files(path_);
    for (size_t i = files.size() - 1; i > 0; --i) {
      if (rename(files[i - 1].c_str(), files[i].c_str()) != 0 && errno != ENOENT) return;
    }
    const int old = fd_;
    const uint64_t old_bytes = bytes_;
    fd_ = Open();
    if (fd_ < 0) {
      fd_ = old;  // continues under the new name
      bytes_ = old_bytes;
      return;
    }
    close(old);
    limit_ = max_bytes_;
  }

  const std::string path_;
  const uint64_t max_bytes_;
  std::mutex mutex_;  // protects the following members
  uint64_t limit_;    // size at which the file is renamed
  bool rotates_ = false;
  uint64_t bytes_ = 0;
  int fd_;  // negative: no file
};

namespace {

std::string Stamp() {
  timeval now;
  gettimeofday(&now, nullptr);
  tm local;
  localtime_r(&now.tv_sec, &local);
  return Format("%04d/%02d/%02d-%02d:%02d:%02d.%06ld %d ", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday, local.tm_hour,
                local.tm_min, local.tm_sec, static_cast<long>(now.tv_usec), gettid());
}

// A message is one line, also if a name in it has control characters.
std::string WithoutControls(std::string_view message) {
  std::string line;
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte != 127) {
      line += c;
    } else {
      line += Format("\\x%02x", byte);
    }
  }
  return line;
}

}  // namespace

Logger::Logger(std::function<void(std::string_view)> sink) : sink_(std::move(sink)) {}
Logger::Logger() = default;
Logger::~Logger() = default;

std::unique_ptr<Logger> Logger::OpenFile(const std::string& path, uint64_t max_bytes) {
  std::unique_ptr<Logger> logger(new Logger());
  logger->file_ = std::make_unique<File>(path, max_bytes);
  return logger;
}

std::vector<std::string> Logger::Files(const std::string& path) {
  std::vector<std::string> files = {path, path + ".old"};
  for (int i = 2; i < kMaxFiles; ++i) files.push_back(path + ".old." + std::to_string(i));
  return files;
}

void Logger::BeginRotation() {
  if (file_ != nullptr) file_->BeginRotation();
}

void Logger::Log(std::string_view message, std::span<const std::string> details) {
  if (!sink_ && file_ == nullptr) return;
  std::string text = Stamp() + WithoutControls(message);
  for (const std::string& detail : details) {
    if (file_ == nullptr) sink_(std::exchange(text, {}));
    text.append(file_ == nullptr ? "" : "\n").append("  ").append(WithoutControls(detail));
  }
  file_ != nullptr ? file_->Append(text) : sink_(text);
}

}  // namespace braiddb
