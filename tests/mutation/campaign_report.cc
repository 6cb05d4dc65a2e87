#include "tests/mutation/campaign_report.h"

#include <cstdio>

namespace braiddb::test {
namespace {

unsigned long long Printed(uint64_t number) { return number; }

const char* NameOf(Status::Code code) {
  static constexpr const char* kNames[] = {"ok",   "NotFound", "Corruption", "NotSupported", "InvalidArgument", "IOError",
                                           "Busy", "NoSpace",  "ReadOnly",   "Aborted",      "MemoryLimit"};
  return kNames[static_cast<size_t>(code)];
}

}  // namespace

void CampaignReport::Add(const std::string& name, const Mutation& mutation, const Result& result, bool judged) {
  const auto outcome = static_cast<size_t>(result.outcome);
  ++opens_;
  if (!judged) {
    ++unpromised_;
  } else if (result.bad()) {
    ++bad_;
  }
  const std::string unit = test::NameOf(mutation.unit);
  ++by_case_[judged ? name : name + ", no promise"][outcome];
  ++by_kind_[mutation.unit == Unit::kWord ? test::NameOf(mutation.kind) : "(" + unit + ")"][outcome];
  ++by_way_[unit + ": " + test::NameOf(mutation.way)][outcome];
  if (result.code != Status::Code::kOk) ++by_code_[std::string(test::NameOf(result.outcome)) + ": " + NameOf(result.code)];
  if (mutation.unit == Unit::kWord && mutation.kind != WordKind::kFree) seen_.insert({name, mutation.file, mutation.offset});
}

void CampaignReport::PrintTable(const char* title, const Table& table) {
  std::printf("%-28s", title);
  for (size_t outcome = 1; outcome < static_cast<size_t>(Outcome::kCount); ++outcome)
    std::printf(" %10s", test::NameOf(static_cast<Outcome>(outcome)));
  std::printf("\n");
  for (const auto& [name, row] : table) {
    std::printf("  %-26s", name.c_str());
    for (size_t outcome = 1; outcome < row.size(); ++outcome) std::printf(" %10llu", Printed(row[outcome]));
    std::printf("\n");
  }
}

void CampaignReport::Print(uint64_t controls, double seconds) const {
  PrintTable("case", by_case_);
  PrintTable("kind of word", by_kind_);
  PrintTable("mutation", by_way_);
  std::printf("errors\n");
  for (const auto& [name, count] : by_code_) std::printf("  %-26s %10llu\n", name.c_str(), Printed(count));
  std::printf(
      "%llu mutated opens, %llu of them without a promise, in %.0f s, %.2f ms each; %llu opens of undamaged files between\n",
      Printed(opens_), Printed(unpromised_), seconds, opens_ == 0 ? 0.0 : seconds * 1000 / static_cast<double>(opens_),
      Printed(controls));
  std::printf("%llu of %llu words that hold data were damaged on their own\n", Printed(seen_.size()), Printed(words_));
  std::printf("%llu bad outcomes\n", Printed(bad_));
}

}  // namespace braiddb::test
