// Iterators of the C API.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "braiddb/write_batch_with_index.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"

namespace braiddb::capi {

// What a tailing iterator shows newer writes with, when it is moved to a key or comes to its end: another one in its place.
struct Tail {
  std::function<std::unique_ptr<Iterator>(const ReadOptions&)> make;
  ReadOptions options;   // the bounds are the C iterator's
  uint64_t made_at = 0;  // every write up to this number is seen
  std::string passed;    // the key before the last step
};

}  // namespace braiddb::capi

struct braiddb_iterator_t final : braiddb::capi::OpenObject {
  // In the list of the database.
  explicit braiddb_iterator_t(const braiddb_t* of) : db(of) { db->open_objects.Add(this); }

  const braiddb_t* const db;
  std::unique_ptr<braiddb::WriteBatchWithIndex> updates;  // of its own, that it shows; below rep, which looks at them
  std::unique_ptr<braiddb::Iterator> rep;
  std::unique_ptr<braiddb::capi::Tail> tail;  // null: it shows what there was when it was made
  braiddb::Status failed;                     // no memory, at some call
  // What it was made with, for a batch that is put over it.
  std::optional<std::string> lower;
  std::optional<std::string> upper;
  std::optional<std::string> prefix;
  bool prefix_same_as_start = false;

  bool Valid() const { return rep != nullptr && failed.ok() && rep->Valid(); }
  void KeepBounds(const braiddb::ReadOptions& options);
  braiddb::ReadOptions Bounds() const;
  // Of a tailing one, throws std::bad_alloc. Whether there is more to see than before: then it stands nowhere.
  bool Refresh();
  void Next();

 private:
  void EndBeforeClose() noexcept override {
    tail.reset();
    rep.reset();
    updates.reset();
  }
};

namespace braiddb::capi {

// One over what `make` returns for these options, an iterator of `db`; it may be called as long as the iterator is there. Null
// without memory for itself.
template <class MakeRep>
braiddb_iterator_t* MakeIterator(const braiddb_t& db, const braiddb_readoptions_t& options, const MakeRep& make) {
  auto* const iterator = Make<braiddb_iterator_t>(&db);
  if (iterator == nullptr) return nullptr;
  iterator->failed = Guarded([&] {
    if (!options.unfit.ok()) return options.unfit;
    if (Status status = options.CheckIterator(); !status.ok()) return status;
    ReadOptions read = options.ForIterator();
    iterator->KeepBounds(read);
    if (options.tailing == 0) return iterator->rep = make(read), Status::OK();
    read.snapshot = nullptr;  // as RocksDB
    auto tail = std::make_unique<Tail>();
    tail->make = make;
    tail->options = read;
    const ReadOptions bounds = iterator->Bounds();
    tail->options.iterate_lower_bound = bounds.iterate_lower_bound;
    tail->options.iterate_upper_bound = bounds.iterate_upper_bound;
    tail->options.prefix = bounds.prefix;
    tail->made_at = db.db->GetLatestSequenceNumber();  // before it is made
    iterator->rep = make(read);
    iterator->tail = std::move(tail);
    return Status::OK();
  });
  return iterator;
}

}  // namespace braiddb::capi
