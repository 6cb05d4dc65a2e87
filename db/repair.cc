// RepairDatabase: what a salvage finds, written into a new database.
#include "braiddb/check.h"
#include "braiddb/db.h"
#include "check/check_files.h"
#include "check/salvage.h"

namespace braiddb {
namespace {

constexpr uint64_t kBatchBytes = 256ull << 10;

Status WriteAll(const Salvage& salvage, DB* db) {
  WriteBatch batch;
  uint64_t bytes = 0;
  for (const LogEntry* entry : salvage.families().front().entries) {
    batch.Put(entry->key(), entry->value());
    bytes += LogEntrySize(*entry);
    if (bytes < kBatchBytes) continue;
    if (Status status = db->Write({}, batch); !status.ok()) return status;
    batch.Clear();
    bytes = 0;
  }
  return bytes == 0 ? Status::OK() : db->Write({}, batch);
}

}  // namespace

Status RepairDatabase(const RepairOptions& options, const std::string& path, const std::string& new_path, RepairReport* report) {
  *report = RepairReport();
  posix::Fd lock;
  std::unique_ptr<Salvage> salvage;
  if (Status status = LockForReading(path, &lock); !status.ok()) return status;
  if (Status status = Salvage::Scan(options.source, path, report, &salvage); !status.ok()) return status;
  Options target = options.target;
  target.create_if_missing = true;
  target.error_if_exists = true;
  target.comparator = salvage->families().front().comparator;
  target.l1 = salvage->families().front().l1.value_or(target.l1);
  if (target.regions == 0 && target.region_paths.empty()) target.regions = salvage->regions();
  std::unique_ptr<DB> db;
  Status status = DB::Open(target, new_path, &db);
  if (status.ok()) status = WriteAll(*salvage, db.get());
  if (status.ok()) status = db->Close();
  if (status.ok()) report->keys = salvage->families().front().entries.size();
  return status;
}

}  // namespace braiddb
