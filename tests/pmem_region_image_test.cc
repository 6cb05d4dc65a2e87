// What a look at the files of a region reports of them, and what a set of regions refuses.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "pmem/part_list.h"
#include "pmem/pool_format.h"
#include "pmem/posix.h"
#include "pmem/region.h"
#include "pmem/region_image.h"
#include "pmem/region_set.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb {
namespace {

namespace fs = std::filesystem;
using test::PmemOptions;
using test::PmemTempDir;

constexpr uint64_t kMiB = 1ull << 20;

class RegionImageTest : public testing::Test {
 protected:
  void SetUp() override {
    std::unique_ptr<RegionSet> set;
    void* object = nullptr;
    ASSERT_TRUE(RegionSet::Create(options_, &set).ok());
    ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 6 * kMiB, &object).ok());  // a second part
  }
  static void WriteFile(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  static std::string ReadFile(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  std::string Path(const std::string& name, int region = 0) const {
    return dir_.Sub("db/region-" + std::to_string(region)) + "/" + name;
  }
  PartList List(int region = 0) const {
    PartList list;
    EXPECT_TRUE(PartList::Parse(ReadFile(Path("PARTS", region)), "PARTS", &list).ok());
    return list;
  }
  // Maps the region; what was reported is in reports_.
  Status Map() {
    reports_.clear();
    image_.reset();
    return RegionImage::Map(
        dir_.Sub("db/region-0"),
        [this](const std::string& file, const std::string& what) { reports_ += file + ": " + what + "\n"; }, &image_);
  }
  Status TryOpen() {
    std::unique_ptr<RegionSet> set;
    return RegionSet::Open(options_, &set);
  }

  PmemTempDir dir_;
  RegionSetOptions options_ = PmemOptions(dir_.Sub("db"), 2);
  std::unique_ptr<RegionImage> image_;
  std::string reports_;
};

TEST_F(RegionImageTest, DamagedFilesAreReportedAndTheRestIsThere) {
  const struct {
    const char* report;  // "": none
    uint64_t bytes;
    uint64_t absent;
    std::function<void()> damage;
  } kCases[] = {
      {"", 10 * kMiB, 0, [] {}},
      {"checksum", 10 * kMiB, 0, [&] { WriteFile(Path("PARTS"), ReadFile(Path("PARTS")).replace(30, 1, "z")); }},
      {"PARTS", 10 * kMiB, 0, [&] { fs::remove(Path("PARTS")); }},
      {"000001.pmem: is missing", 10 * kMiB, 8 * kMiB, [&] { fs::remove(Path("000001.pmem")); }},
      {"not a regular file", 10 * kMiB, 8 * kMiB,
       [&] {
         fs::remove(Path("000001.pmem"));
         mkfifo(Path("000001.pmem").c_str(), 0600);
       }},
      {"has 4194304 bytes", 10 * kMiB, 4 * kMiB, [&] { fs::resize_file(Path("000001.pmem"), 4 * kMiB); }},
      {"has 0 bytes", 10 * kMiB, 8 * kMiB, [&] { fs::resize_file(Path("000001.pmem"), 0); }},
      {"has 9000000 bytes", 10 * kMiB, 0, [&] { fs::resize_file(Path("000001.pmem"), 9'000'000); }},
      {"000002.pmem: is not a part", 10 * kMiB, 0, [&] { WriteFile(Path("000002.pmem"), "x"); }},
      {"bytes", 2 * kMiB + 100 + 8 * kMiB, 8 * kMiB,
       [&] {  // after a part of an odd size nothing can be mapped
         PartList list = List();
         list.parts.insert(list.parts.begin() + 1, 100);
         WriteFile(Path("PARTS"), list.ToText());
       }},
      {"", 10 * kMiB, 0,
       [&] {  // announced, and not in the heap
         PartList list = List();
         list.next = 8 * kMiB;
         WriteFile(Path("PARTS"), list.ToText());
       }},
      {"", 10 * kMiB, 0,
       [&] {  // announced, and in the heap
         PartList list = List();
         list.next = list.parts.back();
         list.parts.pop_back();
         WriteFile(Path("PARTS"), list.ToText());
       }},
  };
  const std::string sound = dir_.Sub("sound");
  fs::copy(dir_.Sub("db"), sound, fs::copy_options::recursive);
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.report);
    test.damage();
    const Status status = Map();
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(image_->bytes(), test.bytes);
    uint64_t absent = 0;
    for (const auto& part : image_->absent()) absent += part.bytes;
    EXPECT_EQ(absent, test.absent);
    EXPECT_NE(reports_.find(test.report), std::string::npos) << reports_;
    EXPECT_EQ(reports_.empty(), *test.report == '\0') << reports_;
    EXPECT_EQ(PoolView(image_->base(), image_->bytes()).root_offset() != 0, true);
    EXPECT_TRUE(image_->Contains(test.bytes, 0) && !image_->Contains(test.bytes, 1) && !image_->Contains(test.bytes + 1, 0));
    EXPECT_NE(image_->Place(2 * kMiB + 5).find("000001.pmem, byte 5"), std::string::npos) << image_->Place(2 * kMiB + 5);
    image_.reset();
    fs::remove_all(dir_.Sub("db"));
    fs::copy(sound, dir_.Sub("db"), fs::copy_options::recursive);
  }
}

TEST_F(RegionImageTest, WithoutPartsThereIsNone) {
  fs::remove(Path("000000.pmem"));
  fs::remove(Path("000001.pmem"));
  fs::remove(Path("PARTS"));
  EXPECT_TRUE(Map().IsNotFound());
  EXPECT_EQ(reports_, "");
  fs::remove_all(dir_.Sub("db/region-0"));
  EXPECT_TRUE(Map().IsNotFound());
  fs::create_directory(dir_.Sub("db/region-0"));
  PartList list = List(1);
  list.parts = {uint64_t{1} << 47};
  WriteFile(Path("PARTS"), list.ToText());
  EXPECT_TRUE(Map().IsCorruption());
  WriteFile(Path("PARTS"), "braiddb-parts 2\n");
  EXPECT_TRUE(Map().IsNotSupported());
}

// ---- What a set refuses

TEST_F(RegionImageTest, PartListsThatDoNotBelongTogether) {
  const PartList first = List(0);
  const PartList second = List(1);
  const auto expect = [&](const PartList& of_first, const PartList& of_second, const char* what) {
    WriteFile(Path("PARTS", 0), of_first.ToText());
    WriteFile(Path("PARTS", 1), of_second.ToText());
    const Status status = TryOpen();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(what), std::string_view::npos) << status.ToString();
  };
  options_.regions = 0;
  PartList wrong = first;
  for (const uint32_t count : {uint32_t{0}, kMaxRegions + 1}) {
    wrong.region_count = count;
    expect(wrong, second, "impossible number");
  }
  wrong = second;
  wrong.region_count = 3;
  expect(first, wrong, "another database");
  wrong = second;
  wrong.region = 0;
  expect(first, wrong, "in their order");
  wrong = second;
  ++wrong.database_id;
  expect(first, wrong, "another database");
  WriteFile(Path("PARTS", 0), first.ToText());
  WriteFile(Path("PARTS", 1), second.ToText());
  EXPECT_TRUE(TryOpen().ok());
}

TEST_F(RegionImageTest, FilesThatLookAlmostLikeParts) {
  for (const char* name : {"00000x.pmem", "00000-.pmem", "1234567.pmem", "abcdef.pmem", "000099.pmem"}) {
    WriteFile(Path(name), "x");
    EXPECT_TRUE(TryOpen().IsCorruption()) << name;
    fs::remove(Path(name));
  }
  for (const char* name : {"my-notes.tx", "000000.pmex", "notes.tmp"}) {
    WriteFile(Path(name), "x");
    EXPECT_TRUE(TryOpen().ok()) << name;
    EXPECT_TRUE(fs::exists(Path(name))) << name;
  }
}

// PMDK's own version and the size of its heap, in the header of the first part.
TEST_F(RegionImageTest, PoolHeadersThatCannotBe) {
  const std::string sound = ReadFile(Path("000000.pmem"));
  const auto expect_refused = [&](uint64_t offset, uint64_t value, size_t bytes) {
    std::string damaged = sound;
    std::memcpy(&damaged[offset], &value, bytes);
    WriteFile(Path("000000.pmem"), damaged);
    EXPECT_EQ(test::RunInChild([&] { return TryOpen().ok() ? 0 : 1; }), 1) << offset << " " << value;
  };
  expect_refused(kPoolMajorOffset, kPoolMajor + 1, 4);
  expect_refused(kPoolMajorOffset, kPoolMajor - 1, 4);
  expect_refused(kPoolHeapSizeOffset, 0, 8);
  expect_refused(kPoolHeapOffset, uint64_t{1} << 60, 8);
  WriteFile(Path("000000.pmem"), sound);
  EXPECT_TRUE(TryOpen().ok());
  fs::resize_file(Path("000000.pmem"), 4096);
  PoolExtent extent;
  EXPECT_TRUE(ReadPoolExtent(Path("000000.pmem"), &extent).IsIOError());
}

TEST_F(RegionImageTest, PathsOfAllKinds) {
  std::unique_ptr<RegionSet> set;
  RegionSetOptions many = options_;
  many.regions = 0;
  many.region_paths.assign(kMaxRegions + 1, dir_.Sub("x"));
  EXPECT_TRUE(RegionSet::Open(many, &set).IsInvalidArgument());
  EXPECT_TRUE(RegionSet::Create(many, &set).IsInvalidArgument());
  RegionSetOptions none = PmemOptions("", 0);
  none.region_paths = {""};
  EXPECT_TRUE(RegionSet::Create(none, &set).IsInvalidArgument());
  WriteFile(dir_.Sub("file"), "x");
  none.region_paths = {dir_.Sub("file")};
  EXPECT_TRUE(RegionSet::Create(none, &set).IsIOError());
  EXPECT_EQ(posix::JoinPath("", "name"), "name");
  EXPECT_EQ(posix::JoinPath("a/", "name"), "a/name");
  // A path that is relative to the current directory, its parents to be made.
  const fs::path before = fs::current_path();
  fs::current_path(dir_.path());
  ASSERT_TRUE(RegionSet::Create(PmemOptions("relative", 1), &set).ok());
  set.reset();
  EXPECT_TRUE(RegionSet::Open(PmemOptions("relative", 0), &set).ok());
  EXPECT_EQ(set->count(), 1u);
  set.reset();
  fs::current_path(before);
  EXPECT_TRUE(fs::exists(dir_.Sub("relative/region-0/PARTS")));
}

}  // namespace
}  // namespace braiddb
