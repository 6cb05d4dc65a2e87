// LineInput: the lines of a file or a pipe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "braiddb/status.h"

namespace braiddb::tools {

// Thread safety: one thread at a time.
class LineInput {
 public:
  // A line of this length or more ends the input with an error; bytes.
  static constexpr uint64_t kMaxLine = 4ull << 30;

  explicit LineInput(int fd) : fd_(fd) {}  // does not own the descriptor
  // Reads from memory, for tests. `data` must outlive the object.
  explicit LineInput(std::string_view data) : rest_(data) {}

  // Sets *line to the next line without its newline. It is valid until the next call. Returns false at the end and after an
  // error.
  bool Next(std::string_view* line);
  // The first bytes of what Next has not read: the next line with its newline, or its first bytes if it is longer than `most`.
  // Valid until the next call.
  std::string_view Peek(size_t most);
  // Whether the input ended in the last line, which has no newline.
  bool is_cut() const { return is_cut_; }
  const Status& status() const { return status_; }
  // Of the input behind the last line.
  uint64_t offset() const { return offset_; }
  uint64_t lines() const { return lines_; }
  // Goes on at an offset between two lines. REQUIRES: the input is a regular file, or memory.
  Status Seek(uint64_t offset, uint64_t lines);

 private:
  bool Fill();

  const int fd_ = -1;
  std::string buffer_;
  std::string_view rest_;  // in the buffer, or in memory
  uint64_t offset_ = 0;
  uint64_t lines_ = 0;
  bool is_at_end_ = false;
  bool is_cut_ = false;
  Status status_;
};

}  // namespace braiddb::tools
