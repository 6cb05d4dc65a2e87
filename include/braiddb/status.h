// Status: the result of every operation that can fail.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)
namespace braiddb {

// A code and, unless OK, a message that says what to do. Copyable and cheap to move. OK allocates no memory.
// Thread safety: const methods may be called concurrently.
class [[nodiscard]] Status {
 public:
  enum class Code : uint8_t {
    kOk = 0,
    kNotFound = 1,
    kCorruption = 2,
    kNotSupported = 3,
    kInvalidArgument = 4,
    kIOError = 5,
    kBusy = 6,      // locked by another process, handle or transaction, or too many threads
    kNoSpace = 7,   // persistent memory is full: reads continue, writes need a larger limit
    kReadOnly = 8,  // an earlier persist failed; the database accepts reads only
    kAborted = 9,
    kMemoryLimit = 10,  // DRAM could not be allocated
    kTimedOut = 11,     // a lock was not available in time
    kExpired = 12,      // a transaction is older than its TransactionOptions::expiration_ms
    kIncomplete = 13,   // an iterator reached ReadOptions::max_skippable_internal_keys
  };

  Status() = default;
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;

  static Status OK() { return Status(); }
  // Without a message, as a get returns it, NotFound allocates no memory.
  static Status NotFound() { return Status(Code::kNotFound); }
  static Status NotFound(std::string_view message) { return Status(Code::kNotFound, message); }
  static Status Corruption(std::string_view message) { return Status(Code::kCorruption, message); }
  static Status NotSupported(std::string_view message) { return Status(Code::kNotSupported, message); }
  static Status InvalidArgument(std::string_view message) { return Status(Code::kInvalidArgument, message); }
  static Status IOError(std::string_view message) { return Status(Code::kIOError, message); }
  static Status Busy(std::string_view message) { return Status(Code::kBusy, message); }
  static Status NoSpace(std::string_view message) { return Status(Code::kNoSpace, message); }
  static Status ReadOnly(std::string_view message) { return Status(Code::kReadOnly, message); }
  static Status Aborted(std::string_view message) { return Status(Code::kAborted, message); }
  static Status MemoryLimit(std::string_view message) { return Status(Code::kMemoryLimit, message); }
  static Status TimedOut(std::string_view message) { return Status(Code::kTimedOut, message); }
  static Status Expired(std::string_view message) { return Status(Code::kExpired, message); }
  static Status Incomplete(std::string_view message) { return Status(Code::kIncomplete, message); }

  bool ok() const { return code_ == Code::kOk; }
  bool IsNotFound() const { return code_ == Code::kNotFound; }
  bool IsCorruption() const { return code_ == Code::kCorruption; }
  bool IsNotSupported() const { return code_ == Code::kNotSupported; }
  bool IsInvalidArgument() const { return code_ == Code::kInvalidArgument; }
  bool IsIOError() const { return code_ == Code::kIOError; }
  bool IsBusy() const { return code_ == Code::kBusy; }
  bool IsNoSpace() const { return code_ == Code::kNoSpace; }
  bool IsReadOnly() const { return code_ == Code::kReadOnly; }
  bool IsAborted() const { return code_ == Code::kAborted; }
  bool IsMemoryLimit() const { return code_ == Code::kMemoryLimit; }
  bool IsTimedOut() const { return code_ == Code::kTimedOut; }
  bool IsExpired() const { return code_ == Code::kExpired; }
  bool IsIncomplete() const { return code_ == Code::kIncomplete; }

  Code code() const { return code_; }
  // The message without the code's name; empty for OK.
  std::string_view message() const { return message_ ? std::string_view(*message_) : std::string_view(); }
  // "OK", or the code's name and the message as RocksDB writes them: "Invalid argument: …".
  std::string ToString() const;

 private:
  explicit Status(Code code) : code_(code) {}
  Status(Code code, std::string_view message);

  Code code_ = Code::kOk;
  std::unique_ptr<std::string> message_;
};

}  // namespace braiddb
#pragma GCC visibility pop
