#include "pmem/append_probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "pmem/append_probe_for_test.h"
#include "pmem/persistence.h"

namespace braiddb {
namespace {

constexpr size_t kRecord = kCacheLine;
constexpr size_t kAppends = 512;  // of one sample: the first hundred take longer
constexpr int kSamples = 4;       // of each way; the fastest counts, since others may have been interrupted
// Streaming gives up that the record is in a cache for who reads it next: it has to gain something.
constexpr double kWorthIt = 0.9;

void FlushLine(uint8_t* line) { asm volatile("clwb %0" : "+m"(*line)); }
void Fence() { asm volatile("sfence" ::: "memory"); }

// Nanoseconds for kAppends appends, as Persistence makes them and a put calls it: lines are fetched ahead when they
// are stored to, and a locked instruction follows.
template <class Append>
double Measure(uint8_t* lines, const Append& append) {
  uint64_t counter = 0;
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < kAppends; ++i) {
    std::atomic_ref<uint64_t>(counter).fetch_add(1, std::memory_order_seq_cst);
    append(lines + i * kRecord, counter);
    Fence();
  }
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

bool Probe() {
  constexpr size_t kBytes = 2 * kSamples * kAppends * kRecord;
  struct Free {
    void operator()(uint8_t* memory) const { ::operator delete(memory, std::align_val_t(kCacheLine)); }
  };
  const std::unique_ptr<uint8_t, Free> memory(
      static_cast<uint8_t*>(::operator new(kBytes + 16 * kRecord, std::align_val_t(kCacheLine), std::nothrow)));
  if (memory == nullptr) return false;
  std::memset(memory.get(), 1, kBytes + 16 * kRecord);
  // The log's lines are in no cache.
  for (size_t i = 0; i < kBytes; i += kRecord) asm volatile("clflush %0" : "+m"(memory.get()[i]));
  Fence();
  uint8_t* at = memory.get();
  double stored = 0, streamed = 0;
  for (int sample = 0; sample < kSamples; ++sample) {
    const double stored_now = Measure(at, [](uint8_t* line, uint64_t value) {
      asm volatile("prefetchw %0" : : "m"(line[8 * kRecord]));
      for (size_t i = 0; i < kRecord / 8; ++i) StoreRelaxed(reinterpret_cast<uint64_t*>(line) + i, value + i);
      FlushLine(line);
    });
    at += kAppends * kRecord;
    const double streamed_now = Measure(at, [](uint8_t* line, uint64_t value) {
      uint64_t record[kRecord / 8];
      for (uint64_t& word : record) word = value++;
      StreamWords(line, record, kRecord);
    });
    at += kAppends * kRecord;
    stored = sample == 0 ? stored_now : std::min(stored, stored_now);
    streamed = sample == 0 ? streamed_now : std::min(streamed, streamed_now);
  }
  return streamed < kWorthIt * stored;
}

std::atomic<int> g_forced{-1};

}  // namespace

void ForceStreamingForTest(std::optional<bool> streams) {
  g_forced.store(streams ? static_cast<int>(*streams) : -1, std::memory_order_relaxed);
}

bool StreamingIsFaster() {
  if (const int forced = g_forced.load(std::memory_order_relaxed); forced >= 0) return forced == 1 && Persistence::HasClwb();
  static const bool kFaster = Persistence::HasClwb() && Probe();
  return kFaster;
}

}  // namespace braiddb
