// Pieces of a heap do not overlap, keep what was written, and their slabs go when no piece is left.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/support/db_test_util.h"
#include "util/page_size.h"
#include "util/piece_heap.h"

namespace braiddb::test {
namespace {

struct Held {
  PieceHeap::Piece piece;
  uint64_t bytes;
  uint8_t fill;
  uint64_t references;
};

bool IsIntact(const Held& held) {
  const auto* const bytes = static_cast<const uint8_t*>(held.piece.memory);
  for (uint64_t i = 0; i < held.bytes; ++i) {
    if (bytes[i] != held.fill) return false;
  }
  return true;
}

TEST(PieceHeapTest, PiecesKeepWhatIsTheirs) {
  Random random(7);
  PieceHeap heap;
  std::vector<Held> all;
  for (uint64_t step = 0; step < 6000 / kSlowdown; ++step) {
    const bool grows = step / 500 % 2 == 0;
    if (all.empty() || !random.OneIn(grows ? 4 : 2)) {
      const uint64_t bytes = random.OneIn(10) ? random.Range(1, PieceHeap::kMaxPieceBytes) : random.Range(4000, 18'000);
      const PieceHeap::Piece piece = heap.Allocate(bytes);
      ASSERT_NE(piece.memory, nullptr);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(piece.memory) % PieceHeap::kGranule, 0u);
      const auto fill = static_cast<uint8_t>(random.Next());
      std::memset(piece.memory, fill, bytes);
      all.push_back({piece, bytes, fill, 1});
      continue;
    }
    const size_t at = random.Uniform(all.size());
    const auto id_at = [&](uint64_t) { return all[at].piece.id; };
    if (random.OneIn(3)) {
      heap.AddReferences(1, id_at);
      ++all[at].references;
      continue;
    }
    ASSERT_TRUE(IsIntact(all[at]));
    heap.Release(1, id_at);
    if (--all[at].references == 0) {
      all[at] = all.back();
      all.pop_back();
    }
  }
  uint64_t bytes = 0;
  for (const Held& held : all) {
    ASSERT_TRUE(IsIntact(held));
    bytes += (held.bytes + PieceHeap::kGranule - 1) / PieceHeap::kGranule * PieceHeap::kGranule;
  }
  EXPECT_EQ(heap.used_bytes(), bytes);
  for (const Held& held : all) {
    for (uint64_t i = 0; i < held.references; ++i) heap.Release(1, [&](uint64_t) { return held.piece.id; });
  }
  EXPECT_EQ(heap.used_bytes(), 0u);
  EXPECT_EQ(heap.mapped_bytes(), 0u);
}

// Other processes find what was written, and the memory goes back with the slabs.
TEST(PieceHeapTest, PiecesLieInTheSharedHeap) {
  const auto shared = SharedHeap::Create();
  const auto mapped = SharedMemory::Attach(shared->memory().OpenToRead(), false, 1);
  const uint64_t first = shared->Allocate(1);
  shared->Free(first, 1);
  {
    PieceHeap heap(shared.get());
    std::vector<Held> all;
    for (uint8_t i = 1; i < 250; ++i) {
      all.push_back({heap.Allocate(16 << 10), 16 << 10, i, 1});
      std::memset(all.back().piece.memory, i, 16 << 10);
    }
    for (const Held& held : all) {
      const auto offset = static_cast<uint64_t>(static_cast<uint8_t*>(held.piece.memory) - shared->At(0));
      ASSERT_LT(offset, mapped->bytes());
      EXPECT_EQ(mapped->base()[offset], held.fill);
      EXPECT_EQ(mapped->base()[offset + held.bytes - 1], held.fill);
    }
    heap.Release(all.size(), [&](uint64_t i) { return all[i].piece.id; });
    EXPECT_EQ(heap.mapped_bytes(), 0u);
  }
  EXPECT_EQ(shared->Allocate(4 << 20) % kHugePageBytes, 0u);
  EXPECT_EQ(shared->Allocate(1), first) << "all ranges came back";
}

// What is announced is what is mapped, and a slab is a huge page if there is data for one.
TEST(PieceHeapTest, MapsWhatThereIsDataFor) {
  constexpr uint64_t kPiece = 17'472;
  for (const uint64_t pieces : {1, 10, 119, 120, 121, 400}) {
    PieceHeap heap;
    heap.Expect(pieces * kPiece);
    for (uint64_t i = 0; i < pieces; ++i) ASSERT_NE(heap.Allocate(kPiece).memory, nullptr);
    EXPECT_EQ(heap.used_bytes(), pieces * kPiece);
    EXPECT_LE(heap.mapped_bytes(), pieces * kPiece * 102 / 100 + (pieces < 120 ? 4096 : 64 << 10)) << pieces;
  }
}

// The slab that a few pieces need after the first ones is a small part of all.
TEST(PieceHeapTest, GrowsByASmallPart) {
  PieceHeap heap;
  heap.Expect(4 << 20);
  while (heap.used_bytes() < 4 << 20) ASSERT_NE(heap.Allocate(16 << 10).memory, nullptr);
  uint64_t before = heap.mapped_bytes();
  heap.Expect(0);
  ASSERT_NE(heap.Allocate(16 << 10).memory, nullptr);
  EXPECT_LE(heap.mapped_bytes(), before + before / 32);
  // Of many, less than half is not used.
  before = heap.mapped_bytes();
  heap.Expect(0);
  const uint64_t used = heap.used_bytes();
  while (heap.used_bytes() < used + (3 << 20)) ASSERT_NE(heap.Allocate(16 << 10).memory, nullptr);
  EXPECT_LE(heap.mapped_bytes(), before + (6 << 20));
}

}  // namespace
}  // namespace braiddb::test
