#include "tools/stores/shared_object.h"

#include <dlfcn.h>

namespace braiddb::tools {

Status SharedObject::Load(const std::string& library, const std::vector<std::string>& names, const std::string& package) {
  std::string why;
  for (const std::string& name : library.empty() ? names : std::vector<std::string>{library}) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    name_ = name;
    if (handle_ != nullptr) return Status::OK();
    why = dlerror();
  }
  if (!library.empty()) return Status::NotSupported(why);
  return Status::NotSupported("there is no library " + names.front() + "; install it (Debian: " + package +
                              "), or name it by --library");
}

void* SharedObject::Address(const char* name) const { return dlsym(handle_, name); }

}  // namespace braiddb::tools
