// In this program, what getrandom gives follows from a seed, so that a database can be made again.
#pragma once

#include <cstdint>

namespace braiddb::test {

void SeedGetrandom(uint64_t seed);

}  // namespace braiddb::test
