// The differences between the libraries that are meant, each with the document that names it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tests/differential/life.h"

namespace braiddb::test {

struct KnownDifference {
  const char* name;
  const char* document;                           // from the top of the source tree
  const char* words;                              // stand in the document, and name the difference
  bool states_differ;                             // the databases differ from then on, so the life ends
  bool (*matches)(const Difference& difference);  // null: the calls that would show it are not drawn
};
const std::vector<KnownDifference>& KnownDifferences();

// The index of the first one that matches.
std::optional<size_t> FindKnownDifference(const Difference& difference);

// Empty, or which documents do not have the words.
std::string CheckKnownDifferences(const std::string& source_directory);

}  // namespace braiddb::test
