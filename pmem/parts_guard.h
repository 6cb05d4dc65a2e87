// PartsGuard: the mappings of a pool's parts, by which PMDK's locks live on in children of this process.
//
// GOAL  PMDK's locks of flock(2) end with the pool. PMDK closes a part's descriptor when it has mapped the part, but the
// mapping keeps
//       the open file and its lock. A child of fork(2) inherits the mapping, so the child must get another one
//       (util/fork_guard.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braiddb {

// Thread safety: one thread at a time.
class PartsGuard {
 public:
  PartsGuard() = default;
  ~PartsGuard() { Release(); }
  PartsGuard(const PartsGuard&) = delete;
  PartsGuard& operator=(const PartsGuard&) = delete;

  // After PMDK has mapped the part.
  void Guard(const std::string& part, uint8_t* memory, uint64_t bytes);
  // Before PMDK unmaps the pool.
  void Release();

 private:
  std::vector<uint8_t*> parts_;
};

}  // namespace braiddb
