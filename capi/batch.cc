#include "capi/batch.h"

#include <algorithm>
#include <utility>

#include "braiddb/column_family.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"

using braiddb::Slice;
using braiddb::Status;
using namespace braiddb::capi;

// ---- Methods of batches

Status braiddb::capi::Fits(Slice key, Slice value) {
  if (key.size() > braiddb::kMaxKeySize) return Status::InvalidArgument("a key of a batch is longer than 64 KiB");
  if (value.size() > braiddb::kMaxValueSize) return Status::InvalidArgument("a value of a batch is longer than 1 GiB");
  return Status::OK();
}

Status braiddb::capi::BoundsFit(Slice start, Slice limit) {
  if (std::max(start.size(), limit.size()) <= braiddb::kMaxKeySize + 1) return Status::OK();
  return Status::InvalidArgument("a bound of a range is longer than 64 KiB and one byte");
}

Status braiddb::capi::NoFamily() noexcept {
  return Guarded([] { return Status::InvalidArgument("the column family handle is null"); });
}

void braiddb_writebatch_t::PutCF(uint32_t family, Slice key, Slice value) noexcept {
  Status status = Fits(key, value);
  if (status.ok()) status = Guarded([&] { return rep.PutCF(family, key, value), Status::OK(); });
  if (!status.ok()) unfit = std::move(status);
}

void braiddb_writebatch_t::DeleteCF(uint32_t family, Slice key) noexcept {
  Status status = Fits(key, {});
  if (status.ok()) status = Guarded([&] { return rep.DeleteCF(family, key), Status::OK(); });
  if (!status.ok()) unfit = std::move(status);
}

// Acts as Delete. The note keeps the type for readers of the batch's data.
void braiddb_writebatch_t::SingleDeleteCF(uint32_t family, Slice key) noexcept {
  const uint32_t before = rep.Count();
  DeleteCF(family, key);
  if (rep.Count() == before) return;
  DoOrNote(&unfit, [&] { notes.notes.push_back({before, WireNotes::Kind::kSingleDelete, {}}); });
}

void braiddb_writebatch_t::MergeCF(uint32_t family, Slice key, Slice operand) noexcept {
  Status status = Fits(key, operand);
  if (status.ok()) status = Guarded([&] { return rep.MergeCF(family, key, operand), Status::OK(); });
  if (!status.ok()) unfit = std::move(status);
}

void braiddb_writebatch_t::Put(const braiddb_column_family_handle_t* family, Slice key, Slice value) noexcept {
  if (family == nullptr) {
    unfit = NoFamily();
  } else {
    PutCF(family->rep->GetID(), key, value);
  }
}

void braiddb_writebatch_t::Delete(const braiddb_column_family_handle_t* family, Slice key) noexcept {
  if (family == nullptr) {
    unfit = NoFamily();
  } else {
    DeleteCF(family->rep->GetID(), key);
  }
}

void braiddb_writebatch_t::SingleDelete(const braiddb_column_family_handle_t* family, Slice key) noexcept {
  if (family == nullptr) {
    unfit = NoFamily();
  } else {
    SingleDeleteCF(family->rep->GetID(), key);
  }
}

void braiddb_writebatch_t::Merge(const braiddb_column_family_handle_t* family, Slice key, Slice operand) noexcept {
  if (family == nullptr) {
    unfit = NoFamily();
  } else {
    MergeCF(family->rep->GetID(), key, operand);
  }
}

void braiddb_writebatch_t::DeleteRangeCF(uint32_t family, Slice start, Slice limit) noexcept {
  Status status = Guarded([&] { return BoundsFit(start, limit); });
  if (status.ok()) status = Guarded([&] { return rep.DeleteRangeCF(family, start, limit), Status::OK(); });
  if (!status.ok()) unfit = std::move(status);
}

void braiddb_writebatch_t::DeleteRange(const braiddb_column_family_handle_t* family, Slice start, Slice limit) noexcept {
  if (family == nullptr) {
    unfit = NoFamily();
  } else {
    DeleteRangeCF(family->rep->GetID(), start, limit);
  }
}

namespace {

// The error of an update at a timestamp that no family takes.
Status CheckAt(const braiddb_column_family_handle_t* family, Slice key, Slice timestamp, Slice value) {
  if (family == nullptr) return NoFamily();
  const size_t size = family->rep->GetOptions().comparator->timestamp_size();
  if (size == 0) {
    return Status::InvalidArgument("cannot call this method on column family " + family->rep->GetName() +
                                   " that does not enable timestamp");  // RocksDB's text
  }
  if (size != timestamp.size()) {
    return Status::InvalidArgument("Timestamp sizes mismatch: expect " + std::to_string(size) + ", " +
                                   std::to_string(timestamp.size()) + " given");  // RocksDB's text
  }
  if (key.size() + timestamp.size() > braiddb::kMaxKeySize || value.size() >= braiddb::kMaxValueSize)
    return Status::InvalidArgument("a key with its timestamp is longer than 64 KiB, or a value is longer than 1 GiB - 1 byte");
  return Status::OK();
}

}  // namespace

void braiddb_writebatch_t::PutAt(const braiddb_column_family_handle_t* family, Slice key, Slice timestamp, Slice value) noexcept {
  DoOrNote(&unfit, [&] {
    Status status = CheckAt(family, key, timestamp, value);
    status.ok() ? rep.PutAt(family->rep.get(), key, timestamp, value) : void(unfit = std::move(status));
  });
}

void braiddb_writebatch_t::DeleteAt(const braiddb_column_family_handle_t* family, Slice key, Slice timestamp) noexcept {
  DoOrNote(&unfit, [&] {
    Status status = CheckAt(family, key, timestamp, {});
    status.ok() ? rep.DeleteAt(family->rep.get(), key, timestamp) : void(unfit = std::move(status));
  });
}

void braiddb_writebatch_t::SingleDeleteAt(const braiddb_column_family_handle_t* family, Slice key, Slice timestamp) noexcept {
  DoOrNote(&unfit, [&] {
    Status status = CheckAt(family, key, timestamp, {});
    status.ok() ? rep.SingleDeleteAt(family->rep.get(), key, timestamp) : void(unfit = std::move(status));
  });
}

// If memory is short, no save point is created, and the batch becomes unfit. A rollback to an older save point would revert too
// much.
void braiddb_writebatch_t::SetSavePoint() noexcept {
  Status status = Guarded([&] {
    save_points.push_back({unfit.ok(), notes.notes.size()});
    wire.SetSavePoint(rep, notes);
    rep.SetSavePoint();
    return Status::OK();
  });
  if (status.ok()) return;
  save_points.clear();
  wire.Restart();
  unfit = std::move(status);
}

void braiddb_writebatch_t::Clear() {
  rep.Clear();
  unfit = Status::OK();
  save_points.clear();
  notes.Clear();
  damaged.clear();
  wire.Restart();
}

Status braiddb_writebatch_t::PopSavePoint() {
  if (save_points.empty()) return Status::NotFound("the batch has no save point");
  save_points.pop_back();
  wire.PopSavePoint();
  return rep.PopSavePoint();
}

Status braiddb_writebatch_t::RollBack() {
  if (save_points.empty()) return Status::NotFound("the batch has no save point");
  const SavePoint point = save_points.back();
  if (Status status = rep.RollbackToSavePoint(); !status.ok()) return status;
  if (point.fit) unfit = Status::OK();
  notes.notes.resize(point.notes);
  wire.RollbackToSavePoint();
  save_points.pop_back();
  return Status::OK();
}

namespace braiddb::capi {

std::string Join(int count, const char* const* parts, const size_t* lengths) {
  std::string whole;
  for (int i = 0; i < count; ++i) whole.append(parts[i], lengths[i]);
  return whole;
}

namespace {

// Tells a user's filter policy which keys a batch writes.
class Toucher : public WriteBatch::Handler {
 public:
  explicit Toucher(UserFilter::Writing* writing) : writing_(writing) {}
  void Put(Slice key, Slice) override { writing_->Touch(key); }
  void Merge(Slice key, Slice) override { writing_->Touch(key); }
  void Delete(Slice) override {}  // a stale filter cannot hide a deleted key
  // The filter covers only the default family.
  Status PutCF(uint32_t family, Slice key, Slice) override {
    if (family == 0) writing_->Touch(key);
    return Status::OK();
  }
  Status DeleteCF(uint32_t, Slice) override { return Status::OK(); }
  Status MergeCF(uint32_t family, Slice key, Slice operand) override { return PutCF(family, key, operand); }
  Status DeleteRangeCF(uint32_t, Slice, Slice) override { return Status::OK(); }
  Status PutAtCF(uint32_t family, Slice key, Slice, Slice value) override { return PutCF(family, key, value); }
  Status DeleteAtCF(uint32_t, Slice, Slice) override { return Status::OK(); }
  Status SingleDeleteAtCF(uint32_t, Slice, Slice) override { return Status::OK(); }
  Status DeleteRangeAtCF(uint32_t, Slice, Slice, Slice) override { return Status::OK(); }

 private:
  UserFilter::Writing* const writing_;
};

}  // namespace

Status WriteUpdates(braiddb_t* db, const braiddb_writeoptions_t* options, const WriteBatch& updates) {
  const auto write = [&](const WriteOptions& own) { return db->db->Write(own, updates); };
  if (db->user_filter == nullptr) return WriteWith(options, write);
  UserFilter::Writing writing(db->user_filter.get());
  Toucher toucher(&writing);
  Status status = updates.Iterate(&toucher);
  return status.ok() ? WriteWith(options, write) : status;
}

Status WriteBatchTo(braiddb_t* db, const braiddb_writeoptions_t* options, const braiddb_writebatch_t& batch) {
  if (!batch.unfit.ok()) return batch.unfit;
  return Guarded([&] { return WriteUpdates(db, options, batch.rep); });
}

void IterateBatch(const WriteBatch& batch, void* state, void (*put)(void*, const char*, size_t, const char*, size_t),
                  void (*deleted)(void*, const char*, size_t)) {
  struct Caller : WriteBatch::Handler {
    void* state;
    void (*put)(void*, const char*, size_t, const char*, size_t);
    void (*deleted)(void*, const char*, size_t);
    void Put(Slice key, Slice value) override { put(state, key.data(), key.size(), value.data(), value.size()); }
    void Delete(Slice key) override { deleted(state, key.data(), key.size()); }
    void Merge(Slice, Slice) override {}                                            // no callback for these, as in RocksDB
    Status DeleteRangeCF(uint32_t, Slice, Slice) override { return Status::OK(); }  // no callback either
    // A timestamp is a part of the key. It follows the key in memory.
    Status PutAtCF(uint32_t family, Slice key, Slice timestamp, Slice value) override {
      return PutCF(family, {key.data(), key.size() + timestamp.size()}, value);
    }
    Status DeleteAtCF(uint32_t family, Slice key, Slice timestamp) override {
      return DeleteCF(family, {key.data(), key.size() + timestamp.size()});
    }
    Status SingleDeleteAtCF(uint32_t family, Slice key, Slice timestamp) override { return DeleteAtCF(family, key, timestamp); }
    Status DeleteRangeAtCF(uint32_t, Slice, Slice, Slice) override { return Status::OK(); }
  };
  Caller caller;
  caller.state = state;
  caller.put = put;
  caller.deleted = deleted;
  // checked when the batch was made; an update of another family ends the iteration
  const Status ignored = batch.Iterate(&caller);
  (void)ignored;
}

}  // namespace braiddb::capi

// ---- The functions

braiddb_writebatch_t* braiddb_writebatch_create() { return Make<braiddb_writebatch_t>(); }

braiddb_writebatch_t* braiddb_writebatch_create_from(const char* data, size_t data_length) {
  auto* const batch = Make<braiddb_writebatch_t>();
  if (batch == nullptr) return nullptr;
  batch->unfit = Guarded([&] { return DecodeBatch({data, data_length}, &batch->rep, &batch->notes); });
  if (!batch->unfit.ok()) DoOrNote(&batch->unfit, [&] { batch->damaged.assign(data, data_length); });
  return batch;
}

void braiddb_writebatch_destroy(braiddb_writebatch_t* batch) { delete batch; }
void braiddb_writebatch_clear(braiddb_writebatch_t* batch) { batch->Clear(); }
int braiddb_writebatch_count(braiddb_writebatch_t* batch) {
  return static_cast<int>(batch->damaged.empty() ? batch->rep.Count() : CountOf(batch->damaged));
}

void braiddb_writebatch_put(braiddb_writebatch_t* batch, const char* key, size_t key_length, const char* value,
                            size_t value_length) {
  batch->Put({key, key_length}, {value, value_length});
}

void braiddb_writebatch_putv(braiddb_writebatch_t* batch, int key_parts, const char* const* keys, const size_t* key_lengths,
                             int value_parts, const char* const* values, const size_t* value_lengths) {
  DoOrNote(&batch->unfit, [&] { batch->Put(Join(key_parts, keys, key_lengths), Join(value_parts, values, value_lengths)); });
}

void braiddb_writebatch_delete(braiddb_writebatch_t* batch, const char* key, size_t key_length) {
  batch->Delete({key, key_length});
}

void braiddb_writebatch_singledelete(braiddb_writebatch_t* batch, const char* key, size_t key_length) {
  batch->SingleDeleteCF(0, {key, key_length});
}

void braiddb_writebatch_deletev(braiddb_writebatch_t* batch, int key_parts, const char* const* keys, const size_t* key_lengths) {
  DoOrNote(&batch->unfit, [&] { batch->Delete(Join(key_parts, keys, key_lengths)); });
}

void braiddb_writebatch_delete_range(braiddb_writebatch_t* batch, const char* start_key, size_t start_key_length,
                                     const char* limit_key, size_t limit_key_length) {
  batch->DeleteRange({start_key, start_key_length}, {limit_key, limit_key_length});
}

void braiddb_writebatch_delete_rangev(braiddb_writebatch_t* batch, int key_parts, const char* const* start_keys,
                                      const size_t* start_key_lengths, const char* const* limit_keys,
                                      const size_t* limit_key_lengths) {
  DoOrNote(&batch->unfit, [&] {
    batch->DeleteRange(Join(key_parts, start_keys, start_key_lengths), Join(key_parts, limit_keys, limit_key_lengths));
  });
}

void braiddb_writebatch_merge(braiddb_writebatch_t* batch, const char* key, size_t key_length, const char* value,
                              size_t value_length) {
  batch->Merge({key, key_length}, {value, value_length});
}

void braiddb_writebatch_mergev(braiddb_writebatch_t* batch, int key_parts, const char* const* keys, const size_t* key_lengths,
                               int value_parts, const char* const* values, const size_t* value_lengths) {
  DoOrNote(&batch->unfit, [&] { batch->Merge(Join(key_parts, keys, key_lengths), Join(value_parts, values, value_lengths)); });
}

// ---- With a family

void braiddb_writebatch_put_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family, const char* key,
                               size_t key_length, const char* value, size_t value_length) {
  batch->Put(column_family, {key, key_length}, {value, value_length});
}

void braiddb_writebatch_putv_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family, int key_parts,
                                const char* const* keys, const size_t* key_lengths, int value_parts, const char* const* values,
                                const size_t* value_lengths) {
  DoOrNote(&batch->unfit,
           [&] { batch->Put(column_family, Join(key_parts, keys, key_lengths), Join(value_parts, values, value_lengths)); });
}

void braiddb_writebatch_delete_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family, const char* key,
                                  size_t key_length) {
  batch->Delete(column_family, {key, key_length});
}

void braiddb_writebatch_singledelete_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                        const char* key, size_t key_length) {
  batch->SingleDelete(column_family, {key, key_length});
}

void braiddb_writebatch_deletev_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family, int key_parts,
                                   const char* const* keys, const size_t* key_lengths) {
  DoOrNote(&batch->unfit, [&] { batch->Delete(column_family, Join(key_parts, keys, key_lengths)); });
}

void braiddb_writebatch_delete_range_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                        const char* start_key, size_t start_key_length, const char* limit_key,
                                        size_t limit_key_length) {
  batch->DeleteRange(column_family, {start_key, start_key_length}, {limit_key, limit_key_length});
}

void braiddb_writebatch_delete_rangev_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family,
                                         int key_parts, const char* const* start_keys, const size_t* start_key_lengths,
                                         const char* const* limit_keys, const size_t* limit_key_lengths) {
  DoOrNote(&batch->unfit, [&] {
    batch->DeleteRange(column_family, Join(key_parts, start_keys, start_key_lengths),
                       Join(key_parts, limit_keys, limit_key_lengths));
  });
}

void braiddb_writebatch_merge_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family, const char* key,
                                 size_t key_length, const char* value, size_t value_length) {
  batch->Merge(column_family, {key, key_length}, {value, value_length});
}

void braiddb_writebatch_mergev_cf(braiddb_writebatch_t* batch, braiddb_column_family_handle_t* column_family, int key_parts,
                                  const char* const* keys, const size_t* key_lengths, int value_parts, const char* const* values,
                                  const size_t* value_lengths) {
  DoOrNote(&batch->unfit,
           [&] { batch->Merge(column_family, Join(key_parts, keys, key_lengths), Join(value_parts, values, value_lengths)); });
}

// Only readers of the batch's data see it. It is not written to the log.
void braiddb_writebatch_put_log_data(braiddb_writebatch_t* batch, const char* data, size_t length) {
  DoOrNote(&batch->unfit, [&] {
    batch->notes.notes.push_back({batch->rep.Count(), WireNotes::Kind::kLogData, std::string(data, length)});
  });
}

void braiddb_writebatch_iterate(braiddb_writebatch_t* batch, void* state,
                                void (*put)(void*, const char*, size_t, const char*, size_t),
                                void (*deleted)(void*, const char*, size_t)) {
  IterateBatch(batch->rep, state, put, deleted);
}

void braiddb_writebatch_iterate_cf(braiddb_writebatch_t* batch, void* state,
                                   void (*put)(void*, uint32_t, const char*, size_t, const char*, size_t),
                                   void (*deleted)(void*, uint32_t, const char*, size_t)) {
  struct Caller : braiddb::WriteBatch::Handler {
    void* state;
    void (*put)(void*, uint32_t, const char*, size_t, const char*, size_t);
    void (*deleted)(void*, uint32_t, const char*, size_t);
    void Put(Slice, Slice) override {}
    void Delete(Slice) override {}
    void Merge(Slice, Slice) override {}
    Status MergeCF(uint32_t, Slice, Slice) override { return Status::OK(); }  // C has no callback for these, as in RocksDB
    Status DeleteRangeCF(uint32_t, Slice, Slice) override { return Status::OK(); }
    Status PutCF(uint32_t family, Slice key, Slice value) override {
      return put(state, family, key.data(), key.size(), value.data(), value.size()), Status::OK();
    }
    Status DeleteCF(uint32_t family, Slice key) override { return deleted(state, family, key.data(), key.size()), Status::OK(); }
  } caller;
  caller.state = state;
  caller.put = put;
  caller.deleted = deleted;
  const Status ignored = batch->rep.Iterate(&caller);  // checked when the batch was made
  (void)ignored;
}

// Returns NULL if memory is short; RocksDB returns NULL for an empty batch.
const char* braiddb_writebatch_data(braiddb_writebatch_t* batch, size_t* length) {
  Slice data = batch->damaged;
  const Status status = Guarded([&] {
    if (batch->damaged.empty()) data = batch->wire.Update(batch->rep, batch->notes);
    return Status::OK();
  });
  *length = status.ok() ? data.size() : 0;
  return status.ok() ? data.data() : nullptr;
}

void braiddb_writebatch_set_save_point(braiddb_writebatch_t* batch) { batch->SetSavePoint(); }

void braiddb_writebatch_rollback_to_save_point(braiddb_writebatch_t* batch, char** errptr) {
  SaveError(errptr, Guarded([&] { return batch->RollBack(); }));
}

void braiddb_writebatch_pop_save_point(braiddb_writebatch_t* batch, char** errptr) { SaveError(errptr, batch->PopSavePoint()); }

static void Append(braiddb_writebatch_t* destination, const braiddb_writebatch_t& source) {
  struct Appender : braiddb::WriteBatch::Handler {
    braiddb_writebatch_t* to;
    void Put(Slice, Slice) override {}
    void Delete(Slice) override {}
    void Merge(Slice, Slice) override {}
    Status PutCF(uint32_t family, Slice key, Slice value) override { return to->PutCF(family, key, value), Status::OK(); }
    Status DeleteCF(uint32_t family, Slice key) override { return to->DeleteCF(family, key), Status::OK(); }
    Status MergeCF(uint32_t family, Slice key, Slice operand) override { return to->MergeCF(family, key, operand), Status::OK(); }
    Status DeleteRangeCF(uint32_t family, Slice start, Slice limit) override {
      return to->DeleteRangeCF(family, start, limit), Status::OK();
    }
  } appender;
  appender.to = destination;
  const std::string data = source.rep.Data();  // a copy, because a batch may be appended to itself
  const std::vector<WireNotes::Note> notes = source.notes.notes;
  const uint32_t before = destination->rep.Count();
  braiddb::WriteBatch copy;
  Status status = braiddb::WriteBatch::FromData(data, &copy);
  if (status.ok()) status = copy.Iterate(&appender);
  if (status.ok()) status = source.unfit;
  for (const WireNotes::Note& note : notes) destination->notes.notes.push_back({before + note.before, note.kind, note.data});
  if (!status.ok()) destination->unfit = status;
}

void braiddb_writebatch_append(braiddb_writebatch_t* destination, const braiddb_writebatch_t* source) {
  DoOrNote(&destination->unfit, [&] { Append(destination, *source); });
}

void braiddb_write(braiddb_t* db, const braiddb_writeoptions_t* options, braiddb_writebatch_t* batch, char** errptr) {
  SaveError(errptr, WriteBatchTo(db, options, *batch));
}
