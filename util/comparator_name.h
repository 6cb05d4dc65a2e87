// Names of comparators: the stored names, and RocksDB's names of the built-in ones.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "braiddb/comparator.h"

namespace braiddb {

// Maximum length of a stored name in bytes.
inline constexpr uint32_t kMaxComparatorName = 63;
// The part of the stored name of a comparator with timestamps that precedes their size.
inline constexpr const char* kTimestampsInName = " with timestamps of ";

// The name that a database, a backup or a sorted file stores for the comparator. A name of up to 63 bytes is stored unchanged. Of
// a longer name, the first 30 bytes, '#' and the 128-bit XXH3 of the whole name in hexadecimal are stored, so that different
// names stay different. The name of a comparator with timestamps includes their size.
std::string StoredName(const Comparator& comparator);

// The name for users: "leveldb.BytewiseComparator", "rocksdb.ReverseBytewiseComparator", or the unchanged name. A database stores
// Comparator::Name() itself.
inline std::string_view FamiliarName(std::string_view name) {
  if (name == BytewiseComparator()->Name()) return "leveldb.BytewiseComparator";
  if (name == ReverseBytewiseComparator()->Name()) return "rocksdb.ReverseBytewiseComparator";
  return name;
}

// The comparators of comparator.h.
inline const std::array<const Comparator*, 4>& BuiltInComparators() {
  static const std::array<const Comparator*, 4> all = {BytewiseComparator(), ReverseBytewiseComparator(),
                                                       BytewiseComparatorWithU64Ts(), ReverseBytewiseComparatorWithU64Ts()};
  return all;
}

// The built-in comparator with this name, in either form; null if there is none.
inline const Comparator* BuiltInComparator(std::string_view name) {
  for (const Comparator* comparator : BuiltInComparators()) {
    if (name == comparator->Name() || name == FamiliarName(comparator->Name())) return comparator;
  }
  return nullptr;
}

}  // namespace braiddb
