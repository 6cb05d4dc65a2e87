// KeyHash: the hash of a user key in its column family, for every structure in DRAM that finds keys by hash. Never on media.
#pragma once

#include <xxhash.h>

#include <cstdint>

#include "braiddb/slice.h"

namespace braiddb {

// Of a size that is known to the compiler it is a few instructions, and no call.
inline uint64_t KeyHash(Slice key) {
  if (key.size() == 8) return XXH3_64bits(key.data(), 8);
  if (key.size() == 16) return XXH3_64bits(key.data(), 16);
  return XXH3_64bits(key.data(), key.size());
}

// Multiplied by an odd number with many ones: all bits of the hash differ from one family to the next.
inline uint64_t FamilyHash(uint32_t family) { return family * 0x9e3779b97f4a7c15ull; }
inline uint64_t KeyHash(uint32_t family, Slice key) { return KeyHash(key) ^ FamilyHash(family); }

}  // namespace braiddb
