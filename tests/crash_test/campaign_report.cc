#include "tests/crash_test/campaign_report.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "tests/crash_test/code_calls.h"

namespace braiddb::test {
namespace {

unsigned long long N(uint64_t number) { return number; }

// BraidDB's own fences are counted by where they stand in the code, all that the program has; those that libpmemobj makes by what
// called it, as far as they were passed.
void PrintFences(const CampaignCounters& counters) {
  struct Judged {
    uint64_t before = 0, after = 0;
  };
  std::map<uintptr_t, Judged> own;
  if (counters.drain_return != 0) {
    for (const uintptr_t address : ReturnAddressesOfCalls(counters.drain_return)) own[address] = {};
  }
  uint64_t passed = 0, foreign = 0, foreign_covered = 0;
  for (size_t i = 0; i < counters.fence_count; ++i) {
    const auto& fence = counters.fences[i];
    passed += fence.passed;
    if (const auto it = own.find(fence.site[0]); it != own.end()) {
      it->second.before += fence.judged_before;
      it->second.after += fence.judged_after;
    } else {
      ++foreign;
      foreign_covered += fence.judged_before > 0 && fence.judged_after > 0;
    }
  }
  const auto covered =
      std::count_if(own.begin(), own.end(), [](const auto& fence) { return fence.second.before > 0 && fence.second.after > 0; });
  std::printf(
      "fences: %llu of %zu in the code covered before and after, and %llu of %llu places where PMDK was called (%llu passed)\n",
      N(static_cast<uint64_t>(covered)), own.size(), N(foreign_covered), N(foreign), N(passed));
  for (const auto& [address, judged] : own) {
    if (judged.before == 0 || judged.after == 0)
      std::printf("    not covered: %llu images before, %llu after 0x%llx (addr2line -Cfipe)\n", N(judged.before),
                  N(judged.after), N(address));
  }
  for (size_t i = 0; i < counters.fence_count; ++i) {
    const auto& fence = counters.fences[i];
    if (own.count(fence.site[0]) == 0 && (fence.judged_before == 0 || fence.judged_after == 0))
      std::printf("    not covered: PMDK below 0x%llx < 0x%llx\n", N(fence.site[0]), N(fence.site[1]));
  }
}

}  // namespace

void PrintReport(const CampaignCounters& counters, double seconds) {
  std::printf("images: %llu first, %llu second; %.1f per second over %.1f s; %llu databases\n", N(counters.first_images),
              N(counters.second_images), static_cast<double>(counters.images()) / seconds, seconds, N(counters.databases));
  std::printf("kinds:");
  for (size_t kind = 0; kind < static_cast<size_t>(ImageKind::kCount); ++kind)
    std::printf("%s %llu %s", kind == 0 ? "" : ",", N(counters.by_kind[kind]), NameOf(static_cast<ImageKind>(kind)));
  std::printf("\npoints: %llu recorded, %llu looked at:", N(counters.points), N(counters.judged_points));
  for (size_t kind = 0; kind < static_cast<size_t>(PointKind::kCount); ++kind)
    std::printf("%s %llu %s", kind == 0 ? "" : ",", N(counters.by_point[kind]), NameOf(static_cast<PointKind>(kind)));
  std::printf("; %.1f dirty lines each\n", static_cast<double>(counters.dirty_lines) /
                                               static_cast<double>(counters.judged_points == 0 ? 1 : counters.judged_points));
  PrintFences(counters);
  const bool untraced = std::strstr(counters.violation, "untraced") != nullptr;
  std::printf("stores: %llu traced, %llu of PMDK found by comparison; untraced bytes of BraidDB: %s (%llu pages compared)\n",
              N(counters.stores - counters.pmdk_stores), N(counters.pmdk_stores), untraced ? "some" : "0",
              N(counters.checked_pages));
  const Statistics& work = counters.work;
  std::printf(
      "work: %llu writes, %llu rotations, %llu checkpoints, %llu merges (%llu entries), %llu segments taken, %llu given "
      "back, %llu parts added\n",
      N(work.writes), N(work.rotations), N(work.checkpoints), N(work.compactions), N(work.merged_entries),
      N(work.segments_allocated), N(work.segments_recycled), N(counters.parts));
  std::printf(
      "also: %llu checked before they were opened, %llu recovered twice, %llu pools searched for leaks, %llu emptied, %llu "
      "killed before the second crash\n",
      N(counters.file_checks), N(counters.reopened), N(counters.leak_checks), N(counters.space_checks), N(counters.killed));
  if (counters.mutant_hits != 0) std::printf("the mutant acted %llu times\n", N(counters.mutant_hits));
  std::printf("violations: %d\n", counters.violation[0] == '\0' ? 0 : 1);
}

void PrintReplay(const CampaignOptions& options, uint64_t database, uint64_t image) {
  std::string command = "crash_test --seed " + std::to_string(options.seed) + " --database " + std::to_string(database) +
                        " --image " + std::to_string(image) + " --ops " + std::to_string(options.ops) + " --depth " +
                        std::to_string(options.depth) + " --regions " + std::to_string(options.regions) + " --eadr " +
                        std::to_string(options.eadr) + " --l1 " + (options.l1 < 0 ? "any" : kL1Names[options.l1]) +
                        " --images-per-point " + std::to_string(options.images_per_point) + " --images-per-database " +
                        std::to_string(options.images_per_database) + " --lives-one-in " + std::to_string(options.lives_one_in) +
                        " --images-per-life " + std::to_string(options.images_per_life);
  if (!options.mutant.empty()) command += " --mutant " + options.mutant;
  std::printf("replay: %s\n", command.c_str());
}

}  // namespace braiddb::test
