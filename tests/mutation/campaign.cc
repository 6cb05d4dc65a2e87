#include "tests/mutation/campaign.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "tests/mutation/campaign_report.h"
#include "tests/mutation/fixed_random.h"
#include "tests/mutation/mutation_runner.h"
#include "tests/mutation/mutation_source.h"

namespace braiddb::test {
namespace {

using Clock = std::chrono::steady_clock;

// Then a database is made anew, with other heights and places, and with two regions and one in turn.
constexpr uint64_t kOpensPerDatabase = 5000;
constexpr auto kProgressEvery = std::chrono::seconds(10);
constexpr int kViolationsShown = 50;

std::map<std::string, std::string> ReadAll(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const std::string& file : ListFiles(directory)) files[file] = ReadFileOrDie(directory + "/" + file);
  return files;
}

// Opens of a case in relation to the others': the most where everything is promised.
uint64_t WeightOf(const MutationCase& mutation_case) {
  return mutation_case.promise == Promise::kStrict ? 3 : mutation_case.promise == Promise::kPlain ? 2 : 1;
}

// An earlier copy of a part can take away all writes to open segments since then, and the MANIFEST that knows of them. An earlier
// state word of a segment can say that the segment is free, as it is between the two persists that open it. In both cases nothing
// tells the damage from writes that were never made.
bool MayLoseLog(const MutationCase& mutation_case, const Mutation& mutation) {
  if (mutation_case.life == Life::kClosed || mutation.way != Way::kOlder) return false;
  return mutation.unit == Unit::kFile || mutation.kind == WordKind::kDirectory;
}

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class Campaign {
 public:
  explicit Campaign(const MutationCampaignOptions& options) : options_(options) {}

  int Run() {
    std::vector<size_t> cases;
    for (size_t i = 0; i < MutationCases().size(); ++i) {
      if (options_.only_case.empty() || options_.only_case == MutationCases()[i].name) cases.push_back(i);
    }
    uint64_t weights = 0;
    for (const size_t index : cases) weights += WeightOf(MutationCases()[index]);
    for (const size_t index : cases) {
      const uint64_t share = (options_.opens * WeightOf(MutationCases()[index]) + weights - 1) / weights;
      uint64_t left = options_.only >= 0 ? 1 : share;
      for (uint64_t database = options_.first_database; left > 0; ++database) {
        uint64_t opens = std::min(left, kOpensPerDatabase);
        if (!RunDatabase(index, database, &opens)) return 2;
        left -= std::min(left, opens);
      }
    }
    report_.Print(controls_, SecondsSince(start_));
    return report_.bad() == 0 ? 0 : 1;
  }

 private:
  // *opens: at least so many; how many it were.
  bool RunDatabase(size_t index, uint64_t number, uint64_t* opens) {
    const MutationCase& mutation_case = MutationCases()[index];
    const MutationDatabase database(mutation_case.life, number % 2 == 0 ? 2 : 1, mutation_case.l1, mutation_case.families);
    const TestDirectory directory;
    const uint64_t seed = options_.seed * 1'000'003 + number * 101 + index;
    MutationFiles files;
    if (!MakeFiles(database, directory, seed, &files)) return false;
    const WordMap map(directory.File("db"));
    if (number == options_.first_database) report_.AddWords(map.data_words());
    const bool in_lists = mutation_case.promise != Promise::kPlain || options_.in_lists;
    const MutationSource source(files, map, seed, in_lists, options_.every_word && number == 0);
    if (options_.only < 0) *opens = std::max(*opens, source.words_in_turn());
    const Judge judge(database, mutation_case.promise);
    MutationRunner runner(directory.File("work"), files.present,
                          [&](const std::string& path) { return judge.OpenAndRead(path); });
    const auto draw = [&](uint64_t n) { return source.Draw(n); };
    const uint64_t first = options_.only >= 0 ? static_cast<uint64_t>(options_.only) : 0;
    runner.Run(first, first + *opens, draw, [&](uint64_t n, const Result& result) {
      const Mutation mutation = draw(n);
      const bool promised = mutation_case.promise != Promise::kPlain || source.IsPromised(mutation);
      const bool judged = promised && !(result.outcome == Outcome::kWrong && MayLoseLog(mutation_case, mutation));
      report_.Add(mutation_case.name, mutation, result, judged);
      if (judged && result.bad()) ShowViolation(mutation_case, number, n, mutation, result, &runner, directory.File("work"));
      ShowProgress(mutation_case);
    });
    controls_ += runner.controls();
    return true;
  }

  static bool MakeFiles(const MutationDatabase& database, const TestDirectory& directory, uint64_t seed, MutationFiles* files) {
    for (const uint64_t of : {seed, ~seed}) {
      const std::string path = directory.File(of == seed ? "db" : "foreign");
      SeedGetrandom(of);
      if (const auto made = database.Make(path, path + "-older"); !made) {
        std::fprintf(stderr, "mutation_test: no database: %s\n", made.message());
        return false;
      }
    }
    *files = {ReadAll(directory.File("db")), ReadAll(directory.File("db-older")), ReadAll(directory.File("foreign"))};
    return true;
  }

  void ShowViolation(const MutationCase& mutation_case, uint64_t database, uint64_t number, const Mutation& mutation,
                     const Result& result, MutationRunner* runner, const std::string& work) {
    if (++shown_ > kViolationsShown) return;
    std::printf("%s with a %s (%s, %s) of %s at %llu\n", NameOf(result.outcome), NameOf(mutation.unit), NameOf(mutation.way),
                NameOf(mutation.kind), mutation.file.c_str(), static_cast<unsigned long long>(mutation.offset));
    std::printf("  again: mutation_test --seed %llu --case %s --database %llu --only %llu%s%s\n",
                static_cast<unsigned long long>(options_.seed), mutation_case.name, static_cast<unsigned long long>(database),
                static_cast<unsigned long long>(number), options_.in_lists ? " --in-lists" : "",
                options_.every_word ? " --every-word" : "");
    std::fflush(stdout);
    if (options_.keep.empty()) return;
    const std::string place =
        options_.keep + "/" + mutation_case.name + "-" + std::to_string(database) + "-" + std::to_string(number);
    runner->Apply(mutation);
    std::filesystem::create_directories(options_.keep);
    CopyDatabase(work, place);
    runner->TakeBack(mutation);
  }

  void ShowProgress(const MutationCase& mutation_case) {
    if (Clock::now() - shown_at_ < kProgressEvery) return;
    shown_at_ = Clock::now();
    std::printf("%s: %llu opens, %llu bad, %.0f s\n", mutation_case.name, static_cast<unsigned long long>(report_.opens()),
                static_cast<unsigned long long>(report_.bad()), SecondsSince(start_));
    std::fflush(stdout);
  }

  const MutationCampaignOptions& options_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point shown_at_ = start_;
  CampaignReport report_;
  uint64_t controls_ = 0;
  int shown_ = 0;
};

}  // namespace

const std::vector<MutationCase>& MutationCases() {
  static const std::vector<MutationCase> cases = {
      {"ClosedStrict", Life::kClosed, Promise::kStrict},
      {"KilledStrict", Life::kKilled, Promise::kStrict},
      {"MergingStrict", Life::kMerging, Promise::kStrict},
      {"MergedStrict", Life::kMerged, Promise::kStrict},
      {"ClosedPlain", Life::kClosed, Promise::kPlain},
      {"KilledPlain", Life::kKilled, Promise::kPlain},
      {"MergingPlain", Life::kMerging, Promise::kPlain},
      {"MergedPlain", Life::kMerged, Promise::kPlain},
      {"ClosedMerge", Life::kClosed, Promise::kMerge},
      {"KilledMerge", Life::kKilled, Promise::kMerge},
      {"MergingMerge", Life::kMerging, Promise::kMerge},
      {"MergedMerge", Life::kMerged, Promise::kMerge},
      // With an NV-Tree.
      {"ClosedStrictTree", Life::kClosed, Promise::kStrict, L1Kind::kNvTree},
      {"KilledStrictTree", Life::kKilled, Promise::kStrict, L1Kind::kNvTree},
      {"MergingStrictTree", Life::kMerging, Promise::kStrict, L1Kind::kNvTree},
      {"MergedStrictTree", Life::kMerged, Promise::kStrict, L1Kind::kNvTree},
      {"ClosedPlainTree", Life::kClosed, Promise::kPlain, L1Kind::kNvTree},
      {"KilledPlainTree", Life::kKilled, Promise::kPlain, L1Kind::kNvTree},
      {"MergingPlainTree", Life::kMerging, Promise::kPlain, L1Kind::kNvTree},
      {"MergedPlainTree", Life::kMerged, Promise::kPlain, L1Kind::kNvTree},
      {"ClosedMergeTree", Life::kClosed, Promise::kMerge, L1Kind::kNvTree},
      {"KilledMergeTree", Life::kKilled, Promise::kMerge, L1Kind::kNvTree},
      {"MergingMergeTree", Life::kMerging, Promise::kMerge, L1Kind::kNvTree},
      {"MergedMergeTree", Life::kMerged, Promise::kMerge, L1Kind::kNvTree},
      // With sorted runs.
      {"ClosedStrictRuns", Life::kClosed, Promise::kStrict, L1Kind::kSortedRuns},
      {"KilledStrictRuns", Life::kKilled, Promise::kStrict, L1Kind::kSortedRuns},
      {"MergingStrictRuns", Life::kMerging, Promise::kStrict, L1Kind::kSortedRuns},
      {"MergedStrictRuns", Life::kMerged, Promise::kStrict, L1Kind::kSortedRuns},
      {"ClosedPlainRuns", Life::kClosed, Promise::kPlain, L1Kind::kSortedRuns},
      {"KilledPlainRuns", Life::kKilled, Promise::kPlain, L1Kind::kSortedRuns},
      {"MergingPlainRuns", Life::kMerging, Promise::kPlain, L1Kind::kSortedRuns},
      {"MergedPlainRuns", Life::kMerged, Promise::kPlain, L1Kind::kSortedRuns},
      {"ClosedMergeRuns", Life::kClosed, Promise::kMerge, L1Kind::kSortedRuns},
      {"KilledMergeRuns", Life::kKilled, Promise::kMerge, L1Kind::kSortedRuns},
      {"MergingMergeRuns", Life::kMerging, Promise::kMerge, L1Kind::kSortedRuns},
      {"MergedMergeRuns", Life::kMerged, Promise::kMerge, L1Kind::kSortedRuns},
      // With a hybrid index.
      {"ClosedStrictHybrid", Life::kClosed, Promise::kStrict, L1Kind::kHybrid},
      {"KilledStrictHybrid", Life::kKilled, Promise::kStrict, L1Kind::kHybrid},
      {"MergingStrictHybrid", Life::kMerging, Promise::kStrict, L1Kind::kHybrid},
      {"MergedStrictHybrid", Life::kMerged, Promise::kStrict, L1Kind::kHybrid},
      {"ClosedPlainHybrid", Life::kClosed, Promise::kPlain, L1Kind::kHybrid},
      {"KilledPlainHybrid", Life::kKilled, Promise::kPlain, L1Kind::kHybrid},
      {"MergingPlainHybrid", Life::kMerging, Promise::kPlain, L1Kind::kHybrid},
      {"MergedPlainHybrid", Life::kMerged, Promise::kPlain, L1Kind::kHybrid},
      {"ClosedMergeHybrid", Life::kClosed, Promise::kMerge, L1Kind::kHybrid},
      {"KilledMergeHybrid", Life::kKilled, Promise::kMerge, L1Kind::kHybrid},
      {"MergingMergeHybrid", Life::kMerging, Promise::kMerge, L1Kind::kHybrid},
      {"MergedMergeHybrid", Life::kMerged, Promise::kMerge, L1Kind::kHybrid},
      // With an LB+-Tree.
      {"ClosedStrictLbTree", Life::kClosed, Promise::kStrict, L1Kind::kLbTree},
      {"KilledStrictLbTree", Life::kKilled, Promise::kStrict, L1Kind::kLbTree},
      {"MergingStrictLbTree", Life::kMerging, Promise::kStrict, L1Kind::kLbTree},
      {"MergedStrictLbTree", Life::kMerged, Promise::kStrict, L1Kind::kLbTree},
      {"ClosedPlainLbTree", Life::kClosed, Promise::kPlain, L1Kind::kLbTree},
      {"KilledPlainLbTree", Life::kKilled, Promise::kPlain, L1Kind::kLbTree},
      {"MergingPlainLbTree", Life::kMerging, Promise::kPlain, L1Kind::kLbTree},
      {"MergedPlainLbTree", Life::kMerged, Promise::kPlain, L1Kind::kLbTree},
      {"ClosedMergeLbTree", Life::kClosed, Promise::kMerge, L1Kind::kLbTree},
      {"KilledMergeLbTree", Life::kKilled, Promise::kMerge, L1Kind::kLbTree},
      {"MergingMergeLbTree", Life::kMerging, Promise::kMerge, L1Kind::kLbTree},
      {"MergedMergeLbTree", Life::kMerged, Promise::kMerge, L1Kind::kLbTree},
      // With column families.
      {"ClosedStrictFamilies", Life::kClosed, Promise::kStrict, L1Kind::kBraidedSkipList, true},
      {"KilledStrictFamilies", Life::kKilled, Promise::kStrict, L1Kind::kBraidedSkipList, true},
      {"MergingStrictFamilies", Life::kMerging, Promise::kStrict, L1Kind::kBraidedSkipList, true},
      {"MergedStrictFamilies", Life::kMerged, Promise::kStrict, L1Kind::kBraidedSkipList, true},
      {"ClosedPlainFamilies", Life::kClosed, Promise::kPlain, L1Kind::kBraidedSkipList, true},
      {"KilledPlainFamilies", Life::kKilled, Promise::kPlain, L1Kind::kBraidedSkipList, true},
      {"MergingPlainFamilies", Life::kMerging, Promise::kPlain, L1Kind::kBraidedSkipList, true},
      {"MergedPlainFamilies", Life::kMerged, Promise::kPlain, L1Kind::kBraidedSkipList, true},
      {"ClosedMergeFamilies", Life::kClosed, Promise::kMerge, L1Kind::kBraidedSkipList, true},
      {"KilledMergeFamilies", Life::kKilled, Promise::kMerge, L1Kind::kBraidedSkipList, true},
      {"MergingMergeFamilies", Life::kMerging, Promise::kMerge, L1Kind::kBraidedSkipList, true},
      {"MergedMergeFamilies", Life::kMerged, Promise::kMerge, L1Kind::kBraidedSkipList, true},
  };
  return cases;
}

int RunMutationCampaign(const MutationCampaignOptions& options) { return Campaign(options).Run(); }

}  // namespace braiddb::test
