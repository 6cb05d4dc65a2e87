// LastLevelTest: a last level of each kind, in several numbers of regions, for what all of them promise.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/level_case.h"
#include "tests/support/map_level.h"

namespace braiddb::test {

class LastLevelTest : public testing::TestWithParam<LevelShape> {
 protected:
  EntryStore& store() { return level_.store(); }

  std::vector<std::string> Keys(uint64_t count) const {
    std::vector<std::string> keys;
    for (uint64_t i = 0; i < count; ++i) keys.push_back(NumberedKey(i));
    return keys;
  }

  LevelCase level_{GetParam()};
  Random random_{71};
};

// The built-in kinds, and one that only the tests have.
inline auto AllLastLevels() {
  return testing::Values(
      LevelShape{L1Kind::kBraidedSkipList, 1}, LevelShape{L1Kind::kBraidedSkipList, 2}, LevelShape{L1Kind::kBraidedSkipList, 4},
      LevelShape{L1Kind::kNvTree, 1}, LevelShape{L1Kind::kNvTree, 2}, LevelShape{L1Kind::kNvTree, 4},
      LevelShape{L1Kind::kBraidedSkipList, 2, ListKind::kOblivious},
      LevelShape{L1Kind::kBraidedSkipList, 4, ListKind::kOblivious}, LevelShape{L1Kind::kNvTree, 2, ListKind::kOblivious},
      LevelShape{L1Kind::kSortedRuns, 1}, LevelShape{L1Kind::kSortedRuns, 2}, LevelShape{L1Kind::kSortedRuns, 4},
      LevelShape{L1Kind::kSortedRuns, 2, ListKind::kOblivious}, LevelShape{L1Kind::kHybrid, 1}, LevelShape{L1Kind::kHybrid, 2},
      LevelShape{L1Kind::kHybrid, 4}, LevelShape{L1Kind::kHybrid, 2, ListKind::kOblivious}, LevelShape{L1Kind::kLbTree, 1},
      LevelShape{L1Kind::kLbTree, 2}, LevelShape{L1Kind::kLbTree, 4}, LevelShape{L1Kind::kLbTree, 2, ListKind::kOblivious},
      LevelShape{RegisterMapLevel(), 1}, LevelShape{RegisterMapLevel(), 2}, LevelShape{RegisterMapLevel(), 4});
}

}  // namespace braiddb::test
