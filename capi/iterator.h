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

// The state of a tailing iterator. When the iterator seeks or reaches its end, it is replaced by a new one that sees newer
// writes.
struct Tail {
  std::function<std::unique_ptr<Iterator>(const ReadOptions&)> make;
  ReadOptions options;   // the bounds are stored in the C iterator
  uint64_t made_at = 0;  // the iterator sees all writes up to this sequence number
  std::string passed;    // the key before the last step
};

}  // namespace braiddb::capi

struct braiddb_iterator_t final : braiddb::capi::OpenObject {
  // Registers the iterator in the database's list.
  explicit braiddb_iterator_t(const braiddb_t* of) : db(of) { db->open_objects.Add(this); }

  const braiddb_t* const db;
  // updates that the iterator shows; declared before rep, which reads them
  std::unique_ptr<braiddb::WriteBatchWithIndex> updates;
  std::unique_ptr<braiddb::Iterator> rep;
  std::unique_ptr<braiddb::capi::Tail> tail;  // null: not a tailing iterator
  braiddb::Status failed;                     // an earlier call ran out of memory
  // The bounds, for a batch that is layered on the iterator.
  std::optional<std::string> lower;
  std::optional<std::string> upper;
  std::optional<std::string> prefix;
  // The timestamps, for a tailing iterator that is made again.
  std::optional<std::string> timestamp;
  std::optional<std::string> start_timestamp;
  bool prefix_same_as_start = false;

  bool Valid() const { return rep != nullptr && failed.ok() && rep->Valid(); }
  void KeepBounds(const braiddb::ReadOptions& options);
  braiddb::ReadOptions Bounds() const;
  // For a tailing iterator: replaces the iterator, if newer writes exist. Returns whether it did; then the new one has no
  // position. May throw std::bad_alloc.
  bool Refresh();
  // Replaces it in any case.
  void Remake();
  void Next();

 private:
  void EndBeforeClose() noexcept override {
    tail.reset();
    rep.reset();
    updates.reset();
  }
};

namespace braiddb::capi {

// Creates an iterator over the result of `make`, an iterator of `db`. `make` may be called while the iterator exists. Returns
// null if memory for the object is short.
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
    read.snapshot = nullptr;  // same as RocksDB
    auto tail = std::make_unique<Tail>();
    tail->make = make;
    tail->options = read;
    const ReadOptions bounds = iterator->Bounds();
    tail->options.iterate_lower_bound = bounds.iterate_lower_bound;
    tail->options.iterate_upper_bound = bounds.iterate_upper_bound;
    tail->options.prefix = bounds.prefix;
    if (iterator->timestamp) tail->options.timestamp = Slice(*iterator->timestamp);
    if (iterator->start_timestamp) return Status::NotSupported("a tailing iterator with iter_start_ts");
    tail->made_at = db.db->GetLatestSequenceNumber();  // read before the iterator is made
    iterator->rep = make(read);
    iterator->tail = std::move(tail);
    return Status::OK();
  });
  return iterator;
}

}  // namespace braiddb::capi
