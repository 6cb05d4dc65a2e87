// A crash campaign: what is tried, what came of it, and the memory in which the processes of a campaign count.
#pragma once

#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "braiddb/statistics.h"
#include "tests/crash_test/crash_image.h"
#include "tests/crash_test/crash_point.h"

namespace braiddb::test {

// By L1Kind.
inline constexpr const char* kL1Names[] = {"braided_skiplist", "nv_tree", "sorted_runs", "hybrid", "lb_tree"};

struct CampaignOptions {
  uint64_t seed = 1;
  uint64_t databases = 0;  // stop after so many; 0: no limit
  uint64_t images = 2000;  // stop when so many first and, with depth > 1, second images were looked at
  uint64_t ops = 200;      // of each of the two writers of a database
  uint64_t images_per_database = 1500;
  uint32_t images_per_point = 4;
  uint32_t depth = 2;          // crashes in a row
  uint32_t lives_one_in = 64;  // images that go on working and may be cut by the next crash
  uint32_t images_per_life = 70;
  uint32_t regions = 0;         // 0: one or two, by database
  int eadr = -1;                // 0, 1, or by database (one in five)
  int l1 = -1;                  // an L1Kind, or by database (each in turn)
  uint64_t first_database = 0;  // begin with this one
  uint64_t only_image = 0;      // look at images of one database up to this one, and keep it
  std::string mutant;
  bool expect_violation = false;
  std::string keep;  // directory for the image of a violation; empty: it is not kept
};

// Of a campaign or a part of it. Fixed size, in memory that several processes share; one writes at a time.
struct CampaignCounters {
  static constexpr size_t kMaxFences = 512;
  struct Fence {
    FenceSite site;
    uint64_t passed;
    uint64_t judged_before;  // images of points before it
    uint64_t judged_after;
  };

  uint64_t databases;
  uint64_t first_images;
  uint64_t second_images;  // of the second and all later crashes
  uint64_t points;
  uint64_t judged_points;
  uint64_t by_kind[static_cast<size_t>(ImageKind::kCount)];
  uint64_t by_point[static_cast<size_t>(PointKind::kCount)];
  uint64_t stores;
  uint64_t pmdk_stores;
  uint64_t checked_pages;
  uint64_t dirty_lines;
  uint64_t mutant_hits;
  uint64_t parts;        // that pools grew by
  uint64_t killed;       // second lives that began with what a killed process had in the caches
  uint64_t reopened;     // images recovered a second time, for the same result
  uint64_t file_checks;  // CheckDatabase
  uint64_t leak_checks;
  uint64_t space_checks;
  Statistics work;
  uintptr_t drain_return;  // StoreTracer::drain_return
  uint64_t fence_count;
  Fence fences[kMaxFences];

  // What is being done, for when the process dies.
  uint64_t image;  // number within the database
  char doing[256];
  char violation[4096];

  uint64_t images() const { return first_images + second_images; }
  Fence* FindFence(const FenceSite& site) {
    for (size_t i = 0; i < fence_count; ++i) {
      if (fences[i].site == site) return &fences[i];
    }
    if (fence_count == kMaxFences) return nullptr;
    fences[fence_count] = {site, 0, 0, 0};
    return &fences[fence_count++];
  }
  void Doing(const std::string& text) { std::strncpy(doing, text.c_str(), sizeof(doing) - 1); }
};

// Exit codes of the process of one database.
inline constexpr int kDatabaseFine = 0;
inline constexpr int kDatabaseViolated = 42;

// Prints a report. 0 if nothing was found, else 1; the other way round if a violation is expected.
int RunCampaign(const CampaignOptions& options);

// Works with one database and looks at its images, in this process, which the scheduler owns from now on. Does not return.
[[noreturn]] void RunDatabase(const CampaignOptions& options, uint64_t database, const std::string& directory,
                              CampaignCounters* counters);

}  // namespace braiddb::test
