// LogTail: what a process beside the writer reads of the log, in which order, and what it says of lost segments.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "braiddb/transaction.h"
#include "tests/support/db_fixture.h"
#include "tests/support/merge_operators.h"
#include "txn/log_tail.h"

namespace braiddb::test {
namespace {

using Kind = LogTail::Kind;

class LogTailTest : public DbTest {
 protected:
  void SetUp() override {
    options_.merge_operator = std::make_shared<AppendOperator>();
    DbTest::SetUp();
    tail_ = NewTail();
    ASSERT_OK(tail_->Start(0));
    Read();
  }
  std::unique_ptr<LogTail> NewTail() const { return std::make_unique<LogTail>(options_, directory_.File("db")); }

  // "number kind key value" of each update since the last call, without the numbers.
  std::vector<std::string> Read() {
    std::vector<LogTail::Update> updates;
    EXPECT_OK(tail_->Poll(&updates));
    tail_->TakeRest(&updates);
    std::vector<std::string> lines;
    for (const LogTail::Update& update : updates) {
      constexpr const char* kNames[] = {"put", "delete", "merge", "delete-range"};
      lines.push_back(std::to_string(update.family) + " " + kNames[static_cast<size_t>(update.kind)] + " " + update.key + " " +
                      update.value);
    }
    return lines;
  }

  // On a busy machine a segment could be merged and released between two polls.
  void StopMerges() {
    ChangedOptions no_merges;
    no_merges.disable_auto_compaction = true;
    ASSERT_OK(db_->SetOptions(db_->DefaultColumnFamily(), no_merges));
  }

  std::unique_ptr<LogTail> tail_;
};

INSTANTIATE_TEST_SUITE_P(Regions, LogTailTest, testing::Values(1u, 2u));

TEST_P(LogTailTest, EachKindOfUpdateIsReturnedOnce) {
  ASSERT_OK(db_->Put({}, "a", "1"));
  ASSERT_OK(db_->Delete({}, "a"));
  ASSERT_OK(db_->Merge({}, "b", "2"));
  EXPECT_EQ(Read(), (std::vector<std::string>{"0 put a 1", "0 delete a ", "0 merge b 2"}));
  EXPECT_EQ(Read(), std::vector<std::string>());
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(db_->CreateColumnFamily({}, "other", &family));
  WriteBatch batch;
  batch.Put("c", "3");
  batch.Put(family.get(), "c", "4");
  ASSERT_OK(db_->Write({}, batch));
  ASSERT_OK(db_->DeleteRange({}, family.get(), "a", "z"));
  const std::string id = std::to_string(family->GetID());
  EXPECT_EQ(Read(), (std::vector<std::string>{"0 put c 3", id + " put c 4", id + " delete-range a z"}));
}

TEST_P(LogTailTest, UpdatesAreReturnedByTheNextPoll) {
  std::vector<LogTail::Update> updates;
  ASSERT_OK(db_->Put({}, "a", "1"));
  ASSERT_OK(tail_->Poll(&updates));
  EXPECT_TRUE(updates.empty());
  ASSERT_OK(db_->Put({}, "b", "2"));
  ASSERT_OK(tail_->Poll(&updates));
  ASSERT_EQ(updates.size(), 1u);
  EXPECT_EQ(updates[0].key, "a");
  tail_->TakeRest(&updates);
  ASSERT_EQ(updates.size(), 2u);
  EXPECT_EQ(updates[1].key, "b");
  EXPECT_LT(updates[0].sequence, updates[1].sequence);
}

// Flushes, merges, relocations and collapses copy entries. The copies are no updates.
TEST_P(LogTailTest, WorkInTheBackgroundIsNoUpdate) {
  std::set<std::string> expected;
  std::set<std::string> found;
  for (int i = 0; i < 2000; ++i) {
    const std::string key = NumberedKey(i % 100);
    const std::string value = std::to_string(i);
    if (i % 3 == 0) {
      ASSERT_OK(db_->Merge({}, key, value));
    } else {
      ASSERT_OK(db_->Put({}, key, value));
    }
    EXPECT_TRUE(expected.insert(std::string(i % 3 == 0 ? "0 merge " : "0 put ") + key + " " + value).second);
    if (i % 500 == 0) {
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    }
    if (i % 50 == 0) {
      for (const std::string& line : Read()) EXPECT_TRUE(found.insert(line).second) << line;
    }
  }
  for (const std::string& line : Read()) EXPECT_TRUE(found.insert(line).second) << line;
  EXPECT_EQ(tail_->missed_segments(), 0u);
  EXPECT_EQ(found, expected);
}

TEST_P(LogTailTest, FollowsAcrossOpens) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(db_->Put({}, "k", std::to_string(i)));
    EXPECT_EQ(Read(), std::vector<std::string>{"0 put k " + std::to_string(i)});
    Reopen();
    EXPECT_EQ(Read(), std::vector<std::string>());
  }
  EXPECT_EQ(tail_->missed_segments(), 0u);
}

TEST_P(LogTailTest, TheFirstUpdateIsTheOldestThatTheLogHas) {
  ASSERT_OK(db_->Put({}, "old", "1"));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  const uint64_t flushed = db_->GetLatestSequenceNumber();
  ASSERT_OK(db_->Put({}, "new", "1"));
  const uint64_t first = db_->GetLatestSequenceNumber();
  ASSERT_OK(db_->Put({}, "new", "2"));
  tail_ = NewTail();
  ASSERT_OK(tail_->Start(0));
  EXPECT_EQ(Read(), (std::vector<std::string>{"0 put new 1", "0 put new 2"}));
  tail_ = NewTail();
  ASSERT_OK(tail_->Start(first + 1));
  EXPECT_EQ(Read(), std::vector<std::string>{"0 put new 2"});
  tail_ = NewTail();
  EXPECT_CODE(tail_->Start(flushed), kNotFound);
  // A number that is not drawn yet.
  tail_ = NewTail();
  ASSERT_OK(tail_->Start(first + 3));
  ASSERT_OK(db_->Put({}, "new", "3"));
  ASSERT_OK(db_->Put({}, "new", "4"));
  EXPECT_EQ(Read(), std::vector<std::string>{"0 put new 4"});
}

// Log space that is reused between two polls is noticed.
TEST_P(LogTailTest, SegmentsThatWereNotReadAreCounted) {
  uint64_t written = 0;
  for (int round = 0; round < 100 && tail_->missed_segments() == 0; ++round) {
    for (int i = 0; i < 20'000 / kSlowdown; ++i) {
      ASSERT_OK(db_->Put({}, NumberedKey(i % 10), PatternedValue(i, 100)));
      ++written;
    }
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    (void)Read();
  }
  EXPECT_GT(tail_->missed_segments(), 0u) << written << " writes";
}

// All updates of several threads, in the order of their numbers, while flushes and merges run.
TEST_P(LogTailTest, SeveralThreadsAreFollowed) {
  if (TestedL1() == L1Kind::kSortedRuns) StopMerges();  // they release what has been merged
  constexpr int kThreads = 4;
  const int each = 5'000 / kSlowdown;
  std::vector<std::thread> writers;
  std::atomic<int> running{kThreads};
  for (int t = 0; t < kThreads; ++t) {
    writers.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        WriteBatch batch;
        batch.Put("t" + std::to_string(t) + NumberedKey(i), std::to_string(i));
        batch.Put("u" + std::to_string(t) + NumberedKey(i), std::to_string(i));
        EXPECT_OK(db_->Write({}, batch));
        if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      --running;
    });
  }
  std::map<std::string, int> next;
  std::vector<LogTail::Update> updates;
  size_t read = 0;
  const auto check = [&] {
    for (; read < updates.size(); ++read) {
      const std::string writer = updates[read].key.substr(0, 2);
      EXPECT_EQ(updates[read].value, std::to_string(next[writer]++)) << updates[read].key;
    }
  };
  while (running > 0) {
    ASSERT_OK(tail_->Poll(&updates));
    check();
  }
  for (auto& writer : writers) writer.join();
  ASSERT_OK(tail_->Poll(&updates));
  tail_->TakeRest(&updates);
  check();
  EXPECT_EQ(updates.size(), static_cast<size_t>(2 * kThreads * each));
  EXPECT_EQ(tail_->missed_segments(), 0u);
}

// A poll that meets a batch while it is written returns the batch, and what follows in its segment, later.
TEST_P(LogTailTest, ABatchThatIsBeingWrittenIsReturnedLater) {
  StopMerges();
  constexpr int kEntries = 1000;
  const int rounds = 400 / kSlowdown;
  std::atomic<int> begun{0};
  std::atomic<int> done{0};
  std::thread writer([&] {
    for (int n = 1; n <= rounds; ++n) {
      while (begun < n) std::this_thread::yield();
      WriteBatch batch;
      for (int i = 0; i < kEntries; ++i) batch.Put(NumberedKey(i), std::string(100, 'v'));
      EXPECT_OK(db_->Write({}, batch));
      EXPECT_OK(db_->Put({}, "long", std::string(5000, 'v')));
      done = n;
    }
  });
  int first_stall = 0;
  for (int n = 1; n <= rounds; ++n) {
    std::vector<LogTail::Update> updates;
    begun = n;
    while (done < n) EXPECT_OK(tail_->Poll(&updates));
    EXPECT_OK(tail_->Poll(&updates));
    tail_->TakeRest(&updates);
    if (updates.size() != kEntries + 1 && first_stall == 0) first_stall = n;
  }
  writer.join();
  EXPECT_EQ(first_stall, 0);
}

// Relocations and collapses run beside the tail. Copies of keys in key order begin with young and old numbers alike.
TEST_P(LogTailTest, CopiesOfOldEntriesAreNoUpdates) {
  options_.merge_operator = UInt64AddOperator();
  options_.memtable_size = 2 << 20;
  options_.segment_size = 1 << 20;
  options_.max_space_amplification = 1.2;
  options_.space_slack = 0;
  const std::string path = directory_.File("relocating");
  auto db = OpenOrFail(options_, path);
  tail_ = std::make_unique<LogTail>(options_, path);
  ASSERT_OK(tail_->Start(0));
  std::atomic<bool> running{true};
  size_t written = 0;
  std::thread writer([&] {
    Random random(1);
    while (running) {
      const std::string key = NumberedKey(random.Uniform(400));
      if (random.Uniform(3) == 0) {
        EXPECT_OK(db->Merge({}, "m" + key, std::string(8, 1)));
      } else {
        EXPECT_OK(db->Put({}, "k" + key, std::string(random.Uniform(50) == 0 ? 5000 : random.Uniform(300), 'v')));
      }
      ++written;
      if (random.Uniform(8) == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  std::set<uint64_t> numbers;
  size_t twice = 0;
  size_t merged_puts = 0;
  std::vector<LogTail::Update> updates;
  const auto check = [&] {
    for (const LogTail::Update& update : updates) {
      twice += !numbers.insert(update.sequence).second;
      merged_puts += update.kind == Kind::kPut && update.key[0] == 'm';
    }
    updates.clear();
  };
  // A tail that reads seldom may not notice that a segment came and went, and then cannot tell its copies.
  bool is_late = false;
  auto polled = std::chrono::steady_clock::now();
  const auto deadline = polled + std::chrono::seconds(3);
  while (std::chrono::steady_clock::now() < deadline) {
    const Statistics statistics = db->GetStatistics();
    if (statistics.relocated_entries >= 10'000 && statistics.collapsed_keys >= 1000) break;
    EXPECT_OK(tail_->Poll(&updates));
    check();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    is_late |= std::chrono::steady_clock::now() > polled + std::chrono::milliseconds(150);
    polled = std::chrono::steady_clock::now();
  }
  running = false;
  writer.join();
  for (int i = 0; i < 3; ++i) EXPECT_OK(tail_->Poll(&updates));
  tail_->TakeRest(&updates);
  check();
  EXPECT_EQ(twice, 0u);
  EXPECT_LE(numbers.size(), written);
  if (!is_late && tail_->missed_segments() == 0) {
    EXPECT_EQ(merged_puts, 0u);
    EXPECT_EQ(numbers.size(), written);
  }
}

TEST_P(LogTailTest, FlushesThatCopyAreNoUpdates) {
  options_.index_unified_logging = false;
  const std::string path = directory_.File("copying");
  auto db = OpenOrFail(options_, path);
  tail_ = std::make_unique<LogTail>(options_, path);
  ASSERT_OK(tail_->Start(0));
  ASSERT_OK(db->Put({}, "a", "1"));
  EXPECT_EQ(Read(), std::vector<std::string>{"0 put a 1"});
  ASSERT_OK(db->Flush());
  ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(Read(), std::vector<std::string>());
  ASSERT_OK(db->Put({}, "a", "2"));
  EXPECT_EQ(Read(), std::vector<std::string>{"0 put a 2"});
}

TEST_P(LogTailTest, PreparedTransactionsAreShownWhenTheyCommit) {
  const std::string path = directory_.File("transactions");
  std::unique_ptr<TransactionDB> db;
  ASSERT_OK(TransactionDB::Open(options_, {}, path, &db));
  tail_ = std::make_unique<LogTail>(options_, path);
  ASSERT_OK(tail_->Start(0));
  const auto transaction = db->BeginTransaction({});
  ASSERT_OK(transaction->SetName("one"));
  ASSERT_OK(transaction->Put("a", "1"));
  ASSERT_OK(transaction->Prepare());
  EXPECT_EQ(Read(), std::vector<std::string>());
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(Read(), std::vector<std::string>{"0 put a 1"});
}

TEST_P(LogTailTest, ARemovedDatabaseIsAnError) {
  EXPECT_CODE(LogTail(options_, directory_.File("none")).Start(0), kNotFound);
  db_.reset();
  ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
  std::vector<LogTail::Update> updates;
  EXPECT_CODE(tail_->Poll(&updates), kNotFound);
}

}  // namespace
}  // namespace braiddb::test
