// Arena: a DRAM allocator for nodes that are freed together. Nodes are addressed by 32-bit references.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "util/shared_memory.h"

namespace braiddb {

// A reference counts 8-byte units from the start of the arena and stays valid until Reset.
//
// LAYOUT  The first extent has F units, a power of two. Later extents are mapped on demand: extent k has the F * 2^k units from F
//         * 2^k on. The highest bit of a reference therefore gives its extent. A block lies in one extent; the rest of an extent
//         that is too small for a block is lost.
// SHARED  An arena in a SharedHeap can be read by other processes: Attach makes an arena over the same memory that only resolves
//         references. The head of the first extent has the offsets of the later extents, and words for the arena's owner.
// Thread safety: AllocateBlock and At may be called concurrently.
class Arena {
 public:
  // Words that the owner of an arena may use to tell readers in other processes where its structures are. Zero at first.
  static constexpr uint32_t kOwnersWords = 8;
  // An arena of another process may be reused while it is read, if the reader has expired (db/live_reader.h). So every reference
  // leads to memory that can be read: into the heap, or into a guard of zeros behind the heap. Behind each reference
  // kGuardBytes - kMostInGuard bytes can be read.
  static constexpr uint64_t kGuardBytes = 16ull << 30;
  static constexpr uint64_t kMostInGuard = 4ull << 30;

  // `first_bytes`: rounded up to a power of two. Reserves this address space; the system provides memory as it is touched, in
  // huge pages if `huge` and available. Null if the system refuses.
  // `heap`: the memory is taken from this heap, which must outlive the arena; null: private memory.
  static std::unique_ptr<Arena> Create(bool huge = true, uint64_t first_bytes = 64ull << 20, SharedHeap* heap = nullptr);
  // An arena of another process: its first extent has `first_bytes` at `offset` of the heap that `memory` maps. Only At and
  // OwnersWord may be called. Null if there is no memory.
  static std::unique_ptr<Arena> Attach(const SharedMemory* memory, uint64_t offset, uint64_t first_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns a reference to `bytes` (a multiple of 8) zeroed bytes; 0 if the arena is full (8 GiB) or the system has no memory.
  // Threads divide such blocks into nodes.
  uint32_t AllocateBlock(uint64_t bytes);
  template <class T>
  T* At(uint32_t reference) const {
    if (__builtin_expect(reference < first_units_, 1)) return reinterpret_cast<T*>(base_ + uint64_t{reference} * 8);
    return reinterpret_cast<T*>(AtLater(reference));
  }
  // Bytes in blocks and in skipped ends of extents.
  uint64_t used_bytes() const;
  uint64_t first_bytes() const { return first_units_ * 8; }
  // The offset of the first extent in the heap; 0 if the arena is in private memory.
  uint64_t heap_offset() const { return heap_offset_; }
  SharedHeap* heap() const { return heap_; }
  // Whether the arena is another process'.
  bool is_attached() const { return memory_ != nullptr; }
  std::atomic<uint64_t>* OwnersWord(uint32_t i) const { return &head()->owners[i]; }

  // Frees all contents. Keeps at most `keep_bytes` of the first extent's memory and zeroes it. REQUIRES: no thread uses a
  // reference.
  void Reset(uint64_t keep_bytes);
  // Allocates the memory of the first `bytes` of the first extent, so that their first use causes no page fault. A hint; needs
  // Linux 5.14. REQUIRES: as for Reset.
  void Populate(uint64_t bytes);

 private:
  static constexpr uint64_t kMost = 8ull << 30;
  static constexpr uint64_t kLeastFirst = 64ull << 10;
  static constexpr uint32_t kMostLater = 17;
  // At the beginning of the first extent.
  struct Head {
    std::atomic<uint64_t> owners[kOwnersWords];
    std::atomic<uint64_t> later[kMostLater + 1];  // offsets of the later extents in the heap
  };
  // The bytes before the first block; so reference 0 means none.
  static constexpr uint64_t kFirst = 256;
  static_assert(sizeof(Head) <= kFirst);
  static_assert(kLeastFirst << kMostLater == kMost);

  Arena(uint8_t* base, uint64_t first_bytes, bool huge, SharedHeap* heap, const SharedMemory* memory, uint64_t heap_offset);

  Head* head() const { return reinterpret_cast<Head*>(base_); }
  // For an arena of another process: where the reference leads, or the guard.
  uint8_t* AtForeign(uint32_t reference) const;
  uint64_t RoundUp(uint64_t bytes) const;
  // The number of a later extent.
  uint32_t LaterOf(uint64_t units) const { return static_cast<uint32_t>(std::bit_width(units) - std::bit_width(first_units_)); }
  // relaxed: a thread that has a reference synchronized with the thread that allocated it.
  uint8_t* AtLater(uint32_t reference) const {
    if (__builtin_expect(is_attached(), 0)) return AtForeign(reference);
    const uint32_t later = LaterOf(reference);
    // Computed as integers: an address that is only prefetched may lie behind all extents.
    const auto extent = reinterpret_cast<uintptr_t>(later_[later].load(std::memory_order_relaxed));
    return reinterpret_cast<uint8_t*>(extent + (reference - (first_units_ << later)) * 8);
  }
  uint32_t AllocateLater(uint64_t start, uint64_t bytes);
  bool MapLater(uint32_t later);
  void FreeLater(uint32_t later);
  static uint8_t* Map(uint64_t bytes, bool huge);
  // Zeroes memory of the first extent by giving it back. False if the system keeps some.
  bool EmptyFrom(uint64_t offset, uint64_t bytes);

  uint8_t* const base_;
  const uint64_t first_units_;
  const bool huge_;
  SharedHeap* const heap_;            // null: private memory, or another process' arena
  const SharedMemory* const memory_;  // of another process' arena; else null
  const uint64_t heap_offset_;
  std::atomic<uint64_t> used_{kFirst};
  uint64_t touched_ = 0;  // upper bound of the bytes of the first extent that have memory
  std::mutex map_mutex_;
  std::atomic<uint8_t*> later_[kMostLater + 1] = {};  // null: not mapped yet; the last one stays null
};

}  // namespace braiddb
