// Common parts of all copies of a database.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/backup.h"
#include "braiddb/db.h"

namespace braiddb {

class DBImpl;

// Batch size of a copy, in bytes of updates.
inline constexpr uint64_t kCopiedAtOnce = 256ull << 10;

// What copy is created, and where.
struct Copy {
  Options options;  // the options that create the copy
  Options noted;    // the options to store in the copy's options file, except the regions
  std::string path;
  bool replaces;  // whether a database at `path` is replaced
  const CopyOptions& how;
};

// Resolves symbolic links in `path` first. Creates a database at `path`.tmp (db/temporary_place.h), calls `fill` to write to it,
// closes it, and renames it to `path`. With `replaces`, an existing database is renamed to `path`.old until the copy has its
// name, and is then removed. After an error `path` is unchanged and the new database is removed, if possible.
Status MakeDatabase(Copy copy, const std::function<Status(DB*)>& fill);

// The options with which `db` was opened, from its options file. If the file cannot be read: the options that `db` uses.
Options OpenedWith(DB* db);
// The same as text, with the options of all families.
std::string OptionsTextOf(DB* db);

using FamilyHandles = std::vector<std::unique_ptr<ColumnFamilyHandle>>;

// Creates a family in a copy. Also used for the hidden family of prepared transactions (db/hidden_family.h).
Status CreateFamilyOfCopy(DB* copy, const ColumnFamilyOptions& options, const std::string& name,
                          std::unique_ptr<ColumnFamilyHandle>* handle);

// A consistent state of a database while the object exists: the column families and their content at one snapshot.
class CopiedState {
 public:
  static Status Take(DBImpl* db, std::unique_ptr<CopiedState>* state);
  ~CopiedState();
  CopiedState(const CopiedState&) = delete;
  CopiedState& operator=(const CopiedState&) = delete;

  uint64_t sequence() const { return snapshot_->GetSequenceNumber(); }
  // The default family first. Includes the hidden family of prepared transactions.
  const FamilyHandles& families() const { return families_; }
  // An iterator that verifies checksums.
  std::unique_ptr<Iterator> NewIterator(ColumnFamilyHandle* family) const;

 private:
  explicit CopiedState(DB* db) : db_(db) {}

  DB* const db_;
  const Snapshot* snapshot_ = nullptr;
  FamilyHandles families_;
};

// The error for a live reader, and for a database of a class that is not BraidDB's.
inline Status NoCopyOfForeignDatabase() {
  return Status::NotSupported(
      "the process that has the database open for writing makes backups and checkpoints; a live reader, or a database of a class "
      "of its own, cannot be copied");
}

// Write options for copies: writes become durable when the copy is closed.
inline WriteOptions CopyWrites() {
  WriteOptions options;
  options.sync = false;
  return options;
}

}  // namespace braiddb
