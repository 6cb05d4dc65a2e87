// Properties, sizes, memory.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "capi/objects.h"
#include "capi/result.h"

using braiddb::ColumnFamilyHandle;
using braiddb::DB;
using braiddb::Slice;
using braiddb::Status;
using namespace braiddb::capi;

namespace {

uint64_t Number(DB* db, ColumnFamilyHandle* family, const char* property) {
  uint64_t value = 0;
  return db->GetIntProperty(family, property, &value) ? value : 0;
}

uint64_t Number(braiddb_t* db, const char* property) { return Number(db->db.get(), db->db->DefaultColumnFamily(), property); }

// The name behind RocksDB's, LevelDB's or the own prefix; empty if it has none of them.
std::string_view StripPrefix(std::string_view property) {
  for (const std::string_view prefix : {"braiddb.", "rocksdb.", "leveldb."}) {
    if (property.starts_with(prefix)) return property.substr(prefix.size());
  }
  return {};
}

// What RocksDB counts and there is none of: blobs, values that a cache keeps pinned.
bool IsOfNothing(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "num-blob-files",      "total-blob-file-size", "live-blob-file-size",     "live-blob-file-garbage-size",
      "blob-cache-capacity", "blob-cache-usage",     "blob-cache-pinned-usage", "block-cache-pinned-usage"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// L0's share of the entries, as a share of the log's bytes that live.
uint64_t BytesToMerge(DB* db, ColumnFamilyHandle* family) {
  const uint64_t entries = Number(db, family, "braiddb.estimate-num-keys");
  if (entries == 0) return 0;
  const double share = static_cast<double>(Number(db, family, "braiddb.num-entries-l0")) / static_cast<double>(entries);
  return static_cast<uint64_t>(std::min(share, 1.0) * static_cast<double>(Number(db, family, "braiddb.pm-bytes-live")));
}

// Names of RocksDB and LevelDB for what has another name here, or is a sum.
bool GetRenamedNumber(DB* db, ColumnFamilyHandle* family, std::string_view name, uint64_t* value) {
  constexpr std::string_view kFilesAtLevel = "num-files-at-level";
  if (name == "num-files-at-level0") {
    *value = Number(db, family, "braiddb.num-l0-tables");
  } else if (name == "num-files-at-level1") {
    *value = 1;  // the last level is one list, or one tree
  } else if (name.starts_with(kFilesAtLevel) && name.size() == kFilesAtLevel.size() + 1 && name.back() >= '2' &&
             name.back() <= '6') {
    *value = 0;
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
  } else {
    return false;
  }
  return true;
}

bool GetNumber(DB* db, ColumnFamilyHandle* family, const char* property, uint64_t* value) {
  const std::string_view name = StripPrefix(property);
  if (name.empty()) return false;
  return GetRenamedNumber(db, family, name, value) || db->GetIntProperty(family, "braiddb." + std::string(name), value);
}

bool GetText(DB* db, ColumnFamilyHandle* family, const char* property, std::string* value) {
  const std::string_view name = StripPrefix(property);
  if (name.empty()) return false;
  if (name == "sstables") return db->GetProperty(family, "braiddb.levels", value);
  if (name == "cfstats" || name == "cfstats-no-file-histogram" || name == "dbstats" || name == "options-statistics")
    return db->GetProperty(family, "braiddb.stats", value);
  uint64_t number = 0;
  if (GetRenamedNumber(db, family, name, &number)) {
    *value = std::to_string(number);
    return true;
  }
  return db->GetProperty(family, "braiddb." + std::string(name), value);
}

}  // namespace

namespace {

char* GiveText(DB* db, ColumnFamilyHandle* family, const char* property) {
  char* result = nullptr;
  const Status ignored = Guarded([&] {
    std::string value;
    if (GetText(db, family, property, &value)) result = CopyBytes(value);
    return Status::OK();
  });
  (void)ignored;  // without memory there is no value
  return result;
}

int GiveNumber(DB* db, ColumnFamilyHandle* family, const char* property, uint64_t* value) {
  bool found = false;
  const Status ignored = Guarded([&] { return found = GetNumber(db, family, property, value), Status::OK(); });
  (void)ignored;
  return found ? 0 : -1;
}

}  // namespace

char* braiddb_property_value(braiddb_t* db, const char* property) {
  return GiveText(db->db.get(), db->db->DefaultColumnFamily(), property);
}

char* braiddb_property_value_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family, const char* property) {
  return GiveText(db->db.get(), FamilyOf(column_family), property);
}

int braiddb_property_int(braiddb_t* db, const char* property, uint64_t* value) {
  return GiveNumber(db->db.get(), db->db->DefaultColumnFamily(), property, value);
}

int braiddb_property_int_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family, const char* property, uint64_t* value) {
  return GiveNumber(db->db.get(), FamilyOf(column_family), property, value);
}

uint64_t braiddb_get_latest_sequence_number(braiddb_t* db) { return db->db->GetLatestSequenceNumber(); }

// ---- Sizes

namespace {

// Bytes of the keys and values of [start, limit), by counting them.
Status MeasureRange(DB* db, ColumnFamilyHandle* family, Slice start, Slice limit, uint64_t* bytes) {
  *bytes = 0;
  if (family == nullptr) return Status::InvalidArgument("the column family handle is null");
  if (family->GetOptions().comparator->Compare(start, limit) >= 0) return Status::OK();
  braiddb::ReadOptions options;
  options.iterate_lower_bound = start;
  options.iterate_upper_bound = limit;
  const auto iterator = db->NewIterator(options, family);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) *bytes += iterator->key().size() + iterator->value().size();
  return iterator->status();
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
