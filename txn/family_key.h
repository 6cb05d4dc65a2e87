// FamilyKey: a key in its column family, for those who lock and remember keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "braiddb/slice.h"
#include "index/key_hash.h"

namespace braiddb {

struct FamilyKey {
  uint32_t family;
  std::string key;
};

// One that is somebody else's.
struct FamilySlice {
  FamilySlice(uint32_t key_family, Slice family_key) : family(key_family), key(family_key) {}
  FamilySlice(const FamilyKey& whole) : family(whole.family), key(whole.key) {}  // NOLINT(google-explicit-constructor)
  FamilyKey Copy() const { return {family, std::string(key)}; }

  // Any order will do, as long as it is one.
  friend bool operator<(const FamilySlice& a, const FamilySlice& b) {
    return a.family != b.family ? a.family < b.family : a.key < b.key;
  }
  friend bool operator==(const FamilySlice& a, const FamilySlice& b) { return a.family == b.family && a.key == b.key; }

  uint32_t family;
  Slice key;
};

// Of tables of keys that are asked with those of others, too.
struct FamilyKeyHasher {
  using is_transparent = void;
  size_t operator()(const FamilySlice& key) const { return KeyHash(key.family, key.key); }
};
struct FamilyKeyEqual {
  using is_transparent = void;
  bool operator()(const FamilySlice& a, const FamilySlice& b) const { return a == b; }
};

}  // namespace braiddb
