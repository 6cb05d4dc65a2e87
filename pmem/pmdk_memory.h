// A way around a defect of libpmemobj 1.12 (and its successors so far) in pools that grow while they are open.
//
// At open it allocates one int for each zone (16 GiB) that the pool has then; a pool that grows into further zones makes it
// read and write behind that array (src/libpmemobj/heap.c, zone_reclaimed_map). While a PmdkOpenScope lives, this array is
// made with zeroed room for every zone that the largest region can ever have. It works through pmemobj_set_funcs, which is
// process-wide: a program that uses libpmemobj with allocation functions of its own beside this library must set them before
// any pool is open and must not set them again afterwards.
#pragma once

#include <cstdint>

namespace braiddb {

// Made around pmemobj_create and pmemobj_open, by the thread that calls them. `zones`: of the pool as it is now.
class PmdkOpenScope {
 public:
  explicit PmdkOpenScope(uint64_t zones);
  ~PmdkOpenScope();
  PmdkOpenScope(const PmdkOpenScope&) = delete;
  PmdkOpenScope& operator=(const PmdkOpenScope&) = delete;
};

}  // namespace braiddb
