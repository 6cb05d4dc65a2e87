// Flushes, compactions, and RocksDB's functions about files.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "capi/batch.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"

using braiddb::ColumnFamilyHandle;
using braiddb::DB;
using braiddb::Slice;
using braiddb::Status;
using namespace braiddb::capi;

namespace {

// `options`: may be null.
Status Compact(braiddb_t* db, ColumnFamilyHandle* family, const braiddb_compactoptions_t* options, const char* start_key,
               size_t start_key_length, const char* limit_key, size_t limit_key_length) {
  if (db->manual_compactions_off.load() > 0) return Status::OK();
  const Slice start(start_key, start_key == nullptr ? 0 : start_key_length);
  const Slice limit(limit_key, limit_key == nullptr ? 0 : limit_key_length);
  braiddb::CompactRangeOptions own;
  if (options != nullptr && !options->full_history_ts_low.empty()) own.full_history_ts_low = options->full_history_ts_low;
  Status status =
      db->db->CompactRange(own, family, start_key == nullptr ? nullptr : &start, limit_key == nullptr ? nullptr : &limit);
  const bool everything = start_key == nullptr && limit_key == nullptr && family == db->db->DefaultColumnFamily();
  if (status.ok() && everything && db->user_filter != nullptr) status = db->user_filter->Build(db->db.get());
  return status;
}

}  // namespace

void braiddb_flush(braiddb_t* db, const braiddb_flushoptions_t*, char** errptr) {
  SaveError(errptr, Guarded([&] { return db->db->Flush(); }));
}

// A flush always includes all families.
void braiddb_flush_cf(braiddb_t* db, const braiddb_flushoptions_t* options, braiddb_column_family_handle_t*, char** errptr) {
  braiddb_flush(db, options, errptr);
}

// Writes are durable when they return, except writes without sync on an ordinary file system.
void braiddb_flush_wal(braiddb_t* db, unsigned char sync, char** errptr) {
  if (sync == 0) return;
  SaveError(errptr, Guarded([&] {
              std::string mode;
              return db->db->GetProperty("braiddb.persist-mode", &mode) && mode == "page" ? db->db->Flush() : Status::OK();
            }));
}

// An error is written to the info log, and the database is then read-only.
void braiddb_compact_range(braiddb_t* db, const char* start_key, size_t start_key_length, const char* limit_key,
                           size_t limit_key_length) {
  braiddb_compact_range_opt(db, nullptr, start_key, start_key_length, limit_key, limit_key_length);
}

void braiddb_compact_range_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family, const char* start_key,
                              size_t start_key_length, const char* limit_key, size_t limit_key_length) {
  braiddb_compact_range_cf_opt(db, column_family, nullptr, start_key, start_key_length, limit_key, limit_key_length);
}

void braiddb_compact_range_cf_opt(braiddb_t* db, braiddb_column_family_handle_t* column_family, braiddb_compactoptions_t* options,
                                  const char* start_key, size_t start_key_length, const char* limit_key,
                                  size_t limit_key_length) {
  const Status ignored = Guarded(
      [&] { return Compact(db, FamilyOf(column_family), options, start_key, start_key_length, limit_key, limit_key_length); });
  (void)ignored;
}

void braiddb_compact_range_opt(braiddb_t* db, braiddb_compactoptions_t* options, const char* start_key, size_t start_key_length,
                               const char* limit_key, size_t limit_key_length) {
  const Status ignored = Guarded([&] {
    return Compact(db, db->db->DefaultColumnFamily(), options, start_key, start_key_length, limit_key, limit_key_length);
  });
  (void)ignored;
}

// A merge always takes whole tables, so a suggested range has no effect.
void braiddb_suggest_compact_range(braiddb_t*, const char*, size_t, const char*, size_t, char**) {}
void braiddb_suggest_compact_range_cf(braiddb_t*, braiddb_column_family_handle_t*, const char*, size_t, const char*, size_t,
                                      char**) {}

void braiddb_disable_manual_compaction(braiddb_t* db) { ++db->manual_compactions_off; }
void braiddb_enable_manual_compaction(braiddb_t* db) { --db->manual_compactions_off; }

// The close interrupts a running merge without loss.
void braiddb_cancel_all_background_work(braiddb_t*, unsigned char) {}

void braiddb_wait_for_compaction(braiddb_t* db, char** errptr) {
  SaveError(errptr, Guarded([&] { return db->db->WaitForCompaction(); }));
}

void braiddb_refresh(braiddb_t* db, char** errptr) {
  SaveError(errptr, Guarded([&] { return db->db->Refresh(); }));
}

uint64_t braiddb_wait_for_update(braiddb_t* db, uint64_t sequence, uint64_t timeout_micros, char** errptr) {
  const auto most = static_cast<uint64_t>(std::chrono::microseconds::max().count());
  const std::chrono::microseconds timeout(static_cast<int64_t>(std::min(timeout_micros, most)));
  uint64_t latest = 0;
  const Status status = Guarded([&] { return db->db->WaitForUpdate(sequence, timeout, &latest); });
  if (!status.IsTimedOut()) SaveError(errptr, status);
  return status.ok() ? latest : 0;
}

// ---- Files: keys lie in regions, which are not files that could be deleted.

void braiddb_disable_file_deletions(braiddb_t* db, char**) { ++db->file_deletions_off; }

// `force`: enables deletions, however often they were disabled.
void braiddb_enable_file_deletions(braiddb_t* db, unsigned char force, char**) {
  int off = db->file_deletions_off.load();
  while (!db->file_deletions_off.compare_exchange_weak(off, force != 0 ? 0 : std::max(0, off - 1))) {
  }
}

void braiddb_delete_file(braiddb_t*, const char*) {}

namespace {

// Deletes all keys of the range by one range deletion, which is invisible to older snapshots. RocksDB deletes the files that lie
// inside the range. Its callers cannot know which keys these files have, so they must accept the deletion of all keys. Both
// bounds are inclusive; an absent bound means no limit.
Status DeleteAllIn(braiddb_t* db, ColumnFamilyHandle* family, const std::optional<Slice>& start,
                   const std::optional<Slice>& limit) {
  if (family == nullptr) return NoFamily();
  if (family->GetOptions().comparator->timestamp_size() != 0) {
    return Status::NotSupported("delete_file_in_range on column family '" + family->GetName() +
                                "', which has timestamps; call increase_full_history_ts_low and compact_range to remove history");
  }
  DB* const root = db->db->GetRootDB();
  auto iterator = root->NewIterator({}, family);
  iterator->SeekToFirst();
  if (!iterator->Valid()) return iterator->status();
  const std::string first(start ? *start : iterator->key());
  iterator->SeekToLast();
  if (!iterator->Valid()) return iterator->status();
  const std::string last(limit ? *limit : iterator->key());
  iterator.reset();  // its pins could block the space that the write below needs
  if (family->GetOptions().comparator->Compare(first, last) > 0) return Status::OK();
  braiddb::WriteBatch batch;
  batch.DeleteRange(family, first, last);
  batch.Delete(family, last);
  return root->Write({}, batch);
}

std::optional<Slice> Bound(const char* key, size_t length) {
  return key == nullptr ? std::nullopt : std::optional<Slice>(Slice(key, length));
}

}  // namespace

void braiddb_delete_file_in_range(braiddb_t* db, const char* start_key, size_t start_key_length, const char* limit_key,
                                  size_t limit_key_length, char** errptr) {
  SaveError(errptr, Guarded([&] {
              return DeleteAllIn(db, db->db->DefaultColumnFamily(), Bound(start_key, start_key_length),
                                 Bound(limit_key, limit_key_length));
            }));
}

void braiddb_delete_file_in_range_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family, const char* start_key,
                                     size_t start_key_length, const char* limit_key, size_t limit_key_length, char** errptr) {
  SaveError(errptr, Guarded([&] {
              return DeleteAllIn(db, FamilyOf(column_family), Bound(start_key, start_key_length),
                                 Bound(limit_key, limit_key_length));
            }));
}
