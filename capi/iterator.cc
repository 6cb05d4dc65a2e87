#include "capi/iterator.h"

using braiddb::Slice;
using braiddb::Status;
using namespace braiddb::capi;

void braiddb_iterator_t::KeepBounds(const braiddb::ReadOptions& options) {
  if (options.iterate_lower_bound) lower.emplace(*options.iterate_lower_bound);
  if (options.iterate_upper_bound) upper.emplace(*options.iterate_upper_bound);
  if (options.prefix) prefix.emplace(*options.prefix);
  prefix_same_as_start = options.prefix_same_as_start;
}

braiddb::ReadOptions braiddb_iterator_t::Bounds() const {
  braiddb::ReadOptions options;
  if (lower) options.iterate_lower_bound = Slice(*lower);
  if (upper) options.iterate_upper_bound = Slice(*upper);
  if (prefix) options.prefix = Slice(*prefix);
  return options;
}

namespace {

template <class Move>
void MoveIterator(braiddb_iterator_t* iterator, const Move& move) {
  if (iterator->rep == nullptr) return;
  iterator->failed = Guarded([&] { return move(), Status::OK(); });
}

const char* Give(Slice bytes, size_t* length) {
  *length = bytes.size();
  return bytes.data();
}

}  // namespace

braiddb_iterator_t* braiddb_create_iterator(braiddb_t* db, const braiddb_readoptions_t* options) {
  return MakeIterator(*db, *options, [&](const braiddb::ReadOptions& read) { return db->db->NewIterator(read); });
}

braiddb_iterator_t* braiddb_create_iterator_cf(braiddb_t* db, const braiddb_readoptions_t* options,
                                               braiddb_column_family_handle_t* column_family) {
  return MakeIterator(*db, *options,
                      [&](const braiddb::ReadOptions& read) { return db->db->NewIterator(read, FamilyOf(column_family)); });
}

// One view for all: the caller's snapshot, or one of now.
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
    iterators[i] = MakeIterator(*db, *options, [&](braiddb::ReadOptions read) {
      if (taken != nullptr) read.snapshot = taken;
      return db->db->NewIterator(read, FamilyOf(column_families[i]));
    });
  }
  if (taken != nullptr) db->db->ReleaseSnapshot(taken);  // iterators keep what they see
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
  MoveIterator(iterator, [=] { iterator->rep->Next(); });
}

void braiddb_iter_prev(braiddb_iterator_t* iterator) {
  MoveIterator(iterator, [=] { iterator->rep->Prev(); });
}

const char* braiddb_iter_key(const braiddb_iterator_t* iterator, size_t* length) { return Give(iterator->rep->key(), length); }
const char* braiddb_iter_value(const braiddb_iterator_t* iterator, size_t* length) {
  return Give(iterator->rep->value(), length);
}

void braiddb_iter_get_error(const braiddb_iterator_t* iterator, char** errptr) {
  SaveError(errptr, iterator->failed.ok() ? iterator->rep->status() : iterator->failed);
}
