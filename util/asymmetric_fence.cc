#include "util/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/check.h"

namespace braiddb {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kWanted = false;
#else
constexpr bool kWanted = true;
#endif

long Membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

bool Register() { return Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0; }

}  // namespace

bool HasAsymmetricFences() {
  static const bool has = kWanted && Register() && Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
  return has;
}

void AsymmetricFenceHeavy() {
  if (Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
  // A child of fork may have to register again. If the call fails, for example because a filter of system calls forbids it,
  // memory could be reclaimed while a thread reads it, so the process must end.
  BRAIDDB_CHECK(Register() && Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0);
}

}  // namespace braiddb
