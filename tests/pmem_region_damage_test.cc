// Damaged, missing and mixed-up files of regions are found, with a clear message.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "pmem/region.h"
#include "pmem/region_files.h"
#include "tests/support/region_set_test.h"

namespace braiddb::test {
namespace {

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
  for (const uint64_t field : {offsetof(RegionRoot, secret), offsetof(RegionRoot, secret_check)}) {
    for (const std::string& word : {std::string(8, '\0'), std::string(8, 'x')}) {
      Overwrite(PartPath(0, 0), root + field, word);
      EXPECT_TRUE(TryOpen(options_).IsCorruption()) << field;
      Overwrite(PartPath(0, 0), root + field, good.substr(root + field, 8));
    }
  }
  const uint32_t newer = kRootFormatVersion + 1;
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

}  // namespace
}  // namespace braiddb::test
