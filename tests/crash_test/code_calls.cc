#include "tests/crash_test/code_calls.h"

#include <cstring>

extern "C" const char __executable_start, __etext;

namespace braiddb::test {
namespace {

constexpr uintptr_t kCallBytes = 5;  // the opcode and the distance from the next instruction to the function
constexpr uint8_t kCall = 0xe8;

// The function that an instruction which ends at `end` calls; 0 if it is not a call.
uintptr_t CalledBefore(uintptr_t end) {
  const auto* const code = reinterpret_cast<const uint8_t*>(end - kCallBytes);
  if (*code != kCall) return 0;
  int32_t distance = 0;
  std::memcpy(&distance, code + 1, sizeof(distance));
  return end + static_cast<uintptr_t>(static_cast<intptr_t>(distance));
}

}  // namespace

std::vector<uintptr_t> ReturnAddressesOfCalls(uintptr_t return_address) {
  std::vector<uintptr_t> found;
  const uintptr_t function = CalledBefore(return_address);
  if (function == 0) return found;
  const auto end = reinterpret_cast<uintptr_t>(&__etext);
  for (uintptr_t at = reinterpret_cast<uintptr_t>(&__executable_start) + kCallBytes; at <= end; ++at) {
    if (CalledBefore(at) == function) found.push_back(at);
  }
  return found;
}

}  // namespace braiddb::test
