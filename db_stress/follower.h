// Follower: a secondary of a life's database. Each catch-up is a view. It shows every write that was acknowledged before it, and
// no write that began after it. Batches are whole.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "db_stress/plan.h"
#include "db_stress/view_check.h"
#include "util/random.h"

namespace braiddb::stress {

// Thread safety: one thread at a time.
class Follower {
 public:
  // `path`: of the primary. The copy lies in SecondaryPath(path).
  Follower(const Oracle& oracle, const DatabasePlan& database, const LifePlan& life, std::string path)
      : oracle_(oracle), database_(database), life_(life), path_(std::move(path)), random_(life.seed + 1) {}

  // Opens the secondary, and catches up until `stop`. Busy is no violation: the primary may be too fast.
  Violation Run(const std::atomic<bool>& stop);

  static std::string SecondaryPath(const std::string& path) { return path + ".secondary"; }

 private:
  Status Open();
  // A catch-up, and reads of `ids`. `is_group`: all of one generation.
  Violation CatchUp(std::vector<uint32_t> ids, bool is_group);
  std::vector<uint32_t> DrawKeys(bool is_group);

  const Oracle oracle_;
  const DatabasePlan& database_;
  const LifePlan& life_;
  const std::string path_;
  Random random_;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles_;
  std::unique_ptr<DB> db_;
};

}  // namespace braiddb::stress
