// Counters that many threads add to while others read them in every way and merges collapse them: no reader ever sees less than
// it has seen before, and nothing is lost.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/support/db_fixture.h"
#include "tests/support/wait_until.h"

namespace braiddb::test {
namespace {

constexpr int kCounters = 40;
constexpr uint64_t kEnough = 100;  // counters that are collapsed beside writers and readers

std::string BytesOf(uint64_t number) { return std::string(reinterpret_cast<const char*>(&number), sizeof number); }
uint64_t NumberOf(Slice bytes) {
  uint64_t number = 0;
  EXPECT_EQ(bytes.size(), sizeof number);
  if (bytes.size() == sizeof number) std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

class DbMergeConcurrentTest : public DbTest {
 protected:
  using Counts = std::vector<uint64_t>;

  void SetUp() override {
    options_.merge_operator = UInt64AddOperator();
    options_.memtable_size = 16 << 10;
    DbTest::SetUp();
  }
  static std::string KeyOf(int counter) { return NumberedKey(counter); }

  void ExpectNotLess(int counter, uint64_t value, Counts* seen) {
    EXPECT_GE(value, (*seen)[counter]) << "counter " << counter;
    (*seen)[counter] = std::max((*seen)[counter], value);
  }
  void ReadOnce(Random* random, Counts* seen) {
    const int counter = static_cast<int>(random->Uniform(kCounters));
    std::string value;
    PinnableSlice pinned;
    switch (random->Uniform(5)) {
      case 0:
        EXPECT_OK(db_->Get({}, KeyOf(counter), &value));
        return ExpectNotLess(counter, NumberOf(value), seen);
      case 1:
        EXPECT_OK(db_->Get({}, KeyOf(counter), &pinned));
        return ExpectNotLess(counter, NumberOf(pinned.slice()), seen);
      case 2: {
        std::vector<std::string> values;
        const std::vector<std::string> keys = {KeyOf(counter), KeyOf(0)};
        for (const Status& status : db_->MultiGet({}, {keys[0], keys[1]}, &values)) EXPECT_OK(status);
        ExpectNotLess(counter, NumberOf(values[0]), seen);
        return ExpectNotLess(0, NumberOf(values[1]), seen);
      }
      default:
        return Scan(random->OneIn(2), seen);
    }
  }
  // All of them in one view, in both ways, which takes its time.
  void Scan(bool forward_first, Counts* seen) {
    const auto iterator = db_->NewIterator({});
    Counts first(kCounters), second(kCounters);
    const auto scan = [&](bool forward, Counts* counts) {
      int count = 0;
      for (forward ? iterator->SeekToFirst() : iterator->SeekToLast(); iterator->Valid();
           forward ? iterator->Next() : iterator->Prev()) {
        const int counter = forward ? count : kCounters - 1 - count;
        EXPECT_EQ(iterator->key(), KeyOf(counter));
        (*counts)[counter] = NumberOf(iterator->value());
        ++count;
      }
      EXPECT_OK(iterator->status());
      EXPECT_EQ(count, kCounters);
    };
    scan(forward_first, &first);
    scan(!forward_first, &second);
    EXPECT_EQ(first, second);
    for (int i = 0; i < kCounters; ++i) ExpectNotLess(i, first[i], seen);
  }
};

TEST_P(DbMergeConcurrentTest, NobodySeesACounterGoBack) {
  for (int i = 0; i < kCounters; ++i) ASSERT_OK(db_->Put({}, KeyOf(i), BytesOf(0)));
  std::atomic<bool> stop{false};
  std::vector<std::atomic<uint64_t>> sums(kCounters);
  std::vector<std::thread> threads;
  for (uint64_t writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&, writer] {
      Random random(writer);
      while (!stop) {
        WriteBatch batch;
        for (uint64_t i = random.Range(1, 3); i > 0; --i) {
          const auto counter = static_cast<int>(random.Skewed(kCounters));
          const uint64_t amount = random.Range(1, 9);
          batch.Merge(KeyOf(counter), BytesOf(amount));
          sums[static_cast<size_t>(counter)] += amount;
        }
        ASSERT_OK(db_->Write({}, batch));
        std::this_thread::sleep_for(std::chrono::microseconds(50));  // scans take long where merges are behind
      }
    });
  }
  for (uint64_t reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&, reader] {
      Random random(100 + reader);
      Counts seen(kCounters);
      while (!stop && !HasFailure()) ReadOnce(&random, &seen);
    });
  }
  threads.emplace_back([&] {
    Random random(200);
    while (!stop) ASSERT_OK(random.OneIn(2) ? db_->CompactRange({}, nullptr, nullptr) : db_->Flush());
  });
  std::this_thread::sleep_for(std::chrono::seconds(4));
  EXPECT_TRUE(WaitUntil([&] { return HasFailure() || db_->GetStatistics().collapsed_keys > kEnough; }));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kCounters; ++i) {
      std::string value;
      ASSERT_OK(db_->Get({}, KeyOf(i), &value));
      EXPECT_EQ(NumberOf(value), sums[static_cast<size_t>(i)].load());
    }
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  }
  db_.reset();
  EXPECT_TRUE(ChecksAsSound(directory_.File("db")));
}

// Few counters have many operands in each table. Gets show at least what was acknowledged, and snapshots stay what they are.
TEST_P(DbMergeConcurrentTest, HotCountersAreExact) {
  options_.memtable_size = 64 << 10;
  Reopen();
  constexpr int kHot = 2;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> begun[kHot] = {}, acknowledged[kHot] = {};
  std::thread writer([&] {
    Random random(1);
    for (uint64_t n = 1; !stop; ++n) {
      const auto counter = static_cast<int>(random.Uniform(kHot));
      ++begun[counter];
      ASSERT_OK(db_->Merge({}, KeyOf(counter), BytesOf(1)));
      ++acknowledged[counter];
      ASSERT_OK(db_->Put({}, "a" + NumberedKey(n % 1000), std::string(100, 'x')));
      if (n % 20 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  std::thread merger([&] {
    Random random(2);
    while (!stop) {
      std::this_thread::sleep_for(std::chrono::microseconds(random.Uniform(30'000)));
      ASSERT_OK(random.OneIn(2) ? db_->CompactRange({}, nullptr, nullptr) : db_->Flush());
    }
  });
  Random random(3);
  struct Held {
    const Snapshot* snapshot;
    std::string value;
  };
  std::vector<Held> held;
  const auto look = [&](const Held& one, const std::string& key) {
    ReadOptions options;
    options.snapshot = one.snapshot;
    std::string value;
    const Status status = db_->Get(options, key, &value);
    return status.ok() ? value : status.IsNotFound() ? "" : status.ToString();
  };
  const auto release = [&](size_t i) {
    db_->ReleaseSnapshot(held[i].snapshot);
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  while (std::chrono::steady_clock::now() < end && !HasFailure()) {
    const auto counter = static_cast<int>(random.Uniform(kHot));
    const uint64_t least = acknowledged[counter];
    std::string value;
    const Status status = db_->Get({}, KeyOf(counter), &value);
    if (status.ok()) {
      EXPECT_GE(NumberOf(value), least);
      EXPECT_LE(NumberOf(value), begun[counter].load());
    } else {
      EXPECT_TRUE(status.IsNotFound() && least == 0) << status.ToString();
    }
    if (random.OneIn(4)) {
      Held one{db_->GetSnapshot(), ""};
      one.value = look(one, KeyOf(0));
      held.push_back(one);
    }
    if (!held.empty()) {
      const size_t i = random.Uniform(held.size());
      EXPECT_EQ(look(held[i], KeyOf(0)), held[i].value);
      if (held.size() > 8) release(i);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  while (!held.empty()) release(0);
  stop = true;
  writer.join();
  merger.join();
}

// An iterator that was made before is not led astray by what has taken the place of its operands since.
TEST_P(DbMergeConcurrentTest, AnOldIteratorIsAskedWhileItsOperandsAreCollapsed) {
  for (uint64_t round = 1; round <= 30; ++round) {
    for (int i = 0; i < kCounters; ++i) ASSERT_OK(db_->Merge({}, KeyOf(i), BytesOf(1)));
    ASSERT_OK(round % 2 == 0 ? db_->Flush() : Status::OK());
    const auto iterator = db_->NewIterator({});
    std::atomic<bool> done{false};
    std::thread merger([&] {
      EXPECT_OK(db_->CompactRange({}, nullptr, nullptr));
      done = true;
    });
    do {
      int count = 0;
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++count) ASSERT_EQ(NumberOf(iterator->value()), round);
      ASSERT_EQ(count, kCounters);
      for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev(), --count) ASSERT_EQ(NumberOf(iterator->value()), round);
      ASSERT_EQ(count, 0);
    } while (!done);
    merger.join();
  }
}

INSTANTIATE_TEST_SUITE_P(Regions, DbMergeConcurrentTest, testing::Values(1u, 2u));

}  // namespace
}  // namespace braiddb::test
