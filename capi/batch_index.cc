// Batches with an index, and iterators over such a batch and a database.
#include <map>
#include <optional>

#include "capi/batch.h"
#include "capi/iterator.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"

using braiddb::Slice;
using braiddb::Status;
using namespace braiddb::capi;

struct braiddb_writebatch_wi_t {
  // Where the value of a key's last update is in the batch; none: it is a deletion.
  struct Value {
    size_t offset;
    size_t length;
  };
  using Index = std::map<std::string, std::optional<Value>, std::less<>>;

  braiddb_writebatch_t batch;
  Index index;

  void Put(Slice key, Slice value) noexcept;
  void Delete(Slice key) noexcept;
  void Clear() {
    batch.Clear();
    index.clear();
  }
  Status RollBack();
  Slice ValueAt(const Value& value) const { return Slice(batch.rep.Data()).substr(value.offset, value.length); }
  // Makes the index anew, from what is in the batch.
  Status Reindex();
};

void braiddb_writebatch_wi_t::Put(Slice key, Slice value) noexcept {
  batch.Put(key, value);
  if (!batch.unfit.ok()) return;
  // The value comes last in an update.
  const Value place{batch.rep.Data().size() - value.size(), value.size()};
  const Status status = Guarded([&] { return index.insert_or_assign(std::string(key), place), Status::OK(); });
  if (!status.ok()) batch.unfit = status;
}

void braiddb_writebatch_wi_t::Delete(Slice key) noexcept {
  batch.Delete(key);
  if (!batch.unfit.ok()) return;
  const Status status = Guarded([&] { return index.insert_or_assign(std::string(key), std::nullopt), Status::OK(); });
  if (!status.ok()) batch.unfit = status;
}

Status braiddb_writebatch_wi_t::RollBack() {
  Status status = batch.RollBack();
  return status.ok() ? Reindex() : status;
}

Status braiddb_writebatch_wi_t::Reindex() {
  struct Indexer : braiddb::WriteBatch::Handler {
    braiddb_writebatch_wi_t* to;
    void Put(Slice key, Slice value) override {
      const auto offset = static_cast<size_t>(value.data() - to->batch.rep.Data().data());
      to->index.insert_or_assign(std::string(key), Value{offset, value.size()});
    }
    void Delete(Slice key) override { to->index.insert_or_assign(std::string(key), std::nullopt); }
  } indexer;
  indexer.to = this;
  index.clear();
  return batch.rep.Iterate(&indexer);
}

namespace {

// The database's iterator and the batch over it: where both have a key, the batch's is taken, and what it deletes is not there.
// Keys are compared as bytes, so the database has to be ordered by BytewiseComparator().
class OverlaidIterator final : public braiddb::Iterator {
 public:
  OverlaidIterator(const braiddb_writebatch_wi_t* batch, std::unique_ptr<braiddb::Iterator> base)
      : batch_(batch), base_(std::move(base)), at_(batch->index.end()) {}

  bool Valid() const override { return where_ != Where::kNowhere; }
  Slice key() const override { return where_ == Where::kBatch ? Slice(at_->first) : base_->key(); }
  Slice value() const override { return where_ == Where::kBatch ? batch_->ValueAt(*at_->second) : base_->value(); }
  Status status() const override { return base_->status(); }

  void SeekToFirst() override {
    base_->SeekToFirst();
    at_ = batch_->index.begin();
    forward_ = true;
    Settle();
  }
  void SeekToLast() override {
    base_->SeekToLast();
    at_ = batch_->index.end();
    StepBack();
    forward_ = false;
    Settle();
  }
  void Seek(Slice target) override {
    base_->Seek(target);
    at_ = batch_->index.lower_bound(target);
    forward_ = true;
    Settle();
  }
  void SeekForPrev(Slice target) override {
    base_->SeekForPrev(target);
    at_ = batch_->index.upper_bound(target);
    StepBack();
    forward_ = false;
    Settle();
  }
  // A change of direction seeks, so that both stand on the same side of the key.
  void Next() override {
    const std::string current(key());
    if (!forward_) {
      Seek(current);
      if (!Valid() || key() != current) return;
    }
    Pass(current);
    Settle();
  }
  void Prev() override {
    const std::string current(key());
    if (forward_) {
      SeekForPrev(current);
      if (!Valid() || key() != current) return;
    }
    Pass(current);
    Settle();
  }

 private:
  enum class Where { kNowhere, kBatch, kBase };
  using Index = braiddb_writebatch_wi_t::Index;

  bool InBatch() const { return at_ != batch_->index.end(); }
  // end() stands for "before the first", too, when going backwards.
  void StepBack() { at_ = at_ == batch_->index.begin() ? batch_->index.end() : std::prev(at_); }

  void AdvanceBatch() {
    if (forward_) {
      ++at_;
    } else {
      StepBack();
    }
  }
  void AdvanceBase() {
    if (forward_) {
      base_->Next();
    } else {
      base_->Prev();
    }
  }
  // Both go on from `key`, if they are at it.
  void Pass(const std::string& key) {
    if (InBatch() && at_->first == key) AdvanceBatch();
    if (base_->Valid() && base_->key() == key) AdvanceBase();
  }

  // Finds which of both is next in the direction; passes keys that the batch deletes.
  void Settle() {
    for (;;) {
      if (!InBatch()) {
        where_ = base_->Valid() ? Where::kBase : Where::kNowhere;
        return;
      }
      const int order = base_->Valid() ? Slice(at_->first).compare(base_->key()) : -1;
      const bool base_first = base_->Valid() && (forward_ ? order > 0 : order < 0);
      if (base_first) {
        where_ = Where::kBase;
        return;
      }
      if (at_->second.has_value()) {
        where_ = Where::kBatch;
        return;
      }
      Pass(at_->first);
    }
  }

  const braiddb_writebatch_wi_t* const batch_;
  const std::unique_ptr<braiddb::Iterator> base_;
  Index::const_iterator at_;
  bool forward_ = true;
  Where where_ = Where::kNowhere;
};

// What the batch says of the key: true if it says anything. Null: that it is deleted.
bool AskBatch(const braiddb_writebatch_wi_t* batch, Slice key, char** value, size_t* length, char** errptr) {
  *value = nullptr;
  *length = 0;
  const auto found = batch->index.find(key);
  if (found == batch->index.end()) return false;
  if (!found->second.has_value()) return true;
  *value = CopyBytes(batch->ValueAt(*found->second));
  if (*value == nullptr) {
    SaveError(errptr, NoMemory());
  } else {
    *length = found->second->length;
  }
  return true;
}

}  // namespace

const braiddb_writebatch_t& braiddb::capi::UpdatesOf(const braiddb_writebatch_wi_t& batch) { return batch.batch; }

// A batch keeps all updates of a key, whatever overwrite_keys says; the last one wins.
braiddb_writebatch_wi_t* braiddb_writebatch_wi_create(size_t, unsigned char) { return new braiddb_writebatch_wi_t; }

braiddb_writebatch_wi_t* braiddb_writebatch_wi_create_from(const char* data, size_t data_length) {
  auto* const batch = new braiddb_writebatch_wi_t;
  batch->batch.unfit = Guarded([&] {
    Status status = braiddb::WriteBatch::FromData(Slice(data, data_length), &batch->batch.rep);
    return status.ok() ? batch->Reindex() : status;
  });
  return batch;
}

void braiddb_writebatch_wi_destroy(braiddb_writebatch_wi_t* batch) { delete batch; }
void braiddb_writebatch_wi_clear(braiddb_writebatch_wi_t* batch) { batch->Clear(); }
int braiddb_writebatch_wi_count(braiddb_writebatch_wi_t* batch) {
  return batch == nullptr ? 0 : static_cast<int>(batch->batch.rep.Count());
}

void braiddb_writebatch_wi_put(braiddb_writebatch_wi_t* batch, const char* key, size_t key_length, const char* value,
                               size_t value_length) {
  batch->Put({key, key_length}, {value, value_length});
}

void braiddb_writebatch_wi_putv(braiddb_writebatch_wi_t* batch, int key_parts, const char* const* keys, const size_t* key_lengths,
                                int value_parts, const char* const* values, const size_t* value_lengths) {
  batch->Put(Join(key_parts, keys, key_lengths), Join(value_parts, values, value_lengths));
}

void braiddb_writebatch_wi_delete(braiddb_writebatch_wi_t* batch, const char* key, size_t key_length) {
  batch->Delete({key, key_length});
}

void braiddb_writebatch_wi_singledelete(braiddb_writebatch_wi_t* batch, const char* key, size_t key_length) {
  batch->Delete({key, key_length});
}

void braiddb_writebatch_wi_deletev(braiddb_writebatch_wi_t* batch, int key_parts, const char* const* keys,
                                   const size_t* key_lengths) {
  batch->Delete(Join(key_parts, keys, key_lengths));
}

// RocksDB's have no deletions of ranges either; the write tells.
void braiddb_writebatch_wi_delete_range(braiddb_writebatch_wi_t* batch, const char*, size_t, const char*, size_t) {
  batch->batch.Refuse(__func__, "deletions of ranges in a batch with an index");
}

void braiddb_writebatch_wi_delete_rangev(braiddb_writebatch_wi_t* batch, int, const char* const*, const size_t*,
                                         const char* const*, const size_t*) {
  batch->batch.Refuse(__func__, "deletions of ranges in a batch with an index");
}

void braiddb_writebatch_wi_merge(braiddb_writebatch_wi_t* batch, const char*, size_t, const char*, size_t) {
  batch->batch.Refuse(__func__, kNoMerge);
}

void braiddb_writebatch_wi_mergev(braiddb_writebatch_wi_t* batch, int, const char* const*, const size_t*, int, const char* const*,
                                  const size_t*) {
  batch->batch.Refuse(__func__, kNoMerge);
}

// It would be for those who read the log.
void braiddb_writebatch_wi_put_log_data(braiddb_writebatch_wi_t*, const char*, size_t) {}

void braiddb_writebatch_wi_iterate(braiddb_writebatch_wi_t* batch, void* state,
                                   void (*put)(void*, const char*, size_t, const char*, size_t),
                                   void (*deleted)(void*, const char*, size_t)) {
  IterateBatch(batch->batch.rep, state, put, deleted);
}

// NULL, which a transaction gives for its own batch, is an empty one.
const char* braiddb_writebatch_wi_data(braiddb_writebatch_wi_t* batch, size_t* length) {
  if (batch == nullptr) {
    *length = 0;
    return "";
  }
  *length = batch->batch.rep.Data().size();
  return batch->batch.rep.Data().data();
}

void braiddb_writebatch_wi_set_save_point(braiddb_writebatch_wi_t* batch) { batch->batch.SetSavePoint(); }

void braiddb_writebatch_wi_rollback_to_save_point(braiddb_writebatch_wi_t* batch, char** errptr) {
  SaveError(errptr, Guarded([&] { return batch->RollBack(); }));
}

char* braiddb_writebatch_wi_get_from_batch(braiddb_writebatch_wi_t* batch, const braiddb_options_t*, const char* key,
                                           size_t key_length, size_t* value_length, char** errptr) {
  char* value;
  AskBatch(batch, {key, key_length}, &value, value_length, errptr);
  return value;
}

char* braiddb_writebatch_wi_get_from_batch_and_db(braiddb_writebatch_wi_t* batch, braiddb_t* db,
                                                  const braiddb_readoptions_t* options, const char* key, size_t key_length,
                                                  size_t* value_length, char** errptr) {
  char* value;
  if (AskBatch(batch, {key, key_length}, &value, value_length, errptr)) return value;
  return braiddb_get(db, options, key, key_length, value_length, errptr);
}

// The base iterator is owned by the new one, as in RocksDB.
braiddb_iterator_t* braiddb_writebatch_wi_create_iterator_with_base(braiddb_writebatch_wi_t* batch, braiddb_iterator_t* base) {
  auto* const iterator = new braiddb_iterator_t;
  if (base->failed.ok()) {
    iterator->rep = std::make_unique<OverlaidIterator>(batch, std::move(base->rep));
  } else {
    iterator->failed = base->failed;
  }
  delete base;
  return iterator;
}

void braiddb_write_writebatch_wi(braiddb_t* db, const braiddb_writeoptions_t* options, braiddb_writebatch_wi_t* batch,
                                 char** errptr) {
  SaveError(errptr, WriteBatchTo(db, options->rep(), batch->batch));
}
