// Figure: a number that has a name in --json.
#pragma once

#include <cstdint>
#include <string>

namespace braiddb::bench {

// Names end in the unit, unless it is a count: "dram_bytes", "l0_tables".
struct Figure {
  std::string name;
  uint64_t value = 0;
};

}  // namespace braiddb::bench
