// Puts, deletions, and gets.
#include <cstdlib>
#include <cstring>

#include "capi/batch.h"
#include "capi/early_memory.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/pinned.h"
#include "capi/result.h"

using braiddb::PinnableSlice;
using braiddb::Slice;
using braiddb::Status;
using namespace braiddb::capi;

namespace {

// Returns false if the user's filter policy excludes the key. The policy covers the default family.
bool MayContain(braiddb_t* db, const braiddb_readoptions_t* options, Slice key) {
  return db->user_filter == nullptr || options->rep.snapshot != nullptr || db->user_filter->MayContain(key);
}

// Copies the value into memory for the caller.
class MallocReceiver final : public braiddb::ValueReceiver {
 public:
  bool Receive(Slice value) override {
    copy_ = static_cast<char*>(memory_.Take(value.size() + 1));
    if (__builtin_expect(copy_ == nullptr, 0)) return false;
    length_ = memory_.size() - 1;
    std::memcpy(copy_, value.data(), length_);
    copy_[length_] = '\0';
    return true;
  }
  char* copy() const { return copy_; }
  size_t length() const { return length_; }

 private:
  EarlyMemory memory_;
  char* copy_ = nullptr;
  size_t length_ = 0;
};

// The result of a get for the caller. `get` writes to a receiver.
template <class Get>
char* GiveValue(const Get& get, size_t* value_length, char** errptr) {
  MallocReceiver value;
  const Status status = get(&value);
  *value_length = value.length();
  if (__builtin_expect(status.ok(), 1)) return value.copy();
  *value_length = 0;
  if (!status.IsNotFound()) SaveError(errptr, status);
  return nullptr;
}

// As GiveValue, for a pinned value. `get` writes to a receiver or to a PinnableSlice. A large value is read a second time, to pin
// it. A newer write may come between; then the second read counts.
template <class Get>
braiddb_pinnableslice_t* GivePinned(braiddb_t* db, const Get& get, char** errptr) {
  PinnedReceiver value;
  Status status = get(&value);
  if (__builtin_expect(status.ok() && !value.is_large(), 1)) return value.copy();
  PinnableSlice large;
  if (status.ok()) status = get(&large);
  braiddb_pinnableslice_t* const kept = status.ok() ? KeepPinned(&large, &db->open_objects) : nullptr;
  if (status.ok() && kept == nullptr) status = NoMemory();
  if (!status.ok() && !status.IsNotFound()) SaveError(errptr, status);
  return kept;
}

// `from`: options, family if not the default one, key.
template <class... From>
Status ReadTo(PinnedReceiver* value, braiddb_t* db, const From&... from) {
  return db->db->GetTo(from..., value);
}
template <class... From>
Status ReadTo(PinnableSlice* value, braiddb_t* db, const From&... from) {
  return db->db->Get(from..., value);
}

bool IsDefault(const braiddb_column_family_handle_t* handle) { return handle != nullptr && handle->rep->GetID() == 0; }

// Writes the results of a MultiGet, or the error of the whole call.
void GiveValues(const Status& all, std::vector<Status>* statuses, const std::vector<std::string>& found, size_t count,
                char** values, size_t* value_lengths, char** errors) {
  for (size_t i = 0; i < count; ++i) {
    values[i] = nullptr;
    value_lengths[i] = 0;
    errors[i] = nullptr;
    Status status = all.ok() ? (*statuses)[i] : all;
    if (status.ok()) {
      values[i] = CopyBytes(found[i]);
      value_lengths[i] = values[i] == nullptr ? 0 : found[i].size();
      if (values[i] == nullptr) status = NoMemory();
    }
    if (!status.IsNotFound()) SaveError(&errors[i], status);
  }
}

}  // namespace

void braiddb_put(braiddb_t* db, const braiddb_writeoptions_t* options, const char* key, size_t key_length, const char* value,
                 size_t value_length, char** errptr) {
  if (db->user_filter == nullptr) {
    SaveError(errptr, WriteWith(options, [&](const auto& own) {
                return db->db->Put(own, {key, key_length}, {value, value_length});
              }));
    return;
  }
  SaveError(
      errptr, Guarded([&] {
        UserFilter::Writing writing(db->user_filter.get());
        writing.Touch({key, key_length});
        return WriteWith(options, [&](const auto& own) { return db->db->Put(own, {key, key_length}, {value, value_length}); });
      }));
}

void braiddb_put_cf(braiddb_t* db, const braiddb_writeoptions_t* options, braiddb_column_family_handle_t* column_family,
                    const char* key, size_t key_length, const char* value, size_t value_length, char** errptr) {
  if (IsDefault(column_family)) {
    braiddb_put(db, options, key, key_length, value, value_length, errptr);
    return;
  }
  SaveError(errptr, WriteWith(options, [&](const auto& own) {
              return db->db->Put(own, FamilyOf(column_family), {key, key_length}, {value, value_length});
            }));
}

void braiddb_delete_cf(braiddb_t* db, const braiddb_writeoptions_t* options, braiddb_column_family_handle_t* column_family,
                       const char* key, size_t key_length, char** errptr) {
  SaveError(errptr, WriteWith(options, [&](const auto& own) {
              return db->db->Delete(own, FamilyOf(column_family), {key, key_length});
            }));
}

void braiddb_singledelete_cf(braiddb_t* db, const braiddb_writeoptions_t* options, braiddb_column_family_handle_t* column_family,
                             const char* key, size_t key_length, char** errptr) {
  braiddb_delete_cf(db, options, column_family, key, key_length, errptr);
}

void braiddb_delete_range_cf(braiddb_t* db, const braiddb_writeoptions_t* options, braiddb_column_family_handle_t* column_family,
                             const char* start_key, size_t start_key_length, const char* limit_key, size_t limit_key_length,
                             char** errptr) {
  braiddb_writebatch_t batch;
  batch.DeleteRange(column_family, {start_key, start_key_length}, {limit_key, limit_key_length});
  SaveError(errptr, WriteBatchTo(db, options, batch));
}

void braiddb_delete(braiddb_t* db, const braiddb_writeoptions_t* options, const char* key, size_t key_length, char** errptr) {
  SaveError(errptr, WriteWith(options, [&](const auto& own) { return db->db->Delete(own, {key, key_length}); }));
}

void braiddb_singledelete(braiddb_t* db, const braiddb_writeoptions_t* options, const char* key, size_t key_length,
                          char** errptr) {
  braiddb_delete(db, options, key, key_length, errptr);
}

void braiddb_delete_range(braiddb_t* db, const braiddb_writeoptions_t* options, const char* start_key, size_t start_key_length,
                          const char* limit_key, size_t limit_key_length, char** errptr) {
  braiddb_writebatch_t batch;
  batch.DeleteRange({start_key, start_key_length}, {limit_key, limit_key_length});
  SaveError(errptr, WriteBatchTo(db, options, batch));
}

char* braiddb_get(braiddb_t* db, const braiddb_readoptions_t* options, const char* key, size_t key_length, size_t* value_length,
                  char** errptr) {
  if (!MayContain(db, options, {key, key_length})) {
    *value_length = 0;
    return nullptr;
  }
  return GiveValue(
      [&](MallocReceiver* value) {
        return db->db->GetTo(options->rep, {key, key_length}, value);
      },
      value_length, errptr);
}

char* braiddb_get_cf(braiddb_t* db, const braiddb_readoptions_t* options, braiddb_column_family_handle_t* column_family,
                     const char* key, size_t key_length, size_t* value_length, char** errptr) {
  if (IsDefault(column_family)) return braiddb_get(db, options, key, key_length, value_length, errptr);
  return GiveValue(
      [&](MallocReceiver* value) {
        return db->db->GetTo(options->rep, FamilyOf(column_family), {key, key_length}, value);
      },
      value_length, errptr);
}

braiddb_pinnableslice_t* braiddb_get_pinned(braiddb_t* db, const braiddb_readoptions_t* options, const char* key,
                                            size_t key_length, char** errptr) {
  if (!MayContain(db, options, {key, key_length})) return nullptr;
  return GivePinned(
      db, [&](auto* value) { return ReadTo(value, db, options->rep, Slice(key, key_length)); }, errptr);
}

braiddb_pinnableslice_t* braiddb_get_pinned_cf(braiddb_t* db, const braiddb_readoptions_t* options,
                                               braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                               char** errptr) {
  if (IsDefault(column_family)) return braiddb_get_pinned(db, options, key, key_length, errptr);
  return GivePinned(
      db, [&](auto* value) { return ReadTo(value, db, options->rep, FamilyOf(column_family), Slice(key, key_length)); }, errptr);
}

void braiddb_pinnableslice_destroy(braiddb_pinnableslice_t* value) {
  if (value != nullptr) delete value->pinned;
  std::free(value);
}

const char* braiddb_pinnableslice_value(const braiddb_pinnableslice_t* value, size_t* length) {
  *length = value == nullptr ? 0 : value->size;
  return value == nullptr ? nullptr : value->data;
}

void braiddb_multi_get(braiddb_t* db, const braiddb_readoptions_t* options, size_t count, const char* const* keys,
                       const size_t* key_lengths, char** values, size_t* value_lengths, char** errors) {
  std::vector<std::string> found;
  std::vector<Status> statuses;
  const Status all = Guarded([&] {
    std::vector<Slice> wanted;
    for (size_t i = 0; i < count; ++i) wanted.emplace_back(keys[i], key_lengths[i]);
    statuses = db->db->MultiGet(options->rep, wanted, &found);
    return Status::OK();
  });
  for (size_t i = 0; i < count && all.ok(); ++i) {
    if (statuses[i].ok() && !MayContain(db, options, {keys[i], key_lengths[i]})) statuses[i] = Status::NotFound();
  }
  GiveValues(all, &statuses, found, count, values, value_lengths, errors);
}

void braiddb_multi_get_cf(braiddb_t* db, const braiddb_readoptions_t* options,
                          const braiddb_column_family_handle_t* const* column_families, size_t count, const char* const* keys,
                          const size_t* key_lengths, char** values, size_t* value_lengths, char** errors) {
  std::vector<std::string> found;
  std::vector<Status> statuses;
  const Status all = Guarded([&] {
    std::vector<braiddb::ColumnFamilyHandle*> families;
    std::vector<Slice> wanted;
    for (size_t i = 0; i < count; ++i) {
      families.push_back(FamilyOf(column_families[i]));
      wanted.emplace_back(keys[i], key_lengths[i]);
    }
    statuses = db->db->MultiGet(options->rep, families, wanted, &found);
    return Status::OK();
  });
  for (size_t i = 0; i < count && all.ok(); ++i) {
    const bool asks_filter = statuses[i].ok() && IsDefault(column_families[i]);
    if (asks_filter && !MayContain(db, options, {keys[i], key_lengths[i]})) statuses[i] = Status::NotFound();
  }
  GiveValues(all, &statuses, found, count, values, value_lengths, errors);
}

// All reads use one snapshot: the caller's, or the current state.
void braiddb_batched_multi_get_cf(braiddb_t* db, const braiddb_readoptions_t* options,
                                  braiddb_column_family_handle_t* column_family, size_t count, const char* const* keys,
                                  const size_t* key_lengths, braiddb_pinnableslice_t** values, char** errors, bool) {
  braiddb::ReadOptions read = options->rep;
  const braiddb::Snapshot* taken = nullptr;
  const Status all = Guarded([&] {
    if (read.snapshot == nullptr) read.snapshot = taken = db->db->GetSnapshot();
    return Status::OK();
  });
  for (size_t i = 0; i < count; ++i) {
    values[i] = nullptr;
    errors[i] = nullptr;
    const Slice key(keys[i], key_lengths[i]);
    if (IsDefault(column_family) && !MayContain(db, options, key)) continue;
    values[i] = GivePinned(
        db, [&](auto* value) { return all.ok() ? ReadTo(value, db, read, FamilyOf(column_family), key) : all; }, &errors[i]);
  }
  if (taken != nullptr) db->db->ReleaseSnapshot(taken);
}

namespace {

// Takes ownership of `found`, the result of a get, and of `error`. The answer is exact; RocksDB's "may" allows false positives
// without a read. As in RocksDB, a value is returned only if the caller passes value_found. value_found is also set for a key
// that is known to be absent; the value is then empty.
unsigned char MayExist(char* found, size_t length, char* error, char** value, size_t* value_length, unsigned char* value_found) {
  const bool is_known = error == nullptr;
  const bool may = found != nullptr || !is_known;
  braiddb_free(error);
  if (value_found != nullptr) *value_found = 0;
  if (!is_known || value == nullptr || value_length == nullptr || value_found == nullptr) return braiddb_free(found), may;
  if (found == nullptr) found = CopyBytes({});
  if (found == nullptr) return may;  // memory is short
  *value = found;
  *value_length = length;
  *value_found = 1;
  return may;
}

}  // namespace

unsigned char braiddb_key_may_exist(braiddb_t* db, const braiddb_readoptions_t* options, const char* key, size_t key_length,
                                    char** value, size_t* value_length, const char*, size_t, unsigned char* value_found) {
  size_t length = 0;
  char* error = nullptr;
  char* const found = braiddb_get(db, options, key, key_length, &length, &error);
  return MayExist(found, length, error, value, value_length, value_found);
}

unsigned char braiddb_key_may_exist_cf(braiddb_t* db, const braiddb_readoptions_t* options,
                                       braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                       char** value, size_t* value_length, const char*, size_t, unsigned char* value_found) {
  size_t length = 0;
  char* error = nullptr;
  char* const found = braiddb_get_cf(db, options, column_family, key, key_length, &length, &error);
  return MayExist(found, length, error, value, value_length, value_found);
}

// ---- Snapshots

// Returns NULL if memory is short.
const braiddb_snapshot_t* braiddb_create_snapshot(braiddb_t* db) {
  std::unique_ptr<braiddb_snapshot_t> snapshot;
  Status status;
  DoOrNote(&status, [&] {
    snapshot = std::make_unique<braiddb_snapshot_t>();
    if (db->snapshots_see_newest) return;
    snapshot->rep = db->db->GetSnapshot();
    if (snapshot->rep == nullptr) snapshot.reset();  // a live reader has expired
  });
  return status.ok() ? snapshot.release() : nullptr;
}

void braiddb_release_snapshot(braiddb_t* db, const braiddb_snapshot_t* snapshot) {
  if (snapshot == nullptr) return;
  if (snapshot->rep != nullptr) db->db->ReleaseSnapshot(snapshot->rep);
  delete snapshot;
}
