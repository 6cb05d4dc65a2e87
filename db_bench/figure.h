// Figure: a named number in --json.
#pragma once

#include <cstdint>
#include <string>

namespace braiddb::bench {

// A name ends in its unit, except for counts: "dram_bytes", "l0_tables".
struct Figure {
  std::string name;
  uint64_t value = 0;
};

}  // namespace braiddb::bench
