// Blocks of free segments go back to the file system and are taken again. Nothing in use changes, the pool stays sound, and a
// full file system is an error and no signal. [CC-66]
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "tests/support/failing_calls.h"
#include "tests/support/segment_test.h"
#include "util/huge_pages.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

constexpr auto kNeverStops = [] { return false; };

class GiveBackTest : public SegmentTest {
 protected:
  void SetUp() override { Begin(); }
  // Opens a region that is so large that all segments have the full size.
  void Begin(uint64_t bytes = 32 * kMiB) {
    Reopen();
    ASSERT_TRUE(store_.regions->ReserveBytes(bytes).ok());
  }
  // Bytes of the parts that have blocks.
  uint64_t BlockBytes() const {
    uint64_t bytes = 0;
    for (const auto& file : fs::directory_iterator(options_.database_path + "/region-0")) {
      struct stat st;
      if (stat(file.path().c_str(), &st) == 0) bytes += static_cast<uint64_t>(st.st_blocks) * 512;
    }
    return bytes;
  }
  uint64_t Punched() { return allocator()->GetUsage(0).punched_bytes; }
  void GiveBack(uint64_t kept = 0, int calls = SegmentAllocator::kGiveBackWindow + 1) {
    for (int i = 0; i < calls; ++i) allocator()->GiveBackFree(kept, kNeverStops);
  }
  // A segment whose bytes all have the value, sealed.
  Segment* Filled(uint8_t value) {
    Segment* const segment = Allocate();
    if (segment == nullptr) return nullptr;
    std::memset(segment->data(), value, segment->capacity());
    EXPECT_TRUE(allocator()->Seal(segment, segment->capacity(), value).ok());
    return segment;
  }
  static void ExpectHolds(const Segment* segment, uint8_t value) {
    const uint8_t* const data = segment->data();
    EXPECT_EQ(data[0], value);
    EXPECT_EQ(std::memcmp(data, data + 1, segment->capacity() - 1), 0);
  }
  // `live` segments stay, each between others, which are released.
  std::vector<Segment*> Spread(int live, int released) {
    std::vector<Segment*> kept, others;
    for (int i = 0; i < live + released; ++i) {
      const bool stays = i % ((live + released) / live) == 0 && kept.size() < static_cast<size_t>(live);
      (stays ? kept : others).push_back(Filled(static_cast<uint8_t>(stays ? kept.size() + 1 : 99)));
    }
    for (Segment* segment : others) EXPECT_TRUE(allocator()->Release(segment).ok());
    return kept;
  }
  static void ExpectAllHold(const std::vector<Segment*>& segments) {
    for (size_t i = 0; i < segments.size(); ++i) ExpectHolds(segments[i], static_cast<uint8_t>(i + 1));
  }
};

TEST_F(GiveBackTest, BlocksFallAndSegmentsAreUsedAgain) {
  const std::vector<Segment*> kept = Spread(4, 60);
  const uint64_t before = BlockBytes();
  GiveBack();
  EXPECT_GT(Punched(), 54 * (kMiB - 128));
  EXPECT_LT(BlockBytes(), before - 54 * (kMiB - 2 * kBlockPageBytes));
  ExpectAllHold(kept);
  EXPECT_FALSE(allocator()->HasSuperfluous(0));
  ExpectNoLeak();

  const uint64_t reserved = store_.regions->ReservedBytes(0);
  std::set<Segment*> used;
  for (int i = 0; i < 60; ++i) used.insert(Filled(77));
  EXPECT_EQ(used.size(), 60u);
  for (const Segment* segment : used) ExpectHolds(segment, 77);
  ExpectAllHold(kept);
  EXPECT_EQ(Punched(), 0u);
  EXPECT_EQ(store_.regions->ReservedBytes(0), reserved) << "grew beside segments that were free";
  EXPECT_GE(BlockBytes(), before);
  ExpectNoLeak();
  store_ = Store();
  EXPECT_TRUE(PoolIsConsistent(SetPath()));
}

TEST_F(GiveBackTest, WhatWasUsedLatelyAndWhatIsToBeKeptStays) {
  Spread(1, 40);
  for (int i = 0; i < SegmentAllocator::kGiveBackWindow; ++i) {
    GiveBack(0, 1);
    EXPECT_EQ(Punched(), 0u) << "call " << i;
  }
  // Half of the free segments are in use for a moment: these are needed.
  std::vector<Segment*> used;
  for (int i = 0; i < 15; ++i) used.push_back(Allocate());
  for (Segment* segment : used) ASSERT_TRUE(allocator()->Release(segment).ok());
  EXPECT_TRUE(allocator()->HasSuperfluous(0));
  EXPECT_FALSE(allocator()->HasSuperfluous(UINT64_MAX));
  for (int i = 0; i < SegmentAllocator::kGiveBackWindow; ++i) {
    GiveBack(0, 1);
    EXPECT_EQ(Punched(), 21 * (kMiB - 128)) << "of 40, 15 were used and 4 are kept";
  }
  const auto with_blocks = [&] { return allocator()->GetUsage(0).free_bytes - Punched(); };
  GiveBack(10 * kMiB);
  EXPECT_GE(with_blocks(), 10 * (kMiB - 128));
  EXPECT_LE(with_blocks(), 11 * kMiB);
  GiveBack(0);
  EXPECT_GE(with_blocks(), 4 * (kMiB - 128)) << "what SpaceUse needs";
  EXPECT_LE(with_blocks(), 5 * kMiB);
  // Spares have blocks.
  allocator()->PrepareSpares(0, 8);
  EXPECT_GE(with_blocks(), 8 * (kMiB - 128));
}

TEST_F(GiveBackTest, ACallEndsWhereItIsToldTo) {
  Spread(1, 40);
  GiveBack(0, SegmentAllocator::kGiveBackWindow);
  int asked = 0;
  allocator()->GiveBackFree(0, [&] { return ++asked > 3; });
  EXPECT_EQ(allocator()->GetUsage(0).punched_segments, 3u);
}

// The file system reports reserved blocks without data as holes. They go back after an open, at the rate of other blocks.
TEST_F(GiveBackTest, ReservedBlocksWithoutDataGoBackAfterAnOpen) {
  std::vector<Segment*> segments;
  for (int i = 0; i < 40; ++i) segments.push_back(Filled(1));
  for (Segment* segment : segments) ASSERT_TRUE(allocator()->Release(segment).ok());
  GiveBack();
  const uint64_t blocks = BlockBytes();
  segments.clear();
  for (int i = 0; i < 36; ++i) {
    segments.push_back(Allocate());
    std::memset(segments.back()->data(), 2, segments.back()->capacity() / 2);
  }
  for (Segment* segment : segments) ASSERT_TRUE(allocator()->Release(segment).ok());
  const uint64_t taken = BlockBytes();
  ASSERT_GT(taken, blocks + 16 * segments[0]->capacity());
  Reopen();
  const auto usage = allocator()->GetUsage(0);
  EXPECT_LE(usage.punched_segments, 8u) << "segments with blocks do not count";
  GiveBack(0, 1);
  EXPECT_EQ(BlockBytes(), taken) << "the window has not passed";
  GiveBack();
  EXPECT_LE(BlockBytes(), blocks + kMiB);
  EXPECT_GT(allocator()->GetUsage(0).punched_segments, 16u);
}

// An open leaves the holes of free segments, and fills those of others.
TEST_F(GiveBackTest, AnOpenLeavesHolesOfFreeSegmentsOnly) {
  const std::vector<Segment*> kept = Spread(4, 60);
  std::vector<PmPtr> starts;
  for (const Segment* segment : kept) starts.push_back(segment->ptr(0));
  Segment* const zeros = Filled(0);  // a copy may have a hole there
  const uint64_t hole = zeros->ptr(0).offset();
  GiveBack();
  const uint64_t punched = Punched();
  const uint64_t blocks = BlockBytes();
  for (int copies = 0; copies < 2; ++copies) {
    store_ = Store();
    EXPECT_TRUE(PoolIsConsistent(SetPath()));
    PartBlocks parts;
    std::vector<uint64_t> sizes;
    for (int i = 0; fs::exists(options_.database_path + "/region-0/" + PartName(i)); ++i)
      sizes.push_back(fs::file_size(options_.database_path + "/region-0/" + PartName(i)));
    parts.Start(options_.database_path + "/region-0", sizes);
    const PoolRange pages = PagesInside(hole, hole + 300 * 1024);
    ASSERT_TRUE(parts.GiveBack(pages).ok());
    EXPECT_EQ(parts.Find(pages), PartBlocks::Found::kNone);
    EXPECT_LT(BlockBytes(), blocks);
    Reopen();
    EXPECT_EQ(BlockBytes(), blocks) << "the hole of a segment in use has blocks again, those of free ones have none";
    EXPECT_EQ(Punched(), punched);
    for (size_t i = 0; i < starts.size(); ++i) ExpectHolds(allocator()->Find(starts[i]), static_cast<uint8_t>(i + 1));
    ExpectNoLeak();
  }
  for (int i = 0; i < 60; ++i) Filled(5);
  EXPECT_EQ(Punched(), 0u);
  // A smaller segment size returns free segments to the pool, which needs their blocks.
  for (Segment* segment : Used()) {
    if (segment->sealed_last_sequence() == 5) {
      ASSERT_TRUE(allocator()->Release(segment).ok());
    }
  }
  GiveBack();
  EXPECT_GT(Punched(), 0u);
  segment_size_ = kSmallSegment;
  Reopen();
  EXPECT_EQ(Punched(), 0u);
  EXPECT_GE(BlockBytes(), store_.regions->ReservedBytes(0));
  for (size_t i = 0; i < starts.size(); ++i) ExpectHolds(allocator()->Find(starts[i]), static_cast<uint8_t>(i + 1));
  ExpectNoLeak();
}

// A request that no segment fits returns free segments to the pool, with their blocks.
TEST_F(GiveBackTest, PunchedSegmentsGiveRoomForALargerOne) {
  options_ = PmemOptions(dir_.Sub("small"), 1, 32 * kMiB);
  Begin();
  std::vector<Segment*> all;
  Segment* segment = nullptr;
  while (allocator()->Allocate(0, 1, &segment).ok()) all.push_back(segment);
  ASSERT_GT(all.size(), 20u);
  for (Segment* each : all) ASSERT_TRUE(allocator()->Release(each).ok());
  GiveBack();
  EXPECT_GT(Punched(), 15 * kMiB);
  segment = Allocate(20 * kMiB);
  ASSERT_NE(segment, nullptr);
  std::memset(segment->data(), 3, segment->capacity());
  ExpectHolds(segment, 3);
  ExpectNoLeak();
}

// ---- Errors

TEST_F(GiveBackTest, AFileSystemThatCannotIsAskedOnce) {
  std::vector<std::string> lines;
  options_.info_log = [&lines](std::string_view line) { lines.emplace_back(line); };
  Begin();
  const std::vector<Segment*> kept = Spread(4, 60);
  GiveBack(0, SegmentAllocator::kGiveBackWindow);
  lines.clear();
  const uint64_t before = BlockBytes();
  FailingCalls::Arm(0, EOPNOTSUPP, FailingCalls::kForEver, "fallocate");
  GiveBack();
  FailingCalls::Stop();
  EXPECT_EQ(FailingCalls::failed(), 1);
  GiveBack();
  EXPECT_EQ(lines.size(), 1u);
  EXPECT_NE(lines.at(0).find("keeps the blocks"), std::string::npos) << lines.at(0);
  EXPECT_EQ(Punched(), 0u);
  EXPECT_EQ(BlockBytes(), before);
  EXPECT_FALSE(allocator()->HasSuperfluous(0));
  ExpectAllHold(kept);
}

TEST_F(GiveBackTest, AnInterruptedCallIsRepeated) {
  Spread(1, 40);
  GiveBack(0, SegmentAllocator::kGiveBackWindow);
  FailingCalls::Arm(0, EINTR, 1, "fallocate");
  GiveBack(0, 1);
  EXPECT_EQ(FailingCalls::failed(), 1);
  FailingCalls::Stop();
  EXPECT_EQ(allocator()->GetUsage(0).punched_segments, 36u);
  const uint64_t reserved = store_.regions->ReservedBytes(0);
  for (int i = 0; i < 4; ++i) Allocate();
  FailingCalls::Arm(0, EINTR, 1, "posix_fallocate");
  Filled(8);
  EXPECT_EQ(FailingCalls::failed(), 1);
  FailingCalls::Stop();
  EXPECT_EQ(allocator()->GetUsage(0).punched_segments, 35u);
  EXPECT_EQ(store_.regions->ReservedBytes(0), reserved);
}

// tmpfs keeps blocks of a huge page that it cannot split, and returns success.
TEST_F(GiveBackTest, BlocksThatAPunchLeavesArePunchedAgain) {
  struct statfs file_system;
  ASSERT_EQ(statfs(options_.database_path.c_str(), &file_system), 0);
  if (file_system.f_type != TMPFS_MAGIC) GTEST_SKIP() << "no tmpfs for test files; mount one at /dev/shm";
  const std::vector<Segment*> kept = Spread(4, 60);
  GiveBack(0, SegmentAllocator::kGiveBackWindow);
  const uint64_t before = BlockBytes();
  constexpr int kLeft = 6;
  FailingCalls::Arm(0, 0, kLeft, "fallocate");
  GiveBack(0, 1);
  FailingCalls::Stop();
  EXPECT_EQ(FailingCalls::failed(), kLeft);
  EXPECT_GT(Punched(), 54 * (kMiB - 128));
  EXPECT_LT(BlockBytes(), before - 54 * (kMiB - 2 * kBlockPageBytes));
  ExpectAllHold(kept);
}

// The tries end, and what stays is used again like all other free space.
TEST_F(GiveBackTest, BlocksThatEveryPunchLeavesAreNoError) {
  const std::vector<Segment*> kept = Spread(4, 60);
  GiveBack(0, SegmentAllocator::kGiveBackWindow);
  FailingCalls::Arm(0, 0, FailingCalls::kForEver, "fallocate");
  GiveBack(0, 1);
  FailingCalls::Stop();
  EXPECT_GT(FailingCalls::failed(), 0);
  EXPECT_FALSE(allocator()->HasSuperfluous(0));
  ExpectAllHold(kept);
  for (int i = 0; i < 60; ++i) ASSERT_NE(Filled(77), nullptr);
  ExpectAllHold(kept);
  EXPECT_EQ(Punched(), 0u);
  ExpectNoLeak();
}

// Blocks that the file system refuses are sought elsewhere; in the end the allocation fails, and the segments stay punched.
TEST_F(GiveBackTest, WithoutBlocksAnAllocationFindsOtherSpaceOrFails) {
  options_ = PmemOptions(dir_.Sub("small"), 1, 64 * kMiB);
  Begin();
  const std::vector<Segment*> kept = Spread(4, 40);
  GiveBack();
  const uint64_t punched = Punched();
  ASSERT_GT(punched, 0u);
  FailingCalls::Arm(0, ENOSPC, FailingCalls::kForEver, "posix_fallocate fallocate");
  Segment* segment = nullptr;
  Status status;
  int allocated = 0;
  for (; allocated < 100 && status.ok(); ++allocated) {
    status = allocator()->Allocate(0, 1, &segment);
    if (status.ok()) std::memset(segment->data(), 9, segment->capacity());
  }
  FailingCalls::Stop();
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_GE(allocated, 4);
  EXPECT_EQ(Punched(), punched);
  ExpectAllHold(kept);
  EXPECT_NE(Filled(9), nullptr);
  EXPECT_LT(Punched(), punched);
  ExpectNoLeak();
}

// A directory may be moved, and a copy of the database put in its place. The copy's files are not the region's.
TEST_F(GiveBackTest, FilesInThePlaceOfThePartsKeepTheirBlocks) {
  const std::vector<Segment*> kept = Spread(4, 60);
  const std::string path = options_.database_path;
  fs::copy(path, path + ".copy", fs::copy_options::recursive);
  fs::rename(path, path + ".moved");
  fs::rename(path + ".copy", path);
  const uint64_t before = BlockBytes();
  GiveBack();
  EXPECT_EQ(BlockBytes(), before);
  EXPECT_EQ(Punched(), 0u);
  ExpectAllHold(kept);
}

// Blocks are taken through the mapping if the files cannot be opened: there is no file descriptor, or other files are in place.
TEST_F(GiveBackTest, BlocksAreTakenWithoutTheFiles) {
  void* const page = mmap(nullptr, kBlockPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  const bool is_known = PopulatePages(page, kBlockPageBytes) == 0;
  munmap(page, kBlockPageBytes);
  if (!is_known) GTEST_SKIP() << "the kernel has no MADV_POPULATE_WRITE";
  const std::vector<Segment*> kept = Spread(4, 60);
  GiveBack();
  const uint64_t punched = Punched();
  const uint64_t blocks = BlockBytes();
  ASSERT_GT(punched, 20 * kMiB);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  for (int i = 0; i < 20; ++i) Filled(7);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_LT(Punched(), punched);
  EXPECT_GT(BlockBytes(), blocks);
  const uint64_t left = Punched();
  fs::rename(options_.database_path, options_.database_path + ".moved");
  for (int i = 0; i < 10; ++i) Filled(8);
  fs::rename(options_.database_path + ".moved", options_.database_path);
  EXPECT_LT(Punched(), left);
  ExpectAllHold(kept);
  for (const Segment* segment : Used()) {
    if (segment->sealed_last_sequence() == 7 || segment->sealed_last_sequence() == 8)
      ExpectHolds(segment, static_cast<uint8_t>(segment->sealed_last_sequence()));
  }
}

// A real file system that is full. A store to a page without a block would end the test by SIGBUS.
class FullFileSystemTest : public GiveBackTest {
 protected:
  void SetUp() override {
    fs::create_directory(dir_.Sub("mount"));
    if (mount("none", dir_.Sub("mount").c_str(), "tmpfs", 0, "size=64m") != 0) GTEST_SKIP() << "cannot mount a tmpfs";
    options_ = PmemOptions(dir_.Sub("mount/db"));
    Begin(16 * kMiB);
  }
  void TearDown() override {
    store_ = Store();
    umount2(dir_.Sub("mount").c_str(), MNT_DETACH);
  }
  void FillUp() const {
    std::ofstream out(dir_.Sub("mount/filler"), std::ios::binary);
    const std::string block(4096, 'x');
    while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void Free() const { fs::remove(dir_.Sub("mount/filler")); }
};

TEST_F(FullFileSystemTest, IsAnErrorAndNoSignal) {
  const std::vector<Segment*> kept = Spread(4, 30);
  GiveBack();
  ASSERT_GT(Punched(), 20 * kMiB);
  const uint64_t punched = Punched();
  FillUp();
  Segment* segment = nullptr;
  std::vector<Segment*> got;
  Status status;
  while ((status = allocator()->Allocate(0, 1, &segment)).ok()) {
    std::memset(segment->data(), 55, segment->capacity());
    got.push_back(segment);
    ASSERT_LT(got.size(), 20u);
    allocator()->PrepareSpares(0, 4);
  }
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  for (const Segment* each : got) ExpectHolds(each, 55);
  ExpectAllHold(kept);
  EXPECT_GE(Punched() + 5 * kMiB, punched);
  ExpectNoLeak();

  // A database on a full file system opens, and has what it had.
  std::vector<PmPtr> starts;
  for (const Segment* each : kept) starts.push_back(each->ptr(0));
  Reopen();
  ASSERT_NE(store_.allocator, nullptr);
  for (size_t i = 0; i < starts.size(); ++i) ExpectHolds(allocator()->Find(starts[i]), static_cast<uint8_t>(i + 1));
  EXPECT_TRUE(allocator()->Allocate(0, 1, &segment).IsNoSpace());

  Free();
  for (int i = 0; i < 20; ++i) Filled(66);
  for (size_t i = 0; i < starts.size(); ++i) ExpectHolds(allocator()->Find(starts[i]), static_cast<uint8_t>(i + 1));
  ExpectNoLeak();
  store_ = Store();
  EXPECT_TRUE(PoolIsConsistent(SetPath()));
}

// Pages of zeros that a copy left out are holes, also in the lanes of PMDK's pool. An open reads no hole that has no block.
TEST_F(FullFileSystemTest, ASparseCopyIsAnErrorAndNoSignal) {
  const std::vector<Segment*> kept = Spread(4, 30);
  std::vector<PmPtr> starts;
  for (const Segment* each : kept) starts.push_back(each->ptr(0));
  store_ = Store();
  uint64_t holes = 0;
  for (const auto& file : fs::directory_iterator(options_.database_path + "/region-0")) {
    if (file.path().extension() != ".pmem") continue;
    const int fd = open(file.path().c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    std::vector<char> page(kBlockPageBytes);
    for (off_t at = 0; pread(fd, page.data(), page.size(), at) == static_cast<ssize_t>(page.size()); at += kBlockPageBytes) {
      if (std::ranges::any_of(page, [](char byte) { return byte != 0; })) continue;
      ASSERT_EQ(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, kBlockPageBytes), 0);
      ++holes;
    }
    close(fd);
  }
  ASSERT_GT(holes, 100u);
  FillUp();
  const Status status = Store::Open(options_, segment_size_, &store_);
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  Free();
  Reopen();
  for (size_t i = 0; i < starts.size(); ++i) ExpectHolds(allocator()->Find(starts[i]), static_cast<uint8_t>(i + 1));
  ExpectNoLeak();
}

// ---- Crashes

// [CC-66] Ended at each drain: what is in use is as it was, nothing leaks, and the pool is sound.
TEST_F(GiveBackTest, ACrashAtEachPersistLosesNothing) {
  segment_size_ = kSmallSegment;
  for (int at = 0;; ++at) {
    options_ = PmemOptions(dir_.Sub("crash" + std::to_string(at)));
    Begin(4 * kMiB);
    const std::vector<Segment*> kept = Spread(2, 20);
    std::vector<PmPtr> starts;
    for (const Segment* segment : kept) starts.push_back(segment->ptr(0));
    store_ = Store();
    const int code = RunInChild([&] {
      if (!Store::Open(options_, segment_size_, &store_).ok()) return 1;
      ExitAtDrain exit_at_drain(at);
      store_.regions->persistence()->SetObserver(&exit_at_drain);
      for (int round = 0; round < 2; ++round) {
        GiveBack();
        std::vector<Segment*> used;
        for (int i = 0; i < 18; ++i) {
          Segment* segment = nullptr;
          if (!allocator()->Allocate(0, 1, &segment).ok()) return 2;
          std::memset(segment->data(), 200, segment->capacity());
          used.push_back(segment);
        }
        for (Segment* segment : used) {
          if (!allocator()->Release(segment).ok()) return 3;
        }
      }
      return 0;
    });
    if (code != 0) {
      ASSERT_EQ(code, ExitAtDrain::kExitCode);
    }
    EXPECT_TRUE(PoolIsConsistent(SetPath()));
    Reopen();
    ExpectNoLeak();
    for (size_t i = 0; i < starts.size(); ++i) {
      ASSERT_NE(allocator()->Find(starts[i]), nullptr);
      ExpectHolds(allocator()->Find(starts[i]), static_cast<uint8_t>(i + 1));
    }
    for (int i = 0; i < 30; ++i) ASSERT_NE(Filled(3), nullptr);
    for (size_t i = 0; i < starts.size(); ++i) ExpectHolds(allocator()->Find(starts[i]), static_cast<uint8_t>(i + 1));
    store_ = Store();
    ASSERT_TRUE(RegionSet::Destroy(options_).ok());
    if (code == 0) break;
  }
}

// [CC-66] The order of a hole: no segment has lost blocks before the store that makes it free is durable.
TEST_F(GiveBackTest, AHoleComesWhenTheSegmentIsFreeOnMedia) {
  struct Order final : PersistObserver {
    void OnFlush(const void*, size_t) override { has_flushed = true; }
    void OnDrain() override { has_flushed = false; }
    void OnHole(const void* address, size_t bytes) override {
      EXPECT_FALSE(has_flushed);
      const Segment* const segment = store->allocator->Find(store->regions->Find(address));
      ASSERT_NE(segment, nullptr);
      EXPECT_EQ(segment->state(), SegmentState::kFree);
      EXPECT_TRUE(segment->Contains(store->regions->Find(static_cast<const uint8_t*>(address) + bytes - 1)));
      ++holes;
    }
    Store* store = nullptr;
    bool has_flushed = false;
    int holes = 0;
  } order;
  order.store = &store_;
  store_.regions->persistence()->SetObserver(&order);
  Spread(2, 30);
  GiveBack();
  EXPECT_EQ(order.holes, 26) << "four are kept";
  store_.regions->persistence()->SetObserver(nullptr);
}

// ---- Threads

TEST_F(GiveBackTest, SegmentsInUseNeverChange) {
  segment_size_ = kSmallSegment;
  Reopen();
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> uses{0};
  std::atomic<uint64_t> punched{0};
  std::vector<std::thread> threads;
  for (uint8_t number = 1; number <= 3; ++number) {
    threads.emplace_back([&, number] {
      std::mt19937 random(number);
      std::vector<Segment*> own;
      while (!ends.load()) {
        if (own.size() < 5 + random() % 25) {
          Segment* segment = nullptr;
          ASSERT_TRUE(allocator()->Allocate(0, 1, &segment).ok());
          std::memset(segment->data(), number, segment->capacity());
          own.push_back(segment);
          uses.fetch_add(1);
        } else {
          while (own.size() > 3) {
            ExpectHolds(own.back(), number);
            ASSERT_TRUE(allocator()->Release(own.back()).ok());
            own.pop_back();
          }
        }
      }
      for (Segment* segment : own) {
        ExpectHolds(segment, number);
        ASSERT_TRUE(allocator()->Release(segment).ok());
      }
    });
  }
  for (int round = 0; uses.load() < 3000 || round < 300; ++round) {
    allocator()->GiveBackFree(0, kNeverStops);
    punched.store(std::max(punched.load(), Punched()));
    if (round % 3 == 0) allocator()->PrepareSpares(0, 6);
    std::this_thread::yield();
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(punched.load(), 0u);
  ExpectNoLeak();
  GiveBack();
  EXPECT_GT(Punched(), 0u);
}

}  // namespace
}  // namespace braiddb::test
