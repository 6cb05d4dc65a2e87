// HashPage: a page of a persistent hash index on media: buckets of one cache line with slots of eight bytes.
//
// LAYOUT (little endian; a page has 4096 bytes, or 256 in builds for crash tests, and begins at a multiple of 64)
//    0  state        u64   bits 0–7 depth; bits 8–15 base; bit 16 overflow page; bits 20–63 a hash of the tree, the place, the
//    prefix
//                          and bits 0–16
//    8  prefix       u64   the first `depth` bits of the page's signatures, then zeros; of an overflow page: its first page's
//    PmPtr
//   16  next         u64   link (index/link.h) to the page's next overflow page
//   24  reserved           40 bytes, zero
//   64  buckets[63]        64 bytes each: eight slots
//   A slot has the PmPtr of a log entry in bits 0–51 (0: the slot is free), and in bits 52–63 a tag: the bits of the key's
//   signature from bit `base` of the page on, the highest bit being bit 0. The page had depth `base` when it was written. So the
//   tag tells whether the entry still belongs to the page after up to kMaxSplits splits, and the other bits of the tag tell keys
//   apart. Slots of entries that do not belong to the page count as free. An overflow page has the base of its first page.
//   An entry lies in one of the two buckets of its signature, or in an overflow page.
// COMMIT POINT   Of an entry: the store of its slot. Of pages: the store of a state (hash_index.h).
// RECOVERY       A page is valid if and only if its state has the right hash.
// CONCURRENCY    One writer at a time, under the lock of the page's partition. Readers take no lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "index/link.h"
#include "pmem/persistence.h"
#include "pmem/pm_ptr.h"
#include "util/mutant.h"
#include "util/random.h"

namespace braiddb {

struct HashPage {
  static constexpr uint32_t kBytes = kCrashTest ? 256 : 4096;
  static constexpr uint32_t kBuckets = kBytes / kCacheLine - 1;
  static constexpr uint32_t kBucketSlots = kCacheLine / sizeof(uint64_t);
  static constexpr uint32_t kSlots = kBuckets * kBucketSlots;
  static constexpr uint32_t kMaxDepth = 48;
  static constexpr int kTagShift = kLinkShift;
  static constexpr uint32_t kTagBits = 64 - kTagShift;
  // Splits in place of a page. Then at least eight bits of a tag tell keys apart.
  static constexpr uint32_t kMaxSplits = 4;
  using Bucket = uint64_t[kBucketSlots];

  // What a page's state and prefix say about its signatures.
  struct Range {
    uint32_t depth;
    uint32_t base;
    uint64_t prefix;

    bool Covers(uint64_t signature) const { return depth == 0 || (prefix ^ signature) >> (64 - depth) == 0; }
    // Returns true if the slot has an entry of this page.
    bool IsUsed(uint64_t slot) const {
      if (EntryOf(slot).is_null()) return false;
      return depth == base || ((slot & kTagMask) ^ prefix << base) >> (64 - depth + base) == 0;
    }
    // The first base + kTagBits bits of the signature of a used slot, then zeros.
    uint64_t KnownBits(uint64_t slot) const {
      return (base == 0 ? 0 : prefix >> (64 - base) << (64 - base)) | (slot & kTagMask) >> base;
    }
    uint32_t known() const { return base + kTagBits; }
    // Returns true if the signature can be that of the used slot.
    bool Matches(uint64_t slot, uint64_t signature) const { return (KnownBits(slot) ^ signature) >> (64 - known()) == 0; }
  };

  uint64_t state;
  uint64_t prefix;
  uint64_t next;
  uint64_t reserved[5];
  Bucket buckets[kBuckets];

  static constexpr uint64_t kTagMask = ~uint64_t{0} << kTagShift;
  static PmPtr EntryOf(uint64_t slot) { return PmPtr(slot & ~kTagMask); }
  // The tag of a signature in a page with this base, in place.
  static uint64_t TagOf(uint32_t base, uint64_t signature) { return signature << base & kTagMask; }

  // `place`: of the page. `prefix`: as in the page.
  static uint64_t MakeState(uint64_t tree_id, PmPtr place, uint32_t depth, uint32_t base, bool is_overflow, uint64_t prefix) {
    const uint64_t bits = depth | uint64_t{base} << kBaseShift | uint64_t{is_overflow} << kOverflowBit;
    return Mix64(Mix64(tree_id ^ place.raw()) ^ prefix ^ bits << kHashShift) >> kHashShift << kHashShift | bits;
  }
  static bool IsOverflow(uint64_t state) { return (state >> kOverflowBit & 1) != 0; }
  Range range() const {
    const uint64_t word = LoadAcquire(&state);
    return {DepthOf(word), BaseOf(word), LoadRelaxed(&prefix)};
  }
  bool IsValid(uint64_t tree_id, PmPtr place) const {
    const uint64_t word = LoadAcquire(&state);
    const uint64_t expected = MakeState(tree_id, place, DepthOf(word), BaseOf(word), IsOverflow(word), LoadRelaxed(&prefix));
    return word == expected && BaseOf(word) <= DepthOf(word) && DepthOf(word) <= kMaxDepth;
  }

  // The two buckets of a signature. Their bits are not those of the prefix.
  static uint32_t FirstBucket(uint64_t signature) { return Scale(static_cast<uint32_t>(signature), kBuckets); }
  static uint32_t SecondBucket(uint64_t signature) {
    return (FirstBucket(signature) + 1 + Scale(static_cast<uint32_t>(Mix64(signature)), kBuckets - 1)) % kBuckets;
  }

 private:
  static constexpr int kBaseShift = 8;
  static constexpr int kOverflowBit = 16;
  static constexpr int kHashShift = 20;
  static uint32_t DepthOf(uint64_t state) { return static_cast<uint32_t>(state & 0xff); }
  static uint32_t BaseOf(uint64_t state) { return static_cast<uint32_t>(state >> kBaseShift & 0xff); }
  static uint32_t Scale(uint32_t word, uint32_t range) { return static_cast<uint32_t>(uint64_t{word} * range >> 32); }
};
static_assert(sizeof(HashPage) == HashPage::kBytes && offsetof(HashPage, buckets) == kCacheLine);
static_assert(HashPage::kMaxDepth + HashPage::kTagBits <= 64 && HashPage::kMaxSplits < HashPage::kTagBits);

}  // namespace braiddb
