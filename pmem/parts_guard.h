// PartsGuard: the descriptors by which PMDK holds the parts of a pool locked.
//
// GOAL  PMDK's locks of flock(2) end with the pool, also if children of this process share the descriptors (util/fork_guard.h).
// HOW   PMDK does not say its descriptors. They are those of this process that are open on the part's file.
#pragma once

#include <string>
#include <vector>

namespace braiddb {

// Thread safety: one thread at a time.
class PartsGuard {
 public:
  ~PartsGuard() { Release(); }

  // After PMDK has opened the parts.
  void Guard(const std::vector<std::string>& parts);
  // Before PMDK closes the pool. Nothing in a child of the process that has it open.
  void Release();

 private:
  std::vector<int> descriptors_;
};

}  // namespace braiddb
