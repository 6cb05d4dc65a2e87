// Iterators of the C API.
#pragma once

#include <memory>
#include <string>

#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"

struct braiddb_iterator_t {
  std::unique_ptr<braiddb::Iterator> rep;
  braiddb::Status failed;  // no memory, at some call
  // With prefix_same_as_start: it is valid only at keys with the prefix of what was sought. Null: none of that.
  std::shared_ptr<braiddb_slicetransform_t> prefix_extractor;
  bool has_prefix = false;
  std::string prefix;

  bool Valid() const;
  void KeepPrefix(braiddb::Slice target);
};

namespace braiddb::capi {

// One over what `make` returns, an iterator of `db` with these options.
template <class Make>
braiddb_iterator_t* MakeIterator(const braiddb_t& db, const braiddb_readoptions_t& options, const Make& make) {
  auto* const iterator = new braiddb_iterator_t;
  iterator->failed = Guarded([&] { return iterator->rep = make(), Status::OK(); });
  if (options.prefix_same_as_start != 0 && options.total_order_seek == 0) iterator->prefix_extractor = db.prefix_extractor;
  return iterator;
}

}  // namespace braiddb::capi
