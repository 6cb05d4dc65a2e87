// IndexNode: a node of a list as an index in DRAM stores it: 16 bytes.
#pragma once

#include <cstdint>

#include "index/ordered_item.h"
#include "pmem/pm_ptr.h"

namespace braiddb {

// LAYOUT  prefix  u64   KeyOrder::Prefix of the key
//         word    u64   bits 63–58 height of the entry; bits 57–3 its PmPtr; bits 2–0 flags: kWhole, the key fits in its prefix
// WHY     A search for a key or for nodes of some height reads these words, and an entry only if two prefixes are equal. Other
//         processes, which map the regions elsewhere, can read the words too.
class IndexNode {
 public:
  IndexNode() = default;
  // `height`: of the entry. `is_whole`: KeyOrder::PrefixIsWhole.
  IndexNode(uint64_t prefix, PmPtr entry, uint32_t height, bool is_whole)
      : prefix_(prefix), word_(entry.raw() | is_whole * kWhole | uint64_t{height} << kHeightShift) {}
  // Returns this node with the place of another entry. REQUIRES: the entries have the same key and height.
  IndexNode With(PmPtr entry) const { return FromWord(prefix_, (word_ & ~kEntry) | entry.raw()); }
  // Makes a node from the words of another.
  static IndexNode FromWord(uint64_t prefix, uint64_t word) {
    IndexNode node;
    node.prefix_ = prefix;
    node.word_ = word;
    return node;
  }

  // The two words, and the parts of the second one.
  uint64_t prefix() const { return prefix_; }
  uint64_t word() const { return word_; }
  PmPtr entry() const { return EntryOf(word_); }
  uint32_t height() const { return HeightOf(word_); }
  bool is_whole() const { return (word_ & kWhole) != 0; }
  // As entry() and height(), of a bare word, as IndexTree stores it.
  static PmPtr EntryOf(uint64_t word) { return PmPtr(word & kEntry); }
  // Returns the word of an OrderedItem.
  static uint64_t ItemWordOf(uint64_t word) { return word & (kEntry | kWhole); }
  static uint32_t HeightOf(uint64_t word) { return static_cast<uint32_t>(word >> kHeightShift); }

 private:
  static constexpr int kHeightShift = 58;  // a PmPtr of one of kMaxRegions regions has at most 52 bits, a height 5
  static constexpr uint64_t kWhole = OrderedItem::kWhole;
  static constexpr uint64_t kEntry = ((uint64_t{1} << kHeightShift) - 1) & ~uint64_t{7};

  uint64_t prefix_ = 0;
  uint64_t word_ = 0;
};

}  // namespace braiddb
