// EventListener: receives the events of a database's background work.
#pragma once

#include <cstdint>
#include <string>

#include "braiddb/status.h"

#pragma GCC visibility push(default)
namespace braiddb {

class ColumnFamilyHandle;
class DB;

// A memtable was rotated: it takes no more writes and waits for its flush. It has entries of all column families.
struct MemTableInfo {
  std::string db_name;
  uint64_t id = 0;  // larger than the ids of memtables that were rotated before
};

// A flush writes one memtable, of all column families. The counts are set when the flush is complete.
struct FlushJobInfo {
  std::string db_name;
  uint64_t memtable_id = 0;
  uint64_t num_entries = 0;
  uint64_t num_dropped = 0;  // of these, obsolete versions that no snapshot sees
};

// A compaction merges L0 tables of one column family into its last level. Internal families have no events. The counts are set
// when the compaction is complete.
struct CompactionJobInfo {
  std::string db_name;
  std::string cf_name;
  uint64_t job_id = 0;
  Status status;  // not OK: the next open finishes the compaction
  uint64_t num_input_tables = 0;
  uint64_t num_merged_entries = 0;
  uint64_t num_dropped_entries = 0;
  uint64_t elapsed_us = 0;
};

struct BackgroundErrorInfo {
  std::string db_name;
  Status status;  // the error
};

// Writes are slowed down, or no longer slowed down. Stopped writes have no event: those that wait because of
// Options::bound_space, of no_space_timeout_ms, or of a long queue of flushes.
enum class WriteStallCondition : uint8_t { kNormal, kDelayed };
struct WriteStallInfo {
  std::string db_name;
  WriteStallCondition previous = WriteStallCondition::kNormal;
  WriteStallCondition current = WriteStallCondition::kNormal;
};

// Registered in Options::listeners. A listener must not throw.
//
// CALLS     One thread of the database makes all calls, in the order of the events, without a lock. Background work does not wait
//           for listeners, so calls come a little late. A slow listener receives later events late and delays the close.
// USE       A listener may use the database that it is given in any way but must not close it. That is the bottom database
//           (DB::GetRootDB).
// CLOSE     The close delivers all events before it, and its own. While it does, reads work, and an update that returns OK is
//           durable. Flushes, compactions and updates may return Aborted; events that they cause may be missing.
class EventListener {
 public:
  virtual ~EventListener() = default;

  virtual void OnMemTableSealed(DB*, const MemTableInfo&) {}
  virtual void OnFlushBegin(DB*, const FlushJobInfo&) {}
  virtual void OnFlushCompleted(DB*, const FlushJobInfo&) {}
  virtual void OnCompactionBegin(DB*, const CompactionJobInfo&) {}
  virtual void OnCompactionCompleted(DB*, const CompactionJobInfo&) {}
  // Background work failed, and the database takes no more writes.
  virtual void OnBackgroundError(DB*, const BackgroundErrorInfo&) {}
  // Checked when memtables are rotated and flushed, and when tables are merged.
  virtual void OnStallConditionsChanged(DB*, const WriteStallInfo&) {}
  // The one call on another thread: the thread that deletes the handle, without a lock. The handle is valid until the call
  // returns. There is no call for the default family's handle that the database owns.
  virtual void OnColumnFamilyHandleDeletionStarted(ColumnFamilyHandle*) {}

 protected:
  EventListener() = default;
  EventListener(const EventListener&) = default;
  EventListener& operator=(const EventListener&) = default;
};

}  // namespace braiddb
#pragma GCC visibility pop
