// KeyFilter: a Bloom filter over the keys of the last level and of some tables, so that a get of an absent key skips them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "util/block_file.h"
#include "util/huge_array.h"
#include "util/prefetch.h"
#include "util/shared_memory.h"

namespace braiddb {

// A split-block Bloom filter (Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", WEA 2007; Apache
// Parquet's, with blocks of a cache line) that grows (Almeida et al., "Scalable Bloom filters", 2007).
//
// GUARANTEE    No false negatives: MayContain is true for every key that was added.
// LAYOUT       A sequence of parts, each sized for twice the keys of its predecessor. Additions go to the last part; lookups
//              check all parts. A part is an array of blocks of 64 bytes. A key sets one bit in each of the eight words of its
//              block. Bits are never cleared. Deleted keys leave when a new filter is built from the remaining keys.
// FALSE POSITIVES  With 10 bits per key, each part returns true for about 1 % of absent keys; with 8 bits 3 %, with 14 bits 0.3
//                  %.
// SHARED       The parts of a filter over a SharedHeap are ranges of it, so other processes can attach to a filter. They get the
//              parts of the moment in which the owner lists them (Shared), and all bits that are set there later.
// CONCURRENCY  A mutex serializes additions. A reader that synchronized with a release after the addition of a key gets true for
//              the key. Words are loaded and stored relaxed.
class KeyFilter {
 public:
  // `keys`: capacity of the first part. Null if there is no memory, or if the part needs more than `most_bytes`.
  // `heap`: where the parts lie; it must outlive the filter. Null: private memory.
  static std::unique_ptr<KeyFilter> Create(uint32_t bits_per_key, uint64_t keys, uint64_t most_bytes = UINT64_MAX,
                                           SharedHeap* heap = nullptr);
  // A filter with the same keys in `heap`. Null if there is no room. REQUIRES: no addition meanwhile.
  std::unique_ptr<KeyFilter> CopyTo(SharedHeap* heap) const;
  // What another process needs to attach to the filter, with all keys that were added before the call: a range for each part.
  // Empty if the filter is private or full. May throw std::bad_alloc.
  std::vector<SharedRange> Shared() const;
  // The filter of another process, for reading only. `memory` maps the SharedHeap of that process, and must outlive the filter.
  // Null if `parts` is empty, or has a range that is none. May throw std::bad_alloc.
  static std::unique_ptr<KeyFilter> Attach(const SharedMemory& memory, const std::vector<SharedRange>& parts);
  // Writes the filter to a file. REQUIRES: no addition meanwhile.
  void Store(BlockFileWriter* file) const;
  // The filter that Store wrote at `offset`. `most_bytes`, `heap`: as for Create. Null if it was made with other bits per key, if
  // it has more bytes, if the file is damaged, or without memory. May throw std::bad_alloc.
  static std::unique_ptr<KeyFilter> Load(const BlockFileReader& file, uint64_t offset, uint32_t bits_per_key, uint64_t most_bytes,
                                         SharedHeap* heap);
  // The largest capacity of a first part for which a second part, twice as large, also fits into `most_bytes`.
  static uint64_t KeysOfFirstPart(uint32_t bits_per_key, uint64_t most_bytes) {
    return std::min(most_bytes, uint64_t{1} << 50) / sizeof(Block) / 3 * 8 * sizeof(Block) / std::max(1u, bits_per_key);
  }
  KeyFilter(const KeyFilter&) = delete;
  KeyFilter& operator=(const KeyFilter&) = delete;

  // Adds hashes of keys (KeyHash). If a new part is needed and has no room, the filter is full: every answer is true from then
  // on. Thread-safe.
  void Add(std::span<const uint64_t> hashes);
  // Like Add, for keys that are probably not in the filter. Checks only the last part for duplicates, so a key may be in several
  // parts.
  void AddNew(std::span<const uint64_t> hashes);

  // False: the key was not added. True: the key may have been added. Thread-safe.
  bool MayContain(uint64_t hash) const {
    for (uint32_t i = count_.load(std::memory_order_acquire); i-- > 0;) {
      if (parts_[i].Has(hash)) return true;
    }
    return is_full();
  }
  void Prefetch(uint64_t hash) const {
    for (uint32_t i = count_.load(std::memory_order_acquire); i-- > 0;) braiddb::Prefetch(&parts_[i].BlockOf(hash));
  }
  // Prefetches the block that AddNew checks.
  void PrefetchNew(uint64_t hash) const { braiddb::Prefetch(&parts_[parts() - 1].BlockOf(hash)); }

  // Sets the limit of memory. A filter that is larger keeps its memory.
  void LimitBytes(uint64_t most_bytes) { most_bytes_.store(most_bytes, std::memory_order_relaxed); }

  uint32_t parts() const { return count_.load(std::memory_order_acquire); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // True if a key could not be added; then MayContain returns true for every key.
  bool is_full() const { return is_full_.load(std::memory_order_acquire); }
  // Number of added keys. A key for which the duplicate check returned true is not counted.
  uint64_t keys() const { return keys_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kWords = 8;  // as in the functions of key_filter.cc
  static constexpr uint32_t kMaxParts = 40;
  // Other structures use some bits of the hash to select their buckets. The multiplication mixes all bits.
  static constexpr uint64_t kBlockFactor = 0x9e3779b97f4a7c15ull;
  static constexpr uint64_t kBitFactor = 0xc2b2ae3d27d4eb4full;
  static uint64_t Mix(uint64_t hash, uint64_t factor) { return (hash ^ hash >> 32) * factor; }
  struct alignas(64) Block {
    uint64_t words[kWords];  // atomic
  };
  struct Part {
    const Block& BlockOf(uint64_t hash) const {
      // The block number is the upper half of hash × number of blocks, which needs no division.
      const auto wide = static_cast<unsigned __int128>(Mix(hash, kBlockFactor)) * blocks.size();
      return blocks[static_cast<uint64_t>(wide >> 64)];
    }
    bool Has(uint64_t hash) const;
    void Set(uint64_t hash);

    HugeArray<Block> blocks;
  };

  KeyFilter(uint32_t bits_per_key, uint64_t most_bytes, SharedHeap* heap)
      : bits_per_key_(bits_per_key), heap_(heap), most_bytes_(most_bytes) {}
  bool AddPart(uint64_t keys);
  // What a file says of a filter, before its parts.
  struct Stored {
    uint64_t bits_per_key, parts, room, part_keys, keys;
    uint64_t blocks[kMaxParts];  // of each part
  };
  template <class IsKnown>
  void AddUnless(std::span<const uint64_t> hashes, const IsKnown& is_known);

  const uint32_t bits_per_key_;
  SharedHeap* const heap_;
  std::atomic<uint64_t> most_bytes_;   // limit for the sum of all parts
  std::array<Part, kMaxParts> parts_;  // the first count_ parts are in use
  std::atomic<uint32_t> count_{0};
  std::atomic<bool> is_full_{false};
  std::mutex mutex_;        // serializes additions
  uint64_t room_ = 0;       // keys for which the last part still has capacity
  uint64_t part_keys_ = 0;  // capacity of the last part
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> keys_{0};
};

// Adds keys in groups to one or two filters, which must outlive the writer. It prefetches the blocks of a group, then adds the
// group before, so that cache misses overlap.
// Thread safety: none.
class KeyFilterWriter {
 public:
  // Either filter may be null. `are_new`: use KeyFilter::AddNew instead of Add.
  KeyFilterWriter(KeyFilter* one, KeyFilter* other, bool are_new = false) : filters_{one, other}, are_new_(are_new) {}
  ~KeyFilterWriter() { Finish(); }
  KeyFilterWriter(const KeyFilterWriter&) = delete;
  KeyFilterWriter& operator=(const KeyFilterWriter&) = delete;
  void Add(uint64_t hash) {
    hashes_[count_++] = hash;
    if (count_ == kGroup) NextGroup();
  }
  // Adds all keys that are still waiting.
  void Finish();

 private:
  static constexpr uint32_t kGroup = 32;

  void NextGroup();
  void AddWaiting();

  KeyFilter* const filters_[2];
  const bool are_new_;
  uint64_t hashes_[kGroup];
  uint32_t count_ = 0;
  uint64_t waiting_[kGroup];  // the previous group, whose blocks are being prefetched
  uint32_t waiting_count_ = 0;
};

}  // namespace braiddb
