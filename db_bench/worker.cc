#include "db_bench/worker.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "db_bench/zipf.h"

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

std::vector<uint64_t> DrawKeys(const Flags& flags, uint64_t seed) {
  std::vector<uint64_t> draws;
  if (flags.zipf == 0) return draws;
  constexpr uint64_t kMost = 1 << 22;
  const ZipfDistribution zipf(static_cast<uint64_t>(flags.num), flags.zipf);
  const uint64_t counted = std::max(flags.Reads(), flags.Writes());
  draws.resize(flags.duration > 0 || counted > kMost / flags.batch_size ? kMost
                                                                        : std::max<uint64_t>(1, counted * flags.batch_size));
  Random random(seed);
  for (uint64_t& draw : draws) draw = zipf.Draw(&random);
  return draws;
}

}  // namespace braiddb::bench
