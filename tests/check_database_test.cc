// CheckDatabase: sound databases check as sound, in every state in which one can be left; damage is found and named; nothing is
// changed.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "check/media.h"
#include "leaf_tree/inner_image.h"
#include "levels/braided_skiplist/braided_media.h"
#include "levels/nv_tree/nv_tree_media.h"
#include "nvtree/nv_tree.h"
#include "pmem/layout_check.h"
#include "pmem/pool_format.h"
#include "tests/mutation/mutation_database.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/load_media.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

const SkipListHead* HeadOf(const Media& media) { return dynamic_cast<BraidedMedia&>(*media.families().at(0).level).head(0); }
const LeafTreeRoot* TreeRootOf(const Media& media) { return dynamic_cast<NvTreeMedia&>(*media.families().at(0).level).root(); }

class CheckDatabaseTest : public DbOpenTest {
 protected:
  void Make(Life life) { ASSERT_TRUE(MutationDatabase(life).Make(path_, directory_.File("older"))); }

  CheckReport Check() {
    CheckReport report;
    EXPECT_OK(CheckDatabase({}, path_, &report));
    return report;
  }

  // Changes the 8-byte word at `p` on media.
  void Change(const Media& media, PmPtr p, const std::function<uint64_t(uint64_t)>& change) {
    uint64_t offset = p.offset();
    const PartList& list = media.image(p.region())->list();
    size_t part = 0;
    while (offset >= list.parts[part]) offset -= list.parts[part++];
    std::fstream file(media.image(p.region())->directory() + "/" + PartName(part),
                      std::ios::in | std::ios::out | std::ios::binary);
    uint64_t word = 0;
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(reinterpret_cast<char*>(&word), sizeof(word));
    word = change(word);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(reinterpret_cast<const char*>(&word), sizeof(word));
    ASSERT_TRUE(file.good());
  }

  std::unique_ptr<Media> Load() { return LoadMedia(path_); }

  // The first entry of the last level that is at least this tall, and has a next entry in its highest layer of that height.
  static PmPtr TallEntry(const Media& media, uint32_t height) {
    size_t segment = 0;
    for (PmPtr p(HeadOf(media)->next[0]); p;) {
      const LogEntry* entry = media.EntryAt(p, &segment);
      if (entry->height() >= height && entry->Next(height - 1)) return p;
      p = entry->Next(0);
    }
    return PmPtr();
  }

  // Some finding has all of these words.
  static testing::AssertionResult Names(const CheckReport& report, const std::string& what) {
    for (const CheckFinding& finding : report.findings) {
      if (finding.what.find(what) == std::string::npos) continue;
      if (finding.where.empty() || finding.advice.empty())
        return testing::AssertionFailure() << what << ": no place or no advice";
      return testing::AssertionSuccess();
    }
    testing::AssertionResult failure = testing::AssertionFailure() << "no finding says \"" << what << "\", but:";
    for (const CheckFinding& finding : report.findings) failure << "\n  " << finding.what;
    return failure;
  }
};

TEST_F(CheckDatabaseTest, EveryStateThatADatabaseIsLeftInIsSound) {
  for (const Life life : {Life::kClosed, Life::kKilled, Life::kMerging, Life::kMerged}) {
    SCOPED_TRACE(NameOf(life));
    fs::remove_all(path_);
    fs::remove_all(directory_.File("older"));
    ASSERT_NO_FATAL_FAILURE(Make(life));
    const CheckReport report = Check();
    EXPECT_TRUE(report.sound());
    EXPECT_EQ(report.regions, 2u);
    EXPECT_GT(report.l1_entries, 50u);
    EXPECT_EQ(report.merge_running, life == Life::kMerging || life == Life::kMerged);
    EXPECT_EQ(report.log_entries > 0, life == Life::kKilled);
    EXPECT_EQ(report.tables, life == Life::kClosed ? 3u : 2u);
  }
}

// A process died while PMDK stored an id: the redo log is pending, and the id has its offset but no pool.
TEST_F(CheckDatabaseTest, AnIdThatPmdkHasStoredByHalfIsSound) {
  ASSERT_NO_FATAL_FAILURE(Make(Life::kClosed));
  const std::unique_ptr<Media> media = Load();
  const uint8_t* const base = media->image(0)->base();
  const auto change = [&](const void* word, uint64_t value) {
    Change(*media, PmPtr(0, static_cast<uint64_t>(static_cast<const uint8_t*>(word) - base)), [=](uint64_t) { return value; });
  };
  const RegionRoot& root = *media->root(0);
  const auto manifest = static_cast<uint32_t>(MetadataSlot::kManifest);
  for (const ObjectId* id : {&root.metadata[manifest], &root.directory}) {
    const uint64_t pool = id->pool;
    if (id == &root.metadata[manifest]) change(&root.metadata_check[manifest], 0);
    change(&id->pool, 0);
    EXPECT_FALSE(Check().sound());
    uint64_t lanes = 0;
    memcpy(&lanes, base + kPoolLanesOffset, sizeof(lanes));
    change(base + lanes, 1);
    CheckReport report = Check();
    EXPECT_TRUE(report.sound()) << report.findings.front().what;
    EXPECT_TRUE(report.allocation_pending);
    std::unique_ptr<DB> db;
    Options options;
    options.l1 = TestedL1();
    EXPECT_OK(DB::OpenForReadOnly(options, path_, &db));
    change(base + lanes, 0);
    change(&id->pool, pool);
  }
}

TEST_F(CheckDatabaseTest, EveryStateWithColumnFamiliesIsSound) {
  for (const Life life : {Life::kClosed, Life::kKilled, Life::kMerging, Life::kMerged}) {
    SCOPED_TRACE(NameOf(life));
    fs::remove_all(path_);
    fs::remove_all(directory_.File("older"));
    const MutationDatabase database(life, 2, TestedL1(), true);
    ASSERT_TRUE(database.Make(path_, directory_.File("older")));
    const CheckReport report = Check();
    EXPECT_TRUE(report.sound());
    EXPECT_EQ(report.families, 3u);
    EXPECT_EQ(report.merge_running, life == Life::kMerging || life == Life::kMerged);
    const ManifestState manifest = Load()->manifest();
    EXPECT_EQ(manifest.families.size(), life == Life::kClosed ? 2u : 3u) << "one that was dropped";
    if (report.merge_running && TestedL1() == L1Kind::kBraidedSkipList) {
      EXPECT_NE(manifest.merging_family, 0u);
    }
    // What the next open replays, finishes and takes away.
    std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(database.options(), path_, database.families(), &handles, &db));
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    handles.clear();
    ASSERT_OK(db->Close());
    db.reset();
    EXPECT_TRUE(Check().sound());
  }
}

TEST_F(CheckDatabaseTest, CountsAgreeWithWhatTheDatabaseHolds) {
  {
    auto db = OpenOrFail(MutationDatabase::MakeOptions(), path_);
    for (int i = 0; i < 100; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), "v"));
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    const Snapshot* snapshot = db->GetSnapshot();
    for (int i = 0; i < 30; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), "w"));
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    db->ReleaseSnapshot(snapshot);
    for (int i = 0; i < 7; ++i) ASSERT_OK(db->Delete({}, NumberedKey(i)));
    ASSERT_OK(db->Close());
  }
  const CheckReport report = Check();
  EXPECT_TRUE(report.sound());
  EXPECT_EQ(report.l1_entries, 130u);
  EXPECT_EQ(report.obsolete_entries, 30u);
  EXPECT_EQ(report.l0_entries, 7u);
  EXPECT_EQ(report.log_entries, 0u);
}

TEST_F(CheckDatabaseTest, NotAByteIsChanged) {
  for (const Life life : {Life::kKilled, Life::kMerging}) {
    fs::remove_all(path_);
    fs::remove_all(directory_.File("older"));
    ASSERT_NO_FATAL_FAILURE(Make(life));
    std::map<std::string, std::string> before;
    std::map<std::string, fs::file_time_type> times;
    for (const auto& file : ListFiles(path_)) {
      before[file] = ReadFileOrDie(path_ + "/" + file);
      times[file] = fs::last_write_time(path_ + "/" + file);
    }
    EXPECT_TRUE(Check().sound());
    ASSERT_EQ(ListFiles(path_).size(), before.size());
    for (const auto& [file, content] : before) {
      EXPECT_TRUE(ReadFileOrDie(path_ + "/" + file) == content) << file;
      EXPECT_EQ(fs::last_write_time(path_ + "/" + file), times[file]) << file;
    }
  }
}

TEST_F(CheckDatabaseTest, WhatCannotBeLookedAtIsAnErrorAndNoFinding) {
  CheckReport report;
  EXPECT_CODE(CheckDatabase({}, path_, &report), kNotFound);
  auto db = OpenOrFail(TinyOptions(2), path_);
  EXPECT_CODE(CheckDatabase({}, path_, &report), kBusy);
  db.reset();
  EXPECT_OK(CheckDatabase({}, path_, &report));
  // And the other way round: a check does not keep the database from being opened later.
  ExpectFilled(TinyOptions(2), 0);
}

// No open accepts either.
TEST_F(CheckDatabaseTest, TheFileDatabaseAndTheRegionsBelongTogether) {
  const std::string other = directory_.File("other");
  OpenOrFail(TinyOptions(1), path_).reset();
  OpenOrFail(TinyOptions(1), other).reset();
  const std::string own = ReadFileOrDie(path_ + "/DATABASE");
  WriteFileOrDie(path_ + "/DATABASE", ReadFileOrDie(other + "/DATABASE"));
  EXPECT_TRUE(Names(Check(), "and the regions are of"));
  std::unique_ptr<DB> db;
  EXPECT_FALSE(DB::Open(TinyOptions(1), path_, &db).ok());
  WriteFileOrDie(path_ + "/DATABASE", own.substr(0, own.size() - 4));
  EXPECT_TRUE(Names(Check(), "truncated or damaged"));
  EXPECT_FALSE(DB::Open(TinyOptions(1), path_, &db).ok());
  WriteFileOrDie(path_ + "/DATABASE", own);
  EXPECT_TRUE(Check().sound());
}

TEST_F(CheckDatabaseTest, OrderIsThatOfTheComparator) {
  class Backwards : public Comparator {
   public:
    int Compare(Slice a, Slice b) const override { return b.compare(a); }
    const char* Name() const override { return "test.backwards"; }
  } backwards;
  Options options = TinyOptions(2);
  options.comparator = &backwards;
  { Fill(options, 50); }
  CheckReport report;
  EXPECT_CODE(CheckDatabase({}, path_, &report), kNotSupported);
  CheckOptions with_order;
  with_order.comparator = &backwards;
  ASSERT_OK(CheckDatabase(with_order, path_, &report));
  EXPECT_TRUE(report.sound());
}

// ---- Damage

TEST_F(CheckDatabaseTest, EachKindOfDamageIsNamed) {
  if (TestedL1() != L1Kind::kBraidedSkipList) GTEST_SKIP() << "it damages the lists of the last level";
  // Heights are random: again until two entries of a region are tall.
  for (int tries = 0; tries == 0 || !TallEntry(*Load(), 3); ++tries) {
    ASSERT_LT(tries, 50);
    fs::remove_all(path_);
    fs::remove_all(directory_.File("older"));
    ASSERT_NO_FATAL_FAILURE(Make(Life::kClosed));
  }
  const std::string pristine = directory_.File("pristine");
  fs::copy(path_, pristine, fs::copy_options::recursive);
  struct Damage {
    const char* finding;
    std::function<void(const Media&)> apply;
  };
  const auto flip = [](uint64_t bit) { return [bit](uint64_t word) { return word ^ uint64_t { 1 } << bit; }; };
  const PmPtr none;
  const auto next_word = [](PmPtr entry, uint32_t layer) { return entry + offsetof(LogEntry, next) + 8ull * layer; };
  const auto root = [](const Media& media) {
    return PmPtr(1, static_cast<uint64_t>(reinterpret_cast<const uint8_t*>(media.root(1)) - media.image(1)->base()));
  };
  const Damage kDamages[] = {
      {"checksum of the pool header", [&](const Media&) { Change(*Load(), PmPtr(1, 40), flip(3)); }},
      {"heap header",
       [&](const Media& media) {
         Change(media, PmPtr(0, PoolView(media.image(0)->base(), media.image(0)->bytes()).heap_begin() + 16), flip(1));
       }},
      {"checksum of the root", [&](const Media& media) { Change(media, root(media) + 16, flip(5)); }},
      {"generation limit", [&](const Media& media) { Change(media, root(media) + 40, flip(20)); }},
      {"pointer to metadata object 1", [&](const Media& media) { Change(media, root(media) + 64 + 16 + 8, flip(9)); }},
      {"link to a block", [&](const Media& media) { Change(media, root(media) + 56, flip(12)); }},
      {"segment header",
       [&](const Media& media) { Change(media, PmPtr(media.segments()[0].region, media.segments()[0].data - 40), flip(1)); }},
      {"damaged log entry", [&](const Media& media) { Change(media, TallEntry(media, 1) + 8, flip(30)); }},
      {"leads to no valid entry", [&](const Media& media) { Change(media, next_word(TallEntry(media, 1), 0), flip(20)); }},
      {"marked dead", [&](const Media& media) { Change(media, next_word(TallEntry(media, 1), 0), flip(0)); }},
      {"unknown marks", [&](const Media& media) { Change(media, next_word(TallEntry(media, 2), 1), flip(2)); }},
      {"misses an entry",
       [&](const Media& media) { Change(media, next_word(TallEntry(media, 3), 2), [](uint64_t) { return 0; }); }},
      {"out of order",
       [&](const Media& media) {
         const PmPtr entry = TallEntry(media, 1);
         Change(media, next_word(entry, 0), [&](uint64_t) { return entry.raw(); });
       }},
      // The pointer skips an entry: every list is sorted, but one entry is in none.
      {"the lists have",
       [&](const Media& media) {
         const PmPtr entry = TallEntry(media, 1);
         const PmPtr skipped(media.Resolve<LogEntry>(entry)->Next(0));
         Change(media, next_word(entry, 0), [&](uint64_t) { return media.Resolve<LogEntry>(skipped)->next[0]; });
       }},
      {"MANIFEST is damaged",
       [&](const Media& media) {
         uint64_t bytes = 0;
         const uint8_t* manifest = media.Metadata(0, MetadataSlot::kManifest, &bytes);
         Change(media, PmPtr(0, static_cast<uint64_t>(manifest - media.image(0)->base()) + 8), flip(3));
       }},
      {"head of the last level",
       [&](const Media& media) {
         Change(media,
                PmPtr(0, static_cast<uint64_t>(reinterpret_cast<const uint8_t*>(HeadOf(media)->next) - media.image(0)->base())),
                flip(7));
       }},
  };
  for (const Damage& damage : kDamages) {
    SCOPED_TRACE(damage.finding);
    fs::remove_all(path_);
    fs::copy(pristine, path_, fs::copy_options::recursive);
    damage.apply(*Load());
    const CheckReport report = Check();
    EXPECT_TRUE(Names(report, damage.finding));
    std::unique_ptr<DB> db;
    Options strict = TinyOptions(2);
    strict.verify_at_open = true;
    EXPECT_CODE(Open(strict, &db), kCorruption);
  }
}

TEST_F(CheckDatabaseTest, EachKindOfDamageToATreeIsNamed) {
  const auto make = [this](Life life) {
    fs::remove_all(path_);
    fs::remove_all(directory_.File("older"));
    ASSERT_TRUE(MutationDatabase(life, 2, L1Kind::kNvTree).Make(path_, directory_.File("older")));
  };
  make(Life::kClosed);
  const std::string pristine = directory_.File("pristine");
  fs::copy(path_, pristine, fs::copy_options::recursive);
  const auto root = [](const Media& media) {
    return PmPtr(0, static_cast<uint64_t>(reinterpret_cast<const uint8_t*>(TreeRootOf(media)) - media.image(0)->base()));
  };
  const auto first_leaf = [](const Media& media) { return LinkTarget(TreeRootOf(media)->first); };
  const auto entry_of = [&](const Media& media, uint32_t i) {
    return PmPtr(media.Resolve<Leaf>(first_leaf(media))->elements[i].value);
  };
  const auto flip = [](uint64_t bit) { return [bit](uint64_t word) { return word ^ uint64_t { 1 } << bit; }; };
  struct Damage {
    const char* finding;
    std::function<void(const Media&)> apply;
  };
  const Damage kDamages[] = {
      {"root of the NV-Tree", [&](const Media& media) { Change(media, root(media) + 16, flip(9)); }},
      {"root of the NV-Tree", [&](const Media& media) { Change(media, root(media) + 24, flip(1)); }},
      {"damaged link to a leaf", [&](const Media& media) { Change(media, root(media) + 64, flip(60)); }},
      // A sound link to another leaf.
      {"the lists have",
       [&](const Media& media) {
         const PmPtr second = LinkTarget(media.Resolve<Leaf>(first_leaf(media))->next);
         Change(media, root(media) + 64, [&](uint64_t) { return MakeLink(TreeRootOf(media)->tree_id, second); });
       }},
      {"leads to no leaf",
       [&](const Media& media) {
         Change(media, root(media) + 64, [&](uint64_t) { return MakeLink(TreeRootOf(media)->tree_id, first_leaf(media) + 64); });
       }},
      // A circle.
      {"was there before",
       [&](const Media& media) {
         const PmPtr leaf = first_leaf(media);
         Change(media, leaf + offsetof(Leaf, next), [&](uint64_t) { return MakeLink(leaf.raw(), leaf); });
       }},
      {"damaged leaf", [&](const Media& media) { Change(media, first_leaf(media) + offsetof(Leaf, published), flip(1)); }},
      {"damaged leaf", [&](const Media& media) { Change(media, first_leaf(media) + offsetof(Leaf, shape), flip(1)); }},
      {"damaged leaf", [&](const Media& media) { Change(media, first_leaf(media) + Leaf::kHeaderBytes + 8, flip(7)); }},
      {"header of a segment of leaves",
       [&](const Media& media) {
         const PmPtr leaf = first_leaf(media);
         for (const MediaSegment& segment : media.segments()) {
           if (segment.region != leaf.region() || leaf.offset() < segment.data ||
               leaf.offset() >= segment.data + segment.capacity)
             continue;
           Change(media, segment.start() + offsetof(SpaceHeader, leaf_bytes), flip(3));
         }
       }},
      {"names no valid entry",
       [&](const Media& media) { Change(media, entry_of(media, 0) + offsetof(LogEntry, tag), flip(30)); }},
      {"marked dead", [&](const Media& media) { Change(media, entry_of(media, 1) + offsetof(LogEntry, next), flip(0)); }},
      {"a damaged link", [&](const Media& media) { Change(media, root(media) + offsetof(LeafTreeRoot, image), flip(60)); }},
      {"they are damaged",
       [&](const Media& media) { Change(media, LinkTarget(TreeRootOf(media)->image) + sizeof(ImageHeader), flip(63)); }},
  };
  for (const Damage& damage : kDamages) {
    SCOPED_TRACE(damage.finding);
    fs::remove_all(path_);
    fs::copy(pristine, path_, fs::copy_options::recursive);
    damage.apply(*Load());
    EXPECT_TRUE(Names(Check(), damage.finding));
    std::unique_ptr<DB> db;
    Options strict = TinyOptions(2);
    strict.l1 = L1Kind::kNvTree;
    strict.verify_at_open = true;
    EXPECT_CODE(Open(strict, &db), kCorruption);
  }
  // While a merge was running, marks are part of it; but not those that would take a key away.
  make(Life::kMerging);
  const std::unique_ptr<Media> media = Load();
  ASSERT_EQ(media->Resolve<LogEntry>(entry_of(*media, 1))->key(), NumberedKey(1)) << "no table has it";
  Change(*media, entry_of(*media, 1) + offsetof(LogEntry, next), flip(0));
  EXPECT_TRUE(Names(Check(), "is its key's newest"));
}

// An address must not be made of an offset before the offset is known to lie in the region: the sum may not be an address at all.
TEST_F(CheckDatabaseTest, AnImpossibleOffsetOfTheRootIsDamage) {
  for (const uint64_t offset : {UINT64_MAX - 15, uint64_t{1} << 63, UINT64_MAX / 2 - 15}) {
    fs::remove_all(path_);
    fs::remove_all(directory_.File("older"));
    Make(Life::kClosed);
    const std::string part = path_ + "/region-0/" + PartName(0);
    std::fstream file(part, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(kPoolRootOffset));
    file.write(reinterpret_cast<const char*>(&offset), sizeof(offset));
    file.close();
    CheckReport report;
    ASSERT_OK(CheckDatabase({}, path_, &report));
    EXPECT_TRUE(Names(report, "the pointer to the root is damaged"));
    std::unique_ptr<DB> db;
    EXPECT_FALSE(DB::OpenForReadOnly(TinyOptions(), path_, &db).ok());
  }
}

TEST_F(CheckDatabaseTest, ALeakedSegmentIsFound) {
  ASSERT_NO_FATAL_FAILURE(Make(Life::kClosed));
  const auto media = Load();
  for (const MediaSegment& segment : media->segments()) {
    if (segment.state != SegmentState::kFree) continue;
    // The descriptor forgets its segment, as an unfinished release would; the heap does not.
    const RegionImage& image = *media->image(segment.region);
    const auto* block =
        reinterpret_cast<const DirectoryBlock*>(image.base() + AlignToLine(media->root(segment.region)->directory.offset));
    for (const SegmentDescriptor& descriptor : block->descriptors) {
      if (descriptor.object.offset != segment.object) continue;
      Change(*media,
             PmPtr(segment.region,
                   static_cast<uint64_t>(reinterpret_cast<const uint8_t*>(&descriptor.object.offset) - image.base())),
             [](uint64_t) { return 0; });
    }
    EXPECT_TRUE(Names(Check(), "nothing uses"));
    return;
  }
  FAIL() << "no free segment";
}

// PMDK clears a released segment's id word by word. Cut between the two, with the redo log in a lane, that is no damage; without
// the log it is.
TEST_F(CheckDatabaseTest, AnIdThatAReleaseHasHalfClearedIsSound) {
  ASSERT_NO_FATAL_FAILURE(Make(Life::kClosed));
  const auto media = Load();
  ASSERT_NE(media, nullptr);
  const RegionImage& image = *media->image(0);
  const auto word_at = [&](uint64_t offset) { return LoadRelaxed(reinterpret_cast<const uint64_t*>(image.base() + offset)); };
  const ObjectId link = reinterpret_cast<const RegionRoot*>(image.base() + word_at(kPoolRootOffset))->directory;
  const auto* const block = reinterpret_cast<const DirectoryBlock*>(image.base() + AlignToLine(link.offset));
  const auto* descriptor = std::begin(block->descriptors);
  while (descriptor->object.offset == 0) ++descriptor;
  const auto place_of = [&](const void* address) {
    return PmPtr(0, static_cast<uint64_t>(static_cast<const uint8_t*>(address) - image.base()));
  };
  Change(*media, place_of(&descriptor->object.pool), [](uint64_t) { return 0; });
  EXPECT_TRUE(Names(Check(), "the checksum of a segment descriptor is wrong"));
  Change(*media, PmPtr(0, word_at(kPoolLanesOffset)), [](uint64_t) { return 1; });
  const CheckReport report = Check();
  EXPECT_TRUE(report.sound()) << report.findings.front().what << ": " << report.findings.front().where;
  // An open for reading does without PMDK, too.
  std::unique_ptr<DB> db;
  EXPECT_OK(DB::OpenForReadOnly(TinyOptions(0), path_, &db));
}

TEST_F(CheckDatabaseTest, FilesThatAreNotAsTheyShouldBe) {
  Fill(TinyOptions(2), 200);
  const std::string pristine = directory_.File("pristine");
  fs::copy(path_, pristine, fs::copy_options::recursive);
  const std::pair<const char*, std::function<void(const std::string&)>> kDamages[] = {
      {"empty", [](const std::string& file) { fs::resize_file(file, 0); }},
      {"short", [](const std::string& file) { fs::resize_file(file, fs::file_size(file) / 2); }},
      {"odd", [](const std::string& file) { fs::resize_file(file, fs::file_size(file) - 3); }},
      {"long", [](const std::string& file) { std::ofstream(file, std::ios::app) << "more"; }},
      {"foreign", [](const std::string& file) { WriteFileOrDie(file, Random(1).Bytes(fs::file_size(file))); }},
      {"missing", [](const std::string& file) { fs::remove(file); }},
      {"a directory", [](const std::string& file) { fs::remove(file), fs::create_directory(file); }},
  };
  for (const auto& name : RegionFiles(path_)) {
    if (name.ends_with(".set")) continue;  // derived: made anew by every open
    for (const auto& [what, apply] : kDamages) {
      SCOPED_TRACE(name + ": " + what);
      fs::remove_all(path_);
      fs::copy(pristine, path_, fs::copy_options::recursive);
      apply(path_ + "/" + name);
      CheckReport report;
      const Status status = CheckDatabase({}, path_, &report);
      EXPECT_TRUE(status.ok() ? !report.sound() : status.IsIOError()) << status.ToString();
      std::unique_ptr<DB> db;
      EXPECT_FALSE(Open(TinyOptions(2), &db).ok());
    }
  }
  // Two files change places; then two regions do.
  for (const auto& [a, b] :
       {std::pair<std::string, std::string>("/region-0/000000.pmem", "/region-1/000000.pmem"), {"/region-0", "/region-1"}}) {
    fs::remove_all(path_);
    fs::copy(pristine, path_, fs::copy_options::recursive);
    fs::rename(path_ + a, path_ + "/other");
    fs::rename(path_ + b, path_ + a);
    fs::rename(path_ + "/other", path_ + b);
    EXPECT_FALSE(Check().sound()) << a;
    std::unique_ptr<DB> db;
    EXPECT_CODE(Open(TinyOptions(2), &db), kCorruption) << a;
  }
}

}  // namespace
}  // namespace braiddb::test
