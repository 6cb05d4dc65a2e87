// BitTree: a search in a sorted array of keys that reads one key, by the bit positions in which neighbors differ.
//
// HOW   The positions of the first differences of neighbors, in key order, are a bit tree (Ferguson, CACM '92), the in-order form
//       of a PATRICIA tree. A search tests only bits of the target. It ends at a candidate, whose key shares at least as many
//       leading bits with the target as any other. The search reads that key, and corrects the place by the first bit in which
//       the target differs from it.
// COST  Two bytes of DRAM for a key. A search reads all positions, eight at once, and one key.
// KEYS  Bytes in the order of BytewiseComparator or ReverseBytewiseComparator.
// Thread safety: as the array.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "index/key_order.h"

namespace braiddb {

// Positions of bits in keys: 16 per byte. Position 16 i is 1 if the key has a byte i; positions 16 i + 1 … 16 i + 8 are the bits
// of byte i, the highest first. No key is then a prefix of another, and keys are in the order of their bits.
struct KeyBits {
  static constexpr uint32_t kPerByte = 16;
  static constexpr uint32_t kSame = UINT32_MAX;  // the keys are equal

  static bool At(Slice key, uint32_t position) {
    const uint32_t byte = position / kPerByte, bit = position % kPerByte;
    if (byte >= key.size()) return false;
    // In memory of another process, the rest may be 9 … 15, which is no bit: the result is false then.
    return bit == 0 || (static_cast<uint8_t>(key[byte]) >> ((8 - bit) & 31) & 1) != 0;
  }
  // The first position in which the keys differ.
  static uint32_t FirstDifference(Slice a, Slice b) {
    const size_t both = std::min(a.size(), b.size());
    size_t at = 0;
    for (uint64_t x, y; at + sizeof(x) <= both; at += sizeof(x)) {
      memcpy(&x, a.data() + at, sizeof(x));
      memcpy(&y, b.data() + at, sizeof(y));
      if (x == y) continue;
      const uint64_t differ = __builtin_bswap64(x ^ y);
      const auto bit = static_cast<uint32_t>(std::countl_zero(differ));
      return static_cast<uint32_t>(at + bit / 8) * kPerByte + 1 + bit % 8;
    }
    for (; at < both; ++at) {
      const auto differ = static_cast<uint8_t>(a[at] ^ b[at]);
      if (differ != 0) return static_cast<uint32_t>(at) * kPerByte + 1 + static_cast<uint32_t>(std::countl_zero(differ));
    }
    return a.size() == b.size() ? kSame : static_cast<uint32_t>(both) * kPerByte;
  }
};

class BitTree {
 public:
  static constexpr uint16_t kSame = UINT16_MAX;  // versions of one key
  // Neighbors that differ behind this number of bytes have no position.
  static constexpr uint32_t kMostBytes = kSame / KeyBits::kPerByte;
  static constexpr uint16_t kMostPosition = kSame - 1;
  // A search compares this number of positions at once, and reads up to kReadBehind bytes behind the array.
  static constexpr uint32_t kPerStep = sizeof(__m128i) / sizeof(uint16_t);
  static constexpr uint32_t kReadBehind = sizeof(__m128i);

  // Of two neighbors, as an array stores it. False: they differ too far behind, or are long and may be equal, so there cannot be
  // a tree. Reads kMostBytes + 1 bytes of each at most.
  static bool Differ(Slice before, Slice key, uint16_t* differ) {
    const Slice a = before.substr(0, kMostBytes + 1), b = key.substr(0, kMostBytes + 1);
    const uint32_t position = KeyBits::FirstDifference(a, b);
    *differ = static_cast<uint16_t>(std::min<uint32_t>(position, kSame));
    if (position == KeyBits::kSame) return a.size() == before.size() && b.size() == key.size();
    return position < kSame;
  }

  // `differ[i]`: of the keys i - 1 and i, for 0 < i < size. REQUIRES: kReadBehind bytes behind the array can be read.
  BitTree(const uint16_t* differ, uint32_t size) : differ_(differ), size_(size) {}

  // A key that shares at least as many leading bits with the target as any other. REQUIRES: size > 0.
  uint32_t Candidate(Slice target, bool is_reverse) const;
  // The first key that is not before the target; `size` if there is none. `key_at(i)` returns the SearchKey of a key. *has_key:
  // whether a key has the target's bytes. REQUIRES: the candidate is the target's.
  // COST  One call of key_at, plus log2 of the number of versions of the target's key.
  template <class KeyAt>
  uint32_t FirstNotBefore(const KeyOrder& order, const SearchKey& target, uint32_t candidate, const KeyAt& key_at,
                          bool* has_key) const;

 private:
  // The first key from `i` on, or the last one down from it, that differs from its predecessor at or before `position`; `size` or
  // 0 if there is none.
  uint32_t EndOfRun(uint32_t i, uint32_t position) const {
    const __m128i limit = _mm_set1_epi16(static_cast<int16_t>(position));
    for (; i < size_; i += kPerStep) {
      const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(differ_ + i));
      const __m128i is_not_above = _mm_cmpeq_epi16(_mm_subs_epu16(some, limit), _mm_setzero_si128());
      const auto mask = static_cast<uint32_t>(_mm_movemask_epi8(is_not_above));
      if (mask != 0) return std::min(i + static_cast<uint32_t>(std::countr_zero(mask)) / 2, size_);
    }
    return size_;
  }
  uint32_t BeginOfRun(uint32_t i, uint32_t position) const {
    while (i > 0 && differ_[i] > position) --i;
    return i;
  }

  const uint16_t* differ_;
  uint32_t size_;
};

// Visits the positions on the path of a PATRICIA tree, from its leaves up. A 1 bit moves the candidate behind the position; a 0
// bit skips the keys that differ only behind it.
inline uint32_t BitTree::Candidate(Slice target, bool is_reverse) const {
  uint32_t candidate = 0;
  for (uint32_t i = 1; i < size_;) {
    const uint16_t position = differ_[i];
    if (position != kSame && KeyBits::At(target, position) != is_reverse) {
      candidate = i++;
    } else {
      i = EndOfRun(i + 1, position);
    }
  }
  return candidate;
}

// WHY IT IS RIGHT  All keys that share with the target the bits before the first difference to the candidate's key form a run
//                  around the candidate, whose inner differences lie behind that position. The target is before or behind the
//                  entire run, as its bit there says.
template <class KeyAt>
uint32_t BitTree::FirstNotBefore(const KeyOrder& order, const SearchKey& target, uint32_t candidate, const KeyAt& key_at,
                                 bool* has_key) const {
  const SearchKey key = key_at(candidate);
  const uint32_t position = KeyBits::FirstDifference(target.key, key.key);
  *has_key = position == KeyBits::kSame;
  if (!*has_key) {
    const bool is_behind = KeyBits::At(target.key, position) != order.is_reverse();
    const uint32_t limit = std::min<uint32_t>(position, kMostPosition);
    return is_behind ? EndOfRun(candidate + 1, limit) : BeginOfRun(candidate, limit);
  }
  uint32_t begin = BeginOfRun(candidate, kMostPosition);
  uint32_t end = EndOfRun(candidate + 1, kMostPosition);
  if (end - begin == 1) return key.sequence > target.sequence ? end : begin;
  while (begin != end) {
    const uint32_t middle = begin + (end - begin) / 2;
    if (key_at(middle).sequence > target.sequence) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

}  // namespace braiddb
