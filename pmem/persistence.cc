#include "pmem/persistence.h"

#include <cpuid.h>

#include <algorithm>
#include <cstring>

#include "pmem/page_sync.h"
#include "pmem/write_counter.h"
#include "util/check.h"
#include "util/mutant.h"
#include "util/per_thread.h"
#include "util/spin.h"

namespace braiddb {
namespace {

enum class FlushInstruction : uint8_t { kClwb, kClflushopt, kClflush };

// CPUID leaf 7, EBX: bit 24 is CLWB, bit 23 is CLFLUSHOPT. CLWB keeps the line in the cache; CLFLUSHOPT evicts it; CLFLUSH
// evicts it, and flushes are ordered one after the other.
FlushInstruction BestFlushInstruction() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    if ((b & (1u << 24)) != 0) return FlushInstruction::kClwb;
    if ((b & (1u << 23)) != 0) return FlushInstruction::kClflushopt;
  }
  return FlushInstruction::kClflush;
}

void FlushLine(uintptr_t line, FlushInstruction instruction) {
  volatile char& byte = *reinterpret_cast<volatile char*>(line);
  switch (instruction) {
    case FlushInstruction::kClwb:
      asm volatile("clwb %0" : "+m"(byte));
      break;
    case FlushInstruction::kClflushopt:
      asm volatile("clflushopt %0" : "+m"(byte));
      break;
    case FlushInstruction::kClflush:
      asm volatile("clflush %0" : "+m"(byte));
      break;
  }
}

}  // namespace

// Number of lines that each thread has flushed since its last fence. Exists only while a write latency is injected: the fence
// then waits for all of them.
struct Persistence::PendingLines {
  PerThread<uint64_t> lines;
};

// Latencies are injected in kEmulated only, so that a wrong option does not slow down persistent memory.
Persistence::Persistence(PersistMode mode, const EmulationOptions& emulation)
    : path_(Path::kSlow),
      mode_(mode),
      instruction_(static_cast<uint8_t>(mode == PersistMode::kEmulated && emulation.flush_invalidates ? FlushInstruction::kClflush
                                                                                                      : BestFlushInstruction())) {
  BRAIDDB_CHECK(mode != PersistMode::kAuto);
  if (mode == PersistMode::kEmulated) {
    write_latency_ns_ = emulation.write_latency_ns;
    read_latency_ns_ = emulation.read_latency_ns;
    remote_latency_ns_ = emulation.remote_latency_ns;
  }
  if (mode == PersistMode::kPage) page_sync_ = std::make_unique<PageSync>(&fail_syncs_);
  if (write_latency_ns_ != 0) pending_lines_ = std::make_unique<PendingLines>();
  ChoosePath();
}

Persistence::~Persistence() = default;

// An observer needs the slow path, which calls it.
void Persistence::SetObserver(PersistObserver* observer) {
  observer_ = observer;
  ChoosePath();
}

void Persistence::CountWrites() {
  if (mode_ == PersistMode::kPage) return;
  counters_ = std::make_unique<WriteCounters>();
  ChoosePath();
}

PmWrites Persistence::writes() const { return counters_ == nullptr ? PmWrites() : counters_->Sum(); }

bool Persistence::HasClwb() { return BestFlushInstruction() == FlushInstruction::kClwb; }

// The fast paths are for a Persistence without observer, counters and latencies. kPage and CPUs without CLWB take the slow
// path.
void Persistence::ChoosePath() {
  const bool has_clwb = static_cast<FlushInstruction>(instruction_) == FlushInstruction::kClwb;
  path_ = Path::kSlow;
  streams_ = false;
  if (observer_ != nullptr || counters_ != nullptr || mode_ == PersistMode::kPage || write_latency_ns_ != 0) return;
  if (mode_ == PersistMode::kEadr) {
    path_ = Path::kFenceOnly;
  } else if (has_clwb) {
    path_ = Path::kClwb;
    // The probe measures DRAM. Its result says nothing about persistent memory, so only kEmulated streams.
    streams_ = mode_ == PersistMode::kEmulated && StreamingIsFaster();
  }
}

// STEPS  1 tell observer and counters  2 kEadr: done; kPage: remember the pages; else flush each line  3 count the lines for an
//        injected write latency.
void Persistence::FlushSlow(const void* address, size_t bytes) {
  BRAIDDB_DCHECK(path_ == Path::kSlow);
  asm volatile("" ::: "memory");  // the compiler keeps the stores to the flushed bytes before the flush
  if (BRAIDDB_MUTANT("flush-range-not-aligned") && bytes != 0) bytes = (bytes - 1) / kCacheLine * kCacheLine + 1;
  if (observer_ != nullptr) observer_->OnFlush(address, bytes);
  if (counters_ != nullptr) counters_->OnFlush(address, bytes);
  if (mode_ == PersistMode::kEadr || bytes == 0) return;
  if (mode_ == PersistMode::kPage) {
    page_sync_->Add(address, bytes);
    return;
  }
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address) & ~(kCacheLine - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(address) + bytes;
  for (uintptr_t line = begin; line < end; line += kCacheLine) FlushLine(line, static_cast<FlushInstruction>(instruction_));
  if (pending_lines_ != nullptr) {
    const uint64_t lines = (end - begin + kCacheLine - 1) / kCacheLine;
    if (uint64_t* pending = pending_lines_->lines.Get()) {
      *pending += lines;
    } else {
      SpinFor(lines * write_latency_ns_);  // a thread without a counter waits at once
    }
  }
}

// The observer sees the fence before it happens, so a crash simulator can cut the power between the flushes and the fence.
bool Persistence::DrainSlow() {
  BRAIDDB_DCHECK(path_ == Path::kSlow && (mode_ != PersistMode::kPage || page_sync_ != nullptr));
  if (observer_ != nullptr) observer_->OnDrain();
  if (counters_ != nullptr) counters_->OnDrain();
  if (mode_ == PersistMode::kPage) {
    if (page_sync_->Drain()) return true;
    // release: pairs with the acquire in failed(); error() is set before it.
    failed_.store(true, std::memory_order_release);
    return false;
  }
  asm volatile("sfence" ::: "memory");
  if (pending_lines_ != nullptr) {
    if (uint64_t* pending = pending_lines_->lines.Get(); pending != nullptr && *pending != 0) {
      SpinFor(*pending * write_latency_ns_);
      *pending = 0;
    }
  }
  return true;
}

Status Persistence::error() const { return page_sync_ ? page_sync_->error() : Status::OK(); }

}  // namespace braiddb
