#include "db_bench/program.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db_bench/benchmark.h"
#include "db_bench/engine.h"
#include "db_bench/environment.h"
#include "db_bench/header.h"
#include "db_bench/results.h"
#include "db_bench/turn.h"

namespace braiddb::bench {

namespace {

struct Contestant {
  std::string engine;
  std::string label;  // unique
  std::string path;
  std::unique_ptr<Driver> driver;
};

void PrintLists(const Flags& flags) {
  if (flags.benchmarks == std::vector<std::string>{"help"}) {
    for (const Workload& workload : Workloads()) std::printf("%s\n", workload.name);
    return;
  }
  for (const EngineName& engine : EngineNames()) {
    std::unique_ptr<Driver> driver;
    const Status status = MakeDriver(engine.name, flags, &driver);
    std::printf("%-8s %s\n         %s\n", engine.name, engine.what,
                status.ok() ? driver->Version().c_str() : std::string(status.message()).c_str());
  }
}

bool AsksForLists(const Flags& flags) {
  const std::vector<std::string> help{"help"};
  return flags.benchmarks == help || flags.engines == help;
}

// With several engines each has its own directory below --db.
bool MakeContestants(const Flags& flags, std::vector<Contestant>* contestants) {
  for (const std::string& engine : flags.engines) {
    Contestant contestant{engine, engine, flags.db, nullptr};
    const auto same =
        std::count_if(contestants->begin(), contestants->end(), [&](const Contestant& c) { return c.engine == engine; });
    if (same > 0) contestant.label += "#" + std::to_string(same + 1);
    if (flags.engines.size() > 1) {
      contestant.path += "/" + std::to_string(contestants->size()) + "-" + engine.substr(0, engine.find(':'));
    }
    const Status status = MakeDriver(engine, flags, &contestant.driver);
    if (!status.ok()) {
      std::fprintf(stderr, "db_bench: --engine=%s: %s\n", engine.c_str(), std::string(status.message()).c_str());
      return false;
    }
    contestants->push_back(std::move(contestant));
  }
  return true;
}

bool OpenReportFile(const Flags& flags, std::optional<ReportFile>* report_file) {
  std::FILE* file = nullptr;
  if (flags.report_interval_seconds > 0) {
    file = std::fopen(flags.report_file.c_str(), "we");
    if (file == nullptr) {
      std::fprintf(stderr, "db_bench: cannot create --report_file=%s: %m\n", flags.report_file.c_str());
      return false;
    }
    std::fprintf(file, "secs_elapsed,interval_qps\n");
  }
  report_file->emplace(file);
  return true;
}

// Checks before the first run whether the results can be written at the end.
bool CanWriteJson(const Flags& flags) {
  if (flags.json.empty()) return true;
  std::FILE* const file = std::fopen(flags.json.c_str(), "ae");
  if (file == nullptr) {
    std::fprintf(stderr, "db_bench: cannot create --json=%s: %m\n", flags.json.c_str());
    return false;
  }
  std::fclose(file);
  return true;
}

bool HasFailed(const std::vector<Failure>& failures, const std::string& engine) {
  return std::any_of(failures.begin(), failures.end(), [&](const Failure& failure) { return failure.engine == engine; });
}

// Alternate rounds run in reverse order, so no engine always follows the same engine. A failed engine is skipped in later rounds.
void RunRounds(const Flags& flags, const std::vector<BenchmarkRequest>& requests, const std::vector<Contestant>& contestants,
               ReportFile* report_file, std::vector<Result>* results, std::vector<Failure>* failures) {
  const uint32_t rounds = flags.rounds;
  const bool compared = contestants.size() > 1;
  report_file->Begin();
  for (uint32_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < contestants.size(); ++i) {
      const Contestant& contestant = contestants[round % 2 == 0 ? i : contestants.size() - 1 - i];
      if (HasFailed(*failures, contestant.label)) continue;
      if (compared || rounds > 1) std::printf("---- %s, round %u of %u\n", contestant.label.c_str(), round + 1, rounds);
      std::error_code ignored;
      std::filesystem::create_directories(flags.db, ignored);  // after an error the open reports the reason
      const bool is_ours = std::filesystem::create_directory(contestant.path, ignored) && contestant.path != flags.db;
      const TurnRequest turn{flags, contestant.label, round, contestant.path, contestant.driver.get(), report_file};
      if (const std::optional<Failure> failure = RunTurn(turn, requests, results)) {
        std::fprintf(stderr, "db_bench: %s, round %u: the process %s\n", contestant.label.c_str(), round + 1,
                     failure->what.c_str());
        failures->push_back(*failure);
      }
      // A single engine keeps its last database.
      if ((compared || round + 1 < rounds) && !flags.use_existing_db)
        RemoveDatabase(contestant.path, is_ours, contestant.driver.get());
    }
  }
}

// A single engine runs in this process, which eases debugging, unless a benchmark ends its process.
bool NeedsProcesses(const Flags& flags, const std::vector<BenchmarkRequest>& requests,
                    const std::vector<Contestant>& contestants) {
  return contestants.size() > 1 || flags.rounds > 1 ||
         std::any_of(requests.begin(), requests.end(),
                     [](const BenchmarkRequest& request) { return request.workload->ends_process; });
}

}  // namespace

int RunProgram(const Flags& flags) {
  if (AsksForLists(flags)) {
    PrintLists(flags);
    return 0;
  }
  if (flags.no_huge_pages && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
    std::fprintf(stderr, "db_bench: --huge_pages=off: %m\n");
    return 1;
  }
  const std::optional<std::vector<BenchmarkRequest>> requests = ParseBenchmarks(flags.benchmarks);
  std::vector<Contestant> contestants;
  std::optional<ReportFile> report_file;
  if (!requests || !MakeContestants(flags, &contestants) || !OpenReportFile(flags, &report_file) || !CanWriteJson(flags)) {
    return 1;
  }
  const Environment environment = DescribeEnvironment(flags.db);
  PrintHeader(flags, environment);
  std::vector<EngineDescription> descriptions;
  std::vector<std::string> labels;
  for (const Contestant& contestant : contestants) {
    PrintEngine(flags, *contestant.driver);
    labels.push_back(contestant.label);
    descriptions.push_back({contestant.label, contestant.driver->Version(), contestant.driver->Settings(),
                            contestant.driver->Durability(flags.sync), PagesOf(flags, *contestant.driver)});
  }
  std::vector<Result> results;
  std::vector<Failure> failures;
  if (NeedsProcesses(flags, *requests, contestants)) {
    RunRounds(flags, *requests, contestants, &*report_file, &results, &failures);
  } else {
    const Contestant& only = contestants.front();
    std::error_code ignored;
    std::filesystem::create_directories(only.path, ignored);  // after an error the open reports the reason
    Benchmark(flags, only.label, 0, 0, only.path, only.driver.get(), &*report_file, &results).Run(*requests);
  }
  if (contestants.size() > 1 || flags.rounds > 1) PrintComparison(labels, results, failures);
  if (!flags.json.empty() && !WriteJson(flags.json, flags, environment, descriptions, results, failures)) return 1;
  return failures.empty() ? 0 : 1;
}

}  // namespace braiddb::bench
