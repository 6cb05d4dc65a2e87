// PoolFiles: what it reads of a region that somebody has open, and that grows meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "pmem/part_list.h"
#include "pmem/pool_files.h"
#include "pmem/posix.h"
#include "tests/support/segment_test.h"

namespace braiddb::test {
namespace {

class PoolFilesTest : public SegmentTest {
 protected:
  // A segment in a part that the region did not have when this was called, with a pattern in it.
  Segment* AllocateInNewPart() {
    const uint64_t before = store_.regions->ReservedBytes(0);
    Segment* segment = nullptr;
    do {
      segment = Allocate();
    } while (segment != nullptr && store_.regions->ReservedBytes(0) == before);
    if (segment == nullptr) return nullptr;
    std::memset(segment->data(), 0x5a, segment->capacity());
    EXPECT_TRUE(allocator()->Seal(segment, segment->capacity(), 1).ok());
    return segment;
  }
  PoolFiles files_{options_.database_path + "/region-0"};
};

TEST_F(PoolFilesTest, ListsAndReadsWhatHasComeSinceOpen) {
  Allocate();
  ASSERT_TRUE(files_.Open().ok());
  const uint64_t known = files_.list().TotalBytes();
  const Segment* const segment = AllocateInNewPart();
  ASSERT_NE(segment, nullptr);
  std::vector<ListedSegment> listed;
  ASSERT_TRUE(files_.ListSegments(&listed).ok());
  const auto found =
      std::find_if(listed.begin(), listed.end(), [segment](const auto& of) { return of.generation == segment->generation(); });
  ASSERT_NE(found, listed.end());
  EXPECT_EQ(found->sealed_bytes, segment->capacity());
  ASSERT_GT(found->data + found->capacity, known);
  std::vector<uint8_t> bytes(segment->capacity());
  ASSERT_TRUE(files_.Read(found->data, bytes.size(), bytes.data()).ok());
  EXPECT_EQ(std::memcmp(bytes.data(), segment->data(), bytes.size()), 0);
  EXPECT_EQ(files_.list().TotalBytes(), known);
}

// The newest slot is found whether its segment is in use or released.
TEST_F(PoolFilesTest, TheNewestSlotIsFoundInEachState) {
  std::vector<ListedSegment> listed;
  NewestSlot newest;
  const Segment* const older = Allocate();
  Segment* const segment = Allocate();
  ASSERT_NE(segment, nullptr);
  const uint64_t generation = segment->generation();
  ASSERT_GT(generation, older->generation());
  ASSERT_TRUE(files_.Open().ok());
  ASSERT_TRUE(files_.ListSegments(&listed, &newest).ok());
  EXPECT_EQ(newest.generation, generation);
  EXPECT_TRUE(newest.is_used);
  ASSERT_TRUE(allocator()->Seal(segment, 8, 77).ok());
  ASSERT_TRUE(allocator()->Release(segment).ok());
  ASSERT_TRUE(files_.ListSegments(&listed, &newest).ok());
  EXPECT_EQ(newest.generation, generation);
  EXPECT_FALSE(newest.is_used);
  EXPECT_EQ(newest.sealed_last_sequence, 77u);
}

// Between the growth of the heap and that of the list, the list names the part as the next one.
TEST_F(PoolFilesTest, ReadsAPartThatIsBeingAdded) {
  Allocate();
  const Segment* const segment = AllocateInNewPart();
  ASSERT_NE(segment, nullptr);
  const std::string path = options_.database_path + "/region-0/PARTS";
  std::string text;
  ASSERT_TRUE(posix::ReadSmallFile(path, 1 << 20, &text).ok());
  PartList list;
  ASSERT_TRUE(PartList::Parse(text, path, &list).ok());
  list.next = list.parts.back();
  list.parts.pop_back();
  std::ofstream(path, std::ios::trunc) << list.ToText();
  ASSERT_TRUE(files_.Open().ok());
  EXPECT_EQ(files_.list().parts.size(), list.parts.size());
  std::vector<ListedSegment> listed;
  ASSERT_TRUE(files_.ListSegments(&listed).ok());
  const auto found =
      std::find_if(listed.begin(), listed.end(), [segment](const auto& of) { return of.generation == segment->generation(); });
  ASSERT_NE(found, listed.end());
  std::vector<uint8_t> bytes(segment->capacity());
  ASSERT_TRUE(files_.Read(found->data, bytes.size(), bytes.data()).ok());
  EXPECT_EQ(std::memcmp(bytes.data(), segment->data(), bytes.size()), 0);
  std::ofstream(path, std::ios::trunc) << text;
}

TEST_F(PoolFilesTest, WhatLiesBehindAllPartsIsDamage) {
  ASSERT_TRUE(files_.Open().ok());
  uint8_t byte = 0;
  const uint64_t end = files_.list().TotalBytes();
  EXPECT_TRUE(files_.Read(end - 1, 1, &byte).ok());
  for (const auto& [offset, bytes] : {std::pair{end, uint64_t{1}}, {end - 1, uint64_t{2}}, {UINT64_MAX, uint64_t{1}}}) {
    const Status status = files_.Read(offset, bytes, &byte);
    EXPECT_TRUE(status.IsCorruption()) << offset << ": " << status.ToString();
  }
}

// A list of segments that ends too early would look like a smaller database.
TEST_F(PoolFilesTest, ADamagedLinkOfTheDirectoryIsDamage) {
  Allocate();
  ASSERT_TRUE(files_.Open().ok());
  std::vector<ListedSegment> listed;
  ASSERT_TRUE(files_.ListSegments(&listed).ok());
  ASSERT_FALSE(listed.empty());
  const ObjectId directory = files_.root().directory;
  const uint64_t place = AlignToLine(directory.offset) + offsetof(DirectoryBlock, next);
  for (const ObjectId& link : {ObjectId{directory.pool ^ 1, 4096}, ObjectId{directory.pool, 4096}, ObjectId{0, 4096}}) {
    std::fstream part(files_.directory() + "/000000.pmem", std::ios::in | std::ios::out | std::ios::binary);
    part.seekp(static_cast<std::streamoff>(place));
    part.write(reinterpret_cast<const char*>(&link), sizeof(link));
    ASSERT_TRUE(part.flush().good());
    const Status status = files_.ListSegments(&listed);
    EXPECT_TRUE(status.IsCorruption()) << status.ToString();
  }
}

// A list may promise more than its files have: no memory is taken for that.
TEST_F(PoolFilesTest, MemoryIsTakenForWhatTheFilesHave) {
  ASSERT_TRUE(files_.Open().ok());
  const std::string path = options_.database_path + "/region-0/PARTS";
  std::string text;
  ASSERT_TRUE(posix::ReadSmallFile(path, 1 << 20, &text).ok());
  PartList list;
  ASSERT_TRUE(PartList::Parse(text, path, &list).ok());
  const uint64_t known = list.TotalBytes();
  list.parts.push_back(uint64_t{1} << 40);
  std::ofstream(path, std::ios::trunc) << list.ToText();
  PoolFiles promised(files_.directory());
  const Status opened = promised.Open();
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  std::vector<uint64_t> bytes;
  EXPECT_FALSE(promised.Read(0, known + (uint64_t{1} << 40), &bytes, 0).ok());
  EXPECT_EQ(bytes.capacity(), 0u);
  ASSERT_TRUE(promised.Read(8, 100, &bytes, 24).ok());
  EXPECT_GE(8 * bytes.size(), 124u);
  std::ofstream(path, std::ios::trunc) << text;
}

}  // namespace
}  // namespace braiddb::test
