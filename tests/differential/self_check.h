// SelfTest: the comparison must find what it is for.
#pragma once

#include <string>

#include "tests/differential/api.h"

namespace braiddb::test {

// Compares the library with itself, then with itself and a wrong answer of each kind. Needs no RocksDB. Returns an exit code, and
// prints what was wrong.
int SelfTest(const Api& library, const std::string& directory, const std::string& source_directory);

}  // namespace braiddb::test
