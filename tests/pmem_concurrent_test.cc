#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "pmem/persistence.h"
#include "pmem/segment_allocator.h"
#include "tests/support/pmem_mapped_file.h"
#include "tests/support/pmem_store.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb {
namespace {

using test::kFileBytes;
using test::MappedFile;
using test::PmemOptions;
using test::PmemTempDir;
using test::Store;

TEST(PersistencePageTest, ThreadsCommitInGroups) {
  const PmemTempDir dir(PmemTempDir::DiskParent());
  const MappedFile file(dir.Sub("file"));
  Persistence persistence(PersistMode::kPage, {});
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i) {
        char* const mine = file.data() + t * 65536 + i * 1000;
        std::memset(mine, t + 1, 1000);
        persistence.Flush(mine, 1000);
        if (i % 3 != 0) {
          EXPECT_TRUE(persistence.Drain());
        }
      }
      EXPECT_TRUE(persistence.Drain());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::ifstream stored(dir.Sub("file"), std::ios::binary);
  std::string bytes(kFileBytes, '\0');
  stored.read(bytes.data(), kFileBytes);
  for (int t = 0; t < 6; ++t) EXPECT_EQ(bytes.substr(t * 65536, 40000), std::string(40000, static_cast<char>(t + 1)));
}

TEST(SegmentConcurrentTest, AllocateReleaseFindAndSpares) {
  constexpr uint64_t kMiB = 1ull << 20;
  constexpr uint64_t kSmallSegment = 256ull << 10;
  const PmemTempDir dir;
  const RegionSetOptions options = PmemOptions(dir.Sub("threads"), 2, 512 * kMiB);
  Store store;
  ASSERT_TRUE(Store::Open(options, kSmallSegment, &store).ok());
  SegmentAllocator* const allocator = store.allocator.get();
  std::mutex mutex;
  std::set<std::pair<uint32_t, uint64_t>> generations;
  std::vector<std::thread> threads;
  std::atomic<bool> stop{false};
  threads.emplace_back([&] {
    while (!stop) {
      for (uint32_t region = 0; region < 2; ++region) allocator->PrepareSpares(region, 2);
      allocator->ForEachLog([&](Segment* segment) { EXPECT_LT(segment->region(), 2u); });
      allocator->GetUsage(0);
    }
  });
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<Segment*> mine;
      for (int i = 0; i < 150; ++i) {
        const uint32_t region = random() % 2;
        Segment* segment = nullptr;
        const Status status = allocator->Allocate(region, random() % 10 == 0 ? kMiB : 1, &segment);
        ASSERT_TRUE(status.ok()) << status.ToString();
        segment->data()[0] = static_cast<uint8_t>(t);
        segment->data()[segment->capacity() - 1] = static_cast<uint8_t>(t);
        EXPECT_EQ(allocator->Find(segment->ptr(64)), segment);
        {
          const std::lock_guard<std::mutex> lock(mutex);
          EXPECT_TRUE(generations.emplace(region, segment->generation()).second);
        }
        mine.push_back(segment);
        if (mine.size() > 5) {
          Segment* const old = mine[random() % mine.size()];
          EXPECT_EQ(old->data()[0], t);
          EXPECT_EQ(old->data()[old->capacity() - 1], t);
          if (old->state() == SegmentState::kOpen && random() % 2 == 0) {
            EXPECT_TRUE(allocator->Seal(old, 1, 1).ok());
          }
          EXPECT_TRUE(allocator->Release(old).ok());
          std::erase(mine, old);
        }
      }
    });
  }
  for (size_t i = 1; i < threads.size(); ++i) threads[i].join();
  stop = true;
  threads[0].join();
  const auto used = [&] { return store.allocator->GetUsage(0).segments + store.allocator->GetUsage(1).segments; };
  EXPECT_EQ(used(), 20u);
  ASSERT_TRUE(Store::Open(options, kSmallSegment, &store).ok());
  EXPECT_EQ(used(), 20u);
  for (uint32_t region = 0; region < 2; ++region) {
    Region* const one = store.regions->impl()->region(region);
    EXPECT_EQ(test::PoolObjects(one), test::AccountedObjects(one));
  }
}

}  // namespace
}  // namespace braiddb
