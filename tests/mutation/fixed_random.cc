#include "tests/mutation/fixed_random.h"

#include <sys/random.h>

#include <cstddef>
#include <mutex>
#include <random>

namespace braiddb::test {
namespace {

std::mutex mutex;
std::mt19937_64 generator;

}  // namespace

void SeedGetrandom(uint64_t seed) {
  const std::lock_guard lock(mutex);
  generator.seed(seed);
}

}  // namespace braiddb::test

extern "C" ssize_t getrandom(void* buffer, size_t bytes, unsigned) {
  const std::lock_guard lock(braiddb::test::mutex);
  for (size_t i = 0; i < bytes; ++i)
    static_cast<unsigned char*>(buffer)[i] = static_cast<unsigned char>(braiddb::test::generator());
  return static_cast<ssize_t>(bytes);
}
