// TransactionLogIterator: what was written to a database, batch by batch, in the order of sequence numbers.
#pragma once

#include <cstdint>
#include <memory>

#include "braiddb/status.h"
#include "braiddb/write_batch.h"

#pragma GCC visibility push(default)
namespace braiddb {

// What one Write wrote, or one Put, Delete or Merge.
struct LoggedBatch {
  uint64_t sequence = 0;  // of its first update; the others have the numbers that follow
  std::unique_ptr<WriteBatch> updates;
};

// Made by DB::GetUpdatesSince. Gives each write once, whole, ordered by sequence numbers, with gaps. A write that was
// acknowledged before the iterator came to its end is never left out: where the log has lost it, the iterator ends with
// NotFound. Updates are as they were written: merge operands as operands, values before a compaction filter saw them (what a
// filter changes is a write of its own); families by their ids, which may be dropped by now. Records of prepared transactions
// are not shown. While it lives, log space is not reused that was there when it last came to its end: keep it short-lived.
// Thread safety: one thread at a time, beside any use of the database. Must be destroyed before its DB.
class TransactionLogIterator {
 public:
  virtual ~TransactionLogIterator() = default;
  TransactionLogIterator(const TransactionLogIterator&) = delete;
  TransactionLogIterator& operator=(const TransactionLogIterator&) = delete;

  virtual bool Valid() const = 0;
  // To the next batch, also one that was written after the iterator was made. At the end the iterator is not valid and status()
  // is
  // OK; Next() looks again then. It does nothing after an error.
  virtual void Next() = 0;
  // NotFound: what comes next is not in the log any more. Corruption: it is damaged. MemoryLimit: call Next() again.
  virtual Status status() const = 0;
  // The batch at which it stands. REQUIRES: Valid(), and that it was not taken before.
  virtual LoggedBatch GetBatch() = 0;

 protected:
  TransactionLogIterator() = default;
};

}  // namespace braiddb
#pragma GCC visibility pop
