// BloomFilter: says of a key that it is surely not in a set, or perhaps is.
//
// From: F. Putze, P. Sanders, J. Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", WEA '07: blocked, so that a question
// costs one cache line.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace braiddb {

// About 1 % of the keys that are not in the set are let through at the default size. Thread safety: const methods may be called
// concurrently.
class BloomFilter {
 public:
  static constexpr uint64_t kBitsPerKey = 12;

  explicit BloomFilter(uint64_t keys) : blocks_(keys * kBitsPerKey / kBlockBits + 1) {}

  static uint64_t Hash(std::string_view key);

  void Add(uint64_t hash) {
    Block& block = blocks_[BlockOf(hash)];
    for (uint32_t i = 0; i < kWords; ++i) block.words[i] |= Bit(hash, i);
  }
  void Prefetch(uint64_t hash) const { __builtin_prefetch(&blocks_[BlockOf(hash)]); }
  bool MayContain(uint64_t hash) const {
    const Block& block = blocks_[BlockOf(hash)];
    uint64_t missing = 0;
    for (uint32_t i = 0; i < kWords; ++i) missing |= ~block.words[i] & Bit(hash, i);
    return missing == 0;
  }
  uint64_t bytes() const { return blocks_.size() * sizeof(Block); }

 private:
  // A cache line; a key sets one bit in each word.
  static constexpr uint32_t kWords = 8;
  static constexpr uint64_t kBlockBits = 64 * kWords;
  struct alignas(64) Block {
    uint64_t words[kWords] = {};
  };

  uint64_t BlockOf(uint64_t hash) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(hash) * blocks_.size()) >> 64);
  }
  // Six bits of a second hash per word; the block comes from the high bits of the first.
  static uint64_t Bit(uint64_t hash, uint32_t word) { return uint64_t{1} << ((hash * 0x9e3779b97f4a7c15ull) >> (6 * word) & 63); }

  std::vector<Block> blocks_;
};

}  // namespace braiddb
