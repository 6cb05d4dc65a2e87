#include "lsm/l0_index.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace braiddb {

std::shared_ptr<L0Index> L0Index::Create(const RegionSet* regions, uint64_t entries) {
  const uint64_t buckets = std::bit_ceil(std::max<uint64_t>(1, entries / (kSlots / 2)));
  HugeArray<Bucket> lines(LinesOf(buckets));
  if (lines.empty()) return nullptr;
  return std::shared_ptr<L0Index>(new L0Index(regions, buckets, std::move(lines)));
}

L0Index::L0Index(const RegionSet* regions, uint64_t buckets, HugeArray<Bucket> lines)
    : regions_(regions), mask_(buckets - 1), buckets_(std::move(lines)), max_used_(buckets * kSlots * 3 / 4) {}

PmPtr L0Index::PointerOf(uint64_t slot) const {
  const auto region = static_cast<uint32_t>(slot >> kOffsetBits) & ((1u << kRegionBits) - 1);
  return PmPtr(region, (slot & ((uint64_t{1} << kOffsetBits) - 1)) << 3);
}

bool L0Index::Add(uint32_t column, uint64_t hash, PmPtr entry) {
  const uint64_t offset = entry.offset() >> 3;
  if (used_ == max_used_ || offset >> kOffsetBits != 0) return false;
  const uint64_t slot = TagOf(hash) | uint64_t{column} << kColumnShift | uint64_t{entry.region()} << kOffsetBits | offset;
  for (uint64_t bucket = hash == last_hash_ ? last_bucket_ : BucketOf(hash);; bucket = (bucket + 1) & mask_) {
    const LineWords line = LoadLine(&buckets_[bucket]);
    const uint32_t empty = EqualHalves(LowerHalves(line), 0) & EqualHalves(UpperHalves(line), 0);
    if (empty == 0) continue;
    // relaxed: who may ask for this column sees the view that was installed after it.
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
  // Slots are in the order of the tables. They are looked at from the newest on, so that one visit is enough for a key that many
  // tables have. Should there be more matches than fit, the older ones are settled first.
  constexpr size_t kMatches = 4 * kMaxTables;
  uint64_t matches[kMatches];
  size_t count = 0;
  const LogEntry* best = nullptr;
  const uint32_t remote_regions = regions_->RemoteRegions(regions_->HomeRegion());

  const auto settle = [&] {
    const LogEntry* newest = nullptr;
    uint32_t column = 0;
    for (; count > 0; --count) {
      const uint64_t slot = matches[count - 1];
      // No break: a slot of another key with this tag may stand between two of this key.
      if (newest != nullptr && ColumnOf(slot) != column) continue;
      const PmPtr pointer = PointerOf(slot);
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
    // A table that has many versions of the key may be settled in parts, its newest first.
    if (newest != nullptr && (best == nullptr || newest->sequence() > best->sequence())) best = newest;
  };

  for (uint64_t i = BucketOf(hash);; i = (i + 1) & mask_) {
    const Bucket& bucket = buckets_[i];
    for (uint32_t with_tag = SlotsWithTag(bucket, hash); with_tag != 0; with_tag &= with_tag - 1) {
      const uint64_t slot = LoadRelaxed(&bucket.slots[std::countr_zero(with_tag)]);
      if (slot == 0 || (columns >> ColumnOf(slot) & 1) == 0) continue;
      if (count == kMatches) settle();
      matches[count++] = slot;
    }
    if (!IsFull(bucket)) break;
  }
  settle();
  // Versions of one table are looked at from the oldest on, and a merge marks them in that order, a tombstone that it drops last.
  // Who finds the tombstone marked may have looked at what it hides before that was; now the mark is there.
  if (best != nullptr && trace->met_dead && best->is_dead()) best = nullptr;
  return best;
}

// ---- Writing

L0IndexWriter::L0IndexWriter(const RegionSet* regions, uint64_t table_entries)
    : regions_(regions), table_entries_(table_entries) {}

void L0IndexWriter::Begin(uint64_t entries, const KeyOrder& order) {
  pending_.clear();
  oldest_ = 0;
  complete_ = order.equal_means_same();
  if (!complete_) return;
  if (index_ != nullptr && next_column_ < L0Index::kMaxTables && index_->free_slots() >= entries) return;
  // For more tables like this one: a small database pays for what it has.
  const uint64_t usual = usual_entries_ != 0 ? usual_entries_ : std::min(std::max(entries, kLeastEntries), table_entries_);
  index_ = L0Index::Create(regions_, std::max(entries, std::min(usual * L0Index::kMaxTables, kIndexEntries)));
  next_column_ = 0;
  complete_ = index_ != nullptr;
}

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
    index_.reset();  // a column that was begun is not used again
    return {};
  }
  return {index_, next_column_++};
}

}  // namespace braiddb
