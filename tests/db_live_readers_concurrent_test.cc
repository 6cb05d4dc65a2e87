// Live readers in processes of their own, beside writers that rotate, flush, merge and grow all the time; and their deaths.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/write_batch.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/fork_child.h"
#include "tests/support/leave_child.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

constexpr int kWriters = 3;
constexpr int kKeys = 64;  // of each writer; the last two of them are only written together

// In memory that all processes share.
struct Board {
  std::atomic<uint64_t> begun[kWriters][kKeys];  // the newest value whose write has begun
  std::atomic<uint64_t> acked[kWriters][kKeys];  // the newest value whose write was acknowledged
  std::atomic<bool> stop;
  std::atomic<uint64_t> reads, writes;
  std::atomic<uint32_t> open;   // processes that have opened the database
  std::atomic<bool> is_killed;  // the writer may be in the middle of a write for ever
  std::atomic<bool> is_filled;  // the work of one test is done
  char failure[512];            // the first failure
  std::atomic<bool> failed;

  void Fail(const std::string& what) {
    if (failed.exchange(true)) return;
    strncpy(failure, what.c_str(), sizeof(failure) - 1);
  }
};

std::string KeyOf(int writer, int key) { return "writer" + std::to_string(writer) + "/key" + std::to_string(1000 + key); }

std::string ValueOf(uint64_t number) {
  std::string value = std::to_string(number);
  return value + std::string(20 + number % 180, '.');
}
uint64_t NumberOf(const std::string& value) { return value.empty() ? 0 : strtoull(value.c_str(), nullptr, 10); }

class LiveProcessesTest : public DbOpenTest {
 protected:
  void SetUp() override {
    options_ = TinyOptions(1);
    options_.l1 = L1Kind::kBraidedSkipList;
    void* const memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    board_ = new (memory) Board();
  }
  void TearDown() override {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      kill(child, SIGCONT);
      waitpid(child, nullptr, 0);
    }
    munmap(board_, sizeof(Board));
  }
  template <class Work>
  pid_t Fork(const Work& work) {
    const pid_t child = ForkChild();
    if (child != 0) {
      children_.push_back(child);
      return child;
    }
    try {
      work();
    } catch (const std::exception& error) {
      board_->Fail(std::string("exception: ") + error.what());
    }
    LeaveChild(0);
  }
  void Kill(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    std::erase(children_, child);
  }
  void WaitFor(pid_t child) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    std::erase(children_, child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << (WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  }

  // Puts single keys, pairs in batches, and deletes nothing: the value of each key only grows.
  void WriteUntilStopped(DB* db, int writer, uint64_t from) {
    Random random(from + static_cast<uint64_t>(writer));
    for (uint64_t number = from + 1; !board_->stop.load(); ++number) {
      Status status;
      const bool is_pair = number % 8 == 0;
      const int first = is_pair ? kKeys - 2 : static_cast<int>(random.Uniform(kKeys - 2));
      for (int key = first; key < first + (is_pair ? 2 : 1); ++key) board_->begun[writer][key].store(number);
      if (is_pair) {
        WriteBatch batch;
        batch.Put(KeyOf(writer, first), ValueOf(number));
        batch.Put(KeyOf(writer, first + 1), ValueOf(number));
        status = db->Write({}, batch);
      } else {
        status = db->Put({}, KeyOf(writer, first), ValueOf(number));
      }
      if (!status.ok()) return board_->Fail("write: " + status.ToString());
      for (int key = first; key < first + (is_pair ? 2 : 1); ++key) board_->acked[writer][key].store(number);
      board_->writes.fetch_add(1);
    }
  }

  bool IsInRange(const char* what, int writer, int key, uint64_t least, uint64_t number) {
    const uint64_t most = board_->begun[writer][key].load();
    if (number >= least && number <= most) return true;
    board_->Fail(std::string(what) + ": " + KeyOf(writer, key) + " is " + std::to_string(number) + ", not " +
                 std::to_string(least) + " to " + std::to_string(most));
    return false;
  }

  // A writer that is killed in the middle of a batch leaves a state that cannot be shown.
  bool IsOfKilledWriter(const Status& status) {
    if (!status.IsExpired() || !board_->is_killed.load()) return false;
    board_->reads.fetch_add(1);
    return true;
  }

  void ReadUntilStopped(DB* db, uint64_t seed) {
    Random random(seed);
    uint64_t seen[kWriters][kKeys] = {};  // the newest number that this reader has seen
    while (!board_->stop.load() && !board_->failed.load()) {
      const int writer = static_cast<int>(random.Uniform(kWriters));
      const int key = static_cast<int>(random.Uniform(kKeys));
      const uint64_t least = std::max(board_->acked[writer][key].load(), seen[writer][key]);
      const uint64_t kind = random.Uniform(64);
      if (kind < 48) {
        std::string value;
        const Status status = db->Get({}, KeyOf(writer, key), &value);
        if (IsOfKilledWriter(status)) continue;
        if (!status.ok() && !status.IsNotFound()) return board_->Fail("get: " + status.ToString());
        if (!IsInRange("get", writer, key, least, NumberOf(value))) return;
        seen[writer][key] = NumberOf(value);
      } else if (kind < 56) {
        // Two keys that are written together, in one call and in two.
        const uint64_t pair_least = board_->acked[writer][kKeys - 1].load();
        const std::string a = KeyOf(writer, kKeys - 2), b = KeyOf(writer, kKeys - 1);
        std::vector<std::string> values;
        const auto statuses = db->MultiGet({}, {a, b}, &values);
        if (IsOfKilledWriter(statuses[0])) continue;
        for (const Status& status : statuses) {
          if (!status.ok() && !status.IsNotFound()) return board_->Fail("multiget: " + status.ToString());
        }
        if (NumberOf(values[0]) != NumberOf(values[1])) return board_->Fail("multiget: half a batch");
        if (!IsInRange("multiget", writer, kKeys - 1, pair_least, NumberOf(values[0]))) return;
        std::string first, second;
        const Status got_b = db->Get({}, b, &second), got_a = db->Get({}, a, &first);
        if (IsOfKilledWriter(got_a) || IsOfKilledWriter(got_b)) continue;
        if ((!got_a.ok() && !got_a.IsNotFound()) || (!got_b.ok() && !got_b.IsNotFound()))
          return board_->Fail("get of a pair: " + got_a.ToString() + " " + got_b.ToString());
        if (NumberOf(first) < NumberOf(second)) return board_->Fail("gets: half a batch");
      } else {
        uint64_t leasts[kWriters][kKeys];
        for (int w = 0; w < kWriters; ++w) {
          for (int k = 0; k < kKeys; ++k) leasts[w][k] = std::max(board_->acked[w][k].load(), seen[w][k]);
        }
        uint64_t found[kWriters][kKeys] = {};
        const auto iterator = db->NewIterator({});
        const bool forward = random.OneIn(2);
        for (forward ? iterator->SeekToFirst() : iterator->SeekToLast(); iterator->Valid();
             forward ? iterator->Next() : iterator->Prev()) {
          const std::string at(iterator->key());
          const int at_key = std::stoi(at.substr(11)) - 1000;
          if (at_key < kKeys) found[at[6] - '0'][at_key] = NumberOf(std::string(iterator->value()));
        }
        if (IsOfKilledWriter(iterator->status())) continue;
        if (!iterator->status().ok()) return board_->Fail("scan: " + iterator->status().ToString());
        for (int w = 0; w < kWriters; ++w) {
          for (int k = 0; k < kKeys; ++k) {
            if (!IsInRange("scan", w, k, leasts[w][k], found[w][k])) return;
            seen[w][k] = found[w][k];
          }
          if (found[w][kKeys - 1] != found[w][kKeys - 2]) return board_->Fail("scan: half a batch");
        }
      }
      board_->reads.fetch_add(1);
    }
  }

  // Returns when the database is open. `threads`: of each of the kWriters writers.
  pid_t ForkWriter(uint64_t from, int threads_more = 0, const std::function<void()>& prepare = nullptr,
                   const std::function<void(DB*)>& other_work = nullptr) {
    const uint32_t before = board_->open.load();
    const pid_t writer = Fork([this, from, threads_more, &prepare, &other_work] {
      if (prepare != nullptr) prepare();
      std::unique_ptr<DB> db;
      if (Status status = DB::Open(options_, path_, &db); !status.ok()) return board_->Fail("open: " + status.ToString());
      board_->open.fetch_add(1);
      std::vector<std::thread> threads;
      for (int i = 0; i < kWriters; ++i) threads.emplace_back([this, &db, i, from] { WriteUntilStopped(db.get(), i, from); });
      for (int i = 0; i < threads_more; ++i) {
        threads.emplace_back([this, &db, i] {
          while (!board_->stop.load()) (void)db->Put({}, "writer0/key" + std::to_string(1000 + kKeys + i), "more");
        });
      }
      if (other_work != nullptr) threads.emplace_back([&other_work, &db] { other_work(db.get()); });
      for (int i = 0; !board_->stop.load(); ++i) {
        usleep(20000);
        const Status status = i % 5 == 4 ? db->CompactRange({}, nullptr, nullptr) : db->Flush();
        if (!status.ok()) board_->Fail("background: " + status.ToString());
      }
      for (auto& thread : threads) thread.join();
      if (Status status = db->Close(); !status.ok()) board_->Fail("close: " + status.ToString());
    });
    EXPECT_TRUE(WaitUntil([&] { return board_->open.load() > before || board_->failed.load(); }));
    return writer;
  }

  std::unique_ptr<DB> OpenReader(const char* who) {
    std::unique_ptr<DB> db;
    const Status status = DB::OpenForReadOnly(options_, path_, &db);
    if (!status.ok()) board_->Fail(std::string(who) + ": " + status.ToString());
    return db;
  }

  Options options_;
  Board* board_ = nullptr;
  std::vector<pid_t> children_;
};

// The writer's process has three threads; three processes read, one of them by two threads.
TEST_F(LiveProcessesTest, ReadsAreLinearizable) {
  const pid_t writer = ForkWriter(0);
  std::vector<pid_t> readers;
  for (uint64_t i = 0; i < 3; ++i) {
    readers.push_back(Fork([this, i] {
      const auto db = OpenReader("reader");
      if (db == nullptr) return;
      std::thread second;
      if (i == 0) second = std::thread([this, &db] { ReadUntilStopped(db.get(), 100); });
      ReadUntilStopped(db.get(), i);
      if (second.joinable()) second.join();
    }));
  }
  for (int i = 0; i < 30 && !board_->failed.load(); ++i) usleep(100000);
  EXPECT_TRUE(WaitUntil([this] { return board_->reads.load() > 1000 || board_->failed.load(); }));
  board_->stop.store(true);
  for (const pid_t reader : readers) WaitFor(reader);
  WaitFor(writer);
  EXPECT_FALSE(board_->failed.load()) << board_->failure;
  RecordProperty("reads", std::to_string(board_->reads.load()));
  RecordProperty("writes", std::to_string(board_->writes.load()));
}

// The writer's lookup cache has most keys, moves to the shared memory while readers come, and grows.
TEST_F(LiveProcessesTest, ReadsThroughAGrowingCacheAreLinearizable) {
  options_.lookup_cache_size = 4 << 20;
  options_.max_region_size = 2ull << 30;
  const pid_t writer = ForkWriter(0, 0, nullptr, [this](DB* db) {
    for (int i = 0; i < 8000 && !board_->stop.load(); ++i) {
      (void)db->Put({}, "writer0/key" + std::to_string(100000 + i), "more");
      if (i % 10 == 0) usleep(1000);
    }
    board_->is_filled.store(true);
  });
  for (Rounds rounds(100); rounds.Next() && !board_->is_filled.load() && !board_->failed.load();) {
    std::vector<pid_t> readers;
    for (uint64_t i = 0; i < 2; ++i) {
      readers.push_back(Fork([this, i] {
        const auto db = OpenReader("reader");
        if (db != nullptr) ReadUntilStopped(db.get(), i);
      }));
    }
    const uint64_t before = board_->reads.load();
    EXPECT_TRUE(WaitUntil([&] { return board_->reads.load() > before + 100 || board_->failed.load(); }));
    for (const pid_t reader : readers) Kill(reader);
  }
  board_->stop.store(true);
  WaitFor(writer);
  EXPECT_FALSE(board_->failed.load()) << board_->failure;
}

// With eight writing threads, most snapshots are chosen by the writer's process.
TEST_F(LiveProcessesTest, SnapshotsBesideManyWriters) {
  const pid_t writer = ForkWriter(0, 5);
  const pid_t reader = Fork([this] {
    const auto db = OpenReader("reader");
    if (db != nullptr) ReadUntilStopped(db.get(), 7);
  });
  for (int i = 0; i < 150 / kSlowdown && board_->reads.load() < 3000 && !board_->failed.load(); ++i) usleep(100000);
  EXPECT_TRUE(WaitUntil([this] { return board_->reads.load() > 20 || board_->failed.load(); }));
  board_->stop.store(true);
  WaitFor(reader);
  WaitFor(writer);
  EXPECT_FALSE(board_->failed.load()) << board_->failure;
}

TEST_F(LiveProcessesTest, KilledReadersLeaveNothing) {
  const pid_t writer = ForkWriter(0);
  Random random(3);
  for (Rounds rounds(40); rounds.Next() && !board_->failed.load();) {
    std::vector<pid_t> readers;
    for (uint64_t i = 0; i < 3; ++i) {
      readers.push_back(Fork([this, i] {
        const auto db = OpenReader("reader");
        if (db != nullptr) ReadUntilStopped(db.get(), i);
      }));
    }
    usleep(static_cast<useconds_t>(random.Uniform(60000)));
    for (const pid_t reader : readers) Kill(reader);
  }
  std::vector<DB::LiveReaderInfo> list;
  EXPECT_TRUE(WaitUntil([&] { return DB::ListLiveReaders(path_, &list).ok() && list.empty(); }));
  const uint64_t before = board_->writes.load();
  EXPECT_TRUE(WaitUntil([&] { return board_->writes.load() > before + 1000 || board_->failed.load(); }));
  board_->stop.store(true);
  WaitFor(writer);
  EXPECT_FALSE(board_->failed.load()) << board_->failure;
}

// Readers of a killed writer see its last state, or an error if that has half a batch.
TEST_F(LiveProcessesTest, KilledWritersLeaveTheirState) {
  Random random(5);
  uint64_t from = 0;
  for (Rounds rounds(15); rounds.Next() && !board_->failed.load();) {
    board_->open.store(0);
    board_->stop.store(false);
    board_->is_killed.store(false);
    const pid_t writer = ForkWriter(from);
    std::vector<pid_t> readers;
    for (uint64_t i = 0; i < 2; ++i) {
      readers.push_back(Fork([this, i] {
        const auto db = OpenReader("reader");
        if (db != nullptr) ReadUntilStopped(db.get(), i);
      }));
    }
    usleep(50000 + static_cast<useconds_t>(random.Uniform(100000)));
    board_->is_killed.store(true);
    Kill(writer);
    const uint64_t reads = board_->reads.load();
    EXPECT_TRUE(WaitUntil([&] { return board_->reads.load() > reads + 20 || board_->failed.load(); }));
    board_->stop.store(true);
    for (const pid_t reader : readers) WaitFor(reader);
    for (auto& of_writer : board_->begun) {
      for (auto& number : of_writer) from = std::max(from, number.load());
    }
    from += 8 - from % 8;
  }
  EXPECT_FALSE(board_->failed.load()) << board_->failure;
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options_, path_, &db));
  for (int writer = 0; writer < kWriters; ++writer) {
    for (int key = 0; key < kKeys; ++key) {
      std::string value;
      const Status status = db->Get({}, KeyOf(writer, key), &value);
      ASSERT_TRUE(status.ok() || status.IsNotFound());
      EXPECT_TRUE(IsInRange("at the end", writer, key, board_->acked[writer][key].load(), NumberOf(value))) << board_->failure;
    }
  }
}

// A stopped reader keeps nothing for longer than the limit, and gets an error when it goes on.
TEST_F(LiveProcessesTest, AStoppedReaderExpires) {
  const pid_t writer = ForkWriter(0, 1, [] {
    SyncPoints::Instance().SetCallback("LiveReaders::MinEpoch:Patience", [](void* patience) {
      *static_cast<std::chrono::steady_clock::duration*>(patience) = std::chrono::milliseconds(200);
    });
    SyncPoints::Instance().Enable();
  });
  const pid_t reader = Fork([this] {
    const auto db = OpenReader("reader");
    if (db == nullptr) return;
    const auto iterator = db->NewIterator({});
    board_->open.fetch_add(1);
    std::string value;
    Status status;
    for (;; usleep(1000)) {
      status = db->Get({}, KeyOf(0, 0), &value);
      if (!status.ok() && !status.IsNotFound()) break;
      if (board_->stop.load()) return board_->Fail("the reader did not expire");
    }
    if (!status.IsExpired()) board_->Fail("not Expired: " + status.ToString());
    iterator->SeekToFirst();
    if (iterator->Valid() || !iterator->status().IsExpired()) board_->Fail("iterator: " + iterator->status().ToString());
  });
  ASSERT_TRUE(WaitUntil([this] { return board_->open.load() == 2 || board_->failed.load(); }));
  kill(reader, SIGSTOP);
  std::vector<DB::LiveReaderInfo> list;
  EXPECT_TRUE(WaitUntil([&] { return DB::ListLiveReaders(path_, &list).ok() && list.size() == 1 && list[0].has_expired; }));
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].pid, reader);
  kill(reader, SIGCONT);
  WaitFor(reader);
  board_->stop.store(true);
  WaitFor(writer);
  EXPECT_FALSE(board_->failed.load()) << board_->failure;
}

// News that come before the welcome are answered as well.
TEST_F(LiveProcessesTest, AReaderThatComesBesideNewsDoesNotExpire) {
  constexpr auto kPatience = std::chrono::seconds(2);
  const pid_t writer = ForkWriter(0, 1, [kPatience] {
    SyncPoints::Instance().SetCallback("LiveReaders::MinEpoch:Patience", [kPatience](void* patience) {
      *static_cast<std::chrono::steady_clock::duration*>(patience) = kPatience;
    });
    SyncPoints::Instance().SetCallback("DBImpl::AnswerReader:Added", [](void*) { usleep(300000); });  // of many flushes
    SyncPoints::Instance().Enable();
  });
  const pid_t reader = Fork([this] {
    const auto db = OpenReader("reader");
    if (db != nullptr) ReadUntilStopped(db.get(), 0);
  });
  const auto end = std::chrono::steady_clock::now() + 2 * kPatience;
  while (std::chrono::steady_clock::now() < end && !board_->failed.load()) usleep(10000);
  board_->stop.store(true);
  WaitFor(reader);
  WaitFor(writer);
  EXPECT_FALSE(board_->failed.load()) << board_->failure;
  EXPECT_GT(board_->reads.load(), 0u);
}

// A reader that has expired while its threads read meets memory that is used for something else. It ends by an error, not by a
// signal.
TEST_F(LiveProcessesTest, AReaderThatExpiresInTheMiddleOfReadsLives) {
  const pid_t writer = ForkWriter(0, 1, [] {
    SyncPoints::Instance().SetCallback("LiveReaders::MinEpoch:Patience", [](void* patience) {
      *static_cast<std::chrono::steady_clock::duration*>(patience) = std::chrono::milliseconds(50);
    });
    SyncPoints::Instance().Enable();
  });
  for (Rounds rounds(4); rounds.Next() && !board_->failed.load();) {
    const uint32_t before = board_->open.load();
    const pid_t reader = Fork([this] {
      const auto db = OpenReader("reader");
      if (db == nullptr) return;
      board_->open.fetch_add(1);
      std::vector<std::thread> threads;
      for (uint64_t i = 0; i < 8; ++i) {
        threads.emplace_back([this, &db, i] {
          Random random(i);
          std::string value;
          Status status;
          for (; (status.ok() || status.IsNotFound()) && !board_->stop.load();) {
            if (random.OneIn(20)) {
              const auto iterator = db->NewIterator({});
              for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) value.assign(iterator->value());
              status = iterator->status();
            } else {
              status =
                  db->Get({}, KeyOf(static_cast<int>(random.Uniform(kWriters)), static_cast<int>(random.Uniform(kKeys))), &value);
            }
          }
          if (!status.IsExpired()) board_->Fail("not Expired: " + status.ToString());
        });
      }
      for (auto& thread : threads) thread.join();
    });
    ASSERT_TRUE(WaitUntil([&] { return board_->open.load() > before || board_->failed.load(); }));
    usleep(20000);
    kill(reader, SIGSTOP);
    std::vector<DB::LiveReaderInfo> list;
    EXPECT_TRUE(WaitUntil([&] { return DB::ListLiveReaders(path_, &list).ok() && (list.empty() || list[0].has_expired); }));
    usleep(200000);  // its memory is used again
    kill(reader, SIGCONT);
    WaitFor(reader);
  }
  board_->stop.store(true);
  WaitFor(writer);
  EXPECT_FALSE(board_->failed.load()) << board_->failure;
}

// A reader that is stopped for a moment, while the writer publishes hundreds of changes, goes on.
TEST_F(LiveProcessesTest, AShortStopIsNoEnd) {
  const pid_t writer = ForkWriter(0, 0, nullptr, [this](DB* db) {
    while (!board_->stop.load()) (void)db->DeleteRange({}, db->DefaultColumnFamily(), "x", "y");
  });
  const pid_t reader = Fork([this] {
    const auto db = OpenReader("reader");
    if (db != nullptr) ReadUntilStopped(db.get(), 3);
  });
  EXPECT_TRUE(WaitUntil([this] { return board_->reads.load() > 10 || board_->failed.load(); }));
  kill(reader, SIGSTOP);
  usleep(1000000);
  kill(reader, SIGCONT);
  const uint64_t before = board_->reads.load();
  EXPECT_TRUE(WaitUntil([&] { return board_->reads.load() > before + 100 || board_->failed.load(); }));
  board_->stop.store(true);
  WaitFor(reader);
  WaitFor(writer);
  EXPECT_FALSE(board_->failed.load()) << board_->failure;
}

}  // namespace
}  // namespace braiddb::test
