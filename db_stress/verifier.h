// Verification of the whole database against the expected state, while nobody writes.
#pragma once

#include <string>
#include <vector>

#include "braiddb/db.h"
#include "db_stress/plan.h"
#include "db_stress/view_check.h"

namespace braiddb::stress {

// Decides of each write that was under way at a death whether it is there, as a whole; then compares every key there can be:
// forward scan, backward scan and Get must each show what is expected. What was found is so for ever.
// `families`: those that keys are spread over.
Violation VerifyDatabase(const Oracle& oracle, DB* db, const std::vector<ColumnFamilyHandle*>& families, const ReadOptions& read);

// Deletes everything and looks whether all space comes back. Opens the database as `life` says, and closes it.
Violation VerifySpace(const Oracle& oracle, const DatabasePlan& database, const LifePlan& life, const std::string& path);

}  // namespace braiddb::stress
