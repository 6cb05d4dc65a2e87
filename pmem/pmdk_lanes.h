// LaneLimitScope: libpmemobj uses only the lanes that a pool has.
//
// A lane is the place of the logs of one operation in the pool. libpmemobj makes 1,024 of them, and at each open of a pool about
// 13 KiB of DRAM for each lane. BraidDB's pools have few lanes: all operations on a pool that take a lane run under one mutex
// (Region), so at most one lane is held at a time, by one thread, and PMDK's nested operations share the lane of their thread.
//
// DANGER  At open libpmemobj makes as many lanes as the pool says, but threads take lanes up to 1,024, or up to the value of the
//   environment variable PMEMOBJ_NLANES. So a pool with fewer lanes must be opened with that variable set. A library must not
//   set the variable of its process: setenv(3) races with getenv(3) of other threads, and pools of the program would be limited.
//   So libpmemobj gets a function of ours in place of secure_getenv(3) (pmdk_imports.h). It answers for this one variable, on
//   threads with a scope only, and hands other questions on to the function that was there before. So several copies of this
//   library in one process form a chain.
// LIMIT   A libpmemobj that is linked statically does not call our function. IsPossible() says so before a pool is opened.
#pragma once

#include <cstdint>

namespace braiddb {

// Made around pmemobj_open, by the thread that calls it. Scopes do not nest.
class LaneLimitScope {
 public:
  // REQUIRES: IsPossible(), or the pool has kPmdkLanes.
  explicit LaneLimitScope(uint64_t lanes);
  ~LaneLimitScope();
  LaneLimitScope(const LaneLimitScope&) = delete;
  LaneLimitScope& operator=(const LaneLimitScope&) = delete;

  // Whether libpmemobj asked our function on this thread since the scope began. If it did not, it uses more lanes than the pool
  // has, and the pool must not be used: another library has replaced our function.
  bool WasAsked() const;

  // Whether libpmemobj asks our function. Thread-safe.
  static bool IsPossible();
};

}  // namespace braiddb
