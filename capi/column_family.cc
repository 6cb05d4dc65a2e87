// Column families: there is only "default", so a function for a family is the one for the database.
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "capi/batch.h"
#include "capi/database.h"
#include "capi/objects.h"
#include "capi/option_texts.h"
#include "capi/options.h"
#include "capi/result.h"

using braiddb::Status;
using namespace braiddb::capi;

// ---- Opening, handles

// What belongs to a family is in its options, the rest in those of the database.
Status braiddb::capi::OpenFamilies(const braiddb_options_t& options, const char* path, int count, const char* const* names,
                                   const braiddb_options_t* const* family_options, braiddb_column_family_handle_t** handles,
                                   braiddb_t** db, const Opener& open) {
  if (count != 1 || std::strcmp(names[0], "default") != 0)
    return Status::NotSupported(std::string("opening column families: ") + kNoColumnFamilies);
  braiddb_options_t both = *family_options[0];
  both.own = options.own;
  both.own.comparator = family_options[0]->own.comparator;
  both.own.prefix_extractor = family_options[0]->own.prefix_extractor;
  CopyDatabaseOptions(options, &both);
  auto handle = std::make_unique<braiddb_column_family_handle_t>();
  if (Status status = OpenDatabase(both, path, db, open); !status.ok()) return status;
  handles[0] = handle.release();
  return Status::OK();
}

braiddb_t* braiddb_open_column_families(const braiddb_options_t* options, const char* path, int count,
                                        const char* const* column_family_names,
                                        const braiddb_options_t* const* column_family_options,
                                        braiddb_column_family_handle_t** handles, char** errptr) {
  braiddb_t* db = nullptr;
  SaveError(errptr, Guarded([&] {
              return OpenFamilies(*options, path, count, column_family_names, column_family_options, handles, &db);
            }));
  return db;
}

// A time to live of 0 or less is for ever.
braiddb_t* braiddb_open_column_families_with_ttl(const braiddb_options_t* options, const char* path, int count,
                                                 const char* const* column_family_names,
                                                 const braiddb_options_t* const* column_family_options,
                                                 braiddb_column_family_handle_t** handles, const int* ttls, char** errptr) {
  for (int i = 0; i < count; ++i) {
    if (ttls[i] <= 0) continue;
    SaveNotImplemented(errptr, __func__, kNoTtl);
    return nullptr;
  }
  return braiddb_open_column_families(options, path, count, column_family_names, column_family_options, handles, errptr);
}

char** braiddb_list_column_families(const braiddb_options_t*, const char* path, size_t* count, char** errptr) {
  *count = 0;
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::path(path) / "LOCK", error)) {
    SaveError(errptr, Guarded([&] { return Status::IOError(std::string(path) + ": there is no database"); }));
    return nullptr;
  }
  char** const names = static_cast<char**>(std::malloc(sizeof(char*)));
  char* const name = CopyBytes("default");
  if (names == nullptr || name == nullptr) {
    std::free(names);
    std::free(name);
    SaveError(errptr, NoMemory());
    return nullptr;
  }
  names[0] = name;
  *count = 1;
  return names;
}

void braiddb_list_column_families_destroy(char** names, size_t count) {
  for (size_t i = 0; i < count; ++i) std::free(names[i]);
  std::free(names);
}

void braiddb_column_family_handle_destroy(braiddb_column_family_handle_t* column_family) { delete column_family; }
uint32_t braiddb_column_family_handle_get_id(braiddb_column_family_handle_t* column_family) { return column_family->id; }
char* braiddb_column_family_handle_get_name(braiddb_column_family_handle_t* column_family, size_t* length) {
  *length = column_family->name.size();
  return CopyBytes(column_family->name);
}

// ---- Several families at once

void braiddb_multi_get_cf(braiddb_t* db, const braiddb_readoptions_t* options, const braiddb_column_family_handle_t* const*,
                          size_t count, const char* const* keys, const size_t* key_lengths, char** values, size_t* value_lengths,
                          char** errors) {
  braiddb_multi_get(db, options, count, keys, key_lengths, values, value_lengths, errors);
}

void braiddb_create_iterators(braiddb_t* db, braiddb_readoptions_t* options, braiddb_column_family_handle_t**,
                              braiddb_iterator_t** iterators, size_t count, char**) {
  for (size_t i = 0; i < count; ++i) iterators[i] = braiddb_create_iterator(db, options);
}
// ---- One family

void braiddb_approximate_sizes_cf(braiddb_t* db, braiddb_column_family_handle_t*, int count, const char* const* start_keys,
                                  const size_t* start_key_lengths, const char* const* limit_keys, const size_t* limit_key_lengths,
                                  uint64_t* sizes, char** errptr) {
  braiddb_approximate_sizes(db, count, start_keys, start_key_lengths, limit_keys, limit_key_lengths, sizes, errptr);
}

void braiddb_compact_range_cf(braiddb_t* db, braiddb_column_family_handle_t*, const char* start_key, size_t start_key_length,
                              const char* limit_key, size_t limit_key_length) {
  braiddb_compact_range(db, start_key, start_key_length, limit_key, limit_key_length);
}

void braiddb_compact_range_cf_opt(braiddb_t* db, braiddb_column_family_handle_t*, braiddb_compactoptions_t* options,
                                  const char* start_key, size_t start_key_length, const char* limit_key,
                                  size_t limit_key_length) {
  braiddb_compact_range_opt(db, options, start_key, start_key_length, limit_key, limit_key_length);
}

braiddb_iterator_t* braiddb_create_iterator_cf(braiddb_t* db, const braiddb_readoptions_t* options,
                                               braiddb_column_family_handle_t*) {
  return braiddb_create_iterator(db, options);
}

void braiddb_delete_cf(braiddb_t* db, const braiddb_writeoptions_t* options, braiddb_column_family_handle_t*, const char* key,
                       size_t key_length, char** errptr) {
  braiddb_delete(db, options, key, key_length, errptr);
}

void braiddb_delete_file_in_range_cf(braiddb_t* db, braiddb_column_family_handle_t*, const char* start_key,
                                     size_t start_key_length, const char* limit_key, size_t limit_key_length, char** errptr) {
  braiddb_delete_file_in_range(db, start_key, start_key_length, limit_key, limit_key_length, errptr);
}

void braiddb_delete_range_cf(braiddb_t* db, const braiddb_writeoptions_t* options, braiddb_column_family_handle_t*,
                             const char* start_key, size_t start_key_length, const char* limit_key, size_t limit_key_length,
                             char** errptr) {
  braiddb_delete_range(db, options, start_key, start_key_length, limit_key, limit_key_length, errptr);
}

void braiddb_flush_cf(braiddb_t* db, const braiddb_flushoptions_t* options, braiddb_column_family_handle_t*, char** errptr) {
  braiddb_flush(db, options, errptr);
}

char* braiddb_get_cf(braiddb_t* db, const braiddb_readoptions_t* options, braiddb_column_family_handle_t*, const char* key,
                     size_t key_length, size_t* value_length, char** errptr) {
  return braiddb_get(db, options, key, key_length, value_length, errptr);
}

braiddb_column_family_metadata_t* braiddb_get_column_family_metadata_cf(braiddb_t* db, braiddb_column_family_handle_t*) {
  return braiddb_get_column_family_metadata(db);
}

braiddb_pinnableslice_t* braiddb_get_pinned_cf(braiddb_t* db, const braiddb_readoptions_t* options,
                                               braiddb_column_family_handle_t*, const char* key, size_t key_length,
                                               char** errptr) {
  return braiddb_get_pinned(db, options, key, key_length, errptr);
}

void braiddb_ingest_external_file_cf(braiddb_t* db, braiddb_column_family_handle_t*, const char* const* paths, size_t value,
                                     const braiddb_ingestexternalfileoptions_t* ingestexternalfileoptions, char** errptr) {
  braiddb_ingest_external_file(db, paths, value, ingestexternalfileoptions, errptr);
}

unsigned char braiddb_key_may_exist_cf(braiddb_t* db, const braiddb_readoptions_t* options, braiddb_column_family_handle_t*,
                                       const char* key, size_t key_length, char** value, size_t* value_length,
                                       const char* timestamp, size_t timestamp_length, unsigned char* value_found) {
  return braiddb_key_may_exist(db, options, key, key_length, value, value_length, timestamp, timestamp_length, value_found);
}

int braiddb_property_int_cf(braiddb_t* db, braiddb_column_family_handle_t*, const char* property, uint64_t* value) {
  return braiddb_property_int(db, property, value);
}

char* braiddb_property_value_cf(braiddb_t* db, braiddb_column_family_handle_t*, const char* property) {
  return braiddb_property_value(db, property);
}

void braiddb_put_cf(braiddb_t* db, const braiddb_writeoptions_t* options, braiddb_column_family_handle_t*, const char* key,
                    size_t key_length, const char* value, size_t value_length, char** errptr) {
  braiddb_put(db, options, key, key_length, value, value_length, errptr);
}

void braiddb_set_options_cf(braiddb_t* db, braiddb_column_family_handle_t*, int count, const char* const* names,
                            const char* const* values, char** errptr) {
  braiddb_set_options(db, count, names, values, errptr);
}

void braiddb_singledelete_cf(braiddb_t* db, const braiddb_writeoptions_t* options, braiddb_column_family_handle_t*,
                             const char* key, size_t key_length, char** errptr) {
  braiddb_singledelete(db, options, key, key_length, errptr);
}

void braiddb_suggest_compact_range_cf(braiddb_t* db, braiddb_column_family_handle_t*, const char* start_key,
                                      size_t start_key_length, const char* limit_key, size_t limit_key_length, char** errptr) {
  braiddb_suggest_compact_range(db, start_key, start_key_length, limit_key, limit_key_length, errptr);
}

void braiddb_writebatch_delete_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t*, const char* key,
                                  size_t key_length) {
  braiddb_writebatch_delete(batch, key, key_length);
}

void braiddb_writebatch_delete_range_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t*, const char* start_key,
                                        size_t start_key_length, const char* limit_key, size_t limit_key_length) {
  braiddb_writebatch_delete_range(batch, start_key, start_key_length, limit_key, limit_key_length);
}

void braiddb_writebatch_delete_rangev_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t*, int key_parts,
                                         const char* const* start_keys, const size_t* start_key_lengths,
                                         const char* const* limit_keys, const size_t* limit_key_lengths) {
  braiddb_writebatch_delete_rangev(batch, key_parts, start_keys, start_key_lengths, limit_keys, limit_key_lengths);
}

void braiddb_writebatch_deletev_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t*, int key_parts,
                                   const char* const* keys, const size_t* key_lengths) {
  braiddb_writebatch_deletev(batch, key_parts, keys, key_lengths);
}

void braiddb_writebatch_merge_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t*, const char* key, size_t key_length,
                                 const char* value, size_t value_length) {
  braiddb_writebatch_merge(batch, key, key_length, value, value_length);
}

void braiddb_writebatch_mergev_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t*, int key_parts,
                                  const char* const* keys, const size_t* key_lengths, int value_parts, const char* const* values,
                                  const size_t* value_lengths) {
  braiddb_writebatch_mergev(batch, key_parts, keys, key_lengths, value_parts, values, value_lengths);
}

void braiddb_writebatch_put_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t*, const char* key, size_t key_length,
                               const char* value, size_t value_length) {
  braiddb_writebatch_put(batch, key, key_length, value, value_length);
}

void braiddb_writebatch_putv_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t*, int key_parts,
                                const char* const* keys, const size_t* key_lengths, int value_parts, const char* const* values,
                                const size_t* value_lengths) {
  braiddb_writebatch_putv(batch, key_parts, keys, key_lengths, value_parts, values, value_lengths);
}

void braiddb_writebatch_singledelete_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t*, const char* key,
                                        size_t key_length) {
  braiddb_writebatch_singledelete(batch, key, key_length);
}

braiddb_iterator_t* braiddb_writebatch_wi_create_iterator_with_base_cf(braiddb_writebatch_wi_t* batch,
                                                                       braiddb_iterator_t* iterator,
                                                                       braiddb_column_family_handle_t*) {
  return braiddb_writebatch_wi_create_iterator_with_base(batch, iterator);
}

void braiddb_writebatch_wi_delete_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t*, const char* key,
                                     size_t key_length) {
  braiddb_writebatch_wi_delete(batch, key, key_length);
}

void braiddb_writebatch_wi_delete_range_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t*, const char* start_key,
                                           size_t start_key_length, const char* limit_key, size_t limit_key_length) {
  braiddb_writebatch_wi_delete_range(batch, start_key, start_key_length, limit_key, limit_key_length);
}

void braiddb_writebatch_wi_delete_rangev_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t*, int key_parts,
                                            const char* const* start_keys, const size_t* start_key_lengths,
                                            const char* const* limit_keys, const size_t* limit_key_lengths) {
  braiddb_writebatch_wi_delete_rangev(batch, key_parts, start_keys, start_key_lengths, limit_keys, limit_key_lengths);
}

void braiddb_writebatch_wi_deletev_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t*, int key_parts,
                                      const char* const* keys, const size_t* key_lengths) {
  braiddb_writebatch_wi_deletev(batch, key_parts, keys, key_lengths);
}

char* braiddb_writebatch_wi_get_from_batch_and_db_cf(braiddb_writebatch_wi_t* batch, braiddb_t* db,
                                                     const braiddb_readoptions_t* options, braiddb_column_family_handle_t*,
                                                     const char* key, size_t key_length, size_t* value_length, char** errptr) {
  return braiddb_writebatch_wi_get_from_batch_and_db(batch, db, options, key, key_length, value_length, errptr);
}

char* braiddb_writebatch_wi_get_from_batch_cf(braiddb_writebatch_wi_t* batch, const braiddb_options_t* options,
                                              braiddb_column_family_handle_t*, const char* key, size_t key_length,
                                              size_t* value_length, char** errptr) {
  return braiddb_writebatch_wi_get_from_batch(batch, options, key, key_length, value_length, errptr);
}

void braiddb_writebatch_wi_merge_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t*, const char* key,
                                    size_t key_length, const char* value, size_t value_length) {
  braiddb_writebatch_wi_merge(batch, key, key_length, value, value_length);
}

void braiddb_writebatch_wi_mergev_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t*, int key_parts,
                                     const char* const* keys, const size_t* key_lengths, int value_parts,
                                     const char* const* values, const size_t* value_lengths) {
  braiddb_writebatch_wi_mergev(batch, key_parts, keys, key_lengths, value_parts, values, value_lengths);
}

void braiddb_writebatch_wi_put_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t*, const char* key,
                                  size_t key_length, const char* value, size_t value_length) {
  braiddb_writebatch_wi_put(batch, key, key_length, value, value_length);
}

void braiddb_writebatch_wi_putv_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t*, int key_parts,
                                   const char* const* keys, const size_t* key_lengths, int value_parts, const char* const* values,
                                   const size_t* value_lengths) {
  braiddb_writebatch_wi_putv(batch, key_parts, keys, key_lengths, value_parts, values, value_lengths);
}

void braiddb_writebatch_wi_singledelete_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t*, const char* key,
                                           size_t key_length) {
  braiddb_writebatch_wi_singledelete(batch, key, key_length);
}

// ---- Not there

braiddb_column_family_handle_t* braiddb_create_column_family(braiddb_t*, const braiddb_options_t*, const char*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoColumnFamilies);
  return nullptr;
}

braiddb_column_family_handle_t* braiddb_create_column_family_with_ttl(braiddb_t*, const braiddb_options_t*, const char*, int,
                                                                      char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoColumnFamilies);
  return nullptr;
}

void braiddb_drop_column_family(braiddb_t*, braiddb_column_family_handle_t*, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoColumnFamilies);
}

braiddb_t* braiddb_open_as_secondary_column_families(const braiddb_options_t*, const char*, const char*, int, const char* const*,
                                                     const braiddb_options_t* const*, braiddb_column_family_handle_t**,
                                                     char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoColumnFamilies);
  return nullptr;
}

braiddb_t* braiddb_open_for_read_only_column_families(const braiddb_options_t*, const char*, int, const char* const*,
                                                      const braiddb_options_t* const*, braiddb_column_family_handle_t**,
                                                      unsigned char, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoColumnFamilies);
  return nullptr;
}
