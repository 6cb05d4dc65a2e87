// NewDatabase: the files that an open has made of a new database, until the database is complete.
#pragma once

#include <string>
#include <vector>

#include "util/deferred_syncs.h"

namespace braiddb {

// REQUIRES: used by one thread, from the first file to the last.
class NewDatabase {
 public:
  // REQUIRES: the open has made nothing in `path` yet.
  explicit NewDatabase(const std::string& path);

  // Whether more than one directory of `path` is missing.
  bool makes_parents() const { return directories_.size() > 1; }
  DeferredSyncs* syncs() { return &syncs_; }
  // Removes the files that this open has made before it knew whether a database exists, and empty directories.
  // REQUIRES: no other file of the database exists.
  void RemovePlace() const;

 private:
  std::vector<std::string> files_;
  std::vector<std::string> directories_;  // innermost first
  DeferredSyncs syncs_;
};

}  // namespace braiddb
