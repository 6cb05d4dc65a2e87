// Persistence: the one narrow interface through which code makes stores durable.
//
// A store is durable once Flush() was called on its bytes after the store and Drain() has returned true, both by the
// thread that stored; Append() stores and flushes. Nothing else orders durability; a line may also become durable on its own at
// any time after the store.
// No flush or fence instruction stands outside this folder, so that a crash simulator can stand behind the interface.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "braiddb/options.h"
#include "braiddb/status.h"
#include "pmem/append_probe.h"

namespace braiddb {

inline constexpr size_t kCacheLine = 64;

// Sees every flush and every fence, in the order in which the calling thread makes them. For crash tests. Must be thread-safe.
class PersistObserver {
 public:
  virtual ~PersistObserver() = default;
  virtual void OnFlush(const void* address, size_t bytes) = 0;
  virtual void OnDrain() = 0;
};

// What was written back to persistent memory (write_counter.h).
struct PmWrites {
  uint64_t lines = 0;     // cache lines
  uint64_t xp_lines = 0;  // units of 256 bytes
  uint64_t fences = 0;
};
class WriteCounters;

// Thread safety: all methods but SetObserver and CountWrites may be called concurrently.
class Persistence {
 public:
  // `mode` must be resolved (not kAuto).
  Persistence(PersistMode mode, const EmulationOptions& emulation);
  ~Persistence();
  Persistence(const Persistence&) = delete;
  Persistence& operator=(const Persistence&) = delete;

  PersistMode mode() const { return mode_; }
  static bool HasClwb();

  // Starts the write-back of every cache line that [address, address + bytes) touches. Does not wait.
  void Flush(const void* address, size_t bytes) {
    if (__builtin_expect(path_ == Path::kClwb, 1)) {
      asm volatile("" ::: "memory");  // the compiler keeps the stores to the flushed bytes before the flush
      const auto first = reinterpret_cast<uintptr_t>(address) & ~(kCacheLine - 1);
      for (uintptr_t line = first; line < reinterpret_cast<uintptr_t>(address) + bytes; line += kCacheLine) {
        asm volatile("clwb %0" : "+m"(*reinterpret_cast<volatile char*>(line)));
      }
    } else if (path_ != Path::kFenceOnly) {
      FlushSlow(address, bytes);
    }
  }

  // Stores a copy and starts its write-back, as a memcpy and a Flush do, and for an observer with these. Where that is faster
  // (append_probe.h), emulated and without injected latencies, the copy goes past the caches, and is in none of them afterwards.
  // REQUIRES: both addresses are aligned to 8 bytes, and `bytes` is a multiple of 8.
  void Append(void* to, const void* from, size_t bytes) {
    if (streams_) {
      StreamWords(to, from, bytes);
    } else {
      std::memcpy(to, from, bytes);
      Flush(to, bytes);
    }
  }
  // Whether Append goes past the caches: to fetch its lines before is of no use then, and loads go on behind the fence.
  bool streams() const { return streams_; }

  // Waits until everything that this thread flushed is durable. False: it is not (msync failed); error() says why, every later
  // Drain() fails too, and the caller must stop writing.
  [[nodiscard]] bool Drain() {
    if (__builtin_expect(path_ == Path::kClwb || path_ == Path::kFenceOnly, 1)) {
      asm volatile("sfence" ::: "memory");
      return true;
    }
    return DrainSlow();
  }

  [[nodiscard]] bool Persist(const void* address, size_t bytes) {
    Flush(address, bytes);
    return Drain();
  }

  // True once a persist failed. Never goes back.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  Status error() const;

  // Injected latencies, nanoseconds; 0 unless emulated.
  uint32_t read_latency_ns() const { return read_latency_ns_; }
  uint32_t remote_latency_ns() const { return remote_latency_ns_; }

  // Before any other thread uses this object; null removes it.
  void SetObserver(PersistObserver* observer);

  // Before any other thread uses this object: counts what is flushed and fenced from now on, whoever observes it. In kEadr that
  // is what would be flushed elsewhere; in kPage, which writes whole pages by msync, nothing is counted. Throws std::bad_alloc.
  void CountWrites();
  bool counts_writes() const { return counters_ != nullptr; }
  // Of all threads; all 0 without CountWrites.
  PmWrites writes() const;

  // Makes msync of ranges fail from now on, as a broken disk would (kPage only). For tests.
  void FailSyncsForTest() { fail_syncs_.store(true, std::memory_order_relaxed); }

 private:
  enum class Path : uint8_t { kClwb, kFenceOnly, kSlow };
  class PageSync;
  struct PendingLines;

  void ChoosePath();
  void FlushSlow(const void* address, size_t bytes);
  bool DrainSlow();

  Path path_;
  bool streams_ = false;
  const PersistMode mode_;
  const uint8_t instruction_;  // what FlushSlow flushes a line with
  uint32_t write_latency_ns_ = 0;
  uint32_t read_latency_ns_ = 0;
  uint32_t remote_latency_ns_ = 0;
  PersistObserver* observer_ = nullptr;
  std::unique_ptr<WriteCounters> counters_;  // null: nothing is counted
  std::atomic<bool> failed_{false};
  std::atomic<bool> fail_syncs_{false};
  std::unique_ptr<PageSync> page_sync_;          // kPage only
  std::unique_ptr<PendingLines> pending_lines_;  // with a write latency only
};

// A compiler-proof 8-byte store to persistent memory, the unit of atomicity on media. Release: what was stored before is
// visible to whoever acquires the new value.
inline void StoreRelease(uint64_t* word, uint64_t value) {
  std::atomic_ref<uint64_t>(*word).store(value, std::memory_order_release);
}
inline void StoreRelaxed(uint64_t* word, uint64_t value) {
  std::atomic_ref<uint64_t>(*word).store(value, std::memory_order_relaxed);
}
inline uint64_t LoadAcquire(const uint64_t* word) {
  return std::atomic_ref<uint64_t>(*const_cast<uint64_t*>(word)).load(std::memory_order_acquire);
}
inline uint64_t LoadRelaxed(const uint64_t* word) {
  return std::atomic_ref<uint64_t>(*const_cast<uint64_t*>(word)).load(std::memory_order_relaxed);
}

}  // namespace braiddb
