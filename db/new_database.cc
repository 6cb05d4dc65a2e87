#include "db/new_database.h"

#include <filesystem>

#include "pmem/database_file.h"
#include "util/file.h"

namespace braiddb {

NewDatabase::NewDatabase(const std::string& path) : syncs_(AbsolutePath(path)) {
  for (const char* name : {"/LOCK", "/LOG", "/OPTIONS"}) {
    if (!FileExists(path + name)) files_.push_back(path + name);
  }
  for (std::filesystem::path missing(path); !missing.empty() && !FileExists(missing.string()); missing = missing.parent_path()) {
    directories_.push_back(missing.string());
  }
}

void NewDatabase::RemovePlace() const {
  for (const std::string& file : files_) (void)RemoveFile(file);
  for (const std::string& directory : directories_) (void)RemoveDir(directory);  // stays if another process uses it
}

}  // namespace braiddb
