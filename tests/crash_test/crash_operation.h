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
};
// Updates that one call makes durable together, in order.
using CrashOperation = std::vector<CrashUpdate>;

}  // namespace braiddb::test
