// A way around a defect of libpmemobj 1.12 (and its successors so far) in pools that grow while they are open.
//
// At open it allocates one int for each zone (16 GiB) that the pool has then; a pool that grows into further zones makes it
// read and write behind that array (src/libpmemobj/heap.c, zone_reclaimed_map). While a PmdkOpenScope lives, this array is
// made with zeroed room for every zone that the largest region can ever have.
//
// WHOSE FUNCTIONS  It works through pmemobj_set_funcs, which is one for the process. A program may have two copies of this
//   library, or use libpmemobj itself, and the last who sets functions has them. So each scope sets ours again, and says
//   afterwards whether libpmemobj called them (HasRoom). A pool that was opened without does not grow into further zones before
//   it is opened again (Region::GrowthStep). All that ours give out, free() takes back, so copies can follow each other.
//   Shared builds of this library are never unloaded (-z nodelete), since libpmemobj keeps the addresses of these functions.
// LIMIT  A program that gives libpmemobj functions of its own, whose memory free() does not take, must not use this library.
#pragma once

#include <cstdint>

namespace braiddb {

// Made around pmemobj_create and pmemobj_open, by the thread that calls it. `zones`: of the pool as it is now.
class PmdkOpenScope {
 public:
  explicit PmdkOpenScope(uint64_t zones);
  ~PmdkOpenScope();
  PmdkOpenScope(const PmdkOpenScope&) = delete;
  PmdkOpenScope& operator=(const PmdkOpenScope&) = delete;

  // Whether a pool that was opened in this scope may grow into further zones.
  bool HasRoom() const;
};

}  // namespace braiddb
