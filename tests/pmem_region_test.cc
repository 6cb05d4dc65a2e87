// The life of regions: creation, growth, options, who may use them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <thread>

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
    EXPECT_EQ(set->ReservedBytes(0), 8 * kMiB);
  }
  EXPECT_TRUE(RegionSet::Exists(options_));
  EXPECT_EQ(FilesUnder(dir_.Sub("db")),
            (std::set<std::string>{"region-0", "region-0/000000.pmem", "region-0/PARTS", "region-0/region.set", "region-1",
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
  EXPECT_LT(BytesUnder(RegionPath(0)), 16 * kMiB);
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
    EXPECT_EQ(set->ReservedBytes(1), 8 * kMiB);
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
    EXPECT_EQ(set->ReservedBytes(0), 8 * kMiB);
    EXPECT_TRUE(set->ReserveBytes(50 * kMiB + 1).ok());
  }
  for (int region = 0; region < 2; ++region) {
    EXPECT_EQ(fs::file_size(RegionPath(region) + "/000001.pmem"), 44 * kMiB);
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
    EXPECT_EQ(set->ReservedBytes(0), 8 * kMiB);
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
    EXPECT_EQ(set->ReservedBytes(0), 8 * kMiB);
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
  if (mount("tmpfs", dir_.Sub("small").c_str(), "tmpfs", 0, "size=20m") != 0) GTEST_SKIP() << "cannot mount";
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
