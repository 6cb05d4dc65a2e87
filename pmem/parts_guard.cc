#include "pmem/parts_guard.h"

#include "util/fork_guard.h"

namespace braiddb {

void PartsGuard::Guard(const std::string& part, uint8_t* memory, uint64_t bytes) {
  parts_.push_back(memory);
  GuardMapping(part, memory, bytes);
}

void PartsGuard::Release() {
  for (uint8_t* const part : parts_) UnguardMapping(part);
  parts_.clear();
}

}  // namespace braiddb
