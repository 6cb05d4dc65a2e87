// Presets: named settings of published workloads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace braiddb::bench {

struct Preset {
  const char* name;
  const char* what;
  std::vector<std::string> arguments;  // flags; explicit flags override them
};

const std::vector<Preset>& Presets();
// Returns null for an unknown name.
const Preset* FindPreset(std::string_view name);

}  // namespace braiddb::bench
