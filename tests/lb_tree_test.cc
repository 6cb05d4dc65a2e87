// LB+-Tree alone: it is a map, with every shape of leaf and of keys; lines that operations write; what an open refuses.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "index/link.h"
#include "pmem/write_counter.h"
#include "tests/support/lb_tree_store.h"
#include "util/random.h"

namespace braiddb::test {
namespace {

using Model = std::map<uint64_t, uint64_t>;

std::vector<LbEntry> EntriesOf(const Model& model) {
  std::vector<LbEntry> entries;
  for (const auto& [key, value] : model) entries.push_back({key, value});
  return entries;
}

// Lines and fences of one call.
template <class Call>
PmWrites Count(const LbTreeStore& store, const Call& call) {
  WriteCounter counter;
  store.regions()->persistence()->SetObserver(&counter);
  call();
  store.regions()->persistence()->SetObserver(nullptr);
  return counter.writes();
}

// ---- A map

struct Shape {
  uint32_t regions;
  uint32_t leaf_bytes;
  bool move_entries;
};

class LbTreeMapTest : public testing::TestWithParam<Shape> {
 protected:
  void Check(const Model& model) {
    const std::vector<LbEntry> expected = EntriesOf(model);
    ASSERT_EQ(store_.Forward(), expected);
    ASSERT_EQ(store_.Backward(), expected);
    for (const LbEntry& entry : expected) {
      uint64_t value = 0;
      ASSERT_TRUE(store_.tree()->Get(entry.key, &value)) << entry.key;
      ASSERT_EQ(value, entry.value);
    }
  }
  // `steps` random operations on keys that `draw` gives. `removals`: their percentage.
  template <class Draw>
  void Run(uint64_t steps, uint64_t removals, const Draw& draw, Model* model) {
    for (uint64_t i = 0; i < steps; ++i) {
      const uint64_t key = draw(i);
      const auto found = model->find(key);
      uint64_t value = random_.Next();
      if (random_.Uniform(100) < removals) {
        ASSERT_EQ(store_.tree()->Remove(key).ok(), found != model->end());
        if (found != model->end()) model->erase(found);
      } else if (random_.OneIn(3)) {
        ASSERT_EQ(store_.tree()->Update(key, value).ok(), found != model->end());
        if (found != model->end()) found->second = value;
      } else {
        ASSERT_OK(store_.tree()->Put(key, value));
        (*model)[key] = value;
      }
      const uint64_t other = draw(random_.Uniform(i + 1));
      const auto expected = model->find(other);
      ASSERT_EQ(store_.tree()->Get(other, &value), expected != model->end());
      if (expected != model->end()) {
        ASSERT_EQ(value, expected->second);
      }
    }
  }

  Random random_{7};
  LbTreeStore store_{GetParam().regions, GetParam().leaf_bytes, GetParam().move_entries};
};

INSTANTIATE_TEST_SUITE_P(Shapes, LbTreeMapTest,
                         testing::Values(Shape{1, 256, true}, Shape{2, 256, false}, Shape{2, 512, true}, Shape{1, 768, true},
                                         Shape{3, 1024, false}, Shape{1, 4096, true}),
                         [](const auto& suite) {
                           return std::to_string(suite.param.leaf_bytes) + (suite.param.move_entries ? "Moving" : "Staying");
                         });

TEST_P(LbTreeMapTest, RandomKeys) {
  Model model;
  const auto draw = [&](uint64_t) { return Mix64(random_.Uniform(8000)); };
  for (const uint64_t removals : {5, 90, 40}) {
    Run(20000 / kSlowdown, removals, draw, &model);
    Check(model);
    store_.Reopen();
    Check(model);
  }
}

TEST_P(LbTreeMapTest, KeysInOrder) {
  Model model;
  const uint64_t count = 20000 / kSlowdown;
  Run(
      count, 0, [](uint64_t i) { return i; }, &model);
  Run(
      count, 0, [](uint64_t i) { return UINT64_MAX - i; }, &model);
  Run(
      count, 10, [&](uint64_t i) { return (uint64_t{1} << 60) + i * 3 % count; }, &model);
  Check(model);
  store_.Reopen();
  Check(model);
  // A queue: leaves at the front become empty.
  for (uint64_t i = 0; i < count; ++i) {
    ASSERT_OK(store_.tree()->Put(count + i, i));
    model[count + i] = i;
    if (model.erase(i) != 0) {
      ASSERT_OK(store_.tree()->Remove(i));
    }
  }
  Check(model);
  EXPECT_GT(store_.tree()->GetStats().removals, 0u);
}

TEST_P(LbTreeMapTest, EverythingGoesAndComesBack) {
  Model model;
  for (uint64_t round = 0; round < 3; ++round) {
    const uint64_t count = 12000;
    for (uint64_t i = 0; i < count; ++i) ASSERT_OK(store_.tree()->Put(Mix64(i), i));
    const LbTree::Stats full = store_.tree()->GetStats();
    EXPECT_GT(full.inner.levels, 1u);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t key = round == 0 ? Mix64(i) : round == 1 ? store_.Forward().front().key : store_.Forward().back().key;
      ASSERT_OK(store_.tree()->Remove(key));
      if (round > 0 && i > 300) break;
    }
    for (const LbEntry& entry : store_.Forward()) ASSERT_OK(store_.tree()->Remove(entry.key));
    const LbTree::Stats empty = store_.tree()->GetStats();
    EXPECT_EQ(empty.inner.levels, 1u);
    EXPECT_GT(empty.free_leaves, full.free_leaves);
    Check(model);
    uint64_t value = 0;
    EXPECT_FALSE(store_.tree()->Get(5, &value));
    EXPECT_CODE(store_.tree()->Update(5, 1), kNotFound);
    EXPECT_CODE(store_.tree()->Remove(5), kNotFound);
    store_.Reopen();
    // All blocks but that of the one leaf.
    EXPECT_EQ(store_.tree()->GetStats().free_leaves, empty.free_leaves);
  }
  uint64_t segments = 0;
  store_.segments()->ForEachIndex([&](Segment*) { ++segments; });
  EXPECT_LE(segments, 4 * GetParam().regions);
}

TEST_P(LbTreeMapTest, BulkLoads) {
  for (const double fill : {0.01, 0.7, 1.0}) {
    SCOPED_TRACE(fill);
    for (const LbEntry& entry : store_.Forward()) ASSERT_OK(store_.tree()->Remove(entry.key));
    Model model;
    for (uint64_t i = 0; i < 5000; ++i) model[Mix64(i)] = i;
    ASSERT_OK(store_.tree()->BulkLoad({}, fill, 2));
    ASSERT_OK(store_.tree()->BulkLoad(EntriesOf(model), fill, 2));
    EXPECT_CODE(store_.tree()->BulkLoad(EntriesOf(model), fill, 1), kInvalidArgument);
    Check(model);
    store_.Reopen();
    Check(model);
    Run(
        5000 / kSlowdown, 10, [&](uint64_t) { return Mix64(random_.Uniform(12000)); }, &model);
    Check(model);
  }
}

// Keys at the ends of the range of keys, and next to one another.
TEST_P(LbTreeMapTest, ExtremeKeys) {
  Model model;
  for (uint64_t i = 0; i < 400; ++i) {
    for (const uint64_t key : {i, UINT64_MAX - i, (uint64_t{1} << 63) + i, (uint64_t{1} << 63) - i, i << 56}) {
      ASSERT_OK(store_.tree()->Put(key, key ^ i));
      model[key] = key ^ i;
    }
  }
  Check(model);
  store_.Reopen();
  Check(model);
}

// ---- Lines

// The paper: an insert into line 0 writes one line; another insert makes room there, and so do splits and bulk loads.
TEST(LbTreeLinesTest, InsertsWriteTheLinesOfThePaper) {
  LbTreeStore store(1, 256);
  std::vector<std::pair<uint64_t, uint64_t>> seen;
  // One leaf: slots 0–2, then 3 with 4–6 from line 0, and so on.
  for (uint64_t key = 1; key <= 14; ++key) {
    const PmWrites writes = Count(store, [&] { EXPECT_OK(store.tree()->Put(Mix64(key), key)); });
    seen.push_back({writes.lines, writes.fences});
    EXPECT_EQ(writes.xp_lines, writes.fences) << "all lines of a leaf are in one unit";
  }
  using Lines = std::pair<uint64_t, uint64_t>;
  const std::vector<Lines> expected = {{1, 1}, {1, 1}, {1, 1}, {2, 2}, {1, 1}, {1, 1}, {1, 1},
                                       {2, 2}, {1, 1}, {1, 1}, {1, 1}, {2, 2}, {1, 1}, {1, 1}};
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(Count(store, [&] { EXPECT_OK(store.tree()->Update(Mix64(3), 5)); }).lines, 1u);
  const PmWrites split = Count(store, [&] { EXPECT_OK(store.tree()->Put(Mix64(15), 1)); });
  EXPECT_EQ(store.tree()->GetStats().splits, 1u);
  EXPECT_LE(split.lines, 8u);
  EXPECT_LE(split.fences, 4u);
  EXPECT_EQ(Count(store, [&] { EXPECT_OK(store.tree()->Remove(Mix64(3))); }).lines, 1u);
}

TEST(LbTreeLinesTest, MovedEntriesSaveLines) {
  if (kSlowdown > 1) GTEST_SKIP() << "counts do not depend on the build";
  for (const uint32_t leaf_bytes : {256u, 1024u}) {
    uint64_t lines[2] = {};
    for (const bool move : {false, true}) {
      LbTreeStore store(1, leaf_bytes, move);
      Model model;
      for (uint64_t i = 0; i < 20000; ++i) model[Mix64(i)] = i;
      ASSERT_OK(store.tree()->BulkLoad(EntriesOf(model), 0.7, 1));
      lines[move] = Count(store, [&] {
                      for (uint64_t i = 20000; i < 40000; ++i) EXPECT_OK(store.tree()->Put(Mix64(i), i));
                    }).lines;
    }
    EXPECT_LT(static_cast<double>(lines[true]) * 1.06, static_cast<double>(lines[false])) << leaf_bytes;
  }
}

// ---- Space and damage

TEST(LbTreeOpenTest, WithoutSpaceNothingIsLost) {
  LbTreeStore full(1, 256, true, kMinRegionSize);
  uint64_t count = 0;
  Status status;
  for (; status.ok(); ++count) {
    status = full.tree()->Put(Mix64(count), count);
    ASSERT_LT(count, uint64_t{10} << 20);
  }
  EXPECT_CODE(status, kNoSpace);
  EXPECT_EQ(full.Forward().size(), count - 1);
  full.Reopen();
  EXPECT_EQ(full.Forward().size(), count - 1);
  EXPECT_CODE(full.tree()->Put(Mix64(count - 1), 1), kNoSpace);
  // Removed keys make room.
  for (uint64_t i = 0; i < count / 2; ++i) ASSERT_OK(full.tree()->Remove(Mix64(i)));
  for (uint64_t i = 0; i < count / 4; ++i) ASSERT_OK(full.tree()->Put(Mix64(i), i));
}

TEST(LbTreeOpenTest, WrongSizesAndDamageAreErrors) {
  LbTreeStore store(1, 512);
  for (uint64_t i = 0; i < 300; ++i) ASSERT_OK(store.tree()->Put(i * 1000, i));
  for (const uint32_t bytes : {0u, 64u, 255u, 300u, 4352u}) {
    EXPECT_CODE(LbTree::Create(store.regions(), store.segments(), bytes), kInvalidArgument);
  }
  const std::vector<LbEntry> sound = store.Forward();
  const auto flip = [&](void* begin, size_t first_bit, size_t bits) {
    for (size_t bit = first_bit; bit < first_bit + bits; ++bit) {
      uint8_t& byte = static_cast<uint8_t*>(begin)[bit / 8];
      byte ^= static_cast<uint8_t>(1 << bit % 8);
      EXPECT_CODE(store.Rebuild(), kCorruption) << bit;
      byte ^= static_cast<uint8_t>(1 << bit % 8);
    }
  };
  flip(store.root(), 0, sizeof(LbTreeRoot) * 8);
  auto* const leaf = store.regions()->Resolve<uint64_t>(LinkTarget(store.root()->first));
  const uint32_t alt = leaf[0] >> 15 & 1;
  flip(&leaf[30 + alt], 0, 64);  // the link
  flip(leaf, 14, 1);             // a bit that must be zero
  flip(&leaf[32], 30, 34);       // the same in block 1
  flip(&leaf[35], 0, 64);
  // Fingerprints of used slots.
  for (uint32_t slot = 0; slot < 14; ++slot) {
    if ((leaf[0] >> slot & 1) != 0) flip(leaf, 16 + slot * 8, 8);
    if ((leaf[32] >> (16 * alt + slot) & 1) != 0) flip(&leaf[33], slot * 8, 8);
  }
  // A link to another leaf of the tree.
  const uint64_t link = store.root()->first;
  store.root()->first = leaf[30 + alt];
  EXPECT_CODE(store.Rebuild(), kCorruption);
  store.root()->first = link;
  ASSERT_OK(store.Rebuild());
  EXPECT_EQ(store.Forward(), sound);
}

// Blocks of a unit of the medium.
TEST(LbTreeOpenTest, LeavesBeginAtUnitsOfTheMedium) {
  for (const uint32_t leaf_bytes : {256u, 768u, 4096u}) {
    LbTreeStore store(2, leaf_bytes);
    for (uint64_t i = 0; i < 3000; ++i) ASSERT_OK(store.tree()->Put(Mix64(i), i));
    std::set<uint64_t> seen;
    for (uint64_t link = store.root()->first; LinkTarget(link);) {
      const PmPtr leaf = LinkTarget(link);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(store.regions()->Resolve<uint64_t>(leaf)) % 256, 0u);
      ASSERT_TRUE(seen.insert(leaf.raw()).second);
      link = LbLeaf(store.regions()->Resolve<uint64_t>(leaf), leaf_bytes / 256).link();
    }
    EXPECT_GT(seen.size(), 10u);
  }
}

// ---- Scans beside removals, and persists that fail

TEST(LbTreeScanTest, ALeafThatIsRemovedMeanwhileRepeatsNothing) {
  const LbTreeStore store(1, 256);
  for (uint64_t key = 10; key <= 1000; key += 10) ASSERT_OK(store.tree()->Put(key, key));
  LbTree::LeafCopy copy, next;
  store.tree()->CopyLeaf(0, &copy);
  const uint64_t high = copy.high;
  store.tree()->CopyLeafFrom(high, &next);
  const uint64_t end = next.high;
  for (const LbEntry& entry : next.entries) ASSERT_OK(store.tree()->Remove(entry.key));
  store.tree()->CopyLeafFrom(high, &next);  // the first leaf has the range now
  EXPECT_TRUE(next.entries.empty());
  EXPECT_EQ(next.high, end);

  store.tree()->CopyLeaf(UINT64_MAX, &copy);
  const uint64_t low = copy.low;
  for (const LbEntry& entry : copy.entries) ASSERT_OK(store.tree()->Remove(entry.key));
  ASSERT_OK(store.tree()->Put(low + 5, 1));
  store.tree()->CopyLeafBefore(low, &copy);
  ASSERT_FALSE(copy.entries.empty());
  EXPECT_LT(copy.entries.back().key, low);
}

// The syncs fail from drain number `at` on.
struct FailingDrain : PersistObserver {
  FailingDrain(Persistence* which, int at) : persistence(which), left(at) {}
  void OnFlush(const void*, size_t) override {}
  void OnDrain() override {
    if (left-- == 0) persistence->FailSyncsForTest();
  }
  Persistence* persistence;
  int left;
};

// Readers go on after a failed persist, and find what was acknowledged.
TEST(LbTreeFailureTest, AFailedSplitHidesNothing) {
  for (int at = 0; at < 3; ++at) {
    SCOPED_TRACE(at);
    const LbTreeStore store(1, 256, true, 256ull << 20, PersistMode::kPage);
    for (uint64_t key = 10; key <= 140; key += 10) ASSERT_OK(store.tree()->Put(key, key + 1));
    ASSERT_EQ(store.tree()->GetStats().splits, 0u);
    Persistence* const persistence = store.regions()->persistence();
    FailingDrain failing(persistence, at);
    persistence->SetObserver(&failing);
    const Status status = store.tree()->Put(35, 1);
    persistence->SetObserver(nullptr);
    EXPECT_TRUE(at == 2 || status.IsIOError()) << status.ToString();
    for (uint64_t key = 10; key <= 140; key += 10) {
      uint64_t value = 0;
      EXPECT_TRUE(store.tree()->Get(key, &value)) << key;
      EXPECT_EQ(value, key + 1);
    }
  }
}

}  // namespace
}  // namespace braiddb::test
