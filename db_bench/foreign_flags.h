// Flags of RocksDB's db_bench without a meaning here: accepted without effect, or refused with a reason.
#pragma once

#include <string>
#include <string_view>

namespace braiddb::bench {

struct ForeignFlag {
  bool accepted;
  std::string message;  // one line: the reason why the flag has no effect or is refused
};

// `name`: without dashes. Refuses unknown names.
ForeignFlag JudgeForeignFlag(std::string_view name, std::string_view value);

}  // namespace braiddb::bench
