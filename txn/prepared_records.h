// PreparedRecords: the durable records of prepared transactions.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "braiddb/db.h"

namespace braiddb {

// A transaction that an open has found.
struct PreparedRecord {
  using Families = std::map<uint32_t, std::string>;  // names by id, without the default family

  std::string name;
  Families families;  // families that `updates` refers to
  WriteBatch updates;
  uint32_t parts = 0;
  Status damage;  // the reason why the transaction cannot be committed
};

// LAYOUT        Entries of the hidden column family (db/hidden_family.h), in bytewise order. A record is cut into parts of 64 KiB
//               of updates. Key: length of the name u16, name, part number u32, big-endian. Value of part 0: format u32 (1),
//               parts u32, families u32; for each family: id u32, length of its name u32, name, little-endian; then
//               WriteBatch::Data(). Other parts continue the data.
// COMMIT POINT  A record exists when the batch with its parts is durable. It ends when a batch that deletes the parts is durable.
//               [CC-51]
// RECOVERY      As for all entries. A missing part means damage. Repair saves intact parts, entry by entry.
// Families have names and ids in a record, because a copy of the database has other ids.
// Thread safety: all methods, for different names.
class PreparedRecords {
 public:
  // The hidden family is created with the first record.
  explicit PreparedRecords(DB* base) : base_(base) {}
  PreparedRecords(const PreparedRecords&) = delete;
  PreparedRecords& operator=(const PreparedRecords&) = delete;

  // Calls `found` for each record, in arbitrary order. Must be the first call. Stops at the first error.
  Status Load(const std::function<Status(const PreparedRecord& record)>& found);
  // Call before the database is closed.
  void Close();
  // DB::CompactRange of the hidden family. No other object has a handle of it.
  Status Compact(const CompactRangeOptions& options);

  // Makes a record durable. Returns InvalidArgument if the batch that commits it would be too large.
  Status Write(const std::string& name, const PreparedRecord::Families& families, const WriteBatch& updates, uint32_t* parts);
  // Adds the deletion of the record to `batch`. REQUIRES: the record was written or loaded.
  void AddRemoval(const std::string& name, uint32_t parts, WriteBatch* batch) const;
  // Options for writing records and their removals, regardless of the transaction's options. A prepared transaction is a promise,
  // so an operating system crash must not lose it. And a reused name must not meet parts of an older record.
  static WriteOptions Synced() {
    WriteOptions options;
    options.sync = true;
    return options;
  }
  // Id of the hidden family, or 0 if it does not exist.
  uint32_t family_id() const { return family_id_.load(std::memory_order_acquire); }

 private:
  // Returns an error if the family does not exist and cannot be created.
  Status FindFamily(bool make);

  DB* const base_;
  std::mutex mutex_;
  std::unique_ptr<ColumnFamilyHandle> family_;  // null: not opened yet; guarded by mutex_
  std::atomic<uint32_t> family_id_{0};
};

}  // namespace braiddb
