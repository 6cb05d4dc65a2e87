// A database that is made under a temporary name, and gets its own name when it is whole: checkpoints, restores and repairs.
//
// GOAL    Nothing that can be opened is under the target's name before it is whole, and nothing of others is removed.
// STEPS   1 <target>.tmp is made, with the file COPYING in it, which says the directory's own path  2 the database is made in it,
//         and closed  3 the directory is renamed to the target  4 COPYING goes
// CRASH   Before 3: the next copy finds COPYING in <target>.tmp, removes that and begins anew. A directory of this name without
//         COPYING is somebody's, and is an error. After 3: COPYING says another path than its directory has, and means nothing.
//
// A restore replaces a database: that becomes <target>.old before step 3, and is removed after it. It gets a file COPYING first,
// which says the path <target>.old: so there, and only there, it is known for one that a restore has moved. Step 4 comes after
// its removal: until then COPYING in the target says <target>.tmp, and only with that is <target>.old removed.
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
  // links lead to. InvalidArgument for a link that leads nowhere, but where a restore has moved what was there to <target>.old.
  static Status Resolve(const std::string& path, std::string* target);

  // `target`: as Resolve has it.
  TemporaryPlace(const std::string& target, Destroy destroy);
  const std::string& path() const { return path_; }

  // Step 1, after what a crash left is removed. InvalidArgument if something else stands there.
  Status Make();
  // Removes the directory and the database in it, as far as they are ours.
  Status Remove();
  // What a restore moves the database at `target` to.
  static std::string OldOf(const std::string& target) { return target + ".old"; }
  // The database at `target` is about to be moved there.
  static Status MarkOld(const std::string& target);
  // Of a restore, also one that a crash cut short: gives OldOf(target) its name back if nothing is at `target`; removes it if the
  // new database is there, and then does step 4. Leaves what no restore has moved, and all if another database is at `target`.
  Status FinishReplacement(const std::string& target);
  // Somebody has opened the database in the directory to write to it: no restore removes it any more, as one that it has moved or
  // was about to move.
  static void KeepOld(const std::string& directory);
  // Step 4: removes COPYING if it is of another directory. Failing to do it does no harm.
  static void Finish(const std::string& directory);

 private:
  bool IsOurs() const;
  Status RemoveOld(const std::string& old) const;

  const std::string path_;
  const Destroy destroy_;
};

}  // namespace braiddb
