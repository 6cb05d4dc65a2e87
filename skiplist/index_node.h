// IndexNode: a node of a list as an index in DRAM stores it: 16 bytes.
#pragma once

#include <cstdint>

#include "index/ordered_item.h"
#include "log/log_entry.h"

namespace braiddb {

// LAYOUT  prefix  u64   KeyOrder::Prefix of the key
//         word    u64   bits 63–58 height of the entry; bits 57–3 its address, which is a multiple of 8; bits 2–0 flags:
//         kWhole, the
//                       key fits in its prefix
// WHY     A search for a key or for nodes of some height reads these words, and an entry only if two prefixes are equal.
class IndexNode {
 public:
  IndexNode() = default;
  // `is_whole`: KeyOrder::PrefixIsWhole. Reads the entry's height.
  IndexNode(uint64_t prefix, const LogEntry* entry, bool is_whole)
      : prefix_(prefix),
        word_(reinterpret_cast<uint64_t>(entry) | is_whole * kWhole | uint64_t{entry->height()} << kHeightShift) {}
  // Returns this node with the address of another entry. REQUIRES: the entries have the same key and height.
  IndexNode With(const LogEntry* entry) const {
    return FromWord(prefix_, (word_ & ~kAddress) | reinterpret_cast<uint64_t>(entry));
  }
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
  const LogEntry* entry() const { return EntryOf(word_); }
  uint32_t height() const { return HeightOf(word_); }
  bool is_whole() const { return (word_ & kWhole) != 0; }
  // As entry() and height(), of a bare word, as IndexTree stores it.
  static const LogEntry* EntryOf(uint64_t word) { return reinterpret_cast<const LogEntry*>(word & kAddress); }
  // Returns the bits of an OrderedItem's word, without its address.
  static uint64_t ItemBitsOf(uint64_t word) { return word & kWhole; }
  static uint32_t HeightOf(uint64_t word) { return static_cast<uint32_t>(word >> kHeightShift); }

 private:
  static constexpr int kHeightShift = 58;  // an address of a process has at most 57 bits, a height 5
  static constexpr uint64_t kWhole = OrderedItem::kWhole;
  static constexpr uint64_t kAddress = ((uint64_t{1} << kHeightShift) - 1) & ~uint64_t{7};

  uint64_t prefix_ = 0;
  uint64_t word_ = 0;
};

}  // namespace braiddb
