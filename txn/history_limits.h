// HistoryLimits: the durable full_history_ts_low of the column families with timestamps.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "braiddb/db.h"

namespace braiddb {

// LAYOUT        Entries of the hidden column family kHistoryLimitsFamilyName (db/hidden_family.h), in bytewise order. Key: the
//               name of a family. Value: its limit, a timestamp.
// COMMIT POINT  That of an entry.
// RECOVERY      As for all entries. A family may be dropped before its record is deleted, so an open deletes the records of
//               families that it does not know.
// The key is a name, and not an id, because a copy of the database has other ids.
// Thread safety: all methods.
class HistoryLimits {
 public:
  // The hidden family is created with the first record.
  explicit HistoryLimits(DB* base) : base_(base) {}
  HistoryLimits(const HistoryLimits&) = delete;
  HistoryLimits& operator=(const HistoryLimits&) = delete;

  // Calls `found` for each record. `found` returns false for a record to delete. A database that is open for reading only keeps
  // the record.
  Status Load(const std::function<bool(Slice family, Slice limit)>& found);
  // Durable when it returns OK.
  Status Write(const std::string& family, Slice limit);
  // No effect if there is no record.
  Status Delete(const std::string& family);
  // Call before the database is closed.
  void Close();

 private:
  // family_ stays null if the family does not exist and `creates` is false.
  Status FindFamily(bool creates);
  Status WriteSynced(const WriteBatch& batch);

  DB* const base_;
  std::mutex mutex_;
  std::unique_ptr<ColumnFamilyHandle> family_;  // null: not opened yet; guarded by mutex_
};

}  // namespace braiddb
