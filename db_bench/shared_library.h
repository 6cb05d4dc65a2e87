// SharedLibrary: a library that is loaded at run time, so that its path can be chosen.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

#include "braiddb/status.h"

namespace braiddb::bench {

// Stays loaded until the process ends, because its threads may run until then.
class SharedLibrary {
 public:
  // `path`: as for dlopen, a file or a name. A name is searched first among the loaded libraries, then in LD_LIBRARY_PATH and the
  // system's directories. If `path` is empty, loads the file `otherwise`, or if that file does not exist, a library of its name.
  Status Load(const std::string& path, const std::string& otherwise) {
    handle_ = Open(path.empty() ? otherwise : path);
    if (handle_ == nullptr && path.empty()) handle_ = Open(otherwise.substr(otherwise.rfind('/') + 1));
    return handle_ != nullptr ? Status::OK() : Status::NotSupported(dlerror());
  }

  // Sets *function, which has the type of the header's declaration. Sets null if the library lacks the name.
  template <class Function>
  void Find(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (*function == nullptr) missing_.push_back(name);
  }
  // The names that Find has not found.
  const std::vector<std::string>& missing() const { return missing_; }

  // The file that was loaded.
  std::string path() const {
    const link_map* map = nullptr;
    return dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
  }

 private:
  static void* Open(const std::string& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); }

  void* handle_ = nullptr;
  std::vector<std::string> missing_;
};

}  // namespace braiddb::bench
