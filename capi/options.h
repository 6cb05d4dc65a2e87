// The options objects of the C API.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/backup.h"
#include "braiddb/options.h"
#include "capi/compaction_filter.h"
#include "capi/merge_operator.h"
#include "capi/objects.h"
#include "capi/option_tables.h"

struct braiddb_cuckoo_table_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_CUCKOO_OPTIONS)
};

struct braiddb_universal_compaction_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_UNIVERSAL_OPTIONS)
};

struct braiddb_fifo_compaction_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_FIFO_OPTIONS)
};

struct braiddb_flushoptions_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_FLUSH_OPTIONS)
};

struct braiddb_compactoptions_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_COMPACT_OPTIONS)
  unsigned char bottommost_level_compaction = 1;  // not a truth value; one of four values
  std::string full_history_ts_low;
};

struct braiddb_block_based_table_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_BLOCK_OPTIONS)
  std::shared_ptr<braiddb_cache_t::Capacity> block_cache;
  std::shared_ptr<braiddb_cache_t::Capacity> block_cache_compressed;
  std::shared_ptr<braiddb_filterpolicy_t> filter_policy;  // owned, as in RocksDB
};

struct braiddb_dbpath_t {
  std::string path;
  uint64_t target_size = 0;
};

struct braiddb_ratelimiter_t {
  int64_t bytes_per_second = 0;
  int64_t refill_period_us = 0;
  int32_t fairness = 0;
};

struct braiddb_options_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_OPTIONS)
  braiddb::Status unfit;  // an earlier call ran out of memory; no database is opened with these options

  // Options with an effect that are not a number.
  braiddb::Options own;                        // set by BraidDB's own functions; capi/open_options.cc adds the others
  braiddb_comparator_t* comparator = nullptr;  // not owned
  braiddb_block_based_table_options_t table;
  std::shared_ptr<braiddb_cache_t::Capacity> cache;        // LevelDB's
  const braiddb_filterpolicy_t* leveldb_policy = nullptr;  // LevelDB's; not owned
  size_t optimized_cache_bytes = 0;                        // set by optimize_for_point_lookup

  // Only stored.
  uint64_t compaction_readahead_size = 0;
  unsigned char bottommost_compression_options_use_zstd_dict_trainer = 1;
  std::vector<int> bottommost_compression_options{-14, 32767, 0, 0};
  uint64_t bottommost_compression_options_max_dict_buffer_bytes = 0;
  int bottommost_compression_options_zstd_max_train_bytes = 0;
  bool bottommost_compression_options_enabled = false;
  std::vector<int> compression_options{-14, 32767, 0, 0};
  std::vector<int> compression_per_level;
  std::vector<int> max_bytes_for_level_multiplier_additional;
  std::vector<braiddb_dbpath_t> db_paths;
  std::string db_log_dir;
  std::string wal_dir;
  braiddb_env_t* env = nullptr;
  braiddb_logger_t* info_log = nullptr;
  std::shared_ptr<braiddb_cache_t::Capacity> blob_cache;
  std::shared_ptr<braiddb_cache_t::Capacity> row_cache;
  braiddb_compactionfilter_t* compaction_filter = nullptr;
  std::shared_ptr<braiddb_compactionfilterfactory_t> compaction_filter_factory;  // owned, as in RocksDB
  braiddb_cuckoo_table_options_t cuckoo;
  braiddb_universal_compaction_options_t universal;
  braiddb_fifo_compaction_options_t fifo;
  braiddb_ratelimiter_t ratelimiter;
  enum class Memtable { kSkipList, kVector, kHashSkipList, kHashLinkList } memtable_rep = Memtable::kSkipList;
  std::vector<int64_t> memtable_parameters;
  std::vector<double> plain_table;
  std::vector<std::pair<size_t, size_t>> deletion_collectors;   // window, deletions
  std::shared_ptr<braiddb::capi::SharedStatistics> statistics;  // null: not enabled
};

struct braiddb_readoptions_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_READ_OPTIONS)
  unsigned char verify_checksums = 1;  // the engine gets the value only if the program has set it
  braiddb::ReadOptions rep;            // its bounds and prefix point to members of this object
  braiddb::Status unfit;               // an earlier call ran out of memory; no iterator is made with these options
  std::string lower_bound;
  std::string upper_bound;
  std::string prefix;
  std::string timestamp;
  std::string iter_start_ts;

  // The error, with RocksDB's text, for iterators that RocksDB refuses. May throw std::bad_alloc.
  braiddb::Status CheckIterator() const {
    constexpr int kPersistedTier = 2;
    if (managed != 0) return braiddb::Status::NotSupported("Managed iterator is not supported anymore.");
    if (read_tier == kPersistedTier)
      return braiddb::Status::NotSupported("ReadTier::kPersistedData is not yet supported in iterators.");
    return braiddb::Status::OK();
  }
  braiddb::ReadOptions ForIterator() const {
    braiddb::ReadOptions options = rep;
    options.prefix_same_as_start = prefix_same_as_start != 0;
    options.total_order_seek = total_order_seek != 0;
    options.max_skippable_internal_keys = max_skippable_internal_keys;
    return options;
  }
  braiddb_readoptions_t() = default;
  braiddb_readoptions_t(const braiddb_readoptions_t&) = delete;
  braiddb_readoptions_t& operator=(const braiddb_readoptions_t&) = delete;
};

struct braiddb_writeoptions_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_WRITE_OPTIONS)
  unsigned char disable_WAL = 0;

  // Whether the options ask for sync and for no log.
  bool contradicts_itself() const { return __builtin_expect(disable_WAL != 0, 0) && sync != 0; }
  braiddb::WriteOptions rep() const {
    braiddb::WriteOptions options;
    options.sync = sync != 0;
    options.ignore_missing_column_families = ignore_missing_column_families != 0;
    return options;
  }
};

namespace braiddb::capi {

// The error for write options that contradict themselves.
Status Contradiction();

// Calls `write` with the engine's options.
template <class Write>
Status WriteWith(const braiddb_writeoptions_t* options, const Write& write) {
  if (options->contradicts_itself()) return Contradiction();
  return write(options->rep());
}

// The engine's options for open, check, or destroy. `path`: the database, because an environment variable may move its regions.
Status MakeOptions(const braiddb_options_t& options, const std::string& path, Options* result);

// Converts write_buffer_size to the engine's memtable_size.
inline uint64_t MemtableSize(uint64_t write_buffer_size) {
  constexpr uint64_t kLeast = 16 << 10;
  constexpr uint64_t kMost = uint64_t{4} << 30;
  return std::clamp(write_buffer_size, kLeast, kMost);
}

// Finds the regions of the database at `path`, if they are outside its directory and `options` do not name them.
Status FindRegions(const std::string& path, Options* options);

// As FindRegions. If no database exists, creates directories below those of the environment variable, and stores their paths in
// the database's directory.
Status PlaceRegions(const std::string& path, Options* options);

// DB::Destroy, including the directories that PlaceRegions created. `options`: as before FindRegions.
Status DestroyPlaced(const Options& options, const std::string& path);

// Options of copies whose regions lie where the environment variable says.
CopyOptions PlacedCopies();

// The value that the getter returns: an unsigned char becomes 0 or 1.
template <class Get, class Set>
Get Stored(Set value) {
  if constexpr (std::is_same_v<Get, unsigned char>) return value != 0;
  return static_cast<Get>(value);
}

}  // namespace braiddb::capi

// Defines setters and getters of a table.
#define BRAIDDB_C_DEFINE_SET(object, type, set_type, get_type, name) \
  void braiddb_##object##_set_##name(type* options, set_type value) { options->name = braiddb::capi::Stored<get_type>(value); }
#define BRAIDDB_C_DEFINE_GET(object, type, get_type, name) \
  get_type braiddb_##object##_get_##name(type* options) { return options->name; }
