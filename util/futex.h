// Futexes (futex(2)): sleeps on a word of memory, which processes may share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace braiddb {

// Sleeps while the low half of `word` is that of `expected`, until FutexWakeAll or for `timeout`. May return early. The caller
// needs no permission to write the word.
void FutexWait(const std::atomic<uint64_t>& word, uint64_t expected, std::chrono::nanoseconds timeout);
// Wakes all threads of all processes that sleep on the word.
void FutexWakeAll(const std::atomic<uint64_t>& word);

}  // namespace braiddb
