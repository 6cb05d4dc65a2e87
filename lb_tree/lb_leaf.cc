#include "lb_tree/lb_leaf.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "index/link.h"
#include "lb_tree/lb_leaf_changes.h"
#include "util/check.h"
#include "util/mutant.h"
#include "util/prefetch.h"

namespace braiddb {

// ---- Reads

uint32_t LbLeaf::Count() const {
  uint32_t count = 0;
  for (uint32_t block = 0; block < blocks_; ++block) count += static_cast<uint32_t>(std::popcount(Bitmap(block)));
  return count;
}

int LbLeaf::Find(uint64_t key) const {
  const uint8_t fingerprint = Fingerprint(key);
  const uint64_t first = LoadAcquire(words_);
  const int shift = kBitmapShift * static_cast<int>(first >> kAltBit & 1);
  for (uint32_t block = 0; block < blocks_; ++block) {
    const uint64_t* const words = Block(block);
    uint32_t matches = 0;
    if (block == 0) {
      matches = Matches(first, LoadAcquire(words + 1), fingerprint) >> 2 & static_cast<uint32_t>(first) & kAllSlots;
    } else {
      const auto bitmap = static_cast<uint32_t>(LoadAcquire(words) >> shift);
      matches = Matches(LoadAcquire(words + 1), LoadAcquire(words + 2), fingerprint) & bitmap & kAllSlots;
    }
    for (; matches != 0; matches &= matches - 1) {
      const uint32_t position = block * kSlots + static_cast<uint32_t>(std::countr_zero(matches));
      if (LoadAcquire(Slot(position)) == key) return static_cast<int>(position);
    }
  }
  return -1;
}

uint32_t LbLeaf::Collect(LbEntry* entries, uint8_t* positions) const {
  uint32_t count = 0;
  for (uint32_t block = 0; block < blocks_; ++block) {
    for (uint32_t bitmap = Bitmap(block); bitmap != 0; bitmap &= bitmap - 1) {
      const uint32_t position = block * kSlots + static_cast<uint32_t>(std::countr_zero(bitmap));
      if (positions != nullptr) positions[count] = static_cast<uint8_t>(position);
      entries[count++] = At(position);
    }
  }
  return count;
}

void LbLeaf::Prefetch() const {
  if (blocks_ == 1) return FetchAll();
  for (uint32_t block = 0; block < blocks_; ++block) braiddb::Prefetch(Block(block));
}

// Everything but the fingerprints.
bool LbLeaf::IsSound(uint64_t owner, uint64_t tag) const {
  const uint64_t first = LoadRelaxed(words_);
  if (!IsLink(owner, link()) || (first >> kSlots & 1) != 0) return false;
  for (uint32_t block = 1; block < blocks_; ++block) {
    constexpr uint64_t kUnused = ~(uint64_t{kAllSlots} | uint64_t{kAllSlots} << kBitmapShift);
    if ((LoadRelaxed(Block(block)) & kUnused) != 0 || LoadRelaxed(Block(block) + kTag) != (block == 1 ? tag : 0)) return false;
  }
  return true;
}

bool LbLeaf::IsValid(uint64_t owner, uint64_t tag) const { return IsSound(owner, tag); }

bool LbLeaf::IsValid(uint64_t owner) const {
  if (!IsSound(owner, 0)) return false;
  for (uint32_t block = 0; block < blocks_; ++block) {
    const Header header = LoadHeader(block);
    for (uint32_t bitmap = header.bitmap; bitmap != 0; bitmap &= bitmap - 1) {
      const auto slot = static_cast<uint32_t>(std::countr_zero(bitmap));
      if (header.fingerprint(slot) != Fingerprint(At(block * kSlots + slot).key)) return false;
    }
  }
  return true;
}

uint32_t LbLeaf::FindAll(uint8_t fingerprint, uint64_t key, LbEntry* entries) const {
  uint32_t count = 0;
  for (uint32_t block = 0; block < blocks_; ++block) {
    const uint64_t* const words = Block(block);
    uint32_t matches = block == 0 ? Matches(LoadAcquire(words), LoadAcquire(words + 1), fingerprint) >> 2
                                  : Matches(LoadAcquire(words + 1), LoadAcquire(words + 2), fingerprint);
    for (matches &= Bitmap(block); matches != 0; matches &= matches - 1) {
      const LbEntry entry = At(block * kSlots + static_cast<uint32_t>(std::countr_zero(matches)));
      if (entry.key == key) entries[count++] = entry;
    }
  }
  return count;
}

uint8_t LbLeaf::FingerprintAt(uint32_t position) const { return LoadHeader(position / kSlots).fingerprint(position % kSlots); }

// ---- Headers

LbLeaf::Header LbLeaf::LoadHeader(uint32_t block) const {
  static_assert(SlotsInLine0(0) == 3 && SlotsInLine0(1) == 2 && LineOf(0, 13) == 3 && LineOf(1, 10) == 3);
  const uint64_t* const words = Block(block);
  Header header{{LoadRelaxed(words), LoadRelaxed(words + 1), 0}, Bitmap(block), 2};
  if (block > 0) {
    header.words[2] = LoadRelaxed(words + 2);
    header.fingerprints = 8;
  }
  return header;
}

void LbLeaf::StoreHeader(uint32_t block, const Header& header) const {
  (void)StoreFingerprints(block, header);
  StoreWord0(block, header);
}

bool LbLeaf::StoreFingerprints(uint32_t block, const Header& header) const {
  uint64_t* const words = Block(block);
  bool is_changed = false;
  for (uint32_t i = block == 0 ? 1 : 2; i > 0; --i) {
    if (LoadRelaxed(words + i) == header.words[i]) continue;
    StoreWord(words + i, header.words[i]);
    is_changed = true;
  }
  return is_changed;
}

void LbLeaf::StoreWord0(uint32_t block, const Header& header) const {
  uint64_t* const words = Block(block);
  const int shift = block == 0 ? 0 : kBitmapShift * static_cast<int>(alt());
  StoreWord(words, (header.words[0] & ~(uint64_t{kAllSlots} << shift)) | uint64_t{header.bitmap} << shift);
}

void LbLeaf::StoreEntry(uint32_t position, const LbEntry& entry) const {
  uint64_t* const words = Slot(position);
  StoreWord(words, entry.key);
  StoreWord(words + 1, entry.value);
}

// ---- Changes

// Chooses the first free slot of a line 0; without one, the first free slot.
bool LbLeaf::Insert(Persistence* persistence, const LbEntry& entry, bool move_entries) const {
  uint32_t block = 0, slot = kSlots;
  for (uint32_t i = 0; i < blocks_; ++i) {
    const auto free = static_cast<uint32_t>(std::countr_one(Bitmap(i)));
    if (free < SlotsInLine0(i) || (free < kSlots && slot == kSlots)) {
      block = i;
      slot = free;
    }
    if (free < SlotsInLine0(i)) break;
  }
  BRAIDDB_CHECK(slot < kSlots);
  if (slot >= SlotsInLine0(block)) return InsertBehindLine0(persistence, block, slot, entry, move_entries);
  Header header = LoadHeader(block);
  header.SetFingerprint(slot, Fingerprint(entry.key));
  header.bitmap |= 1u << slot;
  if (BRAIDDB_MUTANT("lb-bitmap-before-entry")) {
    StoreHeader(block, header);
    StoreEntry(block * kSlots + slot, entry);
  } else {
    // ORDER: the entry before word 0, by the order of stores to one line. [CC-70]
    StoreEntry(block * kSlots + slot, entry);
    StoreHeader(block, header);
  }
  return BRAIDDB_MUTANT("lb-header-not-flushed") || persistence->Persist(Block(block), kCacheLine);
}

// GOAL   The entry is in `slot`, and all other slots of its line that were free have entries of line 0.
// STEPS  1. P1 store the entries into the line, which is then durable.  2. P2 one store of word 0 adds the new entry and changes
//        the slots of moved ones.
// CRASH  Before 2 the slots of the line do not count, and line 0 has the entries that move.
bool LbLeaf::InsertBehindLine0(Persistence* persistence, uint32_t block, uint32_t slot, const LbEntry& entry,
                               bool move_entries) const {
  Header header = LoadHeader(block);
  const uint32_t before = header.bitmap;
  const uint32_t line = LineOf(block, slot), base = block * kSlots;
  StoreEntry(base + slot, entry);
  header.SetFingerprint(slot, Fingerprint(entry.key));
  header.bitmap |= 1u << slot;
  uint32_t from = 0;  // line 0 is full
  for (uint32_t to = slot + 1; move_entries && to < kSlots && LineOf(block, to) == line && from < SlotsInLine0(block); ++to) {
    if ((header.bitmap >> to & 1) != 0) continue;
    StoreEntry(base + to, At(base + from));
    header.SetFingerprint(to, header.fingerprint(from));
    header.bitmap = (header.bitmap | 1u << to) & ~(1u << from);
    ++from;
  }
  if (!BRAIDDB_MUTANT("lb-moved-line-not-flushed")) persistence->Flush(Block(block) + line * kLineWords, kCacheLine);
  // ORDER: the line before the word that makes its slots count. [CC-71]
  if (!BRAIDDB_MUTANT("lb-moved-line-not-fenced") && !persistence->Drain()) return false;
  if (from > 0 && BRAIDDB_MUTANT("lb-move-in-two-stores")) {
    Header removed = LoadHeader(block);
    removed.bitmap = before & header.bitmap;
    StoreHeader(block, removed);
  }
  StoreHeader(block, header);
  return persistence->Persist(Block(block), kCacheLine);
}

bool LbLeaf::Update(Persistence* persistence, uint32_t position, uint64_t value) const {
  uint64_t* const word = Slot(position) + 1;
  StoreWord(word, value);
  return BRAIDDB_MUTANT("lb-update-not-flushed") || persistence->Persist(word, sizeof(*word));
}

bool LbLeaf::Remove(Persistence* persistence, uint32_t position) const {
  const uint32_t block = position / kSlots;
  Header header = LoadHeader(block);
  header.bitmap &= ~(1u << position % kSlots);
  StoreHeader(block, header);
  return BRAIDDB_MUTANT("lb-delete-not-flushed") || persistence->Persist(Block(block), sizeof(uint64_t));
}

bool LbLeaf::Relink(Persistence* persistence, uint64_t link) const {
  uint64_t* const word = &words_[kNext + alt()];
  StoreWord(word, link);
  return BRAIDDB_MUTANT("lb-link-not-persisted") || persistence->Persist(word, sizeof(*word));
}

// ---- New leaves and splits

template <class Entries, class EntryOf, class FingerprintOf>
void LbLeaf::Make(Persistence* persistence, const Entries& entries, uint64_t link, uint64_t tag, const EntryOf& entry_of,
                  const FingerprintOf& fingerprint_of) const {
  BRAIDDB_CHECK(entries.size() <= capacity());
  Header headers[kMaxBlocks];
  for (uint32_t block = 0; block < blocks_; ++block) headers[block] = {{0, 0, 0}, 0, block == 0 ? 2u : 8u};
  size_t next = 0;
  const auto fill = [&](uint32_t block, uint32_t begin, uint32_t end) {
    for (uint32_t slot = end; slot-- > begin && next < entries.size(); ++next) {
      StoreEntry(block * kSlots + slot, entry_of(entries[next]));
      headers[block].SetFingerprint(slot, fingerprint_of(entries[next]));
      headers[block].bitmap |= 1u << slot;
    }
  };
  for (uint32_t block = 0; block < blocks_; ++block) fill(block, SlotsInLine0(block), kSlots);
  for (uint32_t block = 0; block < blocks_; ++block) fill(block, 0, SlotsInLine0(block));
  StoreWord(&words_[kNext], link);
  StoreWord(&words_[kNext + 1], 0);
  for (uint32_t block = 0; block < blocks_; ++block) {
    const Header& header = headers[block];
    uint64_t* const words = Block(block);
    if (block > 0) {
      StoreWord(words + kTag, block == 1 ? tag : 0);
      StoreWord(words + 2, header.words[2]);
    }
    StoreWord(words + 1, header.words[1]);
    StoreWord(words, header.words[0] | header.bitmap);  // alt is 0
    if (BRAIDDB_MUTANT("lb-new-leaf-not-flushed")) continue;
    for (uint32_t line = 0; line < kLbBlockBytes / kCacheLine; ++line) {
      bool is_used = line == 0 || (block == 0 && line == kNext / kLineWords);
      for (uint32_t slot = 0; slot < kSlots; ++slot) {
        is_used |= (header.bitmap >> slot & 1) != 0 && LineOf(block, slot) == line;
      }
      if (is_used) persistence->Flush(words + line * kLineWords, kCacheLine);
    }
  }
}

void LbLeaf::Make(Persistence* persistence, std::span<const LbEntry> entries, uint64_t link) const {
  Make(
      persistence, entries, link, 0, [](const LbEntry& entry) { return entry; },
      [](const LbEntry& entry) { return Fingerprint(entry.key); });
}

void LbLeaf::Make(Persistence* persistence, std::span<const LbTaggedEntry> entries, uint64_t link, uint64_t tag) const {
  Make(
      persistence, entries, link, tag, [](const LbTaggedEntry& entry) { return entry.entry; },
      [](const LbTaggedEntry& entry) { return entry.fingerprint; });
}

void LbLeaf::PrepareSplit(Persistence* persistence, const uint32_t* kept, uint64_t link) const {
  const uint32_t other = 1 - alt();
  StoreWord(&words_[kNext + other], link);
  if (!BRAIDDB_MUTANT("lb-sibling-not-flushed")) persistence->Flush(&words_[kNext], 2 * sizeof(uint64_t));
  const int shift = kBitmapShift * static_cast<int>(other);
  for (uint32_t block = 1; block < blocks_; ++block) {
    uint64_t* const word = Block(block);
    StoreWord(word, (LoadRelaxed(word) & ~(uint64_t{kAllSlots} << shift)) | uint64_t{kept[block]} << shift);
    if (!BRAIDDB_MUTANT("lb-other-bitmaps-not-flushed")) persistence->Flush(word, sizeof(*word));
  }
}

bool LbLeaf::CommitSplit(Persistence* persistence, uint32_t kept) const {
  SwitchTo(kept);
  return BRAIDDB_MUTANT("lb-split-not-flushed") || PersistSplit(persistence);
}

void LbLeaf::SwitchTo(uint32_t kept) const {
  const uint64_t word = LoadRelaxed(words_);
  const uint64_t switched = (word & ~uint64_t{kAllSlots}) | kept;
  if (BRAIDDB_MUTANT("lb-alt-in-two-stores")) StoreWord(words_, switched);
  StoreWord(words_, switched ^ uint64_t{1} << kAltBit);
}

}  // namespace braiddb
