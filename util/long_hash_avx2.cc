// Compiled with -mavx2, for which XXH3 chooses its vectors. Must not call inline functions of other headers: the linker could
// take their code for the whole program, and the code would not run on other CPUs. XXH3's functions are static.
#include "util/long_hash_avx2.h"

#include <xxhash.h>

namespace braiddb {

uint64_t HashLongAvx2(const void* data, size_t bytes, uint64_t seed) { return XXH3_64bits_withSeed(data, bytes, seed); }

void AddAvx2(XXH3_state_t* state, const void* piece, size_t bytes) { XXH3_64bits_update(state, piece, bytes); }

}  // namespace braiddb
