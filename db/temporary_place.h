// A database that is made under a temporary name, and gets its own name when it is whole: checkpoints, restores and repairs.
//
// GOAL    Nothing that can be opened is under the target's name before it is whole, and nothing of others is removed.
// STEPS   1 <target>.tmp is made, with the file COPYING in it, which says the directory's own path  2 the database is made in it,
//         and closed  3 the directory is renamed to the target  4 COPYING goes
// CRASH   Before 3: the next copy finds COPYING in <target>.tmp, removes that and begins anew. A directory of this name without
//         COPYING is somebody's, and is an error. After 3: COPYING says another path than its directory has, and means nothing.
#pragma once

#include <functional>
#include <string>

#include "braiddb/status.h"

namespace braiddb {

class TemporaryPlace {
 public:
  // Removes the database in a directory; DB::Destroy with what its caller knows.
  using Destroy = std::function<Status(const std::string& directory)>;

  // Sets *target to the path without symbolic links and without slashes at its end: what is put there takes the place of what the
  // links lead to. InvalidArgument for a link that leads nowhere.
  static Status Resolve(const std::string& path, std::string* target);

  // `target`: as Resolve has it.
  TemporaryPlace(const std::string& target, Destroy destroy);
  const std::string& path() const { return path_; }

  // Step 1, after what a crash left is removed. InvalidArgument if something else stands there.
  Status Make();
  // Removes the directory and the database in it, as far as they are ours.
  Status Remove();
  // Step 4: removes COPYING if it is of another directory. Failing to do it does no harm.
  static void Finish(const std::string& directory);

 private:
  bool IsOurs() const;

  const std::string path_;
  const Destroy destroy_;
};

}  // namespace braiddb
