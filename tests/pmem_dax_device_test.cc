// Regions on devices, as far as a machine without persistent memory can show it. scripts/test-vm has devices.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>

#include "pmem/dax_device.h"
#include "pmem/region_image.h"
#include "tests/support/region_set_test.h"

namespace braiddb::test {
namespace {

TEST_F(RegionSetTest, ADeviceThatIsNoPersistentMemoryIsRefused) {
  RegionSetOptions options = PmemOptions(dir_.Sub("db"), 0);
  options.region_paths = {"/dev/null"};
  const Status status = TryCreate(options);
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  EXPECT_NE(status.ToString().find("/dev/null is a device, but not one of persistent memory"), std::string::npos);
  EXPECT_FALSE(fs::exists(dir_.Sub("db"))) << "a failed creation leaves files";
  EXPECT_FALSE(RegionSet::Exists(options));
  EXPECT_TRUE(RegionSet::Destroy(options).ok());
}

TEST_F(RegionSetTest, ARegionInFilesIsNotOnADevice) {
  RegionSetOptions options = PmemOptions(dir_.Sub("db"), 1);
  ASSERT_NE(Create(options), nullptr);
  options.regions = 0;
  options.region_paths = {"/dev/null"};
  for (const bool read_only : {false, true}) {
    std::unique_ptr<RegionSet> set;
    const Status status = read_only ? RegionSet::OpenReadOnly(options, &set) : RegionSet::Open(options, &set);
    EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
    EXPECT_NE(status.ToString().find("is not on /dev/null"), std::string::npos) << status.ToString();
  }
}

TEST_F(RegionSetTest, ALinkToAnotherDeviceIsCorruption) {
  RegionSetOptions options = PmemOptions(dir_.Sub("db"), 1);
  ASSERT_NE(Create(options), nullptr);
  const std::string part = dir_.Sub("db/region-0/000000.pmem");
  fs::remove(part);
  fs::create_symlink("/dev/zero", part);
  const Status status = TryOpen(options);
  EXPECT_TRUE(status.IsCorruption()) << status.ToString();
  EXPECT_NE(status.ToString().find("no persistent memory"), std::string::npos) << status.ToString();

  std::string found;
  const auto report = [&](const std::string& file, const std::string& what) { found += file + " " + what + "\n"; };
  std::unique_ptr<RegionImage> image;
  EXPECT_TRUE(RegionImage::Map(dir_.Sub("db/region-0"), report, &image).ok());
  EXPECT_EQ(found, part + " is not a regular file\n");
}

TEST_F(RegionSetTest, FilesAreReadAsBefore) {
  const std::string path = dir_.Sub("file");
  WriteFile(path, "0123456789");
  const int fd = open(path.c_str(), O_RDONLY);
  std::array<char, 4> bytes{};
  EXPECT_EQ(ReadPartAt(fd, bytes.data(), bytes.size(), 3), 4);
  EXPECT_EQ(std::string(bytes.data(), bytes.size()), "3456");
  EXPECT_EQ(ReadPartAt(fd, bytes.data(), bytes.size(), 8), 2);
  EXPECT_EQ(ReadPartAt(fd, bytes.data(), bytes.size(), 10), 0);
  EXPECT_EQ(PartBytes(fd), 10u);
  close(fd);
  EXPECT_FALSE(IsCharacterDevice(path));
  EXPECT_TRUE(IsCharacterDevice("/dev/zero"));
  EXPECT_TRUE(IsSameDevice("/dev/zero", "/dev/zero"));
  EXPECT_FALSE(IsSameDevice("/dev/zero", "/dev/null"));
  EXPECT_FALSE(IsSameDevice(path, path));
}

}  // namespace
}  // namespace braiddb::test
