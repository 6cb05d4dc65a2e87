#include "util/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>

namespace braiddb {
namespace {

static_assert(std::endian::native == std::endian::little && sizeof(std::atomic<uint64_t>) == sizeof(uint64_t));

// Not FUTEX_PRIVATE_FLAG: the memory may be shared.
long CallFutex(const std::atomic<uint64_t>& word, int operation, uint32_t number, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<const uint32_t*>(&word), operation, number, timeout, nullptr, 0);
}

}  // namespace

void FutexWait(const std::atomic<uint64_t>& word, uint64_t expected, std::chrono::nanoseconds timeout) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::max(timeout, std::chrono::nanoseconds(0)));
  const timespec relative{seconds.count(), std::max(timeout - seconds, std::chrono::nanoseconds(0)).count()};
  (void)CallFutex(word, FUTEX_WAIT, static_cast<uint32_t>(expected), &relative);
}

void FutexWakeAll(const std::atomic<uint64_t>& word) { (void)CallFutex(word, FUTEX_WAKE, INT_MAX, nullptr); }

}  // namespace braiddb
