#include "capi/iterator.h"

using braiddb::Slice;
using braiddb::Status;
using namespace braiddb::capi;

void braiddb_iterator_t::KeepBounds(const braiddb::ReadOptions& options) {
  if (options.iterate_lower_bound) lower.emplace(*options.iterate_lower_bound);
  if (options.iterate_upper_bound) upper.emplace(*options.iterate_upper_bound);
  if (options.prefix) prefix.emplace(*options.prefix);
  if (options.timestamp) timestamp.emplace(*options.timestamp);
  if (options.iter_start_ts) start_timestamp.emplace(*options.iter_start_ts);
  prefix_same_as_start = options.prefix_same_as_start;
}

braiddb::ReadOptions braiddb_iterator_t::Bounds() const {
  braiddb::ReadOptions options;
  if (lower) options.iterate_lower_bound = Slice(*lower);
  if (upper) options.iterate_upper_bound = Slice(*upper);
  if (prefix) options.prefix = Slice(*prefix);
  return options;
}

bool braiddb_iterator_t::Refresh() {
  if (db->db->GetLatestSequenceNumber() == tail->made_at) return false;
  Remake();
  return true;
}

void braiddb_iterator_t::Remake() {
  const uint64_t now = db->db->GetLatestSequenceNumber();  // read before the iterator is made
  rep = tail->make(tail->options);
  tail->made_at = now;
}

void braiddb_iterator_t::Next() {
  if (tail == nullptr) return rep->Next();
  tail->passed.assign(rep->key());
  rep->Next();
  if (rep->Valid() || !rep->status().ok() || !Refresh()) return;
  rep->Seek(tail->passed);
  if (rep->Valid() && rep->key() == tail->passed) rep->Next();
}

namespace {

// Moves the iterator to a key or an end, not relative to its current key.
template <class Move>
void MoveIterator(braiddb_iterator_t* iterator, const Move& move) {
  if (iterator->rep == nullptr) return;
  iterator->failed = Guarded([&] {
    const bool may_be_old = iterator->tail != nullptr && !iterator->Refresh();
    move();
    // A live reader was attached to another writer meanwhile. Its last number may be that of the former writer.
    if (may_be_old && iterator->rep->status().IsExpired()) {
      iterator->Remake();
      move();
    }
    return Status::OK();
  });
}

template <class Step>
void StepIterator(braiddb_iterator_t* iterator, const Step& step) {
  if (iterator->rep == nullptr) return;
  iterator->failed = Guarded([&] { return step(), Status::OK(); });
}

const char* Give(Slice bytes, size_t* length) {
  *length = bytes.size();
  return bytes.data();
}

}  // namespace

braiddb_iterator_t* braiddb_create_iterator(braiddb_t* db, const braiddb_readoptions_t* options) {
  return MakeIterator(*db, *options, [db](const braiddb::ReadOptions& read) { return db->db->NewIterator(read); });
}

braiddb_iterator_t* braiddb_create_iterator_cf(braiddb_t* db, const braiddb_readoptions_t* options,
                                               braiddb_column_family_handle_t* column_family) {
  return MakeIterator(*db, *options, [db, family = SharedFamily(column_family)](const braiddb::ReadOptions& read) {
    return db->db->NewIterator(read, family.get());
  });
}

// All iterators see one snapshot: the caller's, or the current state.
void braiddb_create_iterators(braiddb_t* db, braiddb_readoptions_t* options, braiddb_column_family_handle_t** column_families,
                              braiddb_iterator_t** iterators, size_t count, char** errptr) {
  const braiddb::Snapshot* taken = nullptr;
  for (size_t i = 0; i < count; ++i) iterators[i] = nullptr;
  const Status status = Guarded([&] {
    if (options->rep.snapshot == nullptr) taken = db->db->GetSnapshot();
    return Status::OK();
  });
  if (SaveError(errptr, status)) return;
  for (size_t i = 0; i < count; ++i) {
    const auto first = [=, family = SharedFamily(column_families[i])](braiddb::ReadOptions read) {
      if (taken != nullptr) read.snapshot = taken;
      return db->db->NewIterator(read, family.get());
    };
    iterators[i] =
        options->tailing != 0 ? braiddb_create_iterator_cf(db, options, column_families[i]) : MakeIterator(*db, *options, first);
  }
  if (taken != nullptr) db->db->ReleaseSnapshot(taken);  // the iterators keep their state
}

void braiddb_iter_destroy(braiddb_iterator_t* iterator) { delete iterator; }
unsigned char braiddb_iter_valid(const braiddb_iterator_t* iterator) { return iterator->Valid(); }

void braiddb_iter_seek_to_first(braiddb_iterator_t* iterator) {
  MoveIterator(iterator, [=] { iterator->rep->SeekToFirst(); });
}

void braiddb_iter_seek_to_last(braiddb_iterator_t* iterator) {
  MoveIterator(iterator, [=] { iterator->rep->SeekToLast(); });
}

void braiddb_iter_seek(braiddb_iterator_t* iterator, const char* key, size_t key_length) {
  MoveIterator(iterator, [=] { iterator->rep->Seek({key, key_length}); });
}

void braiddb_iter_seek_for_prev(braiddb_iterator_t* iterator, const char* key, size_t key_length) {
  MoveIterator(iterator, [=] { iterator->rep->SeekForPrev({key, key_length}); });
}

void braiddb_iter_next(braiddb_iterator_t* iterator) {
  StepIterator(iterator, [=] { iterator->Next(); });
}

void braiddb_iter_prev(braiddb_iterator_t* iterator) {
  StepIterator(iterator, [=] { iterator->rep->Prev(); });
}

const char* braiddb_iter_key(const braiddb_iterator_t* iterator, size_t* length) { return Give(iterator->rep->key(), length); }
const char* braiddb_iter_value(const braiddb_iterator_t* iterator, size_t* length) {
  return Give(iterator->rep->value(), length);
}

const char* braiddb_iter_timestamp(const braiddb_iterator_t* iterator, size_t* length) {
  return Give(iterator->rep->timestamp(), length);
}

void braiddb_iter_get_error(const braiddb_iterator_t* iterator, char** errptr) {
  SaveError(errptr, iterator->failed.ok() ? iterator->rep->status() : iterator->failed);
}
