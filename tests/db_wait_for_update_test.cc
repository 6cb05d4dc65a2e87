// DB::WaitForUpdate: who waits learns of each write, in the writer's process and beside it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/transaction.h"
#include "braiddb/write_batch.h"
#include "tests/support/db_test_util.h"
#include "tests/support/fork_child.h"
#include "tests/support/leave_child.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

class WaitForUpdateTest : public testing::Test {
 protected:
  WaitForUpdateTest() { options_.create_if_missing = true; }
  std::unique_ptr<DB> OpenReader() {
    std::unique_ptr<DB> reader;
    EXPECT_OK(DB::OpenForReadOnly(options_, path_, &reader));
    return reader;
  }

  TestDirectory directory_;
  Options options_;
  const std::string path_ = directory_.File("db");
};

// All numbers from 1 on are put, and each must be seen. A wait that misses its wake ends by its timeout, and is found so.
void FollowAll(DB* db, int numbers, const std::atomic<int>* put, std::atomic<int>* seen) {
  uint64_t latest = 0;
  for (int number = 0; number < numbers;) {
    const int before = put->load();
    ASSERT_OK(db->WaitForUpdate(latest, seconds(60), &latest));
    std::string value;
    const Status status = db->Get({}, "number", &value);
    if (status.IsNotFound()) continue;  // a number without an update
    ASSERT_OK(status);
    number = std::stoi(value);
    ASSERT_GE(number, before);
    seen->store(number);
  }
}

TEST_F(WaitForUpdateTest, FollowersMissNoWrite) {
  const auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  const auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  constexpr int kNumbers = 3000;
  constexpr int kFollowers = 4;
  std::atomic<int> put{0};
  std::atomic<int> seen[kFollowers] = {};
  std::vector<std::thread> followers;
  for (int i = 0; i < kFollowers; ++i) {
    followers.emplace_back([&, i] { FollowAll(i % 2 == 0 ? writer.get() : reader.get(), kNumbers, &put, &seen[i]); });
  }
  const auto begin = std::chrono::steady_clock::now();
  for (int number = 1; number <= kNumbers; ++number) {
    if (number % 3 == 0) {
      WriteBatch batch;
      batch.Put("number", std::to_string(number));
      batch.Put("other", "");
      ASSERT_OK(writer->Write({}, batch));
    } else {
      ASSERT_OK(writer->Put({}, "number", std::to_string(number)));
    }
    put.store(number);
    if (number % 500 == 0) {
      ASSERT_OK(writer->Flush());
    }
    if (number % 7 == 0) {  // all of them sleep, or will
      ASSERT_TRUE(WaitUntil([&] {
        for (const auto& each : seen) {
          if (each.load() < number) return false;
        }
        return true;
      })) << number;
    }
  }
  for (auto& follower : followers) follower.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(50)) << "a wait has ended by its timeout";
}

TEST_F(WaitForUpdateTest, TimesAndNumbers) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  ASSERT_OK(writer->Put({}, "a", "1"));
  for (DB* const db : {writer.get(), reader.get()}) {
    uint64_t latest = 0;
    ASSERT_OK(db->WaitForUpdate(0, microseconds(0), &latest));
    EXPECT_GE(latest, 1u);
    const uint64_t before = latest;
    EXPECT_TRUE(db->WaitForUpdate(latest, microseconds(0), &latest).IsTimedOut());
    EXPECT_TRUE(db->WaitForUpdate(latest, microseconds::min(), &latest).IsTimedOut());
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(db->WaitForUpdate(latest, milliseconds(30), &latest).IsTimedOut());
    EXPECT_TRUE(db->WaitForUpdate(latest + 1000, milliseconds(30), &latest).IsTimedOut()) << "a number that is not drawn yet";
    EXPECT_TRUE(db->WaitForUpdate(UINT64_MAX, milliseconds(30), &latest).IsTimedOut());
    EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(90));
    EXPECT_EQ(latest, before);
    // Without a limit.
    std::thread later([&] {
      usleep(20000);
      EXPECT_OK(writer->Delete({}, "a"));
    });
    EXPECT_OK(db->WaitForUpdate(latest, microseconds::max(), &latest));
    EXPECT_GT(latest, before);
    later.join();
  }
  // Each kind of write.
  uint64_t latest = 0;
  const auto expect_update = [&](const char* what) {
    for (DB* const db : {writer.get(), reader.get()}) {
      uint64_t found = latest;
      EXPECT_OK(db->WaitForUpdate(latest, microseconds(0), &found)) << what;
    }
    EXPECT_OK(writer->WaitForUpdate(latest, microseconds(0), &latest));
  };
  ASSERT_OK(writer->Put({}, "b", "1"));
  expect_update("put");
  ASSERT_OK(writer->DeleteRange({}, "a", "b"));
  expect_update("range");
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(writer->CreateColumnFamily({}, "family", &family));
  ASSERT_OK(writer->Put({}, family.get(), "b", "1"));
  expect_update("family");
  family.reset();
  // The writer ends while the reader sleeps.
  Status status;
  std::thread sleeper([&] {
    uint64_t number = 0;
    while ((status = reader->WaitForUpdate(number, seconds(60), &number)).ok()) {
    }
  });
  usleep(20000);
  ASSERT_OK(writer->Close());
  writer.reset();
  sleeper.join();
  EXPECT_TRUE(status.IsAborted()) << status.ToString();
  EXPECT_TRUE(reader->WaitForUpdate(1 << 20, seconds(1), &latest).IsAborted());
  EXPECT_TRUE(reader->WaitForUpdate(1 << 20, seconds(0), &latest).IsAborted());
  reader.reset();
  reader = OpenReader();  // nobody writes
  EXPECT_TRUE(reader->WaitForUpdate(0, seconds(1), &latest).IsNotSupported());
}

// A write that the sleeper knows already clears the word that tells later writes of the sleeper.
TEST_F(WaitForUpdateTest, ALateWakeIsNotLost) {
  const auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  std::atomic<bool> wakes{false}, has_looked{false};
  SyncPoints::Instance().SetCallback("DBImpl::WakeAwaiting", [&](void*) {
    wakes.store(true);
    EXPECT_TRUE(WaitUntil([&] { return has_looked.load(); }));
  });
  uint64_t latest = 0;
  EXPECT_TRUE(writer->WaitForUpdate(1 << 20, milliseconds(1), &latest).IsTimedOut());  // leaves the word
  std::thread write;
  SyncPoints::Instance().SetCallback("DBImpl::SleepUntilDrawn:Looked", [&](void*) {
    if (has_looked.exchange(true)) return;
    write.join();
  });
  SyncPoints::Instance().Enable();
  write = std::thread([&] { EXPECT_OK(writer->Put({}, "a", "1")); });
  EXPECT_TRUE(WaitUntil([&] { return wakes.load(); }));
  ASSERT_OK(writer->WaitForUpdate(0, seconds(1), &latest));
  std::thread later([&] {
    EXPECT_TRUE(WaitUntil([&] { return has_looked.load(); }));
    usleep(50000);
    EXPECT_OK(writer->Put({}, "a", "2"));
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_OK(writer->WaitForUpdate(latest, seconds(60), &latest));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(50));
  later.join();
  SyncPoints::Instance().Clear();
}

// A put that has drawn its number, and is not visible before it may go on.
class HeldPut {
 public:
  explicit HeldPut(DB* db) {
    SyncPoints::Instance().SetCallback("DBImpl::AppendAndPublish:Durable", [this](void*) {
      is_durable_.store(true);
      EXPECT_TRUE(WaitUntil([this] { return goes_on_.load(); }));
    });
    SyncPoints::Instance().Enable();
    thread_ = std::thread([db] { EXPECT_OK(db->Put({}, "a", "2")); });
    EXPECT_TRUE(WaitUntil([this] { return is_durable_.load(); }));
  }
  ~HeldPut() {
    GoOn();
    SyncPoints::Instance().Clear();
  }
  HeldPut(const HeldPut&) = delete;
  HeldPut& operator=(const HeldPut&) = delete;

  // Returns when the put has ended.
  void GoOn() {
    goes_on_.store(true);
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> is_durable_{false}, goes_on_{false};
  std::thread thread_;
};

// A write is under way when the sleeper looks, and has ended when the sleeper tells that it sleeps.
TEST_F(WaitForUpdateTest, AWriteThatEndsMeanwhileIsSeen) {
  const auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  const auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  for (DB* const db : {writer.get(), reader.get()}) {
    uint64_t latest = 0;
    ASSERT_OK(writer->Put({}, "a", "1"));
    ASSERT_OK(db->WaitForUpdate(0, seconds(60), &latest));
    HeldPut put(writer.get());
    bool was_under_way = false;
    SyncPoints::Instance().SetCallback("DBImpl::WaitForUpdate:UnderWay", [&](void*) {
      was_under_way = true;
      put.GoOn();
    });
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_OK(db->WaitForUpdate(latest, seconds(60), &latest));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(50));
    EXPECT_TRUE(was_under_way);
  }
}

TEST_F(WaitForUpdateTest, AStoppedWriteDoesNotProlongTheWait) {
  const auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  const auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  ASSERT_OK(writer->Put({}, "a", "1"));
  uint64_t latest = 0;
  ASSERT_OK(writer->WaitForUpdate(0, seconds(60), &latest));
  HeldPut put(writer.get());
  const auto begin = std::chrono::steady_clock::now();
  for (DB* const db : {writer.get(), reader.get()}) {
    uint64_t number = latest;
    EXPECT_TRUE(db->WaitForUpdate(latest, milliseconds(30), &number).IsTimedOut());
    EXPECT_EQ(number, latest);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(8));
  put.GoOn();
  for (DB* const db : {writer.get(), reader.get()}) {
    uint64_t number = latest;
    EXPECT_OK(db->WaitForUpdate(latest, milliseconds(0), &number));
    EXPECT_GT(number, latest);
  }
}

TEST_F(WaitForUpdateTest, ThroughTransactions) {
  std::unique_ptr<TransactionDB> db;
  ASSERT_OK(TransactionDB::Open(options_, {}, path_, &db));
  uint64_t latest = 0;
  EXPECT_TRUE(db->WaitForUpdate(1 << 20, milliseconds(1), &latest).IsTimedOut());
  std::thread later([&] {
    usleep(10000);
    const auto transaction = db->BeginTransaction({}, {});
    EXPECT_OK(transaction->Put("a", "1"));
    EXPECT_OK(transaction->Commit());
  });
  std::string value;
  while (!db->Get({}, "a", &value).ok()) ASSERT_OK(db->WaitForUpdate(latest, seconds(60), &latest));
  later.join();
}

// Its numbers are of the database that the secondary is in, and say nothing of the primary.
TEST_F(WaitForUpdateTest, NotInASecondary) {
  const auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  ASSERT_OK(writer->Put({}, "a", "1"));
  std::unique_ptr<DB> secondary;
  ASSERT_OK(DB::OpenAsSecondary(options_, path_, directory_.File("secondary"), &secondary));
  uint64_t latest = 0;
  EXPECT_TRUE(secondary->WaitForUpdate(0, seconds(0), &latest).IsNotSupported());
  ASSERT_OK(writer->Put({}, "a", "2"));
  ASSERT_OK(secondary->Refresh());
  std::string value;
  ASSERT_OK(secondary->Get({}, "a", &value));
  EXPECT_EQ(value, "2") << "a refresh of a secondary catches up";
}

// A process that only sleeps and reads, beside one that writes now and then.
TEST_F(WaitForUpdateTest, InAnotherProcess) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = ForkChild();
  ASSERT_GE(child, 0);
  if (child == 0) {
    char byte = 0;
    if (read(ready[0], &byte, 1) != 1) LeaveChild(1);
    std::unique_ptr<DB> reader;
    if (!DB::OpenForReadOnly(options_, path_, &reader).ok()) LeaveChild(2);
    uint64_t latest = 0;
    std::string value;
    for (int seen = 0; seen < 100;) {
      if (!reader->WaitForUpdate(latest, seconds(30), &latest).ok()) LeaveChild(3);
      if (reader->Get({}, "number", &value).ok()) seen = std::stoi(value);
    }
    LeaveChild(0);
  }
  const auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  ASSERT_EQ(write(ready[1], "x", 1), 1);
  int status = 0;
  pid_t ended = 0;
  for (int number = 1; ended == 0; ++number) {
    ASSERT_OK(writer->Put({}, "number", std::to_string(number)));
    usleep(1000);
    ended = waitpid(child, &status, WNOHANG);
  }
  EXPECT_EQ(ended, child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace braiddb::test
