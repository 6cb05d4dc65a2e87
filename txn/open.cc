// Opening a database: that of the engine, or one with user-defined timestamps over it.
#include <chrono>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "db/timestamped_entry.h"
#include "txn/refreshing_db.h"
#include "txn/timestamped_db.h"

namespace braiddb {
namespace {

using Families = std::vector<ColumnFamilyDescriptor>;
using Handles = std::vector<std::unique_ptr<ColumnFamilyHandle>>;

// The names of the families that the database has now. False if they are not known.
bool ListExisting(const Options& options, const std::string& path, std::vector<std::string>* names) {
  const Status status = DB::ListColumnFamilies(options, path, names);
  return status.ok() || status.IsNotFound();
}

Status OpenTimestamped(Options options, const std::string& path, Families families, bool takes_prepared, Handles* handles,
                       std::unique_ptr<DB>* db, DBImpl::Access access) try {
  std::vector<std::shared_ptr<TimestampedFamily>> states(families.size());
  std::shared_ptr<TimestampedFamily> of_default;
  if (HasTimestamps(options.comparator)) {
    of_default = std::make_shared<TimestampedFamily>(options.comparator);
    TimestampedDB::AddHistoryFilter(of_default, &options.compaction_filter, &options.compaction_filter_factory);
  }
  for (size_t i = 0; i < families.size(); ++i) {
    ColumnFamilyOptions& own = families[i].options;
    if (HasTimestamps(own.comparator)) {
      states[i] = std::make_shared<TimestampedFamily>(own.comparator);
      TimestampedDB::AddHistoryFilter(states[i], &own.compaction_filter, &own.compaction_filter_factory);
    }
    if (families[i].name == kDefaultColumnFamilyName) of_default = states[i];
  }
  std::vector<std::string> existing;
  const bool knows_existing = options.create_missing_column_families && ListExisting(options, path, &existing);
  std::unique_ptr<DB> base;
  Status status = DBImpl::Open(options, path, families, takes_prepared, handles, &base, access);
  if (!status.ok()) return status;
  TimestampedDB::Timestamped timestamped;
  for (size_t i = 0; i < families.size(); ++i) {
    if (states[i] != nullptr) timestamped.insert_or_assign((*handles)[i]->GetID(), states[i]);
  }
  if (of_default != nullptr) timestamped.insert_or_assign(0, of_default);
  auto opened = std::make_unique<TimestampedDB>(base.get(), *handles, timestamped);
  opened->Own(std::move(base));
  status = opened->LoadLimits(knows_existing ? &existing : nullptr);
  if (status.ok()) {
    *db = std::move(opened);
  } else {
    handles->clear();
  }
  return status;
} catch (const std::bad_alloc&) {
  handles->clear();
  return NoMemory();
}

Status OpenAny(const Options& options, const std::string& path, const Families& families, bool takes_prepared, Handles* handles,
               std::unique_ptr<DB>* db, DBImpl::Access access) {
  db->reset();
  if (!HasTimestamps(options, families)) return DBImpl::Open(options, path, families, takes_prepared, handles, db, access);
  Handles none;
  return OpenTimestamped(options, path, families, takes_prepared, handles == nullptr ? &none : handles, db, access);
}

}  // namespace

Status DB::Open(const Options& options, const std::string& path, std::unique_ptr<DB>* db) {
  Handles none;
  return Open(options, path, {}, &none, db);
}

Status DB::Open(const Options& options, const std::string& path, const Families& families, Handles* handles,
                std::unique_ptr<DB>* db) {
  return OpenAny(options, path, families, false, handles, db, DBImpl::Access::kWrite);
}

Status DB::OpenForReadOnly(const Options& options, const std::string& path, std::unique_ptr<DB>* db,
                           bool error_if_wal_file_exists) {
  return OpenForReadOnly(options, path, {}, nullptr, db, error_if_wal_file_exists);
}

Status DB::OpenForReadOnly(const Options& options, const std::string& path, const Families& families, Handles* handles,
                           std::unique_ptr<DB>* db, bool error_if_wal_file_exists) {
  const DBImpl::Access access = error_if_wal_file_exists ? DBImpl::Access::kReadMerely : DBImpl::Access::kRead;
  // Transactions that are prepared but not committed are invisible, so reads need not know of them.
  constexpr bool kTakesPrepared = true;
  if (HasTimestamps(options, families)) return OpenAny(options, path, families, kTakesPrepared, handles, db, access);
  // A process may have the database open for writing, and share its memory. If it cannot be reached, the plain open finds out
  // whether there is such a process. A process that opens or closes the database at this moment has the lock without serving.
  constexpr auto kPatience = std::chrono::seconds(2);
  for (const auto deadline = std::chrono::steady_clock::now() + kPatience;;) {
    const Status live = OpenAny(options, path, families, kTakesPrepared, handles, db, DBImpl::Access::kLive);
    const bool is_passing = live.IsNotFound() || live.IsAborted();
    if (live.ok()) return RefreshingDB::Wrap(options, path, families, handles, db);
    if (!is_passing && !live.IsBusy() && !live.IsIOError()) return live;
    const Status status = OpenAny(options, path, families, kTakesPrepared, handles, db, access);
    if (!status.IsBusy()) return status;
    if (is_passing && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    if (live.IsIOError()) return live;  // not the owner's fault, for example too many open files
    return live.IsNotFound() ? status : Status::Busy(std::string(status.message()) + "; " + std::string(live.message()));
  }
}

Status DB::OpenAndTrimHistory(const Options& options, const std::string& path, const Families& families, Handles* handles,
                              std::unique_ptr<DB>* db, std::string trim_ts) {
  std::unique_ptr<DB> opened;
  db->reset();
  Status status = Open(options, path, families, handles, &opened);
  if (!status.ok()) return status;
  auto* const timestamped = dynamic_cast<TimestampedDB*>(opened.get());
  if (timestamped != nullptr) status = timestamped->Trim(trim_ts);
  if (status.ok()) {
    *db = std::move(opened);
  } else if (handles != nullptr) {
    handles->clear();
  }
  return status;
}

}  // namespace braiddb
