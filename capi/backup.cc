// Backups: each is a whole database, a copy (capi/copy.h), in a directory of the backup directory that is named by its number.
// (RocksDB's backups share files; here each has all of the data.)
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstring>
#include <filesystem>
#include <vector>

#include "braiddb/check.h"
#include "capi/copy.h"
#include "capi/options.h"
#include "capi/result.h"

using braiddb::Status;
using namespace braiddb::capi;

struct braiddb_backup_engine_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_BACKUP_OPTIONS)
  std::string backup_dir;
};

struct braiddb_restore_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_RESTORE_OPTIONS)
};

struct braiddb_backup_engine_t {
  std::string directory;
  const braiddb::Comparator* comparator = nullptr;  // to verify backups; null: one of the built-in ones

  std::string PathOf(uint32_t id) const { return directory + "/" + std::to_string(id); }
  std::vector<uint32_t> Ids() const;
};

struct braiddb_backup_engine_info_t {
  struct Backup {
    uint32_t id;
    int64_t timestamp;
    uint64_t size;
    uint32_t files;
  };
  std::vector<Backup> backups;  // the oldest first
};

// In order. What is being made, or was not finished, is called <id>.tmp.
std::vector<uint32_t> braiddb_backup_engine_t::Ids() const {
  std::vector<uint32_t> ids;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    uint32_t id = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error == std::errc() && end == name.data() + name.size() && id > 0) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

namespace {

// Errors of the file system arrive as exceptions here.
template <class Work>
void Run(char** errptr, const Work& work) {
  SaveError(errptr, Guarded([&] {
              try {
                return work();
              } catch (const std::filesystem::filesystem_error& error) {
                return Status::IOError(error.what());
              }
            }));
}

Status Purge(const braiddb_backup_engine_t& engine, size_t keep) {
  const std::vector<uint32_t> ids = engine.Ids();
  Status status;
  for (size_t i = 0; status.ok() && i + keep < ids.size(); ++i) {
    // One that is being removed is no backup any more, whatever comes between.
    const std::string removed = engine.PathOf(ids[i]) + ".tmp";
    status = braiddb::DB::Destroy({}, removed);
    if (!status.ok()) break;
    std::filesystem::rename(engine.PathOf(ids[i]), removed);
    status = braiddb::DB::Destroy({}, removed);
  }
  return status;
}

Status OpenEngine(const std::string& directory, const braiddb::Comparator* comparator, bool destroy_old_data,
                  braiddb_backup_engine_t** engine) {
  std::filesystem::create_directories(directory);
  auto opened = std::make_unique<braiddb_backup_engine_t>();
  opened->directory = directory;
  opened->comparator = comparator;
  if (destroy_old_data) {
    if (Status status = Purge(*opened, 0); !status.ok()) return status;
  }
  *engine = opened.release();
  return Status::OK();
}

Status Verify(const braiddb_backup_engine_t& engine, uint32_t id) {
  braiddb::CheckOptions options;
  options.comparator = engine.comparator;
  braiddb::CheckReport report;
  Status status = braiddb::CheckDatabase(options, engine.PathOf(id), &report);
  if (!status.ok() || report.sound()) return status;
  return Status::Corruption(report.findings.front().what + ": " + report.findings.front().where);
}

// A damaged backup takes nothing away. One of a database with a comparator of the user's own, which an engine that was opened
// without options does not know, cannot be looked at.
Status Restore(const braiddb_backup_engine_t& engine, uint32_t id, const std::string& path) {
  const std::vector<uint32_t> ids = engine.Ids();
  if (!std::binary_search(ids.begin(), ids.end(), id)) return Status::NotFound("there is no backup " + std::to_string(id));
  const Status sound = Verify(engine, id);
  if (!sound.ok() && !sound.IsInvalidArgument()) return sound;
  return CopyClosedDatabase(engine.PathOf(id), path);
}

braiddb_backup_engine_info_t::Backup Describe(const braiddb_backup_engine_t& engine, uint32_t id) {
  braiddb_backup_engine_info_t::Backup backup{id, 0, 0, 0};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(engine.PathOf(id))) {
    if (!entry.is_regular_file()) continue;
    ++backup.files;
    backup.size += entry.file_size();
  }
  struct stat made;  // the lock's file is written once
  if (stat((engine.PathOf(id) + "/LOCK").c_str(), &made) == 0) backup.timestamp = made.st_mtime;
  return backup;
}

}  // namespace

// ---- Options: the directory, and destroy_old_data; others are stored

braiddb_backup_engine_options_t* braiddb_backup_engine_options_create(const char* path) {
  auto* const options = new braiddb_backup_engine_options_t;
  options->backup_dir = path;
  return options;
}
void braiddb_backup_engine_options_destroy(braiddb_backup_engine_options_t* options) { delete options; }
void braiddb_backup_engine_options_set_backup_dir(braiddb_backup_engine_options_t* options, const char* path) {
  options->backup_dir = path;
}
void braiddb_backup_engine_options_set_env(braiddb_backup_engine_options_t*, braiddb_env_t*) {}

#define DEFINE_BOTH(set_type, get_type, name, initial)                                                   \
  BRAIDDB_C_DEFINE_SET(backup_engine_options, braiddb_backup_engine_options_t, set_type, get_type, name) \
  BRAIDDB_C_DEFINE_GET(backup_engine_options, braiddb_backup_engine_options_t, get_type, name)
#define DEFINE_SET(type, name, initial)
BRAIDDB_C_BACKUP_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

braiddb_restore_options_t* braiddb_restore_options_create() { return new braiddb_restore_options_t; }
void braiddb_restore_options_destroy(braiddb_restore_options_t* options) { delete options; }

#define DEFINE_BOTH(set_type, get_type, name, initial)
#define DEFINE_SET(type, name, initial) BRAIDDB_C_DEFINE_SET(restore_options, braiddb_restore_options_t, type, type, name)
BRAIDDB_C_RESTORE_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

// ---- The functions

braiddb_backup_engine_t* braiddb_backup_engine_open(const braiddb_options_t* options, const char* path, char** errptr) {
  braiddb_backup_engine_t* engine = nullptr;
  Run(errptr, [&] { return OpenEngine(path, options->comparator, false, &engine); });
  return engine;
}

braiddb_backup_engine_t* braiddb_backup_engine_open_opts(const braiddb_backup_engine_options_t* options, braiddb_env_t*,
                                                         char** errptr) {
  braiddb_backup_engine_t* engine = nullptr;
  Run(errptr, [&] { return OpenEngine(options->backup_dir, nullptr, options->destroy_old_data != 0, &engine); });
  return engine;
}

void braiddb_backup_engine_close(braiddb_backup_engine_t* engine) { delete engine; }

void braiddb_backup_engine_create_new_backup(braiddb_backup_engine_t* engine, braiddb_t* db, char** errptr) {
  Run(errptr, [&] {
    const std::vector<uint32_t> ids = engine->Ids();
    return CopyDatabase(db->db.get(), engine->PathOf(ids.empty() ? 1 : ids.back() + 1), true);
  });
}

// A copy has what was written, flushed or not.
void braiddb_backup_engine_create_new_backup_flush(braiddb_backup_engine_t* engine, braiddb_t* db, unsigned char, char** errptr) {
  braiddb_backup_engine_create_new_backup(engine, db, errptr);
}

void braiddb_backup_engine_purge_old_backups(braiddb_backup_engine_t* engine, uint32_t backups_to_keep, char** errptr) {
  Run(errptr, [&] { return Purge(*engine, backups_to_keep); });
}

void braiddb_backup_engine_restore_db_from_backup(braiddb_backup_engine_t* engine, const char* db_path, const char*,
                                                  const braiddb_restore_options_t*, uint32_t backup_id, char** errptr) {
  Run(errptr, [&] { return Restore(*engine, backup_id, db_path); });
}

void braiddb_backup_engine_restore_db_from_latest_backup(braiddb_backup_engine_t* engine, const char* db_path, const char*,
                                                         const braiddb_restore_options_t*, char** errptr) {
  Run(errptr, [&] {
    const std::vector<uint32_t> ids = engine->Ids();
    return ids.empty() ? Status::NotFound("there is no backup") : Restore(*engine, ids.back(), db_path);
  });
}

void braiddb_backup_engine_verify_backup(braiddb_backup_engine_t* engine, uint32_t backup_id, char** errptr) {
  Run(errptr, [&] { return Verify(*engine, backup_id); });
}

const braiddb_backup_engine_info_t* braiddb_backup_engine_get_backup_info(braiddb_backup_engine_t* engine) {
  auto info = std::make_unique<braiddb_backup_engine_info_t>();
  char* error = nullptr;
  Run(&error, [&] {
    for (const uint32_t id : engine->Ids()) info->backups.push_back(Describe(*engine, id));
    return Status::OK();
  });
  braiddb_free(error);  // what could be read is told
  return info.release();
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
uint32_t braiddb_backup_engine_info_number_files(const braiddb_backup_engine_info_t* info, int index) {
  return info->backups[static_cast<size_t>(index)].files;
}
