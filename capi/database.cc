// Open, close, destroy, repair.
#include "capi/database.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "braiddb/check.h"
#include "braiddb/transaction.h"
#include "braiddb/ttl.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"

using braiddb::Status;
using namespace braiddb::capi;

namespace braiddb::capi {

// RocksDB and LevelDB databases have a file CURRENT, BraidDB databases have none. Such a database must not look empty.
static Status RefuseForeign(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path + "/CURRENT", error)) return Status::OK();
  return Status::InvalidArgument(path + ": there is a database of RocksDB or LevelDB, whose files cannot be read; name another " +
                                 "directory, and put the keys there");
}

Status NothingToRead(const std::string& path, int error) {
  const std::string why = std::generic_category().message(error == 0 ? ENOENT : error);
  const std::string text = "While opening a file for sequentially reading: " + path + "/CURRENT: " + why;
  return Status::IOError(error == 0 ? why + ": " + text : text);
}

Status LockedAsRocksDB(Status status, const std::string& path) {
  if (!status.IsBusy()) return status;
  const std::string message(status.message());
  if (message.find("locked by this process") != std::string::npos)
    return Status::IOError("lock hold by current process: " + path + "/LOCK: No locks available: " + message);
  return Status::IOError("While lock file: " + path + "/LOCK: Resource temporarily unavailable: " + message);
}

// The open creates one directory, as RocksDB does, but not its parents.
static Status CheckParent(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error).lexically_normal();
  const auto parent = whole.has_filename() ? whole.parent_path() : whole.parent_path().parent_path();
  if (error || parent.empty() || std::filesystem::exists(parent, error) || error) return Status::OK();
  return Status::IOError("No such file or directory: While mkdir if missing: " + path + ": No such file or directory");
}

static Status OpenedAsRocksDB(Status status, const Options& options, const std::string& path) {
  if (status.IsNotFound() && options.create_if_missing)
    return Status::IOError("No such file or directory: " + std::string(status.message()));
  if (status.IsNotFound()) return Status::InvalidArgument(path + "/CURRENT: does not exist (create_if_missing is false)");
  return LockedAsRocksDB(std::move(status), path);
}

Status OpenDatabase(const braiddb_options_t& options, const std::string& path, const Families& families, FamilyHandles* handles,
                    braiddb_t** db, const Opener& open) {
  Options own;
  if (Status status = MakeOptions(options, path, &own); !status.ok()) return status;
  if (Status status = RefuseForeign(path); !status.ok()) return status;
  if (own.create_if_missing) {
    if (Status status = CheckParent(path); !status.ok()) return status;
  }
  if (options.own.region_paths.empty() && own.create_if_missing) {
    if (Status status = PlaceRegions(path, &own); !status.ok()) return status;
  }
  auto result = std::make_unique<braiddb_t>();
  Status status = open(own, path, families, handles, &result->db);
  if (!status.ok()) return OpenedAsRocksDB(std::move(status), own, path);
  // Ensures that the handles are destroyed before the database, also if memory runs out below.
  FamilyHandles opened = std::move(*handles);
  // Transactions write without this layer, so the filter would miss their writes.
  const bool writes_are_ours = dynamic_cast<TransactionDB*>(result->db.get()) == nullptr &&
                               dynamic_cast<OptimisticTransactionDB*>(result->db.get()) == nullptr;
  if (options.leveldb_policy != nullptr && options.leveldb_policy->is_users_own() && writes_are_ours)
    result->user_filter = std::make_unique<UserFilter>(options.leveldb_policy, own.comparator);
  result->snapshots_see_newest = options.inplace_update_support != 0;
  result->statistics = options.statistics;
  if (result->statistics != nullptr) result->statistics->Add(result->db.get());
  result->cache = options.cache != nullptr ? options.cache : options.table.block_cache;
  if (result->cache != nullptr) result->cache->Add(result.get());
  *handles = std::move(opened);
  *db = result.release();
  return Status::OK();
}

Opener OpenerWithTtl(int seconds, std::vector<int32_t> family_seconds) {
  return [seconds, family_seconds = std::move(family_seconds)](const Options& options, const std::string& path,
                                                               const Families& families, FamilyHandles* handles,
                                                               std::unique_ptr<DB>* db) {
    TtlOptions ttl;
    ttl.ttl_seconds = seconds;
    ttl.family_ttl_seconds = family_seconds;
    std::unique_ptr<DBWithTTL> opened;
    Status status = DBWithTTL::Open(options, ttl, path, families, handles, &opened);
    *db = std::move(opened);
    return status;
  };
}

Opener OpenerToRead(bool error_if_wal_file_exists) {
  return [error_if_wal_file_exists](const Options& options, const std::string& path, const Families& families,
                                    FamilyHandles* handles, std::unique_ptr<DB>* db) {
    Status status = DB::OpenForReadOnly(options, path, families, handles, db, error_if_wal_file_exists);
    return status.IsNotFound() ? NothingToRead(path) : status;
  };
}

Opener OpenerOfSecondary(std::string secondary_path) {
  return [secondary_path = std::move(secondary_path)](const Options& options, const std::string& path, const Families& families,
                                                      FamilyHandles* handles, std::unique_ptr<DB>* db) {
    Status status = DB::OpenAsSecondary(options, path, secondary_path, families, handles, db);
    return status.IsNotFound() ? NothingToRead(path) : status;
  };
}

braiddb_options_t WithoutCreation(const braiddb_options_t& options) {
  braiddb_options_t result = options;
  result.create_if_missing = 0;
  return result;
}

Status CloseDatabase(braiddb_t* db) {
  db->open_objects.EndAll();
  if (db->cache != nullptr) db->cache->Remove(db);
  if (db->statistics != nullptr) db->statistics->Remove(db->db.get());
  const Status status = db->db->Close();
  delete db;
  return status;
}

}  // namespace braiddb::capi

namespace {

// A sibling path: `path` without trailing slashes, plus `suffix`.
std::string Beside(std::string path, const char* suffix) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path + suffix;
}

Status Rename(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  return error ? Status::IOError(from + " cannot be renamed to " + to + ": " + error.message()) : Status::OK();
}

// GOAL   The database at `path` has all intact entries, and the damaged database is kept.
// STEPS  1 write the intact entries to <path>.repaired  2 rename <path> to <path>.damaged  3 rename <path>.repaired to <path>.
// CRASH  After 1: `path` is unchanged and <path>.repaired is complete. Its age is unknown, so the next repair asks the user to
//        move it away. After 2: no `path` exists, and the next repair executes step 3.
Status Repair(const braiddb_options_t& options, const std::string& path) {
  const std::string repaired = Beside(path, ".repaired");
  const std::string damaged = Beside(path, ".damaged");
  if (!std::filesystem::exists(path) && std::filesystem::exists(repaired) && std::filesystem::exists(damaged)) {
    return Rename(repaired, path);  // an earlier repair was interrupted after step 2
  }
  if (!std::filesystem::exists(path)) return Status::IOError(path + ": No such file or directory");
  braiddb::Options own;
  if (Status status = MakeOptions(options, path, &own); !status.ok()) return status;
  braiddb::CheckOptions check;
  check.region_paths = own.region_paths;
  check.comparator = options.comparator;
  braiddb::CheckReport report;
  if (Status status = braiddb::CheckDatabase(check, path, &report); !status.ok()) return status;
  if (report.sound()) return Status::OK();
  if (!own.region_paths.empty()) {
    return Status::NotSupported(
        "repair in place of a database with regions in directories of their own; use the program: braiddb repair");
  }
  if (std::filesystem::exists(damaged))
    return Status::InvalidArgument(damaged + " is there from an earlier repair; move it away first");
  if (std::filesystem::exists(repaired))
    return Status::InvalidArgument(repaired + " is there already; if an earlier repair left it, remove it with destroy_db");
  braiddb::RepairOptions repair;
  repair.source = check;
  repair.target = own;
  braiddb::RepairReport saved;
  Status status = braiddb::RepairDatabase(repair, path, repaired, &saved);
  if (status.ok()) status = Rename(path, damaged);
  if (status.ok()) status = Rename(repaired, path);
  return status;
}

Status Check(const braiddb_options_t& options, const std::string& path) {
  braiddb::Options own;
  if (Status status = MakeOptions(options, path, &own); !status.ok()) return status;
  braiddb::CheckOptions check;
  check.region_paths = own.region_paths;
  check.comparator = options.comparator;
  braiddb::CheckReport report;
  Status status = braiddb::CheckDatabase(check, path, &report);
  if (!status.ok() || report.sound()) return status;
  const braiddb::CheckFinding& first = report.findings.front();
  return Status::Corruption(first.what + ": " + first.where + "; " + first.advice);
}

}  // namespace

braiddb_t* braiddb_open(const braiddb_options_t* options, const char* path, char** errptr) {
  braiddb_t* db = nullptr;
  SaveError(errptr, Guarded([&] { return OpenDatabase(*options, path, &db); }));
  return db;
}

void braiddb_close(braiddb_t* db) {
  const Status ignored = CloseDatabase(db);
  (void)ignored;  // the error is in the info log; braiddb_close_database returns it
}

void braiddb_close_database(braiddb_t* db, char** errptr) { SaveError(errptr, CloseDatabase(db)); }

void braiddb_destroy_db(const braiddb_options_t* options, const char* path, char** errptr) {
  SaveError(errptr, Guarded([&] {
              Status status = RefuseForeign(path);
              return status.ok() ? LockedAsRocksDB(DestroyPlaced(options->own, path), path) : status;
            }));
}

void braiddb_repair_db(const braiddb_options_t* options, const char* path, char** errptr) {
  SaveError(errptr, Guarded([&] { return LockedAsRocksDB(Repair(*options, path), path); }));
}

void braiddb_check_db(const braiddb_options_t* options, const char* path, char** errptr) {
  SaveError(errptr, Guarded([&] { return Check(*options, path); }));
}

// A time to live of 0 or less means forever.
braiddb_t* braiddb_open_with_ttl(const braiddb_options_t* options, const char* path, int ttl, char** errptr) {
  braiddb_t* db = nullptr;
  SaveError(errptr, Guarded([&] { return OpenDatabase(*options, path, &db, OpenerWithTtl(ttl)); }));
  return db;
}

braiddb_t* braiddb_open_for_read_only(const braiddb_options_t* options, const char* path, unsigned char error_if_wal_file_exists,
                                      char** errptr) {
  braiddb_t* db = nullptr;
  SaveError(errptr, Guarded([&] {
              return OpenDatabase(WithoutCreation(*options), path, &db, OpenerToRead(error_if_wal_file_exists != 0));
            }));
  return db;
}

braiddb_t* braiddb_open_as_secondary(const braiddb_options_t* options, const char* path, const char* secondary_path,
                                     char** errptr) {
  braiddb_t* db = nullptr;
  SaveError(errptr,
            Guarded([&] { return OpenDatabase(WithoutCreation(*options), path, &db, OpenerOfSecondary(secondary_path)); }));
  return db;
}

void braiddb_try_catch_up_with_primary(braiddb_t* db, char** errptr) {
  SaveError(errptr, Guarded([&] { return db->db->TryCatchUpWithPrimary(); }));
}

void braiddb_free(void* pointer) { std::free(pointer); }

int braiddb_major_version() { return BRAIDDB_C_MAJOR; }
int braiddb_minor_version() { return BRAIDDB_C_MINOR; }
