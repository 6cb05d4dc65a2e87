// DB: an embedded, ordered key-value store on persistent memory. The engine is ListDB's (OSDI '22).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/column_family.h"
#include "braiddb/iterator.h"
#include "braiddb/options.h"
#include "braiddb/slice.h"
#include "braiddb/statistics.h"
#include "braiddb/status.h"
#include "braiddb/transaction_log.h"
#include "braiddb/write_batch.h"

namespace braiddb {
class DBImpl;  // not exported, so their first declarations are here
class LiveDB;
}  // namespace braiddb
#pragma GCC visibility push(default)
namespace braiddb {
struct Metrics;  // braiddb/metrics.h

// Limits, in bytes. Keys and values hold any bytes and have any length from 0 up to these limits.
inline constexpr size_t kMaxKeySize = 64ull << 10;   // 64 KiB
inline constexpr size_t kMaxValueSize = 1ull << 30;  // 1 GiB
inline constexpr size_t kMaxBatchSize = 4ull << 30;  // 4 GiB of log space for one batch

// An immutable view of the database. Created by DB::GetSnapshot, released by DB::ReleaseSnapshot.
class Snapshot {
 public:
  // The sequence number of the newest write that the snapshot sees.
  virtual uint64_t GetSequenceNumber() const = 0;

 protected:
  virtual ~Snapshot() = default;
};

// A value without a copy. The slice points into persistent memory, which is not reused while the slice pins the value. The result
// of a merge operator is the one value that the slice owns itself.
// Thread safety: one thread at a time. Must be reset or destroyed before its DB.
class PinnableSlice {
 public:
  PinnableSlice() = default;
  ~PinnableSlice() { Reset(); }
  PinnableSlice(PinnableSlice&& other) noexcept;
  PinnableSlice& operator=(PinnableSlice&& other) noexcept;
  PinnableSlice(const PinnableSlice&) = delete;
  PinnableSlice& operator=(const PinnableSlice&) = delete;

  const char* data() const { return value_.data(); }
  size_t size() const { return value_.size(); }
  bool empty() const { return value_.empty(); }
  Slice slice() const { return value_; }
  std::string ToString() const { return std::string(value_); }
  // Drops the last `bytes` of the value. REQUIRES: bytes <= size().
  void RemoveSuffix(size_t bytes) { value_.remove_suffix(bytes); }
  void Reset();

 private:
  friend class DBImpl;
  friend class LiveDB;
  using Release = void (*)(void* owner, uint64_t pin);
  Slice value_;
  Release release_ = nullptr;
  void* owner_ = nullptr;
  uint64_t pin_ = 0;
};

// Receives a value in persistent memory, so that a caller can copy it to a buffer of its own without pinning it first.
class ValueReceiver {
 public:
  // Called once by a read that finds the value. `value` is valid during the call. The call must be short and must not use any
  // database, as reclamation waits for it. Return false if there is no room for the value: the read is MemoryLimit then.
  virtual bool Receive(Slice value) = 0;

 protected:
  ~ValueReceiver() = default;
};

// Thread safety: any number of threads may call every method at once. The destructor (or Close) must be the last call. One
// process may have many databases open.
//
// OUT OF DRAM   A call that returns a Status returns MemoryLimit. NewIterator, GetSnapshot, MultiGet, the properties, and the
//               methods of iterators and batches throw std::bad_alloc; an iterator is invalid then and can be positioned again. A
//               write that returns MemoryLimit has no effect, and the next one may succeed. If background work or a merge begun
//               by CompactRange runs out of DRAM, the database is read-only until it is opened again. Acknowledged writes stay.
class DB {
 public:
  // Opens the database in `path` and recovers it, or creates it and all directories above it. The LOG begins with the medium of
  // each region. On error *db is null. NotSupported if the database has prepared transactions: TransactionDB::Open opens them.
  static Status Open(const Options& options, const std::string& path, std::unique_ptr<DB>* db);
  // The same with column families: handles->at(i) is the handle of families[i]. `families` must name all families of the
  // database, in any order. The default family may be left out if its comparator and last level are those of `options`.
  // InvalidArgument names the missing ones. Families that do not exist are created if Options::create_missing_column_families is
  // set.
  static Status Open(const Options& options, const std::string& path, const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DB>* db);
  // Opens a database for reading only. If another process, or this one, has the database open for writing, the result is a live
  // reader. Each of its calls sees all writes that were acknowledged before the call, through the writer's own memory. No copy is
  // made, and the writer never waits for a reader. A live reader holds no lock. When a process opens the database for writing
  // again, or when the reader's process was stopped for more than 10 s, the reader's calls return Expired. Pinned values and
  // iterators end then, too, and GetSnapshot may return null. Refresh() attaches to the process that writes then. If no process
  // writes:
  //   files         no byte, no modification time and no directory entry changes; read permission and a read-only file system do
  //   DRAM          in proportion to the log since the last checkpoint: replay happens in the memory of this process
  //   concurrency   any number of processes and handles at once; until all have closed it, an open for writing is Busy
  //   NotSupported  writes, flushes, compactions, changes of column families
  //   background    only work that makes reads faster
  // Errors:
  //   NotFound      there is no database; create_if_missing has no effect
  //   Busy          the process that has the database open for writing cannot be reached: it is of an older version or of another
  //                 user, has 1,024 readers or few open files left, or has no shared memory
  //   NotSupported  the writing process has another version of the library, or a last level is no braided skiplist
  //   Corruption    as Open; with `error_if_wal_file_exists`, also if there are writes that Open would replay
  static Status OpenForReadOnly(const Options& options, const std::string& path, std::unique_ptr<DB>* db,
                                bool error_if_wal_file_exists = false);
  // The same with handles. Column families that are not given are not visible.
  static Status OpenForReadOnly(const Options& options, const std::string& path,
                                const std::vector<ColumnFamilyDescriptor>& families,
                                std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DB>* db,
                                bool error_if_wal_file_exists = false);
  // A process, or a handle of this one, that reads a database beside the process that has it open for writing.
  struct LiveReaderInfo {
    int pid = 0;  // 0: of another PID namespace
    uint64_t seconds = 0;
    bool has_expired = false;                      // it did not answer in time, and gets Expired when it goes on
    std::optional<uint64_t> oldest_snapshot = {};  // the sequence number; also that of an iterator
  };
  // Asks the process that has the database open for writing. At most those that fit in a message of 4 KiB. NotFound: no process
  // has it open for writing.
  static Status ListLiveReaders(const std::string& path, std::vector<LiveReaderInfo>* readers);
  // Opens a read-only copy beside a primary: a database that this or another process has open for writing. It shows the state of
  // the primary in `path` at the open or at the last TryCatchUpWithPrimary. It reads the primary's files, needs read permission
  // only, and the primary does not notice it. The copy is kept in a database in `secondary_path`, a directory that is created; an
  // earlier secondary there is replaced. Writes are NotSupported.
  //   NotFound         there is no primary
  //   InvalidArgument  secondary_path holds a database that is no secondary, or the primary has another comparator
  static Status OpenAsSecondary(const Options& options, const std::string& path, const std::string& secondary_path,
                                std::unique_ptr<DB>* db);
  // The same with handles. Not all column families need to be given.
  static Status OpenAsSecondary(const Options& options, const std::string& path, const std::string& secondary_path,
                                const std::vector<ColumnFamilyDescriptor>& families,
                                std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DB>* db);
  // Opens a database as Open, and removes all versions that are newer than `trim_ts` from the families with timestamps. An open
  // that failed or was cut short may have removed a part of them; another call removes the rest.
  static Status OpenAndTrimHistory(const Options& options, const std::string& path,
                                   const std::vector<ColumnFamilyDescriptor>& families,
                                   std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DB>* db,
                                   std::string trim_ts);
  // The names of the column families, "default" first, as of some moment during the call. Works also while the database is open.
  static Status ListColumnFamilies(const Options& options, const std::string& path, std::vector<std::string>* names);
  // Removes the database in `path`, with its regions wherever they are. Files of others, and then the directory, stay. OK if
  // there is no database. If a removal was cut short, another call finishes it; until then an open is InvalidArgument.
  //   Busy             the database is open in this or another process
  //   InvalidArgument  region_paths names a directory with files of another database; nothing is removed
  static Status Destroy(const Options& options, const std::string& path);

  virtual ~DB() = default;
  DB(const DB&) = delete;
  DB& operator=(const DB&) = delete;

  // Flushes, checkpoints and closes, so that the next open has nothing to replay. Idempotent; the destructor calls it.
  // No other call may be running or follow. Iterators, snapshots and pinned slices must be destroyed before. The directory can be
  // opened again after the DB is destroyed.
  virtual Status Close() = 0;

  // Put, Delete and Merge are durable and visible when they return OK. NoSpace: nothing was written; reads continue to work.
  virtual Status Put(const WriteOptions& options, Slice key, Slice value) = 0;
  virtual Status Delete(const WriteOptions& options, Slice key) = 0;
  // Writes an operand for Options::merge_operator without reading the key. NotSupported if there is no merge operator.
  virtual Status Merge(const WriteOptions& options, Slice key, Slice operand) = 0;
  // Deletes all keys in [begin, end) by one small write, whatever their number. Older snapshots and iterators still see the keys.
  // Background work reclaims their space. Equal bounds are OK and delete nothing.
  //   InvalidArgument  `end` is before `begin`, or a bound is longer than kMaxKeySize + 1
  //   NotSupported     the database has transactions: there are no locks of ranges
  virtual Status DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family, Slice begin, Slice end);
  Status DeleteRange(const WriteOptions& options, Slice begin, Slice end) {
    return DeleteRange(options, DefaultColumnFamily(), begin, end);
  }
  // Writes all updates of the batch or none, also after a crash.
  virtual Status Write(const WriteOptions& options, const WriteBatch& batch) = 0;

  // NotFound if the key does not exist. For a key with operands: Corruption if they cannot be applied, InvalidArgument if there
  // is no merge operator.
  virtual Status Get(const ReadOptions& options, Slice key, std::string* value) = 0;
  virtual Status Get(const ReadOptions& options, Slice key, PinnableSlice* value) = 0;
  // The same for a caller with a buffer of its own: one copy less than through a string.
  virtual Status GetTo(const ReadOptions& options, Slice key, ValueReceiver* value);
  virtual Status GetTo(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, ValueReceiver* value);
  // Reads all keys from one consistent view. Returns a status for each key; values->size() becomes keys.size().
  virtual std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                                       std::vector<std::string>* values) = 0;

  virtual std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) = 0;

  // ---- Column families. Calls without a handle use the default family. InvalidArgument for a null handle, for a handle of
  // another database, and for writes to a dropped family.

  // Creates a family; durable when it returns OK. While dropped families without handles are being removed, the call first waits
  // for the removal, for up to 5 s.
  //   InvalidArgument  the name exists, is empty, is longer than 255 bytes, or is "__braiddb_prepared_transactions",
  //                    "__braiddb_range_tombstones" or "__braiddb_full_history_ts_low"
  //   NoSpace          there are kMaxColumnFamilies families, or there is no room for another
  virtual Status CreateColumnFamily(const ColumnFamilyOptions& options, const std::string& name,
                                    std::unique_ptr<ColumnFamilyHandle>* handle) = 0;
  // Drops a family; durable when it returns OK: no later open sees the family. The default family cannot be dropped. Waits for a
  // flush, and for a merge of this family that is running.
  virtual Status DropColumnFamily(ColumnFamilyHandle* family) = 0;
  // Returns a handle for each existing family, the default family first.
  virtual Status GetColumnFamilies(std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles) = 0;
  // Owned by the database; valid until the close.
  virtual ColumnFamilyHandle* DefaultColumnFamily() const = 0;
  virtual Status Put(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice value) = 0;
  virtual Status Delete(const WriteOptions& options, ColumnFamilyHandle* family, Slice key) = 0;
  virtual Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice operand) = 0;
  virtual Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) = 0;
  virtual Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, PinnableSlice* value) = 0;
  // families[i] is the family of keys[i].
  virtual std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                       const std::vector<Slice>& keys, std::vector<std::string>* values) = 0;
  // The iterator's status() reports an invalid handle.
  virtual std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) = 0;
  // As CompactRange below, for one family; all families are flushed.
  virtual Status CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family, const Slice* begin,
                              const Slice* end) = 0;
  // As GetProperty below, with the values of this column family where the table says "family".
  virtual bool GetProperty(ColumnFamilyHandle* family, std::string_view property, std::string* value) = 0;
  virtual bool GetIntProperty(ColumnFamilyHandle* family, std::string_view property, uint64_t* value) = 0;
  virtual Status GetLatestSequenceForKey(ColumnFamilyHandle* family, Slice key, uint64_t* sequence) = 0;
  // Changes options from the next write, flush or merge on, until the close. Foreign options belong to the family, all others to
  // the database. With an Options::dram_budget, sizes stay within the shares computed at the open. The options file shows the new
  // values; GetOptions() shows the values of the open.
  virtual Status SetOptions(ColumnFamilyHandle* family, const ChangedOptions& changed);

  virtual const Snapshot* GetSnapshot() = 0;
  virtual void ReleaseSnapshot(const Snapshot* snapshot) = 0;

  // Flushes the memtable into an L0 table and checkpoints the table. Returns when done.
  virtual Status Flush() = 0;
  // Merges everything that was written before the call into the last level, then sweeps the last level between the bounds and
  // drops versions that no snapshot sees. A null bound is unbounded. The bounds limit the sweep only: the merge is of entire
  // tables.
  virtual Status CompactRange(const CompactRangeOptions& options, const Slice* begin, const Slice* end) = 0;
  // Returns when no flush and no compaction is pending or running. NoSpace: a compaction waits for space and will be retried.
  virtual Status WaitForCompaction() = 0;

  // Returns false if there is no such property. Each name has the prefix "braiddb." or "rocksdb.". Sizes are in bytes. "family"
  // marks values of one column family (here the default one), "text" values that GetIntProperty does not return.
  //
  //   name                            value
  //   stats                           text: the counters of GetStatistics
  //   levels                          text, family: tables and entries of each level
  //   l1                              text, family: the structure of the last level
  //   visits-per-get                  text: nodes that a get visits, local and remote
  //   region-nodes                    text: of each region, its NUMA node, the nodes whose threads write to it, its device, the
  //                                   source
  //   persist-mode                    text: how stores become durable
  //   num-immutable-mem-table         memtables that wait for their flush
  //   num-l0-tables                   family: tables of L0
  //   num-entries-active-mem-table    family: entries of the active memtable
  //   num-entries-imm-mem-tables      family: entries of memtables that wait for their flush
  //   num-entries-l0                  family: entries of L0
  //   num-entries-l1                  family: entries of the last level
  //   estimate-num-keys               family: the sum of these four
  //   cur-size-active-mem-table       family: DRAM of the active memtable
  //   cur-size-all-mem-tables         family: DRAM of all memtables
  //   l1-dram-bytes                   family: DRAM of the last level
  //   lookup-cache-bytes              DRAM of the lookup cache
  //   filter-bytes                    DRAM of the filter; 0 until it is built
  //   dram-bytes                      DRAM of memtables, L0, the last levels, lookup cache and filter; without running work
  //   pm-bytes-reserved               file space of all regions
  //   pm-bytes-in-segments            space of all segments
  //   pm-bytes-punched                of pm-bytes-reserved: free segments whose blocks the file system has back
  //   pm-bytes-live                   log entries that are not known to be dead
  //   l1-pm-bytes                     segments that last levels have for themselves
  //   num-segments                    segments
  //   num-free-segments               segments kept for reuse
  //   num-snapshots                   snapshots and iterators that are not released
  //   num-live-readers                handles, mostly of other processes, that read beside this one
  //   oldest-snapshot-sequence        the sequence number of the oldest; 0 if there is none
  //   num-running-flushes             1 while a flush runs, else 0
  //   num-running-compactions         1 while a compaction runs, else 0
  //   num-range-tombstones            deleted ranges that still hide keys
  //   last-sequence-number            GetLatestSequenceNumber()
  //   metrics                         text: all metrics in the Prometheus format (MetricsText)
  //   background-errors               1 after a failure that made the database read-only, else 0
  //   is-write-stopped                the same
  virtual bool GetProperty(std::string_view property, std::string* value) = 0;
  virtual bool GetIntProperty(std::string_view property, uint64_t* value) = 0;

  virtual Statistics GetStatistics() const = 0;
  // Returns false and leaves *histograms alone if Options::histograms is not set. Throws std::bad_alloc.
  virtual bool GetHistograms(Histograms*) const { return false; }
  // All figures for operators and monitoring systems, listed in docs/METRICS.md; include braiddb/metrics.h. Empty for a DB that
  // has none. Neither reads nor writes wait for the call. Cost: proportional to the numbers of segments, families and L0 tables.
  // Throws std::bad_alloc.
  virtual Metrics GetMetrics() const;
  // The largest sequence number of an update that GetUpdatesSince can return; 0 if nothing was written. Updates that the caller
  // has written have no larger number. Numbers without an update do not count: rotations and internal writes draw some. After an
  // open it may be a number whose update is no longer available.
  virtual uint64_t GetLatestSequenceNumber() const = 0;
  // Iterates over the batches from `sequence` on. The first is the batch that contains this number, or else the next later one.
  // History is short: the log is the data. It keeps entries that no merge has made obsolete, and obsolete entries as long as a
  // live entry is in the same segment. After an open, only updates that were not flushed before are available; a close flushes
  // all.
  //   NotFound  `sequence` is larger than GetLatestSequenceNumber(), or an update behind it may have been reclaimed
  virtual Status GetUpdatesSince(uint64_t sequence, std::unique_ptr<TransactionLogIterator>* iterator) = 0;
  // Sleeps until there is a write with a larger number than `sequence`, for at most `timeout`. OK: all writes up to *latest,
  // which is larger than `sequence`, are visible to calls from now on. So a follower that passes *latest to its next call misses
  // no write. It begins with 0, also after an open. Now and then OK comes without an update that the caller can
  // see: rotations and internal writes draw numbers, too. A write wakes all sleepers, in this process and in live readers.
  //   TimedOut      *latest is unchanged; a timeout of 0 only looks
  //   Aborted       a live reader's writer has ended
  //   NotSupported  a secondary, or a database that no process has open for writing
  virtual Status WaitForUpdate(uint64_t sequence, std::chrono::microseconds timeout, uint64_t* latest);
  // The sequence number of the newest write to the key, deletions included. A caller can tell by it whether the key was written
  // in the meantime.
  //   NotFound  there is no write, a compaction filter removed the key, or merges have dropped its newest deletion. They drop a
  //             deletion when no snapshot sees an older version
  virtual Status GetLatestSequenceForKey(Slice key, uint64_t* sequence) = 0;
  virtual const Options& GetOptions() const = 0;
  virtual const std::string& GetName() const = 0;

  // For a secondary: brings it up to date in one step. When it returns OK, all updates that the primary had acknowledged before
  // the call are visible, and later ones up to one consistent state. Reads the new part of the primary's log; or all of it, with
  // DRAM for its live part, if log space was reclaimed unread, or if the options name a compaction filter.
  //   Busy          the primary takes and releases log space faster than it can be read; nothing has changed
  //   NotSupported  this database is not a secondary
  virtual Status TryCatchUpWithPrimary() { return Status::NotSupported("Supported only by secondary instance"); }

  // Shows the newest state. A live reader whose writer has ended, or that has expired, attaches to the process that has the
  // database open for writing now; iterators, snapshots and pinned values of before end with Expired, and keep memory until they
  // are destroyed. A live reader with Options::refresh_live_readers does this by itself when a read would return Expired. A
  // secondary catches up. Other databases show the newest state anyway.
  //   NotFound, Aborted  of a live reader: no process has the database open for writing. The reader keeps what it has
  //   Busy               another thread refreshes, or an info_log that this refresh calls
  //   other errors       as OpenForReadOnly; the reader keeps what it has
  virtual Status Refresh() { return Status::OK(); }

  // The database below wrappers such as TransactionDB and DBWithTTL; its values are as stored. Checkpoints and backups copy this
  // database. Lives as long as this object.
  virtual DB* GetRootDB() { return this; }

  // ---- User-defined timestamps, as in RocksDB. A family whose comparator has a timestamp size keeps versions of each key: one
  // for each timestamp. A read sees, of each key, the newest version that is not newer than ReadOptions::timestamp. In such a
  // family, Put, Delete, Merge, DeleteRange and reads without a timestamp are InvalidArgument. In all other families, so are the
  // methods here. Timestamps have Comparator::timestamp_size() bytes. Transactions, keys that expire, and secondaries are
  // NotSupported with such families. A family with timestamps can be created only in a database that was opened with one.
  //
  //   snapshots   a read sees the versions in its snapshot, and of those the ones up to its timestamp
  //   limits      a key and its timestamp have at most kMaxKeySize bytes, a value kMaxValueSize - 1
  //   properties  such as braiddb.estimate-num-keys count versions, deletions included

  // Writes a version. It replaces the version of the same key and timestamp.
  virtual Status PutAt(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice timestamp, Slice value);
  // Writes a version that says that the key does not exist. Reads at older timestamps still see older versions.
  virtual Status DeleteAt(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice timestamp);
  // The same; iterators that show versions name its type.
  virtual Status SingleDeleteAt(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice timestamp);
  // DeleteAt for each key in [begin, end) that has a value at the timestamp, as one batch. Takes time and DRAM in proportion to
  // the number of these keys. Writes to families with timestamps wait for it.
  virtual Status DeleteRangeAt(const WriteOptions& options, ColumnFamilyHandle* family, Slice begin, Slice end, Slice timestamp);
  // As Get. *timestamp becomes that of the version; empty if there is none. `timestamp` may be null.
  virtual Status GetAt(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value,
                       std::string* timestamp);
  // As MultiGet. timestamps->size() becomes keys.size(). `timestamps` may be null.
  virtual std::vector<Status> MultiGetAt(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                         const std::vector<Slice>& keys, std::vector<std::string>* values,
                                         std::vector<std::string>* timestamps);
  // Allows CompactRange to drop versions that no read at `ts_low` or later sees. Durable when it returns OK. Reads at older
  // timestamps are InvalidArgument from then on.
  //   InvalidArgument  `ts_low` is smaller than the present limit
  virtual Status IncreaseFullHistoryTsLow(ColumnFamilyHandle* family, Slice ts_low);
  // The limit; empty if none was set.
  virtual Status GetFullHistoryTsLow(ColumnFamilyHandle* family, std::string* ts_low);

 protected:
  DB() = default;
};

}  // namespace braiddb
#pragma GCC visibility pop
