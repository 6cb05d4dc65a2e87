// Column families as in RocksDB's db_bench: their names, and the family of a key.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "braiddb/column_family.h"
#include "braiddb/slice.h"

namespace braiddb::bench {

// Family 0 is the default family.
inline std::string FamilyName(size_t i) {
  if (i == 0) return kDefaultColumnFamilyName;
  const std::string number = std::to_string(i);
  return "column_family_name_" + std::string(number.size() < 6 ? 6 - number.size() : 0, '0') + number;
}

// The family is chosen by the big-endian number at the begin of the key (KeyMaker). REQUIRES: families > 0.
inline size_t FamilyOf(Slice key, size_t families) {
  uint64_t number = 0;
  for (size_t i = 0; i < std::min(key.size(), sizeof(number)); ++i) number = number << 8 | static_cast<unsigned char>(key[i]);
  return number % families;
}

}  // namespace braiddb::bench
