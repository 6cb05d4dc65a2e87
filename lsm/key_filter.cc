#include "lsm/key_filter.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "pmem/persistence.h"

namespace braiddb {
namespace {

// The key's bit in word i has the number in bits 63 − 6i … 58 − 6i of the mixed hash.

// Combines the eight bits with AND instead of branches. Each step shifts the next six bits of the hash to the top.
bool HasAll(const uint64_t* words, uint64_t bits) {
  uint64_t all = 1;
  for (int i = 0; i < 8; ++i, bits <<= 6) all &= LoadRelaxed(&words[i]) >> (bits >> 58);
  return all != 0;
}

void SetAll(uint64_t* words, uint64_t bits) {
  for (int i = 0; i < 8; ++i, bits <<= 6) StoreRelaxed(&words[i], LoadRelaxed(&words[i]) | uint64_t{1} << (bits >> 58));
}

// The same with AVX2, four words per instruction. The accesses are atomic per word: x86 does not tear aligned eight-byte words,
// also within a vector. ThreadSanitizer does not know this.
#if defined(__SANITIZE_THREAD__)
constexpr bool kAvx2 = false;
#else
const bool kAvx2 = __builtin_cpu_supports("avx2");
#endif

[[gnu::target("avx2")]] inline __m256i Masks(uint64_t bits, __m256i shifts) {
  const __m256i numbers = _mm256_srlv_epi64(_mm256_set1_epi64x(static_cast<int64_t>(bits)), shifts);
  return _mm256_sllv_epi64(_mm256_set1_epi64x(1), _mm256_and_si256(numbers, _mm256_set1_epi64x(63)));
}

[[gnu::target("avx2")]] bool HasAllAvx2(const uint64_t* words, uint64_t bits) {
  const auto* const vectors = reinterpret_cast<const __m256i*>(words);
  const __m256i low = Masks(bits, _mm256_set_epi64x(40, 46, 52, 58)), high = Masks(bits, _mm256_set_epi64x(16, 22, 28, 34));
  return _mm256_testc_si256(_mm256_load_si256(vectors), low) & _mm256_testc_si256(_mm256_load_si256(vectors + 1), high);
}

[[gnu::target("avx2")]] void SetAllAvx2(uint64_t* words, uint64_t bits) {
  auto* const vectors = reinterpret_cast<__m256i*>(words);
  const __m256i low = Masks(bits, _mm256_set_epi64x(40, 46, 52, 58)), high = Masks(bits, _mm256_set_epi64x(16, 22, 28, 34));
  _mm256_store_si256(vectors, _mm256_or_si256(_mm256_load_si256(vectors), low));
  _mm256_store_si256(vectors + 1, _mm256_or_si256(_mm256_load_si256(vectors + 1), high));
}

}  // namespace

bool KeyFilter::Part::Has(uint64_t hash) const {
  const uint64_t* const words = BlockOf(hash).words;
  const uint64_t bits = Mix(hash, kBitFactor);
  return kAvx2 ? HasAllAvx2(words, bits) : HasAll(words, bits);
}

void KeyFilter::Part::Set(uint64_t hash) {
  auto* const words = const_cast<uint64_t*>(BlockOf(hash).words);
  const uint64_t bits = Mix(hash, kBitFactor);
  kAvx2 ? SetAllAvx2(words, bits) : SetAll(words, bits);
}

std::unique_ptr<KeyFilter> KeyFilter::Create(uint32_t bits_per_key, uint64_t keys, uint64_t most_bytes, SharedHeap* heap) {
  std::unique_ptr<KeyFilter> filter(new KeyFilter(bits_per_key, most_bytes, heap));
  return filter->AddPart(keys) ? std::move(filter) : nullptr;
}

std::unique_ptr<KeyFilter> KeyFilter::CopyTo(SharedHeap* heap) const {
  std::unique_ptr<KeyFilter> copy(new KeyFilter(bits_per_key_, most_bytes_.load(std::memory_order_relaxed), heap));
  const uint32_t count = parts();
  for (uint32_t i = 0; i < count; ++i) {
    const HugeArray<Block>& from = parts_[i].blocks;
    HugeArray<Block> blocks(from.size(), heap, HugeArray<Block>::Sharing::kOptional);
    if (blocks.heap_offset() == 0) return nullptr;
    blocks.Populate();
    std::memcpy(&blocks[0], &from[0], from.bytes());
    copy->parts_[i].blocks = std::move(blocks);
  }
  copy->count_ = count;
  copy->is_full_ = is_full();
  copy->room_ = room_;
  copy->part_keys_ = part_keys_;
  copy->bytes_ = bytes();
  copy->keys_ = keys();
  return copy;
}

std::vector<SharedRange> KeyFilter::Shared() const {
  std::vector<SharedRange> ranges;
  if (is_full()) return ranges;
  const uint32_t count = parts();
  for (uint32_t i = 0; i < count; ++i) {
    const HugeArray<Block>& blocks = parts_[i].blocks;
    if (blocks.heap_offset() == 0) return {};
    ranges.push_back({blocks.heap_offset(), blocks.bytes()});
  }
  return ranges;
}

std::unique_ptr<KeyFilter> KeyFilter::Attach(const SharedMemory& memory, const std::vector<SharedRange>& parts) {
  if (parts.empty() || parts.size() > kMaxParts) return nullptr;
  std::unique_ptr<KeyFilter> filter(new KeyFilter(0, 0, nullptr));
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto [offset, bytes] = parts[i];
    const bool is_range = offset != 0 && offset % alignof(Block) == 0 && offset < memory.bytes() && bytes >= sizeof(Block) &&
                          bytes <= memory.bytes() - offset;
    if (!is_range) return nullptr;
    filter->parts_[i].blocks = HugeArray<Block>::Attach(memory, offset, bytes / sizeof(Block));
  }
  filter->count_ = static_cast<uint32_t>(parts.size());
  return filter;
}

// LAYOUT  A block Stored, then a block for each part.
void KeyFilter::Store(BlockFileWriter* file) const {
  Stored stored{bits_per_key_, parts(), room_, part_keys_, keys(), {}};
  for (uint32_t i = 0; i < stored.parts; ++i) stored.blocks[i] = parts_[i].blocks.size();
  file->AppendBlock(&stored, sizeof stored);
  for (uint32_t i = 0; i < stored.parts; ++i) file->AppendBlock(&parts_[i].blocks[0], parts_[i].blocks.bytes());
}

std::unique_ptr<KeyFilter> KeyFilter::Load(const BlockFileReader& file, uint64_t offset, uint32_t bits_per_key,
                                           uint64_t most_bytes, SharedHeap* heap) {
  Stored stored;
  if (!file.ReadBlock(&offset, &stored, sizeof stored) || stored.bits_per_key != bits_per_key) return nullptr;
  if (stored.parts == 0 || stored.parts > kMaxParts) return nullptr;
  std::unique_ptr<KeyFilter> filter(new KeyFilter(bits_per_key, most_bytes, heap));
  for (uint32_t i = 0; i < stored.parts; ++i) {
    const uint64_t count = stored.blocks[i];
    if (count == 0 || count > file.bytes() / sizeof(Block) || count * sizeof(Block) > most_bytes - filter->bytes())
      return nullptr;
    HugeArray<Block> blocks(count, heap, HugeArray<Block>::Sharing::kOptional);
    if (blocks.empty() || !file.ReadBlock(&offset, &blocks[0], blocks.bytes())) return nullptr;
    filter->bytes_.fetch_add(blocks.bytes(), std::memory_order_relaxed);
    filter->parts_[i].blocks = std::move(blocks);
  }
  filter->count_ = static_cast<uint32_t>(stored.parts);
  filter->room_ = stored.room;
  filter->part_keys_ = stored.part_keys;
  filter->keys_ = stored.keys;
  return filter;
}

// Rounds the size up to whole blocks. Readers see the part only after the store of count_, so they need no lock.
bool KeyFilter::AddPart(uint64_t keys) {
  const uint32_t count = count_.load(std::memory_order_relaxed);
  const uint64_t wanted = (keys * bits_per_key_ + 8 * sizeof(Block) - 1) / (8 * sizeof(Block));
  if (count == kMaxParts || bytes() + wanted * sizeof(Block) > most_bytes_.load(std::memory_order_relaxed)) return false;
  HugeArray<Block> blocks(wanted, heap_, HugeArray<Block>::Sharing::kOptional);
  if (blocks.empty()) return false;
  if (blocks.heap_offset() != 0 && blocks.bytes() >= kHugePageBytes) blocks.Populate();
  part_keys_ = room_ = keys;
  bytes_.fetch_add(blocks.bytes(), std::memory_order_relaxed);
  parts_[count].blocks = std::move(blocks);
  count_.store(count + 1, std::memory_order_release);  // release: readers see the complete part
  return true;
}

// Each part gets at most as many keys as it was sized for, which bounds its rate of false positives.
template <class IsKnown>
void KeyFilter::AddUnless(std::span<const uint64_t> hashes, const IsKnown& is_known) {
  std::lock_guard lock(mutex_);
  if (is_full()) return;
  uint64_t added = 0;
  for (const uint64_t hash : hashes) {
    if (is_known(hash)) continue;
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

void KeyFilter::Add(std::span<const uint64_t> hashes) {
  AddUnless(hashes, [this](uint64_t hash) { return MayContain(hash); });
}

void KeyFilter::AddNew(std::span<const uint64_t> hashes) {
  AddUnless(hashes, [this](uint64_t hash) { return parts_[parts() - 1].Has(hash); });
}

// ---- Writing

// Prefetches the blocks of the new group, then adds the previous one, whose blocks have arrived meanwhile.
void KeyFilterWriter::NextGroup() {
  for (const KeyFilter* filter : filters_) {
    if (filter == nullptr) continue;
    for (uint32_t i = 0; i < count_; ++i) are_new_ ? filter->PrefetchNew(hashes_[i]) : filter->Prefetch(hashes_[i]);
  }
  AddWaiting();
  std::copy_n(hashes_, count_, waiting_);
  waiting_count_ = std::exchange(count_, 0);
}

void KeyFilterWriter::AddWaiting() {
  if (waiting_count_ == 0) return;
  const std::span<const uint64_t> hashes(waiting_, waiting_count_);
  for (KeyFilter* filter : filters_) {
    if (filter != nullptr) are_new_ ? filter->AddNew(hashes) : filter->Add(hashes);
  }
  waiting_count_ = 0;
}

void KeyFilterWriter::Finish() {
  NextGroup();
  AddWaiting();
}

}  // namespace braiddb
