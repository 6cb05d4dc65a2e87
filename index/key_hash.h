// KeyHash: the hash of a user key, for every structure in DRAM that finds keys by hash. Never on media.
#pragma once

#include <xxhash.h>

#include <cstdint>

#include "braiddb/slice.h"

namespace braiddb {

inline uint64_t KeyHash(Slice key) { return XXH3_64bits(key.data(), key.size()); }

}  // namespace braiddb
