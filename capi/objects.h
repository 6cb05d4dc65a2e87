// The opaque types of the C API, except options (capi/options.h) and batches (capi/batch.h).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "braiddb/c.h"
#include "braiddb/db.h"
#include "capi/open_objects.h"
#include "capi/option_tables.h"
#include "capi/statistics.h"
#include "capi/stats_text.h"
#include "capi/user_filter.h"

struct braiddb_column_family_handle_t final : braiddb::capi::OpenObject {
  explicit braiddb_column_family_handle_t(std::shared_ptr<braiddb::ColumnFamilyHandle> handle) : rep(std::move(handle)) {}

  // Null deleter for the default family's handle: the database owns it.
  std::shared_ptr<braiddb::ColumnFamilyHandle> rep;

 private:
  void EndBeforeClose() noexcept override { rep.reset(); }
};

struct braiddb_snapshot_t {
  // Null: reads see the newest state, as RocksDB's snapshots do with inplace_update_support.
  const braiddb::Snapshot* rep = nullptr;
};

struct braiddb_comparator_t final : braiddb::Comparator {
  void* state = nullptr;
  void (*destructor)(void*) = nullptr;
  int (*compare)(void*, const char*, size_t, const char*, size_t) = nullptr;
  const char* (*name)(void*) = nullptr;
  // Of a comparator with timestamps.
  int (*compare_timestamps)(void*, const char*, size_t, const char*, size_t) = nullptr;
  int (*compare_without_timestamps)(void*, const char*, size_t, unsigned char, const char*, size_t, unsigned char) = nullptr;
  size_t bytes_of_timestamps = 0;

  ~braiddb_comparator_t() override {
    if (destructor != nullptr) destructor(state);
  }
  int Compare(braiddb::Slice a, braiddb::Slice b) const override {
    return compare(state, a.data(), a.size(), b.data(), b.size());
  }
  const char* Name() const override { return name(state); }
  size_t timestamp_size() const override { return bytes_of_timestamps; }
  int CompareTimestamp(braiddb::Slice a, braiddb::Slice b) const override {
    return compare_timestamps(state, a.data(), a.size(), b.data(), b.size());
  }
  int CompareWithoutTimestamp(braiddb::Slice a, bool a_has, braiddb::Slice b, bool b_has) const override {
    if (compare_without_timestamps == nullptr) return Compare(a, b);
    return compare_without_timestamps(state, a.data(), a.size(), a_has ? 1 : 0, b.data(), b.size(), b_has ? 1 : 0);
  }
};

struct braiddb_slicetransform_t final : braiddb::SliceTransform {
  std::shared_ptr<const braiddb::SliceTransform> built_in;  // if set, used instead of the functions
  void* state = nullptr;
  void (*destructor)(void*) = nullptr;
  char* (*transform)(void*, const char*, size_t, size_t*) = nullptr;
  unsigned char (*in_domain)(void*, const char*, size_t) = nullptr;
  unsigned char (*in_range)(void*, const char*, size_t) = nullptr;
  const char* (*name)(void*) = nullptr;

  ~braiddb_slicetransform_t() override {
    if (destructor != nullptr) destructor(state);
  }
  const char* Name() const override { return name(state); }
  bool InDomain(braiddb::Slice key) const override { return in_domain(state, key.data(), key.size()) != 0; }
  braiddb::Slice Transform(braiddb::Slice key) const override {
    size_t length = 0;
    const char* const bytes = transform(state, key.data(), key.size(), &length);
    return {bytes, length};
  }
};

struct braiddb_cache_t {
  // The part of the cache that options keep after the cache object is destroyed: the capacity and the databases that use it.
  class Capacity {
   public:
    explicit Capacity(size_t capacity) : limit(capacity) {}
    void Add(braiddb_t* db);
    void Remove(braiddb_t* db);
    // DRAM of these databases. `pinned`: without the parts that they could drop, the lookup cache and the filter.
    size_t Usage(bool pinned) noexcept;

    // Limit for the lookup caches of all these databases together.
    braiddb::CacheLimit limit;

   private:
    size_t Sum(bool pinned);

    std::mutex mutex_;
    std::vector<braiddb_t*> databases_;
  };
  std::shared_ptr<Capacity> rep;
};

struct braiddb_envoptions_t {};

struct braiddb_env_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_ENV_THREADS)
};

namespace braiddb::capi {

// Returns null for NULL. The engine refuses a null family.
inline ColumnFamilyHandle* FamilyOf(const braiddb_column_family_handle_t* handle) {
  return handle == nullptr ? nullptr : handle->rep.get();
}
inline std::shared_ptr<ColumnFamilyHandle> SharedFamily(const braiddb_column_family_handle_t* handle) {
  return handle == nullptr ? nullptr : handle->rep;
}

}  // namespace braiddb::capi

struct braiddb_t {
  ~braiddb_t() {
    if (statistics != nullptr) statistics->Remove(db.get());
  }

  std::unique_ptr<braiddb::DB> db;
  mutable braiddb::capi::OpenObjects open_objects;
  // Evaluates the user's own filter policy. Null in nearly all databases: no policy was set.
  std::unique_ptr<braiddb::capi::UserFilter> user_filter;
  std::shared_ptr<braiddb_cache_t::Capacity> cache;
  std::shared_ptr<braiddb::capi::SharedStatistics> statistics;  // null: statistics are not enabled
  bool snapshots_see_newest = false;                            // inplace_update_support
  std::atomic<int> manual_compactions_off{0};                   // nesting count of disable calls
  std::atomic<int> file_deletions_off{0};                       // the same for file deletions; only reported by a property
  mutable braiddb::capi::StatsPeriods stats_periods, compaction_stats_periods;
};
