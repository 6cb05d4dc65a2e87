// Arena: DRAM for nodes that are freed all at once, addressed by 32-bit references.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace braiddb {

// One reserved stretch of address space, filled front to back; a reference counts 8-byte units from its start.
// Thread safety: AllocateBlock and At may be called concurrently.
class Arena {
 public:
  // 8 GiB of address space; memory is taken as it is touched, in huge pages if `huge` and the system has them. Null if the
  // system refuses.
  static std::unique_ptr<Arena> Create(bool huge = true);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // A reference to `bytes` (a multiple of 8) of zeros; 0 when the arena is full. Meant for blocks that threads cut up.
  uint32_t AllocateBlock(uint64_t bytes);
  template <class T>
  T* At(uint32_t reference) const {
    return reinterpret_cast<T*>(base_ + uint64_t{reference} * 8);
  }
  uint64_t used_bytes() const;

  // Forgets all content; keeps at most `keep_bytes` of memory for reuse, and zeroes it. REQUIRES: no one uses a reference.
  void Reset(uint64_t keep_bytes);
  // Takes the memory of the first `bytes` now, so that their first use is no page fault. A hint; Linux 5.14 or later. REQUIRES:
  // as for Reset.
  void Populate(uint64_t bytes);

 private:
  static constexpr uint64_t kReserve = 8ull << 30;
  static constexpr uint64_t kFirst = 64;  // reference 0 means none

  Arena(uint8_t* base, uint64_t page) : base_(base), page_(page) {}

  uint64_t RoundUp(uint64_t bytes) const;

  uint8_t* const base_;
  const uint64_t page_;  // bytes
  std::atomic<uint64_t> used_{kFirst};
  uint64_t touched_ = 0;  // bytes from the start that have memory, at most
};

}  // namespace braiddb
