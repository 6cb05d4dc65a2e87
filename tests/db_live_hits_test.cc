// Gets of live readers that the lookup cache of the writing process answers.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/write_batch.h"
#include "tests/support/db_test_util.h"
#include "tests/support/live_readers_test.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

struct Receiver final : ValueReceiver {
  bool Receive(Slice value) override {
    ++calls;
    last.assign(value);
    return accepts;
  }
  bool accepts = true;
  int calls = 0;
  std::string last;
};

class LiveHitsTest : public LiveReadersTest {
 protected:
  void SetUp() override {
    LiveReadersTest::SetUp();
    SyncPoints::Instance().SetCallback("LookupCache::ForeignTable::Find:Hit", [this](void*) {
      ++hits_;
      if (on_hit_ != nullptr) std::exchange(on_hit_, nullptr)();
    });
    SyncPoints::Instance().Enable();
    writer_ = OpenOrFail(options_, path_);
    reader_ = OpenReader();
    ASSERT_NE(reader_, nullptr);
  }
  void TearDown() override {
    SyncPoints::Instance().Clear();
    reader_.reset();
    writer_.reset();
    LiveReadersTest::TearDown();
  }
  // Returns when the reader finds the key in the cache, which moves to shared memory in the background.
  void WaitForHit(const std::string& key) {
    std::string value;
    EXPECT_TRUE(WaitUntil([&] {
      hits_.store(0);
      EXPECT_OK(reader_->Get({}, key, &value));
      return hits_.load() != 0;
    }));
  }

  std::unique_ptr<DB> writer_, reader_;
  std::atomic<int> hits_{0};
  std::function<void()> on_hit_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, LiveHitsTest, testing::ValuesIn(kLiveCases), [](const auto& of) { return of.param.name; });

// What was read is checked before it is given to the caller. Whatever happens meanwhile, the answer is one that was right during
// the call.
TEST_P(LiveHitsTest, AHitIsCheckedAfterItWasRead) {
  ASSERT_OK(writer_->Put({}, "key", "old"));
  WaitForHit("key");
  std::string value;
  on_hit_ = [this] {  // a newer view
    ASSERT_OK(writer_->Put({}, "key", "new"));
    ASSERT_OK(writer_->Flush());
  };
  ASSERT_OK(reader_->Get({}, "key", &value));
  EXPECT_TRUE(value == "old" || value == "new") << value;
  ASSERT_OK(reader_->Get({}, "key", &value));
  EXPECT_EQ(value, "new");
  on_hit_ = [this] { ASSERT_OK(writer_->DeleteRange({}, "a", "z")); };
  const Status during = reader_->Get({}, "key", &value);
  EXPECT_TRUE(during.IsNotFound() || (during.ok() && value == "new")) << during.ToString();
  EXPECT_TRUE(reader_->Get({}, "key", &value).IsNotFound());
  ASSERT_OK(writer_->Put({}, "key", "again"));
  WaitForHit("key");
  Receiver receiver;
  on_hit_ = [this] {
    ASSERT_OK(writer_->Put({}, "key", "last"));
    ASSERT_OK(writer_->Flush());
  };
  ASSERT_OK(reader_->GetTo({}, "key", &receiver));
  EXPECT_EQ(receiver.calls, 1);
  EXPECT_TRUE(receiver.last == "again" || receiver.last == "last") << receiver.last;
  on_hit_ = [this] {  // another process opens the database
    writer_.reset();
    writer_ = OpenOrFail(options_, path_);
  };
  EXPECT_TRUE(reader_->Get({}, "key", &value).IsExpired());
}

// Each size is delivered once, whole, by each kind of get, for keys that were put alone and in batches.
TEST_P(LiveHitsTest, ValuesOfAllSizesAreDeliveredOnce) {
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(writer_->CreateColumnFamily({}, "family", &family));
  reader_.reset();
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  ASSERT_OK(DB::OpenForReadOnly(options_, path_, {{"default", {}}, {"family", {}}}, &handles, &reader_));
  const std::vector<size_t> sizes = {0, 1, 7, 8, 16, 17, 511, 512, 513, 5000, 100000};
  const auto key_of = [](size_t size, bool in_batch) { return (in_batch ? "batch" : "put") + std::to_string(size); };
  for (ColumnFamilyHandle* const of : {writer_->DefaultColumnFamily(), family.get()}) {
    for (const size_t size : sizes) {
      const std::string value = PatternedValue(size, size);
      ASSERT_OK(writer_->Put({}, of, key_of(size, false), value));
      WriteBatch batch;
      batch.Put(of, key_of(size, true), value);
      batch.Put(of, "other", "");
      ASSERT_OK(writer_->Write({}, batch));
    }
  }
  WaitForHit("put8");
  WaitForHit("batch8");
  for (ColumnFamilyHandle* const of : {reader_->DefaultColumnFamily(), handles[1].get()}) {
    for (const bool in_batch : {false, true}) {
      for (const size_t size : sizes) {
        const std::string key = key_of(size, in_batch), expected = PatternedValue(size, size);
        std::string value = "what was there before";
        ASSERT_OK(reader_->Get({}, of, key, &value));
        EXPECT_TRUE(value == expected) << size;
        PinnableSlice pinned;
        ASSERT_OK(reader_->Get({}, of, key, &pinned));
        EXPECT_TRUE(pinned.slice() == expected) << size;
        Receiver receiver;
        ASSERT_OK(reader_->GetTo({}, of, key, &receiver));
        EXPECT_EQ(receiver.calls, 1);
        EXPECT_TRUE(receiver.last == expected) << size;
        Receiver refusing;
        refusing.accepts = false;
        EXPECT_TRUE(reader_->GetTo({}, of, key, &refusing).IsMemoryLimit());
        EXPECT_EQ(refusing.calls, 1);
        std::vector<std::string> values;
        for (const Status& status : reader_->MultiGet({}, {of, of}, {key, "none"}, &values)) {
          EXPECT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
        }
        EXPECT_TRUE(values[0] == expected) << size;
      }
    }
    Receiver receiver;
    EXPECT_TRUE(reader_->GetTo({}, of, "none", &receiver).IsNotFound());
    EXPECT_EQ(receiver.calls, 0);
  }
  EXPECT_GT(hits_.load(), 0);
  ASSERT_OK(writer_->DropColumnFamily(family.get()));
  Receiver receiver;
  const ReadOptions verifying = [] {
    ReadOptions options;
    options.verify_checksums = true;
    return options;
  }();
  EXPECT_TRUE(reader_->GetTo(verifying, "put8", &receiver).IsNotSupported());
  EXPECT_TRUE(reader_->GetTo({}, nullptr, "put8", &receiver).IsInvalidArgument());
  EXPECT_EQ(receiver.calls, 0);
}

// A batch is visible whole, also by hits: with one of its updates, the other one is seen as well.
TEST_P(LiveHitsTest, ABatchUnderWayIsNoHit) {
  const auto write = [this](int round) {
    WriteBatch batch;
    batch.Put("x", std::to_string(round));
    batch.Put("y", std::to_string(round));
    ASSERT_OK(writer_->Write({}, batch));
  };
  write(0);
  WaitForHit("x");
  WaitForHit("y");
  std::atomic<bool> stops{false};
  std::thread writes([&] {
    for (int round = 1; !stops.load(); ++round) write(round);
  });
  std::string x, y;
  for (int i = 0; i < 20000; ++i) {
    ASSERT_OK(reader_->Get({}, i % 2 == 0 ? "x" : "y", &x));
    ASSERT_OK(reader_->Get({}, i % 2 == 0 ? "y" : "x", &y));
    if (std::stoi(y) < std::stoi(x)) ADD_FAILURE() << x << " then " << y;
  }
  stops.store(true);
  writes.join();
}

}  // namespace
}  // namespace braiddb::test
