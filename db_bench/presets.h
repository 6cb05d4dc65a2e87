// Presets: settings of published workloads under one name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace braiddb::bench {

struct Preset {
  const char* name;
  const char* what;
  std::vector<std::string> arguments;  // flags; those that are given beside the preset count more
};

const std::vector<Preset>& Presets();
// Null if there is none of that name.
const Preset* FindPreset(std::string_view name);

}  // namespace braiddb::bench
