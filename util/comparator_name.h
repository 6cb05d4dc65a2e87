// The names that RocksDB knows the built-in comparators by.
#pragma once

#include <string_view>

#include "braiddb/comparator.h"

namespace braiddb {

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
