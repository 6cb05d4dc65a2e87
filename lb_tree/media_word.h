// StoreWord: the stores of LB+-Tree to persistent memory.
#pragma once

#include <cstdint>

#include "pmem/persistence.h"
#include "util/mutant.h"

namespace braiddb {

// Called before each StoreWord, in builds for crash tests only: the test needs the order of the stores to each line.
using MediaStoreHook = void (*)(uint64_t* word, uint64_t value);
inline MediaStoreHook media_store_hook = nullptr;

// Stores a word with release. Stores to one cache line reach media in program order: x86 does not reorder stores, and a line is
// written back as a whole, so after a crash a line has a prefix of its stores. [CC-70]
inline void StoreWord(uint64_t* word, uint64_t value) {
  if (kCrashTest && media_store_hook != nullptr) media_store_hook(word, value);
  StoreRelease(word, value);
}

}  // namespace braiddb
