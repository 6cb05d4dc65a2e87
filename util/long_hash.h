// XXH3 of long inputs by the widest vectors of the CPU. The results are those of XXH3_64bits_withSeed.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>

namespace braiddb {

// XXH3 hashes inputs of up to this number of bytes without vectors. XXH3_64bits_withSeed, inlined, is the fastest for these.
inline constexpr size_t kMaxShortHash = 240;

// Thread-safe.
uint64_t HashLong(const void* data, size_t bytes, uint64_t seed);

// The hash of an input that comes in pieces. Thread safety: none.
class LongHash {
 public:
  explicit LongHash(uint64_t seed);
  void Add(const void* piece, size_t bytes);
  // The hash of all pieces so far.
  uint64_t Result() const;

 private:
  XXH3_state_t state_;
};

}  // namespace braiddb
