// Separator: the start of the key range of a leaf. DRAM only.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "index/key_order.h"

namespace braiddb {

// The part of a separator beyond the 8-byte prefix: a whole key and a sequence number. Immutable.
struct SeparatorRest {
  uint64_t sequence;
  uint32_t key_size;
  char key_data[];

  Slice key() const { return Slice(key_data, key_size); }
  size_t bytes() const { return sizeof(SeparatorRest) + key_size; }
};

// A position in entry order. Without a rest: before all keys that have the prefix.
struct Separator {
  uint64_t prefix = 0;
  const SeparatorRest* rest = nullptr;
};

// ---- Words behind a common prefix
//
// In a group of positions whose keys all begin with the same `skip` bytes, the next eight bytes decide instead of the first
// ("poor man's normalized keys", Graefe and Larson, ICDE '01). A key that ends before byte `skip` + 8 is taken as continued by
// zeros, as in KeyOrder::Prefix. WordBehind(a) < WordBehind(b) implies a before b; equal words decide nothing.

inline uint64_t WordBehind(const KeyOrder& order, const SearchKey& key, size_t skip) {
  if (skip == 0) return key.prefix;
  return order.Prefix(key.key.size() > skip ? key.key.substr(skip) : Slice());
}
// A position without a rest has the smallest word of all keys with its prefix.
inline uint64_t WordBehind(const KeyOrder& order, const Separator& place, size_t skip) {
  if (place.rest == nullptr) return skip < sizeof(uint64_t) ? place.prefix << (8 * skip) : 0;
  return WordBehind(order, SearchKey(place.prefix, place.rest->key(), 0), skip);
}

// The number of bytes with which all keys between two positions begin, a lower bound. With a comparator of the user's: 0.
inline uint32_t CommonBytes(const KeyOrder& order, const Separator& a, const Separator& b) {
  if (!order.equal_means_same()) return 0;
  if (a.prefix != b.prefix) return static_cast<uint32_t>(std::countl_zero(a.prefix ^ b.prefix)) / 8;
  if (a.rest == nullptr || b.rest == nullptr) return sizeof(uint64_t);
  const Slice x = a.rest->key(), y = b.rest->key();
  const size_t both = std::min(x.size(), y.size());
  const auto same = static_cast<uint32_t>(std::mismatch(x.begin(), x.begin() + both, y.begin()).first - x.begin());
  return std::max<uint32_t>(same, sizeof(uint64_t));
}

// Allocates a rest with a copy of the key. Freed by DeleteSeparatorRest. May throw std::bad_alloc.
inline const SeparatorRest* NewSeparatorRest(Slice key, uint64_t sequence) {
  void* const memory = ::operator new(sizeof(SeparatorRest) + key.size());
  auto* rest = static_cast<SeparatorRest*>(memory);
  rest->sequence = sequence;
  rest->key_size = static_cast<uint32_t>(key.size());
  memcpy(rest->key_data, key.data(), key.size());
  return rest;
}
inline void DeleteSeparatorRest(const SeparatorRest* rest) { ::operator delete(const_cast<SeparatorRest*>(rest)); }

// Result < 0, 0, > 0: the target is before, at, behind the position.
inline int CompareToSeparator(const KeyOrder& order, const SearchKey& target, const Separator& place) {
  if (target.prefix != place.prefix) return target.prefix < place.prefix ? -1 : 1;
  if (place.rest == nullptr) return 1;
  const int by_key = order.Compare(target.key, place.rest->key());
  if (by_key != 0) return by_key;
  if (target.sequence == place.rest->sequence) return 0;
  return target.sequence > place.rest->sequence ? -1 : 1;
}
inline int CompareToSeparator(const KeyOrder& order, const Separator& target, const Separator& place) {
  if (target.rest == nullptr || target.prefix != place.prefix) {
    if (target.prefix != place.prefix) return target.prefix < place.prefix ? -1 : 1;
    return place.rest == nullptr ? 0 : -1;
  }
  return CompareToSeparator(order, SearchKey(target.prefix, target.rest->key(), target.rest->sequence), place);
}

// Compares a target with the group of keys that begin with the first `bytes` bytes of `sample`. `sample` has a rest if `bytes` is
// more than 8. Result < 0, > 0: the target is before, behind all of them. 0: the target begins like them.
template <class Target>
int CompareCommon(const KeyOrder& order, const Target& target, const Separator& sample, uint32_t bytes) {
  constexpr uint32_t kWord = sizeof(uint64_t);
  if (bytes == 0) return 0;
  const int shift = bytes < kWord ? 8 * static_cast<int>(kWord - bytes) : 0;
  const uint64_t a = target.prefix >> shift, b = sample.prefix >> shift;
  if (a != b) return a < b ? -1 : 1;
  if (bytes <= kWord) return 0;
  Slice key;
  if constexpr (std::is_same_v<Target, Separator>) {
    if (target.rest == nullptr) return -1;  // before all keys with its prefix
    key = target.rest->key();
  } else {
    key = target.key;
  }
  const int by_bytes = key.substr(0, bytes).compare(sample.rest->key().substr(0, bytes));
  return order.is_reverse() ? -by_bytes : by_bytes;
}

}  // namespace braiddb
