// Reads and writes of several keys are linearizable, a batch being one operation.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "tests/concurrent/concurrent_workload.h"
#include "tests/concurrent/several_keys_history.h"
#include "tests/support/db_test_util.h"
#include "tests/support/fork_child.h"
#include "tests/support/thread_cpu_time.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

using std::chrono::milliseconds;

constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;

class DbSeveralKeysTest : public testing::TestWithParam<MemtableKind> {
 protected:
  DbSeveralKeysTest() {
    options_ = TinyOptions(1);
    options_.memtable = GetParam();
    options_.memtable_size = 1 << 20;
    db_ = OpenOrFail(options_, directory_.File("db"));
  }
  ~DbSeveralKeysTest() override { SyncPoints::Instance().Clear(); }

  std::string Get(const std::string& key) {
    std::string value;
    const Status status = db_->Get({}, key, &value);
    return status.ok() ? value : status.IsNotFound() ? "" : status.ToString();
  }

  std::string GetAt(const Snapshot* snapshot, const std::string& key) {
    ReadOptions options;
    options.snapshot = snapshot;
    std::string value;
    const Status status = db_->Get(options, key, &value);
    return status.ok() ? value : status.ToString();
  }

  TestDirectory directory_;
  Options options_;
  std::unique_ptr<DB> db_;
};

INSTANTIATE_TEST_SUITE_P(Memtables, DbSeveralKeysTest, testing::Values(MemtableKind::kSkipList, MemtableKind::kHash),
                         [](const auto& test) { return test.param == MemtableKind::kHash ? "hash" : "skiplist"; });

// Stops the thread that says so at a point, until it is let go.
class Gate {
 public:
  explicit Gate(const char* point) {
    SyncPoints::Instance().SetCallback(point, [this](void*) {
      if (!t_stops) return;
      t_stops = false;
      is_reached_.store(true, kRelease);
      while (!is_open_.load(kAcquire)) std::this_thread::sleep_for(std::chrono::microseconds(50));
    });
    SyncPoints::Instance().Enable();
  }
  ~Gate() { Open(); }
  static void StopThisThread() { t_stops = true; }
  void WaitReached() const {
    while (!is_reached_.load(kAcquire)) std::this_thread::yield();
  }
  void Open() { is_open_.store(true, kRelease); }

 private:
  static thread_local bool t_stops;
  std::atomic<bool> is_reached_{false};
  std::atomic<bool> is_open_{false};
};

thread_local bool Gate::t_stops = false;

// Tells when a thread that says so has passed a point. On a busy machine it may take long to get there.
class Watch {
 public:
  explicit Watch(const char* point) {
    SyncPoints::Instance().SetCallback(point, [this](void*) {
      if (t_is_watched) is_passed_.store(true, kRelease);
    });
    SyncPoints::Instance().Enable();
  }
  static void WatchThisThread() { t_is_watched = true; }
  bool WaitPassed() const {
    return WaitUntil([this] { return is_passed_.load(kAcquire); });
  }

 private:
  static thread_local bool t_is_watched;
  std::atomic<bool> is_passed_{false};
};

thread_local bool Watch::t_is_watched = false;

constexpr char kDurable[] = "DBImpl::AppendAndPublish:Durable";  // nothing is visible yet

// What a thread does, and whether it is done.
class Call {
 public:
  explicit Call(std::function<void()> body)
      : thread_([this, body = std::move(body)] {
          body();
          is_done_.store(true, kRelease);
        }) {}
  ~Call() { Join(); }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  bool IsDoneAfter(milliseconds time) const {
    for (const auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;) {
      if (is_done_.load(kAcquire)) return true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return is_done_.load(kAcquire);
  }

 private:
  std::atomic<bool> is_done_{false};
  std::thread thread_;
};

// A thread that writes, and stops at the gate.
Call Held(Gate* gate, std::function<void()> write) {
  return Call([gate, write = std::move(write)] {
    gate->StopThisThread();
    write();
  });
}

void WriteBatchOf(DB* db, const std::vector<std::string>& keys, const std::string& value) {
  WriteBatch batch;
  for (const std::string& key : keys) batch.Put(key, value);
  ASSERT_OK(db->Write({}, batch));
}

// ---- One step after the other

TEST_P(DbSeveralKeysTest, AcknowledgedPutIsBehindTheBatchesBeforeIt) {
  WriteBatchOf(db_.get(), {"x", "y"}, "old");
  Gate gate(kDurable);
  Call batch([&] {
    Gate::StopThisThread();
    WriteBatchOf(db_.get(), {"x", "y"}, "batch");
  });
  gate.WaitReached();
  std::string y;
  Call put([&] {
    ASSERT_OK(db_->Put({}, "x", "put"));
    y = Get("y");
  });
  EXPECT_FALSE(put.IsDoneAfter(milliseconds(50)));
  EXPECT_EQ(Get("x"), "old");
  gate.Open();
  put.Join();
  batch.Join();
  EXPECT_EQ(Get("x"), "put");
  EXPECT_EQ(y, "batch");
}

// Whatever the write is.
TEST_P(DbSeveralKeysTest, EveryKindOfWriteIsBehindTheBatchesBeforeIt) {
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(db_->CreateColumnFamily({}, "other", &family));
  ASSERT_OK(db_->DeleteRange({}, db_->DefaultColumnFamily(), "r", "s"));  // makes the family of their records
  const std::vector<std::function<Status()>> writes = {
      [&] { return db_->Delete({}, "x"); },
      [&] { return db_->Put({}, family.get(), "x", "put"); },
      [&] { return db_->DeleteRange({}, db_->DefaultColumnFamily(), "a", "z"); },
      [&] { return db_->DeleteRange({}, family.get(), "a", "z"); },
      [&] {
        WriteBatch two;
        two.Put("x", "two");
        two.Put(family.get(), "z", "two");
        return db_->Write({}, two);
      },
      [&] {
        WriteBatch one;
        one.Put("x", "one");
        return db_->Write({}, one);
      },
  };
  for (size_t i = 0; i < writes.size(); ++i) {
    SCOPED_TRACE(i);
    Gate gate(kDurable);
    Call batch([&] {
      Gate::StopThisThread();
      WriteBatch updates;
      for (const char* key : {"x", "y"}) updates.Put(key, "batch");
      updates.Put(family.get(), "y", "batch");
      ASSERT_OK(db_->Write({}, updates));
    });
    gate.WaitReached();
    Call write([&] { ASSERT_OK(writes[i]()); });
    EXPECT_FALSE(write.IsDoneAfter(milliseconds(20)));
    gate.Open();
  }
}

// Who has read an update of a later batch has it behind the batches before it.
TEST_P(DbSeveralKeysTest, ReadOfALaterBatchIsBehindTheBatchesBeforeIt) {
  WriteBatchOf(db_.get(), {"x", "y", "z"}, "old");
  Gate gate(kDurable);
  Call first([&] {
    Gate::StopThisThread();
    WriteBatchOf(db_.get(), {"x", "y"}, "first");
  });
  gate.WaitReached();
  const Watch watch("DBImpl::WaitBarriers");  // by then the second batch is in the memtable
  Call second([&] {
    Watch::WatchThisThread();
    WriteBatchOf(db_.get(), {"x", "z"}, "second");
  });
  ASSERT_TRUE(watch.WaitPassed());
  EXPECT_FALSE(second.IsDoneAfter(milliseconds(20)));
  std::string z, y;
  uint64_t sequence = 0;
  Call read([&] {
    z = Get("z");
    y = Get("y");
  });
  Call look([&] { ASSERT_OK(db_->GetLatestSequenceForKey("z", &sequence)); });
  EXPECT_FALSE(read.IsDoneAfter(milliseconds(20)));
  EXPECT_FALSE(look.IsDoneAfter(milliseconds(20)));
  gate.Open();
  read.Join();
  EXPECT_EQ(z, "second");
  EXPECT_EQ(y, "first");
}

void MakeSnapshotsBarriers() {
  SyncPoints::Instance().SetCallback("DBImpl::RegisterSnapshot", [](void* tries) { *static_cast<int*>(tries) = 0; });
}

// A snapshot that waits for one write shows it. So no write behind the snapshot is seen before that one.
TEST_P(DbSeveralKeysTest, PutIsBehindTheSnapshotsBeforeIt) {
  MakeSnapshotsBarriers();
  ASSERT_OK(db_->Put({}, "x", "old"));
  Gate gate(kDurable);
  Call first = Held(&gate, [&] { ASSERT_OK(db_->Put({}, "x", "first")); });
  gate.WaitReached();
  std::vector<std::string> values;
  const Watch watch("DBImpl::ForEachLiving");  // by then the snapshot has its number
  Call read([&] {
    Watch::WatchThisThread();
    db_->MultiGet({}, {"x", "y"}, &values);
  });
  ASSERT_TRUE(watch.WaitPassed());
  EXPECT_FALSE(read.IsDoneAfter(milliseconds(20)));
  Call second([&] { ASSERT_OK(db_->Put({}, "y", "second")); });
  EXPECT_FALSE(second.IsDoneAfter(milliseconds(50)));
  EXPECT_EQ(Get("y"), "");
  gate.Open();
  read.Join();
  EXPECT_EQ(values, (std::vector<std::string>{"first", ""}));
}

// A writer may lose its CPU for long in the middle of a write.
TEST_P(DbSeveralKeysTest, SnapshotDoesNotWaitForAWriteThatNobodyHasSeen) {
  WriteBatchOf(db_.get(), {"x", "y"}, "old");
  for (const bool is_batch : {false, true}) {
    Gate gate(kDurable);
    Call write = Held(&gate, [&] {
      if (is_batch) {
        WriteBatchOf(db_.get(), {"x", "y"}, "new");
      } else {
        ASSERT_OK(db_->Put({}, "x", "put"));
      }
    });
    gate.WaitReached();
    const std::string seen = is_batch ? "put" : "old";
    const Snapshot* const snapshot = db_->GetSnapshot();
    const uint64_t number = snapshot->GetSequenceNumber();
    EXPECT_EQ(Get("x"), seen);
    gate.Open();
    write.Join();
    EXPECT_EQ(Get("x"), is_batch ? "new" : "put");
    EXPECT_EQ(GetAt(snapshot, "x"), seen);
    EXPECT_EQ(GetAt(snapshot, "y"), "old");
    db_->ReleaseSnapshot(snapshot);
    const Snapshot* const next = db_->GetSnapshot();
    EXPECT_GT(next->GetSequenceNumber(), number);
    EXPECT_EQ(GetAt(next, "x"), is_batch ? "new" : "put");
    db_->ReleaseSnapshot(next);
  }
}

// A flush in between must keep the versions that such a snapshot shows.
TEST_P(DbSeveralKeysTest, FlushKeepsWhatASnapshotBeforeAWriteShows) {
  ASSERT_OK(db_->Put({}, "x", "old"));
  Gate gate(kDurable);
  Call write = Held(&gate, [&] { ASSERT_OK(db_->Put({}, "x", "new")); });
  gate.WaitReached();
  const Snapshot* const snapshot = db_->GetSnapshot();
  gate.Open();
  write.Join();
  ASSERT_OK(db_->Flush());
  EXPECT_EQ(GetAt(snapshot, "x"), "old");
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(GetAt(snapshot, "x"), "old");
  EXPECT_EQ(Get("x"), "new");
  db_->ReleaseSnapshot(snapshot);
}

// The number of the acknowledged put is larger than the one of the put that is under way.
TEST_P(DbSeveralKeysTest, SnapshotShowsAnAcknowledgedWriteBehindOneUnderWay) {
  Gate gate(kDurable);
  // Too large to claim a slot.
  Call first = Held(&gate, [&] { ASSERT_OK(db_->Put({}, "x", std::string(8000, 'x'))); });
  gate.WaitReached();
  ASSERT_OK(db_->Put({}, "y", "put"));
  std::vector<std::string> values;
  Call read([&] { db_->MultiGet({}, {"x", "y"}, &values); });
  EXPECT_FALSE(read.IsDoneAfter(milliseconds(20)));
  gate.Open();
  read.Join();
  EXPECT_EQ(values, (std::vector<std::string>{std::string(8000, 'x'), "put"}));
}

// Puts do not wait for puts.
TEST_P(DbSeveralKeysTest, PutDoesNotWaitForAnotherPut) {
  Gate gate(kDurable);
  // Too large to claim a slot.
  Call first = Held(&gate, [&] { ASSERT_OK(db_->Put({}, "x", std::string(8000, 'x'))); });
  gate.WaitReached();
  ASSERT_OK(db_->Put({}, "y", "put"));
  EXPECT_EQ(Get("y"), "put");
  EXPECT_EQ(Get("x"), "");
  gate.Open();
}

// Whoever waits long uses no CPU.
TEST_P(DbSeveralKeysTest, LongWaitsSleep) {
  MakeSnapshotsBarriers();
  Gate gate(kDurable);
  Call batch([&] {
    Gate::StopThisThread();
    WriteBatchOf(db_.get(), {"x", "y"}, "batch");
  });
  gate.WaitReached();
  double used = 0;
  Call snapshot([&] {
    const double before = ThreadCpuSeconds();
    db_->ReleaseSnapshot(db_->GetSnapshot());
    used += ThreadCpuSeconds() - before;
  });
  Call put([&] { ASSERT_OK(db_->Put({}, "x", "put")); });
  EXPECT_FALSE(snapshot.IsDoneAfter(milliseconds(300)));
  gate.Open();
  snapshot.Join();
  EXPECT_LT(used, 0.1);  // a third of the wait
}

// ---- Side by side

thread_local bool t_writes_batches = false;  // in CountStaleGets and MakeOperation

// One thread writes {x, y}; another puts x, then gets y. If its x is the last, the batch came before it, and y is the batch's.
// Returns how often that fails.
int CountStaleGets(DB* db, uint64_t most_rounds) {
  std::atomic<uint64_t> round{0}, finished{0};
  std::atomic<bool> ends{false};
  const auto at_round = [&](uint64_t i) {
    while (round.load(kAcquire) < i && !ends.load(kAcquire)) std::this_thread::yield();
    return round.load(kAcquire) >= i;
  };
  const auto at_end = [&](uint64_t i) {
    while (finished.load(kAcquire) < 2 * i) std::this_thread::yield();
  };
  int stale = 0;
  std::thread batches([&] {
    t_writes_batches = true;
    for (uint64_t i = 1; at_round(i); ++i) {
      WriteBatchOf(db, {"x", "y"}, "batch" + std::to_string(i));
      finished.fetch_add(1, kRelease);
    }
  });
  std::string seen;
  std::thread puts([&] {
    for (uint64_t i = 1; at_round(i); ++i) {
      ASSERT_OK(db->Put({}, "x", "put" + std::to_string(i)));
      ASSERT_OK(db->Get({}, "y", &seen));
      finished.fetch_add(1, kRelease);
    }
  });
  WriteBatchOf(db, {"x", "y"}, "batch0");
  for (Rounds rounds(most_rounds); rounds.Next();) {
    const uint64_t i = rounds.number();
    round.store(i, kRelease);
    at_end(i);
    std::string last;
    EXPECT_OK(db->Get({}, "x", &last));
    if (last == "put" + std::to_string(i) && seen != "batch" + std::to_string(i)) ++stale;
  }
  ends.store(true, kRelease);
  batches.join();
  puts.join();
  return stale;
}

TEST_P(DbSeveralKeysTest, GetBehindAPutSeesTheBatchThatItOverwrote) {
  EXPECT_EQ(CountStaleGets(db_.get(), 20'000 / kSlowdown), 0);
}

// Writes do not wait for the batches before them. Others have time to run while a batch is durable and not visible, however busy
// the machine is.
[[maybe_unused]] void LeaveOutTheWait() {
  SyncPoints::Instance().SetCallback("DBImpl::WaitBarriers", [](void* is_left_out) { *static_cast<bool*>(is_left_out) = true; });
  SyncPoints::Instance().SetCallback(kDurable, [](void*) {
    if (t_writes_batches) std::this_thread::sleep_for(std::chrono::microseconds(100));
  });
  SyncPoints::Instance().Enable();
}

// ThreadSanitizer lets threads meet so rarely that a canary may stay hidden.
#if !defined(__SANITIZE_THREAD__)
TEST_P(DbSeveralKeysTest, CanaryWithoutTheWaitIsFound) {
  LeaveOutTheWait();
  int stale = 0;
  for (int i = 0; i < 1000 && stale == 0; ++i) stale += CountStaleGets(db_.get(), 200);
  EXPECT_GT(stale, 0);
}
#endif

constexpr int kThreads = 4;
constexpr uint32_t kKeys = SeveralKeysHistory::kKeys;

std::vector<std::string> KeyNames() {
  std::vector<std::string> names;
  for (uint32_t key = 0; key < kKeys; ++key) names.push_back(NumberedKey(key));
  return names;
}

uint32_t NumberIn(const Status& status, Slice value) {
  return status.ok() ? static_cast<uint32_t>(std::stoul(std::string(value))) : 0;
}

SeveralKeysHistory::Values ReadAll(DB* db) {
  const std::vector<std::string> names = KeyNames();
  std::vector<std::string> values;
  const auto statuses = db->MultiGet({}, {names.begin(), names.end()}, &values);
  SeveralKeysHistory::Values found{};
  for (uint32_t key = 0; key < kKeys; ++key) found[key] = NumberIn(statuses[key], values[key]);
  return found;
}

// Makes one: a deletion, a put, a batch, a get, or a read of all keys at one time. `begun(operation)` is called before it.
template <class Begun>
void MakeOperation(DB* db, Random* random, uint32_t number, SeveralKeysHistory::Operation* operation, const Begun& begun) {
  const std::vector<std::string> names = KeyNames();
  const auto first = static_cast<uint32_t>(random->Uniform(kKeys));
  const auto drawn = random->Uniform(10);
  operation->is_write = drawn < 6;
  operation->keys = drawn < 9 ? 1u << first : (1u << kKeys) - 1;
  if (drawn >= 3 && drawn < 6) operation->keys |= static_cast<uint32_t>(random->Uniform(1u << kKeys));
  for (uint32_t key = 0; key < kKeys && drawn != 0; ++key)
    if (operation->is_write && (operation->keys >> key & 1) != 0) operation->values[key] = number;
  WriteBatch batch;
  for (uint32_t key = 0; key < kKeys; ++key) {
    if ((operation->keys >> key & 1) != 0) batch.Put(names[key], std::to_string(number));
  }
  std::string value;
  operation->Start();
  begun();
  if (drawn == 0) {
    EXPECT_OK(db->Delete({}, names[first]));
  } else if (drawn < 3) {
    EXPECT_OK(db->Put({}, names[first], std::to_string(number)));
  } else if (drawn < 6) {
    t_writes_batches = true;
    EXPECT_OK(db->Write({}, batch));
    t_writes_batches = false;
  } else if (drawn < 9) {
    const Status status = db->Get({}, names[first], &value);
    operation->values[first] = NumberIn(status, value);
  } else {
    operation->values = ReadAll(db);
  }
  operation->End();
}

// Four threads, a few operations each. False: the history is not linearizable.
bool RunHistory(DB* db, uint64_t seed, std::string* text) {
  constexpr uint32_t kOperations = 6;
  const SeveralKeysHistory::Values before = ReadAll(db);
  std::atomic<int> ready{0};
  std::vector<SeveralKeysHistory> parts(kThreads);
  const auto run = [&](int thread) {
    Random random(seed * kThreads + thread);
    ready.fetch_add(1, kRelease);
    while (ready.load(kAcquire) < kThreads) std::this_thread::yield();
    for (uint32_t i = 0; i < kOperations; ++i) {
      SeveralKeysHistory::Operation operation;
      MakeOperation(db, &random, 1 + thread * kOperations + i, &operation, [] {});
      parts[thread].Add(operation);
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(run, thread);
  for (std::thread& thread : threads) thread.join();
  SeveralKeysHistory all;
  for (const SeveralKeysHistory& part : parts) all.Merge(part);
  if (all.IsLinearizable(before)) return true;
  *text = all.ToString();
  return false;
}

TEST_P(DbSeveralKeysTest, HistoriesAreLinearizable) {
  std::string text;
  for (Rounds rounds(1000 / kSlowdown); rounds.Next();) {
    ASSERT_TRUE(RunHistory(db_.get(), rounds.number(), &text)) << rounds.number() << ":\n" << text;
  }
}

#if !defined(__SANITIZE_THREAD__)
TEST_P(DbSeveralKeysTest, CanaryOfHistoriesIsFound) {
  LeaveOutTheWait();
  std::string text;
  bool found = false;
  for (uint64_t seed = 0; seed < 20'000 && !found; ++seed) found = !RunHistory(db_.get(), seed, &text);
  EXPECT_TRUE(found);
}
#endif

// ---- Across kills

// What the threads of a process have done when it is killed.
struct KilledHistory {
  static constexpr uint32_t kOperations = 14;
  struct Part {
    std::atomic<uint32_t> begun{0};
    SeveralKeysHistory::Operation operations[kOperations];
  };
  std::atomic<int> ready{0};
  Part parts[kThreads];
};

// A process writes and reads until it is killed; what the next one finds belongs to the history. What was not acknowledged is
// there whole, or not at all.
TEST_P(DbSeveralKeysTest, HistoriesAreLinearizableAcrossKills) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not follow into a child";
#endif
  const int lives = 40 / kSlowdown;
  Random random(17);
  for (int life = 0; life < lives; ++life) {
    const SeveralKeysHistory::Values before = ReadAll(db_.get());
    db_.reset();
    void* const memory = mmap(nullptr, sizeof(KilledHistory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto* const history = new (memory) KilledHistory;
    const pid_t child = ForkChild();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::unique_ptr<DB> db;
      if (!DB::Open(options_, directory_.File("db"), &db).ok()) _exit(1);
      std::vector<std::thread> threads;
      for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
          Random own(static_cast<uint64_t>(life * kThreads + thread));
          KilledHistory::Part& part = history->parts[thread];
          history->ready.fetch_add(1, kRelease);
          while (history->ready.load(kAcquire) < kThreads) std::this_thread::yield();
          for (uint32_t i = 0; i < KilledHistory::kOperations; ++i) {
            const auto number = static_cast<uint32_t>(1 + (life * kThreads + thread) * KilledHistory::kOperations + i);
            part.operations[i].end = UINT64_MAX;  // until it is acknowledged
            MakeOperation(db.get(), &own, number, &part.operations[i], [&] { part.begun.store(i + 1, kRelease); });
            if (own.OneIn(3)) std::this_thread::sleep_for(std::chrono::microseconds(own.Uniform(60)));
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      for (;;) pause();
    }
    while (history->ready.load(kAcquire) < kThreads) std::this_thread::sleep_for(std::chrono::microseconds(20));
    std::this_thread::sleep_for(std::chrono::microseconds(random.Uniform(600)));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    ASSERT_TRUE(WIFSIGNALED(state)) << "the child could not open the database";
    db_ = OpenOrFail(options_, directory_.File("db"));
    ASSERT_NE(db_, nullptr);
    SeveralKeysHistory all;
    for (const KilledHistory::Part& part : history->parts) {
      for (uint32_t i = 0; i < part.begun.load(kAcquire); ++i) {
        const SeveralKeysHistory::Operation& operation = part.operations[i];
        if (operation.is_write || operation.end != UINT64_MAX) all.Add(operation);
      }
    }
    SeveralKeysHistory::Operation last;
    last.keys = (1u << kKeys) - 1;
    last.values = ReadAll(db_.get());
    last.start = UINT64_MAX - 2;
    last.end = UINT64_MAX - 1;
    all.Add(last);
    ASSERT_TRUE(all.IsLinearizable(before)) << "life " << life << ":\n" << all.ToString();
    munmap(memory, sizeof(KilledHistory));
  }
}

}  // namespace
}  // namespace braiddb::test
