// Iterators of the C API.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "braiddb/write_batch_with_index.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"

struct braiddb_iterator_t {
  explicit braiddb_iterator_t(const braiddb_t* of) : db(of) {}

  const braiddb_t* const db;
  std::unique_ptr<braiddb::WriteBatchWithIndex> updates;  // of its own, that it shows; below rep, which looks at them
  std::unique_ptr<braiddb::Iterator> rep;
  braiddb::Status failed;  // no memory, at some call
  // What it was made with, for a batch that is put over it.
  std::optional<std::string> lower;
  std::optional<std::string> upper;
  std::optional<std::string> prefix;
  bool prefix_same_as_start = false;

  bool Valid() const { return rep != nullptr && failed.ok() && rep->Valid(); }
  void KeepBounds(const braiddb::ReadOptions& options);
  braiddb::ReadOptions Bounds() const;
};

namespace braiddb::capi {

// One over what `make` returns for these options, an iterator of `db`. Null without memory for itself.
template <class MakeRep>
braiddb_iterator_t* MakeIterator(const braiddb_t& db, const braiddb_readoptions_t& options, const MakeRep& make) {
  auto* const iterator = Make<braiddb_iterator_t>(&db);
  if (iterator == nullptr) return nullptr;
  iterator->failed = Guarded([&] {
    if (!options.unfit.ok()) return options.unfit;
    const ReadOptions read = options.ForIterator();
    iterator->KeepBounds(read);
    return iterator->rep = make(read), Status::OK();
  });
  return iterator;
}

}  // namespace braiddb::capi
