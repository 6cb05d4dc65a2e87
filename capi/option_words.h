// RocksDB's words for the values of options that are enumerations.
#pragma once

#include <span>
#include <string_view>

namespace braiddb::capi {

struct Word {
  int value;
  std::string_view text;
};

// None of an option that is no enumeration. A value that has no word is a number.
std::span<const Word> WordsOf(std::string_view name);

}  // namespace braiddb::capi
