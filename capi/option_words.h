// RocksDB's words for the values of enumeration options.
#pragma once

#include <span>
#include <string_view>

namespace braiddb::capi {

struct Word {
  int value;
  std::string_view text;
};

// Empty for an option that is not an enumeration. A value without a word is written as a number.
std::span<const Word> WordsOf(std::string_view name);

}  // namespace braiddb::capi
