#include "lsm/key_filter.h"

#include <algorithm>

#include "pmem/persistence.h"

namespace braiddb {
namespace {

// The hash decides places in other structures with some of its bits; these are mixed of all.
constexpr uint64_t kBlockFactor = 0x9e3779b97f4a7c15ull;
constexpr uint64_t kBitFactor = 0xc2b2ae3d27d4eb4full;

uint64_t Mix(uint64_t hash, uint64_t factor) { return (hash ^ hash >> 32) * factor; }

}  // namespace

const KeyFilter::Block& KeyFilter::Part::BlockOf(uint64_t hash) const {
  const auto wide = static_cast<unsigned __int128>(Mix(hash, kBlockFactor)) * blocks.size();
  return blocks[static_cast<uint64_t>(wide >> 64)];
}

bool KeyFilter::Part::Has(uint64_t hash) const {
  const Block& block = BlockOf(hash);
  uint64_t bits = Mix(hash, kBitFactor);
  uint64_t all = 1;
  for (const uint64_t& word : block.words) {
    all &= LoadRelaxed(&word) >> (bits >> 58);
    bits <<= 6;
  }
  return all != 0;
}

void KeyFilter::Part::Set(uint64_t hash) {
  auto& block = const_cast<Block&>(BlockOf(hash));
  uint64_t bits = Mix(hash, kBitFactor);
  for (uint64_t& word : block.words) {
    StoreRelaxed(&word, LoadRelaxed(&word) | uint64_t{1} << (bits >> 58));
    bits <<= 6;
  }
}

std::unique_ptr<KeyFilter> KeyFilter::Create(uint32_t bits_per_key, uint64_t keys, uint64_t most_bytes) {
  std::unique_ptr<KeyFilter> filter(new KeyFilter(bits_per_key, most_bytes));
  return filter->AddPart(keys) ? std::move(filter) : nullptr;
}

bool KeyFilter::AddPart(uint64_t keys) {
  const uint32_t count = count_.load(std::memory_order_relaxed);
  const uint64_t wanted = (keys * bits_per_key_ + 8 * sizeof(Block) - 1) / (8 * sizeof(Block));
  if (count == kMaxParts || bytes() + wanted * sizeof(Block) > most_bytes_.load(std::memory_order_relaxed)) return false;
  HugeArray<Block> blocks(wanted);
  if (blocks.empty()) return false;
  part_keys_ = room_ = keys;
  bytes_.fetch_add(blocks.bytes(), std::memory_order_relaxed);
  parts_[count].blocks = std::move(blocks);
  count_.store(count + 1, std::memory_order_release);  // readers see the part whole
  return true;
}

void KeyFilter::Add(std::span<const uint64_t> hashes) {
  std::lock_guard lock(mutex_);
  uint64_t added = 0;
  for (const uint64_t hash : hashes) {
    if (MayContain(hash)) continue;
    if (room_ == 0 && !AddPart(2 * part_keys_)) {
      is_full_.store(true, std::memory_order_release);
      break;
    }
    parts_[count_.load(std::memory_order_relaxed) - 1].Set(hash);
    --room_;
    ++added;
  }
  keys_.fetch_add(added, std::memory_order_relaxed);
}

// ---- Writing

void KeyFilterWriter::Add(uint64_t hash) {
  for (const KeyFilter* filter : filters_) {
    if (filter != nullptr) filter->Prefetch(hash);
  }
  hashes_[count_++] = hash;
  if (count_ == kGroup) Finish();
}

void KeyFilterWriter::Finish() {
  for (KeyFilter* filter : filters_) {
    if (filter != nullptr) filter->Add({hashes_, count_});
  }
  count_ = 0;
}

}  // namespace braiddb
