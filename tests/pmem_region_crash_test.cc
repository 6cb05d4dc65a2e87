// Crashes of creation and growth of regions: the state after each step (region_set.cc, region_files.h), made by hand.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "pmem/database_file.h"
#include "pmem/region.h"
#include "pmem/region_files.h"
#include "tests/support/region_set_test.h"

namespace braiddb::test {
namespace {

// [CC-30]
TEST_F(RegionSetTest, AnUnfinishedCreationIsStartedOver) {
  options_.database_id = 77;
  ASSERT_NE(Create(options_), nullptr);
  const auto mark = [&](uint32_t region, const std::string& database) {
    ASSERT_TRUE(RegionFiles(RegionPath(region)).WriteCreatingMark(77, AbsolutePath(database)).ok());
  };
  for (uint32_t region : {0u, 1u}) mark(region, dir_.Sub("db"));
  fs::remove(RegionPath(1) + "/PARTS");
  EXPECT_FALSE(RegionSet::Exists(options_));
  EXPECT_TRUE(TryOpen(options_).IsNotFound());
  ASSERT_NE(Create(options_), nullptr);
  EXPECT_NE(Open(options_), nullptr);
  mark(0, dir_.Sub("another"));
  EXPECT_TRUE(TryCreate(options_).IsInvalidArgument());
  EXPECT_TRUE(RegionSet::Destroy(options_).ok());
  EXPECT_TRUE(FilesUnder(dir_.Sub("db")).empty());
}

// [CC-30]
TEST_F(RegionSetTest, ACommittedCreationIsFinishedByOpen) {
  ASSERT_NE(Create(options_), nullptr);
  ASSERT_TRUE(RegionFiles(RegionPath(1)).WriteCreatingMark(77, AbsolutePath(dir_.Sub("db"))).ok());
  EXPECT_TRUE(RegionSet::Exists(options_));
  EXPECT_NE(Open(options_), nullptr);
  EXPECT_FALSE(fs::exists(RegionPath(1) + "/CREATING"));
}

// [CC-31]
TEST_F(RegionSetTest, GrowthCutShortAtEachStep) {
  options_.regions = 1;
  ASSERT_NE(Create(options_), nullptr);
  const auto grow_and_die = [&](bool extend) {
    EXPECT_EQ(RunInChild([&] {
                auto set = Open(options_);
                Region* const region = set->impl()->region(0);
                if (!region->files()->AddPart(8 * kMiB).ok()) return 1;
                long long bytes = 8 * kMiB;
                if (extend && pmemobj_ctl_exec(region->pool(), "heap.size.extend", &bytes) != 0) return 2;
                return 0;
              }),
              0);
    ASSERT_TRUE(fs::exists(PartPath(0, 1)));
  };
  // After step 1: an allocated file that is not in its place.
  WriteFile(PartPath(0, 1) + ".tmp", std::string(kMiB, 'x'));
  EXPECT_NE(Open(options_), nullptr);
  EXPECT_FALSE(fs::exists(PartPath(0, 1) + ".tmp"));
  // After step 3: the part is there, the heap does not know it.
  grow_and_die(false);
  EXPECT_EQ(Open(options_)->ReservedBytes(0), 2 * kMiB);
  EXPECT_FALSE(fs::exists(PartPath(0, 1)));
  // After step 2: the list announces a part that is not there.
  grow_and_die(false);
  fs::remove(PartPath(0, 1));
  EXPECT_EQ(Open(options_)->ReservedBytes(0), 2 * kMiB);
  // After step 4: the heap knows it, the list does not.
  grow_and_die(true);
  {
    auto set = Open(options_);
    EXPECT_EQ(set->ReservedBytes(0), 10 * kMiB);
    void* object = nullptr;
    ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 7 * kMiB, &object).ok());
    EXPECT_EQ(set->ReservedBytes(0), 10 * kMiB);
  }
  EXPECT_NE(Open(options_), nullptr);
  EXPECT_TRUE(PoolIsConsistent(RegionPath(0) + "/region.set"));
}

// [CC-31]
TEST_F(RegionSetTest, AnAnnouncedPartThatTheHeapUsesMustBeThere) {
  options_.regions = 1;
  ASSERT_NE(Create(options_), nullptr);
  EXPECT_EQ(RunInChild([&] {
              auto set = Open(options_);
              Region* const region = set->impl()->region(0);
              long long bytes = 8 * kMiB;
              if (!region->files()->AddPart(8 * kMiB).ok()) return 1;
              return pmemobj_ctl_exec(region->pool(), "heap.size.extend", &bytes);
            }),
            0);
  fs::remove(PartPath(0, 1));
  EXPECT_TRUE(TryOpen(options_).IsCorruption());
  WriteFile(PartPath(0, 1), "");
  EXPECT_TRUE(TryOpen(options_).IsCorruption());
}

// [CC-32]
TEST_F(RegionSetTest, MetadataAllocationCutShortAtEachPersist) {
  options_.regions = 1;
  for (int at = 0;; ++at) {
    ASSERT_TRUE(RegionSet::Destroy(options_).ok());
    ASSERT_NE(Create(options_), nullptr);
    const int code = RunInChild([&] {
      auto set = Open(options_);
      test::ExitAtDrain exit_at_drain(at);
      set->persistence()->SetObserver(&exit_at_drain);
      void* object = nullptr;
      return set->AllocateMetadata(0, MetadataSlot::kL1, 1000, &object).ok() ? 0 : 1;
    });
    auto set = Open(options_);
    uint64_t bytes = 0;
    void* object = set->Metadata(0, MetadataSlot::kL1, &bytes);
    if (object == nullptr) {
      ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 2000, &object).ok());
    } else {
      EXPECT_EQ(bytes, 1000u);
    }
    if (code == 0) break;
    ASSERT_EQ(code, test::ExitAtDrain::kExitCode);
  }
}

}  // namespace
}  // namespace braiddb::test
