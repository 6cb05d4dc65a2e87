// DeferredSyncs: syncs that a thread puts off, to make all of them in one batch.
//
// USE   The creation of a database makes about a dozen small files, names and pools. Nobody has been promised anything of
//       them, so their order does not count: see DBImpl::CreateFiles (db/place.cc) for the argument. [CC-1]
// WHY   Each fsync(2) of a new file or name is a commit of the file system's journal, and so is each msync(2) of a new page.
//       Syncs that follow each other without new metadata in between share one commit.
// STEPS of End  1 the files are written back, and End waits for that: now they have their blocks  2 the pools are synced
//       3 each file  4 each directory. The commit of step 2 has the metadata of all of them.
// WHICH FILES  Those in one directory tree, and the directories that lead to it. Others are synced at once: they may be on
//       another file system, and may become durable before the tree does.
#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/status.h"

namespace braiddb {

// While one is active, Sync of the calling thread puts off, and so do drains in PersistMode::kPage (pmem/page_sync.h). Other
// threads do as ever.
// REQUIRES: at most one on a thread.
class DeferredSyncs {
 public:
  // `directory`: absolute, without symbolic links. It need not exist.
  explicit DeferredSyncs(std::string directory);
  ~DeferredSyncs();
  DeferredSyncs(const DeferredSyncs&) = delete;
  DeferredSyncs& operator=(const DeferredSyncs&) = delete;

  // As fsync(2), now or at the end. `fd` may be closed after it.
  static int Sync(int fd);
  // Whether one is active on the calling thread.
  static bool active();

  // Between the two, this thread syncs as ever.
  void Suspend();
  void Resume();
  // Syncs a directory, now or at the end, if this user can open it.
  Status Add(const std::string& directory);
  // Syncs the files that were put off so far; later ones are put off again.
  Status SyncFiles();
  // Syncs everything that was put off. `sync_pools` drains the calling thread. Not active any more.
  Status End(const std::function<Status()>& sync_pools);

 private:
  struct File {
    int fd;
    bool is_directory;
  };

  bool Concerns(int fd) const;
  bool PutOff(int fd);
  void WriteBack() const;
  void CloseFiles();

  const std::string directory_;
  std::vector<File> files_;
  std::set<std::pair<dev_t, ino_t>> known_;  // of files_
};

}  // namespace braiddb
