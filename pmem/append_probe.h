// Which way of appending to persistent memory is the faster one on this CPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace braiddb {

// Copies words by stores that go past the caches. Both addresses are aligned to 8 bytes, and `bytes` is a multiple of 8.
inline void StreamWords(void* to, const void* from, size_t bytes) {
  using Word [[gnu::may_alias]] = uint64_t;  // whatever the bytes were stored as
  auto* const target = static_cast<Word*>(to);
  const auto* const source = static_cast<const Word*>(from);
  for (size_t i = 0; i < bytes / 8; ++i) asm volatile("movnti %1, %0" : "=m"(target[i]) : "r"(source[i]));
}

// Whether small records are durable sooner when they are streamed past the caches than when they are stored and flushed with
// CLWB, each with a fence. AMD's Zen 3 takes 110 ns and 180; Intel's Sapphire Rapids 180 and 130, where other instructions
// disappear behind the fence. So it is measured, once in a process, on DRAM, in less than a millisecond. False without CLWB.
bool StreamingIsFaster();

}  // namespace braiddb
