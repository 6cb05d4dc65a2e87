// SortedKeys: the distinct keys of a batch in a fixed order, for locking.
#pragma once

#include <algorithm>
#include <vector>

#include "braiddb/write_batch.h"
#include "txn/family_key.h"

namespace braiddb {

// Returns each key once, sorted. Threads that lock keys in this order never deadlock with each other. Returns NotSupported if the
// batch deletes ranges.
inline Status SortedKeys(const WriteBatch& batch, std::vector<FamilySlice>* keys) {
  struct Collector : WriteBatch::Handler {
    void Put(Slice, Slice) override {}
    void Delete(Slice) override {}
    void Merge(Slice, Slice) override {}
    Status PutCF(uint32_t family, Slice key, Slice) override { return keys->emplace_back(family, key), Status::OK(); }
    Status DeleteCF(uint32_t family, Slice key) override { return keys->emplace_back(family, key), Status::OK(); }
    Status MergeCF(uint32_t family, Slice key, Slice) override { return keys->emplace_back(family, key), Status::OK(); }
    Status DeleteRangeCF(uint32_t, Slice, Slice) override {
      return Status::NotSupported("a batch with a deleted range: there are no locks for ranges");
    }
    std::vector<FamilySlice>* keys;
  } collector;
  collector.keys = keys;
  Status status = batch.Iterate(&collector);
  std::sort(keys->begin(), keys->end());
  keys->erase(std::unique(keys->begin(), keys->end()), keys->end());
  return status;
}

}  // namespace braiddb
