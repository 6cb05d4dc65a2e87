// A region that is full: it keeps what deletions and relocations need, and comes back as soon as something in it is garbage.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/failing_calls.h"
#include "tests/support/fork_child.h"
#include "tests/support/leave_child.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

using Clock = std::chrono::steady_clock;

class DbFullRegionTest : public DbTest {
 protected:
  // Longer than the compaction thread takes to make room on a loaded machine.
  static constexpr uint32_t kTimeoutMs = 100'000;

  void SetUp() override {
    options_.max_region_size = 32ull << 20;
    options_.memtable_size = 256 << 10;
    options_.no_space_timeout_ms = kTimeoutMs;
    DbTest::SetUp();
  }
  // Until a put is refused. Returns how many keys there are.
  int Fill(size_t value_bytes) {
    for (int i = 0; i < 1'000'000; ++i) {
      const Status status = db_->Put({}, NumberedKey(i), PatternedValue(i, value_bytes));
      if (status.ok()) continue;
      EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
      return i;
    }
    return 0;
  }
};

INSTANTIATE_TEST_SUITE_P(Regions, DbFullRegionTest, testing::Values(1, 2),
                         [](const auto& test) { return std::to_string(test.param); });

// Four keys of five are deleted here and there, so that no segment is garbage as a whole.
TEST_P(DbFullRegionTest, DeletionsAreTakenAndMakeRoom) {
  for (int round = 0; round < 3; ++round) {
    const int count = Fill(1000);
    ASSERT_GT(count, 1000);
    Reopen();
    for (int i = 0; i < count; ++i) {
      if (i % 5 != 0) {
        ASSERT_OK(db_->Delete({}, NumberedKey(i))) << i << " of " << count << " in round " << round;
      }
    }
    for (int i = 0; i < count / 2; ++i) {
      if (i % 5 != 0) {
        ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(i, 1000))) << i << " of " << count << " in round " << round;
      }
    }
    for (int i = 0; i < count; i += 97) {
      const bool is_there = i % 5 == 0 || i < count / 2;
      EXPECT_EQ(GetOrText(db_.get(), NumberedKey(i)), is_there ? PatternedValue(i, 1000) : "<not found>") << i;
    }
  }
}

// What lives takes a fifth of the regions, and is overwritten all the time by several threads, also behind opens.
TEST_P(DbFullRegionTest, OverwritesAreNeverRefused) {
  options_.space_slack = 1ull << 40;  // nothing is relocated before the regions are full
  Reopen();
  constexpr int kThreads = 4;
  const int keys = static_cast<int>(GetParam()) * 6000;
  for (int life = 0; life < 3; ++life) {
    std::atomic<int64_t> longest_ms{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        Random random(100 * life + t);
        for (int i = 0; i < 20'000 / kSlowdown; ++i) {
          const int key = static_cast<int>(random.Uniform(keys)) / kThreads * kThreads + t;
          const auto start = Clock::now();
          const Status status = db_->Put({}, NumberedKey(key), PatternedValue(key, 1000));
          const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
          int64_t longest = longest_ms.load();
          while (took > longest && !longest_ms.compare_exchange_weak(longest, took)) {
          }
          ASSERT_OK(status) << "put " << i << " of thread " << t << " in life " << life;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LT(longest_ms.load(), kTimeoutMs) << "there was no room";
    RecordProperty("longest_ms_" + std::to_string(life), static_cast<int>(longest_ms.load()));
    Reopen();
  }
}

// A region that is full of what lives refuses puts at once, and without a pile of waits.
TEST_P(DbFullRegionTest, WhatDoesNotFitIsRefusedSoon) {
  Fill(4000);
  std::atomic<int> rounds{0};
  SyncPoints::Instance().SetCallback("DBImpl::MakeRoom", [&](void*) { ++rounds; });
  SyncPoints::Instance().Enable();
  constexpr int kPuts = 100;
  for (int i = 0; i < kPuts; ++i) EXPECT_CODE(db_->Put({}, "more", PatternedValue(i, 4000)), kNoSpace);
  SyncPoints::Instance().Clear();
  EXPECT_LT(rounds, kPuts) << "a put that waits waits for two";
}

// A call that the system refuses while a region grows fails one write. Nothing was written, so nothing is lost or closed.
// What an iterator, a snapshot or a pinned value holds comes back when it ends; a write waits for that.
TEST_P(DbFullRegionTest, WritesWaitForReaders) {
  if (!LogHoldsLastLevel()) GTEST_SKIP() << "merges that copy need space of their own, and a full region has none";
  const int keys = 18000 * static_cast<int>(GetParam());
  std::atomic<int> puts{0};
  const auto overwrite = [&](int round) {
    for (int i = 0; i < keys; ++i, ++puts) {
      if (Status status = db_->Put({}, NumberedKey(i), PatternedValue(round, 1000)); !status.ok()) return status;
    }
    return Status::OK();
  };
  ASSERT_OK(overwrite(0));
  for (const bool is_snapshot : {false, true}) {
    std::unique_ptr<Iterator> iterator;
    const Snapshot* snapshot = nullptr;
    if (is_snapshot) {
      snapshot = db_->GetSnapshot();
    } else {
      iterator = db_->NewIterator({});
      iterator->SeekToFirst();
    }
    std::atomic<bool> is_over{false};
    std::thread writes([&] {
      for (int round = 1; round <= 5; ++round) EXPECT_OK(overwrite(round));
      is_over.store(true);
    });
    // Until it waits.
    for (int before = -1; before != puts.load() && !is_over.load();) {
      before = puts.load();
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    EXPECT_FALSE(is_over.load()) << "the reader holds less than the region has";
    iterator.reset();
    if (snapshot != nullptr) db_->ReleaseSnapshot(snapshot);
    writes.join();
  }
}

// A reader that does not end is waited for once, and then not for a while.
TEST_P(DbFullRegionTest, AWaitForReadersEnds) {
  constexpr auto kTimeout = std::chrono::milliseconds(300);
  options_.no_space_timeout_ms = kTimeout.count();
  Reopen();
  auto iterator = db_->NewIterator({});
  iterator->SeekToFirst();
  Status status;
  Clock::time_point begin;
  for (int i = 0; status.ok(); ++i) {
    begin = Clock::now();
    status = db_->Put({}, NumberedKey(i % 1000), PatternedValue(i, 1000));
  }
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_GE(Clock::now() - begin, kTimeout * 9 / 10);
  // A segment that was released meanwhile, and kept for deletions, lets one more write wait.
  bool is_refused_at_once = false;
  for (int i = 0; i < 5 && !is_refused_at_once; ++i) {
    begin = Clock::now();
    EXPECT_CODE(db_->Put({}, "more", PatternedValue(1, 1000)), kNoSpace);
    is_refused_at_once = Clock::now() - begin < kTimeout / 2;
  }
  EXPECT_TRUE(is_refused_at_once);
  iterator.reset();
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_OK(db_->Put({}, "more", PatternedValue(1, 1000)));
}

TEST_P(DbFullRegionTest, APassingErrorFailsOneWriteOnly) {
  for (const int error : {EMFILE, ENFILE, ENOMEM, EINTR}) {
    FailingCalls::Arm(0, error, error == EINTR ? 3 : FailingCalls::kForEver, "posix_fallocate");
    Status status;
    for (int i = 0; status.ok() && i < 3000; ++i) status = db_->Put({}, NumberedKey(i), PatternedValue(i, 4000));
    EXPECT_EQ(status.IsIOError(), error != EINTR) << status.ToString();
    EXPECT_GT(FailingCalls::failed(), 0);
    FailingCalls::Stop();
    for (int i = 0; i < 100; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(i, 4000))) << strerror(error);
    db_.reset();
    ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
    Reopen();
  }
}

// What is acknowledged of one key at a time, for a parent that kills the process.
struct KilledWrites {
  static constexpr uint32_t kKeys = 4000;
  std::atomic<uint32_t> begun[kKeys];
  std::atomic<uint32_t> acknowledged[kKeys];
  std::atomic<uint64_t> writes;
  char error[256];

  int Fail(const std::string& what) {
    what.copy(error, sizeof(error) - 1);
    return 1;
  }
  // Every key has its last acknowledged value, or the one that was being written.
  int CheckAndOverwrite(const Options& options, const std::string& path, uint64_t seed) {
    std::unique_ptr<DB> db;
    if (const Status status = DB::Open(options, path, &db); !status.ok()) return Fail("open: " + status.ToString());
    for (uint32_t key = 0; key < kKeys; ++key) {
      uint32_t version = acknowledged[key];
      const std::string found = GetOrText(db.get(), NumberedKey(key));
      const auto is = [&](uint32_t number) {
        return found == (number == 0 ? std::string("<not found>") : PatternedValue(key * 1000ull + number, 1000));
      };
      while (!is(version) && version < begun[key]) ++version;
      if (!is(version)) return Fail("key " + std::to_string(key) + " is not " + std::to_string(version));
      begun[key] = acknowledged[key] = version;
    }
    for (Random random(seed);;) {
      const uint32_t key = static_cast<uint32_t>(random.Uniform(kKeys));
      const uint32_t version = ++begun[key];
      const Status status = db->Put({}, NumberedKey(key), PatternedValue(key * 1000ull + version, 1000));
      if (!status.ok()) return Fail("put: " + status.ToString());
      acknowledged[key] = version;
      ++writes;
    }
  }
};

// What lives is an eighth of the region, which is overwritten until it is full, several times in each life. Lives end by a kill.
TEST_P(DbFullRegionTest, OverwritesAndKillsNeverEndInNoSpace) {
  if (GetParam() != 1) GTEST_SKIP() << "the space of one region is enough";
  if (!LogHoldsLastLevel()) GTEST_SKIP() << "merges that copy need space of their own, and a full region has none";
  db_.reset();
  options_.space_slack = 1ull << 40;  // nothing is relocated before the region is full
  void* const memory = mmap(nullptr, sizeof(KilledWrites), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const shared = static_cast<KilledWrites*>(memory);
  Random random(9);
  for (int life = 0; life < 5 && !HasFailure(); ++life) {
    const uint64_t enough = shared->writes + 20'000 / kSlowdown + random.Uniform(20'000) / kSlowdown;
    const pid_t child = ForkChild();
    ASSERT_GE(child, 0);
    if (child == 0) LeaveChild(shared->CheckAndOverwrite(options_, directory_.File("db"), static_cast<uint64_t>(life)));
    int state = 0;
    pid_t ended = 0;
    // No write in this time: it is stuck.
    constexpr auto kStuck = std::chrono::seconds(120);
    uint64_t seen = shared->writes;
    for (auto moved = Clock::now(); ended == 0 && shared->writes < enough && Clock::now() - moved < kStuck;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (const uint64_t now = shared->writes; std::exchange(seen, now) != now) moved = Clock::now();
      ended = waitpid(child, &state, WNOHANG);
    }
    EXPECT_EQ(ended, 0) << shared->error;
    EXPECT_GE(shared->writes, enough) << "stuck in life " << life;
    if (ended != 0) continue;
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, &state, 0), child);
  }
  munmap(memory, sizeof(KilledWrites));
}

}  // namespace
}  // namespace braiddb::test
