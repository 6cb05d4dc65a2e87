// Batches with an index, and iterators over a batch and a database.
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "braiddb/write_batch_with_index.h"
#include "capi/batch.h"
#include "capi/iterator.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"
#include "capi/transaction.h"

using braiddb::ColumnFamilyHandle;
using braiddb::Slice;
using braiddb::Status;
using braiddb::WriteBatchWithIndex;
using namespace braiddb::capi;

struct braiddb_writebatch_wi_t {
  explicit braiddb_writebatch_wi_t(const braiddb::Comparator* order) : comparator(order), rep(order) {}

  const braiddb::Comparator* const comparator;
  WriteBatchWithIndex rep;
  const braiddb_transaction_t* view = nullptr;  // if not null, this object is a read-only view of its batch, and `rep` is unused
  Status unfit;                                 // as in a batch without an index
  std::vector<bool> fit_at_save_points;         // one for each save point of rep
  std::vector<size_t> notes_at_save_points;     // number of notes at each save point
  WireNotes notes;
  WireForm own_wire;
  WireForm* wire = &own_wire;  // RocksDB's form of the data; a view uses the transaction's

  // If the transaction's database was closed, the view shows an empty batch.
  const WriteBatchWithIndex& updates() const {
    return view != nullptr && view->rep != nullptr ? view->rep->GetWriteBatch() : rep;
  }

  enum class Kind { kPut, kDelete, kMerge };

  void Put(Slice key, Slice value) noexcept { Add(nullptr, key, value, Kind::kPut); }
  void Delete(Slice key) noexcept { Add(nullptr, key, {}, Kind::kDelete); }
  void Merge(Slice key, Slice operand) noexcept { Add(nullptr, key, operand, Kind::kMerge); }
  void SingleDelete(const ColumnFamilyHandle* family, Slice key) noexcept;
  void Put(const braiddb_column_family_handle_t* family, Slice key, Slice value) noexcept {
    AddIn(family, key, value, Kind::kPut);
  }
  void Delete(const braiddb_column_family_handle_t* family, Slice key) noexcept { AddIn(family, key, {}, Kind::kDelete); }
  void Merge(const braiddb_column_family_handle_t* family, Slice key, Slice operand) noexcept {
    AddIn(family, key, operand, Kind::kMerge);
  }
  // A null family means the default family.
  void Add(const ColumnFamilyHandle* family, Slice key, Slice value, Kind kind) noexcept;
  void AddIn(const braiddb_column_family_handle_t* family, Slice key, Slice value, Kind kind) noexcept;
  void Refuse(const char* function, const char* missing) noexcept;
  void Clear();
  void SetSavePoint() noexcept;
  Status RollBack();
  // The status has no text, because views are not destroyed and would leak the text.
  static Status OnlyRead() { return Status::NotSupported({}); }
};

void braiddb_writebatch_wi_t::Add(const ColumnFamilyHandle* family, Slice key, Slice value, Kind kind) noexcept {
  Status status = view == nullptr ? Fits(key, value) : OnlyRead();
  if (status.ok()) {
    status = Guarded([&] {
      if (kind == Kind::kPut) rep.Put(family, key, value);
      if (kind == Kind::kDelete) rep.Delete(family, key);
      if (kind == Kind::kMerge) rep.Merge(family, key, value);
      return Status::OK();
    });
  }
  if (!status.ok()) unfit = std::move(status);
}

void braiddb_writebatch_wi_t::SingleDelete(const ColumnFamilyHandle* family, Slice key) noexcept {
  const uint32_t before = updates().GetWriteBatch().Count();
  Add(family, key, {}, Kind::kDelete);
  if (updates().GetWriteBatch().Count() == before) return;
  DoOrNote(&unfit, [&] { notes.notes.push_back({before, WireNotes::Kind::kSingleDelete, {}}); });
}

void braiddb_writebatch_wi_t::AddIn(const braiddb_column_family_handle_t* family, Slice key, Slice value, Kind kind) noexcept {
  if (family == nullptr) {
    unfit = NoFamily();
  } else {
    Add(family->rep.get(), key, value, kind);
  }
}

void braiddb_writebatch_wi_t::Refuse(const char* function, const char* missing) noexcept {
  if (view != nullptr) unfit = OnlyRead();
  if (view == nullptr) unfit = Guarded([&] { return Status::NotSupported(std::string(function) + ": " + missing); });
}

void braiddb_writebatch_wi_t::Clear() {
  if (view != nullptr) unfit = OnlyRead();
  if (view != nullptr) return;
  rep.Clear();
  unfit = Status::OK();
  fit_at_save_points.clear();
  notes_at_save_points.clear();
  notes.Clear();
  wire->Restart();
}

// If memory is short, no save point is created, and the batch becomes unfit. A rollback to an older save point would revert too
// much.
void braiddb_writebatch_wi_t::SetSavePoint() noexcept {
  if (view != nullptr) unfit = OnlyRead();
  if (view != nullptr) return;
  Status status = Guarded([&] {
    notes_at_save_points.push_back(notes.notes.size());
    fit_at_save_points.push_back(unfit.ok());
    wire->SetSavePoint(rep.GetWriteBatch(), notes);
    return rep.SetSavePoint(), Status::OK();
  });
  if (status.ok()) return;
  fit_at_save_points.clear();
  notes_at_save_points.clear();
  wire->Restart();
  unfit = std::move(status);
}

Status braiddb_writebatch_wi_t::RollBack() {
  if (fit_at_save_points.empty()) return Status::NotFound("the batch has no save point");
  Status status = rep.RollbackToSavePoint();
  if (!status.ok()) return status;
  if (fit_at_save_points.back()) unfit = Status::OK();
  fit_at_save_points.pop_back();
  notes.notes.resize(notes_at_save_points.back());
  notes_at_save_points.pop_back();
  wire->RollbackToSavePoint();
  return status;
}

namespace {

// The result of `read` for a C caller; null if nothing was found, or after an error.
template <class Read>
char* Found(const Read& read, size_t* length, char** errptr) {
  char* result = nullptr;
  *length = 0;
  SaveError(errptr, Guarded([&] {
              std::string value;
              Status status = read(&value);
              if (!status.ok()) return status.IsNotFound() ? Status::OK() : status;
              result = CopyBytes(value);
              if (result == nullptr) return NoMemory();
              *length = value.size();
              return status;
            }));
  return result;
}

// RocksDB's error for operands without their base value. Status has no such code.
char* SaveMergeInProgress(size_t* length, char** errptr) {
  *length = 0;
  if (errptr == nullptr) return nullptr;
  braiddb_free(*errptr);
  *errptr = CopyBytes("Merge in progress: ");
  return nullptr;
}

// `family`: null for the default family.
char* FoundInBatch(const braiddb_writebatch_wi_t& batch, const braiddb_options_t* options, const ColumnFamilyHandle* family,
                   Slice key, size_t* length, char** errptr) {
  const WriteBatchWithIndex& updates = batch.updates();
  Slice ignored;
  if (updates.Find(family, key, &ignored) == WriteBatchWithIndex::Found::kOperands && updates.NeedsBase(family, key)) {
    return SaveMergeInProgress(length, errptr);
  }
  const braiddb::MergeOperator* const merge = options == nullptr ? nullptr : options->own.merge_operator.get();
  return Found([&](std::string* value) { return updates.GetFromBatch(family, key, value, merge); }, length, errptr);
}

bool SaysNothingOf(const braiddb_writebatch_wi_t& batch, const ColumnFamilyHandle* family, Slice key) {
  Slice ignored;
  return batch.updates().Find(family, key, &ignored) == WriteBatchWithIndex::Found::kNothing;
}

}  // namespace

Status braiddb::capi::UpdatesOf(const braiddb_writebatch_wi_t& batch, const WriteBatch** updates) {
  *updates = &batch.updates().GetWriteBatch();
  return batch.unfit;
}

braiddb_writebatch_wi_t* braiddb::capi::MakeView(braiddb_transaction_t* transaction) {
  void* const memory = std::malloc(sizeof(braiddb_writebatch_wi_t));
  if (memory == nullptr) return nullptr;
  auto* const view = new (memory) braiddb_writebatch_wi_t(braiddb::BytewiseComparator());
  view->view = transaction;
  view->wire = &transaction->wire;
  return view;
}

// A batch keeps all updates of a key, also with overwrite_keys. The index refers to the last update, which wins.
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
    Status status = DecodeBatch({data, data_length}, &updates, &batch->notes);
    return status.ok() ? batch->rep.Rebuild(updates) : status;
  });
  return batch;
}

void braiddb_writebatch_wi_destroy(braiddb_writebatch_wi_t* batch) { delete batch; }
void braiddb_writebatch_wi_clear(braiddb_writebatch_wi_t* batch) { batch->Clear(); }
int braiddb_writebatch_wi_count(braiddb_writebatch_wi_t* batch) {
  return batch == nullptr ? 0 : static_cast<int>(batch->updates().GetWriteBatch().Count());
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
  batch->SingleDelete(nullptr, {key, key_length});
}

void braiddb_writebatch_wi_deletev(braiddb_writebatch_wi_t* batch, int key_parts, const char* const* keys,
                                   const size_t* key_lengths) {
  DoOrNote(&batch->unfit, [&] { batch->Delete(Join(key_parts, keys, key_lengths)); });
}

// RocksDB's indexed batch does not support range deletions either. The write returns the error.
void braiddb_writebatch_wi_delete_range(braiddb_writebatch_wi_t* batch, const char*, size_t, const char*, size_t) {
  batch->Refuse(__func__, "deletions of ranges in a batch with an index");
}

void braiddb_writebatch_wi_delete_rangev(braiddb_writebatch_wi_t* batch, int, const char* const*, const size_t*,
                                         const char* const*, const size_t*) {
  batch->Refuse(__func__, "deletions of ranges in a batch with an index");
}

void braiddb_writebatch_wi_merge(braiddb_writebatch_wi_t* batch, const char* key, size_t key_length, const char* value,
                                 size_t value_length) {
  batch->Merge({key, key_length}, {value, value_length});
}

void braiddb_writebatch_wi_mergev(braiddb_writebatch_wi_t* batch, int key_parts, const char* const* keys,
                                  const size_t* key_lengths, int value_parts, const char* const* values,
                                  const size_t* value_lengths) {
  DoOrNote(&batch->unfit, [&] { batch->Merge(Join(key_parts, keys, key_lengths), Join(value_parts, values, value_lengths)); });
}

// ---- With a family

void braiddb_writebatch_wi_put_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family, const char* key,
                                  size_t key_length, const char* value, size_t value_length) {
  batch->Put(column_family, {key, key_length}, {value, value_length});
}

void braiddb_writebatch_wi_putv_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family, int key_parts,
                                   const char* const* keys, const size_t* key_lengths, int value_parts, const char* const* values,
                                   const size_t* value_lengths) {
  DoOrNote(&batch->unfit,
           [&] { batch->Put(column_family, Join(key_parts, keys, key_lengths), Join(value_parts, values, value_lengths)); });
}

void braiddb_writebatch_wi_delete_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family,
                                     const char* key, size_t key_length) {
  batch->Delete(column_family, {key, key_length});
}

void braiddb_writebatch_wi_singledelete_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family,
                                           const char* key, size_t key_length) {
  if (column_family == nullptr) {
    batch->unfit = NoFamily();
  } else {
    batch->SingleDelete(FamilyOf(column_family), {key, key_length});
  }
}

void braiddb_writebatch_wi_deletev_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family,
                                      int key_parts, const char* const* keys, const size_t* key_lengths) {
  DoOrNote(&batch->unfit, [&] { batch->Delete(column_family, Join(key_parts, keys, key_lengths)); });
}

void braiddb_writebatch_wi_delete_range_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t*, const char*, size_t,
                                           const char*, size_t) {
  batch->Refuse(__func__, "deletions of ranges in a batch with an index");
}

void braiddb_writebatch_wi_delete_rangev_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t*, int,
                                            const char* const*, const size_t*, const char* const*, const size_t*) {
  batch->Refuse(__func__, "deletions of ranges in a batch with an index");
}

void braiddb_writebatch_wi_merge_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family,
                                    const char* key, size_t key_length, const char* value, size_t value_length) {
  batch->Merge(column_family, {key, key_length}, {value, value_length});
}

void braiddb_writebatch_wi_mergev_cf(braiddb_writebatch_wi_t* batch, braiddb_column_family_handle_t* column_family, int key_parts,
                                     const char* const* keys, const size_t* key_lengths, int value_parts,
                                     const char* const* values, const size_t* value_lengths) {
  DoOrNote(&batch->unfit,
           [&] { batch->Merge(column_family, Join(key_parts, keys, key_lengths), Join(value_parts, values, value_lengths)); });
}

// Only readers of the batch's data see it. It is not written to the log.
void braiddb_writebatch_wi_put_log_data(braiddb_writebatch_wi_t* batch, const char* data, size_t length) {
  if (batch->view != nullptr) return;
  DoOrNote(&batch->unfit, [&] {
    const uint32_t before = batch->rep.GetWriteBatch().Count();
    batch->notes.notes.push_back({before, WireNotes::Kind::kLogData, std::string(data, length)});
  });
}

void braiddb_writebatch_wi_iterate(braiddb_writebatch_wi_t* batch, void* state,
                                   void (*put)(void*, const char*, size_t, const char*, size_t),
                                   void (*deleted)(void*, const char*, size_t)) {
  IterateBatch(batch->updates().GetWriteBatch(), state, put, deleted);
}

// Returns no bytes for a NULL batch, and if memory for the data is short.
const char* braiddb_writebatch_wi_data(braiddb_writebatch_wi_t* batch, size_t* length) {
  if (batch == nullptr) {
    *length = 0;
    return "";
  }
  Slice data;
  const Status status = Guarded([&] {
    data = batch->wire->Update(batch->updates().GetWriteBatch(), batch->notes);
    return Status::OK();
  });
  *length = status.ok() ? data.size() : 0;
  return status.ok() ? data.data() : "";
}

void braiddb_writebatch_wi_set_save_point(braiddb_writebatch_wi_t* batch) { batch->SetSavePoint(); }

void braiddb_writebatch_wi_rollback_to_save_point(braiddb_writebatch_wi_t* batch, char** errptr) {
  SaveError(errptr, Guarded([&] { return batch->RollBack(); }));
}

char* braiddb_writebatch_wi_get_from_batch(braiddb_writebatch_wi_t* batch, const braiddb_options_t* options, const char* key,
                                           size_t key_length, size_t* value_length, char** errptr) {
  return FoundInBatch(*batch, options, nullptr, {key, key_length}, value_length, errptr);
}

char* braiddb_writebatch_wi_get_from_batch_and_db(braiddb_writebatch_wi_t* batch, braiddb_t* db,
                                                  const braiddb_readoptions_t* options, const char* key, size_t key_length,
                                                  size_t* value_length, char** errptr) {
  if (SaysNothingOf(*batch, nullptr, {key, key_length})) return braiddb_get(db, options, key, key_length, value_length, errptr);
  const auto read = [&](std::string* value) {
    return batch->updates().GetFromBatchAndDB(db->db.get(), options->rep, {key, key_length}, value);
  };
  return Found(read, value_length, errptr);
}

// Uses the family's merge operator, as RocksDB does: `options` are the database's.
char* braiddb_writebatch_wi_get_from_batch_cf(braiddb_writebatch_wi_t* batch, const braiddb_options_t*,
                                              braiddb_column_family_handle_t* column_family, const char* key, size_t key_length,
                                              size_t* value_length, char** errptr) {
  *value_length = 0;
  if (column_family == nullptr) return SaveError(errptr, NoFamily()), nullptr;
  return FoundInBatch(*batch, nullptr, FamilyOf(column_family), {key, key_length}, value_length, errptr);
}

char* braiddb_writebatch_wi_get_from_batch_and_db_cf(braiddb_writebatch_wi_t* batch, braiddb_t* db,
                                                     const braiddb_readoptions_t* options,
                                                     braiddb_column_family_handle_t* column_family, const char* key,
                                                     size_t key_length, size_t* value_length, char** errptr) {
  if (column_family == nullptr || SaysNothingOf(*batch, FamilyOf(column_family), {key, key_length}))
    return braiddb_get_cf(db, options, column_family, key, key_length, value_length, errptr);
  const auto read = [&](std::string* value) {
    return batch->updates().GetFromBatchAndDB(db->db.get(), options->rep, FamilyOf(column_family), {key, key_length}, value);
  };
  return Found(read, value_length, errptr);
}

namespace {

// Shows the batch over the base iterator, in the family's key order. If the batch has another order, the iterator gets a copy of
// the current updates. `family`: null for the default family.
Status PutOver(braiddb_iterator_t* base, const ColumnFamilyHandle* family, const braiddb_writebatch_wi_t& batch) {
  const WriteBatchWithIndex* over = &batch.updates();
  const braiddb::Comparator* const order_of_default = base->db->db->GetOptions().comparator;
  const uint32_t id = family == nullptr ? 0 : family->GetID();
  const braiddb::Comparator* const order = id == 0 ? order_of_default : family->GetOptions().comparator;
  const braiddb::Comparator* const order_of_batch = batch.updates().OrderOf(id);
  if (order_of_batch != nullptr && order_of_batch != order) {
    base->updates = std::make_unique<WriteBatchWithIndex>(order_of_default);
    base->updates->SetOrder(id, order);
    if (Status status = base->updates->Rebuild(batch.updates().GetWriteBatch()); !status.ok()) return status;
    over = base->updates.get();
  }
  base->tail.reset();  // the batch is layered on the current state only
  base->rep = over->NewIteratorWithBase(family == nullptr ? base->db->db->DefaultColumnFamily() : family, std::move(base->rep),
                                        base->Bounds());
  const auto& extractor = base->db->db->GetOptions().prefix_extractor;
  if (base->prefix_same_as_start && extractor != nullptr) base->rep = NewPrefixIterator(std::move(base->rep), extractor);
  return Status::OK();
}

braiddb_iterator_t* CreateWithBase(braiddb_iterator_t* base, const ColumnFamilyHandle* family,
                                   const braiddb_writebatch_wi_t& batch) {
  if (!base->failed.ok()) return base;
  base->failed = Guarded([&] { return PutOver(base, family, batch); });
  if (!base->failed.ok()) base->rep.reset();  // without the batch the iterator must show nothing
  return base;
}

}  // namespace

// The new iterator owns the base iterator, as in RocksDB: both are the same object. The bounds are the base's. Returns NULL for
// NULL.
braiddb_iterator_t* braiddb_writebatch_wi_create_iterator_with_base(braiddb_writebatch_wi_t* batch, braiddb_iterator_t* base) {
  return base == nullptr ? nullptr : CreateWithBase(base, nullptr, *batch);
}

// `base` must iterate over that family.
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
              return status.ok() ? WriteUpdates(db, options, *updates) : status;
            }));
}
