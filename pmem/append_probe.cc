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
constexpr size_t kAppends = 512;  // appends in one sample; the first ones of a sample take longer
constexpr int kSamples = 4;       // samples of each method; the fastest one counts, since others may have been interrupted
// Streaming is chosen if it takes less than this fraction of the time of cached appends. A streamed record is in no cache, so
// the next reader of the record pays for the gain of the writer.
constexpr double kMaxStreamedShare = 0.9;

void FlushLine(uint8_t* line) { asm volatile("clwb %0" : "+m"(*line)); }
void Fence() { asm volatile("sfence" ::: "memory"); }

// Returns the nanoseconds that kAppends appends take. Each append does what a put does: a locked instruction, the stores, and a
// fence. The cached method also prefetches a later line for writing, as a put does.
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

// Measures both methods in turn on the same memory, each sample on lines of its own. Returns true if streaming is chosen.
// COST  One allocation of 256 KiB and 16 lines, freed at the end; about 4,000 appends.
bool Probe() {
  constexpr size_t kBytes = 2 * kSamples * kAppends * kRecord;
  struct Free {
    void operator()(uint8_t* memory) const { ::operator delete(memory, std::align_val_t(kCacheLine)); }
  };
  const std::unique_ptr<uint8_t, Free> memory(
      static_cast<uint8_t*>(::operator new(kBytes + 16 * kRecord, std::align_val_t(kCacheLine), std::nothrow)));
  if (memory == nullptr) return false;
  std::memset(memory.get(), 1, kBytes + 16 * kRecord);
  // A log appends to lines that are in no cache, so the probe evicts its lines first.
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
  return streamed < kMaxStreamedShare * stored;
}

std::atomic<int> g_forced{-1};  // ForceStreamingForTest: 0 or 1; -1: the measured result

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
