// CheckDatabase and Salvage on databases with several column families, made by hand: sound ones are sound, what contradicts is
// found and the family named.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/check.h"
#include "check/salvage.h"
#include "compaction/merge_journal.h"
#include "tests/support/db_test_util.h"
#include "tests/support/family_media.h"

namespace braiddb::test {
namespace {

constexpr L1Kind kList = L1Kind::kBraidedSkipList;
constexpr L1Kind kTree = L1Kind::kNvTree;

class Backwards : public Comparator {
 public:
  int Compare(Slice a, Slice b) const override { return b.compare(a); }
  const char* Name() const override { return "test.backwards"; }
};

class CheckFamiliesTest : public testing::TestWithParam<uint32_t> {
 protected:
  // One of each kind, with last levels, tables of two flushes and of copies, and a log to replay.
  std::unique_ptr<FamilyMedia> Make() {
    auto media = std::make_unique<FamilyMedia>(path_, GetParam());
    list_ = media->AddFamily("list", kList, ReverseBytewiseComparator());
    tree_ = media->AddFamily("tree", kTree);
    media->AddFamily("empty", kList);
    for (const uint32_t family : {0u, list_, tree_}) media->WriteMany(family, "old", 60);
    media->RotateToLastLevels();
    for (const uint32_t family : {0u, tree_}) media->WriteMany(family, "copied", 5);
    media->RotateToCopies();
    for (const uint32_t family : {0u, list_, tree_}) media->WriteMany(family, "new", 20);
    media->Rotate();
    // Not every family is written to between two rotations.
    media->WriteMany(list_, "newer", 10);
    media->Rotate();
    for (const uint32_t family : {list_, tree_}) media->WriteMany(family, "newest", 3);
    return media;
  }

  CheckReport Check() {
    CheckReport report;
    CheckOptions options;
    options.comparators = {&backwards_};
    EXPECT_OK(CheckDatabase(options, path_, &report));
    return report;
  }
  static std::string TextOf(const CheckReport& report) {
    std::string text;
    for (const CheckFinding& finding : report.findings) text += finding.what + ": " + finding.where + "\n";
    return text;
  }
  // Some finding has `what`, and says that it is at `where`.
  void ExpectFound(const CheckReport& report, const std::string& what, const std::string& where) {
    for (const CheckFinding& finding : report.findings) {
      if (finding.what.find(what) != std::string::npos && finding.where.find(where) != std::string::npos) return;
    }
    ADD_FAILURE() << "nothing says \"" << what << "\" of \"" << where << "\", but:\n" << TextOf(report);
  }

  TestDirectory directory_;
  const std::string path_ = directory_.File("db");
  const Backwards backwards_;
  uint32_t list_ = 0;
  uint32_t tree_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Regions, CheckFamiliesTest, testing::Values(1, 2));

TEST_P(CheckFamiliesTest, SoundOnesAreSoundAndCounted) {
  Make()->Close();
  const CheckReport report = Check();
  EXPECT_TRUE(report.sound()) << TextOf(report);
  EXPECT_EQ(report.families, 4u);
  EXPECT_EQ(report.tables, 2u + 3u + 1u);
  EXPECT_EQ(report.l1_entries, 3u * 60);
  EXPECT_EQ(report.l0_entries, 2u * 5 + 3u * 20 + 10u);
  EXPECT_EQ(report.log_entries, 2u * 3);
  EXPECT_EQ(report.dead_entries, 0u);
}

TEST_P(CheckFamiliesTest, AllNvTreesNeedNoJournal) {
  FamilyMedia media(path_, GetParam(), kTree);
  const uint32_t other = media.AddFamily("other", kTree);
  for (const uint32_t family : {0u, other}) media.WriteMany(family, "key", 200);
  media.RotateToLastLevels();
  EXPECT_EQ(media.regions()->Metadata(0, MetadataSlot::kMergeJournal), nullptr);
  media.Close();
  const CheckReport report = Check();
  EXPECT_TRUE(report.sound()) << TextOf(report);
  EXPECT_EQ(report.l1_entries, 400u);
}

TEST_P(CheckFamiliesTest, OneSkiplistNeedsTheJournal) {
  FamilyMedia media(path_, GetParam(), kTree);
  media.AddFamily("other", kTree);
  media.Listed(1)->l1_kind = static_cast<uint8_t>(kList);
  media.Close();
  const CheckReport report = Check();
  ExpectFound(report, "merge journal is missing", "region 0");
  ExpectFound(report, "head of the last level is missing", "region 0, column family 'other'");
}

TEST_P(CheckFamiliesTest, EachContradictionIsNamed) {
  struct Case {
    const char* what;
    const char* where;
    std::function<void(FamilyMedia*)> change;
  };
  const uint32_t last = GetParam() - 1;
  const std::string last_region = "region " + std::to_string(last) + ", column family 'list'";
  const Case kCases[] = {
      {"checksum of the head", last_region.c_str(), [&](FamilyMedia* media) { media->HeadOf(list_, last)->next[3] ^= 64; }},
      {"head of the last level is missing", last_region.c_str(),
       [&](FamilyMedia* media) { media->HeadOf(list_, last)->magic = 0; }},
      {"unused words", "head of the last level in region 0, column family 'list'",
       [&](FamilyMedia* media) { media->HeadOf(list_, 0)->reserved[1] = 1; }},
      {"root of the NV-Tree", "column family 'tree'", [&](FamilyMedia* media) { media->RootOf(tree_)->leaf_bytes ^= 4; }},
      // The root of another tree of this database.
      {"root of the NV-Tree", "column family 'tree'",
       [&](FamilyMedia* media) {
         const uint32_t other = media->AddFamily("other", kTree);
         *media->RootOf(tree_) = *media->RootOf(other);
       }},
      // Without a byte to print.
      {"head of the last level is missing", "column family 'a%0A%25'",
       [&](FamilyMedia* media) {
         media->Listed(list_)->name = "a\n%";
         media->HeadOf(list_, 0)->magic = 0;
       }},
      {"of another column family", "of L0, column family 'list'",
       [&](FamilyMedia* media) {
         const std::vector<PmPtr> entries = {media->WriteUnlisted(list_, "mine"), media->WriteUnlisted(tree_, "yours")};
         media->Rotate();
         media->AddTable(media->state.next_id++, list_, entries);
       }},
      {"of another column family", "last level, column family 'bare'",
       [&](FamilyMedia* media) {
         const uint32_t bare = media->AddFamily("bare", kList);
         media->FillLastLevel(bare, {media->WriteUnlisted(0, "default")});
         media->Rotate();
       }},
      {"of another column family", "last level, column family 'bare'",
       [&](FamilyMedia* media) {
         const uint32_t bare = media->AddFamily("bare", kTree);
         media->FillLastLevel(bare, {media->WriteUnlisted(0, "default")});
         media->Rotate();
       }},
      {"out of order", "of L0, column family 'list'",
       [&](FamilyMedia* media) {
         // Ordered as it should be, were it of the default family.
         media->AddTable(media->state.next_id++, 0, {media->WriteUnlisted(0, "a"), media->WriteUnlisted(0, "b")});
         media->state.tables.back().family = list_;
         for (uint64_t word = media->state.tables.back().heads[0]; word != 0;) {
           LogEntry* const entry = media->EntryAt(PmPtr(word));
           entry->shape += list_ << LogEntry::kFamilyShift;
           entry->checksum = entry->ComputeChecksum(media->EntrySeedAt(PmPtr(word)));
           word = entry->next[0];
         }
         media->state.log_boundary = media->next_sequence();
       }},
      {"marked dead or moved", "of L0, column family 'tree'",
       [&](FamilyMedia* media) {
         media->Write(tree_, "dead");
         media->Rotate();
         media->MarkDead(PmPtr(media->state.tables.back().heads[0]));
       }},
      {"MANIFEST says", "of L0, column family 'list'",
       [&](FamilyMedia* media) {
         for (auto& table : media->state.tables) table.entries += table.family == list_;
       }},
      {"sequence number does not belong", "of L0, column family 'list'",
       [&](FamilyMedia* media) {
         const PmPtr early = media->WriteUnlisted(list_, "early");
         media->Write(0, "late");
         media->Rotate();
         media->AddTable(media->state.next_id++, list_, {early});
         media->state.tables.back().boundary = ++media->state.log_boundary;
       }},
      // Tables of one flush.
      {"contradict the others", "of L0 in the MANIFEST",
       [&](FamilyMedia* media) {
         for (auto& table : media->state.tables) table.boundary += table.family == tree_ && table.id != kRelocationId ? 1 : 0;
       }},
      {"contradict the others", "of L0 in the MANIFEST",
       [&](FamilyMedia* media) { std::swap(media->state.tables[0], media->state.tables[3]); }},
      {"contradict the others", "table 0 of L0",
       [&](FamilyMedia* media) { media->state.tables.insert(media->state.tables.begin(), media->state.tables[0]); }},
      {"number of a column family", "'tree' in the MANIFEST",
       [&](FamilyMedia* media) { media->Listed(tree_)->number = media->Listed(list_)->number; }},
      {"number of a column family", "'list' in the MANIFEST",
       [&](FamilyMedia* media) { media->Listed(list_)->number = media->state.next_id; }},
      {"a name of its own", "'list' in the MANIFEST", [&](FamilyMedia* media) { media->Listed(tree_)->name = "list"; }},
      {"a name of its own", "'default' in the MANIFEST", [&](FamilyMedia* media) { media->Listed(tree_)->name = "default"; }},
      {"a merge of a column family that is not there", "MANIFEST",
       [&](FamilyMedia* media) {
         media->state.merge_id = media->state.next_id++;
         media->state.merging_family = 77;
       }},
      {"of column family 99, which is not there, and 2 more in its segment", "",
       [&](FamilyMedia* media) {
         for (uint32_t i = 0; i < 3 * GetParam(); ++i) media->WriteUnlisted(99, "stray");
         media->Rotate();
       }},
      {"of column family 99, which is not there", "",
       [&](FamilyMedia* media) { media->MarkDead(media->WriteUnlisted(99, "behind the boundary")); }},
      {"the lists have", "segment",
       [&](FamilyMedia* media) {
         media->WriteUnlisted(tree_, "in no list");
         media->Rotate();
       }},
  };
  for (const Case& wrong : kCases) {
    SCOPED_TRACE(std::string(wrong.what) + " " + wrong.where);
    const auto media = Make();
    wrong.change(media.get());
    media->Close();
    ExpectFound(Check(), wrong.what, wrong.where);
  }
}

// Who dropped a family has not been along all of its lists, or has, and the MANIFEST does not know yet.
TEST_P(CheckFamiliesTest, OfADroppedFamilyNothingHasToBeThere) {
  const auto media = Make();
  const uint32_t gone = media->AddFamily("tree", kList);
  media->WriteMany(gone, "live", 10);
  for (int i = 0; i < 10; ++i) media->MarkDead(media->WriteUnlisted(gone, "dead" + std::to_string(i)));
  media->Rotate();
  media->WriteMany(gone, "to replay", 5);
  media->HeadOf(gone, 0)->magic = 0;
  media->Listed(gone)->dropped = true;
  // Its tables are not followed.
  EXPECT_EQ(media->state.tables.back().family, gone);
  media->state.tables.back().heads[0] = 0x123450;
  // Nor is there anything to be done for its merge.
  media->state.merge_id = media->state.next_id++;
  media->state.merging_family = gone;
  media->state.merging_tables = 1;
  media->Close();
  const CheckReport report = Check();
  EXPECT_TRUE(report.sound()) << TextOf(report);
  EXPECT_EQ(report.families, 4u);
  EXPECT_EQ(report.dead_entries, 25u);
  EXPECT_EQ(report.log_entries, 0u);
}

TEST_P(CheckFamiliesTest, OfAForgottenFamilyThereAreDeadEntries) {
  const auto media = Make();
  for (int i = 0; i < 10; ++i) media->MarkDead(media->WriteUnlisted(50, "dead"));
  media->Rotate();
  media->Close();
  const CheckReport report = Check();
  EXPECT_TRUE(report.sound()) << TextOf(report);
  EXPECT_EQ(report.dead_entries, 10u);
}

// ---- Merges

TEST_P(CheckFamiliesTest, MarksOfAMergeAreThoseOfItsFamily) {
  for (const bool of_tree : {true, false}) {
    SCOPED_TRACE(of_tree);
    const auto media = Make();
    // The merge into the tree has marked an older version in one of its tables, and not yet put the newer one there.
    PmPtr older = media->Write(tree_, "twice");
    media->Write(list_, "x");
    media->Rotate();
    media->Write(tree_, "twice");
    media->Rotate();
    media->MarkDead(older);
    media->state.merge_id = media->state.next_id++;
    media->state.merging_family = of_tree ? tree_ : list_;
    media->state.merging_tables = of_tree ? 4 : 3;
    media->Close();
    const CheckReport report = Check();
    EXPECT_TRUE(report.merge_running);
    if (of_tree) {
      EXPECT_TRUE(report.sound()) << TextOf(report);
    } else {
      ExpectFound(report, "marked dead", "of L0, column family 'tree'");
    }
  }
}

TEST_P(CheckFamiliesTest, ProgressOfAMergeIsThatOfItsFamily) {
  for (const char* merging : {"list", "empty", "tree"}) {
    SCOPED_TRACE(merging);
    FamilyMedia media(path_, GetParam());
    std::map<std::string, uint32_t> ids = {{"list", media.AddFamily("list", kList)},
                                           {"empty", media.AddFamily("empty", kList)},
                                           {"tree", media.AddFamily("tree", kTree)}};
    std::vector<PmPtr> entries;
    for (const char* key : {"a", "b", "c", "d", "e"}) entries.push_back(media.Write(ids["list"], key));
    media.Write(0, "default");
    media.Write(ids["tree"], "tree");
    media.Rotate();
    // All of the table is in the last level by now.
    media.FillLastLevel(ids["list"], entries);
    media.state.merge_id = 1000;
    media.state.next_id = 1001;
    media.state.merging_family = ids[merging];
    media.state.merging_tables = merging == std::string("empty") ? 0 : 1;
    MergeJournal journal;
    ASSERT_OK(MergeJournal::Open(media.regions(), &journal));
    journal.Begin(media.state.merge_id);
    uint64_t lines = 0;
    const PmPtr store = entries[4] + offsetof(LogEntry, next);
    ASSERT_OK(journal.Apply({{store.raw(), media.EntryAt(entries[4])->next[0]}}, entries[0], &lines));
    media.Close();
    const CheckReport report = Check();
    if (merging == std::string("list")) {
      EXPECT_TRUE(report.sound()) << TextOf(report);
      EXPECT_EQ(report.l1_entries, 5u);
      EXPECT_EQ(report.l0_entries, 2u);
    } else if (merging == std::string("empty")) {
      ExpectFound(report, "progress of the merge is no entry of its column family", "merge journal");
    } else {
      // What is in the journal is not of this merge: the entries are in two lists.
      ExpectFound(report, "the lists have", "segment");
    }
  }
}

// ---- Orders

TEST_P(CheckFamiliesTest, EachFamilyHasTheOrderThatItNames) {
  {
    FamilyMedia media(path_, GetParam());
    const uint32_t family = media.AddFamily("odd one", kList, &backwards_);
    media.WriteMany(family, "key", 50);
    media.RotateToLastLevels();
    media.Close();
  }
  EXPECT_TRUE(Check().sound());
  CheckReport report;
  const Status status = CheckDatabase({}, path_, &report);
  EXPECT_CODE(status, kNotSupported);
  EXPECT_NE(std::string(status.message()).find("'odd one' is ordered by the comparator 'test.backwards'"), std::string::npos);
  CheckOptions options;
  options.comparator = &backwards_;
  EXPECT_OK(CheckDatabase(options, path_, &report));
  EXPECT_TRUE(report.sound());
  // Of this name, and another order.
  class Forwards : public Backwards {
    int Compare(Slice a, Slice b) const override { return a.compare(b); }
  } forwards;
  options.comparators = {nullptr, &forwards};
  options.comparator = nullptr;
  EXPECT_OK(CheckDatabase(options, path_, &report));
  ExpectFound(report, "out of order", "last level, column family 'odd one'");
}

// ---- Salvage

class SalvageFamiliesTest : public CheckFamiliesTest {
 protected:
  using Keys = std::vector<std::string>;
  // Keys to save, by the name of the family.
  std::vector<std::pair<std::string, Keys>> Scan(RepairReport* report) {
    std::vector<std::pair<std::string, Keys>> result;
    EXPECT_OK(Salvage::Scan({}, path_, report, &salvage_));
    for (const Salvage::Family& family : salvage_->families()) {
      result.push_back({family.name, {}});
      for (const LogEntry* entry : family.entries) result.back().second.push_back(std::string(entry->key()));
    }
    return result;
  }
  // As in Make, smaller.
  std::unique_ptr<FamilyMedia> MakeSmall() {
    auto media = std::make_unique<FamilyMedia>(path_, GetParam());
    list_ = media->AddFamily("list", kList, ReverseBytewiseComparator());
    tree_ = media->AddFamily("tree", kTree);
    for (const uint32_t family : {0u, list_}) {
      media->Write(family, "a");
      media->Write(family, "b");
      media->Write(family, "c");
    }
    media->Rotate();
    media->Write(list_, "b", EntryType::kDelete);
    media->Write(list_, "c");
    media->Write(tree_, "x");
    return media;
  }

  std::unique_ptr<Salvage> salvage_;
};

INSTANTIATE_TEST_SUITE_P(Regions, SalvageFamiliesTest, testing::Values(1, 2));

TEST_P(SalvageFamiliesTest, KeysAreOfTheirFamily) {
  const auto media = MakeSmall();
  media->AddFamily("empty", kTree);
  media->Close();
  RepairReport report;
  const std::vector<std::pair<std::string, Keys>> expected = {
      {"default", {"a", "b", "c"}}, {"list", {"c", "a"}}, {"tree", {"x"}}, {"empty", {}}};
  EXPECT_EQ(Scan(&report), expected);
  EXPECT_TRUE(report.lost.empty());
  const std::vector<Salvage::Family>& families = salvage_->families();
  EXPECT_EQ(families[1].l1, kList);
  EXPECT_EQ(families[1].comparator, ReverseBytewiseComparator());
  EXPECT_EQ(families[2].l1, kTree);
}

TEST_P(SalvageFamiliesTest, WhatWasDroppedStaysAway) {
  const auto media = MakeSmall();
  media->Listed(list_)->dropped = true;
  media->MarkDead(media->WriteUnlisted(70, "dead"));
  media->Close();
  RepairReport report;
  const std::vector<std::pair<std::string, Keys>> expected = {{"default", {"a", "b", "c"}}, {"tree", {"x"}}};
  EXPECT_EQ(Scan(&report), expected);
  EXPECT_TRUE(report.lost.empty());
}

TEST_P(SalvageFamiliesTest, EntriesOfNoFamilyAreSaidToBeLost) {
  const auto media = MakeSmall();
  media->WriteUnlisted(70, "stray");
  media->Close();
  RepairReport report;
  EXPECT_EQ(Scan(&report).size(), 3u);
  ASSERT_EQ(report.lost.size(), 1u);
  EXPECT_NE(report.lost[0].find("1 log entries of column families"), std::string::npos);
}

TEST_P(SalvageFamiliesTest, WithoutAManifestFamiliesHaveNumbers) {
  const auto media = MakeSmall();
  const PmPtr dead = media->WriteUnlisted(9, "only dead ones");
  media->MarkDead(dead);
  media->Close(true);
  RepairReport report;
  const std::vector<std::pair<std::string, Keys>> expected = {
      {"default", {"a", "b", "c"}}, {"family-1", {"a", "c"}}, {"family-2", {"x"}}};
  EXPECT_EQ(Scan(&report), expected);
  ASSERT_EQ(report.lost.size(), 2u);
  EXPECT_NE(report.lost[0].find("its 2 keys are in 'family-1', ordered bytewise"), std::string::npos) << report.lost[0];
  EXPECT_EQ(salvage_->families()[1].comparator, BytewiseComparator());
  EXPECT_EQ(salvage_->families()[1].l1, std::nullopt);
}

}  // namespace
}  // namespace braiddb::test
