// LaneLimitScope: limits libpmemobj to the lanes that a pool has, while it opens the pool.
//
// LANES   A lane holds the logs of one operation in the pool. A pool that libpmemobj makes has 1,024 lanes, and each open takes
//   about 13 KiB of DRAM for each lane. BraidDB's pools have few lanes. All operations on a pool that take a lane run under one
//   mutex (Region::mutex_), so one thread holds a lane at a time, and PMDK's nested operations share the lane of their thread.
// DANGER  At open libpmemobj allocates as many lanes as the pool has, but threads take lanes up to 1,024, or up to the value of
//   the environment variable PMEMOBJ_NLANES. So a pool with fewer lanes must be opened with that variable set.
// HOW     A library must not set the variable of its process: setenv(3) races with getenv(3) of other threads, and pools of the
//   program would be limited as well. So this library replaces secure_getenv(3) for libpmemobj (pmdk_imports.h). The
//   replacement answers for this one variable, on threads with a scope, and passes other calls to the function that it has
//   replaced. Several copies of this library in one process form a chain.
// LIMIT   A libpmemobj that is linked statically does not call the replacement. IsPossible() tells this before a pool is
//         opened.
#pragma once

#include <cstdint>

namespace braiddb {

// Lives around one call of pmemobj_open, on the thread that calls it. Scopes of one thread do not nest.
class LaneLimitScope {
 public:
  // `lanes`: lanes of the pool; kPmdkLanes or more limit nothing. REQUIRES: IsPossible(), or lanes >= kPmdkLanes.
  explicit LaneLimitScope(uint64_t lanes);
  ~LaneLimitScope();
  LaneLimitScope(const LaneLimitScope&) = delete;
  LaneLimitScope& operator=(const LaneLimitScope&) = delete;

  // Returns true if libpmemobj has called the replacement on this thread since the scope began. If not, another library has
  // replaced the function. Then libpmemobj uses more lanes than the pool has, and the pool must be closed unused.
  bool WasAsked() const;

  // Installs the replacement at the first call. Returns true if libpmemobj calls it. Thread-safe.
  static bool IsPossible();
};

}  // namespace braiddb
