// Column families as RocksDB's db_bench has them: what they are called, and which one a key is in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "braiddb/column_family.h"
#include "braiddb/slice.h"

namespace braiddb::bench {

// The first is the default one.
inline std::string FamilyName(size_t i) {
  if (i == 0) return kDefaultColumnFamilyName;
  const std::string number = std::to_string(i);
  return "column_family_name_" + std::string(number.size() < 6 ? 6 - number.size() : 0, '0') + number;
}

// The number that a key begins with, big-endian (KeyMaker), chooses. REQUIRES: families > 0.
inline size_t FamilyOf(Slice key, size_t families) {
  uint64_t number = 0;
  for (size_t i = 0; i < std::min(key.size(), sizeof(number)); ++i) number = number << 8 | static_cast<unsigned char>(key[i]);
  return number % families;
}

}  // namespace braiddb::bench
