// Secondaries: what they show is one state of the primary, and all that it acknowledged before they caught up.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "braiddb/backup.h"
#include "braiddb/compaction_filter.h"
#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/fork_child.h"
#include "tests/support/leave_child.h"
#include "tests/support/merge_operators.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

using Handle = std::unique_ptr<ColumnFamilyHandle>;
using Content = std::map<std::string, std::string>;

class KeepAll : public CompactionFilter {
 public:
  Decision Filter(int, Slice, Slice, std::string*) const override { return Decision::kKeep; }
  const char* Name() const override { return "KeepAll"; }
};

class SecondaryTest : public DbOpenTest {
 protected:
  // Each catch-up of one with a compaction filter reads the whole primary.
  Status OpenSecondary(std::unique_ptr<DB>* db, bool reads_all = false) {
    Options options = options_;
    if (reads_all) options.compaction_filter = &keep_all_;
    return DB::OpenAsSecondary(options, path_, secondary_path_, db);
  }

  // Writes batches at random, also to *content.
  void WriteSome(DB* db, Random* random, int batches, Content* content) {
    for (int i = 0; i < batches; ++i) {
      WriteBatch batch;
      for (uint64_t updates = random->Range(1, 5); updates > 0; --updates) {
        const std::string key = NumberedKey(random->OneIn(30) ? random->Uniform(5000) : random->Uniform(200));
        if (random->OneIn(12)) {
          const std::string end = NumberedKey(random->Uniform(200));
          if (end < key) continue;
          batch.DeleteRange(key, end);
          content->erase(content->lower_bound(key), content->lower_bound(end));
        } else if (random->OneIn(3)) {
          batch.Delete(key);
          content->erase(key);
        } else if (random->OneIn(3)) {
          const std::string operand = "+" + std::to_string(random->Uniform(1000));
          batch.Merge(key, operand);
          std::string& value = (*content)[key];
          value = AppendOperator::Apply(value, operand);
        } else {
          const std::string value = PatternedValue(random->Next(), random->OneIn(60) ? 100'000 : random->Uniform(150));
          batch.Put(key, value);
          (*content)[key] = value;
        }
      }
      ASSERT_OK(db->Write({}, batch));
    }
  }

  KeepAll keep_all_;
  AppendOperator append_;
  Options options_ = [this] {
    Options options = TinyOptions();
    options.merge_operator = std::shared_ptr<const MergeOperator>(std::shared_ptr<void>(), &append_);
    return options;
  }();
  const std::string secondary_path_ = directory_.File("secondary");
};

// The parameters: whether the primary has index-unified logging, and whether each catch-up reads all. Without index-unified
// logging the log is released as a whole, and has no marks.
class SecondaryOfEitherLogTest : public SecondaryTest, public testing::WithParamInterface<std::tuple<bool, bool>> {
 protected:
  void SetUp() override { options_.index_unified_logging = std::get<0>(GetParam()); }
  bool ReadsAll() const { return std::get<1>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Logs, SecondaryOfEitherLogTest, testing::Combine(testing::Bool(), testing::Bool()));

// In memtables, L0 and the last level, over relocations, collapses and reclaimed tombstones.
TEST_P(SecondaryOfEitherLogTest, ShowsWhatThePrimaryHas) {
  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  std::unique_ptr<DB> secondary;
  ASSERT_OK(OpenSecondary(&secondary, ReadsAll()));
  EXPECT_TRUE(HoldsExactly(secondary.get(), Content()));
  Content content, before;
  Random random(1);
  for (int round = 0; round < 60 / kSlowdown; ++round) {
    SCOPED_TRACE(round);
    WriteSome(primary.get(), &random, 300, &content);
    if (round % 5 == 2) {
      ASSERT_OK(primary->Flush());
    }
    if (round % 5 == 4) {
      ASSERT_OK(primary->CompactRange({}, nullptr, nullptr));
    }
    EXPECT_TRUE(HoldsExactly(secondary.get(), before)) << "nothing changes before it catches up";
    ASSERT_OK(secondary->TryCatchUpWithPrimary());
    ASSERT_TRUE(HoldsExactly(secondary.get(), content));
    EXPECT_LE(secondary->GetLatestSequenceNumber(), primary->GetLatestSequenceNumber());
    before = content;
  }
  EXPECT_GT(primary->GetStatistics().segments_recycled, 0u);
  EXPECT_EQ(primary->GetStatistics().relocated_entries > 0, LogHoldsLastLevel());
  EXPECT_GT(primary->GetStatistics().collapsed_keys, 0u);
  // Everything goes, and the tombstones go with it.
  for (const auto& [key, value] : content) ASSERT_OK(primary->Delete({}, key));
  ASSERT_OK(primary->CompactRange({}, nullptr, nullptr));
  ASSERT_OK(primary->CompactRange({}, nullptr, nullptr));
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  EXPECT_TRUE(HoldsExactly(secondary.get(), Content()));
}

TEST_F(SecondaryTest, FollowsFamiliesAndSurvivesThePrimarysDeath) {
  Content content;
  const auto die = [this]() -> int {
    auto primary = OpenOrFail(options_, path_);
    Handle one, two;
    if (!primary->CreateColumnFamily(ColumnFamilyOptions(options_), "one", &one).ok()) LeaveChild(1);
    if (!primary->CreateColumnFamily(ColumnFamilyOptions(options_), "two", &two).ok()) LeaveChild(1);
    for (int i = 0; i < 2000; ++i) {
      WriteBatch batch;
      batch.Put(NumberedKey(i), "default");
      batch.Put(one.get(), NumberedKey(i), "one");
      batch.Put(two.get(), NumberedKey(i), "two");
      if (!primary->Write({}, batch).ok()) LeaveChild(2);
    }
    LeaveChild(0);
  };
  ASSERT_EQ(RunInChild(die), 0);
  std::vector<Handle> handles;
  std::unique_ptr<DB> secondary;
  const std::vector<ColumnFamilyDescriptor> two{{"two", ColumnFamilyOptions(options_)}};
  ASSERT_OK(DB::OpenAsSecondary(options_, path_, secondary_path_, two, &handles, &secondary));
  const auto get = [&](const std::string& key) {
    std::string value;
    const Status status = secondary->Get({}, handles[0].get(), key, &value);
    return status.ok() ? value : status.ToString();
  };
  EXPECT_EQ(get(NumberedKey(1999)), "two");
  EXPECT_EQ(GetOrText(secondary.get(), NumberedKey(5)), "default");
  {
    std::unique_ptr<DB> primary;
    std::vector<Handle> own;
    const std::vector<ColumnFamilyDescriptor> all{{"one", ColumnFamilyOptions(options_)}, {"two", ColumnFamilyOptions(options_)}};
    ASSERT_OK(DB::Open(options_, path_, all, &own, &primary));
    ASSERT_OK(primary->Put({}, own[1].get(), NumberedKey(1), "after the crash"));
    ASSERT_OK(secondary->TryCatchUpWithPrimary());
    EXPECT_EQ(get(NumberedKey(1)), "after the crash");
    ASSERT_OK(primary->Delete({}, own[1].get(), NumberedKey(1)));
    own.clear();
  }
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  EXPECT_TRUE(get(NumberedKey(1)).starts_with("NotFound"));
  handles.clear();
}

// Copies hold what the secondary shows, also of families, and not what the primary has written since.
TEST_F(SecondaryTest, IsCopied) {
  Fill(options_, 10);
  std::vector<Handle> handles, own;
  std::unique_ptr<DB> secondary, primary;
  ASSERT_OK(DB::Open(options_, path_, &primary));
  Handle family;
  ASSERT_OK(primary->CreateColumnFamily(ColumnFamilyOptions(options_), "one", &family));
  ASSERT_OK(primary->Put({}, family.get(), "key", "value"));
  const std::vector<ColumnFamilyDescriptor> one{{"one", ColumnFamilyOptions(options_)}};
  ASSERT_OK(DB::OpenAsSecondary(options_, path_, secondary_path_, one, &handles, &secondary));
  ASSERT_OK(primary->Put({}, family.get(), "key", "later"));
  const std::string copies[] = {directory_.File("checkpoint"), directory_.File("restored")};
  ASSERT_OK(CreateCheckpoint(secondary.get(), copies[0]));
  std::unique_ptr<BackupEngine> engine;
  ASSERT_OK(BackupEngine::Open(directory_.File("backups"), &engine));
  ASSERT_OK(engine->CreateBackup(secondary.get()));
  ASSERT_OK(engine->RestoreBackup(1, options_, copies[1]));
  handles.clear();
  family.reset();
  Options any = options_;
  any.regions = 0;  // a secondary's copy of the primary has its own number
  for (const std::string& copy : copies) {
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(any, copy, one, &own, &db));
    std::string value;
    EXPECT_OK(db->Get({}, own[0].get(), "key", &value));
    EXPECT_EQ(value, "value");
    EXPECT_EQ(GetOrText(db.get(), NumberedKey(7)), PatternedValue(7, 100));
    own.clear();
  }
}

// Batches are whole, what was deleted stays so, nothing goes back, and a write that another one knew of is there if that is.
TEST_P(SecondaryOfEitherLogTest, IsOneStateWhilePrimaryWorks) {
  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> acknowledged{0}, deleted{0};
  std::atomic<uint64_t> cause{0};
  std::vector<std::thread> writers;
  // In bursts: a log that grows as fast as it can takes a sanitizer's reader minutes.
  const auto rest = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  writers.emplace_back([&] {  // a batch with the same number under two keys, and a key that goes again
    for (uint64_t i = 1; !stop; ++i) {
      if (i % 16 == 0) rest();
      WriteBatch batch;
      batch.Put("first", std::to_string(i));
      batch.Put("goes" + std::to_string(i), PatternedValue(i, 100));
      batch.Put("second", std::to_string(i));
      ASSERT_OK(primary->Write({}, batch));
      acknowledged = i;
      ASSERT_OK(primary->Delete({}, "goes" + std::to_string(i)));
      deleted = i;
    }
  });
  writers.emplace_back([&] {
    for (uint64_t i = 1; !stop; ++i) {
      if (i % 16 == 0) rest();
      ASSERT_OK(primary->Put({}, "cause", std::to_string(i)));
      cause = i;
    }
  });
  writers.emplace_back([&] {
    for (uint64_t i = 1; !stop; ++i) {
      if (i % 16 == 0) rest();
      const uint64_t seen = cause;
      ASSERT_OK(primary->Put({}, "effect", std::to_string(seen)));
    }
  });
  writers.emplace_back([&] {
    Content ignored;
    Random random(3);
    for (; !stop; rest()) WriteSome(primary.get(), &random, 20, &ignored);
  });
  std::unique_ptr<DB> secondary;
  Status opened;
  do {
    opened = OpenSecondary(&secondary, ReadsAll());
  } while (opened.IsBusy());
  ASSERT_OK(opened);
  const auto number = [&](const std::string& key) {
    const std::string text = GetOrText(secondary.get(), key);
    return text.starts_with("<") ? uint64_t{0} : std::stoull(text);
  };
  uint64_t last = 0;
  int caught_up = 0;
  // Under a sanitizer a round takes long, and most come too late for a log that is released with each flush.
  const int enough = kSlowdown == 1 ? 41 : 0;
  const auto patience = std::chrono::steady_clock::now() + kPatience;
  Rounds rounds(kSlowdown == 1 ? 300 : 20);
  while (rounds.Next() || (caught_up < enough && std::chrono::steady_clock::now() < patience)) {
    const uint64_t least = acknowledged;
    const uint64_t gone = deleted;
    const Status status = secondary->TryCatchUpWithPrimary();
    if (status.IsBusy()) continue;
    ASSERT_OK(status);
    ++caught_up;
    const uint64_t first = number("first");
    EXPECT_EQ(first, number("second"));
    EXPECT_GE(first, least);
    EXPECT_GE(first, last);
    last = first;
    EXPECT_GE(number("cause"), number("effect"));
    for (const auto& [key, value] : ScanForward(secondary.get())) {
      const bool goes = key.starts_with("goes");
      EXPECT_TRUE(!goes || std::stoull(key.substr(4)) > gone) << key << ", deleted up to " << gone;
    }
  }
  EXPECT_TRUE(WaitUntil([&] { return primary->GetStatistics().segments_recycled > 0; }));
  stop = true;
  for (auto& writer : writers) writer.join();
  RecordProperty("caught_up", caught_up);
  EXPECT_GE(caught_up, enough);
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  const Pairs all = ScanForward(primary.get());
  EXPECT_TRUE(HoldsExactly(secondary.get(), all));
  primary.reset();
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  EXPECT_TRUE(HoldsExactly(secondary.get(), all));
  RecordProperty("caught_up", caught_up);
}

// A deletion is written and merged, and its segment released, after the key was read and before that segment could be: it is
// noticed, and all is read again.
TEST_F(SecondaryTest, ATombstoneThatComesAndGoesMeanwhile) {
  options_.disable_auto_compaction = true;
  options_.max_space_amplification = 0;
  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  ASSERT_OK(primary->Put({}, "victim", "1"));
  for (int i = 0; i < 100; ++i) ASSERT_OK(primary->Put({}, NumberedKey(i), "stays, and keeps the victim's segment"));
  const auto overwrite = [&] {
    for (int i = 0; i < 20'000; ++i) ASSERT_OK(primary->Put({}, "filler" + std::to_string(i % 100), PatternedValue(i, 100)));
  };
  overwrite();
  ASSERT_OK(primary->CompactRange({}, nullptr, nullptr));
  int steps = 0;
  SyncPoints::Instance().SetCallback("PrimaryReader::Read:Step", [&](void*) {
    if (++steps != 1) return;
    overwrite();  // so that the deletion comes to a segment that nothing else keeps
    ASSERT_OK(primary->Delete({}, "victim"));
    overwrite();
    const uint64_t recycled = primary->GetStatistics().segments_recycled;
    for (int i = 0; i < 3; ++i) ASSERT_OK(primary->CompactRange({}, nullptr, nullptr));
    ASSERT_GT(primary->GetStatistics().segments_recycled, recycled + 5);
    ASSERT_OK(primary->Put({}, "after", "the deletion"));
  });
  SyncPoints::Instance().Enable();
  std::unique_ptr<DB> secondary;
  const Status status = OpenSecondary(&secondary);
  SyncPoints::Instance().Clear();
  ASSERT_OK(status);
  EXPECT_EQ(GetOrText(secondary.get(), "after"), "the deletion");
  EXPECT_EQ(GetOrText(secondary.get(), "victim"), "<not found>");
  EXPECT_EQ(steps, 6);
  EXPECT_TRUE(HoldsExactly(secondary.get(), ScanForward(primary.get())));
}

// Copies of a relocation, and what operands were collapsed to, take the place of what was read. The parameter: whether each
// catch-up reads all.
class SecondaryOfChangesTest : public SecondaryTest, public testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(ReadsAll, SecondaryOfChangesTest, testing::Bool());

TEST_P(SecondaryOfChangesTest, RelocationsAndCollapsesMeanwhile) {
  options_.disable_auto_compaction = true;
  auto primary = OpenOrFail(options_, path_);
  ASSERT_NE(primary, nullptr);
  Content content;
  Random random(5);
  std::vector<Pairs> states;  // while nothing was read, since the catch-up began
  int steps = 0;
  const auto work = [&] {
    WriteSome(primary.get(), &random, 400, &content);
    ASSERT_OK(primary->CompactRange({}, nullptr, nullptr));
    states.emplace_back(content.begin(), content.end());
  };
  std::unique_ptr<DB> secondary;
  ASSERT_OK(OpenSecondary(&secondary, GetParam()));
  for (int round = 0; round < 40 / kSlowdown; ++round) {
    SCOPED_TRACE(round);
    states.clear();
    work();
    steps = 0;
    for (const char* step : {"PrimaryReader::Read:Step", "PrimaryReader::ReadUpdates:Step"}) {
      SyncPoints::Instance().SetCallback(step, [&](void*) {
        ++steps;
        if (steps <= 3 && ((round + 1) >> (steps - 1) & 1) != 0) work();
      });
    }
    SyncPoints::Instance().Enable();
    const Status status = secondary->TryCatchUpWithPrimary();
    SyncPoints::Instance().Clear();
    ASSERT_OK(status);
    EXPECT_NE(std::find(states.begin(), states.end(), ScanForward(secondary.get())), states.end());
    ASSERT_OK(secondary->TryCatchUpWithPrimary());
    ASSERT_TRUE(HoldsExactly(secondary.get(), content));
  }
  EXPECT_EQ(primary->GetStatistics().relocated_entries > 0, LogHoldsLastLevel());
  EXPECT_GT(primary->GetStatistics().collapsed_keys, 0u);
}

// The primary's process is the child: a child of a process with threads may find a lock of the allocator held for ever.
TEST_F(SecondaryTest, InAnotherProcess) {
  int written[2], done[2];  // pipes
  ASSERT_EQ(pipe(written), 0);
  ASSERT_EQ(pipe(done), 0);
  const pid_t child = ForkChild();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(done[1]);
    auto primary = OpenOrFail(options_, path_);
    if (primary == nullptr) LeaveChild(1);
    for (int i = 0; i < 3000; ++i) {
      if (!primary->Put({}, NumberedKey(i), PatternedValue(i, 50)).ok()) LeaveChild(2);
    }
    char byte = 'w';
    if (write(written[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1) LeaveChild(3);
    LeaveChild(primary->Put({}, "still", "here").ok() ? 0 : 4);
  }
  close(written[1]);
  char byte = 0;
  ASSERT_EQ(read(written[0], &byte, 1), 1) << "the primary has ended";
  std::unique_ptr<DB> secondary;
  ASSERT_OK(OpenSecondary(&secondary));
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(GetOrText(secondary.get(), NumberedKey(i)), PatternedValue(i, 50)) << i;
  EXPECT_OK(secondary->Close());
  ASSERT_EQ(write(done[1], &byte, 1), 1);
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << state;
  for (const int end : {written[0], done[0], done[1]}) close(end);
}

TEST_F(SecondaryTest, WritesAndBadPlacesAreRefused) {
  std::unique_ptr<DB> secondary;
  EXPECT_CODE(OpenSecondary(&secondary), kNotFound);
  EXPECT_FALSE(std::filesystem::exists(secondary_path_));
  Fill(options_, 100);
  EXPECT_CODE(DB::OpenAsSecondary(options_, path_, path_, &secondary), kInvalidArgument);
  WriteFileOrDie(directory_.File("file"), "mine");
  EXPECT_CODE(DB::OpenAsSecondary(options_, path_, directory_.path(), &secondary), kInvalidArgument);
  std::vector<Handle> handles;
  const std::vector<ColumnFamilyDescriptor> unknown{{"unknown", ColumnFamilyOptions(options_)}};
  EXPECT_CODE(DB::OpenAsSecondary(options_, path_, secondary_path_, unknown, &handles, &secondary), kInvalidArgument);
  Options other = options_;
  other.comparator = ReverseBytewiseComparator();
  EXPECT_CODE(DB::OpenAsSecondary(other, path_, secondary_path_, &secondary), kInvalidArgument);
  ExpectFilled(options_, 100);
  for (int round = 0; round < 2; ++round) {  // what the first left is replaced
    ASSERT_OK(OpenSecondary(&secondary));
    EXPECT_EQ(GetOrText(secondary.get(), NumberedKey(7)), PatternedValue(7, 100));
    EXPECT_CODE(secondary->Put({}, "a", "b"), kNotSupported);
    EXPECT_CODE(secondary->Delete({}, NumberedKey(7)), kNotSupported);
    EXPECT_CODE(secondary->Write({}, WriteBatch()), kNotSupported);
    EXPECT_CODE(secondary->CompactRange({}, nullptr, nullptr), kNotSupported);
    ASSERT_OK(secondary->Close());
    secondary.reset();
  }
  ASSERT_OK(DB::Destroy({}, secondary_path_));
  EXPECT_FALSE(std::filesystem::exists(secondary_path_));
  auto primary = OpenOrFail(options_, path_);
  EXPECT_CODE(primary->TryCatchUpWithPrimary(), kNotSupported);
}

}  // namespace
}  // namespace braiddb::test
