// PerfContext: counters and times of the calls of one thread. A thread enables them by SetPerfLevel.
#pragma once

#include <cstdint>
#include <string>

#pragma GCC visibility push(default)
namespace braiddb {

// What a thread measures. Each level includes the levels before it. The numbers are RocksDB's.
enum class PerfLevel : uint8_t {
  kUninitialized = 0,                       // as kDisable; the initial level
  kDisable = 1,                             // nothing; a call costs one check of the level
  kEnableCount = 2,                         // events
  kEnableTimeExceptForMutex = 3,            // and times, about 25 ns each
  kEnableTimeAndCPUTimeExceptForMutex = 4,  // as kEnableTimeExceptForMutex; times are wall-clock times
  kEnableTime = 5,                          // and waits for locks
};

// The level of the calling thread, for all databases that it uses. Unknown values count as kEnableTime.
void SetPerfLevel(PerfLevel level);
PerfLevel GetPerfLevel();

// Names are RocksDB's; counters of RocksDB that have no meaning here are left out (docs/C_API.md). Times are nanoseconds.
// Background threads are not counted, nor calls at a lower level.
// Thread safety: each thread has its own object, and only that thread may use it.
struct PerfContext {
  // Gets, MultiGets
  uint64_t user_key_comparison_count = 0;  // keys compared with entries of L0, the last level and the lookup cache
  uint64_t block_cache_hit_count = 0;      // lookups answered by the lookup cache
  uint64_t get_read_bytes = 0;             // bytes of the values found by gets
  uint64_t multiget_read_bytes = 0;
  uint64_t get_snapshot_time = 0;           // registering the sequence number of a read
  uint64_t get_from_memtable_count = 0;     // memtables searched
  uint64_t get_from_memtable_time = 0;      // searching them
  uint64_t get_from_output_files_time = 0;  // the filter, L0 and the last level
  uint64_t get_post_process_time = 0;       // returning the value
  uint64_t bloom_sst_hit_count = 0;         // keys that may exist by the filter
  uint64_t bloom_sst_miss_count = 0;        // keys that are absent by the filter
  uint64_t internal_merge_count = 0;        // operands applied, by gets and iterators
  uint64_t merge_operator_time_nanos = 0;   // in the user's merge operator
  // Iterators
  uint64_t iter_read_bytes = 0;                // bytes of the keys and values at its positions
  uint64_t internal_key_skipped_count = 0;     // entries skipped: the previous entry, older versions
  uint64_t internal_delete_skipped_count = 0;  // tombstones
  uint64_t internal_recent_skipped_count = 0;  // versions newer than the iterator's view
  uint64_t seek_on_memtable_count = 0;         // seeks of cursors over memtables
  uint64_t seek_child_seek_count = 0;          // seeks of cursors over L0 tables and the last level
  uint64_t seek_on_memtable_time = 0;
  uint64_t seek_child_seek_time = 0;
  uint64_t seek_internal_seek_time = 0;    // positioning all cursors of a seek
  uint64_t find_next_user_entry_time = 0;  // from there to the entry to show, and steps
  // Writes
  uint64_t write_wal_time = 0;                   // from the log entry to its fence, with the search in the memtable
  uint64_t write_memtable_time = 0;              // making entries visible
  uint64_t write_delay_time = 0;                 // sleeping because flushes or merges are behind
  uint64_t write_pre_and_post_process_time = 0;  // all other time of a write
  uint64_t db_mutex_lock_nanos = 0;              // waiting for the lock of the view at a rotation; kEnableTime only
  // Transactions
  uint64_t key_lock_wait_count = 0;  // keys locked by another transaction or write
  uint64_t key_lock_wait_time = 0;
  // Gets and MultiGets by level; not in RocksDB
  uint64_t lookup_cache_search_count = 0;  // lookups in the lookup cache
  uint64_t lookup_cache_fill_count = 0;    // entries that reads entered into it
  uint64_t l0_index_search_count = 0;      // indexes over some tables of L0 each
  uint64_t l0_list_search_count = 0;       // tables of L0 that have no index: the slow case
  uint64_t get_from_l0_time = 0;           // the part of get_from_output_files_time in L0; 0 if L0 has no table
  uint64_t last_level_search_count = 0;    // lookups in the last level
  uint64_t get_from_last_level_time = 0;   // the part of get_from_output_files_time in the last level
  // Gets that were repeated as of a sequence number: the key has operands, a deleted range covers it, or a merge or a write
  // changed it meanwhile.
  uint64_t get_repeated_count = 0;

  void Reset() { *this = PerfContext(); }
  // "name = value, " for each counter, or for each that is not 0.
  std::string ToString(bool exclude_zero_counters = false) const;
};

// The calling thread's object; valid until the thread ends.
PerfContext* GetPerfContext();

}  // namespace braiddb
#pragma GCC visibility pop
