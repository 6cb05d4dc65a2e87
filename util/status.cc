#include "braiddb/status.h"

namespace braiddb {

namespace {

// Uses RocksDB's wording for codes that RocksDB has, so that scripts that search for it work.
const char* Name(Status::Code code) {
  switch (code) {
    case Status::Code::kOk:
      return "OK";
    case Status::Code::kNotFound:
      return "NotFound";
    case Status::Code::kCorruption:
      return "Corruption";
    case Status::Code::kNotSupported:
      return "Not implemented";
    case Status::Code::kInvalidArgument:
      return "Invalid argument";
    case Status::Code::kIOError:
      return "IO error";
    case Status::Code::kBusy:
      return "Resource busy";
    case Status::Code::kNoSpace:
      return "No space left";
    case Status::Code::kReadOnly:
      return "Read only";
    case Status::Code::kAborted:
      return "Operation aborted";
    case Status::Code::kMemoryLimit:
      return "Memory limit reached";
    case Status::Code::kTimedOut:
      return "Operation timed out";
    case Status::Code::kExpired:
      return "Operation expired";
    case Status::Code::kIncomplete:
      return "Result incomplete";
  }
  return "Unknown";
}

}  // namespace

Status::Status(Code code, std::string_view message)
    : code_(code), message_(message.empty() ? nullptr : std::make_unique<std::string>(message)) {}

Status::Status(const Status& other)
    : code_(other.code_), message_(other.message_ ? std::make_unique<std::string>(*other.message_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) {
    code_ = other.code_;
    message_ = other.message_ ? std::make_unique<std::string>(*other.message_) : nullptr;
  }
  return *this;
}

std::string Status::ToString() const {
  std::string text = Name(code_);
  if (code_ != Code::kOk) text.append(": ").append(message());
  return text;
}

}  // namespace braiddb
