#include "capi/result.h"

#include <cstdlib>
#include <cstring>
#include <string>

namespace braiddb::capi {
namespace {

// Also when there is no memory for the whole text.
void ReplaceError(char** errptr, std::string_view text) {
  std::free(*errptr);
  *errptr = CopyBytes(text);
}

}  // namespace

bool SaveError(char** errptr, const Status& status) {
  if (status.ok()) return false;
  if (errptr == nullptr) return true;
  try {
    ReplaceError(errptr, status.ToString());
  } catch (const std::bad_alloc&) {
    ReplaceError(errptr, "Memory limit reached: no DRAM for the text of an error");
  }
  return true;
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
