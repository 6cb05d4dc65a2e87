#include "pmem/parts_guard.h"

#include "util/check.h"
#include "util/fork_guard.h"

namespace braiddb {

void PartsGuard::Guard(const std::string& part, uint8_t* memory, uint64_t bytes) {
  BRAIDDB_DCHECK(memory != nullptr && bytes > 0);
  parts_.push_back(memory);  // before the registration: if this throws, nothing is registered
  GuardMapping(part, memory, bytes);
}

void PartsGuard::Release() {
  for (uint8_t* const part : parts_) UnguardMapping(part);
  parts_.clear();
}

}  // namespace braiddb
