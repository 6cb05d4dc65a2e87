#include "tests/differential/api.h"

#include <dlfcn.h>

#include <filesystem>

namespace braiddb::test {

std::string LoadApi(const std::string& path, Api* api) {
  // RTLD_DEEPBIND: calls inside the library stay inside it, whatever the process has under the same names.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (library == nullptr) return dlerror();
  std::string missing;
  const auto find = [&](const char* function, auto* pointer) {
    void* const found = dlsym(library, function);
    // RocksDB 7.8.3 declares this one and does not define it.
    const bool needed = std::string(function) != "rocksdb_writebatch_wi_create_from";
    if (found == nullptr && needed) missing += std::string(" ") + function;
    *pointer = reinterpret_cast<std::remove_pointer_t<decltype(pointer)>>(found);
  };
#define FUNCTION(function, ...) find("rocksdb_" #function, &api->rocksdb_##function);
#include "tests/capi/rocksdb_7_8_3_functions.inc"
#undef FUNCTION
  if (!missing.empty()) return path + " has no" + missing;
  Dl_info where;
  if (dladdr(reinterpret_cast<void*>(api->rocksdb_open), &where) != 0) api->file = std::filesystem::canonical(where.dli_fname);
  return "";
}

std::string Error::Take() {
  if (text_ == nullptr) return "ok";
  const std::string text = text_;
  Clear();
  return text.substr(0, text.find(':'));
}

void Error::Clear() {
  if (text_ != nullptr) api_.rocksdb_free(text_);
  text_ = nullptr;
}

}  // namespace braiddb::test
