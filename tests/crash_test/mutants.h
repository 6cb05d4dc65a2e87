// The bugs that can be put in, see util/mutant.h.
#pragma once

#include <span>
#include <string_view>

namespace braiddb::test {

struct Mutant {
  const char* name;
  const char* bug_class;
  const char* place;
};

std::span<const Mutant> Mutants();
bool IsMutant(std::string_view name);

}  // namespace braiddb::test
