// RepairDatabase: what a salvage finds, written into a new database.
#include <memory>
#include <vector>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "check/check_files.h"
#include "check/salvage.h"
#include "db/db_impl.h"

namespace braiddb {
namespace {

constexpr uint64_t kBatchBytes = 256ull << 10;

Status WriteAll(const Salvage::Family& family, const ColumnFamilyHandle* handle, DB* db) {
  WriteBatch batch;
  uint64_t bytes = 0;
  for (const LogEntry* entry : family.entries) {
    entry->is_operand() ? batch.Merge(handle, entry->key(), entry->value()) : batch.Put(handle, entry->key(), entry->value());
    bytes += LogEntrySize(*entry);
    if (bytes < kBatchBytes) continue;
    if (Status status = db->Write({}, batch); !status.ok()) return status;
    batch.Clear();
    bytes = 0;
  }
  return bytes == 0 ? Status::OK() : db->Write({}, batch);
}

Options OptionsOf(const Salvage::Family& family, const Options& target) {
  Options options = target;
  options.comparator = family.comparator;
  options.l1 = family.l1.value_or(target.l1);
  return options;
}

Status SaveFamily(const Salvage::Family& family, const Options& target, DB* db) {
  std::unique_ptr<ColumnFamilyHandle> handle;
  if (family.id != 0) {
    ColumnFamilyOptions options(OptionsOf(family, target));
    options.merge_operator = nullptr;  // that of the default family may not be this one's: operands stay as they are
    if (Status status = static_cast<DBImpl*>(db)->CreateAnyFamily(options, family.name, &handle); !status.ok()) return status;
  }
  return WriteAll(family, handle.get(), db);
}

}  // namespace

Status RepairDatabase(const RepairOptions& options, const std::string& path, const std::string& new_path, RepairReport* report) {
  *report = RepairReport();
  posix::Fd lock;
  std::unique_ptr<Salvage> salvage;
  if (Status status = LockForReading(path, &lock); !status.ok()) return status;
  if (Status status = Salvage::Scan(options.source, path, report, &salvage); !status.ok()) return status;
  Options target = OptionsOf(salvage->families().front(), options.target);
  target.create_if_missing = true;
  target.error_if_exists = true;
  if (target.regions == 0 && target.region_paths.empty()) target.regions = salvage->regions();
  std::unique_ptr<DB> db;
  Status status = DB::Open(target, new_path, &db);
  uint64_t keys = 0;
  for (const Salvage::Family& family : salvage->families()) {
    if (status.ok()) status = SaveFamily(family, options.target, db.get());
    keys += family.keys;
  }
  if (status.ok()) status = db->Close();
  if (!status.ok()) return status;
  report->families = salvage->families().size();
  report->keys = keys;
  return Status::OK();
}

}  // namespace braiddb
