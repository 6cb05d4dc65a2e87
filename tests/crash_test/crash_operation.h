// CrashOperation: what a writer of a campaign does at a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace braiddb::test {

// Without a value: a delete.
struct CrashUpdate {
  std::string key;
  std::optional<std::string> value;
  bool is_operand = false;  // the value is one of AppendOperator
  // Of a delete: it deletes a range, up to here; the deletes of its other keys follow.
  std::optional<std::string> range_end = std::nullopt;
  bool is_in_range = false;  // … and are done by it
};
// Updates that one call makes durable together, in order.
using CrashOperation = std::vector<CrashUpdate>;

}  // namespace braiddb::test
