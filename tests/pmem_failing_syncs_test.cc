// Syncs that fail, and space that ends, at every place where regions and segments are changed: an error, and nothing is lost.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "pmem/layout_check.h"
#include "pmem/region.h"
#include "tests/support/failing_calls.h"
#include "tests/support/pmem_store.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb {
namespace {

using test::AccountedObjects;
using test::FailingCalls;
using test::PmemOptions;
using test::PmemTempDir;
using test::PoolObjects;
using test::Store;

constexpr uint64_t kMiB = 1ull << 20;
constexpr uint64_t kSmallSegment = 256ull << 10;

class FailingSyncsTest : public testing::Test {
 protected:
  FailingSyncsTest() { options_.persist_mode = PersistMode::kPage; }

  void Reopen(uint64_t segment_size = kSmallSegment) {
    const Status status = Store::Open(options_, segment_size, &store_);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  void ExpectNoLeak() {
    Region* const region = store_.regions->impl()->region(0);
    EXPECT_EQ(PoolObjects(region), AccountedObjects(region));
  }
  void Destroy() {
    store_ = Store();
    ASSERT_TRUE(RegionSet::Destroy(options_).ok());
  }

  // Every transition of segments, of all sizes; the region grows.
  Status EveryTransition() {
    SegmentAllocator* const allocator = store_.allocator.get();
    Segment* segment = nullptr;
    Segment* big = nullptr;
    Status status = allocator->Allocate(0, 1, &segment);
    if (status.ok()) status = allocator->Allocate(0, 5 * kMiB, &big);
    if (status.ok()) status = allocator->Seal(segment, 100, 7);
    if (status.ok()) status = allocator->Release(segment);
    if (status.ok()) status = allocator->Release(big);
    if (status.ok()) status = allocator->Allocate(0, 1, &segment);
    allocator->PrepareSpares(0, 3);
    return status;
  }

  PmemTempDir dir_;
  RegionSetOptions options_ = PmemOptions(dir_.Sub("db"));
  Store store_;
};

TEST_F(FailingSyncsTest, OfACreationOrOfMetadata) {
  for (int64_t sync = 0;; ++sync) {
    SCOPED_TRACE(sync);
    FailingCalls::Arm(sync, EIO, 1, "msync");
    void* object = nullptr;
    std::unique_ptr<RegionSet> set;
    Status status = RegionSet::Create(options_, &set);
    const bool created = status.ok();
    if (created) status = set->AllocateMetadata(0, MetadataSlot::kL1, 1000, &object);
    FailingCalls::Stop();
    if (FailingCalls::failed() == 0) {
      EXPECT_TRUE(status.ok()) << status.ToString();
      EXPECT_GE(sync, 3);
      return;
    }
    EXPECT_TRUE(status.IsIOError()) << status.ToString();
    EXPECT_NE(status.message().find("msync"), std::string_view::npos) << status.ToString();
    set.reset();
    EXPECT_EQ(RegionSet::Exists(options_), created);
    Reopen();
    ExpectNoLeak();
    Destroy();
  }
}

TEST_F(FailingSyncsTest, OfASegmentsStates) {
  for (int64_t sync = 0;; ++sync) {
    SCOPED_TRACE(sync);
    Reopen();
    FailingCalls::Arm(sync, EIO, 1, "msync");
    Status status = EveryTransition();
    FailingCalls::Stop();
    if (FailingCalls::failed() == 0) {
      EXPECT_TRUE(status.ok()) << status.ToString();
      EXPECT_GT(sync, 15);
      return;
    }
    EXPECT_TRUE(store_.regions->persistence()->failed());
    Segment* segment = nullptr;
    const Status later = store_.allocator->Allocate(0, 1, &segment);
    EXPECT_TRUE(later.IsIOError()) << "nothing is believed any more: " << later.ToString();
    Reopen();
    ExpectNoLeak();
    EXPECT_TRUE(EveryTransition().ok());
    Destroy();
  }
}

// What an open finds cut short, it finishes; if that fails, the next open does.
TEST_F(FailingSyncsTest, OfAnOpenThatFinishesWhatWasCutShort) {
  for (int64_t sync = 0;; ++sync) {
    SCOPED_TRACE(sync);
    Reopen(8 * kMiB);
    SegmentAllocator* const allocator = store_.allocator.get();
    Segment *taken = nullptr, *gone = nullptr, *big = nullptr;
    ASSERT_TRUE(allocator->Allocate(0, kSmallSegment + 1, &taken).ok() && allocator->Allocate(0, 1, &gone).ok());
    ASSERT_TRUE(allocator->Allocate(0, 2 * kMiB, &big).ok() && allocator->Release(gone).ok() && allocator->Release(big).ok());
    Region* const region = store_.regions->impl()->region(0);
    auto* const block = reinterpret_cast<DirectoryBlock*>(region->base() + AlignToLine(region->root()->directory.offset));
    for (SegmentDescriptor& descriptor : block->descriptors) {
      if (descriptor.object.offset == 0) continue;
      const uint64_t data = SegmentDataOffset(descriptor);
      // Memory that was taken from the pool, and no more; memory that went back, but the descriptor does not say so.
      if (data == taken->ptr(0).offset()) descriptor.state_word = SegmentStateWord(descriptor, SegmentState::kUnused);
      if (data == gone->ptr(0).offset()) region->FreeObject(&descriptor.object);
    }
    store_ = Store();
    FailingCalls::Arm(sync, EIO, 1, "msync");
    Status status = Store::Open(options_, kSmallSegment, &store_);  // for which `big` is too large to be kept
    FailingCalls::Stop();
    if (FailingCalls::failed() == 0) {
      EXPECT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(store_.allocator->GetUsage(0).segments, 0u);
      EXPECT_EQ(store_.allocator->GetUsage(0).free_segments, 0u) << "larger than what is kept";
      EXPECT_GT(sync, 5) << "one for what was found, two for each that was cut short, and PMDK's own";
      return;
    }
    EXPECT_TRUE(status.IsIOError()) << status.ToString();
    Reopen();
    ExpectNoLeak();
    EXPECT_EQ(store_.allocator->GetUsage(0).segments, 0u);
    Destroy();
  }
}

// Space ends at allocation number `first`: nothing changes, and it goes on when there is space again.
TEST_F(FailingSyncsTest, SpaceEndsAtEveryAllocation) {
  options_.persist_mode = PersistMode::kAuto;
  for (int64_t first = 0;; ++first) {
    SCOPED_TRACE(first);
    Reopen();
    FailingCalls::Arm(first, ENOSPC, FailingCalls::kForEver, "pmemobj_xalloc fallocate posix_fallocate");
    Status status = EveryTransition();
    FailingCalls::Stop();
    EXPECT_TRUE(status.ok() || status.IsNoSpace()) << status.ToString();
    ExpectNoLeak();
    EXPECT_TRUE(EveryTransition().ok());
    Reopen();
    ExpectNoLeak();
    Destroy();
    if (FailingCalls::failed() == 0) break;
  }
}

#ifndef __SANITIZE_ADDRESS__
TEST_F(FailingSyncsTest, NoAddressSpaceForTheSegmentMap) {
  Reopen();
  std::unique_ptr<SegmentAllocator> allocator;
  FailingCalls::Arm(0, ENOMEM, 1, "mmap");
  const Status status = SegmentAllocator::Open(store_.regions.get(), kSmallSegment, &allocator);
  FailingCalls::Stop();
  EXPECT_TRUE(status.IsMemoryLimit()) << status.ToString();
  EXPECT_NE(status.message().find("max_region_size"), std::string_view::npos);
}
#endif

// A kernel that does not give pages their memory on request: they are touched.
TEST_F(FailingSyncsTest, SparesWithoutTheKernelsHelp) {
  options_.persist_mode = PersistMode::kAuto;
  Reopen();
  FailingCalls::Arm(0, EINVAL, FailingCalls::kForEver, "madvise");
  store_.allocator->PrepareSpares(0, 2);
  EXPECT_GE(FailingCalls::failed(), 2);
  FailingCalls::Stop();
  EXPECT_GE(store_.allocator->GetUsage(0).free_segments, 2u);
  EXPECT_TRUE(EveryTransition().ok());
}

}  // namespace
}  // namespace braiddb
