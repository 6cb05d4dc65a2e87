#include "lb_tree/lb_leaf_changes.h"

#include <algorithm>
#include <bit>

#include "util/check.h"
#include "util/mutant.h"

namespace braiddb {

LbLeaf::Changes::Changes(const LbLeaf& leaf) : leaf_(leaf) {
  for (uint32_t i = 0; i < leaf_.blocks_; ++i) {
    const Header header = leaf_.LoadHeader(i);
    blocks_[i] = {header, ~header.bitmap & kAllSlots, 0};
  }
}

uint32_t LbLeaf::Changes::free() const {
  uint32_t free = 0;
  for (uint32_t i = 0; i < leaf_.blocks_; ++i) free += static_cast<uint32_t>(std::popcount(blocks_[i].free));
  return free;
}

// The slot is not free before the next changes: until Publish it counts on media.
void LbLeaf::Changes::Remove(uint32_t position) {
  Block& block = blocks_[position / kSlots];
  block.header.bitmap &= ~(1u << position % kSlots);
  block.is_changed = true;
}

void LbLeaf::Changes::Replace(uint32_t position, uint64_t value) {
  blocks_[position / kSlots].replaced |= 1u << position % kSlots;
  values_[value_count_++] = {position, value};
}

bool LbLeaf::Changes::Place(Persistence* persistence, std::span<const LbTaggedEntry> entries) {
  if (entries.empty()) return false;
  while (!entries.empty()) {
    const uint32_t block = BestLine0();
    if (block < kMaxBlocks) {
      Put(block, static_cast<uint32_t>(std::countr_zero(blocks_[block].free)), entries.front());
      entries = entries.subspan(1);
    } else {
      entries = entries.subspan(FillLine(persistence, entries));
    }
  }
  for (uint32_t i = 0; i < leaf_.blocks_; ++i) {
    if (!blocks_[i].has_entries) continue;
    const uint32_t added = blocks_[i].header.bitmap & ((1u << SlotsInLine0(i)) - 1) & ~leaf_.Bitmap(i);
    if (!leaf_.StoreFingerprints(i, blocks_[i].header) && added == 0) continue;
    if (!BRAIDDB_MUTANT("lb-changed-line-0-not-flushed")) persistence->Flush(leaf_.Block(i), kCacheLine);
    ++lines_;
  }
  return true;
}

// A block that changes anyway costs no line more. Otherwise the block with most free slots in line 0, for the entries that
// follow.
uint32_t LbLeaf::Changes::BestLine0() const {
  uint32_t best = kMaxBlocks;
  int most = 0;
  for (uint32_t i = 0; i < leaf_.blocks_; ++i) {
    const int free = std::popcount(blocks_[i].free & ((1u << SlotsInLine0(i)) - 1));
    if (free == 0) continue;
    const int worth = free + (blocks_[i].is_changed ? static_cast<int>(kSlots) : 0);
    if (worth > most) {
      most = worth;
      best = i;
    }
  }
  return best;
}

void LbLeaf::Changes::Put(uint32_t block, uint32_t slot, const LbTaggedEntry& entry) {
  Block& at = blocks_[block];
  leaf_.StoreEntry(block * kSlots + slot, entry.entry);
  at.header.SetFingerprint(slot, entry.fingerprint);
  at.header.bitmap |= 1u << slot;
  at.free &= ~(1u << slot);
  at.has_entries = at.is_changed = true;
}

size_t LbLeaf::Changes::FillLine(Persistence* persistence, std::span<const LbTaggedEntry> entries) {
  // The slots of line `line` of a block.
  const auto slots_of = [](uint32_t block, uint32_t line) {
    uint32_t slots = 0;
    for (uint32_t slot = 0; slot < kSlots; ++slot) slots |= LineOf(block, slot) == line ? 1u << slot : 0;
    return slots;
  };
  uint32_t block = 0, line = 0;
  int most = 0;
  for (uint32_t i = 0; i < leaf_.blocks_; ++i) {
    for (uint32_t j = 1; j < kLbBlockBytes / kCacheLine; ++j) {
      const int free = std::popcount(blocks_[i].free & slots_of(i, j));
      const int worth = 2 * free + (blocks_[i].is_changed ? 1 : 0);
      if (free == 0 || worth <= most) continue;
      most = worth;
      block = i;
      line = j;
    }
  }
  BRAIDDB_CHECK(most > 0);
  Block& at = blocks_[block];
  const uint32_t slots = slots_of(block, line);
  size_t placed = 0;
  for (; placed < entries.size() && (at.free & slots) != 0; ++placed)
    Put(block, static_cast<uint32_t>(std::countr_zero(at.free & slots)), entries[placed]);
  // Entries that stay as they are move from line 0, which has no free slot. Their old slots count until Publish.
  for (uint32_t from = 0; from < SlotsInLine0(block) && (at.free & slots) != 0; ++from) {
    const bool was_there = (leaf_.Bitmap(block) >> from & 1) != 0;
    if (!was_there || (at.header.bitmap >> from & 1) == 0 || (at.replaced >> from & 1) != 0) continue;
    const auto to = static_cast<uint32_t>(std::countr_zero(at.free & slots));
    Put(block, to, {leaf_.At(block * kSlots + from), at.header.fingerprint(from)});
    at.header.bitmap &= ~(1u << from);
  }
  if (!BRAIDDB_MUTANT("lb-changed-line-not-flushed")) persistence->Flush(leaf_.Block(block) + line * kLineWords, kCacheLine);
  ++lines_;
  return placed;
}

void LbLeaf::Changes::Publish(Persistence* persistence) {
  for (uint32_t i = 0; i < value_count_; ++i) {
    uint64_t* const word = leaf_.Slot(values_[i].position) + 1;
    StoreWord(word, values_[i].value);
    if (!BRAIDDB_MUTANT("lb-changed-value-not-flushed")) persistence->Flush(word, sizeof(*word));
    ++lines_;
  }
  for (uint32_t i = 0; i < leaf_.blocks_; ++i) {
    if (!blocks_[i].is_changed) continue;
    leaf_.StoreWord0(i, blocks_[i].header);
    if (!BRAIDDB_MUTANT("lb-changed-header-not-flushed")) persistence->Flush(leaf_.Block(i), sizeof(uint64_t));
    ++lines_;
  }
}

}  // namespace braiddb
