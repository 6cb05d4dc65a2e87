// Test support: the end of a forked child.
#pragma once

#include <unistd.h>

// Of the coverage build; null in others.
extern "C" void __gcov_dump() __attribute__((weak));

namespace braiddb::test {

// Ends the process at once, without destructors. What it counted of the code that it passed is kept.
[[noreturn]] inline void LeaveChild(int code) {
  if (__gcov_dump != nullptr) __gcov_dump();
  _exit(code);
}

}  // namespace braiddb::test
