// LbLeaf: a leaf of LB+-Tree on media: unsorted entries in blocks of 256 bytes, each with a header of its own (LB+-Trees, VLDB
// '20).
//
// LAYOUT (little endian; a leaf is 1 to 16 blocks of 256 bytes, begins at a multiple of 256, and has 14 entries a block)
//   Block 0     0  word 0     u64   bits 0–13 bitmap; bit 14 zero; bit 15 alt; bytes 2–7 fingerprints of slots 0–5
//               8  word 1     u64   fingerprints of slots 6–13
//              16  slots 0–13       16 bytes each: 0–2 in line 0, 3–6 in line 1, 7–10 in line 2, 11–13 in line 3
//             240  next[2]    u64   links (index/link.h) to the leaf with the next larger keys; next[alt] counts
//   Block b > 0 0  word 0     u64   bits 0–13 bitmap[0]; bits 16–29 bitmap[1]; bitmap[alt] counts (block 0's alt)
//               8  words 1, 2 u64   fingerprints of slots 0–7, of slots 8–13
//              24  word 3     u64   block 1: the tag, which a tree chooses when it makes the leaf; 0 in LbTree. Others: zero
//              32  slots 0–13       16 bytes each: 0–1 in line 0, 2–5 in line 1, 6–9 in line 2, 10–13 in line 3
//   A slot is used if its bit is set in the bitmap that counts. Bytes of other slots have no meaning. Keys are unique.
//   The paper distributes headers too. The second bitmap lets one bit of block 0 switch the bitmaps of all blocks.
// COMMIT POINT   Insert, move, delete: the store of word 0 of the block. Update: the store of the value. Split: the store of word
//                0 of block 0, which has the new alt and block 0's new bitmap. Each is flushed and fenced.
// PERSIST ORDER  Insert into line 0: P1 the entry, the fingerprint and word 0, in this order, in one line; one flush, one fence
//                [CC-70].
//                Insert into another line: P1 the entry, and the entries that move from line 0 into other free slots of the line;
//                one fence  P2 fingerprints, then word 0, in line 0 [CC-71].
//                Split: P1 the new leaf, next[1 - alt], and bitmap[1 - alt] of the other blocks; one fence  P2 word 0 of block 0
//                [CC-72].
//                Several changes (LbLeaf::Changes): P1 entries in free slots, and fingerprints behind word 0; one fence  P2 word
//                0 of each block, and new values; one fence. Relies on no order of stores to one line [CC-76].
// RECOVERY       No repair: whichever word 0 is on media, all that it refers to is. A leaf is valid if and only if its link's
//                hash matches, the bits that must be zero are, and the fingerprints of used slots match their keys.
// CONCURRENCY    One writer at a time, under the leaf's VersionLock, which it holds until the change is durable. Readers take no
//                lock and check the version (lb_tree.h). All words are loaded with acquire and stored with release.
#pragma once

#include <emmintrin.h>

#include <cstdint>
#include <span>

#include "lb_tree/media_word.h"
#include "pmem/persistence.h"
#include "util/prefetch.h"
#include "util/random.h"

namespace braiddb {

struct LbEntry {
  uint64_t key;
  uint64_t value;
  friend bool operator==(const LbEntry&, const LbEntry&) = default;
};
static_assert(sizeof(LbEntry) == 16);

// An entry whose fingerprint is not that of the key word.
struct LbTaggedEntry {
  LbEntry entry;
  uint8_t fingerprint;
};

inline constexpr uint32_t kLbBlockBytes = 256;
inline constexpr uint32_t kMaxLbLeafBytes = 4096;
inline constexpr bool IsLbLeafSize(uint64_t bytes) {
  return bytes >= kLbBlockBytes && bytes <= kMaxLbLeafBytes && bytes % kLbBlockBytes == 0;
}

// A view of a leaf.
class LbLeaf {
 public:
  static constexpr uint32_t kSlots = 14;
  static constexpr uint32_t kMaxBlocks = kMaxLbLeafBytes / kLbBlockBytes;
  static constexpr uint32_t kMaxEntries = kMaxBlocks * kSlots;

  LbLeaf(uint64_t* words, uint32_t blocks) : words_(words), blocks_(blocks) {}

  uint32_t capacity() const { return blocks_ * kSlots; }
  uint32_t alt() const { return static_cast<uint32_t>(LoadAcquire(words_) >> kAltBit & 1); }
  // The used slots of a block.
  uint32_t Bitmap(uint32_t block) const {
    const uint64_t word = LoadAcquire(Block(block));
    return static_cast<uint32_t>(block == 0 ? word : word >> (kBitmapShift * alt())) & kAllSlots;
  }
  uint32_t Count() const;
  bool IsFull() const { return Count() == capacity(); }

  // A position is the number of a slot in the leaf: block * kSlots + slot.
  LbEntry At(uint32_t position) const {
    const uint64_t* const entry = Slot(position);
    return {LoadAcquire(entry), LoadAcquire(entry + 1)};
  }
  // The position of the key, -1 if the leaf does not have it.
  int Find(uint64_t key) const;
  // Copies the used entries to `entries`, which has room for kMaxEntries, and returns their number. `positions`: null, or room
  // for their positions.
  uint32_t Collect(LbEntry* entries, uint8_t* positions = nullptr) const;
  uint64_t link() const { return LoadAcquire(&words_[kNext + alt()]); }
  // Prefetches the lines that a search reads first.
  void Prefetch() const;

  // Durable changes. They return false if a persist failed. REQUIRES: the leaf's lock is held.

  // COST  One line and one fence if a block has a free slot in line 0; otherwise two of each. `move_entries`: in the second case
  //       moves entries from line 0 to the other free slots of the line, so that the next inserts need one line.
  // REQUIRES: the leaf is not full, and has no such key.
  [[nodiscard]] bool Insert(Persistence* persistence, const LbEntry& entry, bool move_entries) const;
  [[nodiscard]] bool Update(Persistence* persistence, uint32_t position, uint64_t value) const;
  [[nodiscard]] bool Remove(Persistence* persistence, uint32_t position) const;
  // Replaces the link that counts.
  [[nodiscard]] bool Relink(Persistence* persistence, uint64_t link) const;

  // Writes a leaf that no link reaches, and flushes its lines. Fills slots of line 0 last, so that first inserts need one line.
  // The leaf is durable after the next fence. REQUIRES: entries.size() <= capacity().
  void Make(Persistence* persistence, std::span<const LbEntry> entries, uint64_t link) const;
  // The two steps of a split (PERSIST ORDER). `kept`: for each block, the slots that remain used. After the first step and a
  // fence, the second step publishes the link and the bitmaps at once.
  void PrepareSplit(Persistence* persistence, const uint32_t* kept, uint64_t link) const;
  [[nodiscard]] bool CommitSplit(Persistence* persistence, uint32_t kept) const;
  // The second step in two parts: the store, and its persist.
  void SwitchTo(uint32_t kept) const;
  [[nodiscard]] bool PersistSplit(Persistence* persistence) const { return persistence->Persist(words_, sizeof(*words_)); }

  // For an open. `owner`: of the link.
  bool IsValid(uint64_t owner) const;

  // ---- For trees in which the fingerprint is not that of the key word, and several entries may have one key word. REQUIRES: the
  // leaf has two blocks or more.

  // As Make and IsValid above. `tag`: stays as long as the leaf. Does not verify fingerprints.
  void Make(Persistence* persistence, std::span<const LbTaggedEntry> entries, uint64_t link, uint64_t tag) const;
  bool IsValid(uint64_t owner, uint64_t tag) const;
  uint64_t tag() const { return LoadAcquire(Block(1) + kTag); }
  // Copies the entries with this fingerprint and key to `entries`, which has room for kMaxEntries. Returns their number.
  uint32_t FindAll(uint8_t fingerprint, uint64_t key, LbEntry* entries) const;
  uint8_t FingerprintAt(uint32_t position) const;
  uint64_t* LinkWord() const { return &words_[kNext + alt()]; }
  class Changes;
  void FetchAll() const { PrefetchAll(words_, uint64_t{blocks_} * kLbBlockBytes); }
  void FlushAll(Persistence* persistence) const { persistence->Flush(words_, uint64_t{blocks_} * kLbBlockBytes); }

 private:
  static constexpr uint32_t kBlockWords = kLbBlockBytes / 8;
  static constexpr uint32_t kLineWords = kCacheLine / 8;
  static constexpr uint32_t kAllSlots = (1u << kSlots) - 1;
  static constexpr int kAltBit = 15;
  static constexpr int kBitmapShift = 16;
  static constexpr uint32_t kNext = 30;
  static constexpr uint32_t kTag = 3;  // word in block 1
  // Word of slot 0, and number of slots in line 0.
  static constexpr uint32_t FirstWord(uint32_t block) { return block == 0 ? 2 : 4; }
  static constexpr uint32_t SlotsInLine0(uint32_t block) { return (kLineWords - FirstWord(block)) / 2; }
  static constexpr uint32_t LineOf(uint32_t block, uint32_t slot) { return (FirstWord(block) + 2 * slot) / kLineWords; }

  static uint8_t Fingerprint(uint64_t key) { return static_cast<uint8_t>(Mix64(key) >> 56); }
  static uint32_t Matches(uint64_t low, uint64_t high, uint8_t fingerprint) {
    const __m128i there = _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
    return static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(there, _mm_set1_epi8(static_cast<char>(fingerprint)))));
  }

  uint64_t* Block(uint32_t block) const { return words_ + block * kBlockWords; }
  uint64_t* Slot(uint32_t position) const {
    const uint32_t block = position / kSlots;
    return Block(block) + FirstWord(block) + 2 * (position % kSlots);
  }
  // The header of one block in DRAM, for a change.
  struct Header;
  Header LoadHeader(uint32_t block) const;
  // Stores the fingerprints that changed, then word 0.
  void StoreHeader(uint32_t block, const Header& header) const;
  // The words behind word 0. Returns true if one has changed.
  bool StoreFingerprints(uint32_t block, const Header& header) const;
  void StoreWord0(uint32_t block, const Header& header) const;
  [[nodiscard]] bool InsertBehindLine0(Persistence* persistence, uint32_t block, uint32_t slot, const LbEntry& entry,
                                       bool move_entries) const;
  void StoreEntry(uint32_t position, const LbEntry& entry) const;
  bool IsSound(uint64_t owner, uint64_t tag) const;
  template <class Entries, class EntryOf, class FingerprintOf>
  void Make(Persistence* persistence, const Entries& entries, uint64_t link, uint64_t tag, const EntryOf& entry_of,
            const FingerprintOf& fingerprint_of) const;

  uint64_t* const words_;
  const uint32_t blocks_;
};

}  // namespace braiddb
