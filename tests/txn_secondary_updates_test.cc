// Catch-ups of a secondary that read only the new writes: they show the same as catch-ups that read all, and read all where they
// cannot follow.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/compaction_filter.h"
#include "braiddb/comparator.h"
#include "braiddb/db.h"
#include "db/copied_database.h"
#include "db/db_impl.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/merge_operators.h"
#include "tests/support/wait_until.h"
#include "util/random.h"
#include "util/sync_point.h"

// After other headers: its names would be shadowed there.
#include "tests/support/failing_new.h"

namespace braiddb::test {
namespace {

using Handle = std::unique_ptr<ColumnFamilyHandle>;
using Content = std::map<std::string, std::string>;

class SecondaryUpdatesTest : public DbOpenTest {
 protected:
  void SetUp() override {
    SyncPoints::Instance().SetCallback("PrimaryReader::Read:Step", [this](void*) { ++all_steps_; });
    SyncPoints::Instance().SetCallback("PrimaryReader::ReadUpdates:Step", [this](void*) { ++update_steps_; });
    SyncPoints::Instance().Enable();
  }
  void TearDown() override { SyncPoints::Instance().Clear(); }

  // The reads of the whole primary, and of its new writes, since the last call.
  int TakeReads() { return all_steps_.exchange(0) / 3; }
  int TakeUpdates() { return update_steps_.exchange(0) / 2; }

  Status OpenSecondary(std::unique_ptr<DB>* db) { return DB::OpenAsSecondary(options_, path_, secondary_path_, db); }

  // Puts, deletes, operands and deleted ranges of a few keys, so that each meets the others.
  void WriteSome(DB* db, ColumnFamilyHandle* family, Random* random, int batches, Content* content) {
    for (int i = 0; i < batches; ++i) {
      WriteBatch batch;
      for (uint64_t updates = random->Range(1, 4); updates > 0; --updates) {
        const std::string key = NumberedKey(random->Uniform(60));
        const uint64_t kind = random->Uniform(10);
        if (kind == 0) {
          const std::string end = NumberedKey(random->Uniform(61));
          if (end <= key) continue;
          batch.DeleteRange(family, key, end);
          content->erase(content->lower_bound(key), content->lower_bound(end));
        } else if (kind < 4) {
          batch.Delete(family, key);
          content->erase(key);
        } else if (kind < 7) {
          const std::string operand = "+" + std::to_string(random->Uniform(1000));
          batch.Merge(family, key, operand);
          std::string& value = (*content)[key];
          value = AppendOperator::Apply(value, operand);
        } else {
          const std::string value = PatternedValue(random->Next(), random->OneIn(20) ? 20'000 : random->Uniform(150));
          batch.Put(family, key, value);
          (*content)[key] = value;
        }
      }
      ASSERT_OK(db->Write({}, batch));
    }
  }

  std::atomic<int> all_steps_{0};
  std::atomic<int> update_steps_{0};
  AppendOperator append_;
  Options options_ = [this] {
    Options options = TinyOptions();
    options.merge_operator = std::shared_ptr<const MergeOperator>(std::shared_ptr<void>(), &append_);
    return options;
  }();
  const std::string secondary_path_ = directory_.File("secondary");
};

// What is in memtables, L0 or the last level does not matter, as long as no segment comes and goes between two catch-ups.
TEST_F(SecondaryUpdatesTest, OnlyNewWritesAreRead) {
  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  Random random(1);
  Content content;
  WriteSome(primary.get(), primary->DefaultColumnFamily(), &random, 200, &content);
  std::unique_ptr<DB> secondary;
  ASSERT_OK(OpenSecondary(&secondary));
  EXPECT_GE(TakeReads(), 1);
  int updates = 0;
  for (int round = 0; round < 200 / kSlowdown; ++round) {
    SCOPED_TRACE(round);
    WriteSome(primary.get(), primary->DefaultColumnFamily(), &random, static_cast<int>(random.Uniform(20)), &content);
    if (random.OneIn(10)) {
      ASSERT_OK(primary->Flush());
    }
    if (random.OneIn(15)) {
      ASSERT_OK(primary->CompactRange({}, nullptr, nullptr));
    }
    ASSERT_OK(secondary->TryCatchUpWithPrimary());
    ASSERT_TRUE(HoldsExactly(secondary.get(), content));
    updates += TakeUpdates();
    // The primary's own writes have numbers, too.
    EXPECT_LE(secondary->GetLatestSequenceNumber(), primary->GetLatestSequenceNumber());
  }
  // Some catch-ups miss a segment that a merge has released.
  EXPECT_GT(updates, 100 / kSlowdown);
}

TEST_F(SecondaryUpdatesTest, NothingIsReadIfNothingWasWritten) {
  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  ASSERT_OK(primary->Put({}, "key", "value"));
  std::unique_ptr<DB> secondary;
  ASSERT_OK(OpenSecondary(&secondary));
  EXPECT_GE(TakeReads(), 1);
  for (int i = 0; i < 5; ++i) ASSERT_OK(secondary->TryCatchUpWithPrimary());
  EXPECT_EQ(TakeReads(), 0);
  EXPECT_EQ(GetOrText(secondary.get(), "key"), "value");
  // The primary ends, and comes back.
  ASSERT_OK(primary->Close());
  primary.reset();
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  primary = OpenOrFail(options_, path_);
  ASSERT_OK(primary->Put({}, "key", "other"));
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  EXPECT_EQ(GetOrText(secondary.get(), "key"), "other");
}

TEST_F(SecondaryUpdatesTest, FamiliesComeAndGo) {
  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  Handle family;
  ASSERT_OK(primary->CreateColumnFamily(ColumnFamilyOptions(options_), "family", &family));
  Random random(2);
  Content content, other;
  const std::vector<ColumnFamilyDescriptor> families{{kDefaultColumnFamilyName, ColumnFamilyOptions(options_)},
                                                     {"family", ColumnFamilyOptions(options_)}};
  std::unique_ptr<DB> secondary;
  std::vector<Handle> handles;
  ASSERT_OK(DB::OpenAsSecondary(options_, path_, secondary_path_, families, &handles, &secondary));
  for (int round = 0; round < 40 / kSlowdown; ++round) {
    SCOPED_TRACE(round);
    TakeReads();
    WriteSome(primary.get(), primary->DefaultColumnFamily(), &random, 5, &content);
    WriteSome(primary.get(), family.get(), &random, 5, &other);
    const bool is_new = round % 8 == 7;
    if (is_new) {
      ASSERT_OK(primary->DropColumnFamily(family.get()));
      ASSERT_OK(primary->CreateColumnFamily(ColumnFamilyOptions(options_), "family", &family));
      other.clear();
      WriteSome(primary.get(), family.get(), &random, 5, &other);
    }
    ASSERT_OK(secondary->TryCatchUpWithPrimary());
    ASSERT_TRUE(HoldsExactly(secondary.get(), content));
    Content found;
    const std::unique_ptr<Iterator> iterator = secondary->NewIterator({}, handles[1].get());
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      found.emplace(std::string(iterator->key()), std::string(iterator->value()));
    ASSERT_TRUE(found == other);
    if (is_new) {
      EXPECT_GE(TakeReads(), 1);
    }
  }
}

// Many ranges over the same keys: each key is deleted once.
TEST_F(SecondaryUpdatesTest, OverlappingRangesDeleteEachKeyOnce) {
  constexpr int kKeys = 300;
  for (const Comparator* comparator : {BytewiseComparator(), ReverseBytewiseComparator()}) {
    SCOPED_TRACE(comparator->Name());
    options_.comparator = comparator;
    const bool is_reverse = comparator != BytewiseComparator();
    auto primary = OpenOrFail(options_, path_);
    ASSERT_NE(primary, nullptr);
    for (int i = 0; i < kKeys; ++i) ASSERT_OK(primary->Put({}, NumberedKey(i), "value"));
    // The first range makes the family of ranges, after which all is read once.
    ASSERT_OK(is_reverse ? primary->DeleteRange({}, "b", "a") : primary->DeleteRange({}, "a", "b"));
    std::unique_ptr<DB> secondary;
    ASSERT_OK(OpenSecondary(&secondary));
    const uint64_t before = CopiedDatabase(secondary.get())->GetLatestSequenceNumber();
    Random random(4);
    for (int i = 0; i < 200; ++i) {
      uint64_t begin = random.Uniform(kKeys), end = random.Uniform(kKeys);
      if ((end < begin) != is_reverse) std::swap(begin, end);
      ASSERT_OK(primary->DeleteRange({}, NumberedKey(begin), NumberedKey(end)));
    }
    ASSERT_OK(primary->Put({}, NumberedKey(kKeys / 2), "again"));
    ASSERT_OK(secondary->TryCatchUpWithPrimary());
    EXPECT_TRUE(HoldsExactly(secondary.get(), ScanForward(primary.get())));
    const uint64_t writes = CopiedDatabase(secondary.get())->GetLatestSequenceNumber() - before;
    EXPECT_GT(TakeUpdates(), 0);
    EXPECT_LE(writes, static_cast<uint64_t>(kKeys));
    secondary.reset();
    primary.reset();
    ASSERT_OK(DB::Destroy(options_, path_));
  }
}

// A thread draws its number, and stores its entry only after a catch-up that has seen larger numbers.
TEST_F(SecondaryUpdatesTest, AWriteThatComesLateIsSeen) {
  options_.disable_auto_compaction = true;
  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  ASSERT_OK(primary->Put({}, "late", "before"));
  std::unique_ptr<DB> secondary;
  ASSERT_OK(OpenSecondary(&secondary));
  const std::string value = PatternedValue(1, 100'000);
  std::atomic<bool> is_late{false}, goes_on{false};
  std::thread::id late_thread;
  SyncPoints::Instance().SetCallback("DBImpl::WriteInPlace", [&](void*) {
    if (std::this_thread::get_id() != late_thread) return;
    is_late = true;
    EXPECT_TRUE(WaitUntil([&] { return goes_on.load(); }));
  });
  std::thread late([&] {
    ASSERT_OK(primary->Put({}, "own segment", "of this thread"));
    late_thread = std::this_thread::get_id();
    ASSERT_OK(primary->Put({}, "late", value));
  });
  EXPECT_TRUE(WaitUntil([&] { return is_late.load(); }));
  ASSERT_OK(primary->Put({}, "other", "has a larger number"));
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  EXPECT_EQ(GetOrText(secondary.get(), "other"), "has a larger number");
  EXPECT_EQ(GetOrText(secondary.get(), "late"), "before");
  TakeReads();
  goes_on = true;
  late.join();
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  EXPECT_EQ(GetOrText(secondary.get(), "late"), value);
  EXPECT_GE(TakeReads(), 1);
}

// More is written between two catch-ups than the log keeps.
TEST_F(SecondaryUpdatesTest, SegmentsThatCameAndWentAreNoticed) {
  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  std::unique_ptr<DB> secondary;
  ASSERT_OK(OpenSecondary(&secondary));
  ASSERT_OK(primary->Put({}, "gone", "soon"));
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  ASSERT_OK(primary->Delete({}, "gone"));
  const uint64_t recycled = primary->GetStatistics().segments_recycled;
  for (int round = 0; round < 200 && primary->GetStatistics().segments_recycled < recycled + 5; ++round) {
    for (int i = 0; i < 5000; ++i) ASSERT_OK(primary->Put({}, NumberedKey(i % 100), PatternedValue(i, 100)));
    ASSERT_OK(primary->CompactRange({}, nullptr, nullptr));
  }
  ASSERT_GE(primary->GetStatistics().segments_recycled, recycled + 5);
  TakeReads();
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  EXPECT_GE(TakeReads(), 1);
  EXPECT_TRUE(HoldsExactly(secondary.get(), ScanForward(primary.get())));
}

// The primary is replaced by an older copy of itself: its numbers and segments are used again.
TEST_F(SecondaryUpdatesTest, OtherFilesAreNoticed) {
  const std::string old = directory_.File("old");
  Fill(options_, 100);
  CopyDatabase(path_, old);
  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  std::unique_ptr<DB> secondary;
  ASSERT_OK(OpenSecondary(&secondary));
  ASSERT_OK(primary->Put({}, "key", "of the first"));
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  ASSERT_OK(primary->Close());
  primary.reset();
  std::filesystem::rename(path_, directory_.File("away"));
  std::filesystem::rename(old, path_);
  primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  ASSERT_OK(primary->Put({}, "another", "of the second"));
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  EXPECT_TRUE(HoldsExactly(secondary.get(), ScanForward(primary.get())));
  // One that was made anew has other identities.
  ASSERT_OK(primary->Close());
  primary.reset();
  ASSERT_OK(DB::Destroy(options_, path_));
  EXPECT_CODE(secondary->TryCatchUpWithPrimary(), kNotFound);
  Fill(options_, 10);
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  EXPECT_EQ(ScanForward(secondary.get()).size(), 10u);
}

// Files are overwritten in place, so that they are the same ones to the system.
TEST_F(SecondaryUpdatesTest, OverwrittenFilesAreNoticed) {
  const std::filesystem::path old = directory_.File("old");
  Fill(options_, 100);
  CopyDatabase(path_, old);
  std::unique_ptr<DB> secondary;
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    auto primary = OpenOrFail(options_, path_);
    ASSERT_NE(primary, nullptr);
    if (round == 0) {
      ASSERT_OK(OpenSecondary(&secondary));
    }
    for (int i = 0; i < 500; ++i) ASSERT_OK(primary->Put({}, NumberedKey(i % 300), "history " + std::to_string(round)));
    ASSERT_OK(primary->Delete({}, NumberedKey(round)));
    ASSERT_OK(secondary->TryCatchUpWithPrimary());
    EXPECT_TRUE(HoldsExactly(secondary.get(), ScanForward(primary.get())));
    ASSERT_OK(primary->Close());
    primary.reset();
    std::vector<std::filesystem::path> added;
    for (const auto& file : std::filesystem::recursive_directory_iterator(path_)) {
      if (!std::filesystem::exists(old / std::filesystem::relative(file.path(), path_))) added.push_back(file.path());
    }
    for (const auto& file : added) std::filesystem::remove(file);
    constexpr auto kOver = std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy(old, path_, kOver);
    ASSERT_OK(secondary->TryCatchUpWithPrimary());
    EXPECT_EQ(ScanForward(secondary.get()).size(), 100u);
  }
}

// The second one follows a database that writes a batch in each catch-up, and merges it at once: its newest segments go.
TEST_F(SecondaryUpdatesTest, ASecondaryOfASecondaryFollows) {
  for (int seed = 1; seed <= (kSlowdown == 1 ? 12 : 1); ++seed) {
    SCOPED_TRACE(seed);
    Random random(static_cast<uint64_t>(seed));
    const auto draw_key = [&random] {
      const size_t size = random.OneIn(5) ? 0 : random.OneIn(4) ? 65536 - random.Uniform(3) : random.Uniform(4);
      std::string key(size, '\0');
      for (size_t i = 0; i < std::min<size_t>(size, 4); ++i) key[i] = random.OneIn(2) ? '\0' : '\xff';
      if (size > 100) key[size - 1] = static_cast<char>(random.Uniform(3));
      return key;
    };
    Options options = TinyOptions();
    options.memtable = MemtableKind::kSkipList;
    options.memtable_size = 32 << 10;
    options.segment_size = 256 << 10;
    options.checkpoint_tables = 2;
    options.max_space_amplification = 1.1;
    options.space_slack = 256 << 10;
    options.compaction_threads = 2;
    auto primary = OpenOrFail(options, path_);
    ASSERT_NE(primary, nullptr);
    ASSERT_OK(primary->DeleteRange({}, "x", "y"));
    std::unique_ptr<DB> first, second;
    ASSERT_OK(DB::OpenAsSecondary(options, path_, secondary_path_, &first));
    ASSERT_OK(DB::OpenAsSecondary(options, secondary_path_, directory_.File("second"), &second));
    for (int round = 0; round < 80; ++round) {
      for (uint64_t i = random.Uniform(20); i > 0; --i) {
        const uint64_t kind = random.Uniform(10);
        if (kind < 6) {
          ASSERT_OK(primary->Put({}, draw_key(), std::string(random.Uniform(3) * random.Uniform(50), 'v')));
        } else if (kind < 8) {
          ASSERT_OK(primary->Delete({}, draw_key()));
        } else {
          std::string begin = draw_key(), end = draw_key();
          if (end < begin) std::swap(begin, end);
          ASSERT_OK(primary->DeleteRange({}, begin, end));
        }
      }
      ASSERT_OK(first->TryCatchUpWithPrimary());
      ASSERT_OK(second->TryCatchUpWithPrimary());
      const Pairs all = ScanForward(primary.get());
      ASSERT_TRUE(HoldsExactly(first.get(), all)) << round;
      ASSERT_TRUE(HoldsExactly(second.get(), all)) << round;
    }
    second.reset();
    first.reset();
    primary.reset();
    ASSERT_OK(DB::Destroy(options, path_));
  }
}

class RemoveSome : public CompactionFilter {
 public:
  Decision Filter(int, Slice key, Slice, std::string*) const override {
    return key.starts_with("goes") ? Decision::kRemove : Decision::kKeep;
  }
  const char* Name() const override { return "RemoveSome"; }
};

// Wherever a filter is named, each catch-up reads all.
TEST_F(SecondaryUpdatesTest, WhatAFilterRemovesGoes) {
  const RemoveSome filter;
  Options filtered = options_;
  filtered.compaction_filter = &filter;
  auto primary = OpenOrFail(filtered, path_);
  ASSERT_NE(primary, nullptr);
  for (const bool in_descriptor : {false, true}) {
    SCOPED_TRACE(in_descriptor);
    ASSERT_OK(primary->Put({}, "goes", "value"));
    ASSERT_OK(primary->Put({}, "stays", "value"));
    std::unique_ptr<DB> secondary;
    std::vector<Handle> handles;
    const std::vector<ColumnFamilyDescriptor> families{{kDefaultColumnFamilyName, ColumnFamilyOptions(filtered)}};
    if (in_descriptor) {
      ASSERT_OK(DB::OpenAsSecondary(options_, path_, secondary_path_, families, &handles, &secondary));
    } else {
      ASSERT_OK(DB::OpenAsSecondary(filtered, path_, secondary_path_, &secondary));
    }
    EXPECT_EQ(GetOrText(secondary.get(), "goes"), "value");
    ASSERT_OK(primary->CompactRange({}, nullptr, nullptr));
    ASSERT_EQ(GetOrText(primary.get(), "goes"), "<not found>");
    ASSERT_OK(primary->Merge({}, "goes", "new"));
    ASSERT_OK(secondary->TryCatchUpWithPrimary());
    EXPECT_TRUE(HoldsExactly(secondary.get(), ScanForward(primary.get())));
    ASSERT_OK(primary->Delete({}, "goes"));
    handles.clear();
  }
}

class IgnoresCase : public Comparator {
 public:
  const char* Name() const override { return "test.IgnoresCase"; }
  int Compare(Slice a, Slice b) const override {
    const auto lower = [](Slice text) {
      std::string result(text);
      for (char& letter : result) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      return result;
    };
    return lower(a).compare(lower(b));
  }
};

// Of equal keys, the bytes of the newest version are shown.
TEST_F(SecondaryUpdatesTest, EqualKeysHaveTheBytesOfTheNewest) {
  const IgnoresCase comparator;
  options_.comparator = &comparator;
  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  ASSERT_OK(primary->Put({}, "aa", "1"));
  ASSERT_OK(primary->Put({}, "AA", "2"));
  std::unique_ptr<DB> secondary;
  ASSERT_OK(OpenSecondary(&secondary));
  EXPECT_EQ(ScanForward(secondary.get()), ScanForward(primary.get()));
  for (const char* key : {"bb", "BB", "aA", "Bb"}) {
    ASSERT_OK(primary->Put({}, key, key));
    ASSERT_OK(primary->Put({}, "Cc", key));
    ASSERT_OK(primary->Put({}, "cC", key));
    ASSERT_OK(secondary->TryCatchUpWithPrimary());
    EXPECT_EQ(ScanForward(secondary.get()), ScanForward(primary.get()));
  }
}

// DRAM ends anywhere in a catch-up: it fails, and the next one shows all.
TEST_F(SecondaryUpdatesTest, ACatchUpThatFailsLosesNothing) {
  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  Random random(3);
  Content content;
  std::unique_ptr<DB> secondary;
  ASSERT_OK(OpenSecondary(&secondary));
  int refused = 0;
  for (int64_t at = 0;; at += 1 + at / 8 * kSlowdown) {
    SCOPED_TRACE("allocation " + std::to_string(at));
    WriteSome(primary.get(), primary->DefaultColumnFamily(), &random, 3, &content);
    Status status;
    this_thread = true;
    {
      const Failing failing(Who::kThisThread, at);
      status = secondary->TryCatchUpWithPrimary();
    }
    this_thread = false;
    const bool enough = failed == 0;
    EXPECT_TRUE(status.ok() || status.IsMemoryLimit()) << status.ToString();
    refused += !status.ok();
    ASSERT_OK(secondary->TryCatchUpWithPrimary());
    ASSERT_TRUE(HoldsExactly(secondary.get(), content));
    if (enough) break;
  }
  EXPECT_GT(refused, 10 / kSlowdown);
}

}  // namespace
}  // namespace braiddb::test
