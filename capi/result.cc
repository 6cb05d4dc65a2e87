#include "capi/result.h"

#include <cstdlib>
#include <cstring>
#include <string>

namespace braiddb::capi {
namespace {

// Sets a text also if memory for the whole text is short.
void ReplaceText(char** errptr, std::string_view text) {
  std::free(*errptr);
  *errptr = CopyBytes(text);
}

// RocksDB's texts. Lack of space or memory is a subcode of another error there. A database that has become read-only returns the
// error of the write that caused it.
std::string TextOf(const Status& status) {
  const auto as = [&status](std::string_view kind) {
    return std::string(kind).append(status.message().empty() ? "" : ": ").append(status.message());
  };
  if (status.IsNoSpace()) return as("IO error: No space left on device");
  if (status.IsMemoryLimit()) return as("Operation aborted: Memory limit reached");
  if (status.IsReadOnly()) return as("IO error");
  return status.ToString();
}

}  // namespace

void ReplaceError(char** errptr, const Status& error) {
  if (errptr == nullptr) return;
  try {
    ReplaceText(errptr, TextOf(error));
  } catch (const std::bad_alloc&) {
    ReplaceText(errptr, "Operation aborted: Memory limit reached: no DRAM for the text of an error");
  }
}

void SaveNotImplemented(char** errptr, const char* function, const char* missing) {
  SaveError(errptr, Guarded([&] { return Status::NotSupported(std::string(function) + ": " + missing); }));
}

Status Failed(const std::exception& error) noexcept {
  try {
    return Status::IOError(error.what());
  } catch (const std::bad_alloc&) {
    return Status::IOError({});
  }
}

char* CopyBytes(std::string_view bytes) {
  char* const copy = static_cast<char*>(std::malloc(bytes.size() + 1));
  if (copy == nullptr) return nullptr;
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  copy[bytes.size()] = '\0';
  return copy;
}

}  // namespace braiddb::capi
