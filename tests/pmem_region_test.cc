#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <set>
#include <thread>

#include "pmem/part_list.h"
#include "pmem/region.h"
#include "pmem/region_files.h"
#include "pmem/region_set.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb {
namespace {

namespace fs = std::filesystem;
using test::PmemOptions;
using test::PmemTempDir;
using test::PoolIsConsistent;
using test::RunInChild;

constexpr uint64_t kMiB = 1ull << 20;

class RegionSetTest : public testing::Test {
 protected:
  std::unique_ptr<RegionSet> Create(const RegionSetOptions& options) {
    std::unique_ptr<RegionSet> set;
    const Status status = RegionSet::Create(options, &set);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return set;
  }
  std::unique_ptr<RegionSet> Open(const RegionSetOptions& options) {
    std::unique_ptr<RegionSet> set;
    const Status status = RegionSet::Open(options, &set);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return set;
  }
  static Status TryOpen(const RegionSetOptions& options) {
    std::unique_ptr<RegionSet> set;
    return RegionSet::Open(options, &set);
  }
  static Status TryCreate(const RegionSetOptions& options) {
    std::unique_ptr<RegionSet> set;
    return RegionSet::Create(options, &set);
  }
  // Names of all files under `path`, relative to it.
  static std::set<std::string> FilesUnder(const std::string& path) {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(path)) names.insert(fs::relative(entry.path(), path));
    return names;
  }
  static void WriteFile(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  static std::string ReadFile(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  static void Overwrite(const std::string& path, uint64_t offset, const std::string& bytes) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(offset));
    file << bytes;
  }
  static uint64_t BytesUnder(const std::string& path) {
    uint64_t total = 0;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      struct stat st;
      if (entry.is_regular_file() && stat(entry.path().c_str(), &st) == 0) total += static_cast<uint64_t>(st.st_blocks) * 512;
    }
    return total;
  }
  std::string RegionPath(uint32_t region) const { return dir_.Sub("db/region-" + std::to_string(region)); }
  std::string PartPath(uint32_t region, int part) const { return RegionPath(region) + "/" + PartName(part); }

  PmemTempDir dir_;
  RegionSetOptions options_ = PmemOptions(dir_.Sub("db"), 2);
};

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
  refused([&](auto* o) { o->database_path = dir_.Sub("with a blank"); });
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

// ---- Damage

struct Damage {
  const char* name;
  std::function<void(const std::string& region0, const std::string& region1)> make;
  Status::Code code;
  const char* message;
};

class DamagedRegionSetTest : public RegionSetTest, public testing::WithParamInterface<Damage> {
 public:
  static std::vector<Damage> All() {
    const auto part = [](const std::string& region, int index) { return region + "/" + PartName(index); };
    using Code = Status::Code;
    return {
        {"NothingThere", [](auto r0, auto r1) { fs::remove_all(r0), fs::remove_all(r1); }, Code::kNotFound, "no database"},
        {"NoRegion0", [](auto r0, auto) { fs::remove_all(r0); }, Code::kCorruption, "region 0 is missing"},
        {"NoRegion1", [](auto, auto r1) { fs::remove_all(r1); }, Code::kCorruption, "region 1 is missing"},
        {"EmptyRegion1", [](auto, auto r1) { fs::remove_all(r1), fs::create_directory(r1); }, Code::kCorruption, "is missing"},
        {"NoPart", [=](auto, auto r1) { fs::remove(part(r1, 0)); }, Code::kCorruption, "is missing"},
        {"NoSecondPart", [=](auto r0, auto) { fs::remove(part(r0, 1)); }, Code::kCorruption, "is missing"},
        {"EmptyPart", [=](auto r0, auto) { fs::resize_file(part(r0, 0), 0); }, Code::kCorruption, "is empty"},
        {"EmptySecondPart", [=](auto r0, auto) { fs::resize_file(part(r0, 1), 0); }, Code::kCorruption, "is empty"},
        {"TruncatedPart", [=](auto r0, auto) { fs::resize_file(part(r0, 1), 4 * kMiB); }, Code::kCorruption, "is truncated"},
        {"ExtendedPart", [=](auto r0, auto) { fs::resize_file(part(r0, 1), 80 * kMiB); }, Code::kCorruption, "is not ours"},
        {"DirectoryForPart", [=](auto r0, auto) { fs::remove(part(r0, 1)), fs::create_directory(part(r0, 1)); }, Code::kIOError,
         ""},
        {"FifoForPart", [=](auto r0, auto) { fs::remove(part(r0, 1)), mkfifo(part(r0, 1).c_str(), 0600); }, Code::kCorruption,
         "not a regular file"},
        {"ForeignPart", [=](auto r0, auto) { Overwrite(part(r0, 0), 0, std::string(4096, 'x')); }, Code::kCorruption, "foreign"},
        {"PoolHeader", [=](auto r0, auto) { Overwrite(part(r0, 0), 100, "damage"); }, Code::kCorruption, "cannot open pool"},
        {"UnknownPart", [=](auto r0, auto) { WriteFile(part(r0, 2), std::string(4 * kMiB, 'x')); }, Code::kCorruption,
         "not a part"},
        {"UnknownEmptyPart", [=](auto r0, auto) { WriteFile(part(r0, 2), ""); }, Code::kCorruption, "not a part"},
        {"OddPartName", [=](auto r0, auto) { WriteFile(r0 + "/1.pmem", "x"); }, Code::kCorruption, "not a part"},
        {"NoPartList", [](auto r0, auto) { fs::remove(r0 + "/PARTS"); }, Code::kCorruption, "is missing"},
        {"EmptyPartList", [](auto r0, auto) { WriteFile(r0 + "/PARTS", ""); }, Code::kCorruption, "is empty"},
        {"TruncatedPartList", [](auto r0, auto) { fs::resize_file(r0 + "/PARTS", 40); }, Code::kCorruption, "is truncated"},
        {"FlippedPartList", [](auto r0, auto) { Overwrite(r0 + "/PARTS", 30, "z"); }, Code::kCorruption, "checksum"},
        {"HugePartList", [](auto r0, auto) { WriteFile(r0 + "/PARTS", std::string(2 * kMiB, 'x')); }, Code::kCorruption,
         "larger"},
        {"NewerPartList", [](auto r0, auto) { WriteFile(r0 + "/PARTS", "braiddb-parts 2\nwhatever\n"); }, Code::kNotSupported,
         "newer BraidDB"},
        {"Swapped",
         [](auto r0, auto r1) {
           fs::rename(r0, r0 + "x");
           fs::rename(r1, r0);
           fs::rename(r0 + "x", r1);
         },
         Code::kCorruption, "order"},
        {"SwappedFirstParts",
         [=](auto r0, auto r1) {
           fs::rename(part(r0, 0), part(r0, 0) + "x");
           fs::rename(part(r1, 0), part(r0, 0));
           fs::rename(part(r0, 0) + "x", part(r1, 0));
         },
         Code::kCorruption, ""},
        {"Garbage", [=](auto r0, auto) { Overwrite(part(r0, 0), 8, std::string(8 * kMiB - 8, '\x5a')); }, Code::kCorruption, ""},
    };
  }
};

TEST_P(DamagedRegionSetTest, IsFoundWithAClearMessage) {
  {
    auto set = Create(options_);
    void* object = nullptr;
    ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 6 * kMiB, &object).ok());  // a second part in region 0
    ASSERT_TRUE(fs::exists(PartPath(0, 1)));
  }
  GetParam().make(RegionPath(0), RegionPath(1));
  const auto before = FilesUnder(dir_.path());
  // In a child: a crash of libpmemobj must fail one case, not end the test.
  const int code = RunInChild([&] {
    const Status status = TryOpen(options_);
    if (status.message().find(GetParam().message) == std::string_view::npos) {
      std::fprintf(stderr, "unexpected: %s\n", status.ToString().c_str());
      return 100;
    }
    return static_cast<int>(status.code());
  });
  EXPECT_EQ(code, static_cast<int>(GetParam().code));
  EXPECT_EQ(FilesUnder(dir_.path()), before);
}

INSTANTIATE_TEST_SUITE_P(All, DamagedRegionSetTest, testing::ValuesIn(DamagedRegionSetTest::All()),
                         [](const auto& test) { return test.param.name; });

TEST_F(RegionSetTest, RegionsOfTwoDatabasesAreNotMixed) {
  RegionSetOptions other = PmemOptions(dir_.Sub("other"), 2);
  ASSERT_NE(Create(options_), nullptr);
  ASSERT_NE(Create(other), nullptr);
  fs::remove_all(RegionPath(1));
  fs::rename(dir_.Sub("other/region-1"), RegionPath(1));
  Status status = TryOpen(options_);
  EXPECT_TRUE(status.IsCorruption());
  EXPECT_NE(status.message().find("another database"), std::string::npos);
  // Only the pool of another database, under a part list of ours.
  fs::remove_all(dir_.Sub("db"));
  ASSERT_NE(Create(options_), nullptr);
  fs::rename(dir_.Sub("other/region-0/000000.pmem"), PartPath(0, 0));
  status = TryOpen(options_);
  EXPECT_TRUE(status.IsCorruption());
  EXPECT_NE(status.message().find("another database"), std::string::npos) << status.ToString();
}

TEST_F(RegionSetTest, EveryWordOfTheRootIsChecked) {
  options_.regions = 1;
  uint64_t root = 0;
  {
    auto set = Create(options_);
    root = set->ToPmPtr(0, set->impl()->region(0)->root()).offset();
    void* object = nullptr;
    ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kManifest, 100, &object).ok());
  }
  const std::string good = ReadFile(PartPath(0, 0));
  for (uint64_t offset = 0; offset < offsetof(RegionRoot, generation_word); ++offset) {
    Overwrite(PartPath(0, 0), root + offset, std::string(1, static_cast<char>(good[root + offset] ^ 0x10)));
    const Status status = TryOpen(options_);
    EXPECT_TRUE(status.IsCorruption() || status.IsNotSupported()) << offset << ": " << status.ToString();
    Overwrite(PartPath(0, 0), root + offset, good.substr(root + offset, 1));
  }
  const uint32_t newer = kRegionFormatVersion + 1;
  Overwrite(PartPath(0, 0), root + 8, std::string(reinterpret_cast<const char*>(&newer), 4));
  EXPECT_TRUE(TryOpen(options_).IsNotSupported());
  Overwrite(PartPath(0, 0), root + 8, good.substr(root + 8, 4));
  for (uint64_t field : {offsetof(RegionRoot, metadata), offsetof(RegionRoot, metadata) + 8, offsetof(RegionRoot, metadata_bytes),
                         offsetof(RegionRoot, metadata_check)}) {
    for (int bit = 0; bit < 64; ++bit) {
      std::string word = good.substr(root + field, 8);
      word[bit / 8] ^= static_cast<char>(1 << bit % 8);
      Overwrite(PartPath(0, 0), root + field, word);
      EXPECT_TRUE(TryOpen(options_).IsCorruption()) << field << " bit " << bit;
    }
    Overwrite(PartPath(0, 0), root + field, std::string(8, '\0'));
    // Without its check a slot looks as if its allocation had been cut short, which does no harm.
    EXPECT_EQ(TryOpen(options_).IsCorruption(), field != offsetof(RegionRoot, metadata_check));
    Overwrite(PartPath(0, 0), root + field, good.substr(root + field, 8));
  }
  EXPECT_TRUE(TryOpen(options_).ok());
}

TEST_F(RegionSetTest, AWildRootPointerOfPmdkIsFound) {
  options_.regions = 1;
  ASSERT_NE(Create(options_), nullptr);
  for (uint64_t wild : {uint64_t{0}, uint64_t{1} << 40, uint64_t{4096}, ~uint64_t{0}}) {
    Overwrite(PartPath(0, 0), 4096 + 2048, std::string(reinterpret_cast<const char*>(&wild), 8));
    EXPECT_EQ(RunInChild([&] { return static_cast<int>(TryOpen(options_).code()); }),
              static_cast<int>(Status::Code::kCorruption));
  }
}

// ---- Crashes of creation and growth: the state after each step (region_set.cc, region_files.h), made by hand

// [CC-30]
TEST_F(RegionSetTest, AnUnfinishedCreationIsStartedOver) {
  ASSERT_NE(Create(options_), nullptr);
  for (int region = 0; region < 2; ++region) WriteFile(RegionPath(region) + "/CREATING", "");
  fs::remove(RegionPath(1) + "/PARTS");
  EXPECT_FALSE(RegionSet::Exists(options_));
  EXPECT_TRUE(TryOpen(options_).IsNotFound());
  ASSERT_NE(Create(options_), nullptr);
  EXPECT_NE(Open(options_), nullptr);
  WriteFile(RegionPath(0) + "/CREATING", "");
  EXPECT_TRUE(RegionSet::Destroy(options_).ok());
  EXPECT_TRUE(FilesUnder(dir_.Sub("db")).empty());
}

// [CC-30]
TEST_F(RegionSetTest, ACommittedCreationIsFinishedByOpen) {
  ASSERT_NE(Create(options_), nullptr);
  WriteFile(RegionPath(1) + "/CREATING", "");
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
  EXPECT_EQ(Open(options_)->ReservedBytes(0), 8 * kMiB);
  EXPECT_FALSE(fs::exists(PartPath(0, 1)));
  // After step 2: the list announces a part that is not there.
  grow_and_die(false);
  fs::remove(PartPath(0, 1));
  EXPECT_EQ(Open(options_)->ReservedBytes(0), 8 * kMiB);
  // After step 4: the heap knows it, the list does not.
  grow_and_die(true);
  {
    auto set = Open(options_);
    EXPECT_EQ(set->ReservedBytes(0), 16 * kMiB);
    void* object = nullptr;
    ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 7 * kMiB, &object).ok());
    EXPECT_EQ(set->ReservedBytes(0), 16 * kMiB);
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

TEST(PartListTest, TextAndBack) {
  PartList list;
  list.database_id = 0xfedcba9876543210;
  list.region = 3;
  list.region_count = 4;
  list.parts = {8 * kMiB, 1ull << 40};
  list.next = 5;
  PartList read;
  ASSERT_TRUE(PartList::Parse(list.ToText(), "PARTS", &read).ok());
  EXPECT_EQ(read.ToText(), list.ToText());
  EXPECT_EQ(read.TotalBytes(), 8 * kMiB + (1ull << 40));
  EXPECT_EQ(read.next, 5u);
}

TEST(PartListTest, EveryFlippedOrMissingByteIsFound) {
  PartList list;
  list.database_id = 1;
  list.region_count = 1;
  list.parts = {8 * kMiB};
  const std::string text = list.ToText();
  PartList read;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 1;
    EXPECT_FALSE(PartList::Parse(damaged, "PARTS", &read).ok()) << i;
    EXPECT_FALSE(PartList::Parse(text.substr(0, i), "PARTS", &read).ok()) << i;
  }
}

}  // namespace
}  // namespace braiddb
