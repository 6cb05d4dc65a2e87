// The keys of a batch, for whoever has to lock them.
#pragma once

#include <algorithm>
#include <vector>

#include "braiddb/write_batch.h"
#include "txn/family_key.h"

namespace braiddb {

// Each once, in one order: all who lock keys in this order never wait for each other in a circle. NotSupported if it deletes
// ranges.
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
