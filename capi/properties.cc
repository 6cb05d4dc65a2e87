// Properties, sizes, memory.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "capi/objects.h"
#include "capi/result.h"
#include "capi/stats_text.h"

using braiddb::ColumnFamilyHandle;
using braiddb::DB;
using braiddb::Slice;
using braiddb::Statistics;
using braiddb::Status;
using namespace braiddb::capi;

namespace {

uint64_t Number(DB* db, ColumnFamilyHandle* family, const char* property) {
  uint64_t value = 0;
  return db->GetIntProperty(family, property, &value) ? value : 0;
}

uint64_t Number(braiddb_t* db, const char* property) { return Number(db->db.get(), db->db->DefaultColumnFamily(), property); }

// The name without the prefix of BraidDB, RocksDB, or LevelDB. Empty if the name has none of the prefixes.
std::string_view StripPrefix(std::string_view property) {
  for (const std::string_view prefix : {"braiddb.", "rocksdb.", "leveldb."}) {
    if (property.starts_with(prefix)) return property.substr(prefix.size());
  }
  return {};
}

// Whether the property is always 0: RocksDB features that do not exist here, such as blobs and pinned cache values, and numbers
// that are not counted: deletions in memtables, the time of the oldest snapshot.
bool IsOfNothing(std::string_view name) {
  constexpr std::string_view kNames[] = {"num-blob-files",
                                         "total-blob-file-size",
                                         "live-blob-file-size",
                                         "live-blob-file-garbage-size",
                                         "blob-cache-capacity",
                                         "blob-cache-usage",
                                         "blob-cache-pinned-usage",
                                         "block-cache-pinned-usage",
                                         "num-immutable-mem-table-flushed",
                                         "num-deletes-active-mem-table",
                                         "num-deletes-imm-mem-tables",
                                         "oldest-snapshot-time",
                                         "actual-delayed-write-rate"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// The digit at the end of a name: a level or a kind of storage. Returns -1 if the name has another beginning or no such end.
int NumberBehind(std::string_view name, std::string_view beginning) {
  if (!name.starts_with(beginning) || name.size() != beginning.size() + 1) return -1;
  const char digit = name.back();
  return digit >= '0' && digit <= '9' ? digit - '0' : -1;
}

// Live log bytes, multiplied by L0's share of the entries.
uint64_t BytesToMerge(DB* db, ColumnFamilyHandle* family) {
  const uint64_t entries = Number(db, family, "braiddb.estimate-num-keys");
  if (entries == 0) return 0;
  const double share = static_cast<double>(Number(db, family, "braiddb.num-entries-l0")) / static_cast<double>(entries);
  return static_cast<uint64_t>(std::min(share, 1.0) * static_cast<double>(Number(db, family, "braiddb.pm-bytes-live")));
}

// Properties of RocksDB and LevelDB that have another name here, or are a sum.
bool GetRenamedNumber(const braiddb_t& of, ColumnFamilyHandle* family, std::string_view name, uint64_t* value) {
  DB* const db = of.db.get();
  const int files_at = NumberBehind(name, "num-files-at-level");
  if (files_at >= 0 && files_at < kLevels) {
    *value = NumbersOfLevels(db, family).at(static_cast<size_t>(files_at)).files;
  } else if (IsOfNothing(name)) {
    *value = 0;
  } else if (name == "base-level") {
    *value = 1;
  } else if (name == "estimate-pending-compaction-bytes") {
    *value = BytesToMerge(db, family);
  } else if (name == "approximate-memory-usage") {
    *value = Number(db, family, "braiddb.dram-bytes");
  } else if (name == "size-all-mem-tables") {
    *value = Number(db, family, "braiddb.cur-size-all-mem-tables");
  } else if (name == "mem-table-flush-pending") {
    *value = Number(db, family, "braiddb.num-immutable-mem-table") > 0;
  } else if (name == "compaction-pending") {
    *value = Number(db, family, "braiddb.num-l0-tables") > 0;
  } else if (name == "estimate-table-readers-mem") {
    *value = Number(db, family, "braiddb.l1-dram-bytes") + Number(db, family, "braiddb.filter-bytes");
  } else if (name == "block-cache-usage") {
    *value = Number(db, family, "braiddb.lookup-cache-bytes");
  } else if (name == "block-cache-capacity") {
    *value = db->GetOptions().lookup_cache_size;
  } else if (name == "estimate-live-data-size") {
    *value = Number(db, family, "braiddb.pm-bytes-live");
  } else if (name == "total-sst-files-size" || name == "live-sst-files-size") {
    *value = Number(db, family, "braiddb.pm-bytes-in-segments");
  } else if (name == "is-file-deletions-enabled") {
    *value = of.file_deletions_off.load() == 0;
  } else if (name == "num-live-versions") {
    *value = 1;
  } else if (name == "current-super-version-number") {  // incremented by each change of the levels
    const Statistics now = db->GetStatistics();
    *value = 1 + now.rotations + now.flushes + now.compactions;
  } else if (name == "min-log-number-to-keep") {
    *value = 1 + db->GetStatistics().flushes;
  } else if (name == "min-obsolete-sst-number-to-keep") {
    *value = UINT64_MAX;
  } else {
    return false;
  }
  return true;
}

bool GetNumber(const braiddb_t& db, ColumnFamilyHandle* family, const char* property, uint64_t* value) {
  const std::string_view name = StripPrefix(property);
  if (name.empty()) return false;
  return GetRenamedNumber(db, family, name, value) || db.db->GetIntProperty(family, "braiddb." + std::string(name), value);
}

// RocksDB's text properties. Returns false if `name` is none of them.
bool GetRocksDBText(const braiddb_t& of, ColumnFamilyHandle* family, std::string_view name, std::string* value) {
  DB* const db = of.db.get();
  const int properties_at = NumberBehind(name, "aggregated-table-properties-at-level");
  const int compression_at = NumberBehind(name, "compression-ratio-at-level");
  if (name == "stats") {
    *value = CompactionStatsText(db, family, &of.compaction_stats_periods) + FileHistogramText(family) +
             DatabaseStatsText(db, &of.stats_periods) + "\n** BraidDB Stats **\n" + db->GetStatistics().ToString();
  } else if (name == "cfstats") {
    *value = CompactionStatsText(db, family, &of.compaction_stats_periods) + FileHistogramText(family);
  } else if (name == "cfstats-no-file-histogram") {
    *value = CompactionStatsText(db, family, &of.compaction_stats_periods);
  } else if (name == "cf-file-histogram") {
    *value = FileHistogramText(family);
  } else if (name == "dbstats") {
    *value = DatabaseStatsText(db, &of.stats_periods);
  } else if (name == "block-cache-entry-stats" || name == "fast-block-cache-entry-stats") {
    *value = BlockCacheText(db);
  } else if (name == "levelstats") {
    *value = LevelStatsText(NumbersOfLevels(db, family));
  } else if (name == "sstables") {
    *value = TablesText(NumbersOfLevels(db, family));
  } else if (name == "aggregated-table-properties") {
    *value = TablePropertiesText(SumOf(NumbersOfLevels(db, family)));
  } else if (properties_at >= 0 && properties_at < kLevels) {
    *value = TablePropertiesText(NumbersOfLevels(db, family).at(static_cast<size_t>(properties_at)));
  } else if (compression_at >= 0 && compression_at < kLevels) {
    const bool is_empty = NumbersOfLevels(db, family).at(static_cast<size_t>(compression_at)).files == 0;
    *value = is_empty ? "-1.000000" : "1.000000";  // RocksDB's values for no data and for uncompressed data
  } else if (const int temperature = NumberBehind(name, "live-sst-files-size-at-temperature"); temperature >= 0) {
    *value = std::to_string(temperature == 0 ? Number(db, family, "braiddb.pm-bytes-in-segments") : 0);
  } else if (name == "blob-stats") {
    *value =
        "Number of blob files: 0\nTotal size of blob files: 0\nTotal size of garbage in blob files: 0\n"
        "Blob file space amplification: 0\n";
  } else if (name == "options-statistics" && of.statistics != nullptr) {
    *value = of.statistics->ToString();
  } else {
    return false;
  }
  return true;
}

bool GetText(const braiddb_t& db, ColumnFamilyHandle* family, const char* property, std::string* value) {
  const std::string_view name = StripPrefix(property);
  if (name.empty()) return false;
  const std::string own = "braiddb." + std::string(name);
  if (own == property && db.db->GetProperty(family, own, value)) return true;
  uint64_t number = 0;
  if (name == "stats" && std::string_view(property).starts_with("leveldb.")) {
    *value = LevelDBStatsText(db.db.get(), NumbersOfLevels(db.db.get(), family));
    return true;
  }
  if (GetRocksDBText(db, family, name, value)) return true;
  if (GetRenamedNumber(db, family, name, &number)) {
    *value = std::to_string(number);
    return true;
  }
  return db.db->GetProperty(family, own, value);
}

}  // namespace

namespace {

char* GiveText(const braiddb_t& db, ColumnFamilyHandle* family, const char* property) {
  char* result = nullptr;
  const Status ignored = Guarded([&] {
    std::string value;
    if (family != nullptr && GetText(db, family, property, &value)) result = CopyBytes(value);
    return Status::OK();
  });
  (void)ignored;  // without memory the value stays null
  return result;
}

int GiveNumber(const braiddb_t& db, ColumnFamilyHandle* family, const char* property, uint64_t* value) {
  bool found = false;
  const Status ignored =
      Guarded([&] { return found = family != nullptr && GetNumber(db, family, property, value), Status::OK(); });
  (void)ignored;
  return found ? 0 : -1;
}

}  // namespace

char* braiddb_property_value(braiddb_t* db, const char* property) {
  return GiveText(*db, db->db->DefaultColumnFamily(), property);
}

char* braiddb_property_value_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family, const char* property) {
  return GiveText(*db, FamilyOf(column_family), property);
}

int braiddb_property_int(braiddb_t* db, const char* property, uint64_t* value) {
  return GiveNumber(*db, db->db->DefaultColumnFamily(), property, value);
}

int braiddb_property_int_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family, const char* property, uint64_t* value) {
  return GiveNumber(*db, FamilyOf(column_family), property, value);
}

uint64_t braiddb_get_latest_sequence_number(braiddb_t* db) { return db->db->GetLatestSequenceNumber(); }

// ---- Sizes

namespace {

// Measures the keys and values in [start, limit) by iterating over them.
Status MeasureStored(DB* db, ColumnFamilyHandle* family, Slice start, Slice limit, uint64_t* bytes) {
  if (family->GetOptions().comparator->Compare(start, limit) >= 0) return Status::OK();
  braiddb::ReadOptions options;
  options.iterate_lower_bound = start;
  options.iterate_upper_bound = limit;
  const auto iterator = db->NewIterator(options, family);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) *bytes += iterator->key().size() + iterator->value().size();
  return iterator->status();
}

// In a family with timestamps, measures all versions with their timestamps. A bound becomes the first stored key of its key.
Status MeasureRange(DB* db, ColumnFamilyHandle* family, Slice start, Slice limit, uint64_t* bytes) {
  *bytes = 0;
  if (family == nullptr) return Status::InvalidArgument("the column family handle is null");
  const size_t timestamp_size = family->GetOptions().comparator->timestamp_size();
  if (timestamp_size == 0) return MeasureStored(db, family, start, limit, bytes);
  const std::string stored_start = std::string(start).append(timestamp_size, '\xff');
  const std::string stored_limit = std::string(limit).append(timestamp_size, '\xff');
  return MeasureStored(db->GetRootDB(), family, stored_start, stored_limit, bytes);
}

void MeasureRanges(DB* db, ColumnFamilyHandle* family, int count, const char* const* start_keys, const size_t* start_key_lengths,
                   const char* const* limit_keys, const size_t* limit_key_lengths, uint64_t* sizes, char** errptr) {
  for (int i = 0; i < count; ++i) sizes[i] = 0;
  for (int i = 0; i < count; ++i) {
    const Status status = Guarded([&] {
      return MeasureRange(db, family, {start_keys[i], start_key_lengths[i]}, {limit_keys[i], limit_key_lengths[i]}, &sizes[i]);
    });
    if (SaveError(errptr, status)) return;
  }
}

}  // namespace

void braiddb_approximate_sizes(braiddb_t* db, int count, const char* const* start_keys, const size_t* start_key_lengths,
                               const char* const* limit_keys, const size_t* limit_key_lengths, uint64_t* sizes, char** errptr) {
  MeasureRanges(db->db.get(), db->db->DefaultColumnFamily(), count, start_keys, start_key_lengths, limit_keys, limit_key_lengths,
                sizes, errptr);
}

void braiddb_approximate_sizes_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family, int count,
                                  const char* const* start_keys, const size_t* start_key_lengths, const char* const* limit_keys,
                                  const size_t* limit_key_lengths, uint64_t* sizes, char** errptr) {
  MeasureRanges(db->db.get(), FamilyOf(column_family), count, start_keys, start_key_lengths, limit_keys, limit_key_lengths, sizes,
                errptr);
}

// ---- Memory

struct braiddb_memory_consumers_t {
  std::vector<braiddb_t*> databases;
  std::vector<std::shared_ptr<braiddb_cache_t::Capacity>> caches;
};

struct braiddb_memory_usage_t {
  uint64_t memtables = 0;
  uint64_t unflushed = 0;
  uint64_t readers = 0;
  uint64_t caches = 0;
};

braiddb_memory_consumers_t* braiddb_memory_consumers_create() { return Make<braiddb_memory_consumers_t>(); }
void braiddb_memory_consumers_destroy(braiddb_memory_consumers_t* consumers) { delete consumers; }
void braiddb_memory_consumers_add_db(braiddb_memory_consumers_t* consumers, braiddb_t* db) { consumers->databases.push_back(db); }
void braiddb_memory_consumers_add_cache(braiddb_memory_consumers_t* consumers, braiddb_cache_t* cache) {
  consumers->caches.push_back(cache->rep);
}

braiddb_memory_usage_t* braiddb_approximate_memory_usage_create(braiddb_memory_consumers_t* consumers, char** errptr) {
  braiddb_memory_usage_t usage;
  const Status status = Guarded([&] {
    for (braiddb_t* const db : consumers->databases) {
      usage.memtables += Number(db, "braiddb.cur-size-all-mem-tables");
      usage.unflushed += Number(db, "braiddb.cur-size-all-mem-tables");
      usage.readers += Number(db, "braiddb.l1-dram-bytes") + Number(db, "braiddb.filter-bytes");
    }
    for (const auto& cache : consumers->caches) usage.caches += cache->Usage(false);
    return Status::OK();
  });
  if (SaveError(errptr, status)) return nullptr;
  auto* const result = Make<braiddb_memory_usage_t>(usage);
  if (result == nullptr) SaveError(errptr, NoMemory());
  return result;
}

void braiddb_approximate_memory_usage_destroy(braiddb_memory_usage_t* usage) { delete usage; }
uint64_t braiddb_approximate_memory_usage_get_mem_table_total(braiddb_memory_usage_t* usage) { return usage->memtables; }
uint64_t braiddb_approximate_memory_usage_get_mem_table_unflushed(braiddb_memory_usage_t* usage) { return usage->unflushed; }
uint64_t braiddb_approximate_memory_usage_get_mem_table_readers_total(braiddb_memory_usage_t* usage) { return usage->readers; }
uint64_t braiddb_approximate_memory_usage_get_cache_total(braiddb_memory_usage_t* usage) { return usage->caches; }
