// Snapshots, iterators and multi-key reads while everything moves below them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "tests/concurrent/concurrent_db_fixture.h"
#include "tests/concurrent/concurrent_workload.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Setups, DbConcurrentTest, kConcurrentSetups, NameOf);

// ---- Batches: of several updates to one key only the last one is ever seen

TEST_P(DbConcurrentTest, OverwrittenUpdatesOfABatchAreNeverSeen) {
  constexpr int kKeys = 4;
  constexpr int kBetween = 60;  // other updates, so that the batch takes its time
  const int batches = 3000 / kSlowdown;
  std::atomic<bool> writing{true};
  Crew crew;
  crew.Start([&] {
    for (int i = 0; i < batches && !crew.stopped(); ++i) {
      WriteBatch batch;
      const std::string key = NumberedKey(i % kKeys);
      batch.Put(key, "overwritten");
      for (int other = 0; other < kBetween; ++other) batch.Put("other" + std::to_string(other), "value");
      batch.Put(key, "last");
      if (!crew.Check(db_->Write({}, batch), "batch")) break;
    }
    writing = false;
  });
  crew.Start([&] {
    Random random(1);
    std::string value;
    while (writing && !crew.stopped()) {
      const Status status = db_->Get({}, NumberedKey(random.Uniform(kKeys)), &value);
      if (!status.IsNotFound() && !crew.Check(status, "Get")) return;
      if (status.ok() && value != "last") crew.Fail("Get in the midst of a batch: " + Printable(value));
    }
  });
  crew.Join();
}

// ---- Gets that go on missing, of keys that come meanwhile

TEST_P(DbConcurrentTest, AcknowledgedKeysAreFoundBehindManyMisses) {
  if (GetParam().regions == 1) {  // where the levels are asked first, the cache is one that has something
    options_.lookup_cache_size = 1 << 20;
    Reopen();
  }
  const uint64_t keys = 20000 / kSlowdown;
  std::atomic<uint64_t> written{0};  // keys below are acknowledged
  Crew crew;
  crew.Start([&] {
    for (uint64_t i = 0; i < keys && !crew.stopped(); ++i) {
      if (!crew.Check(db_->Put({}, NumberedKey(i), TaggedValue(i)), "Put")) break;
      written.store(i + 1, std::memory_order_release);
    }
  });
  for (int reader = 0; reader < 2; ++reader) {
    crew.Start([&, reader] {
      Random random(900 + reader);
      std::string value;
      uint64_t known = 0;
      while (known < keys && !crew.stopped()) {
        // Ahead of the writer: most of them are not there.
        for (uint64_t ahead = 0; ahead < 16; ++ahead) {
          const Status status = db_->Get({}, NumberedKey(known + keys / 8 + ahead), &value);
          if (!status.IsNotFound() && !crew.Check(status, "Get")) return;
        }
        known = written.load(std::memory_order_acquire);
        if (known == 0) continue;
        const uint64_t i = random.OneIn(2) ? known - 1 : random.Uniform(known);
        if (!crew.Check(db_->Get({}, NumberedKey(i), &value), "Get of an acknowledged key")) return;
        if (TagOf(value) != i) crew.Fail("another key's value: " + Printable(value));
      }
    });
  }
  crew.Join();
}

// ---- Batches: every view sees all of a batch or nothing

TEST_P(DbConcurrentTest, EveryViewSeesWholeBatches) {
  constexpr int kGroups = 4;
  constexpr int kKeysPerGroup = 10;
  constexpr int kWriters = 3;
  const int batches = 1500 / kSlowdown;
  const auto key_of = [](uint64_t group, int member) { return "group" + std::to_string(group) + "/" + std::to_string(member); };
  // The newest stamp per group that is acknowledged. Stamps are drawn before the write, so concurrent ones may land in any order:
  // readers only rely on equality, and on a group existing once it was acknowledged.
  std::array<std::atomic<bool>, kGroups> exists{};
  std::atomic<uint64_t> next_stamp{1};
  std::atomic<int> writing{kWriters};
  Crew crew;
  for (int writer = 0; writer < kWriters; ++writer) {
    crew.Start([&, writer] {
      Random random(500 + writer);
      for (int i = 0; WritesOn(i, batches) && !crew.stopped(); ++i) {
        const uint64_t group = random.Uniform(kGroups);
        const uint64_t stamp = next_stamp.fetch_add(1, kRelaxed);
        WriteBatch batch;
        const int first = static_cast<int>(random.Uniform(kKeysPerGroup));
        for (int member = 0; member < kKeysPerGroup; ++member) {
          const std::string key = key_of(group, (first + member) % kKeysPerGroup);
          if (random.OneIn(5)) batch.Delete(key);
          batch.Put(key, TaggedValue(stamp));
        }
        if (!crew.Check(db_->Write({}, batch), "batch")) break;
        exists[group].store(true, kRelaxed);
      }
      writing.fetch_sub(1, kRelaxed);
    });
  }

  const auto check_group = [&](const char* how, const std::vector<std::string>& values, bool must_exist) {
    for (const auto& value : values) {
      if (value != values[0]) {
        crew.Fail(std::string(how) + ": part of a batch: " + Printable(values[0]) + " and " + Printable(value));
        return;
      }
    }
    if (values[0] == "<not found>" ? must_exist : !TagOf(values[0]).has_value()) crew.Fail(std::string(how) + ": " + values[0]);
  };
  for (int reader = 0; reader < 2; ++reader) {
    crew.Start([&, reader] {
      Random random(600 + reader);
      while (writing.load(kRelaxed) > 0 && !crew.stopped()) {
        const uint64_t group = random.Uniform(kGroups);
        const bool must_exist = exists[group].load(kRelaxed);
        std::vector<std::string> keys;
        for (int member = 0; member < kKeysPerGroup; ++member) keys.push_back(key_of(group, member));
        std::vector<std::string> values(kKeysPerGroup, "<not found>");
        const uint64_t way = random.Uniform(4);
        if (way == 0) {
          std::vector<std::string> found;
          const auto statuses = db_->MultiGet({}, {keys.begin(), keys.end()}, &found);
          for (int member = 0; member < kKeysPerGroup; ++member) {
            if (statuses[member].ok()) values[member] = found[member];
          }
          check_group("MultiGet", values, must_exist);
        } else if (way == 1) {
          const Snapshot* snapshot = db_->GetSnapshot();
          ReadOptions options;
          options.snapshot = snapshot;
          for (int member = 0; member < kKeysPerGroup; ++member) values[member] = GetOrText(db_.get(), keys[member], options);
          db_->ReleaseSnapshot(snapshot);
          check_group("snapshot", values, must_exist);
        } else {
          ReadOptions options;
          const std::string prefix = key_of(group, 0).substr(0, 7);
          options.prefix = prefix;
          Pairs pairs = way == 2 ? ScanForward(db_.get(), options) : ScanBackward(db_.get(), options);
          if (way == 3) std::reverse(pairs.begin(), pairs.end());
          if (!pairs.empty() && pairs.size() != kKeysPerGroup)
            crew.Fail("iterator: " + std::to_string(pairs.size()) + " keys of ten");
          for (size_t i = 0; i < pairs.size() && !crew.stopped(); ++i) {
            if (pairs[i].first != keys[i]) crew.Fail("iterator: unexpected key " + Printable(pairs[i].first));
            values[i] = pairs[i].second;
          }
          check_group(way == 2 ? "forward iterator" : "backward iterator", values, must_exist);
        }
      }
    });
  }
  crew.Join();
  ExpectBackgroundWork();
}

// ---- Merges under iterators: no key is missed, none comes twice

TEST_P(DbConcurrentTest, IteratorsDuringMergesNeitherMissNorRepeat) {
  constexpr int kStatic = 300;
  constexpr int kWriters = 2;
  const int writes = 10'000 / kSlowdown;
  // Static keys, spread over all levels; between them others come and go.
  const auto static_key = [](uint64_t i) { return NumberedKey(i * 10); };
  for (int i = 0; i < kStatic; ++i) {
    const uint64_t number = i * 7 % kStatic;
    ASSERT_OK(db_->Put({}, static_key(number), TaggedValue(number + 1)));
    if (i == kStatic / 2) {
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    }
  }
  std::atomic<int> writing{kWriters};
  std::atomic<uint64_t> scans{0};
  Crew crew;
  for (int writer = 0; writer < kWriters; ++writer) {
    crew.Start([&, writer] {
      Random random(700 + writer);
      for (int i = 0; WritesOn(i, writes, scans.load(kRelaxed) > 0) && !crew.stopped(); ++i) {
        const uint64_t number = random.Uniform(kStatic * 10);
        if (number % 10 == 0) {
          // Rewritten with the same value: the key moves through the levels again.
          if (!crew.Check(db_->Put({}, NumberedKey(number), TaggedValue(number / 10 + 1)), "put")) break;
        } else if (random.OneIn(3)) {
          if (!crew.Check(db_->Delete({}, NumberedKey(number)), "delete")) break;
        } else if (!crew.Check(db_->Put({}, NumberedKey(number), TaggedValue(number)), "put")) {
          break;
        }
      }
      writing.fetch_sub(1, kRelaxed);
    });
  }
  for (int reader = 0; reader < 2; ++reader) {
    crew.Start([&, reader] {
      Random random(800 + reader);
      while (writing.load(kRelaxed) > 0 && !crew.stopped()) {
        const bool forward = random.OneIn(2);
        auto iterator = db_->NewIterator({});
        const uint64_t from = random.OneIn(2) ? 0 : random.Uniform(kStatic);
        uint64_t next_static = forward ? from : kStatic - 1 - from;
        forward ? iterator->Seek(static_key(next_static)) : iterator->SeekForPrev(static_key(next_static));
        std::string previous;
        uint64_t found = 0;
        for (; iterator->Valid(); forward ? iterator->Next() : iterator->Prev()) {
          const Slice key = iterator->key();
          if (!previous.empty() && (forward ? key <= previous : key >= previous)) {
            return crew.Fail(Printable(key) + " after " + Printable(previous) + (forward ? " going forward" : " going back"));
          }
          previous = key;
          if (key.back() != '0') continue;
          if (key != static_key(next_static)) return crew.Fail("missed " + static_key(next_static) + ", got " + Printable(key));
          if (iterator->value() != TaggedValue(next_static + 1)) return crew.Fail("wrong value of " + Printable(key));
          forward ? ++next_static : --next_static;
          ++found;
        }
        if (!crew.Check(iterator->status(), "iterator")) return;
        if (found != kStatic - from) return crew.Fail("found " + std::to_string(found) + " of " + std::to_string(kStatic - from));
        scans.fetch_add(1, kRelaxed);
        for (int i = 0; i < 20; ++i) {
          const uint64_t number = random.Uniform(kStatic);
          if (GetOrText(db_.get(), static_key(number)) != TaggedValue(number + 1)) {
            return crew.Fail("lost " + static_key(number));
          }
        }
      }
    });
  }
  crew.Join();
  EXPECT_GT(scans.load(), 0u);
  ExpectBackgroundWork();
}

// ---- Snapshots under everything

TEST_P(DbConcurrentTest, SnapshotsStayTheSameWhileEverythingMoves) {
  constexpr int kWriters = 2;
  constexpr uint64_t kKeys = 150;
  const int writes = 10'000 / kSlowdown;
  std::atomic<int> writing{kWriters};
  Crew crew;
  for (int writer = 0; writer < kWriters; ++writer) {
    crew.Start([&, writer] {
      Random random(900 + writer);
      for (int i = 0; WritesOn(i, writes) && !crew.stopped(); ++i) {
        const std::string key = NumberedKey(random.Uniform(kKeys));
        if (!crew.Check(random.OneIn(4) ? db_->Delete({}, key) : db_->Put({}, key, TaggedValue(random.Next())), "write")) break;
      }
      writing.fetch_sub(1, kRelaxed);
    });
  }
  for (int reader = 0; reader < 2; ++reader) {
    crew.Start([&, reader] {
      Random random(1000 + reader);
      while (writing.load(kRelaxed) > 0 && !crew.stopped()) {
        const Snapshot* snapshot = db_->GetSnapshot();
        ReadOptions options;
        options.snapshot = snapshot;
        const Pairs first = ScanForward(db_.get(), options);
        for (int again = 0; again < 3 && !crew.stopped(); ++again) {
          Pairs backward = ScanBackward(db_.get(), options);
          std::reverse(backward.begin(), backward.end());
          if (backward != first)
            crew.Fail("snapshot read backward differs: " + std::to_string(backward.size()) + " keys, first " +
                      std::to_string(first.size()));
          size_t position = 0;
          for (uint64_t key = 0; key < kKeys && !crew.stopped(); ++key) {
            const std::string name = NumberedKey(key);
            const bool present = position < first.size() && first[position].first == name;
            const std::string value = GetOrText(db_.get(), name, options);
            if (value != (present ? first[position].second : "<not found>")) crew.Fail("Get at a snapshot differs: " + name);
            position += present;
          }
        }
        db_->ReleaseSnapshot(snapshot);
      }
    });
  }
  crew.Join();
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-snapshots"), 0u);
  ExpectBackgroundWork();
}

}  // namespace
}  // namespace braiddb::test
