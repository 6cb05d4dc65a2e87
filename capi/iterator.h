// Iterators of the C API.
#pragma once

#include <memory>
#include <string>

#include "capi/objects.h"

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
