#include "db_stress/supervisor.h"

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "braiddb/check.h"
#include "db_stress/life.h"
#include "db_stress/verifier.h"

namespace braiddb::stress {

namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;

constexpr auto kHung = std::chrono::seconds(180);
constexpr auto kPollInterval = microseconds(200);

bool IsStopSignalPending() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1;
}

constexpr const char* kMark = "/DB_STRESS";

std::string Describe(const CheckReport& report) {
  std::string text = std::to_string(report.findings.size() + report.more_findings) + " findings:";
  for (const CheckFinding& finding : report.findings) text += "\n  " + finding.what + " (" + finding.where + ")";
  return text;
}

}  // namespace

Supervisor::Supervisor(const Flags& flags) : flags_(flags), path_(flags.db + "/db"), random_(flags.seed) {
  // Blocks the signals until IsStopSignalPending checks them: a cycle is never interrupted.
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  sigprocmask(SIG_BLOCK, &stop, nullptr);
}

Supervisor::~Supervisor() = default;

int Supervisor::Run() {
  std::printf("db_stress: seed %llu, files in %s\n", static_cast<unsigned long long>(flags_.seed), flags_.db.c_str());
  Violation wrong;
  std::error_code error;
  fs::create_directories(flags_.db, error);
  if (error) {
    std::fprintf(stderr, "db_stress: %s: %s\n", flags_.db.c_str(), error.message().c_str());
    return 2;
  }
  if (const std::string why = MarkDirectory(); !why.empty()) {
    std::fprintf(stderr, "db_stress: %s: %s\n", flags_.db.c_str(), why.c_str());
    return 2;
  }
  wrong = RemoveDatabase();
  while (!wrong && !Finished()) {
    if (!database_) wrong = BeginDatabase();
    if (!wrong) wrong = RunCycle();
    if (!wrong && database_->cycles >= database_->plan.cycles) wrong = FinishDatabase();
    ReportProgress(false);
  }
  if (!wrong && database_) wrong = FinishDatabase();
  if (wrong) ++totals_.violations;
  ReportProgress(true);
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  std::printf("\ndb_stress: %s, seed %llu\n%s", wrong ? "VIOLATION" : "no violation",
              static_cast<unsigned long long>(flags_.seed), totals_.Summary(seconds).c_str());
  if (wrong) Report(*wrong);
  std::fflush(stdout);
  if (wrong) return 1;
  if (const Violation stays = RemoveDatabase()) {
    std::fprintf(stderr, "db_stress: cannot remove %s\n", stays->c_str());
    return 2;
  }
  // The mark stays with files of others, so that a next run goes on.
  const bool is_last = std::distance(fs::directory_iterator(flags_.db, error), fs::directory_iterator()) == 1;
  if (is_last && fs::remove(flags_.db + kMark, error)) fs::remove(flags_.db, error);
  return 0;
}

// Only a directory with the mark may have files of an earlier run.
std::string Supervisor::MarkDirectory() const {
  std::error_code error;
  const bool is_new = fs::is_empty(flags_.db, error);
  if (error) return error.message();
  if (!is_new && !fs::exists(flags_.db + kMark, error))
    return "is not empty, and has no file DB_STRESS, which db_stress would have made; empty it, or name another directory";
  return std::ofstream(flags_.db + kMark).put('\n').flush() ? "" : "no file can be made there";
}

bool Supervisor::Finished() {
  stopped_ = stopped_ || IsStopSignalPending();
  const auto elapsed = Clock::now() - start_;
  return stopped_ || (flags_.cycles != 0 && totals_.cycles >= flags_.cycles) ||
         (flags_.duration != 0 && elapsed >= std::chrono::seconds(flags_.duration));
}

// ---- Databases

Violation Supervisor::BeginDatabase() {
  database_ = std::make_unique<Database>(DrawDatabase(flags_, &random_));
  const Status status = ExpectedState::Create(flags_.db + "/expected", database_->plan.keys, &database_->expected);
  if (!status.ok()) return "expected state: " + status.ToString();
  for (uint32_t region = 0; region < database_->plan.regions; ++region) {
    if (database_->plan.region_paths) fs::create_directories(RegionPath(path_, region));
  }
  ++totals_.databases;
  return std::nullopt;
}

Violation Supervisor::FinishDatabase() {
  LifePlan plan = DrawLife(flags_, database_->plan, path_, &random_);
  plan.ending = Ending::kClosed;
  plan.patience = 0;
  plan.verify_at_end = true;
  // all lives so far were interrupted during the creation
  if (!database_->exists) plan.options.regions = database_->plan.regions;
  if (auto wrong = RunLife(plan)) return wrong;
  plan.options.segment_size = 256 << 10;
  auto wrong = InChild("emptying the database", [&] { return VerifySpace(database_->oracle(), database_->plan, plan, path_); });
  if (!wrong) wrong = CheckFiles(plan);
  if (!wrong) wrong = CheckPools();
  if (wrong) return wrong;
  ++totals_.space_checks;
  wrong = InChild("DB::Destroy", [&]() -> Violation {
    const Status status = DB::Destroy(plan.options, path_);
    if (!status.ok()) return status.ToString();
    return std::nullopt;
  });
  database_.reset();
  return wrong ? wrong : RemoveDatabase();
}

Violation Supervisor::RemoveDatabase() {
  std::error_code error;
  for (const auto& file : fs::directory_iterator(flags_.db)) {
    const std::string name = file.path().filename().string();
    if (name == "expected" || name == "pmempool.out" || name == "db" || name == "db.secondary" || name.starts_with("db.region"))
      fs::remove_all(file.path(), error);
    if (error) return file.path().string() + ": " + error.message();
  }
  return std::nullopt;
}

// ---- Cycles

Violation Supervisor::RunCycle() {
  LifePlan plan = DrawLife(flags_, database_->plan, path_, &random_);
  if (!database_->exists) {
    plan.options.regions = database_->plan.regions;
    if (random_.OneIn(2)) plan.ending = Ending::kKilledOpening;
  }
  last_life_ = plan.ToString();
  if (database_->exists && plan.check_before) {
    if (auto wrong = CheckFiles(plan)) return wrong;
  }
  if (database_->exists && plan.pmempool_before) {
    if (auto wrong = CheckPools()) return wrong;
  }
  ++totals_.cycles;
  ++database_->cycles;
  return RunLife(plan);
}

microseconds Supervisor::LengthOf(const LifePlan& plan) const {
  double longest = static_cast<double>(flags_.interval_ms) * 1000 * (plan.long_life ? 10 : 1);
  if (plan.ending == Ending::kKilledOpening) {
    // Before the first open has recorded its duration, assumes the duration of a creation.
    const uint64_t open_us = database_->expected->open_us();
    longest = open_us != 0 ? static_cast<double>(open_us) * 1.2 : 20'000.0;
  }
  return microseconds(static_cast<int64_t>(longest * plan.patience));
}

Violation Supervisor::RunLife(const LifePlan& plan) {
  ExpectedState* expected = database_->expected.get();
  expected->serving() = false;
  expected->stop() = false;
  ChildProcess child([&] {
    Life life(flags_, database_->plan, plan, database_->oracle(), path_);
    _exit(life.Run());  // without destructors, so that the files stay unchanged after a violation
    return 0;
  });

  const bool while_opening = plan.ending == Ending::kKilledOpening;
  if (!while_opening && !AwaitServing(&child)) {
    if (child.Ended()) return Blame("the process", child);
    child.Kill(SIGABRT);
    return "the process hangs: not serving after three minutes";
  }
  bool ended = child.WaitFor(LengthOf(plan));
  if (!ended && (plan.ending == Ending::kClosed || plan.ending == Ending::kKilledClosing)) {
    expected->stop() = true;
    ended = child.WaitFor(plan.ending == Ending::kClosed ? microseconds(kHung) : microseconds(random_.Uniform(20'000)));
    if (!ended && plan.ending == Ending::kClosed) {
      child.Kill(SIGABRT);
      return "the process hangs: not closed after three minutes";
    }
  }
  const bool serving = expected->serving();
  child.Kill(SIGKILL);
  totals_.Take(&expected->counters());
  if (!child.ended_well() && !child.was_killed()) return Blame("the process", child);
  if (expected->failed()) return expected->failure();  // killed before it could exit
  if (child.ended_well()) {
    ++totals_.closes;
  } else {
    ++totals_.kills;
    totals_.kills_opening += !serving;
    totals_.kills_creating += !serving && !database_->exists;
    totals_.kills_closing += serving && expected->stop();
  }
  database_->exists = database_->exists || serving || expected->epoch() != 0;
  return CheckHistory();
}

bool Supervisor::AwaitServing(ChildProcess* child) {
  const auto end = Clock::now() + kHung;
  while (!database_->expected->serving()) {
    if (child->Ended() || Clock::now() > end) return false;
    std::this_thread::sleep_for(kPollInterval);
  }
  return true;
}

Violation Supervisor::CheckHistory() {
  if (database_->checked_epochs == database_->expected->epoch()) return std::nullopt;
  ++database_->checked_epochs;
  ++totals_.epochs;
  return database_->expected->CheckLastEpoch();
}

// ---- Checks from another process

Violation Supervisor::CheckFiles(const LifePlan& plan) {
  ++totals_.checks;
  return InChild("CheckDatabase", [&]() -> Violation {
    CheckOptions options;
    options.region_paths = plan.options.region_paths;
    CheckReport report;
    const Status status = CheckDatabase(options, path_, &report);
    if (!status.ok()) return status.ToString();
    if (!report.sound()) return Describe(report);
    return std::nullopt;
  });
}

// PMDK's tool must accept the pools.
Violation Supervisor::CheckPools() {
  if (flags_.pmempool_one_in == 0 || pmempool_missing_) return std::nullopt;
  if (std::system("command -v pmempool > /dev/null 2>&1") != 0) {
    std::printf("db_stress: pmempool is not installed: pools are not checked with it\n");
    pmempool_missing_ = true;
    return std::nullopt;
  }
  uint64_t pools = 0;
  for (auto files = fs::recursive_directory_iterator(flags_.db); files != fs::recursive_directory_iterator(); ++files) {
    const fs::directory_entry& file = *files;
    if (file.path().filename() == "db.secondary") files.disable_recursion_pending();  // its pool is none of the regions'
    // A kill may leave an incomplete description of a pool. The next open removes it.
    if (!file.is_regular_file() || file.path().extension() == ".tmp") continue;
    std::string start(11, '\0');
    std::ifstream(file.path()).read(start.data(), static_cast<std::streamsize>(start.size()));
    if (start != "PMEMPOOLSET") continue;
    ++pools;
    const std::string command = "pmempool check '" + file.path().string() + "' > '" + flags_.db + "/pmempool.out' 2>&1";
    if (std::system(command.c_str()) != 0)
      return "pmempool check: " + file.path().string() + "; see " + flags_.db + "/pmempool.out";
  }
  ++totals_.pool_checks;
  if (pools == database_->plan.regions) return std::nullopt;
  return std::to_string(pools) + " pools, but " + std::to_string(database_->plan.regions) + " regions";
}

Violation Supervisor::InChild(const char* what, const std::function<Violation()>& body) {
  ExpectedState* expected = database_->expected.get();
  ChildProcess child([&] {
    const Violation wrong = body();
    if (wrong) expected->Fail(std::string(what) + ": " + *wrong);
    return wrong ? 1 : 0;
  });
  if (!child.WaitFor(kHung)) {
    child.Kill(SIGABRT);
    return std::string(what) + " hangs";
  }
  return child.ended_well() ? std::nullopt : Blame(what, child);
}

Violation Supervisor::Blame(const std::string& what, const ChildProcess& child) const {
  const std::string said = database_->expected->failure();
  return said.empty() ? what + " " + child.HowEnded() : said;
}

// ---- Reports

void Supervisor::ReportProgress(bool now) {
  if (!now && Clock::now() - last_report_ < std::chrono::seconds(flags_.progress_seconds)) return;
  last_report_ = Clock::now();
  std::printf("%s\n", totals_.Line(std::chrono::duration<double>(last_report_ - start_).count()).c_str());
  std::fflush(stdout);
}

void Supervisor::Report(const std::string& violation) const {
  std::printf("\nVIOLATION: %s\n", violation.c_str());
  if (database_) {
    std::printf("  database %llu, cycle %llu (its %llu.): %s\n  life: %s\n", static_cast<unsigned long long>(totals_.databases),
                static_cast<unsigned long long>(totals_.cycles), static_cast<unsigned long long>(database_->cycles),
                database_->plan.ToString().c_str(), last_life_.c_str());
  }
  std::printf("  kept: %s\n  again: db_stress --seed=%llu --cycles=%llu (threads may take other turns)\n", flags_.db.c_str(),
              static_cast<unsigned long long>(flags_.seed), static_cast<unsigned long long>(totals_.cycles));
}

}  // namespace braiddb::stress
