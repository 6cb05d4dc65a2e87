// A database that is made under a temporary name, and renamed when it is complete: checkpoints, restores and repairs.
//
// GOAL    Under the target's name there is no incomplete database that can be opened, and no files of others are removed.
// STEPS   1 create <target>.tmp, with the file COPYING, which contains the directory's own path  2 create the database there, and
//         close it  3 rename the directory to the target  4 remove COPYING
// CRASH   Before 3: the next copy finds COPYING in <target>.tmp, removes the directory and begins again. A directory of this name
//         without COPYING belongs to somebody else, and is an error. After 3: COPYING contains another path than that of its
//         directory, and is without effect.
//
// A restore replaces a database. The old database is renamed to <target>.old before step 3, and removed after step 3. Before the
// rename it gets a file COPYING with the path <target>.old: only at this path is it recognized as moved by a restore. Step 4
// follows the removal. Until then COPYING in the target contains <target>.tmp, and only then is <target>.old removed. Files of
// others in the old directory are moved to the target before that.
#pragma once

#include <functional>
#include <string>

#include "braiddb/status.h"

namespace braiddb {

class TemporaryPlace {
 public:
  // Removes the database in a directory: DB::Destroy with the options of the caller.
  using Destroy = std::function<Status(const std::string& directory)>;

  // Sets *target to the path without symbolic links and without slashes at its end, so that a rename to it replaces the directory
  // that the links lead to. InvalidArgument if a link leads nowhere, except if a restore has moved its target to <target>.old.
  static Status Resolve(const std::string& path, std::string* target);

  // `target`: a result of Resolve.
  TemporaryPlace(const std::string& target, Destroy destroy);
  const std::string& path() const { return path_; }

  // Step 1. First removes what a crash left. InvalidArgument if another file or directory has the name.
  Status Make();
  // Removes the directory and the database in it, if COPYING shows that they are ours.
  Status Remove();
  // Removes what an interrupted copy to `path` left. If a restore had moved the old database away, and had not put the new one in
  // its place, the old one gets its name back.
  static Status RemoveUnfinished(const std::string& path, const Destroy& destroy);
  // The path to which a restore moves the database at `target`.
  static std::string OldOf(const std::string& target) { return target + ".old"; }
  // Returns InvalidArgument if a file that BraidDB has not written has the name of the mark.
  static Status CheckMarkable(const std::string& target);
  // Marks the database at `target`, which is about to be moved to OldOf(target). Errors as CheckMarkable.
  static Status MarkOld(const std::string& target);
  // Finishes a restore, also one that a crash interrupted. If nothing is at `target`, moves OldOf(target) back. If the new
  // database is at `target`, removes OldOf(target) and then does step 4. Leaves a directory that no restore has moved. Leaves
  // everything if another database is at `target`.
  Status FinishReplacement(const std::string& target);
  // Called when the database in the directory was opened to write: no restore may remove it any more, even if one had moved it or
  // was about to.
  static void KeepOld(const std::string& directory);
  // Step 4: removes COPYING if a copy or a restore has written it, with the path of another directory. A failure does no harm.
  static void Finish(const std::string& directory);

 private:
  bool IsOurs() const;
  Status RemoveOld(const std::string& old, const std::string& target) const;

  const std::string path_;
  const Destroy destroy_;
};

}  // namespace braiddb
