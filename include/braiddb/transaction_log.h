// TransactionLogIterator: the history of a database, batch by batch, in the order of sequence numbers.
#pragma once

#include <cstdint>
#include <memory>

#include "braiddb/status.h"
#include "braiddb/write_batch.h"

#pragma GCC visibility push(default)
namespace braiddb {

// The updates of one Write, Put, Delete or Merge.
struct LoggedBatch {
  uint64_t sequence = 0;  // of the first update; the next updates have the next numbers
  std::unique_ptr<WriteBatch> updates;
};

// Created by DB::GetUpdatesSince. Returns each write once and complete, ordered by sequence number; the numbers have gaps.
//
//   complete    every write acknowledged before the iterator reaches its end is returned; if the log has lost one, the iterator
//               ends with NotFound
//   as written  merge operands are operands, and values are those before a compaction filter (its changes are separate writes)
//   families    are ids; a family may have been dropped
//   not shown   records of prepared transactions
//   space       log space that existed when the iterator last reached its end is not reused while it exists: destroy it soon
//
// Thread safety: one thread at a time, beside any use of the database. Must be destroyed before its DB.
class TransactionLogIterator {
 public:
  virtual ~TransactionLogIterator() = default;
  TransactionLogIterator(const TransactionLogIterator&) = delete;
  TransactionLogIterator& operator=(const TransactionLogIterator&) = delete;

  virtual bool Valid() const = 0;
  // Moves to the next batch, also to one written after the iterator was created. At the end the iterator is not valid and
  // status() is OK; another Next() checks for new batches. After an error it has no effect.
  virtual void Next() = 0;
  // NotFound: the log no longer has the next batch. Corruption: the next batch is damaged. MemoryLimit: call Next() again.
  virtual Status status() const = 0;
  // Moves the current batch to the caller. REQUIRES: Valid(), and no earlier call at this position.
  virtual LoggedBatch GetBatch() = 0;

 protected:
  TransactionLogIterator() = default;
};

}  // namespace braiddb
#pragma GCC visibility pop
