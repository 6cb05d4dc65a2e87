// Replay without a database: what the log behind the boundary becomes, whatever a crash left of it. [CC-5] [CC-6]
#include <gtest/gtest.h>

#include "log/log_reader.h"
#include "recovery/replay.h"
#include "tests/support/level_store.h"
#include "tests/support/power_cut.h"

namespace braiddb::test {
namespace {

class ReplayTest : public testing::TestWithParam<uint32_t> {
 protected:
  Status Replay(uint64_t boundary, uint32_t threads, ReplayResult* result, bool may_lose_writes = false) {
    *result = ReplayResult();
    return ReplayLog({store_.regions(), store_.segments(), {&store_.order()}, boundary, 77, threads, {}, may_lose_writes},
                     result);
  }
  // The newest version of each key, tombstones too: they hide what older levels have.
  static std::vector<Version> NewestOf(const std::vector<Version>& versions) {
    std::vector<Version> newest;
    for (const Version& version : InEntryOrder(versions)) {
      if (newest.empty() || newest.back().key != version.key) newest.push_back(version);
    }
    return newest;
  }
  // The table has the newest of these versions, the others are dead.
  void ExpectReplayed(const ReplayResult& result, const std::vector<Version>& versions) {
    EXPECT_EQ(result.entries, versions.size());
    if (versions.empty()) {
      EXPECT_TRUE(result.tables.empty());
      return;
    }
    ASSERT_EQ(result.tables.size(), 1u);
    const std::vector<Version> newest = NewestOf(versions);
    EXPECT_EQ(store_.Dump(result.tables[0]->list), newest);
    EXPECT_TRUE(store_.IsWhole(result.tables[0]->list));
    EXPECT_EQ(result.tables[0]->entries, newest.size());
    EXPECT_EQ(result.tables[0]->id(), 77u);
    EXPECT_EQ(result.tables[0]->boundary(), result.last_sequence + 1);
    std::set<uint64_t> linked;
    for (const Version& version : newest) linked.insert(version.sequence);
    for (const Version& version : versions) {
      EXPECT_EQ(store_.IsDead(version.sequence), !linked.contains(version.sequence)) << testing::PrintToString(version);
    }
  }
  void WriteAll(const std::vector<Version>& versions) {
    for (const Version& version : versions) store_.Write(version);
  }
  std::vector<Segment*> Used() {
    std::vector<Segment*> used;
    store_.segments()->ForEachLog([&](Segment* segment) { used.push_back(segment); });
    return used;
  }

  // Replays until the power fails at this fence. Returns whether there is such a fence.
  bool ReplayUntil(uint64_t fence, PowerCut::Luck luck) {
    PowerCut cut(store_.regions(), fence);
    ReplayResult result;
    try {
      EXPECT_OK(Replay(1, 1, &result));
      return false;
    } catch (const PowerCut::Failed&) {
      cut.Lose(luck, &random_);
      return true;
    }
  }

  LevelStore store_{GetParam()};
  Random random_{71};
};

INSTANTIATE_TEST_SUITE_P(Regions, ReplayTest, testing::Values(1, 2));

TEST_P(ReplayTest, NothingToReplay) {
  ReplayResult result;
  ASSERT_OK(Replay(1, 4, &result));
  ExpectReplayed(result, {});
  EXPECT_EQ(result.last_sequence, 0u);
}

// In several segments, in no order of keys; then again, as after a crash in the middle of recovery.
TEST_P(ReplayTest, AnyNumberOfThreadsMakesTheSameTable) {
  uint64_t sequence = 1;
  std::vector<Version> versions = store_.DrawVersions(&random_, 20'000, 6000, 5, &sequence);
  for (size_t i = 0; i < 3000; ++i) versions[random_.Uniform(versions.size())].key = "samekey!";  // and all prefixes are equal
  WriteAll(versions);
  for (const uint32_t threads : {1u, 2u, 3u, 8u}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    store_.Reopen();
    EXPECT_GE(Used().size(), 2 * GetParam());
    ReplayResult result;
    ASSERT_OK(Replay(1, threads, &result));
    ExpectReplayed(result, versions);
    EXPECT_EQ(result.last_sequence, sequence - 1);
    uint64_t bytes = 0;
    std::set<Segment*> segments;
    for (const auto& extent : result.tables[0]->extents) {
      bytes += extent->end - extent->begin;
      segments.insert(extent->segment);
    }
    EXPECT_EQ(result.bytes, bytes);
    EXPECT_EQ(result.tables[0]->log_bytes, bytes);
    for (const Version& version : versions) {
      EXPECT_TRUE(segments.contains(store_.segments()->Find(store_.Find(version.sequence)))) << "a checkpoint will flush it";
    }
  }
}

// More threads than keys: some ranges are empty.
TEST_P(ReplayTest, FewKeys) {
  std::vector<Version> versions;
  for (uint64_t sequence = 1; sequence <= 7; ++sequence) {
    versions.push_back({NumberedKey(sequence % 3), sequence, sequence == 4, static_cast<uint32_t>(sequence % GetParam()), 3});
    store_.Write(versions.back());
    store_.Reopen();
    ReplayResult result;
    ASSERT_OK(Replay(1, 16, &result));
    ExpectReplayed(result, versions);
  }
}

TEST_P(ReplayTest, WhatIsBelowTheBoundaryIsNotTouched) {
  uint64_t sequence = 1;
  const std::vector<Version> before = store_.DrawVersions(&random_, 9000, 3000, 5, &sequence);
  WriteAll(before);
  const uint64_t sealed = Used().size() - GetParam();  // at least
  const uint64_t boundary = sequence;
  std::vector<uint64_t> pointers;
  for (const Version& version : before) {
    LogEntry* entry = store_.Resolve(store_.Find(version.sequence));
    for (uint32_t layer = 0; layer < entry->height(); ++layer) {
      StoreRelaxed(&entry->next[layer], 8 * random_.Uniform(1000));
      pointers.push_back(LoadRelaxed(&entry->next[layer]));
    }
  }
  const std::vector<Version> behind = store_.DrawVersions(&random_, 300, 3000, 5, &sequence);
  WriteAll(behind);
  store_.Reopen();
  ReplayResult result;
  ASSERT_OK(Replay(boundary, 2, &result));
  ExpectReplayed(result, behind);
  EXPECT_GT(sealed, 0u);
  EXPECT_LE(result.tables[0]->extents.size(), Used().size() - sealed) << "sealed segments below the boundary are not read";
  auto pointer = pointers.begin();
  for (const Version& version : before) {
    const LogEntry* entry = store_.Resolve(store_.Find(version.sequence));
    for (uint32_t layer = 0; layer < entry->height(); ++layer) ASSERT_EQ(LoadRelaxed(&entry->next[layer]), *pointer++);
  }
}

TEST_P(ReplayTest, NothingBehindTheBoundary) {
  uint64_t sequence = 1;
  WriteAll(store_.DrawVersions(&random_, 500, 300, 5, &sequence));
  store_.Reopen();
  ReplayResult result;
  ASSERT_OK(Replay(sequence, 2, &result));
  ExpectReplayed(result, {});
  EXPECT_EQ(result.last_sequence, sequence - 1) << "numbers go on from there";
}

// ---- What a crash leaves

// Every word of an entry but its pointers, lost in turn.
// A crash tears at most the last write of a segment: intact ones behind it show that it is damage. [CC-6]
TEST_P(ReplayTest, ATornEntryEndsItsSegment) {
  const Version torn = {"key of more than eight bytes", 2, false, 0, 2};
  std::vector<Version> others = {{"a", 1}};
  store_.Write(others[0]);
  const PmPtr pointer = store_.Write(torn);
  const PmPtr behind = store_.Write({"behind", 3});
  if (GetParam() > 1) {  // another region's segment is another writer's
    others.push_back({"b", 4, false, 1});
    store_.Write(others[1]);
  }
  store_.Reopen();
  const RegionImage before(store_.regions());
  // The last bytes of an entry may be padding.
  const uint64_t meaningful = 24 + 8ull * torn.height + torn.key.size() + LevelStore::ValueOf(torn).size();
  for (uint64_t word = 0; word < meaningful; word += 8) {
    if (word >= 24 && word < 24 + 8ull * torn.height) continue;
    before.Restore(store_.regions());
    store_.Reopen();
    *reinterpret_cast<uint64_t*>(store_.regions()->Resolve(pointer) + word) ^= 0x0101;
    ReplayResult result;
    EXPECT_TRUE(Replay(1, 2, &result).IsCorruption());

    // Where not every write was synced, the operating system may have lost this one and written the next.
    for (const bool may_lose_writes : {false, true}) {
      before.Restore(store_.regions());
      store_.Reopen();
      *reinterpret_cast<uint64_t*>(store_.regions()->Resolve(pointer) + word) ^= 0x0101;
      if (!may_lose_writes) memset(store_.regions()->Resolve(behind), 0, sizeof(LogEntry));
      ASSERT_OK(Replay(1, 2, &result, may_lose_writes));
      ExpectReplayed(result, others);
      EXPECT_EQ(result.last_sequence, GetParam() > 1 ? 4u : 1u);
    }
  }
}

// A number that is missing is a write that was not acknowledged; it does not hold up others.
TEST_P(ReplayTest, AGapInTheNumbers) {
  const std::vector<Version> versions = {{"a", 5}, {"b", 9}, {"a", 1000}};
  WriteAll(versions);
  store_.Reopen();
  ReplayResult result;
  ASSERT_OK(Replay(1, 1, &result));
  ExpectReplayed(result, versions);
  EXPECT_EQ(result.last_sequence, 1000u);
}

// [CC-6]
TEST_P(ReplayTest, ABatchIsThereWholeOrNotAtAll) {
  const std::vector<Version> first = {{"a", 1}, {"b", 2}};
  const std::vector<Version> batch = {{"b", 3, true}, {"c", 4, false, 0, 3}, {"b", 5}, {"d", 6, false, 0, 2}};
  store_.WriteBatch(first);
  const std::vector<PmPtr> pointers = store_.WriteBatch(batch);
  const PmPtr behind = store_.Write({"e", 7});
  store_.Reopen();
  const RegionImage before(store_.regions());
  for (size_t lost = 0; lost <= batch.size(); ++lost) {
    for (const bool and_what_follows : {false, true}) {
      SCOPED_TRACE("without entry " + std::to_string(lost) + (and_what_follows ? " and all that follow" : ""));
      before.Restore(store_.regions());
      store_.Reopen();
      for (size_t i = lost; i < (and_what_follows ? batch.size() : std::min(lost + 1, batch.size())); ++i) {
        memset(store_.regions()->Resolve(pointers[i]), 0, sizeof(LogEntry));
      }
      std::vector<Version> expected = first;
      if (lost == batch.size()) {
        expected.insert(expected.end(), batch.begin(), batch.end());
        expected.push_back({"e", 7});
      }
      ReplayResult result;
      if (lost < batch.size()) {
        EXPECT_TRUE(Replay(1, 2, &result).IsCorruption()) << "an intact write lies behind";
        memset(store_.regions()->Resolve(behind), 0, sizeof(LogEntry));
      }
      ASSERT_OK(Replay(1, 2, &result));
      ExpectReplayed(result, expected);
    }
  }
}

// The segment was used before: what is left there of its earlier use never counts.
TEST_P(ReplayTest, WhatIsLeftOfAnEarlierUseDoesNotCount) {
  uint64_t sequence = 1;
  std::vector<Version> old = store_.DrawVersions(&random_, 500, 500, 5, &sequence);
  for (Version& version : old) {
    version.region = 0;
    version.height = 1;
  }
  WriteAll(old);
  Segment* segment = store_.writer(0)->segment();
  store_.Reopen();
  ASSERT_EQ(Used().size(), 1u);
  segment = Used()[0];
  ASSERT_OK(store_.segments()->Release(segment));
  // The same key, size and number as what was there.
  Version first = old[0];
  store_.Write(first);
  ASSERT_EQ(store_.writer(0)->segment(), segment) << "the space is used again";
  store_.Reopen();
  ReplayResult result;
  ASSERT_OK(Replay(1, 2, &result));
  ExpectReplayed(result, {first});
}

TEST_P(ReplayTest, ASealedSegmentMustBeWhole) {
  WriteAll({{"a", 1}, {"b", 2}});
  store_.SealSegment(0);
  *store_.regions()->Resolve(store_.Find(2)) ^= 1;
  store_.Reopen();
  ReplayResult result;
  EXPECT_CODE(Replay(1, 2, &result), kCorruption);
  ASSERT_OK(Replay(3, 2, &result)) << "below the boundary it is not read";
}

// ---- Seals

TEST_P(ReplayTest, OpenSegmentsAreSealedWithWhatIsValid) {
  WriteAll({{"a", 1}, {"b", 2}, {"torn", 3}});
  memset(store_.regions()->Resolve(store_.Find(3)), 0, 24);
  if (GetParam() > 1) {  // opened, nothing in it
    Segment* empty = nullptr;
    ASSERT_OK(store_.segments()->Allocate(1, 1, &empty));
  }
  store_.Reopen();
  ASSERT_EQ(Used().size(), GetParam());
  ReplayResult result;
  ASSERT_OK(Replay(1, 2, &result));
  store_.Reopen();
  ASSERT_EQ(Used().size(), 1u) << "an empty one is free again";
  EXPECT_EQ(Used()[0]->state(), SegmentState::kSealed);
  EXPECT_EQ(Used()[0]->sealed_last_sequence(), 2u);
  const PmPtr last = store_.Find(2);
  EXPECT_EQ(Used()[0]->sealed_bytes(), Used()[0]->OffsetOf(last) + LogEntrySize(*store_.Resolve(last)));
}

// Power cuts at every fence of a replay, with every kind of loss: the next one makes the same table. [CC-5]
TEST_P(ReplayTest, APowerCutInReplayChangesNothing) {
  uint64_t sequence = 1;
  std::vector<Version> versions = store_.DrawVersions(&random_, 3000, 1000, 5, &sequence);
  WriteAll(versions);
  for (uint32_t region = 0; region < GetParam(); ++region) {  // several open segments
    for (int i = 0; i < 2; ++i) {
      LogWriter other;
      LogSlot slot;
      ASSERT_OK(other.Reserve(store_.segments(), region, 100, &slot));
    }
  }
  store_.Reopen();
  const RegionImage before(store_.regions());
  uint64_t fence = 0;
  for (bool is_there = true; is_there; ++fence) {
    for (const PowerCut::Luck luck : PowerCut::kEveryLuck) {
      SCOPED_TRACE("fence " + std::to_string(fence) + ", luck " + std::to_string(static_cast<int>(luck)));
      before.Restore(store_.regions());
      store_.Reopen();
      is_there = ReplayUntil(fence, luck);
      store_.Reopen();
      ReplayUntil(fence / 2, luck);
      store_.Reopen();
      ReplayResult result;
      ASSERT_OK(Replay(1, 2, &result));
      ExpectReplayed(result, versions);
    }
  }
  EXPECT_GT(fence, 2u * GetParam());
}

// Values that are arrays of {id, length, flags}, and lie behind the end of an open segment since an earlier use of it. Each
// record may begin an entry that reaches far.
TEST_P(ReplayTest, BytesThatLookLikeEntriesAreNotReadAgainAndAgain) {
  store_.Write({"key", 1, false, 0, 1});
  ASSERT_EQ(Used().size(), 1u);
  Segment* const segment = Used()[0];
  const uint64_t end = segment->used_bytes.load() + 7;
  constexpr uint64_t kLength = 100'000;
  uint64_t imitations = 0;
  for (uint64_t at = (end + kCacheLine) / kCacheLine * kCacheLine; at + sizeof(LogEntry) < segment->capacity(); at += 24) {
    auto* const entry = reinterpret_cast<LogEntry*>(segment->data() + at);
    entry->checksum = 1;
    entry->tag = LogEntry::MakeTag(1000 + at, EntryType::kPut, 0);
    entry->value_size = kLength;
    entry->shape = LogEntry::MakeShape(8, 1, 0);
    ++imitations;
  }
  const uint64_t capacity = segment->capacity();
  store_.Reopen();
  ReplayResult result;
  ASSERT_OK(Replay(1, 1, &result));
  EXPECT_EQ(result.last_sequence, 1u);
  EXPECT_GT(imitations * kLength, 1000 * capacity);
  EXPECT_LE(result.searched, 4 * capacity);
}

// A segment goes from writer to writer, each of which seals the one that it had. Power cuts at every fence: what was acknowledged
// is replayed, and of the write under way all or nothing. [CC-65]
TEST_P(ReplayTest, APowerCutWhereSegmentsGoFromWriterToWriterLosesNothing) {
  constexpr uint64_t kWrites = 9;
  constexpr uint64_t kWriters = 3;
  std::vector<Version> versions;
  for (uint64_t i = 1; i <= kWrites; ++i)
    versions.push_back({"key" + std::to_string(i), i, false, 0, 1 + static_cast<uint32_t>(i % 3)});
  const auto write = [this](LogWriter* writer, const Version& version) {
    LogSlot slot;
    const std::string value(version.sequence * 10, 'v');
    ASSERT_OK(writer->Reserve(store_.segments(), 0, LogEntrySize(version.height, version.key.size(), value.size()), &slot));
    LogWriter::WriteEntry(slot, slot.offset, version.sequence, 0, {EntryType::kPut, version.key, value, version.height});
    ASSERT_TRUE(store_.regions()->persistence()->Persist(slot.segment->data() + slot.offset, slot.bytes));
    ASSERT_OK(writer->Commit(store_.segments(), slot, 1, version.sequence));
  };
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> ends;  // by where a segment begins: its bytes and its last number
  {
    LogWriter writers[kWriters];
    for (uint64_t i = 0; i < kWriters; ++i) write(&writers[i], versions[i]);
    for (const Segment* segment : Used())
      ends[segment->ptr(0).raw()] = {segment->used_bytes.load(), segment->last_sequence.load()};
  }
  store_.Reopen();
  const RegionImage before(store_.regions());
  uint64_t fence = 0;
  for (bool is_there = true; is_there; ++fence) {
    for (const PowerCut::Luck luck : PowerCut::kEveryLuck) {
      SCOPED_TRACE("fence " + std::to_string(fence) + ", luck " + std::to_string(static_cast<int>(luck)));
      before.Restore(store_.regions());
      store_.Reopen();
      LogWriter writers[kWriters];
      ASSERT_EQ(Used().size(), kWriters);
      for (uint64_t i = 0; i < kWriters; ++i) {
        Segment* const segment = Used()[i];
        const auto [bytes, sequence] = ends.at(segment->ptr(0).raw());
        segment->used_bytes.store(bytes);
        segment->last_sequence.store(sequence);
        ASSERT_OK(writers[i].Adopt(store_.segments(), segment));
      }
      PowerCut cut(store_.regions(), fence);
      uint64_t acknowledged = kWriters;
      is_there = false;
      try {
        for (uint64_t taker = 1; acknowledged < kWrites; ++taker) {
          LogWriter* const from = &writers[(taker - 1) % kWriters];
          LogWriter* const to = &writers[taker % kWriters];
          Segment* const segment = from->segment();
          ASSERT_TRUE(segment != nullptr && from->Disown(segment));
          ASSERT_OK(to->Adopt(store_.segments(), segment));
          for (int i = 0; i < 2; ++i) {
            write(to, versions[acknowledged]);
            ++acknowledged;
            if (acknowledged == kWrites) break;
          }
        }
      } catch (const PowerCut::Failed&) {
        is_there = true;
      }
      cut.Lose(luck, &random_);
      store_.Reopen();
      ReplayResult result;
      ASSERT_OK(Replay(1, 2, &result));
      ASSERT_GE(result.last_sequence, acknowledged);
      ASSERT_LE(result.last_sequence, acknowledged + (is_there ? 1 : 0));
      EXPECT_EQ(result.entries, result.last_sequence);
      uint64_t linked = 0;  // keys are in the order of their numbers
      for (PmPtr p(*result.tables[0]->list.head(0)); p; p = store_.Resolve(p)->Next(0)) {
        ASSERT_EQ(store_.Resolve(p)->sequence(), ++linked);
      }
      EXPECT_EQ(linked, result.last_sequence);
    }
  }
  EXPECT_GT(fence, kWrites - kWriters);
}

}  // namespace
}  // namespace braiddb::test
