// Segments when the process ends at a persist, a sync fails, or a descriptor is damaged. [CC-34] [CC-35] [CC-36]
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "pmem/segment_directory.h"
#include "tests/support/segment_test.h"

namespace braiddb::test {
namespace {

// ---- Crashes

// Every transition, and a directory that needs a second block and a region that grows.
Status EveryTransition(Store* store, int blocks) {
  SegmentAllocator* const allocator = store->allocator.get();
  Segment* segment = nullptr;
  Segment* big = nullptr;
  for (int i = 0; i < blocks; ++i) {
    if (Status status = allocator->Allocate(0, 1, &segment); !status.ok()) return status;
  }
  if (Status status = allocator->Allocate(0, 2 * kMiB, &big); !status.ok()) return status;
  if (Status status = allocator->Seal(segment, 100, 7); !status.ok()) return status;
  if (Status status = allocator->Release(segment); !status.ok()) return status;
  if (Status status = allocator->Release(big); !status.ok()) return status;
  if (Status status = allocator->Allocate(0, 1, &segment); !status.ok()) return status;
  if (Status status = allocator->Release(segment); !status.ok()) return status;
  allocator->PrepareSpares(0, 2);
  return Status::OK();
}

// [CC-34] [CC-35] [CC-36]
TEST_F(SegmentTest, ACrashAtEachPersistLeavesLegalStatesAndNoLeak) {
  segment_size_ = kSmallSegment;
  // 62 segments fill all but the last slot of a block.
  for (int prepared : {0, 62}) {
    for (int at = 0;; ++at) {
      options_ = PmemOptions(dir_.Sub("crash" + std::to_string(prepared) + "-" + std::to_string(at)));
      Reopen();
      for (int i = 0; i < prepared; ++i) Allocate();
      const std::set<uint64_t> before = [&] {
        std::set<uint64_t> generations;
        for (Segment* segment : Used()) generations.insert(segment->generation());
        return generations;
      }();
      store_ = Store();

      const int code = RunInChild([&] {
        Store child;
        if (!Store::Open(options_, segment_size_, &child).ok()) return 1;
        ExitAtDrain exit_at_drain(at);
        child.regions->persistence()->SetObserver(&exit_at_drain);
        return EveryTransition(&child, 3).ok() ? 0 : 2;
      });
      if (code != 0) {
        ASSERT_EQ(code, ExitAtDrain::kExitCode);
      }
      EXPECT_TRUE(PoolIsConsistent(SetPath()));

      for (int reopen = 0; reopen < 2; ++reopen) {
        Reopen();
        ExpectNoLeak();
        std::set<uint64_t> after;
        for (Segment* segment : Used()) after.insert(segment->generation());
        EXPECT_TRUE(std::includes(after.begin(), after.end(), before.begin(), before.end()));
        EXPECT_LE(after.size(), before.size() + 4);
        // Nothing that a crash cut short stays behind: only kept sizes are free.
        EXPECT_EQ(allocator()->GetUsage(0).free_bytes, allocator()->GetUsage(0).free_segments * (kSmallSegment - 128));
      }
      // Life goes on, with generations that are new.
      const uint64_t newest = before.empty() ? 0 : *before.rbegin();
      Segment* const segment = Allocate();
      EXPECT_GT(segment->generation(), newest);
      ASSERT_TRUE(EveryTransition(&store_, 3).ok());
      ExpectNoLeak();
      store_ = Store();
      ASSERT_TRUE(RegionSet::Destroy(options_).ok());
      if (code == 0) break;
    }
  }
}

// [CC-35] [CC-36]
TEST_F(SegmentTest, ACrashWhileOpenFinishesACrash) {
  segment_size_ = kSmallSegment;
  for (int first = 0;; ++first) {
    bool more = true;
    for (int second = 0; more; ++second) {
      options_ = PmemOptions(dir_.Sub("crash"));
      Reopen();
      store_ = Store();
      const auto child = [&](int open_at, int work_at) {
        return RunInChild([&] {
          Store inner;
          if (!RegionSet::Open(options_, &inner.regions).ok()) return 1;
          ExitAtDrain in_open(open_at), in_work(work_at);
          if (open_at >= 0) inner.regions->persistence()->SetObserver(&in_open);
          if (!SegmentAllocator::Open(inner.regions.get(), segment_size_, &inner.allocator).ok()) return 2;
          inner.regions->persistence()->SetObserver(&in_work);
          return work_at < 0 || EveryTransition(&inner, 1).ok() ? 0 : 3;
        });
      };
      const int code = child(-1, first);
      if (code == 0) return;  // `first` is behind the last persist
      ASSERT_EQ(code, ExitAtDrain::kExitCode);
      more = child(second, -1) == ExitAtDrain::kExitCode;
      Reopen();
      ExpectNoLeak();
      store_ = Store();
      ASSERT_TRUE(RegionSet::Destroy(options_).ok());
    }
  }
}

TEST_F(SegmentTest, FailedPersistIsReported) {
  const PmemTempDir disk(PmemTempDir::DiskParent());
  options_ = PmemOptions(disk.Sub("db"));
  options_.persist_mode = PersistMode::kPage;
  Reopen();
  Segment* const segment = Allocate();
  store_.regions->persistence()->FailSyncsForTest();
  Segment* other = nullptr;
  EXPECT_TRUE(allocator()->Allocate(0, 1, &other).IsIOError());
  EXPECT_TRUE(allocator()->Seal(segment, 1, 1).IsIOError());
  EXPECT_TRUE(allocator()->Release(segment).IsIOError());
  EXPECT_TRUE(store_.regions->persistence()->failed());
}

// ---- Damage

// [CC-36]
TEST_F(SegmentTest, EveryWordOfADescriptorIsChecked) {
  Segment* const open = Allocate();
  Segment* const sealed = Allocate();
  Segment* const free = Allocate();
  ASSERT_TRUE(allocator()->Seal(sealed, 1000, 3).ok());
  ASSERT_TRUE(allocator()->Release(free).ok());
  const PmPtr open_start = open->ptr(0);
  Region* region = store_.regions->impl()->region(0);
  const uint64_t block = AlignToLine(region->root()->directory.offset);
  const uint64_t header = open_start.offset() - sizeof(SegmentHeader);
  const uint64_t root = store_.regions->ToPmPtr(0, region->root()).offset();
  // What may differ without harm: fields that mean nothing in that state.
  const auto is_free_of_meaning = [](SegmentState state, size_t field) {
    if (field == 24 || field == 56) return state == SegmentState::kFree;
    return (field == 32 || field == 40) && state != SegmentState::kSealed;
  };
  const auto expect_corruption = [&](uint64_t offset, uint64_t value, const std::string& what) {
    auto* word = reinterpret_cast<uint64_t*>(store_.regions->base(0) + offset);
    const uint64_t good = *word;
    if (value == good) return;
    *word = value;
    std::unique_ptr<SegmentAllocator> other;
    const Status status = SegmentAllocator::Open(store_.regions.get(), segment_size_, &other);
    EXPECT_TRUE(status.IsCorruption()) << what << ": " << status.ToString();
    *word = good;
  };
  std::mt19937_64 random(7);
  const auto mutate = [&](uint64_t offset, const std::string& what, bool zero = true) {
    const uint64_t good = *reinterpret_cast<uint64_t*>(store_.regions->base(0) + offset);
    for (int bit = 0; bit < 64; ++bit)
      expect_corruption(offset, good ^ (uint64_t{1} << bit), what + " bit " + std::to_string(bit));
    if (zero) expect_corruption(offset, 0, what + " zero");
    expect_corruption(offset, random(), what + " random");
  };
  for (size_t slot = 0; slot < 4; ++slot) {
    const uint64_t at = block + offsetof(DirectoryBlock, descriptors) + slot * sizeof(SegmentDescriptor);
    const auto* descriptor = reinterpret_cast<SegmentDescriptor*>(region->base() + at);
    if (descriptor->object.offset == 0) continue;
    const SegmentState state = SegmentDirectory::StateOf(*descriptor);
    for (size_t field = 0; field < sizeof(SegmentDescriptor); field += 8) {
      if (is_free_of_meaning(state, field)) continue;
      // A free segment without its object reads as a return to the pool that was cut short. It costs space, not data.
      const bool zero = !(state == SegmentState::kFree && field == 8);
      mutate(at + field, "slot " + std::to_string(slot) + " field " + std::to_string(field), zero);
    }
  }
  for (size_t field = 0; field < sizeof(SegmentHeader); field += 8) mutate(header + field, "header " + std::to_string(field));
  mutate(root + offsetof(RegionRoot, generation_word), "generation");
  mutate(root + offsetof(RegionRoot, directory) + 8, "directory link");
  mutate(root + offsetof(RegionRoot, directory), "directory pool");
  mutate(block + offsetof(DirectoryBlock, tag), "block tag");
  expect_corruption(root + offsetof(RegionRoot, directory_blocks), 2, "lost block");
}

TEST_F(SegmentTest, OverlapIsCorruption) {
  Segment* const one = Allocate();
  Allocate();
  Region* region = store_.regions->impl()->region(0);
  auto* block = reinterpret_cast<DirectoryBlock*>(region->base() + AlignToLine(region->root()->directory.offset));
  // A second, whole descriptor of the same memory.
  SegmentDescriptor* twin = &block->descriptors[DirectoryBlock::kDescriptors - 1];
  for (SegmentDescriptor& descriptor : block->descriptors) {
    if (SegmentDirectory::DataOffsetOf(descriptor) == one->ptr(0).offset()) *twin = descriptor;
  }
  std::unique_ptr<SegmentAllocator> other;
  const Status status = SegmentAllocator::Open(store_.regions.get(), segment_size_, &other);
  EXPECT_TRUE(status.IsCorruption());
  EXPECT_NE(status.message().find("overlap"), std::string::npos);
}

}  // namespace
}  // namespace braiddb::test
