// KeyFilter: which keys the last level, and some tables, may have, so that a get of a key that is not there does not search them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "util/huge_array.h"
#include "util/prefetch.h"

namespace braiddb {

// A split-block Bloom filter (Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", WEA 2007; Apache
// Parquet's, with blocks of a cache line) that grows (Almeida et al., "Scalable Bloom filters", 2007).
//
// LAYOUT  Parts, each made for twice the keys of the one before it; a key is in one of them, or in several if it came anew
//         (AddNew), and a question goes to all. A part is an array of blocks of 64 bytes; a key sets one bit in each of the eight
//         words of its block. Nothing is removed: what is deleted goes when a new filter is made of the keys that are left.
// WRONG ANSWERS  "Maybe" for about 1 % of the keys that are not there, and each part, with 10 bits a key; 3 % with 8, 0.3 %
//         with 14.
// CONCURRENCY  Additions exclude each other. A reader that knows, by acquiring something released after it, that a key was added
//         gets true for it; words are stored relaxed.
class KeyFilter {
 public:
  // For about so many keys at first. Null if there is no memory, or `most_bytes` are fewer than it takes.
  static std::unique_ptr<KeyFilter> Create(uint32_t bits_per_key, uint64_t keys, uint64_t most_bytes = UINT64_MAX);
  // So many that a second part has room, too, in so many bytes.
  static uint64_t KeysOfFirstPart(uint32_t bits_per_key, uint64_t most_bytes) {
    return std::min(most_bytes, uint64_t{1} << 50) / sizeof(Block) / 3 * 8 * sizeof(Block) / std::max(1u, bits_per_key);
  }
  KeyFilter(const KeyFilter&) = delete;
  KeyFilter& operator=(const KeyFilter&) = delete;

  // Hashes of keys (KeyHash). Without room for a part that is wanted, every answer is "maybe" from then on. Thread-safe.
  void Add(std::span<const uint64_t> hashes);
  // The same of keys that were not added before, or in a life that has ended: the last part alone is asked whether it has them.
  void AddNew(std::span<const uint64_t> hashes);

  // False: the key was not added. Thread-safe.
  bool MayContain(uint64_t hash) const {
    for (uint32_t i = count_.load(std::memory_order_acquire); i-- > 0;) {
      if (parts_[i].Has(hash)) return true;
    }
    return is_full();
  }
  void Prefetch(uint64_t hash) const {
    for (uint32_t i = count_.load(std::memory_order_acquire); i-- > 0;) braiddb::Prefetch(&parts_[i].BlockOf(hash));
  }
  // What AddNew looks at.
  void PrefetchNew(uint64_t hash) const { braiddb::Prefetch(&parts_[parts() - 1].BlockOf(hash)); }

  // From now on it takes no more than so many, unless it does already.
  void LimitBytes(uint64_t most_bytes) { most_bytes_.store(most_bytes, std::memory_order_relaxed); }

  uint32_t parts() const { return count_.load(std::memory_order_acquire); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // A key could not be added, and every answer is "maybe".
  bool is_full() const { return is_full_.load(std::memory_order_acquire); }
  // That were added, but for those that were known, or taken for that.
  uint64_t keys() const { return keys_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kWords = 8;  // as in the functions of key_filter.cc
  static constexpr uint32_t kMaxParts = 40;
  // The hash decides places in other structures with some of its bits; these are mixed of all.
  static constexpr uint64_t kBlockFactor = 0x9e3779b97f4a7c15ull;
  static constexpr uint64_t kBitFactor = 0xc2b2ae3d27d4eb4full;
  static uint64_t Mix(uint64_t hash, uint64_t factor) { return (hash ^ hash >> 32) * factor; }
  struct alignas(64) Block {
    uint64_t words[kWords];  // atomic
  };
  struct Part {
    const Block& BlockOf(uint64_t hash) const {
      const auto wide = static_cast<unsigned __int128>(Mix(hash, kBlockFactor)) * blocks.size();
      return blocks[static_cast<uint64_t>(wide >> 64)];
    }
    bool Has(uint64_t hash) const;
    void Set(uint64_t hash);

    HugeArray<Block> blocks;
  };

  KeyFilter(uint32_t bits_per_key, uint64_t most_bytes) : bits_per_key_(bits_per_key), most_bytes_(most_bytes) {}
  bool AddPart(uint64_t keys);
  template <class IsKnown>
  void AddUnless(std::span<const uint64_t> hashes, const IsKnown& is_known);

  const uint32_t bits_per_key_;
  std::atomic<uint64_t> most_bytes_;   // of all parts
  std::array<Part, kMaxParts> parts_;  // the first count_ of them
  std::atomic<uint32_t> count_{0};
  std::atomic<bool> is_full_{false};
  std::mutex mutex_;        // additions
  uint64_t room_ = 0;       // keys that may still be added to the last part
  uint64_t part_keys_ = 0;  // that it was made for
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> keys_{0};
};

// Adds keys in groups to one or two filters, which outlive it. A group's blocks are fetched, all at once, before the group before
// it is added.
// Thread safety: none.
class KeyFilterWriter {
 public:
  // Null ones are left out. `are_new`: keys are given as to KeyFilter::AddNew.
  KeyFilterWriter(KeyFilter* one, KeyFilter* other, bool are_new = false) : filters_{one, other}, are_new_(are_new) {}
  ~KeyFilterWriter() { Finish(); }
  KeyFilterWriter(const KeyFilterWriter&) = delete;
  KeyFilterWriter& operator=(const KeyFilterWriter&) = delete;
  void Add(uint64_t hash) {
    hashes_[count_++] = hash;
    if (count_ == kGroup) NextGroup();
  }
  // All that were given are in the filters now.
  void Finish();

 private:
  static constexpr uint32_t kGroup = 32;

  void NextGroup();
  void AddWaiting();

  KeyFilter* const filters_[2];
  const bool are_new_;
  uint64_t hashes_[kGroup];
  uint32_t count_ = 0;
  uint64_t waiting_[kGroup];  // the group before
  uint32_t waiting_count_ = 0;
};

}  // namespace braiddb
