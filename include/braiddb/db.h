// DB: an embedded, ordered key-value store on persistent memory.
#pragma once

#include <cstdint>
#include <memory>
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

#pragma GCC visibility push(default)
namespace braiddb {

// Limits. Keys and values are any bytes of any length up to these, zero included.
inline constexpr size_t kMaxKeySize = 64ull << 10;   // 64 KiB
inline constexpr size_t kMaxValueSize = 1ull << 30;  // 1 GiB
inline constexpr size_t kMaxBatchSize = 4ull << 30;  // 4 GiB of log space for one batch

// An immutable view of the database. Made by DB::GetSnapshot, given back by DB::ReleaseSnapshot.
class Snapshot {
 public:
  // The sequence number of the newest write that it sees.
  virtual uint64_t GetSequenceNumber() const = 0;

 protected:
  virtual ~Snapshot() = default;
};

// A value that is not copied: it points into persistent memory, which is not reused while the slice holds it. (A value that a
// merge operator has made is the slice's own.)
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
  // The last `bytes` do not belong to it any more. REQUIRES: it has as many.
  void RemoveSuffix(size_t bytes) { value_.remove_suffix(bytes); }
  void Reset();

 private:
  friend class DBImpl;
  using Release = void (*)(void* owner, uint64_t pin);
  Slice value_;
  Release release_ = nullptr;
  void* owner_ = nullptr;
  uint64_t pin_ = 0;
};

// Takes a value where it lies, for who has a place of his own for it, which PinnableSlice would pin first.
class ValueReceiver {
 public:
  // Called once by a read that finds the value. It is valid during the call, which must be short and use no database: what is
  // reclaimed meanwhile waits. False: there is no room for it, and the read is MemoryLimit.
  virtual bool Receive(Slice value) = 0;

 protected:
  ~ValueReceiver() = default;
};

// Thread safety: every method may be called by any number of threads at once, except that the destructor (or Close) must be
// the last call. Many databases can be open in one process.
// Out of DRAM, calls that return a Status return MemoryLimit; NewIterator, GetSnapshot, MultiGet, the properties and the
// methods of iterators and batches throw std::bad_alloc; the iterator is not valid then, and can be moved to a key again. A write
// that gives MemoryLimit is not there, and the next one may succeed; when background work or a merge that CompactRange began runs
// out, the database is read-only until it is opened again. No acknowledged write is lost.
class DB {
 public:
  // Opens the database in `path` and recovers it, or creates it and all directories above it. The LOG begins with its medium. On
  // error *db is null. NotSupported if it has prepared transactions, which wait for TransactionDB::Open (transaction.h).
  static Status Open(const Options& options, const std::string& path, std::unique_ptr<DB>* db);
  // The same, with handles for column families, which have to be all that the database has, in any order; the default one may be
  // left out if it has the options' comparator and last level. InvalidArgument names those that are missing. What is not there
  // is created if Options::create_missing_column_families is set. handles->at(i) is of families[i].
  static Status Open(const Options& options, const std::string& path, const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DB>* db);
  // Opens a database only to read it. Not a byte of its files changes, nor a time of writing or the contents of a directory, and
  // permission to read them is enough; a read-only file system will do. What an open would finish or replay is done in the memory
  // of this process, which takes DRAM in proportion to the log since the last checkpoint. Any number of processes, and of handles
  // in one, may have it open like this at once; until the last of them has closed it, an open to write is Busy. Writes, flushes,
  // compactions and changes of column families are NotSupported; nothing runs in the background but what makes reads faster.
  //   NotFound    there is none; create_if_missing does not matter
  //   Busy        someone has it open to write. A database that is being written cannot be read from its files: its lists change
  //               in place, and its space is used again, for readers that the writer knows of. (RocksDB allows it.)
  //   Corruption  as Open; and, with `error_if_wal_file_exists`, if there are writes that Open would replay
  static Status OpenForReadOnly(const Options& options, const std::string& path, std::unique_ptr<DB>* db,
                                bool error_if_wal_file_exists = false);
  // The same with handles. Not all column families need to be given; of the others nothing is to be seen.
  static Status OpenForReadOnly(const Options& options, const std::string& path,
                                const std::vector<ColumnFamilyDescriptor>& families,
                                std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DB>* db,
                                bool error_if_wal_file_exists = false);
  // A database beside one that another process, or this one, has open to write: it follows the primary in `path` by what it
  // reads of the primary's files, without its help or notice, and needs permission to read them. What it has read it keeps in a
  // database of its own in `secondary_path`, a directory that is made; one that an earlier secondary left there is replaced.
  // It shows the state of the primary at the last TryCatchUpWithPrimary, or at the open, until the next one. Writes are
  // NotSupported.
  //   NotFound         there is no primary
  //   InvalidArgument  in secondary_path is a database that is no secondary, or the primary has another comparator
  static Status OpenAsSecondary(const Options& options, const std::string& path, const std::string& secondary_path,
                                std::unique_ptr<DB>* db);
  // The same with handles. Not all column families need to be given.
  static Status OpenAsSecondary(const Options& options, const std::string& path, const std::string& secondary_path,
                                const std::vector<ColumnFamilyDescriptor>& families,
                                std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DB>* db);
  // The families of a database, "default" first, whoever has it open: those that were there at some moment of the call.
  static Status ListColumnFamilies(const Options& options, const std::string& path, std::vector<std::string>* names);
  // Removes the database in `path`, its regions wherever they are, and its files; OK if there is none. Other files stay, and with
  // them their directory. A removal that was cut short is finished by another call; until then an open is InvalidArgument.
  //   Busy             it is open in this or another process
  //   InvalidArgument  region_paths names a directory with files of another database; nothing is removed
  static Status Destroy(const Options& options, const std::string& path);

  virtual ~DB() = default;
  DB(const DB&) = delete;
  DB& operator=(const DB&) = delete;

  // Flushes, checkpoints and closes, so that the next open has nothing to replay. Idempotent; the destructor calls it.
  // No other call may be under way or follow; iterators, snapshots and pinned slices must be gone. The directory can be opened
  // again when the object is destroyed.
  virtual Status Close() = 0;

  // Durable and visible when they return OK. NoSpace: nothing was written, reads go on.
  virtual Status Put(const WriteOptions& options, Slice key, Slice value) = 0;
  virtual Status Delete(const WriteOptions& options, Slice key) = 0;
  // Writes an operand for Options::merge_operator, without a read. NotSupported if there is none.
  virtual Status Merge(const WriteOptions& options, Slice key, Slice operand) = 0;
  // Deletes the keys in [begin, end), however many they are, at the cost of one small write; older snapshots and iterators see
  // them on. Their space comes back in the background. InvalidArgument if `end` comes before `begin`, or one is more than a byte
  // longer than a key may be; nothing happens if they are equal. NotSupported where there are transactions: a range has no lock.
  virtual Status DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family, Slice begin, Slice end);
  Status DeleteRange(const WriteOptions& options, Slice begin, Slice end) {
    return DeleteRange(options, DefaultColumnFamily(), begin, end);
  }
  // All of the batch or nothing, also after a crash.
  virtual Status Write(const WriteOptions& options, const WriteBatch& batch) = 0;

  // NotFound if the key is not there. Of a key that has operands: Corruption if they cannot be applied, InvalidArgument without a
  // merge operator.
  virtual Status Get(const ReadOptions& options, Slice key, std::string* value) = 0;
  virtual Status Get(const ReadOptions& options, Slice key, PinnableSlice* value) = 0;
  // The same, with one copy less for who wants the value somewhere else than in a string.
  virtual Status GetTo(const ReadOptions& options, Slice key, ValueReceiver* value);
  virtual Status GetTo(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, ValueReceiver* value);
  // One consistent view for all keys. Returns a status for each; values->size() becomes keys.size().
  virtual std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                                       std::vector<std::string>* values) = 0;

  virtual std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) = 0;

  // ---- Column families. The calls without a handle mean the default family. A handle of another database, or none, is
  // InvalidArgument; writes to a family that was dropped are, too.

  // Durable when it returns OK. InvalidArgument if there is one with that name, or the name is empty, longer than 255 bytes, or
  // "__braiddb_prepared_transactions" or "__braiddb_range_tombstones". NoSpace: there are as many families as there can be, or
  // there is no room for another one. If families that were dropped, and have no handles any more, are still being taken away,
  // the call first waits for these, for up to 5 seconds.
  virtual Status CreateColumnFamily(const ColumnFamilyOptions& options, const std::string& name,
                                    std::unique_ptr<ColumnFamilyHandle>* handle) = 0;
  // Durable when it returns OK: no open sees the family again. The default one cannot be dropped.
  virtual Status DropColumnFamily(ColumnFamilyHandle* family) = 0;
  // A handle for each family that there is now, the default one first.
  virtual Status GetColumnFamilies(std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles) = 0;
  // The database's; stays valid until it is closed.
  virtual ColumnFamilyHandle* DefaultColumnFamily() const = 0;
  virtual Status Put(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice value) = 0;
  virtual Status Delete(const WriteOptions& options, ColumnFamilyHandle* family, Slice key) = 0;
  virtual Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice operand) = 0;
  virtual Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) = 0;
  virtual Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, PinnableSlice* value) = 0;
  // families[i] is that of keys[i].
  virtual std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                       const std::vector<Slice>& keys, std::vector<std::string>* values) = 0;
  // An invalid handle shows in the iterator's status().
  virtual std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) = 0;
  // As CompactRange; all families are flushed.
  virtual Status CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family, const Slice* begin,
                              const Slice* end) = 0;
  // "estimate-num-keys", "num-l0-tables", "levels", "l1", "l1-dram-bytes" and the sizes of memtables are those of the family, all
  // else the database's.
  virtual bool GetProperty(ColumnFamilyHandle* family, std::string_view property, std::string* value) = 0;
  virtual bool GetIntProperty(ColumnFamilyHandle* family, std::string_view property, uint64_t* value) = 0;
  virtual Status GetLatestSequenceForKey(ColumnFamilyHandle* family, Slice key, uint64_t* sequence) = 0;
  // From the next write, flush or merge on, until the database is closed. With foreign options alone it is the family that
  // changes; all others are the database's, whatever the family. With an Options::dram_budget they do not go beyond what was
  // shared at the open. The options file says what was set; GetOptions() what the database was opened with.
  virtual Status SetOptions(ColumnFamilyHandle* family, const ChangedOptions& changed);

  virtual const Snapshot* GetSnapshot() = 0;
  virtual void ReleaseSnapshot(const Snapshot* snapshot) = 0;

  // Makes the memtable an L0 table and checkpoints it. Returns when done.
  virtual Status Flush() = 0;
  // Merges everything that was written before the call into the last level and drops what no snapshot sees. Null: unbounded.
  // The bounds limit the sweep of the last level; the merge is always of whole tables.
  virtual Status CompactRange(const CompactRangeOptions& options, const Slice* begin, const Slice* end) = 0;
  // Returns when no flush and no compaction is pending or running. NoSpace: a compaction waits for space; it is tried again.
  virtual Status WaitForCompaction() = 0;

  // Properties, all starting with "braiddb.": "stats", "levels", "l1" (what the last level is made of), "l1-dram-bytes",
  // "l1-pm-bytes" (segments that it has for itself), "lookup-cache-bytes", "filter-bytes" (0 until it is made), "dram-bytes"
  // (all of these and what is taken for memtables and L0; not the work of the moment), "num-immutable-mem-table",
  // "num-entries-active-mem-table" (a thread's newest ones are counted a little later), "num-entries-imm-mem-tables",
  // "num-l0-tables", "num-entries-l0", "num-entries-l1", "estimate-num-keys" (the sum of these entries),
  // "cur-size-active-mem-table", "cur-size-all-mem-tables", "pm-bytes-reserved", "visits-per-get" (nodes, remote ones apart),
  // "region-nodes" (a line for each region: its NUMA node, the nodes whose threads write to it, its device, what says so),
  // "pm-bytes-in-segments", "pm-bytes-live" (of log entries that are not known to be dead), "num-segments",
  // "num-free-segments", "num-snapshots", "oldest-snapshot-sequence" (0: there is none), "num-running-flushes",
  // "num-running-compactions", "num-range-tombstones" (deleted ranges whose keys are not gone yet), "last-sequence-number",
  // "persist-mode", "background-errors", "is-write-stopped". "rocksdb." is accepted as prefix too. False: there is no such one.
  virtual bool GetProperty(std::string_view property, std::string* value) = 0;
  virtual bool GetIntProperty(std::string_view property, uint64_t* value) = 0;

  virtual Statistics GetStatistics() const = 0;
  // False, and *histograms is left alone, unless Options::histograms is set. Throws std::bad_alloc.
  virtual bool GetHistograms(Histograms*) const { return false; }
  // The largest sequence number of an update that GetUpdatesSince can give: what the caller wrote has no larger one. Numbers that
  // are in no update do not count: rotations of memtables draw some, and what the database writes for itself. After an open it
  // may be a number up to which nothing can be given any more. 0: nothing was written.
  virtual uint64_t GetLatestSequenceNumber() const = 0;
  // What was written from `sequence` on, beginning with the batch that has this number, or the first behind it. The log is the
  // data: it has what no merge has made obsolete, and of the rest what lies in the same segments as something that is not, so
  // that under overwrites history is soon gone. After an open it has what was not flushed before, which a close always is.
  //   NotFound  the number is larger than GetLatestSequenceNumber(); or something behind it may have been reclaimed
  virtual Status GetUpdatesSince(uint64_t sequence, std::unique_ptr<TransactionLogIterator>* iterator) = 0;
  // The sequence number of the newest write to the key, be it a deletion. NotFound: there is none, or it was a deletion and is
  // forgotten, since nobody could see what it deleted any more, or a compaction filter removed it. For who has to know whether a
  // key was written meanwhile.
  virtual Status GetLatestSequenceForKey(Slice key, uint64_t* sequence) = 0;
  virtual const Options& GetOptions() const = 0;
  virtual const std::string& GetName() const = 0;

  // Of a secondary: all that the primary acknowledged before the call is there when it returns OK, in one step, and of what was
  // written since as much as one state of it had. Reads all of the primary's log, and takes DRAM for all that lives in it.
  // Busy: the primary takes and releases log space faster than it can be read; nothing has changed. NotSupported for others.
  virtual Status TryCatchUpWithPrimary() { return Status::NotSupported("Supported only by secondary instance"); }

  // The database at the bottom: below transactions, and with values as they are stored, where a class on top adds something to
  // them (DBWithTTL). What copies are made of. Lives as long as this object.
  virtual DB* GetRootDB() { return this; }

 protected:
  DB() = default;
};

}  // namespace braiddb
#pragma GCC visibility pop
