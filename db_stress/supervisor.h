// The process that starts the others, kills them, and keeps account.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "db_stress/child_process.h"
#include "db_stress/flags.h"
#include "db_stress/plan.h"
#include "db_stress/totals.h"
#include "db_stress/view_check.h"

namespace braiddb::stress {

class Supervisor {
 public:
  explicit Supervisor(const Flags& flags);
  ~Supervisor();

  // Cycle after cycle until the limits of the flags, a signal, or a violation. Returns the program's exit code.
  int Run();

 private:
  using Clock = std::chrono::steady_clock;

  // A database, what is expected of it, and what it was made from.
  struct Database {
    DatabasePlan plan;
    KeyTable keys;
    Content content;
    std::unique_ptr<ExpectedState> expected;
    uint64_t cycles = 0;
    uint64_t checked_epochs = 0;
    bool exists = false;  // some process has served it; until then its creation may be cut short

    explicit Database(const DatabasePlan& drawn)
        : plan(drawn), keys(drawn.seed, drawn.keys, drawn.comparators()), content(drawn.seed) {}
    Oracle oracle() const { return {&keys, &content, expected.get()}; }
  };

  Violation BeginDatabase();
  Violation RunCycle();
  // Verifies it for the last time, then empties it.
  Violation FinishDatabase();
  Violation RemoveDatabase();

  // From the fork of a life to its end.
  Violation RunLife(const LifePlan& plan);
  // Waits until the child serves. False if it ended before that, or hangs.
  bool AwaitServing(ChildProcess* child);
  std::chrono::microseconds LengthOf(const LifePlan& plan) const;
  Violation CheckHistory();
  Violation CheckFiles(const LifePlan& plan);
  Violation CheckPools();
  // Runs it in a process of its own, which must end well.
  Violation InChild(const char* what, const std::function<Violation()>& body);
  // Of a child that did not end as it should.
  Violation Blame(const std::string& what, const ChildProcess& child) const;

  bool Finished();
  void ReportProgress(bool now);
  void Report(const std::string& violation) const;

  const Flags flags_;
  const std::string path_;  // of the database
  Random random_;
  std::unique_ptr<Database> database_;
  std::string last_life_;  // for a report
  Totals totals_;
  bool pmempool_missing_ = false;
  bool stopped_ = false;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_report_ = start_;
};

}  // namespace braiddb::stress
