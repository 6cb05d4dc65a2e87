// Segment directories whose checksums are right and whose content cannot be: an older bug's, or another region's.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "pmem/layout_check.h"
#include "pmem/region.h"
#include "tests/support/failing_calls.h"
#include "tests/support/pmem_store.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb {
namespace {

using test::FailingCalls;
using test::PmemOptions;
using test::PmemTempDir;
using test::Store;

class DirectoryDamageTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Store::Open(options_, 1 << 20, &store_).ok());
    ASSERT_TRUE(store_.allocator->Allocate(0, 1, &open_).ok() && store_.allocator->Allocate(0, 1, &sealed_).ok());
    ASSERT_TRUE(store_.allocator->Seal(sealed_, 1000, 3).ok());
  }
  Region* region() { return store_.regions->impl()->region(0); }
  SegmentDescriptor* Descriptor(const Segment* segment) {
    auto* const block = reinterpret_cast<DirectoryBlock*>(region()->base() + AlignToLine(region()->root()->directory.offset));
    for (SegmentDescriptor& descriptor : block->descriptors) {
      if (descriptor.object.offset != 0 && SegmentDataOffset(descriptor) == segment->ptr(0).offset()) return &descriptor;
    }
    return nullptr;
  }
  Status Load() {
    std::unique_ptr<SegmentAllocator> other;
    return SegmentAllocator::Open(store_.regions.get(), 1 << 20, &other);
  }
  void ExpectDamage(const std::string& what) {
    const Status status = Load();
    EXPECT_TRUE(status.IsCorruption()) << what << ": " << status.ToString();
    EXPECT_NE(status.message().find(what), std::string_view::npos) << status.ToString();
  }

  PmemTempDir dir_;
  RegionSetOptions options_ = PmemOptions(dir_.Sub("db"));
  Store store_;
  Segment* open_ = nullptr;
  Segment* sealed_ = nullptr;
};

TEST_F(DirectoryDamageTest, OfADescriptor) {
  const struct {
    const char* what;
    SegmentState state;
    std::function<void(SegmentDescriptor*)> change;
  } kCases[] = {
      {"not inside the pool", SegmentState::kSealed, [](auto* d) { d->chunks = 0; }},
      {"not inside the pool", SegmentState::kSealed, [](auto* d) { d->chunks = UINT64_MAX / 2; }},
      {"not inside the pool", SegmentState::kSealed, [&](auto* d) { d->chunks = region()->reserved_bytes() / kChunkBytes; }},
      {"not inside the pool", SegmentState::kSealed, [](auto* d) { d->object.pool ^= 1; }},
      {"not inside the pool", SegmentState::kSealed, [](auto* d) { d->object.offset += 8; }},
      {"not inside the pool", SegmentState::kSealed, [](auto* d) { d->object.offset = 16; }},
      {"not inside the pool", SegmentState::kSealed, [&](auto* d) { d->object.offset = region()->reserved_bytes(); }},
      {"impossible size", SegmentState::kSealed, [](auto* d) { d->sealed_bytes = SegmentCapacity(*d) + 1; }},
      {"never given out", SegmentState::kSealed, [](auto* d) { d->generation += 1000; }},
      {"without memory", SegmentState::kSealed, [](auto* d) { d->object = {}; }},
      {"without memory", SegmentState::kOpen, [](auto* d) { d->object = {}; }},
      {"impossible state", static_cast<SegmentState>(9), [](auto*) {}},
  };
  SegmentDescriptor* const descriptor = Descriptor(sealed_);
  const SegmentDescriptor sound = *descriptor;
  for (const auto& test : kCases) {
    test.change(descriptor);
    descriptor->state_word = SegmentStateWord(*descriptor, test.state);
    ExpectDamage(test.what);
    *descriptor = sound;
  }
  EXPECT_TRUE(Load().ok());
}

TEST_F(DirectoryDamageTest, OfAHeader) {
  auto* const header = reinterpret_cast<SegmentHeader*>(region()->base() + SegmentHeaderOffset(*Descriptor(open_)));
  const SegmentHeader sound = *header;
  for (const std::function<void()>& change : std::initializer_list<std::function<void()>>{
           [&] { ++header->database_id; }, [&] { ++header->region; }, [&] { --header->generation; },
           [&] { header->capacity -= 64; }, [&] { --header->entry_seed; }}) {
    change();
    header->checksum = SegmentHeaderChecksum(*header);
    header->mark = SegmentHeaderMark(*header, region()->root()->secret);
    ExpectDamage("of another segment");
    *header = sound;
  }
  EXPECT_TRUE(Load().ok());
}

// One that was made by somebody who does not know the secret of the root.
TEST_F(DirectoryDamageTest, OfAHeadersMark) {
  auto* const header = reinterpret_cast<SegmentHeader*>(region()->base() + SegmentHeaderOffset(*Descriptor(open_)));
  header->mark = SegmentHeaderMark(*header, region()->root()->secret + 1);
  ExpectDamage("of another segment");
}

TEST_F(DirectoryDamageTest, OfASeed) {
  for (Segment* segment : {open_, sealed_}) {
    ++Descriptor(segment)->entry_seed;
    ExpectDamage("wrong checksum");
    --Descriptor(segment)->entry_seed;
  }
  EXPECT_TRUE(Load().ok());
}

// An allocation of metadata that was cut short is finished at the next open; if the sync fails, at the one after it.
TEST_F(DirectoryDamageTest, MetadataWithoutItsCheckIsFinished) {
  void* object = nullptr;
  ASSERT_TRUE(store_.regions->AllocateMetadata(0, MetadataSlot::kL1, 100, &object).ok());
  region()->root()->metadata_check[static_cast<int>(MetadataSlot::kL1)] = 0;
  store_ = Store();
  options_.persist_mode = PersistMode::kPage;
  std::unique_ptr<RegionSet> set;
  FailingCalls::Arm(0, EIO, 1, "msync");
  EXPECT_TRUE(RegionSet::Open(options_, &set).IsIOError());
  FailingCalls::Stop();
  ASSERT_TRUE(RegionSet::Open(options_, &set).ok());
  EXPECT_NE(set->impl()->region(0)->root()->metadata_check[static_cast<int>(MetadataSlot::kL1)], 0u);
}

TEST_F(DirectoryDamageTest, MoreMetadataThanARegionCanHold) {
  void* object = nullptr;
  EXPECT_TRUE(store_.regions->AllocateMetadata(0, MetadataSlot::kL1, options_.max_region_size, &object).IsNoSpace());
  ObjectId id{};
  const Status status = region()->AllocateObject(&id, uint64_t{1} << 50, PoolObject::kSegment);
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  Segment* segment = nullptr;
  EXPECT_TRUE(store_.allocator->Allocate(0, UINT64_MAX, &segment).IsInvalidArgument());
}

}  // namespace
}  // namespace braiddb
