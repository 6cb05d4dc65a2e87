// User-defined timestamps.
#include "capi/batch.h"
#include "capi/database.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"

using braiddb::ColumnFamilyHandle;
using braiddb::Slice;
using braiddb::Status;
using namespace braiddb::capi;

namespace {

// A version that was read, for the caller. NULL and 0 if memory is short or there is none.
Status Give(Status status, const std::string& value, const std::string& timestamp, char** value_copy, size_t* value_length,
            char** timestamp_copy, size_t* timestamp_length) {
  *value_copy = nullptr;
  *value_length = 0;
  *timestamp_copy = nullptr;
  *timestamp_length = 0;
  if (!status.ok()) return status;
  char* const value_bytes = CopyBytes(value);
  char* const timestamp_bytes = CopyBytes(timestamp);
  if (value_bytes == nullptr || timestamp_bytes == nullptr) {
    braiddb_free(value_bytes);
    braiddb_free(timestamp_bytes);
    return NoMemory();
  }
  *value_copy = value_bytes;
  *value_length = value.size();
  *timestamp_copy = timestamp_bytes;
  *timestamp_length = timestamp.size();
  return status;
}

char* Get(braiddb_t* db, const braiddb_readoptions_t* options, ColumnFamilyHandle* family, Slice key, size_t* value_length,
          char** timestamp, size_t* timestamp_length, char** errptr) {
  std::string found;
  std::string found_timestamp;
  char* value = nullptr;
  Status status = Guarded([&] { return db->db->GetAt(options->rep, family, key, &found, &found_timestamp); });
  status = Give(std::move(status), found, found_timestamp, &value, value_length, timestamp, timestamp_length);
  if (!status.IsNotFound()) SaveError(errptr, status);
  return value;
}

// `family`: returns the family of a key.
template <class FamilyAt>
void MultiGet(braiddb_t* db, const braiddb_readoptions_t* options, const FamilyAt& family, size_t count, const char* const* keys,
              const size_t* key_lengths, char** values, size_t* value_lengths, char** timestamps, size_t* timestamp_lengths,
              char** errors) {
  std::vector<std::string> found;
  std::vector<std::string> found_timestamps;
  std::vector<Status> statuses;
  const Status all = Guarded([&] {
    std::vector<ColumnFamilyHandle*> families;
    std::vector<Slice> wanted;
    for (size_t i = 0; i < count; ++i) {
      families.push_back(family(i));
      wanted.emplace_back(keys[i], key_lengths[i]);
    }
    statuses = db->db->MultiGetAt(options->rep, families, wanted, &found, &found_timestamps);
    return Status::OK();
  });
  const std::string none;
  for (size_t i = 0; i < count; ++i) {
    errors[i] = nullptr;
    const Status status = Give(all.ok() ? statuses[i] : all, all.ok() ? found[i] : none, all.ok() ? found_timestamps[i] : none,
                               &values[i], &value_lengths[i], &timestamps[i], &timestamp_lengths[i]);
    if (!status.IsNotFound()) SaveError(&errors[i], status);
  }
}

// As RocksDB, removes the versions behind the timestamp when the database is opened.
Opener TrimmingOpener(std::string timestamp) {
  return [timestamp = std::move(timestamp)](const braiddb::Options& options, const std::string& path, const Families& families,
                                            FamilyHandles* handles, std::unique_ptr<braiddb::DB>* db) {
    return braiddb::DB::OpenAndTrimHistory(options, path, families, handles, db, timestamp);
  };
}

}  // namespace

// ---- Writes

void braiddb_put_with_ts(braiddb_t* db, const braiddb_writeoptions_t* options, const char* key, size_t key_length,
                         const char* timestamp, size_t timestamp_length, const char* value, size_t value_length, char** errptr) {
  SaveError(errptr, WriteWith(options, [&](const auto& own) {
              return db->db->PutAt(own, db->db->DefaultColumnFamily(), {key, key_length}, {timestamp, timestamp_length},
                                   {value, value_length});
            }));
}

void braiddb_put_cf_with_ts(braiddb_t* db, const braiddb_writeoptions_t* options, braiddb_column_family_handle_t* column_family,
                            const char* key, size_t key_length, const char* timestamp, size_t timestamp_length, const char* value,
                            size_t value_length, char** errptr) {
  SaveError(errptr, WriteWith(options, [&](const auto& own) {
              return db->db->PutAt(own, FamilyOf(column_family), {key, key_length}, {timestamp, timestamp_length},
                                   {value, value_length});
            }));
}

void braiddb_delete_with_ts(braiddb_t* db, const braiddb_writeoptions_t* options, const char* key, size_t key_length,
                            const char* timestamp, size_t timestamp_length, char** errptr) {
  SaveError(errptr, WriteWith(options, [&](const auto& own) {
              return db->db->DeleteAt(own, db->db->DefaultColumnFamily(), {key, key_length}, {timestamp, timestamp_length});
            }));
}

void braiddb_delete_cf_with_ts(braiddb_t* db, const braiddb_writeoptions_t* options,
                               braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                               const char* timestamp, size_t timestamp_length, char** errptr) {
  SaveError(errptr, WriteWith(options, [&](const auto& own) {
              return db->db->DeleteAt(own, FamilyOf(column_family), {key, key_length}, {timestamp, timestamp_length});
            }));
}

void braiddb_singledelete_with_ts(braiddb_t* db, const braiddb_writeoptions_t* options, const char* key, size_t key_length,
                                  const char* timestamp, size_t timestamp_length, char** errptr) {
  SaveError(errptr, WriteWith(options, [&](const auto& own) {
              return db->db->SingleDeleteAt(own, db->db->DefaultColumnFamily(), {key, key_length}, {timestamp, timestamp_length});
            }));
}

void braiddb_singledelete_cf_with_ts(braiddb_t* db, const braiddb_writeoptions_t* options,
                                     braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                     const char* timestamp, size_t timestamp_length, char** errptr) {
  SaveError(errptr, WriteWith(options, [&](const auto& own) {
              return db->db->SingleDeleteAt(own, FamilyOf(column_family), {key, key_length}, {timestamp, timestamp_length});
            }));
}

void braiddb_writebatch_put_cf_with_ts(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                       const char* key, size_t key_length, const char* timestamp, size_t timestamp_length,
                                       const char* value, size_t value_length) {
  batch->PutAt(column_family, {key, key_length}, {timestamp, timestamp_length}, {value, value_length});
}

void braiddb_writebatch_delete_cf_with_ts(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                          const char* key, size_t key_length, const char* timestamp, size_t timestamp_length) {
  batch->DeleteAt(column_family, {key, key_length}, {timestamp, timestamp_length});
}

void braiddb_writebatch_singledelete_cf_with_ts(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                                const char* key, size_t key_length, const char* timestamp,
                                                size_t timestamp_length) {
  batch->SingleDeleteAt(column_family, {key, key_length}, {timestamp, timestamp_length});
}

// ---- Reads

char* braiddb_get_with_ts(braiddb_t* db, const braiddb_readoptions_t* options, const char* key, size_t key_length,
                          size_t* value_length, char** timestamp, size_t* timestamp_length, char** errptr) {
  return Get(db, options, db->db->DefaultColumnFamily(), {key, key_length}, value_length, timestamp, timestamp_length, errptr);
}

char* braiddb_get_cf_with_ts(braiddb_t* db, const braiddb_readoptions_t* options, braiddb_column_family_handle_t* column_family,
                             const char* key, size_t key_length, size_t* value_length, char** timestamp, size_t* timestamp_length,
                             char** errptr) {
  return Get(db, options, FamilyOf(column_family), {key, key_length}, value_length, timestamp, timestamp_length, errptr);
}

void braiddb_multi_get_with_ts(braiddb_t* db, const braiddb_readoptions_t* options, size_t count, const char* const* keys,
                               const size_t* key_lengths, char** values, size_t* value_lengths, char** timestamps,
                               size_t* timestamp_lengths, char** errors) {
  const auto family = [db](size_t) { return db->db->DefaultColumnFamily(); };
  MultiGet(db, options, family, count, keys, key_lengths, values, value_lengths, timestamps, timestamp_lengths, errors);
}

void braiddb_multi_get_cf_with_ts(braiddb_t* db, const braiddb_readoptions_t* options,
                                  const braiddb_column_family_handle_t* const* column_families, size_t count,
                                  const char* const* keys, const size_t* key_lengths, char** values, size_t* value_lengths,
                                  char** timestamps, size_t* timestamp_lengths, char** errors) {
  const auto family = [column_families](size_t i) { return FamilyOf(column_families[i]); };
  MultiGet(db, options, family, count, keys, key_lengths, values, value_lengths, timestamps, timestamp_lengths, errors);
}

// ---- History

void braiddb_increase_full_history_ts_low(braiddb_t* db, braiddb_column_family_handle_t* column_family, const char* timestamp,
                                          size_t timestamp_length, char** errptr) {
  SaveError(errptr, Guarded([&] {
              return db->db->IncreaseFullHistoryTsLow(FamilyOf(column_family), {timestamp, timestamp_length});
            }));
}

char* braiddb_get_full_history_ts_low(braiddb_t* db, braiddb_column_family_handle_t* column_family, size_t* value_length,
                                      char** errptr) {
  *value_length = 0;
  std::string limit;
  if (SaveError(errptr, Guarded([&] { return db->db->GetFullHistoryTsLow(FamilyOf(column_family), &limit); }))) return nullptr;
  char* const copy = CopyBytes(limit);
  if (copy == nullptr) SaveError(errptr, NoMemory());
  *value_length = copy == nullptr ? 0 : limit.size();
  return copy;
}

braiddb_t* braiddb_open_and_trim_history(const braiddb_options_t* options, const char* path, int count,
                                         const char* const* column_family_names,
                                         const braiddb_options_t* const* column_family_options,
                                         braiddb_column_family_handle_t** handles, char* trim_timestamp,
                                         size_t trim_timestamp_length, char** errptr) {
  braiddb_t* db = nullptr;
  SaveError(errptr, Guarded([&] {
              return OpenFamilies(*options, path, count, column_family_names, column_family_options, handles, &db,
                                  TrimmingOpener({trim_timestamp, trim_timestamp_length}));
            }));
  return db;
}
