// What copies of a database have in common.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

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

// Symbolic links in `path` are followed first. Creates a database at `path`.tmp (db/temporary_place.h), lets `fill` write to
// it, closes it, and gives it its name; with `replaces` in place of one that is there, which is `path`.old for a moment. On error
// what was in `path` stays, and of the new one nothing, unless that cannot be removed.
Status MakeDatabase(Copy copy, const std::function<Status(DB*)>& fill);

// What `db` was opened with, by its options file; if that cannot be read, what it chose.
Options OpenedWith(DB* db);
// The same as text, with those of its families.
std::string OptionsTextOf(DB* db);

using FamilyHandles = std::vector<std::unique_ptr<ColumnFamilyHandle>>;

// Makes a family of a copy, also that of prepared transactions, which nobody sees (db/hidden_family.h).
Status CreateFamilyOfCopy(DB* copy, const ColumnFamilyOptions& options, const std::string& name,
                          std::unique_ptr<ColumnFamilyHandle>* handle);

// What a database has at one moment, for as long as the object is there: its column families, and what is in them.
class CopiedState {
 public:
  static Status Take(DB* db, std::unique_ptr<CopiedState>* state);
  ~CopiedState();
  CopiedState(const CopiedState&) = delete;
  CopiedState& operator=(const CopiedState&) = delete;

  uint64_t sequence() const { return snapshot_->GetSequenceNumber(); }
  // The default one first, and the one of prepared transactions.
  const FamilyHandles& families() const { return families_; }
  // An iterator that verifies what it shows.
  std::unique_ptr<Iterator> NewIterator(ColumnFamilyHandle* family) const;

 private:
  explicit CopiedState(DB* db) : db_(db) {}

  DB* const db_;
  const Snapshot* snapshot_ = nullptr;
  FamilyHandles families_;
};

// What is written to a copy need not be durable before it is closed.
inline WriteOptions CopyWrites() {
  WriteOptions options;
  options.sync = false;
  return options;
}

}  // namespace braiddb
