// KeyOrder: the order of entries in all structures: user key ascending, then sequence number descending (newest first).
#pragma once

#include <cstdint>
#include <cstring>

#include "braiddb/comparator.h"
#include "braiddb/slice.h"
#include "util/short_bytes.h"

namespace braiddb {

inline constexpr uint64_t kMaxSequence = (uint64_t{1} << 56) - 1;

// Compares user keys, eight bytes at a time if the comparator is known.
//
// Prefix: a 64-bit number such that Prefix(a) < Prefix(b) implies a before b. Equal prefixes decide nothing. For an unknown
// comparator every prefix is 0, so every comparison calls the comparator.
class KeyOrder {
 public:
  explicit KeyOrder(const Comparator* comparator)
      : comparator_(comparator),
        mask_(comparator == BytewiseComparator() || comparator == ReverseBytewiseComparator() ? ~uint64_t{0} : 0),
        flip_(comparator == ReverseBytewiseComparator() ? ~uint64_t{0} : 0) {}

  uint64_t Prefix(Slice key) const { return ((BigEndian(key.data(), key.size()) ^ flip_) & mask_); }

  // True if the prefix determines the key: two such keys with equal prefixes are equal.
  bool PrefixIsWhole(Slice key) const { return mask_ != 0 && key.size() == sizeof(uint64_t); }

  int Compare(Slice a, Slice b) const {
    if (mask_ == 0) return comparator_->Compare(a, b);
    const int order = a.compare(b);
    return flip_ != 0 ? -order : order;
  }

  // Equivalent to Compare(a, b) == 0.
  bool Same(Slice a, Slice b) const { return mask_ != 0 ? SameBytes(a, b) : comparator_->Compare(a, b) == 0; }

  // True if equal keys always have the same bytes.
  bool equal_means_same() const { return mask_ != 0; }
  // True for ReverseBytewiseComparator.
  bool is_reverse() const { return flip_ != 0; }
  const Comparator* comparator() const { return comparator_; }

 private:
  static uint64_t BigEndian(const char* bytes, size_t size) {
    uint64_t word = 0;
    if (__builtin_expect(size >= sizeof(word), 1)) {
      memcpy(&word, bytes, sizeof(word));
    } else if (size != 0) {  // the address of an empty key may be null
      memcpy(&word, bytes, size);
    }
    return __builtin_bswap64(word);
  }

  const Comparator* comparator_;
  uint64_t mask_;
  uint64_t flip_;
};

// The target of a search: the first entry at or after (key, sequence) in entry order.
struct SearchKey {
  SearchKey(const KeyOrder& order, Slice user_key, uint64_t max_sequence)
      : key(user_key), prefix(order.Prefix(user_key)), sequence(max_sequence) {}
  // `key_prefix`: KeyOrder::Prefix(user_key).
  SearchKey(uint64_t key_prefix, Slice user_key, uint64_t max_sequence)
      : key(user_key), prefix(key_prefix), sequence(max_sequence) {}

  Slice key;
  uint64_t prefix;
  uint64_t sequence;  // entries of the key with larger numbers come before the target
};

}  // namespace braiddb
