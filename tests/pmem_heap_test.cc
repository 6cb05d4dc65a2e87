// What a power cut may leave of PMDK's own heap. [CC-37]
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "pmem/region_files.h"
#include "tests/support/pmem_store.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb::test {
namespace {

constexpr uint64_t kSegmentSize = 256ull << 10;
constexpr uint64_t kSeveralChunks = 600ull << 10;

struct ChunkHeader {
  uint16_t type;
  uint16_t flags;
  uint32_t chunks;
};
constexpr uint16_t kFree = 2;

// PMDK stores the last header of each free run of chunks without a flush: all of them are as if something else had been there
// before and that store was lost. Returns how many there are.
int LoseFooters(const std::string& part) {
  PoolExtent extent;
  EXPECT_TRUE(ReadPoolExtent(part, &extent).ok());
  const int fd = open(part.c_str(), O_RDWR | O_CLOEXEC);
  const auto zone = static_cast<off_t>(extent.heap_begin + 1024);
  uint32_t count = 0;
  EXPECT_EQ(pread(fd, &count, sizeof(count), zone + 4), 4);
  int lost = 0;
  for (uint32_t i = 0; i < count;) {
    const auto place = [&](uint32_t chunk) { return zone + 64 + 8 * static_cast<off_t>(chunk); };
    ChunkHeader header;
    EXPECT_EQ(pread(fd, &header, sizeof(header), place(i)), 8);
    if (header.chunks == 0) break;
    if (header.type == kFree && header.chunks > 1) {
      const ChunkHeader stale{kFree, 0, count};
      EXPECT_EQ(pwrite(fd, &stale, sizeof(stale), place(i + header.chunks - 1)), 8);
      ++lost;
    }
    i += header.chunks;
  }
  close(fd);
  return lost;
}

TEST(PmemHeapTest, FootersOfFreeChunksMayBeLost) {
  PmemTempDir dir;
  const RegionSetOptions options = PmemOptions(dir.Sub("db"));
  uint64_t kept = 0;
  {
    Store store;
    ASSERT_TRUE(Store::Open(options, kSegmentSize, &store).ok());
    Segment* segments[3];
    for (Segment*& segment : segments) ASSERT_TRUE(store.allocator->Allocate(0, kSeveralChunks, &segment).ok());
    ASSERT_TRUE(store.allocator->Seal(segments[2], 0, 0).ok());
    kept = segments[2]->ptr(0).raw();
    ASSERT_TRUE(store.allocator->Release(segments[1]).ok());  // a hole between two segments
  }
  ASSERT_GE(LoseFooters(options.database_path + "/region-0/000000.pmem"), 1);
  // In a child: libpmemobj alone follows the stale header to memory that is not there.
  EXPECT_EQ(RunInChild([&] {
              Store store;
              if (!Store::Open(options, kSegmentSize, &store).ok()) return 1;
              Segment* segment = store.allocator->Find(PmPtr(kept));
              if (segment == nullptr || !store.allocator->Release(segment).ok()) return 2;  // joins the hole before it
              if (!store.allocator->Allocate(0, 2 * kSeveralChunks, &segment).ok()) return 3;
              Region* const region = store.regions->impl()->region(0);
              return PoolObjects(region) == AccountedObjects(region) ? 0 : 4;
            }),
            0);
}

}  // namespace
}  // namespace braiddb::test
