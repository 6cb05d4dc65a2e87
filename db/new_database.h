// NewDatabase: what an open has made of a database that it creates, until that is whole.
#pragma once

#include <string>
#include <vector>

#include "util/deferred_syncs.h"

namespace braiddb {

// REQUIRES: one thread, from the first file to the end.
class NewDatabase {
 public:
  // Before the open makes anything in `path`.
  explicit NewDatabase(const std::string& path);

  // Whether more than one directory on the way to `path` is missing.
  bool makes_parents() const { return directories_.size() > 1; }
  DeferredSyncs* syncs() { return &syncs_; }
  // Removes the files that this open has made before it knew whether there would be a database, and empty directories.
  // REQUIRES: nothing else of the database is there.
  void RemovePlace() const;

 private:
  std::vector<std::string> files_;
  std::vector<std::string> directories_;  // innermost first
  DeferredSyncs syncs_;
};

}  // namespace braiddb
