// Life: the work of a child process on the database, from open to the end. Most lives end by SIGKILL.
#pragma once

#include <memory>
#include <string>

#include "braiddb/db.h"
#include "db_stress/bank.h"
#include "db_stress/flags.h"
#include "db_stress/plan.h"
#include "db_stress/store.h"
#include "db_stress/view_check.h"

namespace braiddb::stress {

class Life {
 public:
  Life(const Flags& flags, const DatabasePlan& database, const LifePlan& plan, const Oracle& oracle, std::string path)
      : flags_(flags), database_(database), plan_(plan), oracle_(oracle), path_(std::move(path)) {}

  // Opens, verifies, works, closes. Returns the exit code of the process: 0, or 1 after ExpectedState::Fail.
  int Run();

 private:
  Violation ReadOnly();
  Violation Open();
  Violation Work();
  Violation End();
  // Adds the database's counts since the last call to the counters that outlive the process.
  void PublishStatistics();

  const Flags& flags_;
  const DatabasePlan& database_;
  const LifePlan& plan_;
  const Oracle oracle_;
  const std::string path_;
  Store store_;
  Bank bank_{&store_, oracle_.expected};
  Statistics published_;
};

}  // namespace braiddb::stress
