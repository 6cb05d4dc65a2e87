// EntryCursor: walks one ordered structure of log entries, whatever it is made of.
#pragma once

#include "index/key_order.h"

namespace braiddb {

struct LogEntry;

// Every version of every key, in entry order (key ascending, newest first). May visit an entry again, or one that has just
// been merged into the level below; never misses an entry that was there when the cursor was made and that a registered snapshot
// sees. Thread safety: one thread at a time, concurrent with any change of the structure.
class EntryCursor {
 public:
  virtual ~EntryCursor() = default;
  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  // To the first entry at or after target.
  virtual void Seek(const SearchKey& target) = 0;
  // To the last entry before target.
  virtual void SeekBefore(const SearchKey& target) = 0;
  // REQUIRES: entry() != nullptr.
  virtual void Next() = 0;
  virtual void Prev() = 0;
  // Null at the ends.
  const LogEntry* entry() const { return entry_; }

 protected:
  const LogEntry* entry_ = nullptr;  // where it stands
};

}  // namespace braiddb
