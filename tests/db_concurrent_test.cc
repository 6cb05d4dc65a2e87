// Many threads on the same keys: reads are linearizable per key, and versions never go back.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "db_stress/register_history.h"
#include "tests/concurrent/concurrent_db_fixture.h"
#include "tests/concurrent/concurrent_workload.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

using stress::RegisterHistory;

INSTANTIATE_TEST_SUITE_P(Setups, DbConcurrentTest, kConcurrentSetups, NameOf);
// Places are taken before the fence, or looked for behind it.
INSTANTIATE_TEST_SUITE_P(BothOrders, DbConcurrentTest,
                         testing::Values(ConcurrentSetup{1, MemtableKind::kHash, 1 << 20, "flushed", false},
                                         ConcurrentSetup{1, MemtableKind::kHash, 1 << 20, "streamed", true}),
                         NameOf);

// ---- One key, many writers: the history is linearizable

// One thread's part of the histories of all keys.
class Historian {
 public:
  explicit Historian(size_t keys) : keys_(keys) {}
  static uint64_t Now() { return clock_.fetch_add(1, kRelaxed); }

  RegisterHistory& operator[](size_t key) { return keys_[key]; }
  size_t size() const { return keys_.size(); }
  void Merge(const Historian& other) {
    for (size_t key = 0; key < size(); ++key) keys_[key].Merge(other.keys_[key]);
  }

 private:
  static std::atomic<uint64_t> clock_;
  std::vector<RegisterHistory> keys_;
};

std::atomic<uint64_t> Historian::clock_{1};

// Reads some key in one of the ways in which that can be done, and notes what was seen. False if the database misbehaved.
bool ReadSomehow(DB* db, Random* random, Historian* history, Crew* crew) {
  const auto note = [&](size_t key, const Status& status, Slice value, uint64_t start, uint64_t end) {
    uint64_t tag = RegisterHistory::kInitial;
    if (status.ok()) {
      const auto found = TagOf(value);
      if (!found) crew->Fail("value that was never written: " + Printable(value));
      tag = found.value_or(0);
    } else if (!status.IsNotFound()) {
      crew->Fail("read: " + status.ToString());
    }
    (*history)[key].AddRead(tag, start, end);
    return !crew->stopped();
  };
  const size_t key = random->Uniform(history->size());
  const uint64_t start = Historian::Now();
  switch (random->Uniform(8)) {
    case 0: {  // all keys of one view, made between start and end
      std::vector<std::string> names;
      for (size_t i = 0; i < history->size(); ++i) names.push_back(NumberedKey(i));
      std::vector<std::string> values;
      const auto statuses = db->MultiGet({}, {names.begin(), names.end()}, &values);
      const uint64_t end = Historian::Now();
      for (size_t i = 0; i < history->size(); ++i) {
        if (!note(i, statuses[i], values[i], start, end)) return false;
      }
      return true;
    }
    case 1: {
      auto iterator = db->NewIterator({});
      const uint64_t end = Historian::Now();
      size_t expected = 0;
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
        while (expected < history->size() && NumberedKey(expected) < iterator->key()) {
          if (!note(expected++, Status::NotFound(), {}, start, end)) return false;
        }
        if (expected < history->size() && !note(expected++, Status::OK(), iterator->value(), start, end)) return false;
      }
      return crew->Check(iterator->status(), "iterator");
    }
    case 2: {
      const Snapshot* snapshot = db->GetSnapshot();
      const uint64_t end = Historian::Now();
      ReadOptions options;
      options.snapshot = snapshot;
      std::string value;
      const Status status = db->Get(options, NumberedKey(key), &value);
      db->ReleaseSnapshot(snapshot);
      return note(key, status, value, start, end);
    }
    case 3: {
      PinnableSlice value;
      const Status status = db->Get({}, NumberedKey(key), &value);
      return note(key, status, value.slice(), start, Historian::Now());
    }
    default: {
      std::string value;
      const Status status = db->Get({}, NumberedKey(key), &value);
      return note(key, status, value, start, Historian::Now());
    }
  }
}

TEST_P(DbConcurrentTest, OverlappingWritersAreLinearizablePerKey) {
  constexpr size_t kKeys = 12;
  constexpr int kWriters = 3;
  constexpr int kReaders = 2;
  const int writes = 6000 / kSlowdown;
  std::vector<Historian> histories(kWriters + kReaders, Historian(kKeys));
  std::atomic<int> writing{kWriters};
  Crew crew;
  for (int writer = 0; writer < kWriters; ++writer) {
    crew.Start([&, writer] {
      Random random(100 + writer);
      auto& history = histories[writer];
      for (int i = 0; WritesOn(i, writes) && !crew.stopped(); ++i) {
        const uint64_t tag = uint64_t(writer + 1) << 32 | uint64_t(i);
        const size_t key = random.Uniform(kKeys);
        const size_t second = (key + 1) % kKeys;
        const bool batch = random.OneIn(10);
        const uint64_t start = Historian::Now();
        Status status;
        if (batch) {
          WriteBatch both;
          both.Put(NumberedKey(key), TaggedValue(tag));
          both.Put(NumberedKey(second), TaggedValue(tag));
          status = db_->Write({}, both);
        } else {
          status = db_->Put({}, NumberedKey(key), TaggedValue(tag));
        }
        const uint64_t end = Historian::Now();
        if (!crew.Check(status, "write")) break;
        history[key].AddWrite(tag, start, end);
        if (batch) history[second].AddWrite(tag, start, end);
        if (random.OneIn(20) && !ReadSomehow(db_.get(), &random, &history, &crew)) break;  // read your own writes, too
      }
      writing.fetch_sub(1, kRelaxed);
    });
  }
  for (int reader = 0; reader < kReaders; ++reader) {
    crew.Start([&, reader] {
      Random random(200 + reader);
      while (writing.load(kRelaxed) > 0 && !crew.stopped() &&
             ReadSomehow(db_.get(), &random, &histories[kWriters + reader], &crew)) {
      }
    });
  }
  crew.Join();
  Historian all(kKeys);
  for (const auto& history : histories) all.Merge(history);
  for (size_t key = 0; key < kKeys; ++key) {
    const auto violation = all[key].Violation();
    EXPECT_FALSE(violation.has_value()) << NumberedKey(key) << ": " << *violation;
  }
  ExpectBackgroundWork();
}

TEST(RegisterHistory, FindsWhatIsNotLinearizable) {
  const auto history = [](auto fill) {
    RegisterHistory register_history;
    fill(register_history);
    return register_history.Violation().has_value();
  };
  EXPECT_FALSE(history([](auto&) {}));
  // Sequential: write 1, read 1, write 2, read 2.
  EXPECT_FALSE(history([](auto& h) { h.AddWrite(1, 1, 2), h.AddRead(1, 3, 4), h.AddWrite(2, 5, 6), h.AddRead(2, 7, 8); }));
  // Concurrent writes may be seen in either order, but only in one.
  EXPECT_FALSE(history([](auto& h) { h.AddWrite(1, 1, 10), h.AddWrite(2, 2, 11), h.AddRead(2, 12, 13), h.AddRead(2, 14, 15); }));
  EXPECT_FALSE(history([](auto& h) { h.AddWrite(1, 1, 10), h.AddWrite(2, 2, 11), h.AddRead(1, 12, 13), h.AddRead(1, 14, 15); }));
  EXPECT_TRUE(history([](auto& h) { h.AddWrite(1, 1, 10), h.AddWrite(2, 2, 11), h.AddRead(1, 12, 13), h.AddRead(2, 14, 15); }));
  // A read may see a write that has not ended, but then no later one may see the older value.
  EXPECT_FALSE(history([](auto& h) { h.AddWrite(1, 1, 2), h.AddWrite(2, 3, 20), h.AddRead(2, 4, 5), h.AddRead(2, 6, 7); }));
  EXPECT_TRUE(history([](auto& h) { h.AddWrite(1, 1, 2), h.AddWrite(2, 3, 20), h.AddRead(2, 4, 5), h.AddRead(1, 6, 7); }));
  // Lost update: acknowledged, then not seen.
  EXPECT_TRUE(history([](auto& h) { h.AddWrite(1, 1, 2), h.AddRead(RegisterHistory::kInitial, 3, 4); }));
  EXPECT_TRUE(history([](auto& h) { h.AddWrite(1, 1, 2), h.AddWrite(2, 3, 4), h.AddRead(1, 5, 6); }));
  // Out of nowhere, and from the future.
  EXPECT_TRUE(history([](auto& h) { h.AddRead(7, 1, 2); }));
  EXPECT_TRUE(history([](auto& h) { h.AddRead(7, 1, 2), h.AddWrite(7, 3, 4); }));
}

// ---- Puts and deletes of disjoint writers: versions only go up

// Every fifth version of a key is a delete.
bool IsDelete(uint64_t version) { return version % 5 == 0; }

struct KeyProgress {
  std::atomic<uint64_t> intended{0};  // set before the write
  std::atomic<uint64_t> acknowledged{0};
};

TEST_P(DbConcurrentTest, VersionsNeverGoBack) {
  constexpr int kWriters = 3;
  constexpr int kReaders = 2;
  constexpr uint64_t kKeysPerWriter = 100;
  constexpr uint64_t kKeys = kWriters * kKeysPerWriter;
  const int writes = 8000 / kSlowdown;
  std::vector<KeyProgress> progress(kKeys);
  std::atomic<int> writing{kWriters};
  Crew crew;

  const auto write_next = [&](uint64_t key) {
    const uint64_t version = progress[key].intended.load(kRelaxed) + 1;
    progress[key].intended.store(version, kRelaxed);
    const Status status =
        IsDelete(version) ? db_->Delete({}, NumberedKey(key)) : db_->Put({}, NumberedKey(key), TaggedValue(key << 32 | version));
    if (crew.Check(status, "write")) progress[key].acknowledged.store(version, kRelaxed);
  };
  for (int writer = 0; writer < kWriters; ++writer) {
    crew.Start([&, writer] {
      Random random(300 + writer);
      for (int i = 0; WritesOn(i, writes) && !crew.stopped(); ++i)
        write_next(writer * kKeysPerWriter + random.Skewed(kKeysPerWriter));
      writing.fetch_sub(1, kRelaxed);
    });
  }

  // The version that was seen, at least `low`; nothing, after Fail, if there is no such version.
  const auto judge = [&](uint64_t key, const Status& status, Slice value, uint64_t low) -> std::optional<uint64_t> {
    const uint64_t high = progress[key].intended.load(kRelaxed);
    const std::string where =
        NumberedKey(key) + " between versions " + std::to_string(low) + " and " + std::to_string(high) + ": ";
    if (status.IsNotFound()) {
      const uint64_t deleted = (low + 4) / 5 * 5;  // the first delete not before `low`; 0 is the state before everything
      if (deleted <= high) return deleted;
      crew.Fail(where + "not found");
      return std::nullopt;
    }
    if (!crew.Check(status, "read")) return std::nullopt;
    const auto tag = TagOf(value);
    if (!tag || *tag >> 32 != key) {
      crew.Fail(where + "value of no write to it");
      return std::nullopt;
    }
    const uint64_t version = *tag & UINT32_MAX;
    if (version >= low && version <= high && !IsDelete(version)) return version;
    crew.Fail(where + "saw " + std::to_string(version));
    return std::nullopt;
  };
  for (int reader = 0; reader < kReaders; ++reader) {
    crew.Start([&, reader] {
      Random random(400 + reader);
      std::vector<uint64_t> seen(kKeys, 0);
      while (writing.load(kRelaxed) > 0 && !crew.stopped()) {
        if (random.OneIn(50)) {
          // A whole scan; every key counts, present or not.
          std::vector<uint64_t> low(kKeys);
          for (uint64_t key = 0; key < kKeys; ++key) low[key] = std::max(seen[key], progress[key].acknowledged.load(kRelaxed));
          const bool forward = random.OneIn(2);
          Pairs pairs = forward ? ScanForward(db_.get()) : ScanBackward(db_.get());
          if (!forward) std::reverse(pairs.begin(), pairs.end());
          auto pair = pairs.begin();
          for (uint64_t key = 0; key < kKeys; ++key) {
            const bool present = pair != pairs.end() && pair->first == NumberedKey(key);
            const auto version = judge(key, present ? Status::OK() : Status::NotFound(), present ? pair->second : "", low[key]);
            if (!version) return;
            seen[key] = *version;
            if (present) ++pair;
          }
          if (pair != pairs.end()) return crew.Fail("key out of order, twice, or never written: " + Printable(pair->first));
        } else {
          const uint64_t key = random.Uniform(kKeys);
          const uint64_t low = std::max(seen[key], progress[key].acknowledged.load(kRelaxed));
          std::string value;
          const Status status = db_->Get({}, NumberedKey(key), &value);
          const auto version = judge(key, status, value, low);
          if (!version) return;
          seen[key] = *version;
        }
      }
    });
  }
  crew.Join();
  if (HasFailure()) return;

  std::map<std::string, std::string> expected;
  for (uint64_t key = 0; key < kKeys; ++key) {
    const uint64_t version = progress[key].acknowledged.load(kRelaxed);
    if (!IsDelete(version)) expected[NumberedKey(key)] = TaggedValue(key << 32 | version);
  }
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  ExpectBackgroundWork();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
}

}  // namespace
}  // namespace braiddb::test
