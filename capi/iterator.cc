#include "capi/iterator.h"

using braiddb::Slice;
using braiddb::Status;
using namespace braiddb::capi;

bool braiddb_iterator_t::Valid() const {
  if (rep == nullptr || !failed.ok() || !rep->Valid()) return false;
  if (!has_prefix) return true;
  Slice own;
  return prefix_extractor->Prefix(rep->key(), &own) && own == prefix;
}

void braiddb_iterator_t::KeepPrefix(Slice target) {
  if (prefix_extractor == nullptr) return;
  Slice wanted;
  has_prefix = prefix_extractor->Prefix(target, &wanted);
  if (has_prefix) prefix = wanted;
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
  return MakeIterator(*db, *options, [&] { return db->db->NewIterator(options->rep); });
}

void braiddb_iter_destroy(braiddb_iterator_t* iterator) { delete iterator; }
unsigned char braiddb_iter_valid(const braiddb_iterator_t* iterator) { return iterator->Valid(); }

void braiddb_iter_seek_to_first(braiddb_iterator_t* iterator) {
  iterator->has_prefix = false;
  MoveIterator(iterator, [=] { iterator->rep->SeekToFirst(); });
}

void braiddb_iter_seek_to_last(braiddb_iterator_t* iterator) {
  iterator->has_prefix = false;
  MoveIterator(iterator, [=] { iterator->rep->SeekToLast(); });
}

void braiddb_iter_seek(braiddb_iterator_t* iterator, const char* key, size_t key_length) {
  MoveIterator(iterator, [=] {
    iterator->KeepPrefix({key, key_length});
    iterator->rep->Seek({key, key_length});
  });
}

void braiddb_iter_seek_for_prev(braiddb_iterator_t* iterator, const char* key, size_t key_length) {
  MoveIterator(iterator, [=] {
    iterator->KeepPrefix({key, key_length});
    iterator->rep->SeekForPrev({key, key_length});
  });
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
