// EventListener: is told what a database does in the background.
#pragma once

#include <cstdint>
#include <string>

#include "braiddb/status.h"

#pragma GCC visibility push(default)
namespace braiddb {

class ColumnFamilyHandle;
class DB;

// A memtable takes no more writes, and waits for its flush. It has the newest entries of all column families.
struct MemTableInfo {
  std::string db_name;
  uint64_t id = 0;  // larger than those of memtables that were sealed before
};

// A flush is of one memtable, of all column families. Entries are counted when it is completed.
struct FlushJobInfo {
  std::string db_name;
  uint64_t memtable_id = 0;
  uint64_t num_entries = 0;
  uint64_t num_dropped = 0;  // of them, obsolete versions that no snapshot sees
};

// A compaction merges tables of one column family of the user into its last level. Counts are set when it is completed.
struct CompactionJobInfo {
  std::string db_name;
  std::string cf_name;
  uint64_t job_id = 0;
  Status status;  // another one than OK: what is left is done by the next open
  uint64_t num_input_tables = 0;
  uint64_t num_merged_entries = 0;
  uint64_t num_dropped_entries = 0;
  uint64_t elapsed_us = 0;
};

struct BackgroundErrorInfo {
  std::string db_name;
  Status status;  // what went wrong
};

// Writes are slowed down. What stops them is not told: Options::bound_space, no_space_timeout_ms, a long queue of flushes.
enum class WriteStallCondition : uint8_t { kNormal, kDelayed };
struct WriteStallInfo {
  std::string db_name;
  WriteStallCondition previous = WriteStallCondition::kNormal;
  WriteStallCondition current = WriteStallCondition::kNormal;
};

// Given to a database by Options::listeners. All calls come from one thread of the database, one after the other, in the order of
// the events, and hold no lock of it. They come a little later than what they tell of, since nothing waits for a listener: one
// that is slow is told late, and delays the close.
// A listener may use the database that it is given, which is the one at the bottom (DB::GetRootDB), in any way but to close it.
// The close tells all events of before it and of its own. Meanwhile reads work, and an update that returns OK is durable.
// Flushes, compactions and updates may return Aborted, and events that they cause may not be told. A listener must not throw.
class EventListener {
 public:
  virtual ~EventListener() = default;

  virtual void OnMemTableSealed(DB*, const MemTableInfo&) {}
  virtual void OnFlushBegin(DB*, const FlushJobInfo&) {}
  virtual void OnFlushCompleted(DB*, const FlushJobInfo&) {}
  virtual void OnCompactionBegin(DB*, const CompactionJobInfo&) {}
  virtual void OnCompactionCompleted(DB*, const CompactionJobInfo&) {}
  // The database takes no more writes.
  virtual void OnBackgroundError(DB*, const BackgroundErrorInfo&) {}
  // Looked at when memtables are sealed and flushed, and tables merged.
  virtual void OnStallConditionsChanged(DB*, const WriteStallInfo&) {}
  // The one call that does not come from the database's thread: who deletes a handle is in it, and the handle is valid until it
  // returns. The call holds no lock. The default family's handle that the database owns, and deletes itself, is not told of.
  virtual void OnColumnFamilyHandleDeletionStarted(ColumnFamilyHandle*) {}

 protected:
  EventListener() = default;
  EventListener(const EventListener&) = default;
  EventListener& operator=(const EventListener&) = default;
};

}  // namespace braiddb
#pragma GCC visibility pop
