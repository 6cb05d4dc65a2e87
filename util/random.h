// Random: a fast pseudo-random generator with the same sequence for the same seed on every machine.
#pragma once

#include <cstdint>

namespace braiddb {

// One step of SplitMix64 (Steele, Lea, Flood, OOPSLA '14): spreads any number, including 0, over all 64 bits. A bijection.
inline uint64_t Mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// xoshiro256++ (Blackman, Vigna, 2019). Thread safety: one thread at a time.
class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) word = Mix64(seed++);
  }

  uint64_t Next() {
    const uint64_t result = Rotate(state_[0] + state_[3], 23) + state_[0];
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = Rotate(state_[3], 45);
    return result;
  }

  // In [0, n). Multiplies instead of dividing; the bias is below n / 2^64. REQUIRES: n > 0.
  uint64_t Uniform(uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(Next()) * n) >> 64);
  }

  // True once in n calls on average. REQUIRES: n > 0.
  bool OneIn(uint64_t n) { return Uniform(n) == 0; }

  // In [0, 1).
  double NextDouble() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  static uint64_t Rotate(uint64_t x, int bits) { return (x << bits) | (x >> (64 - bits)); }

  uint64_t state_[4];
};

}  // namespace braiddb
