// Verifier: compares the whole database with the expected state, while no writes run.
#pragma once

#include <string>
#include <vector>

#include "braiddb/db.h"
#include "db_stress/plan.h"
#include "db_stress/view_check.h"

namespace braiddb::stress {

// Decides for each write that was interrupted by a death whether the whole write took effect. Then checks each possible key:
// forward scan, backward scan, and Get must show the expected value. The decisions are final.
// `families`: the families that the keys are spread over.
Violation VerifyDatabase(const Oracle& oracle, DB* db, const std::vector<ColumnFamilyHandle*>& families, const ReadOptions& read);

// Deletes all keys and checks that all space is freed. Opens the database as `life` describes, and closes it.
Violation VerifySpace(const Oracle& oracle, const DatabasePlan& database, const LifePlan& life, const std::string& path);

}  // namespace braiddb::stress
