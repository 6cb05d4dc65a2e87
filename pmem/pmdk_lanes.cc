#include "pmem/pmdk_lanes.h"

#include <libpmemobj.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "pmem/pmdk_imports.h"
#include "pmem/pool_format.h"
#include "util/check.h"

namespace braiddb {
namespace {

thread_local char lane_limit[24];    // the limit in decimal; "": the thread has no scope
thread_local bool is_asked = false;  // libpmemobj has read the limit since the scope began
using GetEnvironment = char* (*)(const char*);
// The function that the replacement passes calls to: secure_getenv, or the replacement of another copy of this library. Stored
// with release in IsPossible; the acquire in AnswerLaneLimit pairs with it.
std::atomic<GetEnvironment> called_before{&secure_getenv};

// The replacement of secure_getenv for libpmemobj.
char* AnswerLaneLimit(const char* name) {
  if (lane_limit[0] == '\0' || std::strcmp(name, "PMEMOBJ_NLANES") != 0)
    return called_before.load(std::memory_order_acquire)(name);
  is_asked = true;
  return lane_limit;
}

}  // namespace

LaneLimitScope::LaneLimitScope(uint64_t lanes) {
  BRAIDDB_DCHECK(lane_limit[0] == '\0');
  is_asked = false;
  if (lanes < kPmdkLanes) std::snprintf(lane_limit, sizeof lane_limit, "%u", static_cast<unsigned>(std::max<uint64_t>(lanes, 1)));
}

LaneLimitScope::~LaneLimitScope() { lane_limit[0] = '\0'; }

bool LaneLimitScope::WasAsked() const { return is_asked; }

// libpmemobj reads the variable before it opens the file. So the open of an empty path, which fails, shows whether the
// replacement is called.
bool LaneLimitScope::IsPossible() {
  static const bool possible = [] {
    void* const before = ReplaceImportOfLibpmemobj("secure_getenv", reinterpret_cast<void*>(&AnswerLaneLimit));
    if (before != nullptr) called_before.store(reinterpret_cast<GetEnvironment>(before), std::memory_order_release);
    const LaneLimitScope scope(1);
    if (PMEMobjpool* const pool = pmemobj_open("", kPoolLayout); pool != nullptr) pmemobj_close(pool);
    return scope.WasAsked();
  }();
  return possible;
}

}  // namespace braiddb
