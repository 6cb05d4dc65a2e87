// PerfContext: what the calls of one thread have cost, counted as they go, if the thread wants to know.
#pragma once

#include <cstdint>
#include <string>

#pragma GCC visibility push(default)
namespace braiddb {

// What a thread counts; each level counts what those before it do. The numbers are RocksDB's.
enum class PerfLevel : uint8_t {
  kUninitialized = 0,                       // as kDisable: nobody has set it
  kDisable = 1,                             // nothing; a call pays a look at the level
  kEnableCount = 2,                         // events
  kEnableTimeExceptForMutex = 3,            // and times, some 25 ns each
  kEnableTimeAndCPUTimeExceptForMutex = 4,  // as kEnableTimeExceptForMutex: times are of the clock
  kEnableTime = 5,                          // and how long locks were waited for
};

// Of the calling thread, for all databases that it uses. Other values count as kEnableTime.
void SetPerfLevel(PerfLevel level);
PerfLevel GetPerfLevel();

// By RocksDB's names. Times are in nanoseconds. What background threads do is not in it, nor calls that the thread made at a
// lower level. The counters of RocksDB that are left out mean nothing here (docs/C_API.md).
// Thread safety: a thread's own, and no other's.
struct PerfContext {
  // Gets, MultiGets
  uint64_t user_key_comparison_count = 0;  // entries below the memtables, or in the lookup cache, that a key was compared with
  uint64_t block_cache_hit_count = 0;      // lookups that the lookup cache answered
  uint64_t get_read_bytes = 0;             // values that gets found, bytes
  uint64_t multiget_read_bytes = 0;
  uint64_t get_snapshot_time = 0;           // registering the sequence number that something is read at
  uint64_t get_from_memtable_count = 0;     // memtables that were asked
  uint64_t get_from_memtable_time = 0;      // asking them
  uint64_t get_from_output_files_time = 0;  // the filter, L0 and the last level
  uint64_t get_post_process_time = 0;       // handing over what was found
  uint64_t bloom_sst_hit_count = 0;         // keys that the filter did not rule out
  uint64_t bloom_sst_miss_count = 0;        // keys that it did
  uint64_t internal_merge_count = 0;        // operands that were applied, by iterators as well
  uint64_t merge_operator_time_nanos = 0;   // in the user's merge operator
  // Iterators
  uint64_t iter_read_bytes = 0;                // keys and values that it came to stand on
  uint64_t internal_key_skipped_count = 0;     // entries that were stepped over: the one before, older versions
  uint64_t internal_delete_skipped_count = 0;  // tombstones
  uint64_t internal_recent_skipped_count = 0;  // versions newer than what the iterator sees
  uint64_t seek_on_memtable_count = 0;         // cursors over memtables that were sought
  uint64_t seek_child_seek_count = 0;          // … over L0 tables and the last level
  uint64_t seek_on_memtable_time = 0;
  uint64_t seek_child_seek_time = 0;
  uint64_t seek_internal_seek_time = 0;    // all cursors of a seek
  uint64_t find_next_user_entry_time = 0;  // from there to the entry that is shown, and steps
  // Writes
  uint64_t write_wal_time = 0;                   // entries into the log, to their fence; the memtable is searched meanwhile
  uint64_t write_memtable_time = 0;              // making them visible
  uint64_t write_delay_time = 0;                 // slept, because flushes or merges were behind
  uint64_t write_pre_and_post_process_time = 0;  // all other time of a write
  uint64_t db_mutex_lock_nanos = 0;  // waited for the lock of the view, by who begins a new memtable; kEnableTime only
  // Transactions
  uint64_t key_lock_wait_count = 0;  // keys that somebody else had locked
  uint64_t key_lock_wait_time = 0;

  void Reset() { *this = PerfContext(); }
  // "name = value, " of each; without those that are 0 if so wanted.
  std::string ToString(bool exclude_zero_counters = false) const;
};

// The calling thread's; valid until it ends.
PerfContext* GetPerfContext();

}  // namespace braiddb
#pragma GCC visibility pop
