// Huge pages of files on tmpfs: what is asked for is a hint, but never an error, and never anything but zeros.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/db_test_util.h"
#include "util/huge_pages.h"

namespace braiddb::test {
namespace {

constexpr uint64_t kHugePage = 2ull << 20;

class HugePagesTest : public testing::Test {
 protected:
  int Open(const std::string& name, int flags = O_RDWR) const {
    return open(directory_.File(name).c_str(), flags | O_CREAT | O_CLOEXEC, 0600);
  }
  static uint64_t AllocatedBytes(int fd) {
    struct stat file;
    EXPECT_EQ(fstat(fd, &file), 0);
    return static_cast<uint64_t>(file.st_blocks) * 512;
  }
  static void ExpectZeros(int fd, uint64_t bytes) {
    std::vector<char> content(bytes + 1);
    ASSERT_EQ(pread(fd, content.data(), content.size(), 0), static_cast<ssize_t>(bytes));
    EXPECT_TRUE(std::all_of(content.begin(), content.end(), [](char byte) { return byte == 0; }));
  }
  // Maps the first `bytes` of a file at a multiple of 2 MiB; the kernel collapses only ranges where address and offset agree.
  static char* MapAligned(int fd, uint64_t bytes) {
    void* const range = mmap(nullptr, bytes + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uintptr_t aligned = (reinterpret_cast<uintptr_t>(range) + kHugePage - 1) / kHugePage * kHugePage;
    void* const address = reinterpret_cast<void*>(aligned);
    EXPECT_EQ(mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), address);
    return static_cast<char*>(address);
  }
  // Whether the system collapses the small pages of a file of three huge pages, here and now: the memory may be too fragmented.
  bool HasHugePages() const {
    const int fd = Open("probe", O_RDWR | O_TRUNC);
    EXPECT_EQ(posix_fallocate(fd, 0, 3 * kHugePage), 0);
    char* const address = MapAligned(fd, 3 * kHugePage);
    constexpr int kCollapse = 25;
    const bool has = madvise(address, 3 * kHugePage, kCollapse) == 0;
    munmap(address, 3 * kHugePage);
    close(fd);
    return has;
  }
  TestDirectory directory_;
};

TEST_F(HugePagesTest, AFileIsFilledWithZeros) {
  // The system may refuse a huge page at any moment, so the fill gets several chances.
  bool filled = false;
  bool refused = false;
  for (int attempt = 0; attempt < 10 && !filled; ++attempt) {
    refused = refused || !HasHugePages();
    const int fd = Open("file" + std::to_string(attempt));
    void* address = nullptr;
    FillWithHugePages(fd, 3 * kHugePage, [&](void* mapped) {
      address = mapped;
      EXPECT_EQ(AllocatedBytes(fd), 0u);
    });
    EXPECT_NE(address, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % kHugePage, 0u);
    ExpectZeros(fd, 3 * kHugePage);
    EXPECT_LE(AllocatedBytes(fd), 3 * kHugePage);
    filled = AllocatedBytes(fd) == 3 * kHugePage;
    EXPECT_EQ(posix_fallocate(fd, 0, 3 * kHugePage), 0);
    EXPECT_EQ(AllocatedBytes(fd), 3 * kHugePage);
    close(fd);
  }
  EXPECT_TRUE(filled || refused);
}

TEST_F(HugePagesTest, ACollapseTakesAnyAddress) {
  if (!HasHugePages()) GTEST_SKIP() << "no huge pages here";
  const int fd = Open("file");
  ASSERT_EQ(posix_fallocate(fd, 0, 3 * kHugePage), 0);
  char* const file = MapAligned(fd, 3 * kHugePage);
  std::memset(file, 7, 3 * kHugePage);
  // The system may refuse a huge page at any moment, so the collapse gets several chances.
  int result = -1;
  bool refused = false;
  for (int attempt = 0; attempt < 10 && result != 0; ++attempt) {
    refused = refused || !HasHugePages();
    result = CollapseHugePages(file + 64, 3 * kHugePage - 64);
    ASSERT_NE(result, EINVAL);
  }
  EXPECT_TRUE(result == 0 || refused) << result;
  EXPECT_EQ(file[3 * kHugePage - 1], 7);
  munmap(file, 3 * kHugePage);
  close(fd);
}

TEST_F(HugePagesTest, WhatIsRefusedIsLeft) {
  FillWithHugePages(-1, kHugePage, [](void*) { FAIL() << "nothing is mapped"; });
  const int made = Open("file");
  const int fd = Open("file", O_RDONLY);
  FillWithHugePages(fd, kHugePage, [](void*) { FAIL() << "nothing is mapped"; });
  EXPECT_EQ(AllocatedBytes(fd), 0u);
  close(fd);
  close(made);
}

TEST_F(HugePagesTest, AFullFileSystemEndsIt) {
  const std::string small = directory_.File("small");
  ASSERT_EQ(mkdir(small.c_str(), 0700), 0);
  if (mount("tmpfs", small.c_str(), "tmpfs", 0, "size=3m") != 0) GTEST_SKIP() << "cannot mount";
  const int fd = Open("small/file");
  FillWithHugePages(fd, 4 * kHugePage, [](void*) {});
  ExpectZeros(fd, 4 * kHugePage);
  EXPECT_NE(posix_fallocate(fd, 0, 4 * kHugePage), 0);
  close(fd);
  umount2(small.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace braiddb::test
