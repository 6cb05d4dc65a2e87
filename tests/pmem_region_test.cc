// The life of regions: creation, growth, options, who may use them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <thread>

#include "pmem/pool_format.h"
#include "pmem/pool_maker.h"
#include "pmem/region.h"
#include "pmem/region_files.h"
#include "tests/support/region_set_test.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

// ---- The ordinary life of a database

TEST_F(RegionSetTest, CreateOpenDestroy) {
  EXPECT_FALSE(RegionSet::Exists(options_));
  uint64_t id = 0;
  {
    auto set = Create(options_);
    ASSERT_NE(set, nullptr);
    EXPECT_EQ(set->count(), 2u);
    id = set->database_id();
    EXPECT_NE(id, 0u);
    EXPECT_LT(set->HomeRegion(), 2u);
    EXPECT_EQ(set->ReservedBytes(0), 2 * kMiB);
  }
  EXPECT_TRUE(RegionSet::Exists(options_));
  std::set<std::string> files = FilesUnder(dir_.Sub("db"));
  std::erase_if(files, [](const std::string& name) { return name.ends_with("/DEVICES"); });  // only on devices with counters
  EXPECT_EQ(files, (std::set<std::string>{"region-0", "region-0/000000.pmem", "region-0/PARTS", "region-0/region.set", "region-1",
                                          "region-1/000000.pmem", "region-1/PARTS", "region-1/region.set"}));
  options_.regions = 0;
  {
    auto set = Open(options_);
    ASSERT_NE(set, nullptr);
    EXPECT_EQ(set->count(), 2u);
    EXPECT_EQ(set->database_id(), id);
  }
  for (int region = 0; region < 2; ++region) EXPECT_TRUE(PoolIsConsistent(RegionPath(region) + "/region.set"));
  EXPECT_TRUE(RegionSet::Destroy(options_).ok());
  EXPECT_FALSE(RegionSet::Exists(options_));
  EXPECT_TRUE(FilesUnder(dir_.Sub("db")).empty());
  EXPECT_TRUE(RegionSet::Destroy(options_).ok());
}

TEST_F(RegionSetTest, EachRegionMayHaveADirectoryOfItsOwn) {
  RegionSetOptions options = PmemOptions(dir_.Sub("unused"), 0);
  options.region_paths = {dir_.Sub("a/deep/one"), dir_.Sub("b")};
  ASSERT_NE(Create(options), nullptr);
  ASSERT_NE(Open(options), nullptr);
  EXPECT_FALSE(fs::exists(dir_.Sub("unused")));
  std::swap(options.region_paths[0], options.region_paths[1]);
  const Status status = TryOpen(options);
  EXPECT_TRUE(status.IsCorruption()) << status.ToString();
  EXPECT_NE(status.message().find("order"), std::string::npos);
  EXPECT_TRUE(RegionSet::Destroy(options).ok());
  EXPECT_FALSE(fs::exists(dir_.Sub("b")));
}

TEST_F(RegionSetTest, AnEmptyRegionIsSmall) {
  ASSERT_NE(Create(options_), nullptr);
  EXPECT_LT(BytesUnder(RegionPath(0)), kMiB);
  ASSERT_NE(Open(options_), nullptr);
  EXPECT_LT(BytesUnder(RegionPath(0)), kMiB);
}

// What is allocated has blocks: pages of files that lie in no hole.
class NewRegionTest : public RegionSetTest {
 protected:
  void SetUp() override {
    options_.regions = 1;
    fs::create_directory(dir_.Sub("small"));
  }
  void TearDown() override { umount2(dir_.Sub("small").c_str(), MNT_DETACH); }

  // The end of the chunks that are in use, in the first part.
  static uint64_t EndOfUsed(const RegionSet& set) {
    const PoolView pool(set.base(0), set.ReservedBytes(0));
    uint64_t end = 0;
    EXPECT_EQ(pool.ForEachChunks([&](PoolView::Chunks kind, uint64_t offset, uint64_t chunks) {
      if (kind != PoolView::Chunks::kFree) end = offset + chunks * kChunkBytes;
    }),
              nullptr);
    return end;
  }
  uint64_t BlockBytes(int part) const {
    struct stat file;
    EXPECT_EQ(stat(PartPath(0, part).c_str(), &file), 0);
    return static_cast<uint64_t>(file.st_blocks) * 512;
  }
  // Blocks that a part may have besides those that are filled: a page of PMDK's, and a block of the file system's extent tree.
  static constexpr uint64_t kOtherBlocks = 2 * kPageBytes;
  static constexpr uint64_t kBornBytes = kSmallHeadEnd + kBornChunks * kChunkBytes;
};

TEST_F(NewRegionTest, WhatACreationAllocatesLiesInBlocks) {
  auto set = Create(options_);
  ASSERT_NE(set, nullptr);
  void* object = nullptr;
  ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kManifest, 10'000, &object).ok());
  ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kMergeJournal, kChunkBytes - 1000, &object).ok());
  ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 300, &object).ok());
  EXPECT_EQ(EndOfUsed(*set), kSmallFirstChunk + kBornChunks * kChunkBytes) << "root, small objects, and one more";
  EXPECT_LE(BlockBytes(0), kBornBytes + kOtherBlocks);
  ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kFamilies, 60'000, &object).ok());
  EXPECT_GE(BlockBytes(0), kSmallPartBytes - kZoneHeaderBytes);
}

// A program may have no descriptor left, or no right to open the file, when the blocks are needed.
TEST_F(NewRegionTest, HolesAreFilledWithoutAnotherDescriptor) {
  auto set = Create(options_);
  ASSERT_NE(set, nullptr);
  fs::rename(dir_.Sub("db"), dir_.Sub("moved"));
  void* object = nullptr;
  EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 3 * kChunkBytes, &object).ok());
  fs::rename(dir_.Sub("moved"), dir_.Sub("db"));
  EXPECT_GE(BlockBytes(0), kSmallPartBytes - kZoneHeaderBytes);
}

// PMDK defines what this variable names in each pool that it opens.
TEST_F(NewRegionTest, AProgramsOwnClassesOfObjectsAreNoHindrance) {
  EXPECT_EQ(RunInChild([&] {
              setenv("PMEMOBJ_CONF", "heap.alloc_class.128.desc=500,0,1000,compact", 1);
              auto set = Create(options_);
              if (set == nullptr) return 1;
              void* object = nullptr;
              return set->AllocateMetadata(0, MetadataSlot::kManifest, 10'000, &object).ok() ? 0 : 2;
            }),
            0);
}

// A file system that has no room for the holes of the first part.
TEST_F(NewRegionTest, AHoleThatCannotBeFilledIsNoSpace) {
  if (mount("tmpfs", dir_.Sub("small").c_str(), "tmpfs", 0, "size=900k") != 0) GTEST_SKIP() << "cannot mount";
  const RegionSetOptions options = PmemOptions(dir_.Sub("small/db"), 1);
  EXPECT_EQ(RunInChild([&] {
              auto set = Create(options);
              if (set == nullptr) return 1;
              void* object = nullptr;
              if (!set->AllocateMetadata(0, MetadataSlot::kManifest, 10'000, &object).ok()) return 2;
              if (!set->AllocateMetadata(0, MetadataSlot::kL1, 2 * kChunkBytes, &object).IsNoSpace()) return 3;
              set.reset();
              set = Open(options);
              if (set == nullptr) return 4;
              // Nothing is known to have blocks any more.
              return set->AllocateMetadata(0, MetadataSlot::kL1, 1000, &object).IsNoSpace() ? 0 : 5;
            }),
            0)
      << "256 and more: a signal";
  if (mount("tmpfs", dir_.Sub("small").c_str(), "tmpfs", MS_REMOUNT, "size=20m") != 0) GTEST_SKIP() << "cannot mount";
  auto set = Open(options);
  ASSERT_NE(set, nullptr);
  void* object = nullptr;
  EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 2 * kChunkBytes, &object).ok());
  std::memset(object, 1, 2 * kChunkBytes);
}

// A copy has holes for all pages of zeros.
TEST_F(NewRegionTest, HolesOfACopyAreFilledWhereSomethingIsAllocated) {
  void* object = nullptr;
  ASSERT_TRUE(Create(options_)->AllocateMetadata(0, MetadataSlot::kManifest, 10'000, &object).ok());
  const auto make_holes = [&](int part) {
    const std::string bytes = ReadFile(PartPath(0, part));
    std::filesystem::resize_file(PartPath(0, part), 0);
    std::filesystem::resize_file(PartPath(0, part), bytes.size());
    const int fd = open(PartPath(0, part).c_str(), O_WRONLY | O_CLOEXEC);
    for (size_t at = 0; at < bytes.size(); at += kPageBytes) {
      if (std::all_of(&bytes[at], &bytes[at] + kPageBytes, [](char c) { return c == 0; })) continue;
      EXPECT_EQ(pwrite(fd, &bytes[at], kPageBytes, static_cast<off_t>(at)), static_cast<ssize_t>(kPageBytes));
    }
    close(fd);
  };
  make_holes(0);
  EXPECT_LT(BlockBytes(0), kBornBytes / 2);
  ASSERT_NE(Open(options_), nullptr);
  EXPECT_GE(BlockBytes(0), kBornBytes);
  EXPECT_LE(BlockBytes(0), kBornBytes + kOtherBlocks) << "a region that is as it was made";
  ASSERT_TRUE(Open(options_)->AllocateMetadata(0, MetadataSlot::kL1, kChunkBytes, &object).ok());
  make_holes(0);
  ASSERT_NE(Open(options_), nullptr);
  EXPECT_GE(BlockBytes(0), kSmallPartBytes - kZoneHeaderBytes) << "more is allocated";
  EXPECT_LT(BlockBytes(0), kSmallPartBytes);
  ASSERT_TRUE(Open(options_)->AllocateMetadata(0, MetadataSlot::kFamilies, kMiB, &object).ok());
  ASSERT_TRUE(fs::exists(PartPath(0, 1)));
  EXPECT_GE(BlockBytes(0), kSmallPartBytes) << "the region has grown";
  make_holes(0);
  make_holes(1);
  ASSERT_NE(Open(options_), nullptr);
  EXPECT_GE(BlockBytes(0), kSmallPartBytes);
  EXPECT_GE(BlockBytes(1), fs::file_size(PartPath(0, 1)));
}

// Cut short anywhere, an allocation leaves a redo log that says where PMDK stores next.
TEST_F(NewRegionTest, HolesAreFilledIfAnAllocationWasCutShort) {
  ASSERT_NE(Create(options_), nullptr);
  const int fd = open(PartPath(0, 0).c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_TRUE(IsBornPool(fd));
  const uint64_t checksum = 1;
  for (const LaneLog& log : kLaneLogs) {
    const auto place = static_cast<off_t>(kPoolFirstLane + kPoolLaneBytes + log.offset);
    ASSERT_EQ(pwrite(fd, &checksum, sizeof(checksum), place), 8);
    EXPECT_FALSE(IsBornPool(fd));
    const uint64_t none = 0;
    ASSERT_EQ(pwrite(fd, &none, sizeof(none), place), 8);
    EXPECT_TRUE(IsBornPool(fd));
  }
  close(fd);
}

// As on devices, in earlier versions, and where libpmemobj is linked statically.
TEST_F(NewRegionTest, APoolThatPmdkMadeKeepsItsLanes) {
  SyncPoints::Instance().SetCallback("Region::CreatePool", [](void* makes_pool) { *static_cast<bool*>(makes_pool) = false; });
  SyncPoints::Instance().Enable();
  auto set = Create(options_);
  SyncPoints::Instance().Clear();
  ASSERT_NE(set, nullptr);
  for (const uint64_t bytes : {8 * kMiB, 16 * kMiB}) {
    EXPECT_EQ(set->ReservedBytes(0), bytes);
    EXPECT_EQ(PoolView(set->base(0), bytes).lanes(), kPmdkLanes);
    EXPECT_GE(BlockBytes(0), 8 * kMiB);
    void* object = nullptr;
    const MetadataSlot slot = bytes == 8 * kMiB ? MetadataSlot::kManifest : MetadataSlot::kL1;
    ASSERT_TRUE(set->AllocateMetadata(0, slot, 3 * kMiB, &object).ok());
    std::memset(object, 5, 3 * kMiB);
    ASSERT_TRUE(set->ReserveBytes(16 * kMiB).ok());
    set.reset();
    set = Open(options_);
    ASSERT_NE(set, nullptr);
    EXPECT_EQ(*static_cast<uint8_t*>(set->Metadata(0, slot)), 5);
  }
  set.reset();
  EXPECT_TRUE(PoolIsConsistent(RegionPath(0) + "/region.set"));
}

// Threads take other lanes than the first one, and libpmemobj would take more than the pool has.
TEST_F(NewRegionTest, ThreadsShareFewLanes) {
  auto set = Create(options_);
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(PoolView(set->base(0), set->ReservedBytes(0)).lanes(), kFewLanes);
  void* memory = nullptr;
  constexpr int kThreads = 30;
  constexpr int kEach = 20;
  ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kManifest, kThreads * kEach * sizeof(ObjectId), &memory).ok());
  auto* const owners = static_cast<ObjectId*>(memory);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, mine = owners + thread * kEach] {
      for (int i = 0; i < kEach; ++i) {
        EXPECT_TRUE(set->impl()->region(0)->AllocateObject(&mine[i], 1000, PoolObject::kMetadata).ok());
        if (i % 2 == 0) set->impl()->region(0)->FreeObject(&mine[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  set.reset();
  EXPECT_TRUE(PoolIsConsistent(RegionPath(0) + "/region.set"));
  ASSERT_NE(Open(options_), nullptr);
}

TEST_F(RegionSetTest, AMovedDatabaseOpens) {
  ASSERT_NE(Create(options_), nullptr);
  fs::rename(dir_.Sub("db"), dir_.Sub("moved"));
  EXPECT_NE(Open(PmemOptions(dir_.Sub("moved"), 0)), nullptr);
}

TEST_F(RegionSetTest, MetadataIsAllocatedOnceZeroedAndFoundAgain) {
  {
    auto set = Create(options_);
    EXPECT_EQ(set->Metadata(1, MetadataSlot::kL1), nullptr);
    void* object = nullptr;
    ASSERT_TRUE(set->AllocateMetadata(1, MetadataSlot::kL1, 10'000, &object).ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(object) % 64, 0u);
    EXPECT_EQ(std::string(static_cast<char*>(object), 10'000), std::string(10'000, '\0'));
    EXPECT_TRUE(set->Contains(set->ToPmPtr(1, object), 10'000));
    std::memcpy(object, "hello", 6);
    ASSERT_TRUE(set->persistence()->Persist(object, 6));
  }
  auto set = Open(options_);
  uint64_t bytes = 0;
  void* const object = set->Metadata(1, MetadataSlot::kL1, &bytes);
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(bytes, 10'000u);
  EXPECT_STREQ(static_cast<char*>(object), "hello");
  EXPECT_EQ(set->Metadata(0, MetadataSlot::kL1), nullptr);
  EXPECT_EQ(set->Metadata(1, MetadataSlot::kManifest), nullptr);
}

TEST_F(RegionSetTest, ContainsKnowsTheMappedPart) {
  auto set = Create(options_);
  const uint64_t end = set->ReservedBytes(0);
  EXPECT_TRUE(set->Contains(PmPtr(0, end - 8), 8));
  EXPECT_FALSE(set->Contains(PmPtr(0, end - 8), 9));
  EXPECT_FALSE(set->Contains(PmPtr(0, end), 0));
  EXPECT_FALSE(set->Contains(PmPtr(0, 4100), 8));
  EXPECT_FALSE(set->Contains(PmPtr(2, 4096), 8));
  EXPECT_FALSE(set->Contains(PmPtr(), 8));
  EXPECT_FALSE(set->Contains(PmPtr(0, 4096), UINT64_MAX));
  EXPECT_FALSE(set->Contains(PmPtr(UINT64_MAX - 7), 8));
  const PmPtr p(1, 4096);
  EXPECT_EQ(set->ToPmPtr(1, set->Resolve(p)), p);
  EXPECT_EQ(set->Find(set->Resolve(p)), p);
  EXPECT_EQ(set->Find(set->base(0) + end - 8), PmPtr(0, end - 8));
  EXPECT_EQ(set->Find(set->base(0) + end), PmPtr());
  EXPECT_EQ(set->Find(&end), PmPtr());
}

TEST_F(RegionSetTest, ThreadsSpreadOverTheRegions) {
  auto set = Create(options_);
  std::set<uint32_t> homes{set->HomeRegion()};
  std::thread([&] { homes.insert(set->HomeRegion()); }).join();
  EXPECT_EQ(homes.size(), 2u);
}

TEST_F(RegionSetTest, GrowsAndKeepsWhatItHas) {
  std::vector<uint64_t> offsets;
  {
    auto set = Create(options_);
    Region* const region = set->impl()->region(0);
    // Objects of 4 MiB, owned by words of a metadata object.
    void* memory = nullptr;
    ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kManifest, 20 * sizeof(ObjectId), &memory).ok());
    auto* owners = static_cast<ObjectId*>(memory);
    for (int i = 0; i < 20; ++i) {
      const Status status = region->AllocateObject(&owners[i], 4 * kMiB, PoolObject::kSegment);
      ASSERT_TRUE(status.ok()) << status.ToString();
      std::memset(set->base(0) + owners[i].offset, i + 1, 4 * kMiB);
    }
    EXPECT_GT(set->ReservedBytes(0), 80 * kMiB);
    EXPECT_EQ(set->ReservedBytes(1), 2 * kMiB);
  }
  EXPECT_TRUE(PoolIsConsistent(RegionPath(0) + "/region.set"));
  auto set = Open(options_);
  EXPECT_GT(set->ReservedBytes(0), 80 * kMiB);
  const auto* owners = static_cast<ObjectId*>(set->Metadata(0, MetadataSlot::kManifest));
  for (int i = 0; i < 20; ++i) {
    const uint8_t* object = set->base(0) + owners[i].offset;
    EXPECT_EQ(object[0], i + 1);
    EXPECT_EQ(object[4 * kMiB - 1], i + 1);
  }
}

TEST_F(RegionSetTest, HasItsInitialSizeFromTheStart) {
  {
    auto set = Create(options_);
    EXPECT_TRUE(set->ReserveBytes(0).ok());
    EXPECT_EQ(set->ReservedBytes(0), 2 * kMiB);
    EXPECT_TRUE(set->ReserveBytes(50 * kMiB + 1).ok());
  }
  for (int region = 0; region < 2; ++region) {
    EXPECT_EQ(fs::file_size(RegionPath(region) + "/000001.pmem"), 50 * kMiB);
    EXPECT_TRUE(PoolIsConsistent(RegionPath(region) + "/region.set"));
  }
  {
    auto set = Open(options_);
    EXPECT_EQ(set->ReservedBytes(1), 52 * kMiB);
    EXPECT_TRUE(set->ReserveBytes(20 * kMiB).ok());  // it has more
    EXPECT_EQ(set->ReservedBytes(0), 52 * kMiB);
    EXPECT_TRUE(set->ReserveBytes(60 * kMiB).ok());
    EXPECT_EQ(set->ReservedBytes(0), 60 * kMiB);
    void* object = nullptr;
    ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 40 * kMiB, &object).ok()) << "one piece, of two parts";
    EXPECT_EQ(set->ReservedBytes(0), 60 * kMiB);
  }
  options_.max_region_size = 65 * kMiB;  // of which 64 can be had
  auto set = Open(options_);
  for (const uint64_t bytes : {66 * kMiB, uint64_t{1} << 50, UINT64_MAX}) {
    const Status status = set->ReserveBytes(bytes);
    EXPECT_TRUE(status.IsNoSpace() && status.ToString().find("initial_region_size") != std::string::npos) << status.ToString();
  }
  EXPECT_EQ(set->ReservedBytes(0), 60 * kMiB);
  EXPECT_TRUE(set->ReserveBytes(65 * kMiB).ok());
  EXPECT_EQ(set->ReservedBytes(0), 64 * kMiB);
  EXPECT_EQ(set->ReservedBytes(1), 64 * kMiB);
}

// Of two regions neither takes what both need.
TEST_F(RegionSetTest, WhatDoesNotFitForAllIsTakenByNone) {
  fs::create_directory(dir_.Sub("small"));
  if (mount("tmpfs", dir_.Sub("small").c_str(), "tmpfs", 0, "size=60m") != 0) GTEST_SKIP() << "cannot mount";
  {
    RegionSetOptions options = PmemOptions(dir_.Sub("small/db"), 2);
    auto set = Create(options);
    EXPECT_TRUE(set->ReserveBytes(34 * kMiB).IsNoSpace());
    EXPECT_EQ(set->ReservedBytes(0), 2 * kMiB);
    EXPECT_TRUE(set->ReserveBytes(24 * kMiB).ok());
    EXPECT_EQ(set->ReservedBytes(0), 24 * kMiB);
    EXPECT_EQ(set->ReservedBytes(1), 24 * kMiB);
  }
  umount2(dir_.Sub("small").c_str(), MNT_DETACH);
}

TEST_F(RegionSetTest, StopsAtTheLargestSizeAndGoesOnWithALargerOne) {
  options_.max_region_size = kMinRegionSize;
  options_.regions = 1;
  {
    auto set = Create(options_);
    void* object = nullptr;
    EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 40 * kMiB, &object).IsNoSpace());
    EXPECT_EQ(set->Metadata(0, MetadataSlot::kL1), nullptr);
    EXPECT_EQ(set->ReservedBytes(0), 2 * kMiB);
    ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kManifest, 20 * kMiB, &object).ok());
    std::memset(object, 1, 20 * kMiB);
    EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kMergeJournal, 10 * kMiB, &object).IsNoSpace());
  }
  options_.max_region_size = 128 * kMiB;
  {
    auto set = Open(options_);
    void* object = nullptr;
    ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kMergeJournal, 50 * kMiB, &object).ok());
    std::memset(object, 2, 50 * kMiB);
  }
  options_.max_region_size = kMinRegionSize;  // smaller than what it has: no growth, but all is there
  auto set = Open(options_);
  EXPECT_EQ(*static_cast<uint8_t*>(set->Metadata(0, MetadataSlot::kManifest)), 1);
  EXPECT_EQ(*static_cast<uint8_t*>(set->Metadata(0, MetadataSlot::kMergeJournal)), 2);
}

// Regions without a limit of their own take a share of what is left.
TEST_F(RegionSetTest, ManyRegionsOfALargeFileSystemShareTheAddressSpace) {
  fs::create_directory(dir_.Sub("large"));
  if (mount("tmpfs", dir_.Sub("large").c_str(), "tmpfs", 0, "size=16t") != 0) GTEST_SKIP() << "cannot mount";
  {
    std::vector<std::unique_ptr<RegionSet>> all;
    for (int i = 0; i < 20; ++i) {
      all.push_back(Create(PmemOptions(dir_.Sub("large/db" + std::to_string(i)), 1, 0)));
      ASSERT_NE(all.back(), nullptr) << i;
    }
  }
  umount2(dir_.Sub("large").c_str(), MNT_DETACH);
}

TEST_F(RegionSetTest, ReservationsFollowTheLimitOfAddressSpace) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes more address space than the limit";
#endif
  EXPECT_EQ(RunInChild([&] {
              const rlimit limit{2ull << 30, 2ull << 30};
              if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
              std::vector<std::unique_ptr<RegionSet>> all;
              for (int i = 0; i < 4; ++i) {
                all.push_back(Create(PmemOptions(dir_.Sub("db" + std::to_string(i)), 1, 0)));
                if (all.back() == nullptr) return 2;
              }
              return 0;
            }),
            0);
}

TEST_F(RegionSetTest, FullFileSystemIsNoSpace) {
  fs::create_directory(dir_.Sub("small"));
  if (mount("tmpfs", dir_.Sub("small").c_str(), "tmpfs", 0, "size=10500k") != 0) GTEST_SKIP() << "cannot mount";
  {
    RegionSetOptions options = PmemOptions(dir_.Sub("small/db"), 1);
    auto set = Create(options);
    void* object = nullptr;
    EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 16 * kMiB, &object).IsNoSpace());
    EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 6 * kMiB, &object).ok());
    EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kManifest, 6 * kMiB, &object).IsNoSpace());
    std::memset(set->Metadata(0, MetadataSlot::kL1), 1, 6 * kMiB);
    set.reset();
    EXPECT_NE(Open(options), nullptr);
    options.database_path = dir_.Sub("small/second");
    EXPECT_TRUE(TryCreate(options).IsNoSpace());
    EXPECT_FALSE(fs::exists(dir_.Sub("small/second")));
  }
  umount2(dir_.Sub("small").c_str(), MNT_DETACH);
}

// ---- Options

TEST_F(RegionSetTest, OptionsThatContradictWhatIsStored) {
  ASSERT_NE(Create(options_), nullptr);
  options_.regions = 3;
  EXPECT_TRUE(TryOpen(options_).IsInvalidArgument());
}

TEST_F(RegionSetTest, ImpossibleOptionsAreRefusedAndLeaveNothing) {
  const auto refused = [&](const std::function<void(RegionSetOptions*)>& change) {
    RegionSetOptions options = options_;
    change(&options);
    const Status status = TryCreate(options);
    EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
    EXPECT_TRUE(FilesUnder(dir_.path()).empty());
  };
  refused([](auto* o) { o->regions = kMaxRegions + 1; });
  refused([](auto* o) { o->max_region_size = kMinRegionSize - 1; });
  refused([&](auto* o) { o->region_paths = {dir_.Sub("a")}; });
  refused([&](auto* o) { o->region_paths = {dir_.Sub("a"), dir_.Sub("a")}; });
  if (dir_.path().starts_with("/dev/shm")) refused([](auto* o) { o->persist_mode = PersistMode::kCacheLine; });
}

TEST_F(RegionSetTest, PageModeOnADisk) {
  const PmemTempDir disk(PmemTempDir::DiskParent());
  RegionSetOptions options = PmemOptions(disk.Sub("db"), 2);
  options.persist_mode = PersistMode::kPage;
  auto set = Create(options);
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(set->persistence()->mode(), PersistMode::kPage);
  void* object = nullptr;
  EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 100, &object).ok());
}

TEST_F(RegionSetTest, RegionsOnDifferentMediaSharePageMode) {
  const PmemTempDir disk(PmemTempDir::DiskParent());
  RegionSetOptions options = PmemOptions(dir_.Sub("unused"), 0);
  options.region_paths = {dir_.Sub("a"), disk.Sub("b")};
  auto set = Create(options);
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(set->persistence()->mode(), PersistMode::kPage);
}

// ---- Who else may use it

TEST_F(RegionSetTest, OneOwnerAtATime) {
  auto set = Create(options_);
  EXPECT_TRUE(TryOpen(options_).IsBusy());
  EXPECT_TRUE(RegionSet::Destroy(options_).IsBusy());
  EXPECT_TRUE(TryCreate(options_).IsBusy());
  set.reset();
  EXPECT_TRUE(TryOpen(options_).ok());
}

// As while a monitor looks at the descriptors of a process that has just closed the files.
TEST_F(RegionSetTest, LocksThatAreAboutToEndAreWaitedFor) {
  ASSERT_NE(Create(options_), nullptr);
  for (const char* file : {"db/region-0", "db/region-1/000000.pmem"}) {
    const int held = open(dir_.Sub(file).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(flock(held, LOCK_EX), 0);
    int attempts = 0;
    SyncPoints::Instance().SetCallback("RetryWhileLocked:Locked", [&](void*) {
      if (++attempts == 2) close(held);
    });
    SyncPoints::Instance().Enable();
    EXPECT_TRUE(TryOpen(options_).ok()) << file;
    SyncPoints::Instance().Clear();
    EXPECT_EQ(attempts, 2) << file;
  }
}

TEST_F(RegionSetTest, AnotherProcessIsBusy) {
  auto set = Create(options_);
  EXPECT_EQ(RunInChild([&] { return static_cast<int>(TryOpen(options_).code()); }), static_cast<int>(Status::Code::kBusy));
}

TEST_F(RegionSetTest, CreateKeepsItsHandsOffWhatExists) {
  ASSERT_NE(Create(options_), nullptr);
  const auto before = FilesUnder(dir_.path());
  EXPECT_TRUE(TryCreate(options_).IsInvalidArgument());
  EXPECT_EQ(FilesUnder(dir_.path()), before);
  EXPECT_TRUE(TryOpen(options_).ok());
}

TEST_F(RegionSetTest, ForeignFilesSurviveEverything) {
  fs::create_directories(RegionPath(0));
  WriteFile(RegionPath(0) + "/notes.txt", "mine");
  fs::create_directories(RegionPath(1) + "/sub");
  ASSERT_NE(Create(options_), nullptr);
  EXPECT_TRUE(RegionSet::Destroy(options_).ok());
  EXPECT_EQ(FilesUnder(dir_.Sub("db")), (std::set<std::string>{"region-0", "region-0/notes.txt", "region-1", "region-1/sub"}));
}

// Root may do everything, so this runs as somebody else.
TEST_F(RegionSetTest, PermissionsAreClearErrors) {
  constexpr uid_t kNobody = 65534;
  ASSERT_NE(Create(options_), nullptr);
  const auto as_nobody = [&](const std::function<Status()>& body) {
    const int code = RunInChild([&] {
      if (geteuid() == 0 && setuid(kNobody) != 0) return 99;
      return static_cast<int>(body().code());
    });
    EXPECT_EQ(code, static_cast<int>(Status::Code::kIOError));
  };
  if (geteuid() != 0) {
    for (int mode : {0000, 0400}) {
      chmod(PartPath(1, 0).c_str(), static_cast<mode_t>(mode));
      as_nobody([&] { return TryOpen(options_); });
    }
    return;
  }
  as_nobody([&] { return TryOpen(options_); });  // the directory cannot be entered
  for (const std::string& path : {dir_.path(), dir_.Sub("db"), RegionPath(0), RegionPath(1)}) chmod(path.c_str(), 0755);
  as_nobody([&] { return TryOpen(options_); });  // the part list cannot be read
  for (uint32_t region : {0, 1}) {
    chmod((RegionPath(region) + "/PARTS").c_str(), 0644);
    chmod((RegionPath(region) + "/region.set").c_str(), 0644);
    chmod(PartPath(region, 0).c_str(), 0444);
  }
  as_nobody([&] { return TryOpen(options_); });  // a part cannot be written
  RegionSetOptions fresh = PmemOptions(dir_.Sub("fresh"));
  as_nobody([&] { return TryCreate(fresh); });
  as_nobody([&] { return RegionSet::Destroy(options_); });
  EXPECT_TRUE(TryOpen(options_).ok());
}

}  // namespace
}  // namespace braiddb::test
