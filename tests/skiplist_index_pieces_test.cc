// Versions of an index share pieces: each is right, also when others were made of it or are gone, and a merge costs what changed.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "skiplist/tall_index.h"
#include "tests/support/key_kinds.h"
#include "tests/support/level_store.h"
#include "tests/support/same_index.h"

namespace braiddb::test {
namespace {

constexpr uint64_t kBytes = 1 << 24;

// An index of which every node comes by changes, and what it must have. Its list is empty.
class IndexPiecesTest : public testing::TestWithParam<std::tuple<uint32_t, size_t>> {
 protected:
  enum State : uint8_t { kOut, kFirst, kTwin };
  static constexpr uint64_t kEntries = 6000;
  static constexpr uint64_t kRounds = 60 / kSlowdown + 10;

  struct Region {
    // Of each number an entry, and one with the same key and height that can take its place.
    std::vector<const LogEntry*> entries[2];
    std::vector<State> states;
  };
  struct Kept {
    std::unique_ptr<TallIndex> index;
    std::vector<State> states[2];
  };

  IndexPiecesTest() : empty_(store_.regions(), &store_.order()) {
    const uint32_t regions = std::get<0>(GetParam());
    std::vector<Version> versions;
    for (uint64_t i = 0; i < kEntries; ++i) {
      const std::string key = keys_.draw(&random_);
      const auto region = static_cast<uint32_t>(random_.Uniform(regions));
      const uint32_t height = 2 + random_.OneIn(4);
      for (uint64_t twin = 0; twin < 2; ++twin) versions.push_back({key, 2 * i + twin + 2, false, region, height});
    }
    table_ = store_.MakeTable(versions);
    for (const LogEntry* entry = table_->list.First(); entry != nullptr; entry = table_->list.Next(entry)) {
      const uint32_t region = versions[entry->sequence() - 2].region;
      regions_[region].entries[entry->sequence() % 2].push_back(entry);
    }
    for (Region& region : regions_) region.states.resize(region.entries[0].size());
    for (uint32_t region = 0; region < regions; ++region) empty_.SetHead(region, heads_[region]);
    heap_ = SharedHeap::Create();
    mapped_ = SharedMemory::Attach(heap_->memory().OpenToRead(), false, 1);
    index_ = std::make_unique<TallIndex>(empty_, 1, kBytes, nullptr, heap_.get());
  }
  // An index of another process, which maps the memory elsewhere.
  TallIndex Attached(const TallIndex& index) const { return TallIndex::Attach(empty_, *mapped_, index.Shared()); }

  // Nodes with these numbers: each becomes another state. From the last to the first, as a merge does.
  void Note(IndexChanges* changes, uint32_t region, uint64_t begin, uint64_t end, uint64_t one_in) {
    Region& of = regions_[region];
    const std::vector<State> before = of.states;
    for (uint64_t i = std::min<uint64_t>(end, before.size()); i-- > begin;) {
      if (!random_.OneIn(one_in)) continue;
      const LogEntry* const entry = of.entries[before[i] == kTwin][i];
      ++changed_;
      if (before[i] == kOut) {
        const uint64_t twin = random_.Uniform(2);
        of.states[i] = twin == 1 ? kTwin : kFirst;
        const LogEntry* const added = of.entries[twin][i];
        changes->Add(region, added, store_.regions()->Find(added), store_.order().Prefix(added->key()),
                     store_.order().PrefixIsWhole(added->key()), [&](uint32_t) { return NodeBefore(of, before, i); });
      } else if (random_.OneIn(removes_ ? 10 : 2)) {
        of.states[i] = before[i] == kTwin ? kFirst : kTwin;
        changes->Replace(region, entry, store_.regions()->Find(of.entries[of.states[i] == kTwin][i]));
      } else {
        of.states[i] = kOut;
        changes->Remove(region, entry);
      }
    }
  }
  static const LogEntry* NodeBefore(const Region& of, const std::vector<State>& states, uint64_t i) {
    while (i-- > 0) {
      if (states[i] != kOut) return of.entries[states[i] == kTwin][i];
    }
    return nullptr;
  }
  // A merge: some here and there, or many in one place, or at the ends, or all.
  void Draw(IndexChanges* changes, uint32_t region) {
    const uint64_t size = regions_[region].states.size();
    const uint64_t at = random_.Uniform(size);
    removes_ = random_.OneIn(3);
    switch (random_.Uniform(8)) {
      case 0:
        return Note(changes, region, 0, size, 300);
      case 1:
        return Note(changes, region, 0, size, 10);
      case 2:
        return Note(changes, region, at, at + 1, 1);
      case 3:
        return Note(changes, region, at, at + 1500, random_.Range(1, 4));
      case 4:
        return Note(changes, region, 0, random_.Range(1, 40), 1);
      case 5:
        return Note(changes, region, size - random_.Range(1, 40), size, 1);
      case 6:
        return random_.OneIn(4) ? Note(changes, region, 0, size, 1) : Note(changes, region, at, at + 30, 1);
      default:
        return;
    }
  }

  void Expect(const TallIndex& index, uint32_t region, const std::vector<State>& states) {
    const Region& of = regions_[region];
    std::vector<const LogEntry*> expected;
    for (uint64_t i = 0; i < states.size(); ++i) {
      if (states[i] != kOut) expected.push_back(of.entries[states[i] == kTwin][i]);
    }
    const uint32_t reader = Reader(index, region);
    if (reader == kNoReader) return;
    const IndexTree& nodes = index.NodesOf(reader);
    ASSERT_EQ(nodes.nodes(), expected.size());
    uint64_t place = nodes.Normalize(0);
    std::vector<uint64_t> places;
    for (size_t i = 0; i < expected.size(); ++i, place = nodes.Next(place)) {
      ASSERT_LT(place, nodes.End());
      ASSERT_EQ(nodes.EntryAt(place), expected[i]) << i;
      ASSERT_EQ(nodes.PrefixAt(place), store_.order().Prefix(expected[i]->key()));
      ASSERT_EQ(index.HeightAt(reader, place), expected[i]->height());
      places.push_back(place);
    }
    ASSERT_EQ(place, nodes.End());
    ExpectBits(nodes);
    for (size_t i = expected.size(); i-- > 0;) ASSERT_EQ(place = nodes.Prev(place), places[i]);
    places.push_back(nodes.End());
    for (int i = 0; i < 60; ++i) ExpectFinds(index, reader, of, expected, places);
    EXPECT_LE(nodes.bytes(), kBytes);
    // The smallest node that a piece may have but the last.
    EXPECT_LE(nodes.pieces(), nodes.nodes() / IndexTree::kMinNodes + 1);
  }
  // Each piece with neighbors of one prefix has their bit positions, unless two of them differ too far behind.
  static void ExpectBits(const IndexTree& nodes) {
    for (uint64_t begin = nodes.Normalize(0); begin < nodes.End();) {
      const uint64_t end = nodes.EndOfPiece(begin);
      const uint16_t* const bits = nodes.BitsAt(begin);
      bool has_alike = false, fits = true;
      for (uint64_t place = begin + 1; place < end; ++place) {
        if (nodes.PrefixAt(place) != nodes.PrefixAt(place - 1)) continue;
        uint16_t bit = 0;
        fits &= BitTree::Differ(nodes.EntryAt(place - 1)->key(), nodes.EntryAt(place)->key(), &bit);
        has_alike |= bit != 0;
        ASSERT_TRUE(bits == nullptr || bits[place - begin] == bit) << place;
      }
      ASSERT_EQ(bits != nullptr, has_alike && fits);
      begin = nodes.Normalize(end);
    }
  }
  void ExpectFinds(const TallIndex& index, uint32_t reader, const Region& of, const std::vector<const LogEntry*>& expected,
                   const std::vector<uint64_t>& places) {
    const LogEntry& one = *of.entries[random_.Uniform(2)][random_.Uniform(of.states.size())];
    const SearchKey target(store_.order(), one.key(), one.sequence() + random_.Uniform(3) - 1);
    const auto found = std::partition_point(expected.begin(), expected.end(), [&](const LogEntry* entry) {
      return CompareEntry(store_.order(), *entry, target) < 0;
    });
    const uint64_t place = places[static_cast<size_t>(found - expected.begin())];
    ASSERT_EQ(index.Find(reader, target), place);
    const auto first = std::partition_point(expected.begin(), expected.end(), [&](const LogEntry* entry) {
      return store_.order().Prefix(entry->key()) < target.prefix;
    });
    const auto number = static_cast<size_t>(first - expected.begin());
    ASSERT_EQ(index.FindPrefix(reader, target.prefix), places[number]);
    ASSERT_EQ(index.FindPrefixNear(reader, places[random_.Uniform(number + 1)], target.prefix), places[number]);
    ASSERT_EQ(index.FindPrefixNear(reader, places[number < 12 ? 0 : number - 12], target.prefix), places[number]);
  }
  // Who reads the region's own tree; a small region's readers have another's.
  static constexpr uint32_t kNoReader = UINT32_MAX;
  uint32_t Reader(const TallIndex& index, uint32_t region) const {
    if (index.size(region) == 0) return region;
    const LogEntry* const first = index.At(region, 0);
    return store_.regions()->ToPmPtr(region, first).region() == region && IsOf(first, region) ? region : kNoReader;
  }
  bool IsOf(const LogEntry* entry, uint32_t region) const {
    const Region& of = regions_[region];
    return std::find(of.entries[0].begin(), of.entries[0].end(), entry) != of.entries[0].end() ||
           std::find(of.entries[1].begin(), of.entries[1].end(), entry) != of.entries[1].end();
  }

  LevelStore store_{std::get<0>(GetParam())};
  const KeyKind& keys_ = KindAt(std::get<1>(GetParam()));
  Random random_{11};
  std::shared_ptr<PmTable> table_;
  Region regions_[2];
  uint64_t heads_[2][kMaxHeight] = {};
  BraidedList empty_;
  std::unique_ptr<SharedHeap> heap_;
  std::unique_ptr<SharedMemory> mapped_;
  std::unique_ptr<TallIndex> index_;
  bool removes_ = false;
  uint64_t changed_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Lists, IndexPiecesTest, testing::Combine(testing::Values(1, 2), testing::Range<size_t>(0, kAllKinds)),
                         [](const auto& suite) {
                           return std::string(KindAt(std::get<1>(suite.param)).name) + std::to_string(std::get<0>(suite.param));
                         });

TEST_P(IndexPiecesTest, EachVersionStaysWhatItWas) {
  const uint32_t regions = std::get<0>(GetParam());
  std::deque<Kept> kept;
  for (uint64_t round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    IndexChanges changes = index_->NewChanges();
    ASSERT_TRUE(changes.Of(0).is_known());
    Kept old;
    changed_ = 0;
    for (uint32_t region = 0; region < regions; ++region) {
      old.states[region] = regions_[region].states;
      if (round == 0) {
        Note(&changes, region, 0, kEntries, 2);
      } else {
        Draw(&changes, region);
      }
    }
    auto index = std::make_unique<TallIndex>(*index_, changes, kEntries, kBytes);
    for (uint32_t region = 0; region < regions; ++region) {
      ASSERT_NO_FATAL_FAILURE(Expect(*index, region, regions_[region].states));
      ASSERT_NO_FATAL_FAILURE(Expect(Attached(*index), region, regions_[region].states));
    }
    EXPECT_LE(index->written_nodes(), 2 * IndexTree::kPieceNodes * changed_);
    old.index = std::exchange(index_, std::move(index));
    kept.push_back(std::move(old));
    if (kept.size() > 5) kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(random_.Uniform(kept.size())));
    for (const Kept& one : kept) {
      for (uint32_t region = 0; region < regions; ++region) {
        ASSERT_NO_FATAL_FAILURE(Expect(*one.index, region, one.states[region]));
        ASSERT_NO_FATAL_FAILURE(Expect(Attached(*one.index), region, one.states[region]));
      }
    }
  }
}

// ---- Other processes

TEST_P(IndexPiecesTest, ACopyInASharedHeapIsTheSameIndex) {
  const uint32_t regions = std::get<0>(GetParam());
  auto index = std::make_unique<TallIndex>(empty_, 1, kBytes);
  const auto change = [&](uint64_t one_in) {
    IndexChanges changes = index->NewChanges();
    for (uint32_t region = 0; region < regions; ++region) Note(&changes, region, 0, kEntries, one_in);
    index = std::make_unique<TallIndex>(*index, changes, kEntries, kBytes);
  };
  change(2);
  EXPECT_TRUE(index->Shared().empty());
  EXPECT_FALSE(index->IsShared());
  std::optional<TallIndex> copy = index->CopyTo(heap_.get());
  ASSERT_TRUE(copy.has_value());
  index = std::make_unique<TallIndex>(std::move(*copy));
  EXPECT_TRUE(index->IsShared());
  for (int round = 0; round < 3; ++round, change(5)) {  // later versions are shared, too
    const TallIndex attached = Attached(*index);
    for (uint32_t region = 0; region < regions; ++region) {
      ASSERT_NO_FATAL_FAILURE(Expect(*index, region, regions_[region].states));
      ASSERT_NO_FATAL_FAILURE(Expect(attached, region, regions_[region].states));
    }
    EXPECT_TRUE(HaveSameNodes(*index, attached, regions));
  }
}

// A reader that has expired may find anything in the memory of an index. It must come to an end, inside that memory.
TEST_P(IndexPiecesTest, MemoryInOtherUseIsRead) {
  IndexChanges changes = index_->NewChanges();
  for (uint32_t region = 0; region < std::get<0>(GetParam()); ++region) Note(&changes, region, 0, kEntries, 2);
  const TallIndex index(*index_, changes, kEntries, kBytes);
  const std::vector<uint64_t> words = index.Shared();
  const TallIndex before = Attached(index);
  uint64_t found = 0;
  const auto search = [&](const TallIndex& attached) {
    for (uint32_t region = 0; region < std::get<0>(GetParam()); ++region) {
      const IndexTree& nodes = attached.NodesOf(region);
      for (int i = 0; i < 20; ++i) {
        const std::string key = keys_.draw(&random_);
        const SearchKey target(store_.order(), key, random_.Uniform(kEntries));
        const uint64_t place = attached.Find(region, target);
        ASSERT_LE(place, nodes.End());
        if (place < nodes.End()) found += attached.At(region, place)->key().size();
      }
      uint64_t steps = 0;
      for (IndexTree::Iterator at(&nodes); steps < 2 * kEntries; ++steps) {
        if (steps == 0) at.Set(nodes.Normalize(0));
        if (at.is_out() || !at.Next()) break;
        found += at.entry()->height();
      }
      ASSERT_LE(steps, nodes.nodes());
    }
  };
  search(before);
  constexpr uint64_t kUsed = 2 << 20;
  for (uint64_t round = 0; round < 100 / kSlowdown; ++round) {
    for (uint64_t i = 0; i < 64; ++i) {
      const uint64_t offset = 4096 + random_.Uniform(kUsed / 8) * 8;
      const uint64_t word = random_.OneIn(2) ? random_.Next() : random_.Uniform(4096);
      std::memcpy(heap_->At(offset), &word, sizeof(word));
    }
    ASSERT_NO_FATAL_FAILURE(search(before));
    std::vector<uint64_t> others = words;
    if (random_.OneIn(2)) others[random_.Uniform(others.size())] = random_.OneIn(2) ? random_.Next() : random_.Uniform(kUsed);
    ASSERT_NO_FATAL_FAILURE(search(TallIndex::Attach(empty_, *mapped_, others)));
  }
  EXPECT_GT(found, 0u);
}

// ---- What a merge costs

class IndexCostTest : public testing::Test {
 protected:
  static constexpr uint64_t kNodes = 200'000 / kSlowdown;

  // Keys 10, 20, … in the list, and others between.
  IndexCostTest() {
    for (uint64_t i = 0; i < kNodes; ++i) listed_.push_back({EightByteKey(10 * i + 10), i + 1, false, 0, RandomHeight(i * 7919)});
    table_ = store_.MakeTable(listed_);
    index_ = std::make_unique<TallIndex>(table_->list, kNodes, kBytes);
  }
  const PieceHeap& heap() const { return *index_->NodesOf(0).heap(); }
  // One node more, behind the node `number` of the list.
  void Add(IndexChanges* changes, uint64_t number) {
    const LogEntry* const entry = store_.Resolve(store_.Write({EightByteKey(10 * number + 15), ++sequence_, false, 0, 1}));
    const LogEntry* const before = store_.Resolve(store_.Find(number + 1));
    changes->Add(0, entry, store_.regions()->Find(entry), store_.order().Prefix(entry->key()), true,
                 [before](uint32_t) { return before; });
  }

  LevelStore store_{1};
  std::vector<Version> listed_;
  std::shared_ptr<PmTable> table_;
  std::unique_ptr<TallIndex> index_;
  uint64_t sequence_ = uint64_t{1} << 30;
};

TEST_F(IndexCostTest, AMergeCopiesThePiecesThatItChanges) {
  constexpr uint64_t kChanges = 64 / kSlowdown;
  EXPECT_EQ(index_->written_nodes(), kNodes);
  EXPECT_LE(index_->bytes(), kNodes * 69 / 4);  // 17.25 each
  IndexChanges changes = index_->NewChanges();
  for (uint64_t i = kChanges; i-- > 0;) Add(&changes, kNodes / kChanges * i + 5);
  const uint64_t used = heap().used_bytes();
  const TallIndex changed(*index_, changes, kNodes, kBytes);
  EXPECT_EQ(changed.size(0), kNodes + kChanges);
  EXPECT_TRUE(changed.HasEveryNode(0));
  EXPECT_LE(changed.written_nodes(), kChanges * (IndexTree::kPieceNodes + 1));
  EXPECT_LE(heap().used_bytes() - used, kChanges * (18u << 10));
  EXPECT_LE(changed.bytes(), (kNodes + kChanges) * 70 / 4);
}

TEST_F(IndexCostTest, OfOneKeyNoSecondIndexStands) {
  const uint64_t before = heap().mapped_bytes();
  const uint64_t used = heap().used_bytes();
  IndexChanges changes = index_->NewChanges();
  Add(&changes, kNodes / 2);
  auto changed = std::make_unique<TallIndex>(*index_, changes, kNodes, kBytes);
  EXPECT_EQ(changed->size(0), kNodes + 1);
  EXPECT_LE(changed->written_nodes(), IndexTree::kPieceNodes + 1);
  EXPECT_LE(heap().used_bytes(), used + (20 << 10));
  EXPECT_LE(heap().mapped_bytes(), before + before / 20 + (kSlowdown > 1 ? 64 << 10 : 0));
  // What only the index before had is free.
  index_ = std::move(changed);
  EXPECT_LE(heap().used_bytes(), used + (1 << 10));
}

// A hole in the places stands for the node behind it, which is not alike with itself.
TEST_F(IndexCostTest, HolesAreNotKeysThatBeginAlike) {
  std::vector<Version> spread;
  for (uint64_t i = 0; i < kNodes; ++i) spread.push_back({PatternedValue(i, 8), ++sequence_, false, 0, 1});
  const auto table = store_.MakeTable(spread);
  const TallIndex walked(table->list, kNodes, kBytes);
  ASSERT_EQ(walked.size(0), kNodes);
  // Of each second piece three quarters are removed. The others are shared, so the rest of each stays a piece.
  IndexChanges changes = walked.NewChanges();
  for (uint64_t place = kNodes; place-- > 0;) {
    const bool is_chosen = IndexTree::PieceOf(place) % 2 == 0 && place % IndexTree::kPieceNodes < IndexTree::kPieceNodes * 3 / 4;
    if (is_chosen) changes.Remove(0, walked.At(0, place));
  }
  const TallIndex holes(walked, changes, kNodes, kBytes);
  ASSERT_LT(holes.size(0), kNodes * 2 / 3);
  EXPECT_EQ(holes.bytes(), holes.NodesOf(0).bytes());  // no AlikeSteps
}

// Keys that begin alike have bit positions as long as these fit. Then a walk makes an index without them; the list of this test
// lacks what was added, so the walk finds less.
TEST_F(IndexCostTest, BitPositionsKeepTheBound) {
  constexpr uint64_t kAlike = 24'000;
  constexpr uint64_t kStep = 32;
  std::vector<Version> alike;
  for (uint64_t i = 0; i < kAlike; ++i) alike.push_back({"user:" + NumberedKey(i), ++sequence_, false, 0, 1});
  const auto table = store_.MakeTable(alike);
  const uint64_t bound = TallIndex(table->list, kAlike, kBytes).bytes() * 3 / 4;
  uint64_t count = kAlike / 2;
  const auto half = store_.MakeTable({alike.begin(), alike.begin() + static_cast<std::ptrdiff_t>(count)});
  auto index = std::make_unique<TallIndex>(half->list, count, bound);
  ASSERT_EQ(index->size(0), count);
  ASSERT_TRUE(index->NodesOf(0).has_bits());
  for (; index->size(0) == count; count += kStep) {
    ASSERT_LE(index->bytes(), bound) << count;
    ASSERT_LT(count, kAlike);
    IndexChanges changes = index->NewChanges();
    const LogEntry* const last = index->At(0, index->NodesOf(0).Prev(index->NodesOf(0).End()));
    for (uint64_t i = kStep; i-- > 0;) {
      const LogEntry* const entry = store_.Resolve(store_.Find(alike[count + i].sequence));
      changes.Add(0, entry, store_.regions()->Find(entry), store_.order().Prefix(entry->key()), false,
                  [last](uint32_t) { return last; });
    }
    index = std::make_unique<TallIndex>(*index, changes, count + kStep, bound);
  }
  EXPECT_GT(count, kAlike * 5 / 8);
}

// Small merges for long: what is freed is used again, and pieces stay full enough.
TEST_F(IndexCostTest, ManySmallMergesWasteLittle) {
  std::vector<bool> added(kNodes);
  Random random(29);
  for (int round = 0; round < 1500 / static_cast<int>(kSlowdown); ++round) {
    const uint64_t number = random.Uniform(kNodes);
    if (added[number]) continue;
    added[number] = true;
    IndexChanges changes = index_->NewChanges();
    Add(&changes, number);
    index_ = std::make_unique<TallIndex>(*index_, changes, kNodes, kBytes);
    ASSERT_LE(index_->written_nodes(), 2 * IndexTree::kPieceNodes);
  }
  // The keys begin alike, so half a byte for each is in AlikeSteps.
  EXPECT_LE(index_->bytes(), index_->size(0) * 73 / 4);
  EXPECT_LE(heap().mapped_bytes(), heap().used_bytes() * 5 / 4);
}

}  // namespace
}  // namespace braiddb::test
