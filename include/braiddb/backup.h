// Copies of a database and files of updates.
//
//   CreateCheckpoint     a copy that can be opened
//   BackupEngine         copies of one file each, which are restored before they are opened
//   SortedFileWriter     writes a file of sorted updates, without a database
//   IngestExternalFiles  writes the updates of such files to a database
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"

#pragma GCC visibility push(default)
namespace braiddb {

// For databases with regions outside of their directory, or with comparators of the user's own.
struct CopyOptions {
  // Sets options->region_paths of the database that is about to be created in `directory`: one new path for each region. The
  // directory is renamed when the database is complete. Empty: regions are inside the directory.
  std::function<Status(const std::string& directory, Options* options)> place_regions;
  // Removes a database and the directories that place_regions made for it; OK if there is none. Empty: DB::Destroy.
  std::function<Status(const std::string& directory)> destroy;
  // For RestoreBackup: comparators of column families, besides the built-in ones and the default family's.
  std::vector<const Comparator*> comparators;
};

// Creates a database in directory `path` with the contents of `db` at one moment, while `db` continues to be written. *sequence
// is the number of the newest write in the copy. The copy exists complete or not at all; after a crash, `path`.tmp may remain,
// which the next call removes.
//   same          column families (their ids may differ) with comparators and last levels, prepared transactions, regions,
//                 options file
//   place         inside the directory, on any file system, unless `options` choose other directories for the regions
//   cost          reads all data; no space of `db` is reused while it runs
//   secondary     copies what the secondary shows; *sequence is a number of its own copy, not of the primary
//   error         InvalidArgument if `path` exists; NotSupported if `db` is of a class of the user's own
// Thread safety: may be called concurrently for different paths.
Status CreateCheckpoint(DB* db, const std::string& path, uint64_t* sequence = nullptr, const CopyOptions& options = {});

struct BackupInfo {
  uint32_t id = 0;                    // unique in the directory; larger than the ids of all older backups there
  int64_t timestamp = 0;              // seconds since 1970 (UTC)
  uint64_t sequence = 0;              // of the newest write in the backup
  uint64_t size = 0;                  // of its file; bytes
  uint64_t keys = 0;                  // of all column families
  std::vector<std::string> families;  // names without the default family's
  std::string options;                // of the database, as text (options_file.h)
  std::string metadata;               // as given to CreateBackup
};

// Backups in one directory. Each backup is one complete file with checksums; FORMAT.md has its layout.
// Thread safety: every method may be called concurrently. Methods that write, read or remove files run one after the other;
// GetBackupInfo and GetDamagedBackups do not wait for them.
class BackupEngine {
 public:
  // Creates the directory if it does not exist. Busy if another engine has it open. Removes files of unfinished backups. A
  // damaged backup keeps its file; GetDamagedBackups lists it, GetBackupInfo does not.
  static Status Open(const std::string& directory, std::unique_ptr<BackupEngine>* engine);
  virtual ~BackupEngine() = default;
  BackupEngine(const BackupEngine&) = delete;
  BackupEngine& operator=(const BackupEngine&) = delete;

  // Copies the contents of `db` at one moment, prepared transactions included, while `db` continues to be written. Durable when
  // it returns OK. Never replaces a file. For a secondary see CreateCheckpoint; BackupInfo has its options.
  //   NoSpace       there is a backup with the largest id, 4294967295
  //   NotSupported  `db` is of a class of the user's own
  virtual Status CreateBackup(DB* db, const std::string& metadata = {}, uint32_t* id = nullptr) = 0;
  // Oldest first.
  virtual std::vector<BackupInfo> GetBackupInfo() const = 0;
  // Ascending ids of backups whose end or description cannot be read. VerifyBackup and RestoreBackup return the reason, and
  // DeleteBackup removes the file.
  virtual std::vector<uint32_t> GetDamagedBackups() const = 0;
  // Reads the backup and verifies every checksum. NotFound, or Corruption.
  virtual Status VerifyBackup(uint32_t id) const = 0;
  // Creates a database with the backup's contents in directory `path`. An existing database there is replaced; it is `path`.old
  // for a moment. Other files in the directory stay.
  //   options       of the new database (BackupInfo has the original's). Comparators must have the original names, also those of
  //                 column families (`copy`). create_if_missing has no effect
  //   Busy          the database in `path` is open
  //   Corruption    the backup is damaged; the contents of `path` stay
  //   NotSupported  options.region_paths is set; `copy` chooses other directories for regions
  virtual Status RestoreBackup(uint32_t id, const Options& options, const std::string& path,
                               const CopyOptions& copy = {}) const = 0;
  virtual Status DeleteBackup(uint32_t id) = 0;
  // Deletes all backups but the newest `keep`.
  virtual Status PurgeOldBackups(uint32_t keep) = 0;

 protected:
  BackupEngine() = default;
};

// Writes a file of updates for IngestExternalFiles: keys in order, each key once. The file exists, complete and durable, when
// Finish has returned OK. Without Finish there is no file.
// Thread safety: one thread at a time.
class SortedFileWriter {
 public:
  static Status Create(const std::string& path, const Comparator* comparator, std::unique_ptr<SortedFileWriter>* writer);
  virtual ~SortedFileWriter() = default;
  SortedFileWriter(const SortedFileWriter&) = delete;
  SortedFileWriter& operator=(const SortedFileWriter&) = delete;

  // Put, Delete and Merge return InvalidArgument if the key is not larger than the previous key.
  virtual Status Put(Slice key, Slice value) = 0;
  virtual Status Delete(Slice key) = 0;
  // On ingestion, deletes the keys in [start, limit) of the database and of earlier files, but not those of this file. May be
  // called at any time, in any order. InvalidArgument if limit is before start.
  virtual Status DeleteRange(Slice start, Slice limit) = 0;
  // An operand for the merge operator of the database that ingests the file.
  virtual Status Merge(Slice key, Slice operand) = 0;
  // Completes the file. InvalidArgument if it has no update.
  virtual Status Finish() = 0;
  // Bytes written so far.
  virtual uint64_t FileSize() const = 0;
  // The same for families with timestamps (DB::PutAt). InvalidArgument if the comparator has none, or others; then Put, Delete,
  // DeleteRange and Merge are InvalidArgument, too. The newest version of a key comes first.
  virtual Status PutAt(Slice key, Slice timestamp, Slice value) = 0;
  virtual Status DeleteAt(Slice key, Slice timestamp) = 0;

 protected:
  SortedFileWriter() = default;
};

struct IngestOptions {
  // Remove the files after success. Default: false.
  bool remove_files = false;
  // Accept files that were written with another comparator; their updates are sorted in the database's order. A
  // file with range deletions is InvalidArgument then. Default: false.
  bool any_comparator = false;
  // The column family to write to. Default: null, the default family.
  ColumnFamilyHandle* family = nullptr;
  // Writes the batch instead of DB::Write, for callers that intercept every write. Default: empty, DB::Write.
  std::function<Status(const WriteBatch& updates)> write;
};

// Writes the updates of the files, in the order of `paths`, as one batch: all or none, also after a crash. The files are verified
// first. Takes as much DRAM as the updates take log space. Deletions of ranges become DB::DeleteRange in that batch.
//   InvalidArgument  the updates take more than 4 GiB of log space, or a file was written with another comparator
//   NotSupported     a file deletes ranges and the database has transactions
Status IngestExternalFiles(DB* db, const std::vector<std::string>& paths, const IngestOptions& options = {});

}  // namespace braiddb
#pragma GCC visibility pop
