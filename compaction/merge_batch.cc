#include "compaction/merge_batch.h"

namespace braiddb {

MergeBatch::MergeBatch(const RegionSet* regions, const SegmentAllocator* segments, MergeJournal* journal)
    : regions_(regions), segments_(segments), journal_(journal), pending_(kSlots) {
  stores_.reserve(kBatchStores);
}

// Fibonacci hashing of the word's index. Linear probing ends, because at most half of the slots are used.
uint64_t MergeBatch::SlotFor(uint64_t address) const {
  uint64_t slot = (address >> 3) * 0x9e3779b97f4a7c15ull >> (64 - kSlotBits);
  while (pending_[slot].address != 0 && pending_[slot].address != address) slot = (slot + 1) & (kSlots - 1);
  return slot;
}

// Reads the pending value first. So a later step sees the effect of all earlier steps of the batch.
uint64_t MergeBatch::Load(PmPtr tower, uint32_t layer) const {
  const uint64_t address = tower.raw() + 8ull * layer;
  const Slot& slot = pending_[SlotFor(address)];
  if (slot.address == address) return slot.value;
  return LoadAcquire(regions_->Resolve<uint64_t>(PmPtr(address)));
}

// The same word may be stored twice in one batch. The journal then has both stores, in order; the table has the last value.
void MergeBatch::Store(PmPtr tower, uint32_t layer, uint64_t value) {
  const uint64_t address = tower.raw() + 8ull * layer;
  const uint64_t slot = SlotFor(address);
  if (pending_[slot].address == 0) used_slots_.push_back(slot);
  pending_[slot] = Slot{address, value};
  stores_.push_back({address, value});
}

void MergeBatch::Mark(PmPtr entry, uint64_t bit) {
  MarkAgain(entry, bit);
  marked_.push_back(entry);
}

// Entries are counted as obsolete only after the journal has applied the batch. After an error the lists stay, and the merge
// ends: the journal decides at the next open whether the batch took effect.
Status MergeBatch::Commit(PmPtr progress, uint64_t* flushed_lines) {
  if (stores_.empty()) return Status::OK();
  Status status = journal_->Apply(stores_, progress, flushed_lines);
  if (!status.ok()) return status;
  for (const PmPtr entry : marked_) {
    if (Segment* segment = segments_->Find(entry)) CountObsolete(segment, entry, *regions_->Resolve<LogEntry>(entry));
  }
  for (const uint64_t slot : used_slots_) pending_[slot] = Slot{};
  used_slots_.clear();
  stores_.clear();
  marked_.clear();
  return Status::OK();
}

}  // namespace braiddb
