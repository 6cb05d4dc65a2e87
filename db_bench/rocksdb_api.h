// RocksDB's C interface as a table of functions of the loaded library. The functions of column families are loaded only if
// needed. REQUIRES: rocksdb/c.h existed when db_bench was configured.
#pragma once

#include <rocksdb/c.h>

#include <string>
#include <vector>

#include "db_bench/leveldb_api.h"
#include "db_bench/shared_library.h"

namespace braiddb::bench {

struct RocksDbApi {
  using Db = rocksdb_t;
  using Iterator = rocksdb_iterator_t;
  using WriteOptions = rocksdb_writeoptions_t;
  using ReadOptions = rocksdb_readoptions_t;
  using WriteBatch = rocksdb_writebatch_t;
  using Family = rocksdb_column_family_handle_t;

// F(name in the table, name in the library without prefix).
#define BRAIDDB_ROCKSDB_ONLY(F)                                    \
  F(open_for_reading, open_for_read_only)                          \
  F(merge, merge)                                                  \
  F(batch_remove_range, writebatch_delete_range)                   \
  F(snapshot_create, create_snapshot)                              \
  F(snapshot_release, release_snapshot)                            \
  F(read_options_snapshot, readoptions_set_snapshot)               \
  F(read_options_lower_bound, readoptions_set_iterate_lower_bound) \
  F(read_options_upper_bound, readoptions_set_iterate_upper_bound) \
  F(write_options_disable_log, writeoptions_disable_WAL)           \
  F(get_pinned, get_pinned)                                        \
  F(multi_get, multi_get)                                          \
  F(pinned_value, pinnableslice_value)                             \
  F(pinned_destroy, pinnableslice_destroy)                         \
  F(flush, flush)                                                  \
  F(flush_options_create, flushoptions_create)                     \
  F(flush_options_destroy, flushoptions_destroy)
#define BRAIDDB_ROCKSDB_FAMILIES(F)                                              \
  F(open_families, open_column_families)                                         \
  F(open_families_for_reading, open_for_read_only_column_families)               \
  F(merge_in, merge_cf)                                                          \
  F(batch_remove_range_in, writebatch_delete_range_cf)                           \
  F(options_create_missing_families, options_set_create_missing_column_families) \
  F(family_destroy, column_family_handle_destroy)                                \
  F(put_in, put_cf)                                                              \
  F(remove_in, delete_cf)                                                        \
  F(get_pinned_in, get_pinned_cf)                                                \
  F(multi_get_in, multi_get_cf)                                                  \
  F(batch_put_in, writebatch_put_cf)                                             \
  F(batch_remove_in, writebatch_delete_cf)                                       \
  F(flush_in, flush_cf)                                                          \
  F(compact_range_in, compact_range_cf)                                          \
  F(property_value_in, property_value_cf)
#define BRAIDDB_ROCKSDB_PERF(F)              \
  F(set_perf_level, set_perf_level)          \
  F(perf_context_create, perfcontext_create) \
  F(perf_context_reset, perfcontext_reset)   \
  F(perf_context_report, perfcontext_report) \
  F(perf_context_destroy, perfcontext_destroy)
#define BRAIDDB_DECLARE(name, there) decltype(&::rocksdb_##there) name;
  BRAIDDB_LEVELDB_API(BRAIDDB_DECLARE)
  BRAIDDB_ROCKSDB_ONLY(BRAIDDB_DECLARE)
  BRAIDDB_ROCKSDB_FAMILIES(BRAIDDB_DECLARE)                      // null unless requested
  BRAIDDB_ROCKSDB_PERF(BRAIDDB_DECLARE)                          // null if the library lacks one of them
  BRAIDDB_DECLARE(options_from_string, get_options_from_string)  // null if the library lacks it
#undef BRAIDDB_DECLARE

  Status Load(SharedLibrary* library, bool families) {
#define BRAIDDB_FIND(name, there) library->Find("rocksdb_" #there, &name);
    BRAIDDB_LEVELDB_API(BRAIDDB_FIND)
    BRAIDDB_ROCKSDB_ONLY(BRAIDDB_FIND)
    if (!library->missing().empty()) {
      return Status::NotSupported(library->path() + " is not RocksDB: it lacks " + library->missing().front());
    }
    if (families) {
      BRAIDDB_ROCKSDB_FAMILIES(BRAIDDB_FIND)
    }
    if (!library->missing().empty()) {
      return Status::NotSupported(library->path() + " does not support column families: it lacks " + library->missing().front());
    }
    const size_t missing = library->missing().size();
    BRAIDDB_ROCKSDB_PERF(BRAIDDB_FIND)
    if (library->missing().size() != missing) set_perf_level = nullptr;
    BRAIDDB_FIND(options_from_string, get_options_from_string)
#undef BRAIDDB_FIND
    return Status::OK();
  }

  Status Get(Db* db, const ReadOptions* options, Slice key, std::string* value) const {
    char* error = nullptr;
    rocksdb_pinnableslice_t* const pinned = get_pinned(db, options, key.data(), key.size(), &error);
    return TakePinned(pinned, error, value);
  }
  Status Get(Db* db, const ReadOptions* options, Family* family, Slice key, std::string* value) const {
    char* error = nullptr;
    rocksdb_pinnableslice_t* const pinned = get_pinned_in(db, options, family, key.data(), key.size(), &error);
    return TakePinned(pinned, error, value);
  }

  void MultiGet(Db* db, const ReadOptions* options, const std::vector<Slice>& keys, MultiGetBuffers* buffers,
                std::vector<std::string>* values, std::vector<Status>* statuses) const {
    buffers->Take(keys);
    multi_get(db, options, keys.size(), buffers->keys.data(), buffers->key_sizes.data(), buffers->values.data(),
              buffers->value_sizes.data(), buffers->errors.data());
    TakeValues(buffers, values, statuses);
  }
  // `families`: one per key.
  void MultiGet(Db* db, const ReadOptions* options, const std::vector<const Family*>& families, const std::vector<Slice>& keys,
                MultiGetBuffers* buffers, std::vector<std::string>* values, std::vector<Status>* statuses) const {
    buffers->Take(keys);
    multi_get_in(db, options, families.data(), keys.size(), buffers->keys.data(), buffers->key_sizes.data(),
                 buffers->values.data(), buffers->value_sizes.data(), buffers->errors.data());
    TakeValues(buffers, values, statuses);
  }

 private:
  Status TakePinned(rocksdb_pinnableslice_t* pinned, char* error, std::string* value) const {
    if (pinned == nullptr) return error == nullptr ? Status::NotFound() : TakeError(*this, error);
    size_t size = 0;
    const char* const data = pinned_value(pinned, &size);
    value->assign(data, size);
    pinned_destroy(pinned);
    return Status::OK();
  }

  void TakeValues(MultiGetBuffers* buffers, std::vector<std::string>* values, std::vector<Status>* statuses) const {
    const size_t count = buffers->values.size();
    values->resize(count);
    statuses->resize(count);
    for (size_t i = 0; i < count; ++i) {
      char* const value = buffers->values[i];
      if (char* const error = buffers->errors[i]) {
        (*statuses)[i] = TakeError(*this, error);
      } else if (value == nullptr) {
        (*statuses)[i] = Status::NotFound();
      } else {
        (*statuses)[i] = Status::OK();
        (*values)[i].assign(value, buffers->value_sizes[i]);
      }
      if (value != nullptr) free(value);
    }
  }
};

}  // namespace braiddb::bench
