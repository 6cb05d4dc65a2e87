// Backups, by braiddb/backup.h. RocksDB's backups share files; here each backup has all data.
#include "braiddb/backup.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/options_file.h"
#include "capi/options.h"
#include "capi/result.h"

using braiddb::Status;
using namespace braiddb::capi;

struct braiddb_backup_engine_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_BACKUP_OPTIONS)
  std::string backup_dir;
  const braiddb::Comparator* comparator = nullptr;
  Status unfit;  // not OK: no engine is opened with these options
};

struct braiddb_restore_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_RESTORE_OPTIONS)
};

struct braiddb_backup_engine_t {
  std::unique_ptr<braiddb::BackupEngine> rep;
  const braiddb::Comparator* comparator;  // for restored databases; null: a built-in comparator
};

struct braiddb_backup_engine_info_t {
  std::vector<braiddb::BackupInfo> backups;  // oldest first
};

namespace {

template <class Work>
void Run(char** errptr, const Work& work) {
  SaveError(errptr, Guarded(work));
}

Status OpenEngine(const std::string& directory, const braiddb::Comparator* comparator, bool destroy_old_data,
                  braiddb_backup_engine_t** engine) {
  std::unique_ptr<braiddb::BackupEngine> opened;
  Status status = braiddb::BackupEngine::Open(directory, &opened);
  if (status.ok() && destroy_old_data) status = opened->PurgeOldBackups(0);
  for (const uint32_t damaged : status.ok() && destroy_old_data ? opened->GetDamagedBackups() : std::vector<uint32_t>()) {
    if (status.ok()) status = opened->DeleteBackup(damaged);
  }
  if (status.ok()) *engine = new braiddb_backup_engine_t{std::move(opened), comparator};
  return status;
}

// Options for a database that is restored from the backup: those of the original, except options that depend on its location.
Status OptionsOf(const braiddb_backup_engine_t& engine, const braiddb::BackupInfo& info, braiddb::Options* options) {
  braiddb::LoadedOptions loaded;
  if (Status status = braiddb::OptionsFromText(info.options, &loaded, true); !status.ok()) return status;
  *options = std::move(loaded.options);
  options->region_paths.clear();
  options->region_nodes.clear();
  options->persist_mode = braiddb::PersistMode::kAuto;
  options->verify_at_open = false;
  if (loaded.comparator == "leveldb.BytewiseComparator" || loaded.comparator == "rocksdb.ReverseBytewiseComparator")
    return Status::OK();
  options->comparator = engine.comparator;
  if (engine.comparator != nullptr && loaded.comparator == engine.comparator->Name()) return Status::OK();
  return Status::InvalidArgument("the backup is of a database with the comparator " + loaded.comparator +
                                 "; open the engine with options that have it");
}

Status Restore(const braiddb_backup_engine_t& engine, const braiddb::BackupInfo& info, const std::string& path,
               const braiddb_restore_options_t* how) {
  std::error_code error;
  if (how != nullptr && how->keep_log_files != 0 && std::filesystem::exists(path, error))
    return Status::NotSupported("a restore that keeps the log of what is there; the log is the data");
  braiddb::Options options;
  Status status = OptionsOf(engine, info, &options);
  return status.ok() ? engine.rep->RestoreBackup(info.id, options, path, PlacedCopies()) : status;
}

Status RestoreById(const braiddb_backup_engine_t& engine, uint32_t id, const std::string& path,
                   const braiddb_restore_options_t* how) {
  for (const braiddb::BackupInfo& info : engine.rep->GetBackupInfo()) {
    if (info.id == id) return Restore(engine, info, path, how);
  }
  const Status status = engine.rep->VerifyBackup(id);  // returns the reason why it is not a backup
  return status.ok() ? Status::NotFound("there is no such backup") : status;
}

}  // namespace

// ---- Options: the directory and destroy_old_data have an effect, others are only stored

braiddb_backup_engine_options_t* braiddb_backup_engine_options_create(const char* path) {
  std::unique_ptr<braiddb_backup_engine_options_t> options;
  Status status;
  DoOrNote(&status, [&] {
    options = std::make_unique<braiddb_backup_engine_options_t>();
    options->backup_dir = path;
  });
  return status.ok() ? options.release() : nullptr;
}
void braiddb_backup_engine_options_destroy(braiddb_backup_engine_options_t* options) { delete options; }
void braiddb_backup_engine_options_set_backup_dir(braiddb_backup_engine_options_t* options, const char* path) {
  DoOrNote(&options->unfit, [&] { options->backup_dir = path; });
}
void braiddb_backup_engine_options_set_env(braiddb_backup_engine_options_t*, braiddb_env_t*) {}

#define DEFINE_BOTH(set_type, get_type, name, initial)                                                   \
  BRAIDDB_C_DEFINE_SET(backup_engine_options, braiddb_backup_engine_options_t, set_type, get_type, name) \
  BRAIDDB_C_DEFINE_GET(backup_engine_options, braiddb_backup_engine_options_t, get_type, name)
#define DEFINE_SET(type, name, initial)
BRAIDDB_C_BACKUP_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

braiddb_restore_options_t* braiddb_restore_options_create() { return Make<braiddb_restore_options_t>(); }
void braiddb_restore_options_destroy(braiddb_restore_options_t* options) { delete options; }

#define DEFINE_BOTH(set_type, get_type, name, initial)
#define DEFINE_SET(type, name, initial) BRAIDDB_C_DEFINE_SET(restore_options, braiddb_restore_options_t, type, type, name)
BRAIDDB_C_RESTORE_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

// Sets the comparator for restores. Not owned.
void braiddb_backup_engine_options_set_comparator(braiddb_backup_engine_options_t* options,
                                                  const braiddb_comparator_t* comparator) {
  options->comparator = comparator;
}

// ---- The functions

braiddb_backup_engine_t* braiddb_backup_engine_open(const braiddb_options_t* options, const char* path, char** errptr) {
  braiddb_backup_engine_t* engine = nullptr;
  Run(errptr, [&] { return OpenEngine(path, options->comparator, false, &engine); });
  return engine;
}

braiddb_backup_engine_t* braiddb_backup_engine_open_opts(const braiddb_backup_engine_options_t* options, braiddb_env_t*,
                                                         char** errptr) {
  braiddb_backup_engine_t* engine = nullptr;
  Run(errptr, [&] {
    if (!options->unfit.ok()) return options->unfit;
    return OpenEngine(options->backup_dir, options->comparator, options->destroy_old_data != 0, &engine);
  });
  return engine;
}

void braiddb_backup_engine_close(braiddb_backup_engine_t* engine) { delete engine; }

void braiddb_backup_engine_create_new_backup(braiddb_backup_engine_t* engine, braiddb_t* db, char** errptr) {
  Run(errptr, [&] { return engine->rep->CreateBackup(db->db.get()); });
}

// A backup always contains all written data, flushed or not.
void braiddb_backup_engine_create_new_backup_flush(braiddb_backup_engine_t* engine, braiddb_t* db, unsigned char, char** errptr) {
  braiddb_backup_engine_create_new_backup(engine, db, errptr);
}

void braiddb_backup_engine_purge_old_backups(braiddb_backup_engine_t* engine, uint32_t backups_to_keep, char** errptr) {
  Run(errptr, [&] { return engine->rep->PurgeOldBackups(backups_to_keep); });
}

void braiddb_backup_engine_restore_db_from_backup(braiddb_backup_engine_t* engine, const char* db_path, const char*,
                                                  const braiddb_restore_options_t* options, uint32_t backup_id, char** errptr) {
  Run(errptr, [&] { return RestoreById(*engine, backup_id, db_path, options); });
}

void braiddb_backup_engine_restore_db_from_latest_backup(braiddb_backup_engine_t* engine, const char* db_path, const char*,
                                                         const braiddb_restore_options_t* options, char** errptr) {
  Run(errptr, [&] {
    const std::vector<braiddb::BackupInfo> all = engine->rep->GetBackupInfo();
    return all.empty() ? Status::NotFound("there is no backup") : Restore(*engine, all.back(), db_path, options);
  });
}

void braiddb_backup_engine_verify_backup(braiddb_backup_engine_t* engine, uint32_t backup_id, char** errptr) {
  Run(errptr, [&] { return engine->rep->VerifyBackup(backup_id); });
}

// Returns NULL if memory is short.
const braiddb_backup_engine_info_t* braiddb_backup_engine_get_backup_info(braiddb_backup_engine_t* engine) {
  std::unique_ptr<braiddb_backup_engine_info_t> info;
  const Status ignored = Guarded([&] {
    info = std::make_unique<braiddb_backup_engine_info_t>();
    return info->backups = engine->rep->GetBackupInfo(), Status::OK();
  });
  return ignored.ok() ? info.release() : nullptr;
}

void braiddb_backup_engine_info_destroy(const braiddb_backup_engine_info_t* info) { delete info; }
int braiddb_backup_engine_info_count(const braiddb_backup_engine_info_t* info) { return static_cast<int>(info->backups.size()); }
uint32_t braiddb_backup_engine_info_backup_id(const braiddb_backup_engine_info_t* info, int index) {
  return info->backups[static_cast<size_t>(index)].id;
}
int64_t braiddb_backup_engine_info_timestamp(const braiddb_backup_engine_info_t* info, int index) {
  return info->backups[static_cast<size_t>(index)].timestamp;
}
uint64_t braiddb_backup_engine_info_size(const braiddb_backup_engine_info_t* info, int index) {
  return info->backups[static_cast<size_t>(index)].size;
}
// Each backup is one file.
uint32_t braiddb_backup_engine_info_number_files(const braiddb_backup_engine_info_t*, int) { return 1; }
