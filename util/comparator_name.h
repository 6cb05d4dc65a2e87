// Names of comparators: as files store them, and as RocksDB knows the built-in ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "braiddb/comparator.h"

namespace braiddb {

// Bytes that a stored name has at most.
inline constexpr uint32_t kMaxComparatorName = 63;

// The name that a database, a backup or a sorted file stores for the comparator. A name of up to 63 bytes is stored as it is.
// Of a longer one the first 30 bytes, '#' and the 128-bit XXH3 of the whole name in hexadecimal are stored, so names that differ
// in any byte are told apart.
std::string StoredName(const Comparator& comparator);

// For what users see: "leveldb.BytewiseComparator" and "rocksdb.ReverseBytewiseComparator"; any other name as it is. A database
// stores Comparator::Name() itself.
inline std::string_view FamiliarName(std::string_view name) {
  if (name == BytewiseComparator()->Name()) return "leveldb.BytewiseComparator";
  if (name == ReverseBytewiseComparator()->Name()) return "rocksdb.ReverseBytewiseComparator";
  return name;
}

// By either name; null if it is none of them.
inline const Comparator* BuiltInComparator(std::string_view name) {
  for (const Comparator* comparator : {BytewiseComparator(), ReverseBytewiseComparator()}) {
    if (name == comparator->Name() || name == FamiliarName(comparator->Name())) return comparator;
  }
  return nullptr;
}

}  // namespace braiddb
