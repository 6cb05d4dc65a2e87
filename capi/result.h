// Results of the functions of the C API: error texts and values, allocated by malloc for the caller.
#pragma once

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "braiddb/status.h"

namespace braiddb::capi {

// Replaces *errptr by the text of the error. No effect if errptr is null.
void ReplaceError(char** errptr, const Status& error);
// If `status` is an error, replaces *errptr by its text and returns true.
inline bool SaveError(char** errptr, const Status& status) {
  if (__builtin_expect(status.ok(), 1)) return false;
  ReplaceError(errptr, status);
  return true;
}

// "Not implemented: <function>: <missing> …".
void SaveNotImplemented(char** errptr, const char* function, const char* missing);

// A copy that the caller frees, with a terminating 0 byte behind it. Null only if memory is short; not for an empty text.
char* CopyBytes(std::string_view bytes);

Status Failed(const std::exception& error) noexcept;
inline Status NoMemory() { return Status::MemoryLimit("no DRAM for the result"); }

// Calls `work`, which returns a Status. Converts exceptions to a Status, because none may reach C code.
template <class Work>
Status Guarded(const Work& work) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return NoMemory();
  } catch (const std::exception& error) {  // from std::filesystem
    return Failed(error);
  }
}

// Creates an object. Returns null if memory is short.
template <class Object, class... Arguments>
Object* Make(Arguments&&... arguments) noexcept {
  try {
    return new Object{std::forward<Arguments>(arguments)...};
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Calls `work` for a function without errptr. Stores an error in `unfit`, for a later function with errptr.
template <class Work>
void DoOrNote(Status* unfit, const Work& work) noexcept {
  Status status = Guarded([&] { return work(), Status::OK(); });
  if (!status.ok()) *unfit = std::move(status);
}

// Texts of missing features, for SaveNotImplemented.
inline constexpr const char* kNoColumnFamilies = "there is only the column family \"default\"";
inline constexpr const char* kNoFiles = "there are no table files";

}  // namespace braiddb::capi
