// PMDK's DRAM: room that it needs, and less than it takes by itself.
//
// ROOM    A way around a defect of libpmemobj 1.12 (and its successors so far) in pools that grow while they are open.
//   At open it allocates one int for each zone (16 GiB) that the pool has then; a pool that grows into further zones makes it
//   read and write behind that array (src/libpmemobj/heap.c, zone_reclaimed_map). While a PmdkOpenScope lives, this array is
//   made with zeroed room for every zone that the largest region can ever have.
// ZEROS   libpmemobj has a mutex of 48 bytes for each of 65,528 chunks, whatever the pool has, and for each class of objects a
//   number of 8 bytes for each. Nearly all of these 3 MiB and 512 KiB stay zero, which is what pthread_mutex_init(3) makes of a
//   mutex. A PmdkMemoryScope gives the zero pages of such blocks back to the system; they come again, as zeros, when they are
//   touched.
//   So that libpmemobj does not store these zeros in the first place, it gets functions of ours in place of
//   pthread_mutex_init(3) and pthread_mutex_destroy(3) (pmdk_imports.h). While a PmdkOpenScope lives, ours stores nothing into
//   a large block, which is made of zeros. While a PmdkCloseScope lives, ours stores nothing: a mutex that nobody has locked
//   holds no resource in glibc and musl. Where libpmemobj does not call ours, it only takes longer.
// ARENAS  libpmemobj has an arena of free space for each CPU, of 110 KiB of DRAM, with chunks of its own. All allocations of a
//   region run under one mutex, so its pool has one arena. The setting is one for the process: a pool that another thread of the
//   program opens meanwhile has one arena, too.
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

// Made around a call of PMDK that may take large blocks. REQUIRES: no other thread uses the pool until the scope has ended.
// Scopes of one thread may nest.
class PmdkMemoryScope {
 public:
  PmdkMemoryScope();
  ~PmdkMemoryScope();
  PmdkMemoryScope(const PmdkMemoryScope&) = delete;
  PmdkMemoryScope& operator=(const PmdkMemoryScope&) = delete;

 private:
  const bool is_outer_;
};

// Made around pmemobj_create and pmemobj_open, by the thread that calls it. `zones`: of the pool as it is now.
class PmdkOpenScope {
 public:
  explicit PmdkOpenScope(uint64_t zones);
  ~PmdkOpenScope();
  PmdkOpenScope(const PmdkOpenScope&) = delete;
  PmdkOpenScope& operator=(const PmdkOpenScope&) = delete;

  // Whether a pool that was opened in this scope may grow into further zones.
  bool HasRoom() const;

 private:
  const PmdkMemoryScope memory_;
};

// Made around pmemobj_close, by the thread that calls it.
class PmdkCloseScope {
 public:
  PmdkCloseScope();
  ~PmdkCloseScope();
  PmdkCloseScope(const PmdkCloseScope&) = delete;
  PmdkCloseScope& operator=(const PmdkCloseScope&) = delete;
};

}  // namespace braiddb
