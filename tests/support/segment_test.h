// Test support: one region, its segment allocator, and what both say of it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pmem/region.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"
#include "tests/support/pmem_store.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb::test {

inline constexpr uint64_t kMiB = 1ull << 20;
inline constexpr uint64_t kSmallSegment = 256ull << 10;

class SegmentTest : public testing::Test {
 protected:
  void SetUp() override { Reopen(); }

  void Reopen() {
    const Status status = Store::Open(options_, segment_size_, &store_);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  SegmentAllocator* allocator() { return store_.allocator.get(); }
  Segment* Allocate(uint64_t min_bytes = 1, uint32_t region = 0) {
    Segment* segment = nullptr;
    const Status status = allocator()->Allocate(region, min_bytes, &segment);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return segment;
  }
  std::vector<Segment*> Used() {
    std::vector<Segment*> used;
    allocator()->ForEachLog([&](Segment* segment) { used.push_back(segment); });
    return used;
  }
  void ExpectNoLeak() {
    Region* const region = store_.regions->impl()->region(0);
    EXPECT_EQ(PoolObjects(region), AccountedObjects(region));
  }
  std::string SetPath() const { return options_.database_path + "/region-0/region.set"; }

  PmemTempDir dir_;
  RegionSetOptions options_ = PmemOptions(dir_.Sub("db"));
  uint64_t segment_size_ = kMiB;
  Store store_;
};

}  // namespace braiddb::test
