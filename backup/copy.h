// What copies of a database have in common.
#pragma once

#include <functional>
#include <string>

#include "braiddb/backup.h"
#include "braiddb/db.h"

namespace braiddb {

// Bytes of updates that a copy writes at a time.
inline constexpr uint64_t kCopiedAtOnce = 256ull << 10;

// What is to be made, and where.
struct Copy {
  Options options;  // that it is made with
  Options noted;    // that its options file says it was opened with, but for its regions
  std::string path;
  bool replaces;  // what is at `path`
  const CopyOptions& how;
};

// Creates a database at `path`.tmp, lets `fill` write to it, closes it, and gives it its name; with `replaces` in place of one
// that is there, which is `path`.old for a moment. On error what was in `path` stays, and of the new one nothing, unless that
// cannot be removed.
Status MakeDatabase(Copy copy, const std::function<Status(DB*)>& fill);

// What `db` was opened with, by its options file; if that cannot be read, what it chose.
Options OpenedWith(DB* db);

// A snapshot, for as long as it is in scope.
class CopiedState {
 public:
  explicit CopiedState(DB* db) : db_(db), snapshot_(db->GetSnapshot()) {}
  ~CopiedState() { db_->ReleaseSnapshot(snapshot_); }
  CopiedState(const CopiedState&) = delete;
  CopiedState& operator=(const CopiedState&) = delete;

  uint64_t sequence() const { return snapshot_->GetSequenceNumber(); }
  // An iterator that verifies what it shows.
  std::unique_ptr<Iterator> NewIterator() const {
    ReadOptions read;
    read.snapshot = snapshot_;
    read.verify_checksums = true;
    return db_->NewIterator(read);
  }

 private:
  DB* const db_;
  const Snapshot* const snapshot_;
};

// What is written to a copy need not be durable before it is closed.
inline WriteOptions CopyWrites() {
  WriteOptions options;
  options.sync = false;
  return options;
}

}  // namespace braiddb
