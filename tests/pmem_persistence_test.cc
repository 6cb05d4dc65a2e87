#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pmem/append_probe_for_test.h"
#include "pmem/persist_mode.h"
#include "pmem/persistence.h"
#include "tests/support/pmem_mapped_file.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb {
namespace {

using test::kFileBytes;
using test::MappedFile;
using test::PmemTempDir;

class Recorder : public PersistObserver {
 public:
  void OnFlush(const void* address, size_t bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    flushes.emplace_back(address, bytes);
  }
  void OnDrain() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++drains;
  }
  std::vector<std::pair<const void*, size_t>> flushes;
  int drains = 0;

 private:
  std::mutex mutex_;
};

TEST(PersistenceTest, EveryModePersistsRangesOfAnyAlignment) {
  const PmemTempDir dir(PmemTempDir::DiskParent());
  for (PersistMode mode : {PersistMode::kCacheLine, PersistMode::kEadr, PersistMode::kPage, PersistMode::kEmulated}) {
    const MappedFile file(dir.Sub("file"));
    Persistence persistence(mode, {});
    EXPECT_EQ(persistence.mode(), mode);
    for (size_t offset : {0, 1, 63, 64, 4095, 4096}) {
      for (size_t bytes : {0, 1, 8, 64, 65, 5000}) {
        std::memset(file.data() + offset, 7, bytes);
        EXPECT_TRUE(persistence.Persist(file.data() + offset, bytes));
      }
    }
    EXPECT_FALSE(persistence.failed());
    EXPECT_TRUE(persistence.error().ok());
  }
}

TEST(PersistenceTest, ObserverSeesFlushesAndDrainsInEveryMode) {
  const PmemTempDir dir;
  for (PersistMode mode : {PersistMode::kCacheLine, PersistMode::kEadr, PersistMode::kPage, PersistMode::kEmulated}) {
    const MappedFile file(dir.Sub("file"));
    Persistence persistence(mode, {});
    Recorder recorder;
    persistence.SetObserver(&recorder);
    persistence.Flush(file.data() + 5, 100);
    EXPECT_TRUE(persistence.Drain());
    ASSERT_EQ(recorder.flushes.size(), 1u);
    EXPECT_EQ(recorder.flushes[0], std::make_pair(static_cast<const void*>(file.data() + 5), size_t{100}));
    EXPECT_EQ(recorder.drains, 1);
    persistence.SetObserver(nullptr);
    EXPECT_TRUE(persistence.Persist(file.data(), 8));
    EXPECT_EQ(recorder.drains, 1);
  }
}

// Whole words, whichever way they take; what is around them stays. An observer sees all that was stored as flushed.
TEST(PersistenceTest, AppendCopiesAndFlushes) {
  const PmemTempDir dir;
  alignas(kCacheLine) uint8_t source[2048];
  for (size_t i = 0; i < sizeof(source); ++i) source[i] = static_cast<uint8_t>(i * 37 + 1);
  for (const PersistMode mode : {PersistMode::kCacheLine, PersistMode::kEadr, PersistMode::kEmulated}) {
    for (const bool observed : {false, true}) {
      const MappedFile file(dir.Sub("file"));
      Persistence persistence(mode, {});
      Recorder recorder;
      if (observed) persistence.SetObserver(&recorder);
      EXPECT_FALSE(persistence.streams() && (observed || mode != PersistMode::kEmulated));
      for (const size_t offset : {0, 8, 40, 56}) {
        for (const size_t bytes : {8, 24, 48, 64, 72, 128, 1000}) {
          SCOPED_TRACE(std::to_string(offset) + " " + std::to_string(bytes));
          auto* const target = reinterpret_cast<uint8_t*>(file.data()) + 4096;
          std::memset(target, 0xee, 2048);
          recorder.flushes.clear();
          persistence.Append(target + offset, source + offset, bytes);
          EXPECT_TRUE(persistence.Drain());
          for (size_t i = 0; i < 2048; ++i) {
            ASSERT_EQ(target[i], i >= offset && i < offset + bytes ? source[i] : 0xee) << i;
          }
          if (!observed) continue;
          ASSERT_EQ(recorder.flushes.size(), 1u);
          EXPECT_EQ(recorder.flushes[0], std::make_pair(static_cast<const void*>(target + offset), bytes));
        }
      }
      persistence.SetObserver(nullptr);
    }
  }
}

TEST(PersistenceTest, StreamedWordsAreCopies) {
  alignas(8) uint8_t source[256], target[256 + 16];
  for (size_t i = 0; i < sizeof(source); ++i) source[i] = static_cast<uint8_t>(i * 11 + 3);
  for (const size_t bytes : {0, 8, 16, 56, 64, 256}) {
    std::memset(target, 0xee, sizeof(target));
    StreamWords(target + 8, source, bytes);
    EXPECT_EQ(std::memcmp(target + 8, source, bytes), 0) << bytes;
    EXPECT_EQ(target[7], 0xee);
    EXPECT_EQ(target[8 + bytes], 0xee);
  }
  const bool faster = StreamingIsFaster();
  EXPECT_FALSE(faster && !Persistence::HasClwb());
  EXPECT_EQ(StreamingIsFaster(), faster);
  for (const bool forced : {false, true}) {
    ForceStreamingForTest(forced);
    EXPECT_EQ(Persistence(PersistMode::kEmulated, {}).streams(), forced && Persistence::HasClwb());
  }
  ForceStreamingForTest({});
  EXPECT_EQ(StreamingIsFaster(), faster);
}

TEST(PersistenceTest, StreamedLinesAreCopies) {
  alignas(64) uint8_t target[64 + 640 + 64];
  uint8_t source[640 + 8];
  for (size_t i = 0; i < sizeof(source); ++i) source[i] = static_cast<uint8_t>(i * 11 + 3);
  for (const size_t bytes : {0, 64, 128, 640}) {
    for (size_t shift = 0; shift < 8; ++shift) {
      std::memset(target, 0xee, sizeof(target));
      StreamLines(target + 64, source + shift, bytes);
      EXPECT_EQ(std::memcmp(target + 64, source + shift, bytes), 0) << bytes;
      EXPECT_EQ(target[63], 0xee);
      EXPECT_EQ(target[64 + bytes], 0xee);
    }
  }
  EXPECT_EQ(Persistence(PersistMode::kCacheLine, {}).streams_lines(), Persistence::HasClwb());
  EXPECT_FALSE(Persistence(PersistMode::kEadr, {}).streams_lines());
  EXPECT_FALSE(Persistence(PersistMode::kPage, {}).streams_lines());
}

// What is streamed is not in the count of lines: latencies and counts are of lines that are flushed.
TEST(PersistenceTest, NothingIsStreamedWhereLinesCount) {
  EmulationOptions slow;
  slow.write_latency_ns = 100;
  EXPECT_FALSE(Persistence(PersistMode::kEmulated, slow).streams());
  EXPECT_FALSE(Persistence(PersistMode::kEmulated, slow).streams_lines());
  EmulationOptions invalidating;
  invalidating.flush_invalidates = true;
  EXPECT_FALSE(Persistence(PersistMode::kEmulated, invalidating).streams());
  Persistence counting(PersistMode::kEmulated, {});
  counting.CountWrites();
  EXPECT_FALSE(counting.streams());
  alignas(64) uint64_t words[16] = {}, copy[16] = {};
  counting.Append(copy, words, sizeof(words));
  EXPECT_TRUE(counting.Drain());
  EXPECT_EQ(counting.writes().lines, 2u);
}

TEST(PersistenceTest, InjectedWriteLatencyIsPaidAtTheDrainForEachLine) {
  alignas(64) static char lines[64 * 10];
  EmulationOptions emulation;
  emulation.write_latency_ns = 100'000;
  emulation.read_latency_ns = 1;
  emulation.remote_latency_ns = 2;
  Persistence persistence(PersistMode::kEmulated, emulation);
  EXPECT_EQ(persistence.read_latency_ns(), 1u);
  EXPECT_EQ(persistence.remote_latency_ns(), 2u);
  const auto elapsed = [](auto&& body) {
    const auto start = std::chrono::steady_clock::now();
    body();
    return std::chrono::steady_clock::now() - start;
  };
  EXPECT_GE(elapsed([&] { EXPECT_TRUE(persistence.Persist(lines, sizeof(lines))); }), std::chrono::microseconds(1000));
  // Nothing is owed any more. The best of several tries: the machine may be busy.
  auto best = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 20; ++i) best = std::min(best, elapsed([&] { EXPECT_TRUE(persistence.Drain()); }));
  EXPECT_LT(best, std::chrono::microseconds(100));
}

TEST(PersistenceTest, LatencyIsForEmulationOnly) {
  EmulationOptions emulation;
  emulation.read_latency_ns = 50;
  const Persistence persistence(PersistMode::kCacheLine, emulation);
  EXPECT_EQ(persistence.read_latency_ns(), 0u);
}

TEST(PersistencePageTest, DrainWithoutFlushDoesNotSync) {
  const PmemTempDir dir;
  const MappedFile file(dir.Sub("file"));
  Persistence persistence(PersistMode::kPage, {});
  EXPECT_TRUE(persistence.Persist(file.data(), 1));
  std::thread([&] { persistence.Flush(file.data() + 8192, 1); }).join();  // pending, of another thread
  persistence.FailSyncsForTest();
  EXPECT_TRUE(persistence.Drain());  // this thread owes nothing
}

TEST(PersistencePageTest, ManyFlushesWithoutDrainStayMerged) {
  const PmemTempDir dir;
  const MappedFile file(dir.Sub("file"));
  Persistence persistence(PersistMode::kPage, {});
  for (int i = 0; i < 100'000; ++i) persistence.Flush(file.data() + (i * 7919) % kFileBytes, 8);
  EXPECT_TRUE(persistence.Drain());
}

TEST(PersistencePageTest, FailedSyncFailsForEver) {
  const PmemTempDir dir;
  const MappedFile file(dir.Sub("file"));
  Persistence persistence(PersistMode::kPage, {});
  EXPECT_TRUE(persistence.Persist(file.data(), 8));
  persistence.FailSyncsForTest();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] { EXPECT_FALSE(persistence.Persist(file.data() + t * 8192, 8)); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(persistence.failed());
  EXPECT_TRUE(persistence.error().IsIOError());
  EXPECT_NE(persistence.error().message().find("open the database again"), std::string::npos);
  EXPECT_FALSE(persistence.Drain());
}

// Not injected: the kernel itself refuses to sync what is not mapped.
TEST(PersistencePageTest, ErrorOfTheSystemIsReported) {
  Persistence persistence(PersistMode::kPage, {});
  void* const hole = mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(hole, 8192);
  EXPECT_FALSE(persistence.Persist(hole, 8));
  EXPECT_TRUE(persistence.failed());
  EXPECT_TRUE(persistence.error().IsIOError());
}

TEST(PersistModeTest, TmpfsIsEmulatedAndNothingElse) {
  if (access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no tmpfs";
  const PmemTempDir dir;
  const MappedFile file(dir.Sub("file"));
  PersistMode mode = PersistMode::kAuto;
  ASSERT_TRUE(ResolvePersistMode(dir.Sub("file"), PersistMode::kAuto, &mode).ok());
  EXPECT_EQ(mode, PersistMode::kEmulated);
  ASSERT_TRUE(ResolvePersistMode(dir.Sub("file"), PersistMode::kPage, &mode).ok());
  EXPECT_EQ(mode, PersistMode::kPage);
  for (PersistMode unsafe : {PersistMode::kCacheLine, PersistMode::kEadr}) {
    const Status status = ResolvePersistMode(dir.Sub("file"), unsafe, &mode);
    EXPECT_TRUE(status.IsInvalidArgument());
    EXPECT_NE(status.message().find("kEmulated"), std::string::npos);
  }
}

TEST(PersistModeTest, DiskIsPageModeAndNothingElse) {
  const PmemTempDir dir(PmemTempDir::DiskParent());
  const MappedFile file(dir.Sub("file"));
  PersistMode mode = PersistMode::kAuto;
  ASSERT_TRUE(ResolvePersistMode(dir.Sub("file"), PersistMode::kAuto, &mode).ok());
  if (mode != PersistMode::kPage) GTEST_SKIP() << dir.path() << " is not on an ordinary disk";
  for (PersistMode unsafe : {PersistMode::kCacheLine, PersistMode::kEadr, PersistMode::kEmulated}) {
    EXPECT_TRUE(ResolvePersistMode(dir.Sub("file"), unsafe, &mode).IsInvalidArgument());
  }
  EXPECT_TRUE(ResolvePersistMode(dir.Sub("missing"), PersistMode::kAuto, &mode).IsNotFound());
}

}  // namespace
}  // namespace braiddb
