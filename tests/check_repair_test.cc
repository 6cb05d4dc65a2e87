// RepairDatabase: what is intact is saved, newest versions, deletions and whole batches respected; what is lost is said.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "check/media.h"
#include "log/log_reader.h"
#include "log/log_writer.h"
#include "pmem/layout.h"
#include "pmem/layout_check.h"
#include "tests/mutation/mutation_database.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/load_media.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

class CheckRepairTest : public DbOpenTest {
 protected:
  RepairReport Repair() {
    RepairReport report;
    RepairOptions options;
    options.target = TinyOptions(0);
    fs::remove_all(fresh_);
    EXPECT_OK(RepairDatabase(options, path_, fresh_, &report));
    EXPECT_TRUE(ChecksAsSound(fresh_));
    return report;
  }
  std::map<std::string, std::string> Saved() {
    auto db = OpenOrFail(TinyOptions(0), fresh_);
    const Pairs pairs = ScanForward(db.get());
    return {pairs.begin(), pairs.end()};
  }

  // Whether the new database has these families, and what `database` has in its own, in their order.
  void ExpectSaved(const MutationDatabase& database, const std::vector<ColumnFamilyDescriptor>& families, size_t optional) {
    std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(TinyOptions(0), fresh_, families, &handles, &db));
    for (size_t i = 0; i <= database.families().size(); ++i) {
      std::map<std::string, std::string> saved;
      const auto it = db->NewIterator({}, i == 0 ? db->DefaultColumnFamily() : handles[i - 1].get());
      for (it->SeekToFirst(); it->Valid(); it->Next()) saved.emplace(it->key(), it->value());
      EXPECT_OK(it->status());
      if (i == 0) {
        for (const std::string& key : database.optional()) optional -= saved.erase(key);
      }
      EXPECT_TRUE(saved == database.expected(i)) << i;
    }
    EXPECT_EQ(optional, 0u);
  }

  // Fills [offset, offset + bytes) of the region with bytes that mean nothing.
  void Scribble(uint32_t region, uint64_t offset, size_t bytes) {
    for (size_t part = 0;; ++part) {
      const std::string file = path_ + "/region-" + std::to_string(region) + "/" + PartName(part);
      const uint64_t size = fs::file_size(file);
      if (offset >= size) {
        offset -= size;
        continue;
      }
      std::string content = ReadFileOrDie(file);
      content.replace(offset, bytes, Random(7).Bytes(bytes));
      WriteFileOrDie(file, content);
      return;
    }
  }

  std::unique_ptr<Media> Load() { return LoadMedia(path_); }
  // Where the valid entries with this key lie, oldest first.
  std::vector<PmPtr> Find(const Media& media, Slice key) {
    std::map<uint64_t, PmPtr> found;
    for (const MediaSegment& segment : media.segments()) {
      if (!segment.used()) continue;
      LogReader reader(media.Resolve(segment.start()), segment.entry_seed, segment.limit());
      while (const LogEntry* entry = reader.NextValid()) {
        if (entry->key() == key) found[entry->sequence()] = segment.start() + reader.entry_offset();
      }
    }
    std::vector<PmPtr> places;
    for (const auto& [sequence, place] : found) places.push_back(place);
    return places;
  }
  uint64_t OffsetOf(const Media& media, const void* address, uint32_t region) {
    return static_cast<uint64_t>(static_cast<const uint8_t*>(address) - media.image(region)->base());
  }

  const std::string fresh_ = directory_.File("fresh");
};

TEST_F(CheckRepairTest, ASoundDatabaseIsCopiedWhole) {
  for (const Life life : {Life::kClosed, Life::kKilled, Life::kMerging, Life::kMerged}) {
    SCOPED_TRACE(NameOf(life));
    fs::remove_all(path_);
    fs::remove_all(directory_.File("older"));
    const MutationDatabase database(life);
    ASSERT_TRUE(database.Make(path_, directory_.File("older")));
    const RepairReport report = Repair();
    EXPECT_TRUE(report.damage.empty());
    EXPECT_TRUE(report.lost.empty()) << report.lost.front();
    auto saved = Saved();
    EXPECT_EQ(saved.size(), report.keys);
    for (const auto& key : database.optional()) EXPECT_EQ(saved.erase(key), life == Life::kKilled ? 1u : 0u);
    EXPECT_TRUE(saved == database.expected());
  }
}

TEST_F(CheckRepairTest, TheLastLevelStaysWhatItWas) {
  for (const L1Kind kind : {L1Kind::kBraidedSkipList, L1Kind::kNvTree}) {
    fs::remove_all(path_);
    fs::remove_all(fresh_);
    fs::remove_all(directory_.File("older"));
    ASSERT_TRUE(MutationDatabase(Life::kClosed, 2, kind).Make(path_, directory_.File("older")));
    RepairReport report;
    RepairOptions options;
    options.target = TinyOptions(0);
    options.target.l1 = kind == L1Kind::kNvTree ? L1Kind::kBraidedSkipList : L1Kind::kNvTree;
    ASSERT_OK(RepairDatabase(options, path_, fresh_, &report));
    Options same = TinyOptions(0);
    same.l1 = kind;
    EXPECT_NE(OpenOrFail(same, fresh_), nullptr);
  }
}

TEST_F(CheckRepairTest, ColumnFamiliesAreSavedEach) {
  for (const Life life : {Life::kClosed, Life::kKilled, Life::kMerging}) {
    SCOPED_TRACE(NameOf(life));
    fs::remove_all(path_);
    fs::remove_all(directory_.File("older"));
    const MutationDatabase database(life, 2, TestedL1(), true);
    ASSERT_TRUE(database.Make(path_, directory_.File("older")));
    const RepairReport report = Repair();
    EXPECT_TRUE(report.lost.empty()) << report.lost.front();
    EXPECT_EQ(report.families, 3u);
    ExpectSaved(database, database.families(), life == Life::kKilled ? 2 : 0);
  }
}

// The one that was being dropped comes back.
TEST_F(CheckRepairTest, WithoutAManifestColumnFamiliesHaveNumbers) {
  for (const Life life : {Life::kClosed, Life::kKilled}) {
    SCOPED_TRACE(NameOf(life));
    fs::remove_all(path_);
    fs::remove_all(directory_.File("older"));
    const MutationDatabase database(life, 2, TestedL1(), true);
    ASSERT_TRUE(database.Make(path_, directory_.File("older")));
    const auto media = Load();
    uint64_t bytes = 0;
    const uint64_t manifest = OffsetOf(*media, media->Metadata(0, MetadataSlot::kManifest, &bytes), 0);
    Scribble(0, manifest, 64);
    const RepairReport report = Repair();
    EXPECT_FALSE(report.damage.empty());
    ASSERT_EQ(report.lost.size(), life == Life::kClosed ? 2u : 3u);
    EXPECT_NE(report.lost[1].find("are in 'family-2', ordered bytewise"), std::string::npos) << report.lost[1];
    std::vector<ColumnFamilyDescriptor> families;
    for (size_t i = 1; i <= report.lost.size(); ++i)
      families.push_back({"family-" + std::to_string(i), ColumnFamilyOptions(TinyOptions(0))});
    ExpectSaved(database, families, life == Life::kKilled ? 2 : 0);
  }
}

TEST_F(CheckRepairTest, NothingIsLostWithManifestHeadsRootsOrDirectories) {
  const MutationDatabase database(Life::kClosed);
  ASSERT_TRUE(database.Make(path_, directory_.File("older")));
  const std::string pristine = directory_.File("pristine");
  fs::copy(path_, pristine, fs::copy_options::recursive);
  const std::pair<const char*, std::function<void(const Media&)>> kDamages[] = {
      {"MANIFEST",
       [&](const Media& media) {
         uint64_t bytes = 0;
         const uint8_t* object = media.Metadata(0, MetadataSlot::kManifest, &bytes);
         Scribble(0, OffsetOf(media, object, 0), bytes);
       }},
      {"last level",
       [&](const Media& media) {
         uint64_t bytes = 0;
         const uint8_t* object = media.Metadata(0, MetadataSlot::kL1, &bytes);
         Scribble(0, OffsetOf(media, object, 0), bytes);
       }},
      {"root", [&](const Media& media) { Scribble(1, OffsetOf(media, media.root(1), 1), sizeof(RegionRoot)); }},
      {"directory",
       [&](const Media& media) { Scribble(0, AlignToLine(media.root(0)->directory.offset), sizeof(DirectoryBlock)); }},
      {"pool header", [&](const Media&) { Scribble(0, 0, 8192); }},
      {"PARTS", [&](const Media&) { fs::remove(path_ + "/region-0/PARTS"); }},
      {"all of them",
       [&](const Media& media) {
         for (uint32_t region : {0u, 1u}) {
           const uint64_t directory = AlignToLine(media.root(region)->directory.offset);
           Scribble(region, OffsetOf(media, media.root(region), region), sizeof(RegionRoot));
           Scribble(region, directory, sizeof(DirectoryBlock));
           Scribble(region, 0, 8192);
         }
       }},
  };
  for (const auto& [what, apply] : kDamages) {
    SCOPED_TRACE(what);
    fs::remove_all(path_);
    fs::copy(pristine, path_, fs::copy_options::recursive);
    apply(*Load());
    EXPECT_FALSE(ChecksAsSound(path_));
    const RepairReport report = Repair();
    EXPECT_FALSE(report.damage.empty());
    EXPECT_TRUE(Saved() == database.expected());
  }
}

TEST_F(CheckRepairTest, WithADamagedEntryJustThatIsLost) {
  Fill(TinyOptions(1), 300);
  const PmPtr place = Find(*Load(), NumberedKey(100)).at(0);
  Scribble(0, place.offset() + 60, 16);
  const RepairReport report = Repair();
  EXPECT_EQ(report.damaged_stretches, 1u);
  EXPECT_EQ(report.lost.size(), 1u);
  auto saved = Saved();
  EXPECT_EQ(saved.size(), 299u);
  EXPECT_FALSE(saved.contains(NumberedKey(100)));
  for (const auto& [key, value] : saved) EXPECT_EQ(value, PatternedValue(std::stoul(key.substr(3)), 100)) << key;
}

// A value has bytes of a segment's header, with the database's identity, and of an entry of another key with a large number.
TEST_F(CheckRepairTest, AValueThatImitatesASegmentIsAValue) {
  Fill(TinyOptions(1), 300);
  constexpr size_t kStep = 512;
  std::string value(9 * kStep, 0);
  {
    const auto media = Load();
    SegmentHeader header{};
    header.magic = SegmentHeader::kMagic;
    header.database_id = media->root(0)->database_id;
    header.generation = 77;
    header.capacity = 384;
    header.checksum = SegmentHeaderChecksum(header);
    alignas(8) uint8_t entry[256] = {};
    const std::string key = NumberedKey(5);
    const LogUpdate update{EntryType::kPut, key, "imitated", 1};
    LogWriter::WriteEntryAt(reinterpret_cast<LogEntry*>(entry), header.generation, uint64_t{1} << 40, 0, update);
    for (size_t i = 0; i < 8; ++i) {  // one of them begins on a line
      memcpy(&value[i * kStep + 8 * i], &header, sizeof(header));
      memcpy(&value[i * kStep + 8 * i + sizeof(header)], entry, sizeof(entry));
    }
  }
  {
    auto db = OpenOrFail(TinyOptions(1), path_);
    ASSERT_NE(db, nullptr);
    ASSERT_OK(db->Put({}, "an imitation has 8 bytes", value));
    ASSERT_OK(db->Close());
  }
  const uint64_t directory = AlignToLine(Load()->root(0)->directory.offset);
  // A descriptor that no session has used: they take them from both ends.
  Scribble(0, directory + offsetof(DirectoryBlock, descriptors) + 40 * sizeof(SegmentDescriptor), sizeof(SegmentDescriptor));
  EXPECT_FALSE(Repair().damage.empty());
  auto saved = Saved();
  EXPECT_EQ(saved[NumberedKey(5)], PatternedValue(5, 100));
  EXPECT_EQ(saved["an imitation has 8 bytes"], value);
  EXPECT_EQ(saved.size(), 301u);
}

TEST_F(CheckRepairTest, NewestVersionsAndDeletionsCount) {
  {
    auto db = OpenOrFail(MutationDatabase::MakeOptions(), path_);
    for (const char* key : {"a", "b", "c", "d"}) ASSERT_OK(db->Put({}, key, "old"));
    const Snapshot* snapshot = db->GetSnapshot();  // keeps the old versions in their lists
    ASSERT_OK(db->Put({}, "a", "new"));
    ASSERT_OK(db->Delete({}, "b"));
    ASSERT_OK(db->Flush());
    ASSERT_OK(db->Put({}, "c", "newer"));
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    ASSERT_OK(db->Delete({}, "d"));
    db->ReleaseSnapshot(snapshot);
    ASSERT_OK(db->Close());
  }
  const uint64_t manifest = [&] {
    const auto media = Load();
    uint64_t bytes = 0;
    return OffsetOf(*media, media->Metadata(0, MetadataSlot::kManifest, &bytes), 0);
  }();
  for (const bool without_manifest : {false, true}) {
    if (without_manifest) Scribble(0, manifest, 64);
    Repair();
    const std::map<std::string, std::string> expected = {{"a", "new"}, {"c", "newer"}};
    EXPECT_TRUE(Saved() == expected);
  }
}

TEST_F(CheckRepairTest, ABatchIsSavedWholeOrNotAtAll) {
  {
    auto db = OpenOrFail(MutationDatabase::MakeOptions(), path_);
    for (const char* name : {"x", "y", "z"}) {
      WriteBatch batch;
      for (int i = 0; i < 5; ++i) batch.Put(std::string(name) + std::to_string(i), PatternedValue(i, 50));
      ASSERT_OK(db->Put({}, std::string("before ") + name, "1"));
      ASSERT_OK(db->Write({}, batch));
      ASSERT_OK(db->Put({}, std::string("after ") + name, "1"));
    }
    ASSERT_OK(db->Close());
  }
  const std::string pristine = directory_.File("pristine");
  fs::copy(path_, pristine, fs::copy_options::recursive);
  for (const char* damaged : {"y0", "y2", "y4"}) {
    SCOPED_TRACE(damaged);
    fs::remove_all(path_);
    fs::copy(pristine, path_, fs::copy_options::recursive);
    const auto media = Load();
    const PmPtr place = Find(*media, damaged).at(0);
    Scribble(place.region(), place.offset(), 8);
    const RepairReport report = Repair();
    EXPECT_GE(report.broken_batches + report.damaged_stretches, 2u);
    EXPECT_FALSE(report.lost.empty());
    const auto saved = Saved();
    EXPECT_EQ(saved.size(), 16u);
    for (const auto& [key, value] : saved) EXPECT_NE(key[0], 'y') << key;
  }
}

TEST_F(CheckRepairTest, MissingFilesAndRegionsCostWhatWasInThem) {
  const MutationDatabase database(Life::kClosed);
  ASSERT_TRUE(database.Make(path_, directory_.File("older")));
  const std::string pristine = directory_.File("pristine");
  fs::copy(path_, pristine, fs::copy_options::recursive);
  for (const char* gone : {"/region-1", "/region-0", "/region-0/000001.pmem"}) {
    SCOPED_TRACE(gone);
    if (!fs::exists(pristine + gone)) continue;  // some last levels fit the first part
    fs::remove_all(path_);
    fs::copy(pristine, path_, fs::copy_options::recursive);
    ASSERT_GT(fs::remove_all(path_ + gone), 0u);
    const RepairReport report = Repair();
    EXPECT_TRUE(std::any_of(report.lost.begin(), report.lost.end(),
                            [&](const std::string& lost) { return lost.find("missing") != std::string::npos; }));
    const auto saved = Saved();
    EXPECT_GT(saved.size(), 0u);
    EXPECT_LE(saved.size(), database.expected().size());
    const bool is_region = std::string_view(gone).find(".pmem") == std::string_view::npos;  // a part may have free segments only
    EXPECT_TRUE(!is_region || saved.size() < database.expected().size());
  }
}

TEST_F(CheckRepairTest, AMissingPartCostsTheEntriesInIt) {
  constexpr int kKeys = 30'000;
  Fill(TinyOptions(1), kKeys);
  ASSERT_TRUE(fs::exists(path_ + "/region-0/000002.pmem"));
  fs::remove(path_ + "/region-0/000001.pmem");
  EXPECT_FALSE(Repair().lost.empty());
  const auto saved = Saved();
  EXPECT_GT(saved.size(), 100u);
  EXPECT_LT(saved.size(), kKeys - 100u);
  for (const auto& [key, value] : saved) ASSERT_EQ(value, PatternedValue(std::stoul(key.substr(3)), 100)) << key;
}

// Whenever it is killed, nothing has the target's name before it is whole, and another repair gets to its end.
TEST_F(CheckRepairTest, AKilledRepairLeavesNothingUnderTheName) {
  Fill(TinyOptions(1), 3000);
  RepairOptions options;
  for (const bool elsewhere : {false, true}) {
    if (elsewhere) options.target.region_paths = {directory_.File("elsewhere")};
    for (int line_of_log = 0; line_of_log < 6; ++line_of_log) {
      const int exit_code = RunInChild([&] {
        int seen = 0;
        options.target.info_log = [&](std::string_view) {
          if (seen++ == line_of_log) _exit(42);
        };
        options.target.memtable_size = 64 << 10;
        RepairReport report;
        return RepairDatabase(options, path_, fresh_, &report).ok() ? 0 : 1;
      });
      if (exit_code == 0) {  // the log has fewer lines
        ASSERT_OK(DB::Destroy({}, fresh_));
        break;
      }
      EXPECT_EQ(exit_code, 42);
      EXPECT_FALSE(fs::exists(fresh_));
    }
    RepairReport report;
    ASSERT_OK(RepairDatabase(options, path_, fresh_, &report));
    EXPECT_EQ(report.keys, 3000u);
    EXPECT_FALSE(fs::exists(fresh_ + ".tmp"));
    EXPECT_FALSE(fs::exists(fresh_ + "/COPYING"));
    OpenOrFail(TinyOptions(0), fresh_).reset();
    ASSERT_OK(DB::Destroy({}, fresh_));
  }
}

TEST_F(CheckRepairTest, RefusesWhatItMustNotDo) {
  Fill(TinyOptions(1), 10);
  RepairReport report;
  RepairOptions options;
  EXPECT_CODE(RepairDatabase(options, path_, path_, &report), kInvalidArgument);
  EXPECT_CODE(RepairDatabase(options, directory_.File("nowhere"), fresh_, &report), kNotFound);
  EXPECT_FALSE(fs::exists(fresh_));
  auto db = OpenOrFail(TinyOptions(1), path_);
  EXPECT_CODE(RepairDatabase(options, path_, fresh_, &report), kBusy);
}

}  // namespace
}  // namespace braiddb::test
