// Api: the functions of a library that exports RocksDB's C API, as pointers with the names that the library exports.
#pragma once

#include <string>
#include <type_traits>

#include "braiddb/c.h"

namespace braiddb::test {

struct Api {
  std::string file;  // the library
#define FUNCTION(function, ...) std::add_pointer_t<__VA_ARGS__> rocksdb_##function = nullptr;
#include "tests/capi/rocksdb_7_8_3_functions.inc"
#undef FUNCTION
};

// Loads a library into a namespace of its own. Returns "", or why the library cannot be used. The library stays loaded.
std::string LoadApi(const std::string& path, Api* api);

// An error text that a call returned. Each call needs its own Error.
class Error {
 public:
  explicit Error(const Api& api) : api_(api) {}
  ~Error() { Clear(); }
  Error(const Error&) = delete;
  Error& operator=(const Error&) = delete;

  char** pointer() { return &text_; }
  bool failed() const { return text_ != nullptr; }
  // "ok", or the beginning of the text, up to its first colon: the rest is each library's own (docs/FROM_ROCKSDB.md, Errors).
  std::string Take();
  // The whole text, for reports.
  std::string whole() const { return text_ == nullptr ? "" : text_; }

 private:
  void Clear();

  const Api& api_;
  char* text_ = nullptr;
};

}  // namespace braiddb::test
