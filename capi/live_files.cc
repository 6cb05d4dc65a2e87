// What RocksDB tells of its files. Keys are in regions and not in files that end somewhere, so there are none.
#include "capi/objects.h"
#include "capi/result.h"

using namespace braiddb::capi;

struct braiddb_livefiles_t {};

struct braiddb_level_metadata_t {
  int level = 0;
  uint64_t size = 0;
};

struct braiddb_column_family_metadata_t {
  uint64_t size = 0;  // of log entries that live; levels share them
};

const braiddb_livefiles_t* braiddb_livefiles(braiddb_t*) { return Make<braiddb_livefiles_t>(); }
void braiddb_livefiles_destroy(const braiddb_livefiles_t* files) { delete files; }
int braiddb_livefiles_count(const braiddb_livefiles_t*) { return 0; }

// ---- Not there

void braiddb_column_family_metadata_destroy(braiddb_column_family_metadata_t*) {}

size_t braiddb_column_family_metadata_get_file_count(braiddb_column_family_metadata_t*) { return 0; }

size_t braiddb_column_family_metadata_get_level_count(braiddb_column_family_metadata_t*) { return 0; }

braiddb_level_metadata_t* braiddb_column_family_metadata_get_level_metadata(braiddb_column_family_metadata_t*, size_t) {
  return nullptr;
}

char* braiddb_column_family_metadata_get_name(braiddb_column_family_metadata_t*) { return nullptr; }

uint64_t braiddb_column_family_metadata_get_size(braiddb_column_family_metadata_t*) { return 0; }

braiddb_column_family_metadata_t* braiddb_get_column_family_metadata(braiddb_t*) { return nullptr; }

void braiddb_level_metadata_destroy(braiddb_level_metadata_t*) {}

size_t braiddb_level_metadata_get_file_count(braiddb_level_metadata_t*) { return 0; }

int braiddb_level_metadata_get_level(braiddb_level_metadata_t*) { return 0; }

uint64_t braiddb_level_metadata_get_size(braiddb_level_metadata_t*) { return 0; }

braiddb_sst_file_metadata_t* braiddb_level_metadata_get_sst_file_metadata(braiddb_level_metadata_t*, size_t) { return nullptr; }

const char* braiddb_livefiles_column_family_name(const braiddb_livefiles_t*, int) { return nullptr; }

uint64_t braiddb_livefiles_deletions(const braiddb_livefiles_t*, int) { return 0; }

uint64_t braiddb_livefiles_entries(const braiddb_livefiles_t*, int) { return 0; }

const char* braiddb_livefiles_largestkey(const braiddb_livefiles_t*, int, size_t* length) {
  *length = 0;
  return nullptr;
}

int braiddb_livefiles_level(const braiddb_livefiles_t*, int) { return 0; }

const char* braiddb_livefiles_name(const braiddb_livefiles_t*, int) { return nullptr; }

size_t braiddb_livefiles_size(const braiddb_livefiles_t*, int) { return 0; }

const char* braiddb_livefiles_smallestkey(const braiddb_livefiles_t*, int, size_t* length) {
  *length = 0;
  return nullptr;
}

void braiddb_sst_file_metadata_destroy(braiddb_sst_file_metadata_t*) {}

char* braiddb_sst_file_metadata_get_largestkey(braiddb_sst_file_metadata_t*, size_t* length) {
  *length = 0;
  return nullptr;
}

char* braiddb_sst_file_metadata_get_relative_filename(braiddb_sst_file_metadata_t*) { return nullptr; }

uint64_t braiddb_sst_file_metadata_get_size(braiddb_sst_file_metadata_t*) { return 0; }

char* braiddb_sst_file_metadata_get_smallestkey(braiddb_sst_file_metadata_t*, size_t* length) {
  *length = 0;
  return nullptr;
}
