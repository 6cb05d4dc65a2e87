// Persistence: the only interface through which code makes stores durable.
//
// GUARANTEE  A store is durable if Flush was called on its bytes after the store, and Drain has returned true, both by the
//            thread that stored. Append stores and flushes. A line may also become durable at any earlier time after the store,
//            in any order with other lines.
// MODES      kCacheLine, kEmulated: Flush writes cache lines back, Drain is a fence. kEadr: Flush does nothing, Drain is a
//            fence. kPage: Flush remembers pages, Drain syncs them by msync (page_sync.h).
// USE        A structure with fields and one word that makes them count, the pattern of every commit point here:
//
//              entry->value = value;                                      // P1 the fields
//              persistence->Flush(entry, sizeof(*entry));                 // starts their write-back
//              if (!persistence->Drain()) return persistence->error();    // ORDER: the fields before the word
//              StoreRelease(&entry->word, Checked(value));                // P2 the commit point, one 8-byte store
//              persistence->Flush(&entry->word, sizeof(uint64_t));        // starts its write-back
//              if (!persistence->Drain()) return persistence->error();    // the change is durable
//
//            A crash before P2 is durable leaves the old word, whatever the fields have. A crash after P2 leaves the new state.
// WHY        No flush or fence instruction stands outside this folder. So a crash simulator behind the interface
//            (PersistObserver) sees every flush and every fence of the engine.
// ERRORS     Only kPage can fail. After a failed msync, all later Drains fail and the database takes no more writes.
// PATHS      Flush and Drain have an inline fast path for CLWB and for kEadr. Observers, counters, injected latencies, kPage
//            and older CPUs take the slow path, which is chosen once (ChoosePath).
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
#include "util/check.h"

namespace braiddb {

inline constexpr size_t kCacheLine = 64;

// PersistObserver: receives every flush and every fence before it happens, in the order of the calling thread. For crash tests.
// Implementations must be thread-safe.
class PersistObserver {
 public:
  virtual ~PersistObserver() = default;
  virtual void OnFlush(const void* address, size_t bytes) = 0;
  virtual void OnDrain() = 0;
  // The file system has taken the blocks of these bytes back: they are zero, and durably so at once.
  virtual void OnHole(const void* /*address*/, size_t /*bytes*/) {}
};

// Sums of what was written back to persistent memory (write_counter.h).
struct PmWrites {
  uint64_t lines = 0;     // cache lines
  uint64_t xp_lines = 0;  // units of 256 bytes
  uint64_t fences = 0;
};
class WriteCounters;

// Thread safety: all methods but SetObserver and CountWrites may be called concurrently.
class Persistence {
 public:
  // REQUIRES: `mode` is resolved (not kAuto). `emulation` counts in kEmulated only.
  Persistence(PersistMode mode, const EmulationOptions& emulation);
  ~Persistence();
  Persistence(const Persistence&) = delete;
  Persistence& operator=(const Persistence&) = delete;

  PersistMode mode() const { return mode_; }
  // Returns true if the CPU has CLWB, which writes a line back and keeps it in the cache.
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

  // Copies `bytes` bytes and starts their write-back, as memcpy and Flush do. An observer sees the Flush. If streams() is true,
  // the copy bypasses the caches, and is in no cache afterwards.
  // REQUIRES: both addresses are aligned to 8 bytes, and `bytes` is a multiple of 8.
  void Append(void* to, const void* from, size_t bytes) {
    BRAIDDB_DCHECK(bytes % 8 == 0 && reinterpret_cast<uintptr_t>(to) % 8 == 0 && reinterpret_cast<uintptr_t>(from) % 8 == 0);
    if (streams_) {
      StreamWords(to, from, bytes);
    } else {
      std::memcpy(to, from, bytes);
      Flush(to, bytes);
    }
  }
  // Returns true if Append bypasses the caches. Then a prefetch of its lines is useless, and the CPU executes later loads while
  // the fence waits. Only in kEmulated, if append_probe.h has found streaming to be faster.
  bool streams() const { return streams_; }
  // Returns true if the lines of long values should bypass the caches (StreamLines): memory does not load these lines first, and
  // none of them is flushed. Drain makes them durable.
  bool streams_lines() const { return path_ == Path::kClwb; }

  // Waits until all bytes that the calling thread has flushed are durable. Returns false if they are not (msync failed):
  // error() has the reason, every later Drain fails as well, and the caller must stop writing.
  [[nodiscard]] bool Drain() {
    if (__builtin_expect(path_ == Path::kClwb || path_ == Path::kFenceOnly, 1)) {
      asm volatile("sfence" ::: "memory");
      return true;
    }
    return DrainSlow();
  }

  // Flush and Drain.
  [[nodiscard]] bool Persist(const void* address, size_t bytes) {
    Flush(address, bytes);
    return Drain();
  }

  // Tells the observer that the bytes have lost their blocks, and read as zeros.
  void NoteHole(const void* address, size_t bytes) {
    if (observer_ != nullptr) observer_->OnHole(address, bytes);
  }

  // Returns true after the first failed Drain, for ever. acquire: pairs with the release in DrainSlow; error() is set.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // OK, or the reason of the first failure.
  Status error() const;

  // Injected latencies, nanoseconds; 0 unless emulated.
  uint32_t read_latency_ns() const { return read_latency_ns_; }
  uint32_t remote_latency_ns() const { return remote_latency_ns_; }

  // Sets the observer; null removes it. REQUIRES: no other thread uses this object yet.
  void SetObserver(PersistObserver* observer);

  // Counts flushes and fences from now on, with or without an observer. In kEadr the flushes that a platform without eADR would
  // need are counted. In kPage nothing is counted. Throws std::bad_alloc. REQUIRES: no other thread uses this object yet.
  void CountWrites();
  bool counts_writes() const { return counters_ != nullptr; }
  // Returns the sums over all threads; all 0 without CountWrites.
  PmWrites writes() const;

  // For tests: lets every later msync fail with EIO, as a broken disk would (kPage only).
  void FailSyncsForTest() { fail_syncs_.store(true, std::memory_order_relaxed); }

 private:
  // kClwb: inline CLWB and fence. kFenceOnly: kEadr, inline fence. kSlow: FlushSlow and DrainSlow.
  enum class Path : uint8_t { kClwb, kFenceOnly, kSlow };
  class PageSync;
  struct PendingLines;

  // Sets path_ and streams_ from mode, CPU, observer, counters and latencies.
  void ChoosePath();
  void FlushSlow(const void* address, size_t bytes);
  bool DrainSlow();

  Path path_;
  bool streams_ = false;
  const PersistMode mode_;
  const uint8_t instruction_;  // FlushInstruction of FlushSlow
  uint32_t write_latency_ns_ = 0;
  uint32_t read_latency_ns_ = 0;
  uint32_t remote_latency_ns_ = 0;
  PersistObserver* observer_ = nullptr;
  std::unique_ptr<WriteCounters> counters_;  // null without CountWrites
  std::atomic<bool> failed_{false};
  std::atomic<bool> fail_syncs_{false};
  std::unique_ptr<PageSync> page_sync_;          // kPage only
  std::unique_ptr<PendingLines> pending_lines_;  // with a write latency only
};

// Atomic access to 8-byte words of persistent memory, the unit of atomicity on media. The compiler neither splits nor repeats
// these accesses. REQUIRES: the word is aligned to 8 bytes.
//
// StoreRelease: a thread that loads the new value with LoadAcquire sees all earlier stores of this thread. Durability is
// another matter: it needs Flush and Drain.
inline void StoreRelease(uint64_t* word, uint64_t value) {
  BRAIDDB_DCHECK(reinterpret_cast<uintptr_t>(word) % 8 == 0);
  std::atomic_ref<uint64_t>(*word).store(value, std::memory_order_release);
}
// StoreRelaxed: orders nothing. For words that are published by a later store, or read by the same thread.
inline void StoreRelaxed(uint64_t* word, uint64_t value) {
  BRAIDDB_DCHECK(reinterpret_cast<uintptr_t>(word) % 8 == 0);
  std::atomic_ref<uint64_t>(*word).store(value, std::memory_order_relaxed);
}
// LoadAcquire: pairs with StoreRelease of the same word.
inline uint64_t LoadAcquire(const uint64_t* word) {
  return std::atomic_ref<uint64_t>(*const_cast<uint64_t*>(word)).load(std::memory_order_acquire);
}
// LoadRelaxed: for words whose value is verified, or stable because no other thread writes them.
inline uint64_t LoadRelaxed(const uint64_t* word) {
  return std::atomic_ref<uint64_t>(*const_cast<uint64_t*>(word)).load(std::memory_order_relaxed);
}

}  // namespace braiddb
