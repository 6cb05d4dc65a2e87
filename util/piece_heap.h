// PieceHeap: counted pieces of DRAM of any size up to kMaxPieceBytes, in slabs on huge pages where the system has them.
//
// STRUCTURE  A slab is a mapping with one bit for each granule of kGranule bytes. A piece is a range of granules of one slab. A
//            table has each piece's range and its count of references. The counts lie side by side, so that it takes no cache
//            miss for each piece to count the pieces of a large index.
// ALLOCATION First fit: the first slab with a free range that is long enough. So the last slabs become free first. A slab
//            without pieces is unmapped at once.
// SIZE       Slabs have kSlabBytes, which is a huge page. The slabs of a small heap are smaller: those of pieces that the user
//            announces have what these need. Else a slab is as large as a part of all that is mapped, or as the pieces that
//            were allocated since the last announcement. Pages that are never touched take no memory.
// SHARED     The slabs of a heap over a SharedHeap are ranges of it, so other processes can read the pieces. Where the SharedHeap
//            has no room to spare, a slab is private.
// Thread safety: all calls at any time. What a piece holds is the user's matter.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "util/shared_memory.h"

namespace braiddb {

class PieceHeap {
 public:
  static constexpr uint64_t kGranule = 64;
  static constexpr uint64_t kSlabBytes = 2ull << 20;
  static constexpr uint64_t kMaxPieceBytes = 64ull << 10;

  struct Piece {
    void* memory = nullptr;  // null: there is no memory; aligned to kGranule, not zeroed
    uint32_t id = 0;
  };

  // `shared`: where the slabs lie; it must outlive this heap. Null: private memory.
  explicit PieceHeap(SharedHeap* shared = nullptr) : shared_(shared) {}
  PieceHeap(const PieceHeap&) = delete;
  PieceHeap& operator=(const PieceHeap&) = delete;
  ~PieceHeap();

  // Pieces of so many bytes together will be allocated next. 0: nobody knows how many.
  void Expect(uint64_t bytes);
  // With one reference.
  Piece Allocate(uint64_t bytes);
  // Of the pieces id_at(0) … id_at(count - 1), one each.
  template <class IdAt>
  void AddReferences(uint64_t count, const IdAt& id_at) {
    const std::lock_guard lock(mutex_);
    for (uint64_t i = 0; i < count; ++i) ++pieces_[id_at(i)].references;
  }
  // The same. A piece without references is free.
  template <class IdAt>
  void Release(uint64_t count, const IdAt& id_at) {
    const std::lock_guard lock(mutex_);
    for (uint64_t i = 0; i < count; ++i) {
      if (--pieces_[id_at(i)].references == 0) Free(id_at(i));
    }
  }

  uint64_t used_bytes() const;
  uint64_t mapped_bytes() const;
  SharedHeap* shared() const { return shared_; }

 private:
  static constexpr uint64_t kWordBits = 64;
  static constexpr uint64_t kMinSlabBytes = 64ull << 10;
  static constexpr uint64_t kPage = kGranule * kWordBits;
  static constexpr uint64_t kShare = 32;  // a slab is this part of what is mapped

  struct Slab {
    char* memory = nullptr;  // null: none
    uint64_t bytes = 0;
    uint64_t heap_offset = 0;    // in the SharedHeap; 0: the slab is private
    uint64_t free = 0;           // granules
    uint64_t longest = 0;        // no free range has more granules
    std::vector<uint64_t> used;  // bits
  };
  struct Range {
    uint32_t slab;
    uint32_t first;  // granule
    uint32_t count;
    uint32_t references;
  };

  // In the slab; false if it has no such range.
  static bool FindRange(Slab* slab, uint64_t count, uint64_t* first);
  static void Mark(Slab* slab, uint64_t first, uint64_t count, bool is_used);
  // A slab with room for so many bytes; null if there is no memory.
  Slab* AddSlab(uint64_t bytes);
  // Sets `memory` and `heap_offset` of a slab of so many bytes. Null: there is no memory.
  void Map(Slab* slab, uint64_t bytes) const;
  void Unmap(Slab* slab);
  void Free(uint32_t id);
  Piece Take(Slab* slab, uint64_t first, uint64_t count);

  SharedHeap* const shared_;
  mutable std::mutex mutex_;
  std::vector<Slab> slabs_;
  std::vector<Range> pieces_;
  std::vector<uint32_t> free_ids_;  // has room for all ids
  uint64_t expected_ = 0;
  uint64_t since_ = 0;  // bytes of pieces since Expect
  uint64_t used_ = 0;
  uint64_t mapped_ = 0;
};

}  // namespace braiddb
