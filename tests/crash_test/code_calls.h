// Finds calls in the program's own machine code (x86-64).
#pragma once

#include <cstdint>
#include <vector>

namespace braiddb::test {

// A call returned to `return_address`: the addresses to which all calls of the same function in this program return, ascending.
// The program must be linked to fixed addresses if they are to mean something in another process.
std::vector<uintptr_t> ReturnAddressesOfCalls(uintptr_t return_address);

}  // namespace braiddb::test
