// What RocksDB tells of its files. Keys are in regions and not in files that end somewhere, so there are none; the metadata of a
// column family say where its keys are as if its last level were one.
#include <algorithm>
#include <memory>
#include <string>

#include "capi/batch.h"
#include "capi/objects.h"
#include "capi/result.h"

using braiddb::Status;
using namespace braiddb::capi;

struct braiddb_livefiles_t {};

// A family has an empty level 0, and below it a last level that stands for one file, unless it has no key at all.
constexpr size_t kLevels = 2;
constexpr int kLastLevel = 1;

struct braiddb_column_family_metadata_t {
  std::string name;
  uint64_t size = 0;  // of log entries that live, which families share; 0: there is no key
  std::string smallest_key;
  std::string largest_key;
};

struct braiddb_level_metadata_t {
  int level;
  uint64_t size;
  const braiddb_column_family_metadata_t* family;  // outlives it
};

struct braiddb_sst_file_metadata_t {
  const braiddb_column_family_metadata_t* family;  // outlives it
};

const braiddb_livefiles_t* braiddb_livefiles(braiddb_t*) { return Make<braiddb_livefiles_t>(); }
void braiddb_livefiles_destroy(const braiddb_livefiles_t* files) { delete files; }
int braiddb_livefiles_count(const braiddb_livefiles_t*) { return 0; }

// ---- Column families, their levels, and what stands for files there

namespace {

// One that cannot be told is null.
braiddb_column_family_metadata_t* Describe(braiddb::DB* db, braiddb::ColumnFamilyHandle* family) {
  auto result = std::make_unique<braiddb_column_family_metadata_t>();
  const Status status = Guarded([&] {
    if (family == nullptr) return NoFamily();
    result->name = family->GetName();
    const auto iterator = db->NewIterator({}, family);
    iterator->SeekToFirst();
    if (!iterator->Valid()) return iterator->status();
    result->smallest_key = iterator->key();
    iterator->SeekToLast();
    if (iterator->Valid()) result->largest_key = iterator->key();
    uint64_t bytes = 0;
    result->size = db->GetIntProperty("braiddb.pm-bytes-live", &bytes) ? std::max<uint64_t>(1, bytes) : 1;
    return iterator->status();
  });
  return status.ok() ? result.release() : nullptr;
}

char* GiveKey(const std::string& key, size_t* length) {
  *length = key.size();
  return CopyBytes(key);
}

}  // namespace

braiddb_column_family_metadata_t* braiddb_get_column_family_metadata(braiddb_t* db) {
  return Describe(db->db.get(), db->db->DefaultColumnFamily());
}

braiddb_column_family_metadata_t* braiddb_get_column_family_metadata_cf(braiddb_t* db,
                                                                        braiddb_column_family_handle_t* column_family) {
  return Describe(db->db.get(), FamilyOf(column_family));
}

void braiddb_column_family_metadata_destroy(braiddb_column_family_metadata_t* metadata) { delete metadata; }

size_t braiddb_column_family_metadata_get_file_count(braiddb_column_family_metadata_t* metadata) {
  return metadata != nullptr && metadata->size > 0 ? 1 : 0;
}

size_t braiddb_column_family_metadata_get_level_count(braiddb_column_family_metadata_t* metadata) {
  return metadata == nullptr ? 0 : kLevels;
}

braiddb_level_metadata_t* braiddb_column_family_metadata_get_level_metadata(braiddb_column_family_metadata_t* metadata,
                                                                            size_t index) {
  if (metadata == nullptr || index >= kLevels) return nullptr;
  const int level = static_cast<int>(index);
  return new braiddb_level_metadata_t{level, level == kLastLevel ? metadata->size : 0, metadata};
}

char* braiddb_column_family_metadata_get_name(braiddb_column_family_metadata_t* metadata) {
  return metadata == nullptr ? nullptr : CopyBytes(metadata->name);
}

uint64_t braiddb_column_family_metadata_get_size(braiddb_column_family_metadata_t* metadata) {
  return metadata == nullptr ? 0 : metadata->size;
}

void braiddb_level_metadata_destroy(braiddb_level_metadata_t* metadata) { delete metadata; }

size_t braiddb_level_metadata_get_file_count(braiddb_level_metadata_t* metadata) {
  return metadata != nullptr && metadata->size > 0 ? 1 : 0;
}

int braiddb_level_metadata_get_level(braiddb_level_metadata_t* metadata) { return metadata == nullptr ? 0 : metadata->level; }

uint64_t braiddb_level_metadata_get_size(braiddb_level_metadata_t* metadata) { return metadata == nullptr ? 0 : metadata->size; }

braiddb_sst_file_metadata_t* braiddb_level_metadata_get_sst_file_metadata(braiddb_level_metadata_t* metadata, size_t index) {
  if (index >= braiddb_level_metadata_get_file_count(metadata)) return nullptr;
  return new braiddb_sst_file_metadata_t{metadata->family};
}

void braiddb_sst_file_metadata_destroy(braiddb_sst_file_metadata_t* metadata) { delete metadata; }

// Of the directory of the first region; where regions are elsewhere, there is none of that name.
char* braiddb_sst_file_metadata_get_relative_filename(braiddb_sst_file_metadata_t*) { return CopyBytes("region-0"); }

uint64_t braiddb_sst_file_metadata_get_size(braiddb_sst_file_metadata_t* metadata) { return metadata->family->size; }

char* braiddb_sst_file_metadata_get_smallestkey(braiddb_sst_file_metadata_t* metadata, size_t* length) {
  return GiveKey(metadata->family->smallest_key, length);
}

char* braiddb_sst_file_metadata_get_largestkey(braiddb_sst_file_metadata_t* metadata, size_t* length) {
  return GiveKey(metadata->family->largest_key, length);
}

// ---- Not there

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
