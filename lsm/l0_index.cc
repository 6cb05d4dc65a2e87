#include "lsm/l0_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace braiddb {

// Twice as many slots as entries keep probe sequences short. Add refuses beyond three quarters, so a probe always meets an empty
// slot.
std::shared_ptr<L0Index> L0Index::Create(const RegionSet* regions, uint64_t entries, SharedHeap* heap) {
  const uint64_t buckets = std::bit_ceil(std::max<uint64_t>(1, entries / (kSlots / 2)));
  HugeArray<Bucket> lines(LinesOf(buckets), heap, HugeArray<Bucket>::Sharing::kOptional);
  if (lines.empty()) return nullptr;
  return std::shared_ptr<L0Index>(new L0Index(regions, buckets, std::move(lines)));
}

std::shared_ptr<L0Index> L0Index::Attach(const RegionSet* regions, const SharedMemory& memory, uint64_t offset,
                                         uint64_t buckets) {
  auto lines = HugeArray<Bucket>::Attach(memory, offset, LinesOf(buckets));
  std::shared_ptr<L0Index> index(new L0Index(regions, buckets, std::move(lines)));
  index->is_attached_ = true;
  return index;
}

void L0Index::CopyTo(SharedHeap* heap) const {
  if (heap_offset() != 0) return;
  HugeArray<Bucket> copy(buckets_.size(), heap, HugeArray<Bucket>::Sharing::kOptional);
  if (copy.heap_offset() == 0) return;
  memcpy(&copy[0], &buckets_[0], copy.bytes());
  copy_ = std::move(copy);
  copy_offset_.store(copy_.heap_offset(), std::memory_order_release);
}

L0Index::L0Index(const RegionSet* regions, uint64_t buckets, HugeArray<Bucket> lines)
    : regions_(regions), mask_(buckets - 1), buckets_(std::move(lines)), max_used_(buckets * kSlots * 3 / 4) {}

PmPtr L0Index::PointerOf(uint64_t slot) const {
  const auto region = static_cast<uint32_t>(slot >> kOffsetBits) & ((1u << kRegionBits) - 1);
  return PmPtr(region, (slot & ((uint64_t{1} << kOffsetBits) - 1)) << 3);
}

bool L0Index::Add(uint32_t column, uint64_t hash, PmPtr entry) {
  // Entries are 8-byte aligned, so offset / 8 fits in 41 bits for regions of up to 16 TiB.
  const uint64_t offset = entry.offset() >> 3;
  if (used_ == max_used_ || offset >> kOffsetBits != 0) return false;
  const uint64_t slot = TagOf(hash) | uint64_t{column} << kColumnShift | uint64_t{entry.region()} << kOffsetBits | offset;
  // The search for an empty slot starts at the last bucket if the hash repeats, so that n versions of a key cost n steps.
  for (uint64_t bucket = hash == last_hash_ ? last_bucket_ : BucketOf(hash);; bucket = (bucket + 1) & mask_) {
    const LineWords line = LoadLine(&buckets_[bucket]);
    const uint32_t empty = EqualHalves(LowerHalves(line), 0) & EqualHalves(UpperHalves(line), 0);
    if (empty == 0) continue;
    // relaxed: a reader that asks for this column has loaded the view, which is installed (release) after this store.
    StoreRelaxed(&buckets_[bucket].slots[std::countr_zero(empty)], slot);
    uint64_t* const bits = const_cast<uint64_t*>(&BitsAt(hash));
    StoreRelaxed(bits, LoadRelaxed(bits) | BitsOf(hash));
    ++used_;
    last_hash_ = hash;
    last_bucket_ = bucket;
    return true;
  }
}

const LogEntry* L0Index::Find(const SearchKey& target, uint64_t hash, uint32_t columns, LookupTrace* trace) const {
  // Slots of a key are in the order of their tables, oldest first. Find collects the matches and resolves them from the newest
  // on, so that usually one entry is read however many tables have the key. If `matches` is full, the older ones are resolved
  // first.
  constexpr size_t kMatches = 4 * kMaxTables;
  uint64_t matches[kMatches];
  size_t count = 0;
  const LogEntry* best = nullptr;
  const uint32_t remote_regions = regions_->RemoteRegions(regions_->HomeRegion());

  // Reads the collected entries, newest table first, and updates `best`. After a visible version is found, slots of older tables
  // are skipped.
  const auto settle = [&] {
    const LogEntry* newest = nullptr;
    uint32_t column = 0;
    for (; count > 0; --count) {
      const uint64_t slot = matches[count - 1];
      // continue, not break: a slot of another key with the same tag may lie between two slots of this key.
      if (newest != nullptr && ColumnOf(slot) != column) continue;
      const PmPtr pointer = PointerOf(slot);
      if (__builtin_expect(is_attached_, 0) && !regions_->Holds(pointer))
        continue;  // this reader has expired, or maps a part next
      const auto* entry = regions_->Resolve<LogEntry>(pointer);
      const bool is_remote = RegionSet::IsRemote(remote_regions, pointer.region());
      trace->Account(*regions_->persistence(), !is_remote, is_remote);
      if (entry->sequence() > target.sequence || entry->key() != target.key) continue;
      if (entry->is_dead()) {
        trace->met_dead = true;
        continue;
      }
      if (newest != nullptr && newest->sequence() > entry->sequence()) continue;
      newest = entry;
      column = ColumnOf(slot);
    }
    count = 0;
    // The versions of one table may be split over several calls, the newest first, so sequence numbers are compared.
    if (newest != nullptr && (best == nullptr || newest->sequence() > best->sequence())) best = newest;
  };

  uint64_t probed = 0;
  for (uint64_t i = BucketOf(hash);; i = (i + 1) & mask_) {
    const Bucket& bucket = buckets_[i];
    for (uint32_t with_tag = SlotsWithTag(bucket, hash); with_tag != 0; with_tag &= with_tag - 1) {
      const uint64_t slot = LoadRelaxed(&bucket.slots[std::countr_zero(with_tag)]);
      if (slot == 0 || (columns >> ColumnOf(slot) & 1) == 0) continue;
      if (count == kMatches) settle();
      matches[count++] = slot;
    }
    if (!IsFull(bucket) || (__builtin_expect(is_attached_, 0) && ++probed > mask_)) break;
  }
  settle();
  // Within a table, versions are read from the oldest to the newest. A merge marks them dead in the same order; a tombstone that
  // it drops comes last. A reader that skips a dead tombstone may have read the hidden version before that was marked dead. Its
  // mark is visible by then, so the check is repeated.
  if (best != nullptr && trace->met_dead && best->is_dead()) best = nullptr;
  return best;
}

// ---- Writing

L0IndexWriter::L0IndexWriter(const RegionSet* regions, uint64_t table_entries)
    : regions_(regions), table_entries_(table_entries) {}

// Tables share an index while it has a free column and enough free slots. A family whose equal keys may differ in bytes is not
// indexed, because equal keys could have different hashes.
void L0IndexWriter::Begin(uint64_t entries, const KeyOrder& order) {
  pending_.clear();
  oldest_ = 0;
  complete_ = order.equal_means_same();
  if (!complete_) return;
  if (index_ != nullptr && next_column_ < L0Index::kMaxTables && index_->free_slots() >= entries) return;
  // Sized for kMaxTables tables like those of this flush, so that the index of a small database is small.
  const uint64_t usual = usual_entries_ != 0 ? usual_entries_ : std::min(std::max(entries, kLeastEntries), table_entries_);
  index_ = L0Index::Create(regions_, std::max(entries, std::min(usual * L0Index::kMaxTables, kIndexEntries)), heap_);
  next_column_ = 0;
  complete_ = index_ != nullptr;
}

// Prefetches the lines of this entry and adds the entry whose lines were prefetched kPending additions before.
void L0IndexWriter::Add(uint64_t hash, PmPtr entry) {
  if (!complete_) return;
  index_->Prefetch(hash);
  index_->PrefetchBits(hash);
  if (pending_.size() < kPending) return pending_.push_back({hash, entry});
  AddPending(pending_[oldest_]);
  pending_[oldest_] = {hash, entry};
  oldest_ = (oldest_ + 1) % kPending;
}

void L0IndexWriter::AddPending(const Pending& pending) {
  complete_ = complete_ && index_->Add(next_column_, pending.hash, pending.entry);
}

L0IndexWriter::Table L0IndexWriter::Finish() {
  for (size_t i = 0; i < pending_.size(); ++i) AddPending(pending_[(oldest_ + i) % pending_.size()]);
  pending_.clear();
  if (!complete_) {
    index_.reset();  // a column that has entries cannot be used again
    return {};
  }
  return {index_, next_column_++};
}

}  // namespace braiddb
