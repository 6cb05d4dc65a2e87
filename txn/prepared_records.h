// PreparedRecords: the updates of prepared transactions on media.
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

// What an open finds of one transaction.
struct PreparedRecord {
  using Families = std::map<uint32_t, std::string>;  // names by ids, of all but the default one

  std::string name;
  Families families;  // in `updates`
  WriteBatch updates;
  uint32_t parts = 0;
  Status damage;  // why it cannot be committed
};

// LAYOUT        Entries of the hidden column family (db/hidden_family.h), in the order of bytes. A record is cut into
//               parts of 64 KiB of updates. Key: bytes of the name u16, name, number of the part u32, big-endian.
//               Value of part 0: format u32 (1), parts u32, families u32, and for each its id u32, bytes of its name u32, and the
//               name, little-endian; behind that, and in the other parts, WriteBatch::Data().
// COMMIT POINT  A record is there when the batch of its parts is durable, and gone when a batch is that deletes them. [CC-51]
// RECOVERY      As of all entries. A part that is missing is damage: repair saves what is intact, entry by entry.
// Families are named, and not only numbered: those of a copy of the database have other numbers.
// Thread safety: all methods, for different names.
class PreparedRecords {
 public:
  // The family is made with the first record.
  explicit PreparedRecords(DB* base) : base_(base) {}
  PreparedRecords(const PreparedRecords&) = delete;
  PreparedRecords& operator=(const PreparedRecords&) = delete;

  // All there are, in no order that means anything; to be called first. Ends with the first error.
  Status Load(const std::function<Status(const PreparedRecord& record)>& found);
  // Before the database is closed.
  void Close();
  // DB::CompactRange of the family: nobody else has a handle of it.
  Status Compact(const CompactRangeOptions& options);

  // Makes a record durable. InvalidArgument if the batch that commits it would be too large.
  Status Write(const std::string& name, const PreparedRecord::Families& families, const WriteBatch& updates, uint32_t* parts);
  // Adds the record's deletion to a batch. REQUIRES: it was written or loaded.
  void AddRemoval(const std::string& name, uint32_t parts, WriteBatch* batch) const;
  // How records and their removals are written, whatever a transaction's options say: what the operating system may lose is no
  // promise, and a name that is given again must not meet parts of an older record.
  static WriteOptions Synced() {
    WriteOptions options;
    options.sync = true;
    return options;
  }
  // That of the records; 0: it is not there.
  uint32_t family_id() const { return family_id_.load(std::memory_order_acquire); }

 private:
  // An error if it is not there and cannot be made.
  Status FindFamily(bool make);

  DB* const base_;
  std::mutex mutex_;
  std::unique_ptr<ColumnFamilyHandle> family_;  // null: not yet; mutex_
  std::atomic<uint32_t> family_id_{0};
};

}  // namespace braiddb
