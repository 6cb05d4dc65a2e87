// What the functions of the C API give back: error texts and values, malloc'ed for whoever called.
#pragma once

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "braiddb/status.h"

namespace braiddb::capi {

// Replaces *errptr by the text of an error. A null errptr: nobody wants to know.
void ReplaceError(char** errptr, const Status& error);
// True, and *errptr replaced by the text of `status`, if that is an error.
inline bool SaveError(char** errptr, const Status& status) {
  if (__builtin_expect(status.ok(), 1)) return false;
  ReplaceError(errptr, status);
  return true;
}

// "Not implemented: <function>: <missing> …".
void SaveNotImplemented(char** errptr, const char* function, const char* missing);

// A copy for the caller to free; not null of nothing, only if there is no memory. A 0 byte follows it, which is not counted.
char* CopyBytes(std::string_view bytes);

Status Failed(const std::exception& error) noexcept;
inline Status NoMemory() { return Status::MemoryLimit("no DRAM for the result"); }

// Runs `work`, which returns a Status; exceptions do not go into C.
template <class Work>
Status Guarded(const Work& work) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return NoMemory();
  } catch (const std::exception& error) {  // of the file system
    return Failed(error);
  }
}

// A new object, or null: there is no memory, and nobody to tell.
template <class Object, class... Arguments>
Object* Make(Arguments&&... arguments) noexcept {
  try {
    return new Object{std::forward<Arguments>(arguments)...};
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Does what a function without errptr has to do. What it could not do is noted in `unfit`, for one that has an errptr.
template <class Work>
void DoOrNote(Status* unfit, const Work& work) noexcept {
  Status status = Guarded([&] { return work(), Status::OK(); });
  if (!status.ok()) *unfit = std::move(status);
}

// What is missing, for SaveNotImplemented.
inline constexpr const char* kNoColumnFamilies = "there is only the column family \"default\"";
inline constexpr const char* kNoTimestamps = "timestamps of the user";
inline constexpr const char* kNoFiles = "there are no table files";

}  // namespace braiddb::capi
