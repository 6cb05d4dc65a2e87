// Copies of a database: checkpoints, which can be opened, and backups, which are one file each; and files of sorted updates that
// are made elsewhere and ingested.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"

#pragma GCC visibility push(default)
namespace braiddb {

// For who keeps regions elsewhere than in the directories of their databases, or has comparators of their own.
struct CopyOptions {
  // Chooses options->region_paths of a database that is about to be made in `directory`, which is renamed when it is made: one
  // for each region, that nobody else has. Empty: regions are inside the directory.
  std::function<Status(const std::string& directory, Options* options)> place_regions;
  // Removes a database, and what place_regions made for it; OK if there is none. Empty: DB::Destroy.
  std::function<Status(const std::string& directory)> destroy;
  // For RestoreBackup: comparators of column families, beside that of the default one and those that are built in.
  std::vector<const Comparator*> comparators;
};

// Makes a database in directory `path`, which must not be there, of what `db` holds at one moment; *sequence: the number of the
// newest write in it. Writing goes on meanwhile. The copy has the same column families with their orders and last levels, though
// perhaps other ids of them, the same prepared transactions (transaction.h), and the same regions and options file, all inside
// the directory unless `options` say otherwise, on whatever file system that is. It is there whole or not at all; what a crash
// left is `path`.tmp, which the next call removes.
// Costs: reads all of the data, and while it runs no space comes back. InvalidArgument if `path` is there.
// Thread safety: may be called concurrently, for different paths.
Status CreateCheckpoint(DB* db, const std::string& path, uint64_t* sequence = nullptr, const CopyOptions& options = {});

struct BackupInfo {
  uint32_t id = 0;                    // of the engine's directory; larger than those of the backups that were there
  int64_t timestamp = 0;              // seconds since 1970 (UTC)
  uint64_t sequence = 0;              // of the newest write in it
  uint64_t size = 0;                  // bytes of its file
  uint64_t keys = 0;                  // of all column families
  std::vector<std::string> families;  // that are beside the default one
  std::string options;                // of the database, as text: braiddb/options_file.h
  std::string metadata;               // as given
};

// Backups in one directory. Each is one file, complete in itself, with checksums; see FORMAT.md.
// Thread safety: every method may be called concurrently. Those that write, read or remove files work one after the other;
// GetBackupInfo and GetDamagedBackups do not wait for them.
class BackupEngine {
 public:
  // Creates the directory if it is not there. Busy if another engine has it open. Files of backups that were cut short are
  // removed; one that is damaged is listed by GetDamagedBackups, and not by GetBackupInfo, and its file stays.
  static Status Open(const std::string& directory, std::unique_ptr<BackupEngine>* engine);
  virtual ~BackupEngine() = default;
  BackupEngine(const BackupEngine&) = delete;
  BackupEngine& operator=(const BackupEngine&) = delete;

  // All that `db` holds at one moment, prepared transactions included; writing goes on. Durable when it returns OK. The file
  // takes the place of no other. NoSpace if there is a backup with the largest id, 4294967295.
  virtual Status CreateBackup(DB* db, const std::string& metadata = {}, uint32_t* id = nullptr) = 0;
  // Oldest first.
  virtual std::vector<BackupInfo> GetBackupInfo() const = 0;
  // Those whose end or description cannot be read; VerifyBackup and RestoreBackup say why, DeleteBackup removes them.
  virtual std::vector<uint32_t> GetDamagedBackups() const = 0;
  // Reads all of it. NotFound, or Corruption.
  virtual Status VerifyBackup(uint32_t id) const = 0;
  // Makes a database of it in directory `path`, in place of one that is there (Busy if that is open), which is `path`.old for a
  // moment; files of others that are in the directory stay there. `options`: of the new one; its comparator must have the name
  // of the original's, as those of column families must (`copy`), and `create_if_missing` means nothing. Verifies what it reads:
  // with Corruption what was in `path` stays. NotSupported with region_paths: `copy` says where regions elsewhere are to be.
  // BackupInfo has the options of the original.
  virtual Status RestoreBackup(uint32_t id, const Options& options, const std::string& path,
                               const CopyOptions& copy = {}) const = 0;
  virtual Status DeleteBackup(uint32_t id) = 0;
  // Deletes all but the newest `keep`.
  virtual Status PurgeOldBackups(uint32_t keep) = 0;

 protected:
  BackupEngine() = default;
};

// Writes a file of updates in the order of their keys, each key once, for IngestExternalFiles. It is there, whole and durable,
// when Finish has returned OK; before, and when the writer is destroyed without, there is none.
// Thread safety: none.
class SortedFileWriter {
 public:
  static Status Create(const std::string& path, const Comparator* comparator, std::unique_ptr<SortedFileWriter>* writer);
  virtual ~SortedFileWriter() = default;
  SortedFileWriter(const SortedFileWriter&) = delete;
  SortedFileWriter& operator=(const SortedFileWriter&) = delete;

  // InvalidArgument if the key is not behind the last one.
  virtual Status Put(Slice key, Slice value) = 0;
  virtual Status Delete(Slice key) = 0;
  // When the file is ingested, deletes the keys in [start, limit) that are in the database or in files before this one; never
  // those of this file. May be called between the others, in any order. InvalidArgument if limit is before start.
  virtual Status DeleteRange(Slice start, Slice limit) = 0;
  // An operand for the merge operator of the database that takes it in.
  virtual Status Merge(Slice key, Slice operand) = 0;
  // InvalidArgument if there is no update.
  virtual Status Finish() = 0;
  // Bytes written so far.
  virtual uint64_t FileSize() const = 0;

 protected:
  SortedFileWriter() = default;
};

struct IngestOptions {
  // Remove the files when all is done. Default: false.
  bool remove_files = false;
  // Take files that were made with another comparator, too: what they have is put in the order of the database. Default: false.
  bool any_comparator = false;
  // Where the keys go. Null: the default column family. Default: null.
  ColumnFamilyHandle* family = nullptr;
  // Writes the batch, in place of DB::Write: for who has to know of each write. Empty: DB::Write.
  std::function<Status(const WriteBatch& updates)> write;
};

// Writes the updates of the files, one file after the other, as one batch: all or nothing, also after a crash. They are verified
// before. At most 4 GiB of log space together, which also is what it takes of DRAM; InvalidArgument if that is too much, or
// a file was made with another comparator. Deletions of ranges are DB::DeleteRange's, in that batch; NotSupported where there are
// transactions.
Status IngestExternalFiles(DB* db, const std::vector<std::string>& paths, const IngestOptions& options = {});

}  // namespace braiddb
#pragma GCC visibility pop
