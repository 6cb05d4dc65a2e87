// RepairDatabase: writes the entries that a salvage finds into a new database, which gets its name when it is complete.
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "check/check_files.h"
#include "check/salvage.h"
#include "db/db_impl.h"
#include "db/no_memory.h"
#include "db/temporary_place.h"
#include "util/file.h"
#include "util/no_path.h"

namespace braiddb {
namespace {

constexpr uint64_t kBatchBytes = 256ull << 10;

// The last pass of CheckOptions::progress.
class WriteProgress {
 public:
  WriteProgress(const Salvage& salvage, std::function<void(uint64_t, uint64_t)> progress)
      : bytes_(salvage.bytes()), progress_(std::move(progress)) {
    for (const Salvage::Family& family : salvage.families()) entries_ += family.entries.size();
    if (progress_) progress_(0, bytes_);
  }
  void Add(uint64_t entries) {
    if (!progress_ || entries == 0) return;
    done_ += entries;
    progress_(static_cast<uint64_t>(static_cast<double>(bytes_) * static_cast<double>(done_) / static_cast<double>(entries_)),
              bytes_);
  }

 private:
  const uint64_t bytes_;
  const std::function<void(uint64_t, uint64_t)> progress_;
  uint64_t entries_ = 0;
  uint64_t done_ = 0;
};

Status WriteAll(const Salvage::Family& family, const ColumnFamilyHandle* handle, DBImpl* db, WriteProgress* progress) {
  WriteBatch batch;
  uint64_t bytes = 0;
  for (const LogEntry* entry : family.entries) {
    entry->is_operand() ? batch.Merge(handle, entry->key(), entry->value()) : batch.Put(handle, entry->key(), entry->value());
    bytes += LogEntrySize(*entry);
    if (bytes < kBatchBytes) continue;
    if (Status status = db->WriteToAnyFamily({}, batch); !status.ok()) return status;
    progress->Add(batch.Count());
    batch.Clear();
    bytes = 0;
  }
  progress->Add(batch.Count());
  return bytes == 0 ? Status::OK() : db->WriteToAnyFamily({}, batch);
}

Options OptionsOf(const Salvage::Family& family, const Options& target) {
  Options options = target;
  options.comparator = family.comparator;
  options.l1 = family.l1.value_or(target.l1);
  return options;
}

Status SaveFamily(const Salvage::Family& family, const Options& target, DBImpl* db, WriteProgress* progress) {
  std::unique_ptr<ColumnFamilyHandle> handle;
  if (family.id != 0) {
    ColumnFamilyOptions options(OptionsOf(family, target));
    options.merge_operator = nullptr;  // the operator of the default family need not fit this family; operands stay operands
    if (Status status = db->CreateAnyFamily(options, family.name, &handle); !status.ok()) return status;
  }
  return WriteAll(family, handle.get(), db, progress);
}

// Saves all families. The new database is closed when this returns.
Status SaveAll(const Salvage& salvage, const RepairOptions& given, const Options& target, const std::string& path) {
  WriteProgress progress(salvage, given.source.progress);
  std::unique_ptr<DB> db;
  Status status = DBImpl::Open(target, path, {}, false, nullptr, &db);
  for (const Salvage::Family& family : salvage.families()) {
    if (status.ok()) status = SaveFamily(family, given.target, static_cast<DBImpl*>(db.get()), &progress);
  }
  return status.ok() ? db->Close() : status;
}

// OK if the path does not exist, or is an empty directory.
Status CheckTarget(const std::string& path) {
  std::vector<std::string> names;
  if (!FileExists(path) || (ListDir(path, &names).ok() && names.empty())) return Status::OK();
  return Status::InvalidArgument(path + " exists already; choose another directory");
}

}  // namespace

Status RepairDatabase(const RepairOptions& options, const std::string& path, const std::string& new_path,
                      RepairReport* report) try {
  *report = RepairReport();
  if (path.empty()) return NoPath();
  std::string place;
  Status status = TemporaryPlace::Resolve(new_path, &place);
  if (status.ok()) status = CheckTarget(place);
  if (!status.ok()) return status;
  posix::Fd lock;
  std::unique_ptr<Salvage> salvage;
  status = LockForReading(path, &lock);
  if (status.ok()) status = Salvage::Scan(options.source, path, report, &salvage);
  if (!status.ok()) return status;
  TemporaryPlace temporary(place, [](const std::string& directory) { return DB::Destroy({}, directory); });
  if (status = temporary.Make(); !status.ok()) return status;
  Options target = OptionsOf(salvage->families().front(), options.target);
  target.create_if_missing = true;
  target.error_if_exists = true;
  if (target.regions == 0 && target.region_paths.empty()) target.regions = salvage->regions();
  status = SaveAll(*salvage, options, target, temporary.path());
  if (status.ok() && rename(temporary.path().c_str(), place.c_str()) != 0) status = StatusFromErrno(errno, place);
  if (!status.ok()) {
    (void)temporary.Remove();
    return status;
  }
  TemporaryPlace::Finish(place);
  const std::string parent = std::filesystem::path(place).parent_path().string();
  for (const Salvage::Family& family : salvage->families()) report->keys += family.keys;
  report->families = salvage->families().size();
  return SyncDir(parent.empty() ? "." : parent);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb
