// Backups: not implemented, but for their options.
#include "capi/option_tables.h"
#include "capi/options.h"
#include "capi/result.h"

using namespace braiddb::capi;

// ---- Options

struct braiddb_backup_engine_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_BACKUP_OPTIONS)
  std::string backup_dir;
};

braiddb_backup_engine_options_t* braiddb_backup_engine_options_create(const char* path) {
  auto* const options = new braiddb_backup_engine_options_t;
  options->backup_dir = path;
  return options;
}
void braiddb_backup_engine_options_set_backup_dir(braiddb_backup_engine_options_t* options, const char* path) {
  options->backup_dir = path;
}
void braiddb_backup_engine_options_set_env(braiddb_backup_engine_options_t*, braiddb_env_t*) {}

void braiddb_backup_engine_options_destroy(braiddb_backup_engine_options_t* options) { delete options; }

#define DEFINE_BOTH(set_type, get_type, name, initial)                                                   \
  BRAIDDB_C_DEFINE_SET(backup_engine_options, braiddb_backup_engine_options_t, set_type, get_type, name) \
  BRAIDDB_C_DEFINE_GET(backup_engine_options, braiddb_backup_engine_options_t, get_type, name)
#define DEFINE_SET(type, name, initial)
BRAIDDB_C_BACKUP_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

// ---- Options

struct braiddb_restore_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_RESTORE_OPTIONS)
};

braiddb_restore_options_t* braiddb_restore_options_create() { return new braiddb_restore_options_t; }
void braiddb_restore_options_destroy(braiddb_restore_options_t* options) { delete options; }

#define DEFINE_BOTH(set_type, get_type, name, initial)
#define DEFINE_SET(type, name, initial) BRAIDDB_C_DEFINE_SET(restore_options, braiddb_restore_options_t, type, type, name)
BRAIDDB_C_RESTORE_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

// ---- The functions

void braiddb_backup_engine_close(braiddb_backup_engine_t*) {}

void braiddb_backup_engine_create_new_backup(braiddb_backup_engine_t*, braiddb_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoBackups);
}

void braiddb_backup_engine_create_new_backup_flush(braiddb_backup_engine_t*, braiddb_t*, unsigned char, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoBackups);
}

const braiddb_backup_engine_info_t* braiddb_backup_engine_get_backup_info(braiddb_backup_engine_t*) { return nullptr; }

uint32_t braiddb_backup_engine_info_backup_id(const braiddb_backup_engine_info_t*, int) { return 0; }

int braiddb_backup_engine_info_count(const braiddb_backup_engine_info_t*) { return 0; }

void braiddb_backup_engine_info_destroy(const braiddb_backup_engine_info_t*) {}

uint32_t braiddb_backup_engine_info_number_files(const braiddb_backup_engine_info_t*, int) { return 0; }

uint64_t braiddb_backup_engine_info_size(const braiddb_backup_engine_info_t*, int) { return 0; }

int64_t braiddb_backup_engine_info_timestamp(const braiddb_backup_engine_info_t*, int) { return 0; }

braiddb_backup_engine_t* braiddb_backup_engine_open(const braiddb_options_t*, const char*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoBackups);
  return nullptr;
}

braiddb_backup_engine_t* braiddb_backup_engine_open_opts(const braiddb_backup_engine_options_t*, braiddb_env_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoBackups);
  return nullptr;
}

void braiddb_backup_engine_purge_old_backups(braiddb_backup_engine_t*, uint32_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoBackups);
}

void braiddb_backup_engine_restore_db_from_backup(braiddb_backup_engine_t*, const char*, const char*,
                                                  const braiddb_restore_options_t*, uint32_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoBackups);
}

void braiddb_backup_engine_restore_db_from_latest_backup(braiddb_backup_engine_t*, const char*, const char*,
                                                         const braiddb_restore_options_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoBackups);
}

void braiddb_backup_engine_verify_backup(braiddb_backup_engine_t*, uint32_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoBackups);
}
