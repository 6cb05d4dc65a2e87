#include "tools/line_input.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/interrupt.h"
#include "util/file.h"

namespace braiddb::tools {
namespace {

constexpr size_t kReadAtOnce = 1 << 20;

}  // namespace

// Moves the rest to the front of the buffer and reads more. Returns false at the end, after an error and after an interrupt.
bool LineInput::Fill() {
  if (fd_ < 0 || is_at_end_) return false;
  const size_t kept = rest_.size();
  if (kept >= kMaxLine) {
    status_ = Status::InvalidArgument("line " + std::to_string(lines_ + 1) + " is longer than 4 GiB");
    return false;
  }
  std::string larger;
  larger.resize(kept + std::max(kReadAtOnce, kept));
  rest_.copy(larger.data(), kept);
  ssize_t bytes = 0;
  do {
    bytes = read(fd_, larger.data() + kept, larger.size() - kept);
  } while (bytes < 0 && errno == EINTR && !IsInterrupted());
  if (bytes < 0) {
    status_ = IsInterrupted() ? Status::Aborted("interrupted") : StatusFromErrno(errno, "reading the input");
    bytes = 0;
  }
  is_at_end_ = bytes == 0;
  buffer_ = std::move(larger);
  rest_ = std::string_view(buffer_).substr(0, kept + static_cast<size_t>(bytes));
  return bytes != 0;
}

std::string_view LineInput::Peek(size_t most) {
  size_t newline = std::string_view::npos;
  do {
    newline = rest_.substr(0, most).find('\n');
  } while (newline == std::string_view::npos && rest_.size() < most && Fill());
  return rest_.substr(0, newline == std::string_view::npos ? most : newline + 1);
}

bool LineInput::Next(std::string_view* line) {
  size_t searched = 0;
  size_t end = std::string_view::npos;
  for (;;) {
    end = rest_.find('\n', searched);
    if (end != std::string_view::npos) break;
    searched = rest_.size();
    if (!Fill()) break;
  }
  if (!status_.ok()) return false;
  const bool has_newline = end != std::string_view::npos;
  if (!has_newline && rest_.empty()) return false;
  *line = rest_.substr(0, has_newline ? end : rest_.size());
  rest_.remove_prefix(line->size() + (has_newline ? 1 : 0));
  offset_ += line->size() + (has_newline ? 1 : 0);
  ++lines_;
  is_cut_ = !has_newline;
  return true;
}

Status LineInput::Seek(uint64_t offset, uint64_t lines) {
  if (fd_ < 0) {
    if (offset > rest_.size()) return Status::InvalidArgument("the input is shorter than it was");
    rest_.remove_prefix(static_cast<size_t>(offset));
  } else if (lseek(fd_, static_cast<off_t>(offset), SEEK_SET) < 0) {
    return StatusFromErrno(errno, "seeking in the input");
  } else {
    rest_ = {};
  }
  is_at_end_ = false;
  offset_ = offset;
  lines_ = lines;
  return Status::OK();
}

}  // namespace braiddb::tools
