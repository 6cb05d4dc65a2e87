// LbLeaf::Header: the header of one block in DRAM. LbLeaf::Changes: changes of several slots of a leaf, with two fences.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lb_tree/lb_leaf.h"

namespace braiddb {

// `words`: words 0 to 2; block 0 has two. `fingerprints`: offset in bytes of slot 0's.
struct LbLeaf::Header {
  uint64_t words[3];
  uint32_t bitmap;
  uint32_t fingerprints;

  void SetFingerprint(uint32_t slot, uint8_t fingerprint) {
    const uint32_t byte = fingerprints + slot;
    words[byte / 8] = (words[byte / 8] & ~(uint64_t{0xff} << (byte % 8 * 8))) | uint64_t{fingerprint} << (byte % 8 * 8);
  }
  uint8_t fingerprint(uint32_t slot) const {
    const uint32_t byte = fingerprints + slot;
    return static_cast<uint8_t>(words[byte / 8] >> (byte % 8 * 8));
  }
};

// GOAL   Entries are added, removed, or get new values; readers that check the leaf's version see all changes or none.
// STEPS  1. Remove, Replace: note the change in DRAM.  2. Place: P1 store the entries into free slots, and their fingerprints.
//        3. The caller fences, if Place says so.  4. Publish: P2 store word 0 of the blocks, and the values.  5. The caller
//        fences.
// CRASH  Before 4 the slots of new entries do not count. In 4 each block changes by one store, which also switches the slots of
//        entries that have moved; each value changes by one store. [CC-76] So a crash leaves some of the changes, and each of
//        them whole.
// COST   One flush for each line that gets entries or values, one or two of line 0 of each block that changes.
// REQUIRES: the leaf's lock or latch is held from the constructor on.
class LbLeaf::Changes {
 public:
  explicit Changes(const LbLeaf& leaf);

  // Free slots that Place can use: those that were free when the changes began.
  uint32_t free() const;
  void Remove(uint32_t position);
  // Gives the entry another value. Its key and fingerprint stay.
  void Replace(uint32_t position, uint64_t value);
  // Chooses slots in line 0 of a block first, so that one line is enough. A line that gets entries behind line 0 also gets
  // entries of line 0 that move (entry moving: LB+-Trees, 3.2), so that the next changes find room there. Returns true if a fence
  // is needed before Publish. REQUIRES: entries.size() <= free().
  [[nodiscard]] bool Place(Persistence* persistence, std::span<const LbTaggedEntry> entries);
  void Publish(Persistence* persistence);
  // Lines that Place and Publish have flushed.
  uint32_t lines() const { return lines_; }

 private:
  struct Block {
    Header header;
    uint32_t free;             // slots that were free, and are not used yet
    uint32_t replaced;         // slots with a new value
    bool has_entries = false;  // new ones
    bool is_changed = false;
  };
  struct Value {
    uint32_t position;
    uint64_t value;
  };

  // The block with a free slot in line 0 that is best for one more entry; kMaxBlocks: none.
  uint32_t BestLine0() const;
  void Put(uint32_t block, uint32_t slot, const LbTaggedEntry& entry);
  // Places entries into the free slots of the line with most of them, and moves entries there. Returns the number placed.
  size_t FillLine(Persistence* persistence, std::span<const LbTaggedEntry> entries);

  const LbLeaf leaf_;
  std::array<Block, kMaxBlocks> blocks_;
  std::array<Value, kMaxEntries> values_;
  uint32_t value_count_ = 0;
  uint32_t lines_ = 0;
};

}  // namespace braiddb
