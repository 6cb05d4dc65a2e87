// LineWords: the eight words of a cache line that other threads store to, loaded for vector instructions.
#pragma once

#include <emmintrin.h>

#include <cstdint>

namespace braiddb {

// Each vector holds two words, the first of a pair in its lower half.
struct LineWords {
  __m128 a, b, c, d;
};

// Loads each word atomically, with acquire: before all later loads, in no order among the eight. x86-64 CPUs do not tear aligned
// eight bytes, also within a vector; ThreadSanitizer does not know this. `line`: aligned to 64 bytes.
[[gnu::always_inline]] inline LineWords LoadLine(const void* line) {
#if defined(__SANITIZE_THREAD__)
  const auto* const words = static_cast<const uint64_t*>(line);
  const auto word = [words](int i) { return static_cast<int64_t>(__atomic_load_n(&words[i], __ATOMIC_ACQUIRE)); };
  const auto pair = [&word](int i) { return _mm_castsi128_ps(_mm_set_epi64x(word(i + 1), word(i))); };
  return {pair(0), pair(2), pair(4), pair(6)};
#else
  const auto* const floats = static_cast<const float*>(line);
  __m128 a = _mm_load_ps(floats), b = _mm_load_ps(floats + 4), c = _mm_load_ps(floats + 8), d = _mm_load_ps(floats + 12);
  asm volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d) : : "memory");  // loads once, before all later loads
  return {a, b, c, d};
#endif
}

// The upper or the lower 32 bits of words 0–3 and 4–7.
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

// Bit i: this half of word i equals `value`.
[[gnu::always_inline]] inline uint32_t EqualHalves(const LineHalves& halves, uint32_t value) {
  const __m128i wanted = _mm_set1_epi32(static_cast<int32_t>(value));
  const auto equal = [&wanted](__m128i four) {
    return static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(four, wanted))));
  };
  return equal(halves.low) | equal(halves.high) << 4;
}

// Bit i: word i and `tag` are equal from bit kShift on; kShift is at least 32.
template <int kShift>
[[gnu::always_inline]] inline uint32_t WordsWithTag(const LineWords& line, uint64_t tag) {
  static_assert(kShift >= 32 && kShift < 64);
  const LineHalves upper = UpperHalves(line);
  const LineHalves tags{_mm_srli_epi32(upper.low, kShift - 32), _mm_srli_epi32(upper.high, kShift - 32)};
  return EqualHalves(tags, static_cast<uint32_t>(tag >> kShift));
}

}  // namespace braiddb
