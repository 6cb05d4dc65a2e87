// The keys of a batch, for whoever has to lock them.
#pragma once

#include <algorithm>
#include <vector>

#include "braiddb/write_batch.h"

namespace braiddb {

// Each once, in the order of their bytes: all who lock keys in this order never wait for each other in a circle.
inline Status SortedKeys(const WriteBatch& batch, std::vector<Slice>* keys) {
  struct Collector : WriteBatch::Handler {
    void Put(Slice key, Slice) override { keys->push_back(key); }
    void Delete(Slice key) override { keys->push_back(key); }
    std::vector<Slice>* keys;
  } collector;
  collector.keys = keys;
  Status status = batch.Iterate(&collector);
  std::sort(keys->begin(), keys->end());
  keys->erase(std::unique(keys->begin(), keys->end()), keys->end());
  return status;
}

}  // namespace braiddb
