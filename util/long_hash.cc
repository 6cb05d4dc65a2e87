#include "util/long_hash.h"

#include "util/long_hash_avx2.h"

namespace braiddb {
namespace {

// False until the initialization of static objects reaches it. The results do not depend on it.
const bool kHasAvx2 = __builtin_cpu_supports("avx2");

}  // namespace

uint64_t HashLong(const void* data, size_t bytes, uint64_t seed) {
  return kHasAvx2 ? HashLongAvx2(data, bytes, seed) : XXH3_64bits_withSeed(data, bytes, seed);
}

LongHash::LongHash(uint64_t seed) {
  XXH3_INITSTATE(&state_);  // a reset reads some fields
  XXH3_64bits_reset_withSeed(&state_, seed);
}

void LongHash::Add(const void* piece, size_t bytes) {
  if (bytes == 0) return;  // the address may be null
  if (kHasAvx2) {
    AddAvx2(&state_, piece, bytes);
  } else {
    XXH3_64bits_update(&state_, piece, bytes);
  }
}

uint64_t LongHash::Result() const { return XXH3_64bits_digest(&state_); }

}  // namespace braiddb
