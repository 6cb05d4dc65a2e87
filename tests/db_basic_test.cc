// Reading and writing through the public interface, wherever the data lies: memtable, L0, L1, after a reopen.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "util/random.h"

namespace braiddb::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Regions, DbTest, testing::Values(1, 2), [](const auto& test) { return std::to_string(test.param); });

TEST_P(DbTest, PutGetOverwriteDelete) {
  ASSERT_OK(db_->Put({}, "a", "1"));
  ASSERT_OK(db_->Put({}, "b", "2"));
  ASSERT_OK(db_->Put({}, "b", "3"));
  ASSERT_OK(db_->Put({}, "c", "4"));
  ASSERT_OK(db_->Delete({}, "c"));
  ASSERT_OK(db_->Delete({}, "never there"));
  AtEveryStage([&] {
    EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "1"}, {"b", "3"}}));
    for (const char* absent : {"", "aa", "c", "never there", "z"})
      EXPECT_EQ(GetOrText(db_.get(), absent), "<not found>") << absent;
  });
}

// Small ones are made elsewhere and copied to the log line by line: each size, beginning at each place in a line, beside others
// that were there before.
TEST_P(DbTest, EntriesOfEverySizeAtEveryStart) {
  std::map<std::string, std::string> expected;
  Random random(3);
  for (int i = 0; i < 2600; ++i) {
    const size_t bytes = static_cast<size_t>(i) % 1300;
    const std::string key = NumberedKey(i) + std::string(random.Uniform(24), 'k');
    expected[key] = PatternedValue(i, bytes);
    ASSERT_OK(db_->Put({}, key, expected[key]));
  }
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), expected)); });
}

TEST_P(DbTest, OverwriteAndDeleteAcrossLevels) {
  // Each round writes a newer version above what the earlier rounds left in lower levels.
  std::map<std::string, std::string> expected;
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < 40; ++i) {
      const std::string key = NumberedKey(i);
      if ((i + round) % 3 == 0) {
        ASSERT_OK(db_->Delete({}, key));
        expected.erase(key);
      } else if ((i + round) % 3 == 1) {
        expected[key] = "round " + std::to_string(round) + " key " + std::to_string(i);
        ASSERT_OK(db_->Put({}, key, expected[key]));
      }
    }
    if (round % 4 == 0) {
      ASSERT_OK(db_->Flush());
    }
    if (round % 4 == 2) {
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    }
    ASSERT_TRUE(HoldsExactly(db_.get(), expected)) << "round " << round;
  }
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), expected)); });
}

TEST_P(DbTest, DeletedKeyStaysDeletedWhateverIsBelow) {
  ASSERT_OK(db_->Put({}, "k", "in L1"));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ASSERT_OK(db_->Put({}, "k", "in L0"));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->Delete({}, "k"));
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), Pairs{})); });
  ASSERT_OK(db_->Put({}, "k", "again"));
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), {{"k", "again"}})); });
}

TEST_P(DbTest, EmptyKeyAndEmptyValue) {
  ASSERT_OK(db_->Put({}, "", "value of the empty key"));
  ASSERT_OK(db_->Put({}, "empty value", ""));
  ASSERT_OK(db_->Put({}, std::string(1, '\0'), std::string(1, '\0')));
  const Pairs expected = {{"", "value of the empty key"}, {std::string(1, '\0'), std::string(1, '\0')}, {"empty value", ""}};
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), expected)); });
  ASSERT_OK(db_->Put({}, "", ""));
  AtEveryStage([&] { EXPECT_EQ(GetOrText(db_.get(), ""), ""); });
  ASSERT_OK(db_->Delete({}, ""));
  AtEveryStage([&] { EXPECT_EQ(GetOrText(db_.get(), ""), "<not found>"); });
}

TEST_P(DbTest, EveryByteCanBeAKeyAndAValue) {
  std::map<std::string, std::string> expected;
  for (int byte = 0; byte < 256; ++byte) {
    for (const auto& key :
         {std::string(1, static_cast<char>(byte)), "prefix" + std::string(1, static_cast<char>(byte)) + "suffix"}) {
      expected[key] = std::string(3, static_cast<char>(255 - byte));
      ASSERT_OK(db_->Put({}, key, expected[key]));
    }
  }
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), expected)); });
}

TEST_P(DbTest, KeysThatDifferOnlyAtTheVeryEnd) {
  std::map<std::string, std::string> expected;
  for (size_t length : {7, 8, 9, 15, 16, 17, 63, 64, 65, 1000}) {
    const std::string stem(length, 's');
    for (const auto& key : {stem, stem + '\0', stem + std::string(8, '\0'), stem + "a", stem + "b"}) {
      expected[key] = std::to_string(key.size());
      ASSERT_OK(db_->Put({}, key, expected[key]));
    }
  }
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), expected)); });
}

TEST_P(DbTest, KeysUpToTheLimitAndNotBeyond) {
  std::map<std::string, std::string> expected;
  for (size_t size : {kMaxKeySize, kMaxKeySize - 1, kMaxKeySize - 7, kMaxKeySize / 2}) {
    const std::string key(size, 'k');
    expected[key] = std::to_string(size);
    ASSERT_OK(db_->Put({}, key, expected[key]));
  }
  const std::string too_long(kMaxKeySize + 1, 'k');
  EXPECT_CODE(db_->Put({}, too_long, "v"), kInvalidArgument);
  EXPECT_CODE(db_->Delete({}, too_long), kInvalidArgument);
  WriteBatch batch;
  batch.Put("good", "part of a bad batch");
  batch.Put(too_long, "v");
  EXPECT_CODE(db_->Write({}, batch), kInvalidArgument);
  AtEveryStage([&] {
    EXPECT_TRUE(HoldsExactly(db_.get(), expected));
    std::string value;
    const Status status = db_->Get({}, too_long, &value);
    EXPECT_TRUE(status.IsNotFound() || status.IsInvalidArgument()) << status.ToString();
  });
}

TEST_P(DbTest, ValuesAroundAndAboveASegment) {
  std::map<std::string, std::string> expected;
  const uint64_t segment = options_.segment_size;
  int i = 0;
  for (uint64_t size : {segment / 2, segment - 200, segment - 64, segment - 8, segment, segment + 1, 3 * segment, 20 * segment}) {
    const std::string key = NumberedKey(i++);
    ASSERT_OK(db_->Put({}, key, PatternedValue(1, 10)));
    expected[key] = PatternedValue(size, size);
    ASSERT_OK(db_->Put({}, key, expected[key]));
    ASSERT_OK(db_->Put({}, key + "small", "s"));
    expected[key + "small"] = "s";
  }
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), expected)); });
  for (const auto& [key, value] : expected) {
    if (value.size() > 1) {
      ASSERT_OK(db_->Put({}, key, "shrunk"));
    }
  }
  for (auto& [key, value] : expected) value = value.size() > 1 ? "shrunk" : value;
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), expected)); });
}

TEST_P(DbTest, ValueAboveTheLimitIsRejected) {
  const std::string some = "v";
  const Slice too_large(some.data(), kMaxValueSize + 1);  // its length alone is refused; no byte is read
  EXPECT_CODE(db_->Put({}, "k", too_large), kInvalidArgument);
  EXPECT_EQ(GetOrText(db_.get(), "k"), "<not found>");
  ASSERT_OK(db_->Put({}, "k", "fits"));
  EXPECT_EQ(GetOrText(db_.get(), "k"), "fits");
}

// Nobody reads the bytes: the length alone is refused.
TEST_P(DbTest, ABatchWithAValueOf4GiBIsRejectedWhole) {
  const std::string some = "x";
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Put("b", Slice(some.data(), size_t{1} << 32));
  EXPECT_CODE(db_->Write({}, batch), kInvalidArgument);
  EXPECT_TRUE(HoldsExactly(db_.get(), {}));
  batch.Clear();
  batch.Put("a", "1");
  ASSERT_OK(db_->Write({}, batch));
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "1"}}));
}

TEST_P(DbTest, ReadsReplaceWhatTheStringHeld) {
  ASSERT_OK(db_->Put({}, "k", "short"));
  std::string value(1000, 'x');
  ASSERT_OK(db_->Get({}, "k", &value));
  EXPECT_EQ(value, "short");
}

// ---- Batches

TEST_P(DbTest, LastUpdateOfABatchWins) {
  ASSERT_OK(db_->Put({}, "deleted", "before"));
  WriteBatch batch;
  batch.Put("twice", "first");
  batch.Put("twice", "second");
  batch.Put("put then deleted", "gone");
  batch.Delete("put then deleted");
  batch.Delete("deleted then put");
  batch.Put("deleted then put", "there");
  batch.Delete("deleted");
  for (int i = 0; i < 10; ++i) batch.Put("ten times", std::to_string(i));
  EXPECT_EQ(batch.Count(), 17u);
  ASSERT_OK(db_->Write({}, batch));
  AtEveryStage([&] {
    EXPECT_TRUE(HoldsExactly(db_.get(), {{"deleted then put", "there"}, {"ten times", "9"}, {"twice", "second"}}));
  });
}

TEST_P(DbTest, EmptyBatchChangesNothing) {
  const uint64_t before = db_->GetLatestSequenceNumber();
  WriteBatch batch;
  ASSERT_OK(db_->Write({}, batch));
  batch.Put("k", "v");
  batch.Clear();
  ASSERT_OK(db_->Write({}, batch));
  EXPECT_EQ(db_->GetLatestSequenceNumber(), before);
  EXPECT_TRUE(HoldsExactly(db_.get(), Pairs{}));
}

TEST_P(DbTest, BatchCanBeWrittenAgainAndExtended) {
  WriteBatch batch;
  batch.Put("a", "1");
  ASSERT_OK(db_->Write({}, batch));
  ASSERT_OK(db_->Put({}, "a", "between"));
  batch.Put("b", "2");
  ASSERT_OK(db_->Write({}, batch));
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "1"}, {"b", "2"}})); });
}

TEST_P(DbTest, BatchesOfEverySizeUpToManySegments) {
  // Entry sizes and counts such that batches end before, at and far beyond the ends of segments.
  const struct {
    int updates;
    size_t value_size;
  } kCases[] = {{1, 10}, {2, 0}, {100, 100}, {3000, 100}, {5, 60'000}, {30, 50'000}, {3, 300'000}, {20'000, 8}};
  std::map<std::string, std::string> expected;
  for (const auto& test : kCases) {
    SCOPED_TRACE(std::to_string(test.updates) + " updates of " + std::to_string(test.value_size));
    WriteBatch batch;
    for (int i = 0; i < test.updates; ++i) {
      const std::string key = NumberedKey(i * 17 % test.updates);
      expected[key] = PatternedValue(i + test.value_size, test.value_size);
      batch.Put(key, expected[key]);
    }
    ASSERT_OK(db_->Write({}, batch));
    ASSERT_EQ(GetOrText(db_.get(), NumberedKey(0)), expected[NumberedKey(0)]);
  }
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), expected)); });
}

TEST_P(DbTest, BatchFromItsSerializedForm) {
  WriteBatch batch;
  batch.Put("a", std::string("\0binary\xff", 8));
  batch.Delete("b");
  batch.Put("", "");
  WriteBatch copy;
  ASSERT_OK(WriteBatch::FromData(batch.Data(), &copy));
  EXPECT_EQ(copy.Count(), 3u);
  EXPECT_EQ(copy.Data(), batch.Data());
  ASSERT_OK(db_->Put({}, "b", "x"));
  ASSERT_OK(db_->Write({}, copy));
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"", ""}, {"a", std::string("\0binary\xff", 8)}}));
  for (size_t cut = 1; cut < batch.Data().size(); ++cut) {
    const Status status = WriteBatch::FromData(Slice(batch.Data()).substr(0, cut), &copy);
    EXPECT_TRUE(status.ok() || status.IsCorruption()) << cut;
    if (status.ok()) {
      EXPECT_LT(copy.Count(), 3u) << cut;
    }
  }
}

// ---- MultiGet, pinned values, snapshots

TEST_P(DbTest, LatestSequenceOfAKeyIsThatOfItsNewestWrite) {
  uint64_t sequence = 0;
  EXPECT_TRUE(db_->GetLatestSequenceForKey("a", &sequence).IsNotFound());
  ASSERT_OK(db_->Put({}, "a", "1"));
  const uint64_t put = db_->GetLatestSequenceNumber();
  ASSERT_OK(db_->Put({}, "b", "1"));
  AtEveryStage([&] {
    ASSERT_OK(db_->GetLatestSequenceForKey("a", &sequence));
    EXPECT_EQ(sequence, put);
  });
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(db_->Delete({}, "a"));
  const uint64_t deletion = db_->GetLatestSequenceNumber();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));  // the snapshot still sees what was deleted
  ASSERT_OK(db_->GetLatestSequenceForKey("a", &sequence));
  EXPECT_EQ(sequence, deletion);
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_TRUE(db_->GetLatestSequenceForKey("a", &sequence).IsNotFound());
}

TEST_P(DbTest, MultiGet) {
  ASSERT_OK(db_->Put({}, "a", "1"));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ASSERT_OK(db_->Put({}, "b", ""));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->Put({}, "c", "3"));
  ASSERT_OK(db_->Delete({}, "d"));
  AtEveryStage([&] {
    std::vector<std::string> values = {"stale", "stale"};
    const std::vector<Slice> keys = {"c", "nothing", "a", "b", "a", "d", ""};
    const std::vector<Status> statuses = db_->MultiGet({}, keys, &values);
    ASSERT_EQ(statuses.size(), keys.size());
    ASSERT_EQ(values.size(), keys.size());
    const char* const kExpected[] = {"3", nullptr, "1", "", "1", nullptr, nullptr};
    for (size_t i = 0; i < keys.size(); ++i) {
      if (kExpected[i] == nullptr) {
        EXPECT_TRUE(statuses[i].IsNotFound()) << keys[i];
      } else {
        EXPECT_OK(statuses[i]);
        EXPECT_EQ(values[i], kExpected[i]);
      }
    }
    EXPECT_TRUE(db_->MultiGet({}, {}, &values).empty());
    EXPECT_TRUE(values.empty());
  });
}

// [CC-7]
TEST_P(DbTest, PinnedValueSurvivesOverwritesAndCompaction) {
  const std::string original = PatternedValue(1, 5000);
  ASSERT_OK(db_->Put({}, "pinned", original));
  std::vector<PinnableSlice> pins;
  for (int round = 0; round < 4; ++round) {  // one pin per level
    if (round == 1) {
      ASSERT_OK(db_->Flush());
    }
    if (round == 2) {
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    }
    pins.emplace_back();
    ASSERT_OK(db_->Get({}, "pinned", &pins.back()));
  }
  ASSERT_OK(db_->Delete({}, "pinned"));
  Random random(GetParam());
  for (int i = 0; i < 5000 / kSlowdown; ++i) {  // many times what the segments hold: without the pins, its space would be reused
    ASSERT_OK(db_->Put({}, NumberedKey(random.Uniform(20)), PatternedValue(i, 1000)));
    if (i % 1000 == 999) {
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    }
  }
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  for (auto& pin : pins) {
    EXPECT_EQ(pin.slice(), original);
  }

  PinnableSlice moved = std::move(pins[0]);
  EXPECT_EQ(moved.slice(), original);
  pins[1] = std::move(moved);
  EXPECT_EQ(pins[1].ToString(), original);
  ASSERT_OK(db_->Put({}, "pinned", "new"));
  ASSERT_OK(db_->Get({}, "pinned", &pins[1]));  // lets go of the old one
  EXPECT_EQ(pins[1].slice(), "new");
  EXPECT_TRUE(db_->Get({}, "absent", &pins[1]).IsNotFound());
  pins[2].Reset();
  EXPECT_TRUE(pins[2].empty());
}

TEST_P(DbTest, PinnedEmptyAndLargeValues) {
  ASSERT_OK(db_->Put({}, "empty", ""));
  const std::string large = PatternedValue(7, 3 * options_.segment_size);
  ASSERT_OK(db_->Put({}, "large", large));
  PinnableSlice pin;
  ASSERT_OK(db_->Get({}, "large", &pin));
  ASSERT_OK(db_->Put({}, "large", "small"));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ASSERT_OK(db_->Put({}, "other", PatternedValue(8, 3 * options_.segment_size)));
  EXPECT_EQ(pin.slice(), large);
  ASSERT_OK(db_->Get({}, "empty", &pin));
  EXPECT_EQ(pin.size(), 0u);
}

TEST_P(DbTest, SnapshotsNeverChange) {
  struct Frozen {
    const Snapshot* snapshot;
    std::map<std::string, std::string> content;
  };
  std::vector<Frozen> frozen;
  std::map<std::string, std::string> now;
  Random random(11);
  for (int i = 0; i < 3000 / kSlowdown; ++i) {
    const std::string key = NumberedKey(random.Uniform(60));
    if (random.Percent(30)) {
      ASSERT_OK(db_->Delete({}, key));
      now.erase(key);
    } else {
      now[key] = PatternedValue(i, 50 + random.Uniform(100));
      ASSERT_OK(db_->Put({}, key, now[key]));
    }
    if (i % 300 == 50) {
      frozen.push_back({db_->GetSnapshot(), now});
      EXPECT_GE(frozen.back().snapshot->GetSequenceNumber(), db_->GetLatestSequenceNumber());
    }
    if (i % 700 == 699) {
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    }
    if (i % 900 == 899 && frozen.size() > 2) {
      db_->ReleaseSnapshot(frozen[1].snapshot);
      frozen.erase(frozen.begin() + 1);
    }
  }
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-snapshots"), frozen.size());
  for (const auto& view : frozen) {
    ReadOptions options;
    options.snapshot = view.snapshot;
    EXPECT_TRUE(HoldsExactly(db_.get(), view.content, options)) << "sequence " << view.snapshot->GetSequenceNumber();
    for (int i = 0; i < 60; ++i) {
      if (!view.content.contains(NumberedKey(i))) {
        EXPECT_EQ(GetOrText(db_.get(), NumberedKey(i), options), "<not found>");
      }
    }
  }
  for (const auto& view : frozen) db_->ReleaseSnapshot(view.snapshot);
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-snapshots"), 0u);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), now)); });
}

TEST_P(DbTest, SnapshotOfTheEmptyDatabaseStaysEmpty) {
  const Snapshot* snapshot = db_->GetSnapshot();
  ReadOptions options;
  options.snapshot = snapshot;
  ASSERT_OK(db_->Put({}, "k", "v"));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_TRUE(HoldsExactly(db_.get(), Pairs{}, options));
  EXPECT_EQ(GetOrText(db_.get(), "k", options), "<not found>");
  db_->ReleaseSnapshot(snapshot);
}

TEST_P(DbTest, SnapshotWorksInMultiGetAndPinnedGet) {
  ASSERT_OK(db_->Put({}, "a", "old"));
  const Snapshot* snapshot = db_->GetSnapshot();
  ASSERT_OK(db_->Put({}, "a", "new"));
  ASSERT_OK(db_->Put({}, "b", "new"));
  ReadOptions options;
  options.snapshot = snapshot;
  for (const auto& stage : {0, 1, 2}) {
    if (stage == 1) {
      ASSERT_OK(db_->Flush());
    }
    if (stage == 2) {
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    }
    std::vector<std::string> values;
    const auto statuses = db_->MultiGet(options, {"a", "b"}, &values);
    ASSERT_OK(statuses[0]);
    EXPECT_EQ(values[0], "old");
    EXPECT_TRUE(statuses[1].IsNotFound());
    PinnableSlice pin;
    ASSERT_OK(db_->Get(options, "a", &pin));
    EXPECT_EQ(pin.slice(), "old");
  }
  db_->ReleaseSnapshot(snapshot);
}

// Four tombstones and what they hide.
TEST_P(DbTest, AnIteratorEndsWhereItWouldPassTooManyEntries) {
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) ASSERT_OK(db_->Put({}, key, "v"));
  for (const char* key : {"b", "c", "d", "e"}) ASSERT_OK(db_->Delete({}, key));
  for (const uint64_t most : {uint64_t{0}, uint64_t{3}, uint64_t{100}}) {
    SCOPED_TRACE(most);
    ReadOptions options;
    options.max_skippable_internal_keys = most;
    auto iterator = db_->NewIterator(options);
    const auto expect_end = [&] {
      EXPECT_EQ(iterator->Valid(), most != 3);
      EXPECT_EQ(iterator->status().IsIncomplete(), most == 3) << iterator->status().ToString();
    };
    iterator->SeekToFirst();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->key(), "a");
    iterator->Next();
    expect_end();
    iterator->SeekToLast();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->key(), "f");
    iterator->Prev();
    expect_end();
    iterator->Seek("b");
    expect_end();
    iterator->SeekForPrev("e");
    expect_end();
    iterator->Seek("f");
    ASSERT_TRUE(iterator->Valid());
    EXPECT_OK(iterator->status());
  }
}

}  // namespace
}  // namespace braiddb::test
