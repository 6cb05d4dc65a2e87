// PartsGuard: registers the mappings of a pool's parts with the fork guard (util/fork_guard.h), so that PMDK's locks of the
// parts end when the pool is closed.
//
// WHY  PMDK locks each part with flock(2) and closes the descriptor when the part is mapped. The mapping then keeps the open
//      file and its lock. A child of fork(2) inherits the mapping, and with it the lock. So a child gets another mapping in its
//      place.
// ORDER  Guard after PMDK has mapped the part; Release before PMDK unmaps the pool. In between, a fork finds each mapping.
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

  // Registers the mapping of the file `part`. Call after PMDK has mapped the part. Throws std::bad_alloc.
  void Guard(const std::string& part, uint8_t* memory, uint64_t bytes);
  // Removes all registrations. Call before PMDK unmaps the pool. May be called again.
  void Release();

 private:
  std::vector<uint8_t*> parts_;  // begin of each registered mapping
};

}  // namespace braiddb
