// What the doctor says of places for a database, in made-up systems.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <map>

#include "check/doctor.h"
#include "pmem/persist_mode.h"
#include "tests/support/fake_system.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

class DoctorTest : public testing::Test {
 protected:
  DoctorTest() {
    fs::create_directories(dir_.Sub("root"));
    fs::create_directories(dir_.Sub("data"));
    data_ = fs::canonical(dir_.Sub("data")).string();
    system_ = std::make_unique<FakeSystem>(dir_.Sub("root"));
    options_.system_root = system_->root();
    options_.try_map_sync = [this](const std::string&) { return map_sync_error_; };
    system_->Write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    system_->Write("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size advise [never] deny force\n");
  }
  Diagnosis Ask(const std::string& path) const {
    Diagnosis diagnosis;
    const Status status = Diagnose(path, options_, &diagnosis);
    EXPECT_TRUE(status.ok()) << status.ToString();
    // Whatever is not as it should be has an advice.
    for (const DoctorFinding& finding : diagnosis.findings)
      EXPECT_EQ(finding.level == DoctorLevel::kGood, finding.advice.empty()) << finding.topic;
    return diagnosis;
  }
  // All findings of a topic, as "level: what".
  static std::string Of(const Diagnosis& diagnosis, const std::string& topic) {
    std::string text;
    for (const DoctorFinding& finding : diagnosis.findings) {
      if (finding.topic == topic) text += std::string(NameOf(finding.level)) + ": " + finding.what + "\n";
    }
    return text;
  }
  static bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
  void MountDax() {
    system_->MakeSwapped(data_, "/nowhere");
    system_->Write("/sys/devices/ndbus0/region0/mappings", "2\n");
    system_->Write("/sys/devices/ndbus0/region0/mapping0", "nmem0,0,536870912,0\n");
    system_->Write("/sys/devices/ndbus0/region0/mapping1", "nmem3,0,536870912,0\n");
    system_->Write("/sys/bus/nd/devices/nmem0/nfit/dirty_shutdown", "7\n");
    system_->Write("/sys/bus/nd/devices/nmem3/nfit/dirty_shutdown", "12\n");
    system_->Write("/sys/bus/nd/devices/nmem0/nfit/flags", "\n");
    system_->Write("/sys/bus/nd/devices/region0/persistence_domain", "memory_controller\n");
  }

  PmemTempDir dir_;
  std::string data_;
  std::unique_ptr<FakeSystem> system_;
  DoctorOptions options_;
  int map_sync_error_ = 0;
};

TEST_F(DoctorTest, DaxIsFitForADatabase) {
  MountDax();
  const Diagnosis dax = Ask(data_);
  EXPECT_FALSE(dax.needs_change());
  EXPECT_EQ(dax.persist_mode, PersistMode::kCacheLine);
  EXPECT_EQ(Of(dax, "media"), "good: DAX, device pmem0 (259:0)\n");
  EXPECT_TRUE(Has(Of(dax, "mount"), "ext4 on " + data_ + " (rw,relatime,rw,dax=always), from /dev/pmem0")) << Of(dax, "mount");
  EXPECT_TRUE(Has(Of(dax, "map_sync"), "accepted"));
  EXPECT_TRUE(Has(Of(dax, "persist_mode"), "region0 says memory_controller")) << Of(dax, "persist_mode");
  EXPECT_TRUE(Has(Of(dax, "numa"), "node 1 of 2")) << Of(dax, "numa");
  EXPECT_EQ(Of(dax, "unsafe_shutdowns"), "good: counts of the modules: nmem0 7, nmem3 12\n");
  EXPECT_TRUE(Has(Of(dax, "database"), "threads of NUMA node 1")) << Of(dax, "database");
  EXPECT_GT(dax.available_bytes, 0u);
  system_->Write("/sys/bus/nd/devices/region0/persistence_domain", "cpu_cache\n");
  EXPECT_EQ(Ask(data_).persist_mode, PersistMode::kEadr);
  system_->Write("/sys/bus/nd/devices/region1/persistence_domain", "memory_controller\n");
  EXPECT_EQ(Ask(data_).persist_mode, PersistMode::kCacheLine);
}

TEST_F(DoctorTest, DaxWithFaultsMustBeChanged) {
  MountDax();
  map_sync_error_ = EOPNOTSUPP;
  const Diagnosis refused = Ask(data_);
  EXPECT_TRUE(refused.needs_change());
  EXPECT_TRUE(Has(Of(refused, "map_sync"), "change: refused")) << Of(refused, "map_sync");
  EXPECT_EQ(refused.persist_mode, PersistMode::kPage);
  map_sync_error_ = ENOSPC;
  EXPECT_TRUE(Has(Of(Ask(data_), "map_sync"), "change: no file could be mapped"));
  map_sync_error_ = 0;
  system_->Write("/sys/bus/nd/devices/nmem3/nfit/flags", "save_fail flush_fail\n");
  EXPECT_TRUE(Has(Of(Ask(data_), "health"), "change: the firmware reports nmem3: save_fail flush_fail"));
  system_->Mount("259:0", data_, "ext4", "/dev/pmem0", "ro,relatime", "ro,dax=always");
  EXPECT_TRUE(Has(Of(Ask(data_), "mount"), "change: " + data_ + " is mounted read-only"));
}

TEST_F(DoctorTest, PersistentMemoryWithoutDaxMustBeChanged) {
  MountDax();
  map_sync_error_ = EOPNOTSUPP;
  system_->Mount("259:0", data_, "ext4", "/dev/pmem0", "rw", "rw");
  const Diagnosis plain = Ask(data_);
  EXPECT_TRUE(plain.needs_change());
  EXPECT_TRUE(Has(Of(plain, "dax"), "mounted without DAX")) << Of(plain, "dax");
  system_->AddBlockDevice("pmem2s", "259:2", "ndbus0/region2/btt2.0", "0");
  system_->Mount("259:2", data_, "ext4", "/dev/pmem2s", "rw", "rw");
  EXPECT_TRUE(Has(Of(Ask(data_), "dax"), "sector mode"));
}

TEST_F(DoctorTest, DisksWorkByPages) {
  map_sync_error_ = EOPNOTSUPP;
  const Diagnosis disk = Ask(data_);
  EXPECT_FALSE(disk.needs_change());
  EXPECT_EQ(disk.device.kind, DeviceKind::kDisk);
  EXPECT_EQ(disk.persist_mode, PersistMode::kPage);
  EXPECT_TRUE(Has(Of(disk, "dax"), "note: ")) << Of(disk, "dax");
  EXPECT_TRUE(Has(Of(disk, "map_sync"), "good: refused")) << Of(disk, "map_sync");
  EXPECT_EQ(Of(disk, "unsafe_shutdowns"), "");
}

TEST_F(DoctorTest, MemoryKeepsNothing) {
  map_sync_error_ = EOPNOTSUPP;
  system_->AddNode(0, "0", "10 20");
  system_->AddNode(1, "1", "20 10");
  system_->Mount("0:44", data_, "tmpfs", "tmpfs", "rw", "rw,size=1g");
  const Diagnosis memory = Ask(data_);
  EXPECT_FALSE(memory.needs_change());
  EXPECT_EQ(memory.persist_mode, PersistMode::kEmulated);
  EXPECT_TRUE(Has(Of(memory, "durability"), "lost with power"));
  EXPECT_TRUE(Has(Of(memory, "numa"), "2 nodes in turn")) << Of(memory, "numa");
  EXPECT_TRUE(Has(Of(memory, "huge_pages"), "of files in memory: never")) << Of(memory, "huge_pages");
  system_->Mount("0:44", data_, "tmpfs", "tmpfs", "rw", "rw,mpol=bind:1");
  EXPECT_TRUE(Has(Of(Ask(data_), "numa"), "node 1 of 2, says mpol=bind:1"));
}

TEST_F(DoctorTest, DeviceDaxIsOneRegion) {
  system_->AddDaxDevice("dax1.0", "252:3", "1");
  system_->Write("/sys/devices/ndbus0/region1/dax1.0/dax1.0/size", "532676608\n");
  const Diagnosis device = Ask(system_->root() + "/dev/dax1.0");
  EXPECT_FALSE(device.needs_change());
  EXPECT_EQ(device.persist_mode, PersistMode::kCacheLine);
  EXPECT_EQ(device.first_part_bytes, 532676608u);
  EXPECT_TRUE(Has(Of(device, "media"), "good: devdax, device dax1.0 (252:3)")) << Of(device, "media");
  EXPECT_TRUE(Has(Of(device, "media"), "note: it has no file system")) << Of(device, "media");
  EXPECT_TRUE(Has(Of(device, "numa"), "node 1")) << Of(device, "numa");
  EXPECT_TRUE(Has(Of(device, "database"), "its region has 508 MiB")) << Of(device, "database");
  EXPECT_TRUE(Has(Of(device, "space"), "508 MiB")) << Of(device, "space");
  EXPECT_EQ(Of(device, "map_sync"), "");
}

TEST_F(DoctorTest, UnknownNodesAndSmallPagesAreNotes) {
  MountDax();
  system_->Write("/sys/devices/ndbus0/region0/namespace0.0/numa_node", "-1\n");
  system_->Write("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  const Diagnosis diagnosis = Ask(data_);
  EXPECT_FALSE(diagnosis.needs_change());
  EXPECT_TRUE(Has(Of(diagnosis, "numa"), "note: ")) << Of(diagnosis, "numa");
  EXPECT_TRUE(Has(Of(diagnosis, "huge_pages"), "note: transparent huge pages: never")) << Of(diagnosis, "huge_pages");
}

TEST_F(DoctorTest, MissingPathsAreLookedAtFromAbove) {
  map_sync_error_ = EOPNOTSUPP;
  const Diagnosis missing = Ask(data_ + "/not/there");
  EXPECT_EQ(missing.examined, data_);
  EXPECT_TRUE(Has(Of(missing, "path"), "what is said is of " + data_)) << Of(missing, "path");
  EXPECT_FALSE(missing.needs_change());
  system_->Write("/file", "");
  for (const std::string& file : {system_->root() + "/file", system_->root() + "/file/below"}) {
    const Diagnosis diagnosis = Ask(file);
    EXPECT_TRUE(diagnosis.needs_change());
    EXPECT_TRUE(Has(Of(diagnosis, "path"), "change: " + system_->root() + "/file is no directory")) << Of(diagnosis, "path");
  }
}

TEST_F(DoctorTest, WhatCannotBeLookedAtIsAnError) {
  Diagnosis diagnosis;
  fs::create_symlink("circle", dir_.Sub("circle"));
  EXPECT_TRUE(Diagnose(dir_.Sub("circle"), options_, &diagnosis).IsIOError());
  EXPECT_TRUE(Diagnose(data_ + "/" + std::string(300, 'x'), options_, &diagnosis).IsIOError());
  EXPECT_TRUE(Diagnose("", options_, &diagnosis).IsInvalidArgument());
  fs::remove(system_->root() + "/proc/self/mountinfo");
  EXPECT_TRUE(Diagnose(data_, options_, &diagnosis).IsIOError());
}

TEST_F(DoctorTest, NothingIsLeftBehind) {
  Diagnosis diagnosis;
  for (const std::string& parent : {std::string("/dev/shm"), PmemTempDir::DiskParent()}) {
    const PmemTempDir dir(parent);
    ASSERT_TRUE(Diagnose(dir.path(), {}, &diagnosis).ok());
    EXPECT_TRUE(fs::is_empty(dir.path())) << dir.path();
    EXPECT_NE(Of(diagnosis, "map_sync"), "");
    EXPECT_FALSE(Has(Of(diagnosis, "map_sync"), "no file could be mapped")) << Of(diagnosis, "map_sync");
  }
}

}  // namespace
}  // namespace braiddb::test
