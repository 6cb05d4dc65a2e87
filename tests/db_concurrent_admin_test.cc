// Threads that come and go, administration under load, and closing with work pending.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>

#include "braiddb/db.h"
#include "tests/concurrent/concurrent_db_fixture.h"
#include "tests/concurrent/concurrent_workload.h"
#include "tests/support/db_test_util.h"
#include "tests/support/wait_until.h"

namespace braiddb::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Setups, DbConcurrentTest, kConcurrentSetups, NameOf);

// ---- Threads that come and go, and administration meanwhile

TEST_P(DbConcurrentTest, ManyShortLivedThreads) {
  constexpr uint64_t kWrites = 20;
  const uint64_t rounds = 40 / kSlowdown + 2;
  uint64_t thread_number = 0;
  std::map<std::string, std::string> expected;
  for (uint64_t round = 0; round < rounds; ++round) {
    Crew crew;
    for (int i = 0; i < 8; ++i, ++thread_number) {
      crew.Start([this, thread_number, &crew] {
        for (uint64_t write = 0; write < kWrites; ++write) {
          const uint64_t number = thread_number * kWrites + write;
          if (!crew.Check(db_->Put({}, NumberedKey(number), TaggedValue(number)), "put")) return;
        }
      });
      for (uint64_t number = thread_number * kWrites; number < (thread_number + 1) * kWrites; ++number) {
        expected[NumberedKey(number)] = TaggedValue(number);
      }
    }
  }
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  EXPECT_LT(IntProperty(db_.get(), "braiddb.num-segments"), 64u) << "a thread that ended gives its segment to the next";
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
}

TEST_P(DbConcurrentTest, AdministrationUnderLoad) {
  constexpr uint64_t kKeys = 200;
  const int rounds = 60 / kSlowdown + 2;
  std::atomic<bool> done{false};
  std::atomic<uint64_t> written{0};
  Crew crew;
  for (int writer = 0; writer < 2; ++writer) {
    crew.Start([&, writer] {
      Random random(1100 + writer);
      while (!done.load(kRelaxed) && !crew.stopped()) {
        const uint64_t key = random.Uniform(kKeys) * 2 + writer;
        if (!crew.Check(db_->Put({}, NumberedKey(key), TaggedValue(written.fetch_add(1, kRelaxed))), "put")) return;
      }
    });
  }
  crew.Start([&] {
    Random random(1200);
    Statistics before = db_->GetStatistics();
    while (!done.load(kRelaxed) && !crew.stopped()) {
      const Statistics now = db_->GetStatistics();
      if (now.writes < before.writes || now.log_bytes < before.log_bytes || now.flushes < before.flushes) {
        crew.Fail("statistics went back");
      }
      before = now;
      for (const char* name :
           {"stats", "levels", "num-segments", "estimate-num-keys", "cur-size-all-mem-tables", "is-write-stopped"}) {
        std::string text;
        if (!db_->GetProperty(std::string("braiddb.") + name, &text)) crew.Fail(std::string("no property ") + name);
      }
      const uint64_t last = db_->GetLatestSequenceNumber();
      if (IntProperty(db_.get(), "braiddb.last-sequence-number") < last) crew.Fail("the last sequence number went back");
    }
  });
  // Two administrators at once.
  crew.Start([&] {
    for (int i = 0; i < rounds && !crew.stopped(); ++i) {
      crew.Check(db_->CompactRange({}, nullptr, nullptr), "CompactRange");
      crew.Check(db_->Flush(), "Flush");
    }
  });
  for (int i = 0; i < rounds && !crew.stopped(); ++i) {
    crew.Check(db_->Flush(), "Flush");
    const std::string begin = NumberedKey(i);
    const std::string end = NumberedKey(i + 100);
    const Slice from = begin;
    const Slice to = end;
    crew.Check(db_->CompactRange({}, &from, &to), "CompactRange");
  }
  done = true;
  crew.Join();
  ASSERT_OK(db_->WaitForCompaction());
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-immutable-mem-table"), 0u);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  const Pairs all = ScanForward(db_.get());
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), all));
}

// The tables that a waiter waits for may be merged by someone else's CompactRange. Every call returns, or the test times out.
TEST_P(DbConcurrentTest, WaitersSeeTheMergesOfOthers) {
  Crew crew;
  for (Rounds rounds(3000 / kSlowdown); rounds.Next() && !crew.stopped();) {
    ASSERT_OK(db_->Put({}, NumberedKey(rounds.number() % 10), "value"));
    crew.Start([&] { crew.Check(db_->Flush(), "Flush"); });
    crew.Start([&] { crew.Check(db_->WaitForCompaction(), "WaitForCompaction"); });
    crew.Check(db_->CompactRange({}, nullptr, nullptr), "CompactRange");
    crew.Join();
  }
}

TEST_P(DbConcurrentTest, CloseWithWorkPending) {
  for (int round = 0; round < 10 / kSlowdown + 2; ++round) {
    std::map<std::string, std::string> expected;
    Crew crew;
    for (int writer = 0; writer < 3; ++writer) {
      crew.Start([&, writer] {
        for (int i = 0; i < 500; ++i) {
          if (!crew.Check(db_->Put({}, NumberedKey(writer * 1000 + i), TaggedValue(round * 10'000 + i)), "put")) return;
        }
      });
    }
    crew.Join();
    for (int writer = 0; writer < 3; ++writer) {
      for (int i = 0; i < 500; ++i) expected[NumberedKey(writer * 1000 + i)] = TaggedValue(round * 10'000 + i);
    }
    Reopen();  // at once, in the middle of flushes and merges
    ASSERT_TRUE(HoldsExactly(db_.get(), expected)) << "round " << round;
  }
}

}  // namespace
}  // namespace braiddb::test
