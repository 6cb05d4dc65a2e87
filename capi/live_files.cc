// RocksDB's functions about live files. Keys lie in regions and not in files. The functions describe the last level of each
// column family as one file.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "capi/batch.h"
#include "capi/objects.h"
#include "capi/result.h"
#include "capi/stats_text.h"

using braiddb::Status;
using namespace braiddb::capi;

// A family has an empty level 0 and a last level with one file. If the family has no keys, it has no file.
constexpr int kLastLevel = 1;

struct braiddb_column_family_metadata_t {
  std::string name;
  uint64_t size = 0;  // live log entries, in bytes; families share the log; 0: no keys
  std::string smallest_key;
  std::string largest_key;
};

struct braiddb_level_metadata_t {
  int level;
  uint64_t size;
  const braiddb_column_family_metadata_t* family;  // not owned
};

struct braiddb_sst_file_metadata_t {
  const braiddb_column_family_metadata_t* family;  // not owned
};

// ---- Column families, their levels, and the files that represent them

namespace {

// Returns null if the family cannot be described.
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
  return metadata == nullptr ? 0 : static_cast<size_t>(kLevels);
}

braiddb_level_metadata_t* braiddb_column_family_metadata_get_level_metadata(braiddb_column_family_metadata_t* metadata,
                                                                            size_t index) {
  if (metadata == nullptr || index >= static_cast<size_t>(kLevels)) return nullptr;
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

// The directory of the first region. If regions lie elsewhere, no file has this name.
char* braiddb_sst_file_metadata_get_relative_filename(braiddb_sst_file_metadata_t*) { return CopyBytes("region-0"); }

uint64_t braiddb_sst_file_metadata_get_size(braiddb_sst_file_metadata_t* metadata) { return metadata->family->size; }

char* braiddb_sst_file_metadata_get_smallestkey(braiddb_sst_file_metadata_t* metadata, size_t* length) {
  return GiveKey(metadata->family->smallest_key, length);
}

char* braiddb_sst_file_metadata_get_largestkey(braiddb_sst_file_metadata_t* metadata, size_t* length) {
  return GiveKey(metadata->family->largest_key, length);
}

// ---- The same for all families: those with keys below their memtables

struct braiddb_livefiles_t {
  struct File {
    std::string family;
    std::string smallest_key;
    std::string largest_key;
    LevelNumbers numbers;  // of L0 and of the last level
  };
  std::vector<File> files;
};

namespace {

Status ListFiles(braiddb::DB* db, braiddb_livefiles_t* result) {
  std::vector<std::unique_ptr<braiddb::ColumnFamilyHandle>> families;
  if (Status status = db->GetColumnFamilies(&families); !status.ok()) return status;
  for (const auto& family : families) {
    const LevelNumbers numbers = SumOf(NumbersOfLevels(db, family.get()));
    if (numbers.files == 0) continue;
    const std::unique_ptr<const braiddb_column_family_metadata_t> described(Describe(db, family.get()));
    if (described == nullptr || described->size == 0) continue;
    result->files.push_back({described->name, described->smallest_key, described->largest_key, numbers});
  }
  return Status::OK();
}

const braiddb_livefiles_t::File& FileAt(const braiddb_livefiles_t* files, int index) {
  return files->files.at(static_cast<size_t>(index));
}

const char* Give(const std::string& key, size_t* length) {
  *length = key.size();
  return key.data();
}

}  // namespace

// Returns NULL if memory is short.
const braiddb_livefiles_t* braiddb_livefiles(braiddb_t* db) {
  std::unique_ptr<braiddb_livefiles_t> result(Make<braiddb_livefiles_t>());
  if (result == nullptr) return nullptr;
  const Status status = Guarded([&] { return ListFiles(db->db.get(), result.get()); });
  return status.ok() ? result.release() : nullptr;
}

void braiddb_livefiles_destroy(const braiddb_livefiles_t* files) { delete files; }
int braiddb_livefiles_count(const braiddb_livefiles_t* files) { return static_cast<int>(files->files.size()); }
const char* braiddb_livefiles_column_family_name(const braiddb_livefiles_t* files, int index) {
  return FileAt(files, index).family.c_str();
}
const char* braiddb_livefiles_name(const braiddb_livefiles_t*, int) { return "/region-0"; }
int braiddb_livefiles_level(const braiddb_livefiles_t*, int) { return kLastLevel; }
size_t braiddb_livefiles_size(const braiddb_livefiles_t* files, int index) { return FileAt(files, index).numbers.bytes; }
uint64_t braiddb_livefiles_entries(const braiddb_livefiles_t* files, int index) { return FileAt(files, index).numbers.entries; }

// Deletions are not counted.
uint64_t braiddb_livefiles_deletions(const braiddb_livefiles_t*, int) { return 0; }

const char* braiddb_livefiles_smallestkey(const braiddb_livefiles_t* files, int index, size_t* length) {
  return Give(FileAt(files, index).smallest_key, length);
}

const char* braiddb_livefiles_largestkey(const braiddb_livefiles_t* files, int index, size_t* length) {
  return Give(FileAt(files, index).largest_key, length);
}
