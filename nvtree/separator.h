// Separator: the start of the key range of a leaf. DRAM only.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

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

}  // namespace braiddb
