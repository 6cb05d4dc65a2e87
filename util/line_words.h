// LineWords: the eight words of a cache line that others store to, for vector instructions.
#pragma once

#include <emmintrin.h>

#include <cstdint>

namespace braiddb {

// Two words in each vector, the first of a pair in its lower half.
struct LineWords {
  __m128 a, b, c, d;
};

// A word is as if it was loaded by itself, acquiring: before anything that is loaded next, in no order among the eight. CPUs with
// x86-64 tear no aligned eight bytes, also of a vector; ThreadSanitizer does not know that. `line`: aligned to 64 bytes.
[[gnu::always_inline]] inline LineWords LoadLine(const void* line) {
#if defined(__SANITIZE_THREAD__)
  const auto* const words = static_cast<const uint64_t*>(line);
  const auto word = [words](int i) { return static_cast<int64_t>(__atomic_load_n(&words[i], __ATOMIC_ACQUIRE)); };
  const auto pair = [&word](int i) { return _mm_castsi128_ps(_mm_set_epi64x(word(i + 1), word(i))); };
  return {pair(0), pair(2), pair(4), pair(6)};
#else
  const auto* const floats = static_cast<const float*>(line);
  __m128 a = _mm_load_ps(floats), b = _mm_load_ps(floats + 4), c = _mm_load_ps(floats + 8), d = _mm_load_ps(floats + 12);
  asm volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d) : : "memory");  // loaded once, and before what is loaded next
  return {a, b, c, d};
#endif
}

// The upper 32 bits, or the lower, of words 0 to 3 and 4 to 7.
struct LineHalves {
  __m128i low, high;
};
[[gnu::always_inline]] inline LineHalves UpperHalves(const LineWords& line) {
  constexpr int kUpper = _MM_SHUFFLE(3, 1, 3, 1);
  return {_mm_castps_si128(_mm_shuffle_ps(line.a, line.b, kUpper)), _mm_castps_si128(_mm_shuffle_ps(line.c, line.d, kUpper))};
}
[[gnu::always_inline]] inline LineHalves LowerHalves(const LineWords& line) {
  constexpr int kLower = _MM_SHUFFLE(2, 0, 2, 0);
  return {_mm_castps_si128(_mm_shuffle_ps(line.a, line.b, kLower)), _mm_castps_si128(_mm_shuffle_ps(line.c, line.d, kLower))};
}

// Bit i: that half of word i is `value`.
[[gnu::always_inline]] inline uint32_t EqualHalves(const LineHalves& halves, uint32_t value) {
  const __m128i wanted = _mm_set1_epi32(static_cast<int32_t>(value));
  const auto equal = [&wanted](__m128i four) {
    return static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(four, wanted))));
  };
  return equal(halves.low) | equal(halves.high) << 4;
}

// Bit i: word i has the bits of `tag` from bit kShift, which is 32 or more, on.
template <int kShift>
[[gnu::always_inline]] inline uint32_t WordsWithTag(const LineWords& line, uint64_t tag) {
  static_assert(kShift >= 32 && kShift < 64);
  const LineHalves upper = UpperHalves(line);
  const LineHalves tags{_mm_srli_epi32(upper.low, kShift - 32), _mm_srli_epi32(upper.high, kShift - 32)};
  return EqualHalves(tags, static_cast<uint32_t>(tag >> kShift));
}

}  // namespace braiddb
