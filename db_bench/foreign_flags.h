// Flags of RocksDB's db_bench that mean nothing here: so that what its users type works, or says why not.
#pragma once

#include <string>
#include <string_view>

namespace braiddb::bench {

struct ForeignFlag {
  bool accepted;
  std::string message;  // one line: why it has no effect, or why it is refused
};

// `name` without dashes. Unknown names are refused.
ForeignFlag JudgeForeignFlag(std::string_view name, std::string_view value);

}  // namespace braiddb::bench
