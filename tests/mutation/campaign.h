// A corruption campaign: databases of every case, damaged in one way for each open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/mutation/judge.h"
#include "tests/mutation/mutation.h"
#include "tests/mutation/mutation_database.h"

namespace braiddb::test {

struct MutationCase {
  const char* name;
  Life life;
  Promise promise;
  L1Kind l1 = L1Kind::kBraidedSkipList;
  bool families = false;
};
const std::vector<MutationCase>& MutationCases();

struct MutationCampaignOptions {
  uint64_t seed = 1;
  uint64_t opens = 10'000;  // over all cases
  std::string only_case;    // empty: all of them
  bool every_word = false;  // first, in each case, every word of one database that is of use
  bool in_lists = false;    // also what plain readers are promised nothing about; what comes of it is only counted
  uint64_t first_database = 0;
  int64_t only = -1;  // this mutation of that database and no other
  std::string keep;   // the mutated files of violations are copied here
};

// 0 if there was no bad outcome.
int RunMutationCampaign(const MutationCampaignOptions& options);

}  // namespace braiddb::test
