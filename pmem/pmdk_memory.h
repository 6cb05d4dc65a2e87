// PmdkMemory: controls the DRAM that libpmemobj allocates. It gives libpmemobj room that it needs to grow a pool, and returns
// memory that libpmemobj does not need.
//
// ROOM    Works around a defect of libpmemobj 1.12 and later versions in pools that grow while they are open. At open
//   libpmemobj allocates one int for each zone (16 GiB) that the pool has then (src/libpmemobj/heap.c, zone_reclaimed_map).
//   When the pool grows into further zones, libpmemobj reads and writes behind that array. While a PmdkOpenScope lives, the
//   array is allocated with zeroed room for every zone that the largest region can have.
// ZEROS   libpmemobj allocates a mutex of 48 bytes for each of 65,528 chunks, whatever the pool's size, and for each class of
//   objects a number of 8 bytes for each chunk. Nearly all of these 3 MiB and 512 KiB stay zero, since pthread_mutex_init(3)
//   initializes a mutex to zeros. A PmdkMemoryScope returns the zero pages of such blocks to the system. A returned page reads
// as zeros when it is touched again. MUTEXES So that libpmemobj does not store these zeros at all, this library replaces
// pthread_mutex_init(3) and
//   pthread_mutex_destroy(3) for libpmemobj (pmdk_imports.h). While a PmdkOpenScope lives, the replacement of init stores
//   nothing into a large block, whose bytes are zero. While a PmdkCloseScope lives, the replacement of destroy does nothing: in
//   glibc and musl an unlocked mutex holds no resource. If libpmemobj does not call the replacements, only the open takes
//   longer.
// ARENAS  libpmemobj has an arena of free space for each CPU, with 110 KiB of DRAM and chunks of its own. All allocations of a
//   region run under one mutex, so its pool needs one arena. The setting belongs to the process: a pool that another thread of
//   the program opens meanwhile gets one arena as well.
//
// WHOSE FUNCTIONS  pmemobj_set_funcs sets functions for the process. A program may have two copies of this library, or use
//   libpmemobj itself, and the last call counts. So each PmdkOpenScope sets the functions again, and tells afterwards whether
//   libpmemobj has called them (HasRoom). A pool that was opened without room does not grow into further zones before the next
//   open (Region::Extend). Memory that these functions return can be freed by free(3), so copies of the library can follow each
//   other. Shared builds are never unloaded (-z nodelete), since libpmemobj keeps the addresses of the functions.
// LIMIT  A program that gives libpmemobj functions of its own, whose memory free(3) does not take, must not use this library.
#pragma once

#include <cstdint>

namespace braiddb {

// Lives around a call of PMDK that may allocate large blocks, on the thread that calls. At the end of the outermost scope of
// the thread, zero pages of these blocks are returned to the system. REQUIRES: no other thread uses the pool until the scope
// ends.
class PmdkMemoryScope {
 public:
  PmdkMemoryScope();
  ~PmdkMemoryScope();
  PmdkMemoryScope(const PmdkMemoryScope&) = delete;
  PmdkMemoryScope& operator=(const PmdkMemoryScope&) = delete;

 private:
  const bool is_outer_;
};

// Lives around one call of pmemobj_create or pmemobj_open, on the thread that calls. Sets the functions of the process
// (pmemobj_set_funcs) and one arena for the pool. Threads may have such scopes at the same time.
class PmdkOpenScope {
 public:
  // `zones`: number of zones that the pool has now.
  explicit PmdkOpenScope(uint64_t zones);
  ~PmdkOpenScope();
  PmdkOpenScope(const PmdkOpenScope&) = delete;
  PmdkOpenScope& operator=(const PmdkOpenScope&) = delete;

  // Returns true if a pool that was opened in this scope may grow into further zones (ROOM).
  bool HasRoom() const;

 private:
  const PmdkMemoryScope memory_;
};

// Lives around one call of pmemobj_close, on the thread that calls (MUTEXES).
class PmdkCloseScope {
 public:
  PmdkCloseScope();
  ~PmdkCloseScope();
  PmdkCloseScope(const PmdkCloseScope&) = delete;
  PmdkCloseScope& operator=(const PmdkCloseScope&) = delete;
};

}  // namespace braiddb
