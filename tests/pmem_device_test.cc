// The device of a path, its kind and its NUMA node, in made-up trees of /proc and /sys.
#include <gtest/gtest.h>

#include <filesystem>

#include "pmem/device.h"
#include "tests/support/fake_system.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb {
namespace {

class DeviceTest : public testing::Test {
 protected:
  DeviceTest() {
    std::filesystem::create_directories(dir_.Sub("root"));
    system_ = std::make_unique<test::FakeSystem>(dir_.Sub("root"));
    data_ = std::filesystem::canonical(dir_.path()).string() + "/data dir";
    std::filesystem::create_directories(data_);
  }
  Device Find(const std::string& path) const {
    Device device;
    const Status status = FindDevice(path, system_->root(), &device);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return device;
  }
  // As mountinfo writes it.
  std::string Escaped() const {
    std::string text = data_;
    for (size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at)) text.replace(at, 1, "\\040");
    return text;
  }

  test::PmemTempDir dir_;
  std::unique_ptr<test::FakeSystem> system_;
  std::string data_;
};

TEST_F(DeviceTest, TheNodeIsThatOfTheDeviceAndNotItsNumber) {
  const std::string one = data_ + "/one", two = data_ + "/two";
  std::filesystem::create_directories(one + "/below");
  std::filesystem::create_directories(two);
  system_->MakeSwapped(Escaped() + "/one", Escaped() + "/two");
  const Device first = Find(one + "/below");
  EXPECT_EQ(first.kind, DeviceKind::kDax);
  EXPECT_EQ(first.name, "pmem0");
  EXPECT_EQ(first.numa_node, 1);
  EXPECT_EQ(first.major_number, 259u);
  EXPECT_EQ(first.minor_number, 0u);
  EXPECT_EQ(first.mount_point, one);
  EXPECT_EQ(first.file_system, "ext4");
  EXPECT_EQ(first.mount_options, "rw,relatime,rw,dax=always");
  EXPECT_NE(first.numa_node_from.find("namespace0.0/numa_node"), std::string::npos) << first.numa_node_from;
  ASSERT_EQ(first.bottom.size(), 1u);
  EXPECT_TRUE(first.bottom[0].ends_with("/block/pmem0")) << first.bottom[0];
  EXPECT_EQ(Find(two).numa_node, 0);
  const Device root = Find(data_);
  EXPECT_EQ(root.name, "vda") << "a longer name than a mount point's is no place below it";
  EXPECT_EQ(root.kind, DeviceKind::kDisk);
  EXPECT_EQ(root.numa_node, 0);
}

TEST_F(DeviceTest, PartitionsAndDirectoriesAboveHaveTheNode) {
  system_->AddBlockDevice("pmem3", "259:3", "ndbus0/region3/namespace3.0", "");
  system_->Write("/sys/devices/ndbus0/region3/numa_node", "3\n");
  system_->Write("/sys/devices/ndbus0/region3/namespace3.0/numa_node", "-1\n");
  system_->Write("/sys/devices/ndbus0/region3/namespace3.0/block/pmem3/pmem3p1/dev", "259:4\n");
  system_->Link("/sys/dev/block/259:4", "/sys/devices/ndbus0/region3/namespace3.0/block/pmem3/pmem3p1");
  system_->Mount("259:4", Escaped(), "xfs", "/dev/pmem3p1", "rw", "rw,dax=inode");
  const Device device = Find(data_);
  EXPECT_EQ(device.name, "pmem3p1");
  EXPECT_EQ(device.numa_node, 3);
  EXPECT_EQ(device.kind, DeviceKind::kDisk) << "with dax=inode the directory says it, and this one does not";
}

TEST_F(DeviceTest, DeviceMapperHasTheNodeThatItsDevicesShare) {
  system_->AddBlockDevice("pmem4", "259:4", "ndbus0/region4/namespace4.0", "1");
  system_->AddBlockDevice("pmem5", "259:5", "ndbus0/region5/namespace5.0", "1");
  system_->AddBlockDevice("pmem6", "259:6", "ndbus0/region6/namespace6.0", "0");
  system_->AddVirtualBlockDevice("dm-0", "253:0");
  system_->AddVirtualBlockDevice("dm-1", "253:1");
  system_->AddSlave("dm-0", "dm-1");
  system_->AddSlave("dm-1", "pmem4");
  system_->AddSlave("dm-1", "pmem5");
  system_->Mount("253:0", Escaped(), "ext4", "/dev/mapper/vg-lv", "rw", "rw,dax");
  const Device shared = Find(data_);
  EXPECT_EQ(shared.kind, DeviceKind::kDax);
  EXPECT_EQ(shared.name, "dm-0");
  EXPECT_EQ(shared.numa_node, 1);
  EXPECT_EQ(shared.bottom.size(), 2u);
  system_->AddSlave("dm-0", "pmem6");
  const Device mixed = Find(data_);
  EXPECT_EQ(mixed.numa_node, kUnknownNumaNode);
  EXPECT_EQ(mixed.numa_node_from, "");
  EXPECT_EQ(mixed.bottom.size(), 3u);
}

TEST_F(DeviceTest, LoopDevicesLeadToTheDeviceOfTheirFile) {
  system_->AddBlockDevice("sda", "8:0", "pci0000:80/0000:80:01.0/ata1", "");
  system_->Write("/sys/devices/pci0000:80/0000:80:01.0/numa_node", "1\n");
  system_->Mount("8:0", "/images", "ext4", "/dev/sda", "rw", "rw");
  system_->AddVirtualBlockDevice("loop0", "7:0");
  system_->Write("/sys/devices/virtual/block/loop0/loop/backing_file", "/images/one.img\n");
  system_->Mount("7:0", Escaped(), "ext4", "/dev/loop0", "rw", "rw");
  const Device device = Find(data_);
  EXPECT_EQ(device.name, "loop0");
  EXPECT_EQ(device.numa_node, 1);
  ASSERT_EQ(device.bottom.size(), 1u);
  EXPECT_TRUE(device.bottom[0].ends_with("/sda"));
}

TEST_F(DeviceTest, MountsWithoutANumberOfADeviceAreFoundByTheirSource) {
  system_->AddBlockDevice("nvme0n1", "259:9", "pci0000:40/0000:40:01.0/nvme/nvme0", "1");
  system_->AddVirtualBlockDevice("dm-7", "253:7");
  system_->AddSlave("dm-7", "nvme0n1");
  system_->Write("/dev/dm-7", "");
  system_->Link("/dev/mapper/data", "/dev/dm-7");
  system_->Mount("0:41", Escaped(), "btrfs", "/dev/mapper/data", "rw", "rw,subvolid=5");
  const Device device = Find(data_);
  EXPECT_EQ(device.name, "dm-7");
  EXPECT_EQ(device.numa_node, 1);
}

TEST_F(DeviceTest, WhatIsNotKnownIsNoError) {
  system_->Mount("0:50", Escaped(), "overlay", "overlay", "rw", "rw,lowerdir=/a");
  const Device overlay = Find(data_);
  EXPECT_EQ(overlay.kind, DeviceKind::kDisk);
  EXPECT_EQ(overlay.name, "");
  EXPECT_EQ(overlay.numa_node, kUnknownNumaNode);
  system_->AddBlockDevice("pmem8", "259:8", "ndbus0/region8/namespace8.0", "-1");
  system_->Mount("259:8", Escaped(), "ext4", "/dev/pmem8", "rw", "rw,dax=always");
  const Device device = Find(data_);
  EXPECT_EQ(device.name, "pmem8") << "of two mounts on one point the later counts";
  EXPECT_EQ(device.numa_node, kUnknownNumaNode);
  std::filesystem::remove_all(system_->root() + "/sys");
  EXPECT_EQ(Find(data_).name, "");
}

TEST_F(DeviceTest, MemoryHasTheNodeOfItsPolicy) {
  const auto node = [&](const std::string& options) {
    system_->Mount("0:60", Escaped(), "tmpfs", "tmpfs", "rw,nosuid", options);
    const Device device = Find(data_);
    EXPECT_EQ(device.kind, DeviceKind::kMemory);
    return device.numa_node;
  };
  EXPECT_EQ(node("rw,size=1024k"), kUnknownNumaNode);
  EXPECT_EQ(node("rw,size=1024k,mpol=bind:1,inode64"), 1);
  EXPECT_EQ(Find(data_).numa_node_from, "mpol=bind:1");
  EXPECT_EQ(node("rw,mpol=prefer=static:2"), 2);
  EXPECT_EQ(node("rw,mpol=interleave:0,2-3,size=1k"), kUnknownNumaNode);
  EXPECT_EQ(node("rw,mpol=local"), kUnknownNumaNode);
}

TEST_F(DeviceTest, DaxDevicesAreTheirOwn) {
  system_->AddDaxDevice("dax1.0", "252:3", "1");
  const Device device = Find(system_->root() + "/dev/dax1.0");
  EXPECT_EQ(device.kind, DeviceKind::kDeviceDax);
  EXPECT_EQ(device.name, "dax1.0");
  EXPECT_EQ(device.numa_node, 1);
  EXPECT_EQ(device.major_number, 252u);
  EXPECT_EQ(device.minor_number, 3u);
  EXPECT_EQ(device.mount_point, "");
  Device null;
  ASSERT_TRUE(FindDevice("/dev/null", "", &null).ok());
  EXPECT_NE(null.kind, DeviceKind::kDeviceDax);
}

TEST_F(DeviceTest, ErrorsSayWhatIsMissing) {
  Device device;
  EXPECT_TRUE(FindDevice(data_ + "/nothing", system_->root(), &device).IsNotFound());
  std::filesystem::remove(system_->root() + "/proc/self/mountinfo");
  const Status status = FindDevice(data_, system_->root(), &device);
  EXPECT_TRUE(status.IsIOError());
  EXPECT_NE(status.ToString().find("mountinfo"), std::string::npos) << status.ToString();
}

TEST_F(DeviceTest, ThisMachineHasTheDirectoryOfTheTest) {
  Device device;
  ASSERT_TRUE(FindDevice(data_, "", &device).ok());
  EXPECT_NE(device.mount_point, "");
  EXPECT_NE(device.file_system, "");
}

}  // namespace
}  // namespace braiddb
