#include "pmem/pmdk_lanes.h"

#include <libpmemobj.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "pmem/pmdk_imports.h"
#include "pmem/pool_format.h"

namespace braiddb {
namespace {

thread_local char lane_limit[24];  // as text; "": the thread has no scope
thread_local bool is_asked = false;

// In place of secure_getenv, for libpmemobj.
char* AnswerLaneLimit(const char* name) {
  if (lane_limit[0] == '\0' || std::strcmp(name, "PMEMOBJ_NLANES") != 0) return secure_getenv(name);
  is_asked = true;
  return lane_limit;
}

}  // namespace

LaneLimitScope::LaneLimitScope(uint64_t lanes) {
  if (lanes < kPmdkLanes) std::snprintf(lane_limit, sizeof lane_limit, "%u", static_cast<unsigned>(std::max<uint64_t>(lanes, 1)));
}

LaneLimitScope::~LaneLimitScope() { lane_limit[0] = '\0'; }

// libpmemobj reads the variable before it looks for the file, so a path without a file tells.
bool LaneLimitScope::IsPossible() {
  static const bool possible = [] {
    ReplaceImportOfLibpmemobj("secure_getenv", reinterpret_cast<void*>(&AnswerLaneLimit));
    const LaneLimitScope scope(1);
    is_asked = false;
    if (PMEMobjpool* const pool = pmemobj_open("", kPoolLayout); pool != nullptr) pmemobj_close(pool);
    return is_asked;
  }();
  return possible;
}

}  // namespace braiddb
