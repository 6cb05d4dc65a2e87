// Values of options as RocksDB's text forms have them, read as RocksDB reads them.
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
  kBool,    // true, false, 1, 0
  kInt32,   // whole numbers: what is behind the digits is passed over, but for K, M, G (and T, with 64 bits or without a sign)
  kInt64,   // …
  kUint32,  // …
  kUint64,  // …
  kDouble,
  kEnum,  // words; the two differ in what is said of wrong ones
  kWord,  // …
  kText,  // anything
};

using OptionValue = std::variant<bool, int64_t, uint64_t, double>;

template <class Number>
Number As(const OptionValue& value) {
  return std::visit([](auto is) { return static_cast<Number>(is); }, value);
}

// InvalidArgument with RocksDB's text; of numbers that do not fit, too, which RocksDB cuts off. `name`: of the option. *value of
// kText is left alone.
Status ParseValue(OptionKind kind, std::string_view name, std::string_view text, OptionValue* value);

// "name=value;name={name=value;…}", blanks around any of these, and perhaps braces around all of it.
struct NamedText {
  std::string_view name;
  std::string_view text;
};
// Of names that come twice only the last.
Status SplitOptions(std::string_view text, std::vector<NamedText>* options);

std::string_view WithoutBlanks(std::string_view text);

}  // namespace braiddb::capi
