// Mutants: bugs that the crash test enables, one at a time, to prove that it detects them. They exist only in the library that is
// built for that test; otherwise the condition is the constant false.
//
//   if (!BRAIDDB_MUTANT("journal-not-flushed")) persistence->Flush(record, bytes);
//
// tests/crash_test/mutants.cc and tests/lb_tree/mutants.h list them, docs/TESTING.md explains them.
#pragma once

#ifdef BRAIDDB_CRASH_TEST

#include <cstdint>
#include <cstring>

namespace braiddb {

inline constexpr bool kCrashTest = true;

// The enabled mutant, null for none, and the counter of its activations. Set before any thread starts.
inline const char* live_mutant = nullptr;
inline uint64_t* mutant_hits = nullptr;

inline bool MutantActs(const char* name) {
  if (live_mutant == nullptr || std::strcmp(live_mutant, name) != 0) return false;
  ++*mutant_hits;
  return true;
}

}  // namespace braiddb

#define BRAIDDB_MUTANT(name) ::braiddb::MutantActs(name)

#else

namespace braiddb {

// True in the library of the crash test, in which some sizes are small so that rare events are frequent.
inline constexpr bool kCrashTest = false;

}  // namespace braiddb

#define BRAIDDB_MUTANT(name) false

#endif
