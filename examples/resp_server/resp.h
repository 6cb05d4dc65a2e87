// RESP2, the protocol of Redis: commands from bytes, and replies as bytes. See https://redis.io/docs/reference/protocol-spec.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace resp {

inline void AppendSimple(std::string* out, std::string_view text) { out->append("+").append(text).append("\r\n"); }
// An error is one line.
inline void AppendError(std::string* out, std::string text) {
  for (char& c : text) {
    if (c == '\r' || c == '\n') c = ' ';
  }
  out->append("-").append(text).append("\r\n");
}
inline void AppendInteger(std::string* out, int64_t number) { out->append(":").append(std::to_string(number)).append("\r\n"); }
inline void AppendBulk(std::string* out, std::string_view bytes) {
  out->append("$").append(std::to_string(bytes.size())).append("\r\n").append(bytes).append("\r\n");
}
inline void AppendNull(std::string* out) { out->append("$-1\r\n"); }
// The elements follow.
inline void AppendArray(std::string* out, size_t size) { out->append("*").append(std::to_string(size)).append("\r\n"); }

// Takes bytes as they come, and gives commands: arrays of bulk strings, or a line of words, which
// know no quotes.
class CommandParser {
 public:
  static constexpr int64_t kMostWords = 1 << 20;
  static constexpr int64_t kMostBytes = int64_t{512} << 20;  // of a word
  static constexpr size_t kMostCommand = size_t{1} << 30;
  static constexpr size_t kMostLine = 64 << 10;
  static constexpr size_t kMostKept = 1 << 20;  // of the buffer, between commands

  // Space for `size` more bytes. Words of the last Next are invalid from now on.
  char* Room(size_t size) {
    if (begin_ == end_) {
      begin_ = end_ = 0;
      if (buffer_.size() > kMostKept) buffer_ = std::string();
    }
    if (begin_ > 0) {
      memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (buffer_.size() < end_ + size) buffer_.resize(std::max(end_ + size, 2 * buffer_.size()));
    return buffer_.data() + end_;
  }
  // So many bytes of it were filled.
  void Filled(size_t size) { end_ += size; }

  // The next command, if all of it is there. An empty line has no words. The words are valid until Room is called.
  bool Next(std::vector<std::string_view>* words) {
    words->clear();
    // The parts of a command that came before are not parsed again: a large command comes in many pieces.
    if (!error_.empty()) return false;
    if (at_ < 0 && !BeginCommand(words)) return false;
    if (at_ < 0) return true;  // a line
    while (static_cast<int64_t>(places_.size()) < count_) {
      if (!NextWord()) return false;
    }
    for (const Place& place : places_) words->push_back(View(place.offset, place.size));
    begin_ += static_cast<size_t>(at_);
    at_ = -1;
    places_.clear();
    return true;
  }
  // Why no more commands can come; empty: they can.
  const std::string& error() const { return error_; }

 private:
  struct Place {
    size_t offset;  // from begin_
    size_t size;
  };

  std::string_view View(size_t offset, size_t size) const { return {buffer_.data() + begin_ + offset, size}; }
  // The line at `offset`, without its end; false if it has not come whole.
  bool Line(size_t offset, std::string_view* line, size_t* behind) {
    const std::string_view rest = View(offset, end_ - begin_ - offset);
    const size_t size = rest.find('\n');
    if (size == std::string_view::npos) {
      if (rest.size() > kMostLine) error_ = "too big inline request";
      return false;
    }
    *line = rest.substr(0, size);
    if (line->ends_with('\r')) line->remove_suffix(1);
    *behind = offset + size + 1;
    return true;
  }
  bool Number(std::string_view text, int64_t least, int64_t most, int64_t* number) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *number);
    return code == std::errc() && end == text.data() + text.size() && *number >= least && *number <= most;
  }
  bool BeginCommand(std::vector<std::string_view>* words) {
    std::string_view line;
    size_t behind = 0;
    if (!Line(0, &line, &behind)) return false;
    if (!line.starts_with('*')) {
      while (!line.empty()) {
        const size_t size = std::min(line.size(), line.find(' '));
        if (size > 0) words->push_back(line.substr(0, size));
        line.remove_prefix(std::min(line.size(), size + 1));
      }
      begin_ += behind;
      return true;
    }
    if (!Number(line.substr(1), INT64_MIN, kMostWords, &count_)) {
      error_ = "invalid multibulk length";
      return false;
    }
    at_ = static_cast<int64_t>(behind);
    return true;
  }
  bool NextWord() {
    std::string_view line;
    size_t behind = 0;
    if (!Line(static_cast<size_t>(at_), &line, &behind)) return false;
    int64_t size = 0;
    if (!line.starts_with('$')) {
      error_ = "expected '$'";
      return false;
    }
    if (!Number(line.substr(1), 0, kMostBytes, &size)) {
      error_ = "invalid bulk length";
      return false;
    }
    const size_t bytes = static_cast<size_t>(size);
    if (behind + bytes > kMostCommand) {
      error_ = "a command of more than 1 GiB";
      return false;
    }
    if (end_ - begin_ < behind + bytes + 2) return false;
    places_.push_back({behind, bytes});
    at_ = static_cast<int64_t>(behind + bytes + 2);
    return true;
  }

  std::string buffer_;
  size_t begin_ = 0, end_ = 0;  // bytes that are not parsed
  std::string error_;
  // A command that has come in part: its number of words, those that are there, and where the next one begins, from begin_.
  int64_t at_ = -1;  // -1: no command has begun
  int64_t count_ = 0;
  std::vector<Place> places_;
};

}  // namespace resp
