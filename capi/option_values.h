// Parses option values in RocksDB's text form, with RocksDB's rules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "braiddb/status.h"

namespace braiddb::capi {

enum class OptionKind : uint8_t {
  kBool,  // true, false, 1, 0
  // Whole numbers with an optional suffix K, M, G, or, for 64-bit and unsigned types, T. Other text behind the digits is ignored.
  kInt32,
  kInt64,
  kUint32,
  kUint64,
  kDouble,
  kEnum,  // a word, as kWord; the two kinds differ in the error text
  kWord,
  kText,  // any text
};

using OptionValue = std::variant<bool, int64_t, uint64_t, double>;

template <class Number>
Number As(const OptionValue& value) {
  return std::visit([](auto is) { return static_cast<Number>(is); }, value);
}

// Parses a value. Returns InvalidArgument with RocksDB's text, also for a number that is too large, which RocksDB would truncate.
// `name`: the option. Leaves *value unchanged for kText.
Status ParseValue(OptionKind kind, std::string_view name, std::string_view text, OptionValue* value);

// A text "name=value;name={name=value;…}". Blanks may surround each part, and braces the whole text.
struct NamedText {
  std::string_view name;
  std::string_view text;
};
// If a name occurs twice, only its last value is kept.
Status SplitOptions(std::string_view text, std::vector<NamedText>* options);

// RocksDB's error for an unknown option.
Status OptionNotFound(std::string_view name);

std::string_view WithoutBlanks(std::string_view text);

}  // namespace braiddb::capi
