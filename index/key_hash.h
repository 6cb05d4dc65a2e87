// KeyHash: the hash of a user key in its column family, used by all hash structures in DRAM. Never stored on media.
#pragma once

#include <xxhash.h>

#include <cstdint>

#include "braiddb/slice.h"

namespace braiddb {

// For key sizes that the compiler knows, the hash is inlined to a few instructions.
inline uint64_t KeyHash(Slice key) {
  if (key.size() == 8) return XXH3_64bits(key.data(), 8);
  if (key.size() == 16) return XXH3_64bits(key.data(), 16);
  return XXH3_64bits(key.data(), key.size());
}

// The odd multiplier has many one bits, so all bits of the hash differ between families.
inline uint64_t FamilyHash(uint32_t family) { return family * 0x9e3779b97f4a7c15ull; }
inline uint64_t KeyHash(uint32_t family, Slice key) { return KeyHash(key) ^ FamilyHash(family); }

}  // namespace braiddb
