// Values that imitate entries of the log: whoever has a copy of the files, and may write values, cannot make a value count as a
// write of another key, neither for an open nor for a repair. [CC-36]
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "check/findings.h"
#include "check/media.h"
#include "db/test_hooks.h"
#include "log/log_writer.h"
#include "pmem/layout_check.h"
#include "pmem/region.h"
#include "pmem/segment_directory.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/leave_child.h"
#include "tests/support/load_media.h"

namespace braiddb::test {
namespace {

using Content = std::map<std::string, std::string>;

// More than the attack draws. Replay does not look for entries with numbers far above.
constexpr uint64_t kLargeNumber = 20'000;
constexpr uint64_t kGenerations = 500;  // of segments to come, all of them in each value
// Bytes from one imitated entry to the next. All places in a cache line come up.
constexpr size_t kStep = 72;

// An entry that puts the imitation over whatever the victim has.
std::string ImitatedEntry(uint64_t entry_seed) {
  alignas(8) uint8_t bytes[kStep] = {};
  const LogUpdate update{EntryType::kPut, "victim", "imitated", 1};
  EXPECT_LE(LogWriter::WriteEntryAt(reinterpret_cast<LogEntry*>(bytes), entry_seed, kLargeNumber, 0, update), kStep);
  return std::string(reinterpret_cast<const char*>(bytes), kStep);
}

class ImitationTest : public DbOpenTest {
 protected:
  // The next database that is made is as those of before that had no seeds of entries.
  static void MakeAnOldDatabase() {
    SetDatabaseFoundHook([is_made = std::make_shared<bool>(false)](RegionSet* regions) {
      if (std::exchange(*is_made, true)) return;
      Region* const region = regions->impl()->region(0);
      RegionRoot* const root = region->root();
      root->format_version = kOldestRootFormatVersion;
      root->secret = root->secret_check = 0;
      root->checksum = RootChecksum(*root);
      if (root->directory.offset == 0) return;
      auto* const block = reinterpret_cast<DirectoryBlock*>(region->base() + AlignToLine(root->directory.offset));
      for (SegmentDescriptor& descriptor : block->descriptors) {  // of a last level that takes one at once
        if (!IsUsed(SegmentDirectory::StateOf(descriptor))) continue;
        auto* const header = reinterpret_cast<SegmentHeader*>(region->base() + SegmentHeaderOffset(descriptor));
        descriptor.entry_seed = header->entry_seed = header->mark = 0;
        header->checksum = SegmentHeaderChecksum(*header);
        descriptor.state_word = SegmentStateWord(descriptor, SegmentDirectory::StateOf(descriptor));
      }
    });
  }
  void TearDown() override { SetDatabaseFoundHook(nullptr); }

  std::unique_ptr<Media> Load() { return LoadMedia(path_); }

  void ScribbleDirectory(uint64_t directory) {
    const std::string part = path_ + "/region-0/000000.pmem";
    std::string content = ReadFileOrDie(part);
    content.replace(directory, sizeof(DirectoryBlock), Random(7).Bytes(sizeof(DirectoryBlock)));
    WriteFileOrDie(part, content);
  }

  // The open segment is one that is used again, and an open can meet the imitations: at least two values lie behind the end, so
  // one of them has the entries of all segments to come. In an old database the generation is the seed. There the entry of this
  // generation must lie where the search behind the end looks: near the end, and where an entry of the log may start.
  static bool AnImitationLiesBehindTheEnd(DB* db) {
    bool found = false;
    SegmentsOf(db)->ForEachLog([&found](Segment* segment) {
      if (segment->state() != SegmentState::kOpen) return;
      const uint64_t used = segment->used_bytes.load();
      const std::string_view content(reinterpret_cast<const char*>(segment->data()), segment->capacity());
      size_t count = 0;
      for (size_t at = used; (at = content.find("victimimitated", at)) != std::string_view::npos; ++at) ++count;
      if (count <= 2 * kGenerations) return;
      if (segment->entry_seed() != segment->generation()) {
        found = true;
        return;
      }
      const std::string entry = ImitatedEntry(segment->generation());
      const std::string_view near = content.substr(0, used + segment->capacity() / 4);
      for (size_t at = used; (at = near.find(entry, at)) != std::string_view::npos; ++at) {
        found |= at % kCacheLine <= kLastStart;
      }
    });
    return found;
  }

  // STEPS  1 a database is made and closed; its files are copied, so to say: `seeds` gets what they tell of segments to come
  //        2 all space is filled with values that imitate entries  3 they are deleted, and the space comes back  4 something is
  //        written, and the process ends.
  void Attack() {
    Fill(options_, 100);
    constexpr int kValues = 200;  // six a segment
    uint64_t first = 0;
    {
      const auto media = Load();
      first = media->root(0)->generation_word >> 16;
    }
    const auto work = [&]() -> int {
      std::string value;
      for (uint64_t i = 0; i < kGenerations; ++i) value += ImitatedEntry(first + i);
      auto db = OpenOrFail(options_, path_);
      if (db == nullptr || !db->Put({}, "victim", "acknowledged").ok()) return 1;
      const auto key = [](int i) { return "of sixteen bytes" + EightByteKey(static_cast<uint64_t>(i)); };  // values are aligned
      for (int i = 0; i < kValues; ++i) {
        if (!db->Put({}, key(i), value).ok()) return 2;
      }
      for (int i = 0; i < kValues; ++i) {
        if (!db->Delete({}, key(i)).ok()) return 3;
      }
      for (int i = 0; i < 3; ++i) {
        if (!db->CompactRange({}, nullptr, nullptr).ok()) return 4;
      }
      if (db->GetStatistics().segments_recycled < 20) return 5;
      // Until the open segment is one that is used again, and has an entry that is not flushed: an open then reads it.
      for (int i = 0;; ++i) {
        if (i == 10'000) return 9;
        if (!db->Put({}, "filler", PatternedValue(1, 500)).ok()) return 6;
        if (!AnImitationLiesBehindTheEnd(db.get())) continue;
        if (!db->Flush().ok() || !db->Put({}, "victim", "acknowledged later").ok()) return 7;
        if (AnImitationLiesBehindTheEnd(db.get())) break;
      }
      LeaveChild(db->GetLatestSequenceNumber() < kLargeNumber ? 0 : 8);
    };
    ASSERT_EQ(RunInChild(work), 0);
    expected_["victim"] = "acknowledged later";
    expected_["filler"] = PatternedValue(1, 500);
    for (int i = 0; i < 100; ++i) expected_[NumberedKey(i)] = PatternedValue(i, 100);
  }

  const Options options_ = TinyOptions(1);
  const std::string fresh_ = directory_.File("fresh");
  Content expected_;
};

// The attack works where the generation is the seed, so the other tests are of something that can fail.
TEST_F(ImitationTest, OldDatabasesHaveNoSeeds) {
  MakeAnOldDatabase();
  Attack();
  EXPECT_EQ(Load()->root(0)->format_version, kOldestRootFormatVersion);
  std::unique_ptr<DB> db;
  EXPECT_CODE(Open(options_, &db), kCorruption);
}

TEST_F(ImitationTest, AnOpenAndARepairShowWhatWasAcknowledged) {
  Attack();
  const std::string killed = directory_.File("killed");
  CopyDatabase(path_, killed);
  RepairReport report;
  ASSERT_OK(RepairDatabase({}, path_, fresh_, &report));
  {
    auto repaired = OpenOrFail(options_, fresh_);
    ASSERT_NE(repaired, nullptr);
    EXPECT_TRUE(HoldsExactly(repaired.get(), expected_));
  }
  std::filesystem::remove_all(path_);
  CopyDatabase(killed, path_);
  auto db = OpenOrFail(options_, path_);
  ASSERT_NE(db, nullptr);
  EXPECT_TRUE(HoldsExactly(db.get(), expected_));
}

// With the segment directory lost, too: no header in a value has the mark.
TEST_F(ImitationTest, ARepairWithoutTheDirectoryTakesNoHeaderFromAValue) {
  Fill(options_, 100);
  SegmentHeader header{};
  {
    const auto media = Load();
    header.magic = SegmentHeader::kMagic;
    header.database_id = media->root(0)->database_id;
    header.generation = 77;
    header.capacity = kChunkBytes - kSegmentOverhead;
    header.entry_seed = kEntrySeedBit | 5;
    header.checksum = SegmentHeaderChecksum(header);
    header.mark = SegmentHeaderMark(header, 12345);
  }
  std::string value;
  for (int i = 0; i < 64; ++i) {
    value += std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + ImitatedEntry(header.entry_seed);
  }
  const uint64_t directory = AlignToLine(Load()->root(0)->directory.offset);
  {
    auto db = OpenOrFail(options_, path_);
    ASSERT_NE(db, nullptr);
    ASSERT_OK(db->Put({}, "victim", "acknowledged"));
    ASSERT_OK(db->Put({}, "of sixteen byteseight or", value));
    ASSERT_OK(db->Close());
  }
  ScribbleDirectory(directory);
  RepairReport report;
  ASSERT_OK(RepairDatabase({}, path_, fresh_, &report));
  EXPECT_FALSE(report.damage.empty());
  auto repaired = OpenOrFail(options_, fresh_);
  ASSERT_NE(repaired, nullptr);
  EXPECT_EQ(GetOrText(repaired.get(), "victim"), "acknowledged");
  EXPECT_EQ(GetOrText(repaired.get(), "of sixteen byteseight or"), value);
  EXPECT_EQ(ScanForward(repaired.get()).size(), 102u);
}

// An old database has no numbers of its own, is opened, and stays old.
TEST_F(ImitationTest, OldDatabasesAreOpened) {
  MakeAnOldDatabase();
  Fill(options_, 500);
  SetDatabaseFoundHook(nullptr);
  for (int round = 0; round < 2; ++round) {
    auto db = OpenOrFail(options_, path_);
    ASSERT_NE(db, nullptr);
    ASSERT_OK(db->Put({}, "new", std::to_string(round)));
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    SegmentsOf(db.get())->ForEachLog([](Segment* segment) { EXPECT_EQ(segment->entry_seed(), segment->generation()); });
    EXPECT_EQ(GetOrText(db.get(), NumberedKey(499)), PatternedValue(499, 100));
    ASSERT_OK(db->Close());
    db.reset();
    CheckReport report;
    EXPECT_OK(CheckDatabase({}, path_, &report));
  }
  ScribbleDirectory(AlignToLine(Load()->root(0)->directory.offset));
  RepairReport report;
  ASSERT_OK(RepairDatabase({}, path_, fresh_, &report));
  auto repaired = OpenOrFail(options_, fresh_);
  ASSERT_NE(repaired, nullptr);
  EXPECT_EQ(ScanForward(repaired.get()).size(), 501u);
  SegmentsOf(repaired.get())->ForEachLog([](Segment* segment) { EXPECT_GE(segment->entry_seed(), kEntrySeedBit); });
}

}  // namespace
}  // namespace braiddb::test
