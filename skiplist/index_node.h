// IndexNode: what an index in DRAM knows of a node of a list.
#pragma once

#include <cstdint>

#include "index/ordered_item.h"
#include "log/log_entry.h"

namespace braiddb {

// The key's prefix, and in one word the entry's address, its height, and whether the prefix says all of the key: so that who
// looks for nodes that reach a layer, or that come before a key, mostly has no look at the entries, which are far.
class IndexNode {
 public:
  IndexNode() = default;
  // `is_whole`: KeyOrder::PrefixIsWhole. Looks at the entry.
  IndexNode(uint64_t prefix, const LogEntry* entry, bool is_whole)
      : prefix_(prefix),
        word_(reinterpret_cast<uint64_t>(entry) | is_whole * kWhole | uint64_t{entry->height()} << kHeightShift) {}
  // As this one, of another entry with the same key and height.
  IndexNode With(const LogEntry* entry) const {
    return FromWord(prefix_, (word_ & ~kAddress) | reinterpret_cast<uint64_t>(entry));
  }
  // With the word of another.
  static IndexNode FromWord(uint64_t prefix, uint64_t word) {
    IndexNode node;
    node.prefix_ = prefix;
    node.word_ = word;
    return node;
  }

  uint64_t prefix() const { return prefix_; }
  uint64_t word() const { return word_; }
  const LogEntry* entry() const { return EntryOf(word_); }
  uint32_t height() const { return HeightOf(word_); }
  static const LogEntry* EntryOf(uint64_t word) { return reinterpret_cast<const LogEntry*>(word & kAddress); }
  // The item's word, but for the address.
  static uint64_t ItemBitsOf(uint64_t word) { return word & kWhole; }
  static uint32_t HeightOf(uint64_t word) { return static_cast<uint32_t>(word >> kHeightShift); }

 private:
  static constexpr int kHeightShift = 58;  // addresses of a process have 57 bits at most, and heights 5
  static constexpr uint64_t kWhole = OrderedItem::kWhole;
  static constexpr uint64_t kAddress = ((uint64_t{1} << kHeightShift) - 1) & ~uint64_t{7};

  uint64_t prefix_ = 0;
  uint64_t word_ = 0;
};

}  // namespace braiddb
