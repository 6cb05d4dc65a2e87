// Supervisor: the process that starts the child processes, kills them, and checks their results.
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

  // Runs cycles until a limit of the flags, a signal, or a violation. Returns the exit code of the program.
  int Run();

 private:
  using Clock = std::chrono::steady_clock;

  // A database, its expected state, and its plan.
  struct Database {
    DatabasePlan plan;
    KeyTable keys;
    Content content;
    std::unique_ptr<ExpectedState> expected;
    uint64_t cycles = 0;
    uint64_t checked_epochs = 0;
    bool exists = false;  // a process has served it; before that its creation may be interrupted

    explicit Database(const DatabasePlan& drawn)
        : plan(drawn), keys(drawn.seed, drawn.keys, drawn.comparators()), content(drawn.seed) {}
    Oracle oracle() const { return {&keys, &content, expected.get()}; }
  };

  Violation BeginDatabase();
  Violation RunCycle();
  // Verifies the database for the last time, then empties it.
  Violation FinishDatabase();
  // Returns why the directory cannot be used; empty if it can.
  std::string MarkDirectory() const;
  Violation RemoveDatabase();

  // From the fork of a life to its end.
  Violation RunLife(const LifePlan& plan);
  // Waits until the child serves. Returns false if the child ended before, or hangs.
  bool AwaitServing(ChildProcess* child);
  std::chrono::microseconds LengthOf(const LifePlan& plan) const;
  Violation CheckHistory();
  Violation CheckFiles(const LifePlan& plan);
  Violation CheckPools();
  // Runs `body` in a child process. The child must end with success.
  Violation InChild(const char* what, const std::function<Violation()>& body);
  // Describes a child that ended wrongly.
  Violation Blame(const std::string& what, const ChildProcess& child) const;

  bool Finished();
  void ReportProgress(bool now);
  void Report(const std::string& violation) const;

  const Flags flags_;
  const std::string path_;  // of the database
  Random random_;
  std::unique_ptr<Database> database_;
  std::string last_life_;  // for reports
  Totals totals_;
  bool pmempool_missing_ = false;
  bool stopped_ = false;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_report_ = start_;
};

}  // namespace braiddb::stress
