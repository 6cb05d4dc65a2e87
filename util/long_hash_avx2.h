// The functions of long_hash.h with AVX2. REQUIRES: the CPU has AVX2.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>

namespace braiddb {

uint64_t HashLongAvx2(const void* data, size_t bytes, uint64_t seed);
void AddAvx2(XXH3_state_t* state, const void* piece, size_t bytes);

}  // namespace braiddb
