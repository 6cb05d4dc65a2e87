#include "db_bench/worker.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

namespace braiddb::bench {

void ExitOnError(const Status& status, const char* what) {
  if (status.ok()) return;
  std::fflush(stdout);
  std::fprintf(stderr, "%s error: %s\n", what, status.ToString().c_str());
  _exit(1);
}

ValueMaker::ValueMaker(size_t size, Random* random) : size_(size) {
  constexpr size_t kBytes = 1 << 20;
  bytes_.resize(std::max(kBytes, size));
  for (size_t i = 0; i + 8 <= bytes_.size(); i += 8) {
    const uint64_t word = random->Next();
    std::memcpy(bytes_.data() + i, &word, 8);
  }
}

void RateLimiter::Request(uint64_t units) {
  const uint64_t before = used_.fetch_add(units, std::memory_order_relaxed);
  const std::chrono::duration<double> due(static_cast<double>(before) / rate_);
  std::this_thread::sleep_until(start_ + std::chrono::duration_cast<Clock::duration>(due));
}

}  // namespace braiddb::bench
