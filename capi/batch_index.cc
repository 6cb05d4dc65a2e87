// Batches with an index, and iterators over such a batch and a database.
#include <memory>
#include <optional>
#include <vector>

#include "braiddb/write_batch_with_index.h"
#include "capi/batch.h"
#include "capi/iterator.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"

using braiddb::ColumnFamilyHandle;
using braiddb::Slice;
using braiddb::Status;
using braiddb::WriteBatchWithIndex;
using namespace braiddb::capi;

struct braiddb_writebatch_wi_t {
  explicit braiddb_writebatch_wi_t(const braiddb::Comparator* order) : comparator(order), rep(order) {}

  const braiddb::Comparator* const comparator;
  WriteBatchWithIndex rep;
  Status unfit;                          // as that of a batch without an index
  std::vector<bool> fit_at_save_points;  // for each of rep's

  void Put(Slice key, Slice value) noexcept { Add(nullptr, key, value, false); }
  void Delete(Slice key) noexcept { Add(nullptr, key, {}, true); }
  void Put(const braiddb_column_family_handle_t* family, Slice key, Slice value) noexcept;
  void Delete(const braiddb_column_family_handle_t* family, Slice key) noexcept;
  // Null: of the default family.
  void Add(const ColumnFamilyHandle* family, Slice key, Slice value, bool is_deletion) noexcept;
  void Refuse(const char* function, const char* missing) noexcept;
  void Clear();
  void SetSavePoint() noexcept;
  Status RollBack();
};

void braiddb_writebatch_wi_t::Add(const ColumnFamilyHandle* family, Slice key, Slice value, bool is_deletion) noexcept {
  Status status = Fits(key, value);
  if (status.ok()) {
    status = Guarded([&] { return is_deletion ? rep.Delete(family, key) : rep.Put(family, key, value), Status::OK(); });
  }
  if (!status.ok()) unfit = std::move(status);
}

void braiddb_writebatch_wi_t::Put(const braiddb_column_family_handle_t* family, Slice key, Slice value) noexcept {
  if (family == nullptr) {
    unfit = NoFamily();
  } else {
    Add(family->rep.get(), key, value, false);
  }
}

void braiddb_writebatch_wi_t::Delete(const braiddb_column_family_handle_t* family, Slice key) noexcept {
  if (family == nullptr) {
    unfit = NoFamily();
  } else {
    Add(family->rep.get(), key, {}, true);
  }
}

void braiddb_writebatch_wi_t::Refuse(const char* function, const char* missing) noexcept {
  unfit = Guarded([&] { return Status::NotSupported(std::string(function) + ": " + missing); });
}

void braiddb_writebatch_wi_t::Clear() {
  rep.Clear();
  unfit = Status::OK();
  fit_at_save_points.clear();
}

// Without memory there is no save point to go back to, and the batch is unfit for good: a rollback would take back too much.
void braiddb_writebatch_wi_t::SetSavePoint() noexcept {
  Status status = Guarded([&] {
    fit_at_save_points.push_back(unfit.ok());
    return rep.SetSavePoint(), Status::OK();
  });
  if (status.ok()) return;
  fit_at_save_points.clear();
  unfit = std::move(status);
}

Status braiddb_writebatch_wi_t::RollBack() {
  if (fit_at_save_points.empty()) return Status::NotFound("the batch has no save point");
  Status status = rep.RollbackToSavePoint();
  if (!status.ok()) return status;
  if (fit_at_save_points.back()) unfit = Status::OK();
  fit_at_save_points.pop_back();
  return status;
}

namespace {

// What the batch says of the key: true if it says anything. Null: that it is deleted.
bool AskBatch(const braiddb_writebatch_wi_t* batch, const ColumnFamilyHandle* family, Slice key, char** value, size_t* length,
              char** errptr) {
  *value = nullptr;
  *length = 0;
  Slice found;
  const WriteBatchWithIndex::Found said = batch->rep.Find(family, key, &found);
  if (said != WriteBatchWithIndex::Found::kValue) return said == WriteBatchWithIndex::Found::kDeletion;
  *value = CopyBytes(found);
  if (*value == nullptr) {
    SaveError(errptr, NoMemory());
  } else {
    *length = found.size();
  }
  return true;
}

}  // namespace

Status braiddb::capi::UpdatesOf(const braiddb_writebatch_wi_t& batch, const WriteBatch** updates) {
  *updates = &batch.rep.GetWriteBatch();
  return batch.unfit;
}

// A batch keeps all updates of a key, whatever overwrite_keys says, and the index has the last one, which wins.
braiddb_writebatch_wi_t* braiddb_writebatch_wi_create(size_t, unsigned char) {
  return Make<braiddb_writebatch_wi_t>(braiddb::BytewiseComparator());
}

braiddb_writebatch_wi_t* braiddb_writebatch_wi_create_with_comparator(const braiddb_comparator_t* comparator, unsigned char) {
  return Make<braiddb_writebatch_wi_t>(comparator == nullptr ? braiddb::BytewiseComparator() : comparator);
}

braiddb_writebatch_wi_t* braiddb_writebatch_wi_create_from(const char* data, size_t data_length) {
  auto* const batch = braiddb_writebatch_wi_create(0, 1);
  if (batch == nullptr) return nullptr;
  batch->unfit = Guarded([&] {
    braiddb::WriteBatch updates;
    Status status = braiddb::WriteBatch::FromData(Slice(data, data_length), &updates);
    return status.ok() ? batch->rep.Rebuild(updates) : status;
  });
  return batch;
}

void braiddb_writebatch_wi_destroy(braiddb_writebatch_wi_t* batch) { delete batch; }
void braiddb_writebatch_wi_clear(braiddb_writebatch_wi_t* batch) { batch->Clear(); }
int braiddb_writebatch_wi_count(braiddb_writebatch_wi_t* batch) {
  return batch == nullptr ? 0 : static_cast<int>(batch->rep.GetWriteBatch().Count());
}

void braiddb_writebatch_wi_put(braiddb_writebatch_wi_t* batch, const char* key, size_t key_length, const char* value,
                               size_t value_length) {
  batch->Put({key, key_length}, {value, value_length});
}

void braiddb_writebatch_wi_putv(braiddb_writebatch_wi_t* batch, int key_parts, const char* const* keys, const size_t* key_lengths,
                                int value_parts, const char* const* values, const size_t* value_lengths) {
  DoOrNote(&batch->unfit, [&] { batch->Put(Join(key_parts, keys, key_lengths), Join(value_parts, values, value_lengths)); });
}

void braiddb_writebatch_wi_delete(braiddb_writebatch_wi_t* batch, const char* key, size_t key_length) {
  batch->Delete({key, key_length});
}

void braiddb_writebatch_wi_singledelete(braiddb_writebatch_wi_t* batch, const char* key, size_t key_length) {
  batch->Delete({key, key_length});
}

void braiddb_writebatch_wi_deletev(braiddb_writebatch_wi_t* batch, int key_parts, const char* const* keys,
                                   const size_t* key_lengths) {
  DoOrNote(&batch->unfit, [&] { batch->Delete(Join(key_parts, keys, key_lengths)); });
}

// RocksDB's have no deletions of ranges either; the write tells.
void braiddb_writebatch_wi_delete_range(braiddb_writebatch_wi_t* batch, const char*, size_t, const char*, size_t) {
  batch->Refuse(__func__, "deletions of ranges in a batch with an index");
}

void braiddb_writebatch_wi_delete_rangev(braiddb_writebatch_wi_t* batch, int, const char* const*, const size_t*,
                                         const char* const*, const size_t*) {
  batch->Refuse(__func__, "deletions of ranges in a batch with an index");
}

void braiddb_writebatch_wi_merge(braiddb_writebatch_wi_t* batch, const char*, size_t, const char*, size_t) {
  batch->Refuse(__func__, kNoMerge);
}

void braiddb_writebatch_wi_mergev(braiddb_writebatch_wi_t* batch, int, const char* const*, const size_t*, int, const char* const*,
                                  const size_t*) {
  batch->Refuse(__func__, kNoMerge);
}

// ---- Of a family

void braiddb_writebatch_wi_put_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family, const char* key,
                                  size_t key_length, const char* value, size_t value_length) {
  batch->Put(column_family, {key, key_length}, {value, value_length});
}

void braiddb_writebatch_wi_putv_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family, int key_parts,
                                   const char* const* keys, const size_t* key_lengths, int value_parts, const char* const* values,
                                   const size_t* value_lengths) {
  batch->Put(column_family, Join(key_parts, keys, key_lengths), Join(value_parts, values, value_lengths));
}

void braiddb_writebatch_wi_delete_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family,
                                     const char* key, size_t key_length) {
  batch->Delete(column_family, {key, key_length});
}

void braiddb_writebatch_wi_singledelete_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family,
                                           const char* key, size_t key_length) {
  batch->Delete(column_family, {key, key_length});
}

void braiddb_writebatch_wi_deletev_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family,
                                      int key_parts, const char* const* keys, const size_t* key_lengths) {
  batch->Delete(column_family, Join(key_parts, keys, key_lengths));
}

void braiddb_writebatch_wi_delete_range_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t*, const char*, size_t,
                                           const char*, size_t) {
  batch->Refuse(__func__, "deletions of ranges in a batch with an index");
}

void braiddb_writebatch_wi_delete_rangev_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t*, int,
                                            const char* const*, const size_t*, const char* const*, const size_t*) {
  batch->Refuse(__func__, "deletions of ranges in a batch with an index");
}

void braiddb_writebatch_wi_merge_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t*, const char*, size_t,
                                    const char*, size_t) {
  batch->Refuse(__func__, kNoMerge);
}

void braiddb_writebatch_wi_mergev_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t*, int, const char* const*,
                                     const size_t*, int, const char* const*, const size_t*) {
  batch->Refuse(__func__, kNoMerge);
}

// It would be for those who read the log.
void braiddb_writebatch_wi_put_log_data(braiddb_writebatch_wi_t*, const char*, size_t) {}

void braiddb_writebatch_wi_iterate(braiddb_writebatch_wi_t* batch, void* state,
                                   void (*put)(void*, const char*, size_t, const char*, size_t),
                                   void (*deleted)(void*, const char*, size_t)) {
  IterateBatch(batch->rep.GetWriteBatch(), state, put, deleted);
}

// NULL, which a transaction gives for its own batch, is an empty one.
const char* braiddb_writebatch_wi_data(braiddb_writebatch_wi_t* batch, size_t* length) {
  if (batch == nullptr) {
    *length = 0;
    return "";
  }
  const std::string& data = batch->rep.GetWriteBatch().Data();
  *length = data.size();
  return data.data();
}

void braiddb_writebatch_wi_set_save_point(braiddb_writebatch_wi_t* batch) { batch->SetSavePoint(); }

void braiddb_writebatch_wi_rollback_to_save_point(braiddb_writebatch_wi_t* batch, char** errptr) {
  SaveError(errptr, Guarded([&] { return batch->RollBack(); }));
}

char* braiddb_writebatch_wi_get_from_batch(braiddb_writebatch_wi_t* batch, const braiddb_options_t*, const char* key,
                                           size_t key_length, size_t* value_length, char** errptr) {
  char* value;
  AskBatch(batch, nullptr, {key, key_length}, &value, value_length, errptr);
  return value;
}

char* braiddb_writebatch_wi_get_from_batch_and_db(braiddb_writebatch_wi_t* batch, braiddb_t* db,
                                                  const braiddb_readoptions_t* options, const char* key, size_t key_length,
                                                  size_t* value_length, char** errptr) {
  char* value;
  if (AskBatch(batch, nullptr, {key, key_length}, &value, value_length, errptr)) return value;
  return braiddb_get(db, options, key, key_length, value_length, errptr);
}

char* braiddb_writebatch_wi_get_from_batch_cf(braiddb_writebatch_wi_t* batch, const braiddb_options_t*,
                                              braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                              size_t* value_length, char** errptr) {
  char* value = nullptr;
  *value_length = 0;
  if (column_family == nullptr) {
    SaveError(errptr, NoFamily());
  } else {
    AskBatch(batch, FamilyOf(column_family), {key, key_length}, &value, value_length, errptr);
  }
  return value;
}

char* braiddb_writebatch_wi_get_from_batch_and_db_cf(braiddb_writebatch_wi_t* batch, braiddb_t* db,
                                                     const braiddb_readoptions_t* options,
                                                     braiddb_column_family_handle_t* column_family, const char* key,
                                                     size_t key_length, size_t* value_length, char** errptr) {
  char* value;
  const bool knows =
      column_family != nullptr && AskBatch(batch, FamilyOf(column_family), {key, key_length}, &value, value_length, errptr);
  return knows ? value : braiddb_get_cf(db, options, column_family, key, key_length, value_length, errptr);
}

namespace {

// In the order of the family: if the batch has another one, the iterator has a batch of its own, with what there is now.
// `family`: null for the default one.
Status PutOver(braiddb_iterator_t* base, const ColumnFamilyHandle* family, const braiddb_writebatch_wi_t& batch) {
  const WriteBatchWithIndex* over = &batch.rep;
  const braiddb::Comparator* const order_of_default = base->db->db->GetOptions().comparator;
  const uint32_t id = family == nullptr ? 0 : family->GetID();
  const braiddb::Comparator* const order = id == 0 ? order_of_default : family->GetOptions().comparator;
  const braiddb::Comparator* const order_of_batch = batch.rep.OrderOf(id);
  if (order_of_batch != nullptr && order_of_batch != order) {
    base->updates = std::make_unique<WriteBatchWithIndex>(order_of_default);
    base->updates->SetOrder(id, order);
    if (Status status = base->updates->Rebuild(batch.rep.GetWriteBatch()); !status.ok()) return status;
    over = base->updates.get();
  }
  base->rep = over->NewIteratorWithBase(family, std::move(base->rep), base->Bounds());
  const auto& extractor = base->db->db->GetOptions().prefix_extractor;
  if (base->prefix_same_as_start && extractor != nullptr) base->rep = NewPrefixIterator(std::move(base->rep), extractor);
  return Status::OK();
}

braiddb_iterator_t* CreateWithBase(braiddb_iterator_t* base, const ColumnFamilyHandle* family,
                                   const braiddb_writebatch_wi_t& batch) {
  if (!base->failed.ok()) return base;
  base->failed = Guarded([&] { return PutOver(base, family, batch); });
  if (!base->failed.ok()) base->rep.reset();  // nothing is to be seen without the batch
  return base;
}

}  // namespace

// The base iterator is owned by the new one, as in RocksDB: it is the same object. The bounds are those of the base. NULL
// of NULL.
braiddb_iterator_t* braiddb_writebatch_wi_create_iterator_with_base(braiddb_writebatch_wi_t* batch, braiddb_iterator_t* base) {
  return base == nullptr ? nullptr : CreateWithBase(base, nullptr, *batch);
}

// `base` is an iterator of that family.
braiddb_iterator_t* braiddb_writebatch_wi_create_iterator_with_base_cf(braiddb_writebatch_wi_t* batch, braiddb_iterator_t* base,
                                                                       braiddb_column_family_handle_t* column_family) {
  if (base == nullptr) return nullptr;
  if (column_family == nullptr) base->failed = NoFamily();
  return CreateWithBase(base, FamilyOf(column_family), *batch);
}

void braiddb_write_writebatch_wi(braiddb_t* db, const braiddb_writeoptions_t* options, braiddb_writebatch_wi_t* batch,
                                 char** errptr) {
  SaveError(errptr, Guarded([&] {
              const braiddb::WriteBatch* updates = nullptr;
              const Status status = UpdatesOf(*batch, &updates);
              return status.ok() ? WriteUpdates(db, options->rep(), *updates) : status;
            }));
}
