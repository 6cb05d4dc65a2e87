// SharedObject: a library that is loaded when a command asks for it.
#pragma once

#include <string>
#include <vector>

#include "braiddb/status.h"

namespace braiddb::tools {

// The library stays loaded until the process ends, as its threads and exit handlers may be in use.
class SharedObject {
 public:
  // Loads `library`, or if that is empty the first of `names` that is installed. NotSupported if there is none.
  Status Load(const std::string& library, const std::vector<std::string>& names, const std::string& package);
  // Sets *function. NotSupported if the library lacks the function.
  template <class Function>
  Status Find(const char* name, Function** function) const {
    *function = reinterpret_cast<Function*>(Address(name));
    return *function != nullptr ? Status::OK() : Status::NotSupported(name_ + " has no function " + name);
  }

 private:
  void* Address(const char* name) const;

  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace braiddb::tools
