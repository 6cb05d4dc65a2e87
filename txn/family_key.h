// FamilyKey: a key with its column family id. Identifies a key for locks and conflict checks.
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

// A FamilyKey that does not own its bytes.
struct FamilySlice {
  FamilySlice(uint32_t key_family, Slice family_key) : family(key_family), key(family_key) {}
  FamilySlice(const FamilyKey& whole) : family(whole.family), key(whole.key) {}  // NOLINT(google-explicit-constructor)
  FamilyKey Copy() const { return {family, std::string(key)}; }

  // An arbitrary total order, used only for sorting.
  friend bool operator<(const FamilySlice& a, const FamilySlice& b) {
    return a.family != b.family ? a.family < b.family : a.key < b.key;
  }
  friend bool operator==(const FamilySlice& a, const FamilySlice& b) { return a.family == b.family && a.key == b.key; }

  uint32_t family;
  Slice key;
};

// Hashes both types equally, so a table of FamilyKey can be searched by FamilySlice.
struct FamilyKeyHasher {
  using is_transparent = void;
  size_t operator()(const FamilySlice& key) const { return KeyHash(key.family, key.key); }
};
struct FamilyKeyEqual {
  using is_transparent = void;
  bool operator()(const FamilySlice& a, const FamilySlice& b) const { return a == b; }
};

}  // namespace braiddb
