// NV-Tree without a database: against a sorted set, for every leaf size, and keys whose first eight bytes decide or do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "tests/support/key_kinds.h"
#include "tests/support/tree_store.h"

namespace braiddb::test {
namespace {

// An order that KeyOrder knows nothing about: all key words are 0.
class OwnOrder final : public Comparator {
 public:
  const char* Name() const override { return "test.by-size-then-bytes"; }
  int Compare(Slice a, Slice b) const override {
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a.compare(b);
  }
};
const OwnOrder kOwnOrder;

class NvTreeTest : public testing::TestWithParam<std::tuple<uint32_t, const KeyKind*, const Comparator*>> {
 protected:
  static constexpr uint32_t kRegions = 2;
  // A cursor has the elements of what it copied last, and of what is before that.
  static constexpr std::ptrdiff_t kMostCopied = 3 * Leaf::kMaxElements;

  void SetUp() override { store_.emplace(kRegions, std::get<0>(GetParam()), &names_, &order_); }

  Element Draw() { return names_.Add(keys_.draw(&random_), ++sequence_); }
  bool Less(const Element& a, const Element& b) const { return names_.Less(a, b); }
  // Applies the changes and makes them in the model.
  void Apply(std::vector<LeafChange> changes) {
    std::stable_sort(changes.begin(), changes.end(),
                     [this](const LeafChange& a, const LeafChange& b) { return Less(a.element, b.element); });
    ASSERT_OK(store_->tree()->Apply(changes));
    for (const LeafChange& change : changes) {
      if (!change.negative) {
        model_.insert(change.element);
      } else {
        model_.erase(change.element);
        names_.Forget(change.element);
      }
    }
  }
  Element Any() const { return *std::next(model_.begin(), static_cast<std::ptrdiff_t>(random_.Uniform(model_.size()))); }

  std::vector<Element> Model() const { return {model_.begin(), model_.end()}; }
  void ExpectSame() {
    EXPECT_EQ(store_->Forward(), Model());
    EXPECT_EQ(store_->Backward(), Model());
    for (int i = 0; i < 50; ++i) {
      const std::string key = keys_.draw(&random_);
      const SearchKey target(order_, key, random_.Uniform(sequence_ + 2));
      ExpectSameAt(target);
    }
    for (int i = 0; i < 50 && !model_.empty(); ++i) {
      const Names::Name& name = names_.Of(Any());
      ExpectSameAt(SearchKey(order_, name.key, name.sequence));
      ExpectSameAt(SearchKey(order_, name.key, kMaxSequence));
    }
  }
  void ExpectSameAt(const SearchKey& target) {
    const auto begin = std::partition_point(model_.begin(), model_.end(),
                                            [&](const Element& element) { return CompareToTarget(element, target) < 0; });
    LeafCursor cursor(store_->tree());
    cursor.Seek(target);
    ASSERT_EQ(cursor.element() == nullptr, begin == model_.end());
    if (begin != model_.end()) {
      EXPECT_EQ(*cursor.element(), *begin);
    }
    // On from there, over what a seek has not copied, or what was copied before it came there; and back again from somewhere.
    const uint64_t ahead = random_.Uniform(4);
    const auto look_ahead = [&] {
      if (ahead > 0 && random_.Uniform(10 * ahead) == 0) cursor.FetchMore();
      if (ahead > 0 && random_.Uniform(10 * ahead) == 0 && cursor.end() - cursor.element() < 40) cursor.CopyMore();
    };
    auto here = begin;
    for (uint64_t steps = random_.Uniform(2 * Leaf::kMaxElements); here != model_.end() && steps > 0; --steps) {
      ASSERT_TRUE(cursor.element() != nullptr);
      ASSERT_EQ(*cursor.element(), *here);
      look_ahead();
      ASSERT_LE(cursor.end() - cursor.begin(), kMostCopied);
      cursor.Next();
      ++here;
    }
    ASSERT_EQ(cursor.element() == nullptr, here == model_.end());
    for (uint64_t steps = random_.Uniform(100); here != model_.end() && steps > 0; --steps) {
      ASSERT_TRUE(cursor.element() != nullptr);
      ASSERT_EQ(*cursor.element(), *here);
      look_ahead();
      cursor.Prev();
      if (here == model_.begin()) {
        ASSERT_TRUE(cursor.element() == nullptr);
        break;
      }
      --here;
    }
    cursor.SeekBefore(target);
    ASSERT_EQ(cursor.element() == nullptr, begin == model_.begin());
    if (begin != model_.begin()) {
      EXPECT_EQ(*cursor.element(), *std::prev(begin));
    }

    std::set<uint64_t> expected;
    for (auto at = begin; at != model_.end() && order_.Compare(names_.Of(*at).key, target.key) == 0; ++at)
      expected.insert(at->value);
    std::multiset<uint64_t> found;
    const EpochManager::Guard guard = store_->epochs()->Enter();
    store_->tree()->VisitKey(target, [&](const Element& element) {
      const int by_key = order_.Compare(names_.Of(element).key, target.key);
      if (by_key == 0 && CompareToTarget(element, target) >= 0) found.insert(element.value);
      return by_key > 0 ? Visited::kPastKey : Visited::kGoOn;
    });
    EXPECT_EQ(std::multiset<uint64_t>(expected.begin(), expected.end()), found);
  }
  int CompareToTarget(const Element& element, const SearchKey& target) const {
    const Names::Name& name = names_.Of(element);
    const int by_key = order_.Compare(name.key, target.key);
    if (by_key != 0) return by_key;
    return name.sequence == target.sequence ? 0 : name.sequence > target.sequence ? -1 : 1;
  }

  const KeyKind& keys_ = *std::get<1>(GetParam());
  const KeyOrder order_{std::get<2>(GetParam())};
  Names names_{&order_};
  std::optional<TreeStore> store_;
  mutable Random random_{17};
  uint64_t sequence_ = 0;
  std::set<Element, std::function<bool(const Element&, const Element&)>> model_{
      [this](const Element& a, const Element& b) { return Less(a, b); }};
};

template <size_t kCount>
auto Each(const KeyKind (&kinds)[kCount]) {
  return testing::Range<const KeyKind*>(kinds, kinds + kCount);
}
std::string NameOf(const testing::TestParamInfo<std::tuple<uint32_t, const KeyKind*, const Comparator*>>& suite) {
  return std::string(std::get<1>(suite.param)->name) + std::to_string(std::get<0>(suite.param));
}
INSTANTIATE_TEST_SUITE_P(Leaves, NvTreeTest,
                         testing::Combine(testing::Values(512, 1024, 4096), Each(kKeyKinds),
                                          testing::Values(BytewiseComparator())),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Alike, NvTreeTest,
                         testing::Combine(testing::Values(512, 4096), Each(kAlikeKinds), testing::Values(BytewiseComparator())),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Reverse, NvTreeTest,
                         testing::Combine(testing::Values(1024), Each(kAlikeKinds), testing::Values(ReverseBytewiseComparator())),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(OwnOrder, NvTreeTest,
                         testing::Combine(testing::Values(512), testing::Values(&kKeyKinds[0], &kKeyKinds[2], &kAlikeKinds[2]),
                                          testing::Values(&kOwnOrder)),
                         NameOf);

TEST_P(NvTreeTest, AnEmptyTreeHasNothing) {
  ExpectSame();
  store_->Reopen();
  ExpectSame();
}

TEST_P(NvTreeTest, OneByOne) {
  for (int i = 0; i < 3000 / kSlowdown; ++i) {
    if (random_.OneIn(3) && !model_.empty()) {
      Apply({{Any(), true}});
    } else {
      Apply({{Draw()}});
    }
    if (HasFatalFailure()) return;
  }
  ExpectSame();
  store_->Reopen();
  ExpectSame();
}

// As merges make them, from one change to more than many leaves have room for.
TEST_P(NvTreeTest, InRuns) {
  for (int round = 0; round < 60 / kSlowdown; ++round) {
    std::vector<LeafChange> changes;
    std::set<uint64_t> taken;
    for (uint64_t i = uint64_t{1} << random_.Uniform(11); i > 0; --i) {
      if (random_.OneIn(2) && !model_.empty()) {
        const Element element = Any();
        if (taken.insert(element.value).second) changes.push_back({element, true});
      } else {
        changes.push_back({Draw()});
      }
    }
    Apply(changes);
    if (round % 10 == 9) {
      const bool close = round % 20 == 19;
      store_->Reopen(close);
      EXPECT_EQ(store_->tree()->GetStats().from_image, close);
    }
    ExpectSame();
    if (HasFailure()) return;
  }
}

// A cursor that has copied a leaf's elements comes next to one that some of these were merged into: what stays is seen once.
TEST_P(NvTreeTest, CursorsGoOnWhereLeavesWereMerged) {
  for (int round = 0; round < 4; ++round) {
    std::vector<LeafChange> changes;
    for (int i = 0; i < 2000 / kSlowdown; ++i) changes.push_back({Draw()});
    Apply(changes);
    std::set<uint64_t> to_stay;
    std::map<uint64_t, size_t> place;  // of those that are taken back, too
    for (const Element& element : model_) {
      if (random_.OneIn(4)) to_stay.insert(element.value);
      place.emplace(element.value, place.size());
    }
    LeafCursor cursor(store_->tree());
    cursor.SeekToFirst();
    Element last = *cursor.element();
    size_t seen = to_stay.contains(last.value) ? 1 : 0;
    for (int steps = 1;; ++steps) {
      if (round % 2 == 0 && cursor.end() - cursor.element() < 3) cursor.CopyMore();
      cursor.Next();
      if (cursor.element() == nullptr) break;
      ASSERT_LT(place.at(last.value), place.at(cursor.element()->value)) << "out of order, or twice";
      last = *cursor.element();
      seen += to_stay.contains(last.value) ? 1 : 0;
      if (steps % 50 != 0) continue;
      // What is around leaves, but for what is to stay.
      changes.clear();
      auto at = std::partition_point(model_.begin(), model_.end(),
                                     [&](const Element& element) { return place.at(element.value) < place.at(last.value); });
      for (int i = 0; i < 40 && at != model_.begin(); ++i) --at;
      for (int i = 0; i < 300 && at != model_.end(); ++i, ++at) {
        if (!to_stay.contains(at->value)) changes.push_back({*at, true});
      }
      Apply(changes);
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(seen, to_stay.size());
  }
  EXPECT_GT(store_->tree()->GetStats().merges, 0u);
}

TEST_P(NvTreeTest, UntilNothingIsLeft) {
  std::vector<LeafChange> changes;
  for (int i = 0; i < 3000; ++i) changes.push_back({Draw()});
  Apply(changes);
  while (!model_.empty()) {
    changes.clear();
    std::set<uint64_t> taken;
    for (int i = 0; i < 100; ++i) {
      const Element element = Any();
      if (taken.insert(element.value).second) changes.push_back({element, true});
    }
    Apply(changes);
    if (HasFatalFailure()) return;
  }
  ExpectSame();
  EXPECT_GT(store_->tree()->GetStats().splits, 0u);
  store_->Reopen();
  ExpectSame();
  EXPECT_LE(store_->tree()->GetStats().inner.leaves, 2u) << "empty leaves are taken out";
}

// ---- Keys of eight bytes

class PlainTreeTest : public testing::TestWithParam<uint32_t> {
 protected:
  void ExpectSame(const std::map<uint64_t, uint64_t>& model) {
    std::vector<Element> expected;
    for (const auto& [key, value] : model) expected.push_back({key, value});
    EXPECT_EQ(store_.Forward(), expected);
    EXPECT_EQ(store_.Backward(), expected);
  }
  const KeyOrder order_{BytewiseComparator()};
  const PlainKeys keys_;
  TreeStore store_{1, GetParam(), &keys_, &order_};
};

INSTANTIATE_TEST_SUITE_P(Leaves, PlainTreeTest, testing::Values(512, 1024, 2048, 4096));

// In each direction, and from the middle: rebuilds of everything would make this quadratic.
TEST_P(PlainTreeTest, KeysInOrderFillLeavesAndRebuildLittle) {
  const uint64_t count = 40000 / kSlowdown;
  std::map<uint64_t, uint64_t> model;
  for (uint64_t i = 0; i < count; ++i) {
    for (const uint64_t key : {(uint64_t{1} << 40) + i, (uint64_t{1} << 40) - 1 - i, (uint64_t{1} << 50) + i, i + 1}) {
      const LeafChange change = {{key, i}};
      ASSERT_OK(store_.tree()->Apply({&change, 1}));
      model[key] = i;
    }
  }
  ExpectSame(model);
  const NvTree::Stats stats = store_.tree()->GetStats();
  const uint64_t capacity = Leaf::Capacity(GetParam());
  EXPECT_LE(stats.inner.leaves, 4 * count / (capacity / 3) + 8);
  EXPECT_LE(stats.inner.rebuilds, stats.inner.leaves / 16 + 8);
  EXPECT_EQ(stats.inner.full_builds, 1u);
}

TEST_P(PlainTreeTest, UpdatesArePublishedTogether) {
  Random random(5);
  std::map<uint64_t, uint64_t> model;
  for (int i = 0; i < 20000 / kSlowdown; ++i) {
    const uint64_t key = Mix64(random.Uniform(800));
    std::vector<LeafChange> changes;
    if (model.contains(key)) changes.push_back({{key, model[key]}, true});
    if (model.contains(key) && random.OneIn(4)) {
      model.erase(key);
    } else {
      model[key] = random.Uniform(3);  // often what it was
      changes.push_back({{key, model[key]}});
    }
    ASSERT_OK(store_.tree()->Apply(changes));
    if (i % 1000 == 0) ExpectSame(model);
  }
  ExpectSame(model);
  store_.Reopen();
  ExpectSame(model);
}

// What searches fetch goes by it: leaves that were split, replaced and merged, inner nodes made from leaves and from an image.
TEST_P(PlainTreeTest, InnerNodesKnowHowManyElementsAreSorted) {
  Random random(9);
  std::map<uint64_t, uint64_t> model;
  std::set<uint32_t> known;
  const auto expect_known = [&] {
    const EpochManager::Guard guard = store_.epochs()->Enter();
    for (const auto& [key, value] : model) {
      const InnerNodes::Range range = store_.tree()->FindRange(SearchKey(key, Slice(), 0));
      ASSERT_EQ(range.hint, store_.regions()->Resolve<Leaf>(range.leaf)->sorted());
      known.insert(range.hint);
    }
  };
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 3000; ++i) {
      const uint64_t key = Mix64(random.Uniform(4000));
      const bool there = model.contains(key);
      const LeafChange change = {{key, key}, there};
      ASSERT_OK(store_.tree()->Apply({&change, 1}));
      if (there) {
        model.erase(key);
      } else {
        model[key] = key;
      }
    }
    expect_known();
    store_.Reopen(round % 2 == 0);
    EXPECT_EQ(store_.tree()->GetStats().from_image, round % 2 == 0);
    expect_known();
  }
  EXPECT_GT(known.size(), 5u);
  ExpectSame(model);
}

// A copy of a leaf has what the tree has from the target on, up to the end of the leaf's range.
TEST_P(PlainTreeTest, CopiesBeginAtTheTarget) {
  Random random(7);
  std::map<uint64_t, uint64_t> model;
  NvTree::LeafCopy copy;
  int parts = 0;
  for (int i = 0; i < 3000; ++i) {
    const uint64_t key = 2 * random.Uniform(1000) + 2;
    std::vector<LeafChange> changes;
    if (model.contains(key)) changes.push_back({{key, model[key]}, true});
    if (model.contains(key) && random.OneIn(4)) {
      model.erase(key);
    } else {
      changes.push_back({{key, model[key] = random.Uniform(3)}});
    }
    ASSERT_OK(store_.tree()->Apply(changes));
    const SearchKey target(i % 100 == 0 ? 0 : random.Uniform(2004), Slice(), kMaxSequence);
    const EpochManager::Guard guard = store_.tree()->epochs()->Enter();
    store_.tree()->CopyLeaf(target, false, &copy);
    const auto end = copy.range.is_last ? model.end() : model.lower_bound(copy.range.high.prefix);
    std::vector<Element> expected;
    for (auto at = model.lower_bound(target.prefix); at != end; ++at) expected.push_back({at->first, at->second});
    ASSERT_TRUE(copy.elements == expected) << "from " << target.prefix << ", after " << i << " changes";
    // Of the same leaf some; the border is where the next copy goes on.
    const auto enough = static_cast<uint32_t>(1 + random.Uniform(40));
    store_.tree()->CopyLeaf(target, false, &copy, enough);
    const uint64_t to = copy.to;
    if (to != NvTree::LeafCopy::kToTheEnd) {
      std::erase_if(expected, [to](const Element& element) { return element.key >= to; });
      ++parts;
    }
    ASSERT_TRUE(copy.elements == expected) << enough << " from " << target.prefix << ", after " << i << " changes";
  }
  EXPECT_GT(parts, 100);
}

// The address of an entry that has gone comes back as that of another whose key has the same first bytes, but another place.
TEST_P(PlainTreeTest, WhatIsAddedAfterItWasTakenBackIsWhatIsAddedLast) {
  Persistence* const persistence = store_.regions()->persistence();
  alignas(kCacheLine) uint8_t bytes[kMaxLeafBytes];
  auto* const leaf = reinterpret_cast<Leaf*>(bytes);
  const Element sorted[] = {{7, 1}, {7, 2}, {8, 3}};
  MakeLeaf(persistence, leaf, 1, PmPtr(0, kMaxLeafBytes), GetParam(), sorted, PmPtr());
  const LeafChange changes[] = {{{7, 1}, true}, {{7, 1}}, {{7, 4}}, {{7, 4}, true}, {{8, 3}, true}, {{7, 4}}};
  ASSERT_TRUE(AppendToLeaf(persistence, leaf, changes));
  std::vector<Element> live;
  EXPECT_EQ(CollectLive(*leaf, GetParam(), &live), 1u);
  EXPECT_TRUE(live == (std::vector<Element>{{7, 2}, {7, 1}, {7, 4}}));
  live.clear();
  LeafPart part{8, 0.5};
  EXPECT_EQ(CollectLive(*leaf, GetParam(), &part, &live), 0u);
  EXPECT_TRUE(live.empty());
}

// Leaves of which little is left become one.
TEST_P(PlainTreeTest, NeighborsWithFewElementsAreMerged) {
  std::map<uint64_t, uint64_t> model;
  Random random(6);
  while (model.size() < 4000) {
    const uint64_t key = random.Next();
    const LeafChange change = {{key, 0}};
    ASSERT_OK(store_.tree()->Apply({&change, 1}));
    model[key] = 0;
  }
  const NvTree::Stats before = store_.tree()->GetStats();
  EXPECT_EQ(before.merges, 0u);
  for (auto at = model.begin(); at != model.end();) {
    if (random.OneIn(10)) {
      ++at;
      continue;
    }
    const LeafChange change = {{at->first, 0}, true};
    ASSERT_OK(store_.tree()->Apply({&change, 1}));
    at = model.erase(at);
  }
  for (uint64_t round = 1; round < 20; ++round) {
    for (auto& [key, value] : model) {
      const LeafChange changes[] = {{{key, value}, true}, {{key, round}}};
      ASSERT_OK(store_.tree()->Apply(changes));
      value = round;
    }
  }
  const NvTree::Stats after = store_.tree()->GetStats();
  EXPECT_GT(after.merges, 0u);
  EXPECT_LT(after.inner.leaves, before.inner.leaves / 2 + 1);
  ExpectSame(model);
  store_.Reopen();
  ExpectSame(model);
}

// What replaced leaves took is used again: 100 times as many appends as there is room for.
TEST_P(PlainTreeTest, SpaceComesBack) {
  std::vector<uint64_t> values(500);
  for (uint64_t round = 1; round <= 200; ++round) {
    for (uint64_t key = 0; key < values.size(); ++key) {
      std::vector<LeafChange> changes;
      if (round > 1) changes.push_back({{key, values[key]}, true});
      changes.push_back({{key, values[key] = round}});
      ASSERT_OK(store_.tree()->Apply(changes));
    }
  }
  uint64_t segments = 0;
  store_.segments()->ForEachIndex([&](Segment*) { ++segments; });
  EXPECT_LE(segments, 2u);
  store_.Reopen();
  EXPECT_EQ(store_.Forward().size(), values.size());
}

TEST_P(PlainTreeTest, WithoutSpaceNothingIsLost) {
  TreeStore full(1, GetParam(), &keys_, &order_, kMinRegionSize);
  uint64_t count = 0;
  Status status;
  std::vector<LeafChange> changes(1000);
  while (status.ok()) {
    for (LeafChange& change : changes) change.element = {++count, count};
    status = full.tree()->Apply(changes);
    ASSERT_LT(count, uint64_t{10} << 20);
  }
  EXPECT_CODE(status, kNoSpace);
  const std::vector<Element> there = full.Forward();
  EXPECT_GE(there.size(), count - changes.size());
  for (size_t i = 0; i < there.size(); ++i) ASSERT_EQ(there[i].key, i + 1);
  // What is taken out makes room.
  for (size_t i = 0; i < there.size(); i += 2) {
    const LeafChange change = {there[i], true};
    status = full.tree()->Apply({&change, 1});
    if (!status.ok()) break;
  }
  const size_t left = full.Forward().size();
  full.Reopen();
  EXPECT_EQ(full.Forward().size(), left);
}

// As OwnOrder, and counts.
class CountingOrder final : public Comparator {
 public:
  const char* Name() const override { return "test.counting"; }
  int Compare(Slice a, Slice b) const override {
    ++comparisons;
    return a.compare(b);
  }
  mutable uint64_t comparisons = 0;
};

// With an own comparator, or with keys that have their first eight bytes in common, comparisons are what a search costs: one for
// each appended element, and beside these halvings.
TEST(NvTreeSearchTest, KeysWithoutDifferentKeyWordsTakeFewComparisons) {
  for (const uint32_t leaf_bytes : {512u, 4096u}) {
    constexpr uint64_t kKeys = 10000, kMostAppended = 32;
    const CountingOrder counting;
    const KeyOrder order(&counting);
    Names names(&order);
    TreeStore store(1, leaf_bytes, &names, &order);
    Random random(leaf_bytes);
    std::vector<Element> there;
    const auto apply = [&](std::vector<LeafChange> changes) {
      std::stable_sort(changes.begin(), changes.end(),
                       [&](const LeafChange& a, const LeafChange& b) { return names.Less(a.element, b.element); });
      ASSERT_OK(store.tree()->Apply(changes));
    };
    for (uint64_t i = 0; i < kKeys; ++i) {
      there.push_back(names.Add(NumberedKey(i * 7919 % kKeys), 1));
      apply({{there.back()}});
    }
    for (uint64_t i = 0; i < kKeys; ++i) {
      Element& old = there[random.Uniform(kKeys)];
      const Element update = names.Add(std::string(names.Of(old).key), names.Of(old).sequence + 1);
      apply({{old, true}, {update}});
      names.Forget(old);
      old = update;
    }
    uint64_t most = 0;
    for (const Element& element : there) {
      const SearchKey target(order, names.Of(element).key, kMaxSequence);
      const EpochManager::Guard guard = store.epochs()->Enter();
      counting.comparisons = 0;
      uint64_t found = 0;
      store.tree()->VisitKey(target, [&](const Element& visited) {
        const int by_key = order.Compare(names.Of(visited).key, target.key);
        found += by_key == 0 && visited == element;
        return by_key > 0 ? Visited::kPastKey : Visited::kGoOn;
      });
      EXPECT_EQ(found, 1u);
      most = std::max(most, counting.comparisons);
    }
    EXPECT_LE(most, kMostAppended + 2 * std::bit_width(kKeys)) << leaf_bytes;
  }
}

// Counts the keys that a tree reads.
class CountingKeys final : public ElementKeys {
 public:
  explicit CountingKeys(const ElementKeys* keys) : keys_(keys) {}
  SearchKey KeyOf(const Element& element) const override {
    ++reads;
    return keys_->KeyOf(element);
  }
  void Prefetch(const Element&) const override {}
  mutable uint64_t reads = 0;

 private:
  const ElementKeys* const keys_;
};

// Once the order of a leaf is known, a search reads one key of it, present or not. A cursor reads one more where it stops
// copying. This holds after updates too, which bring the order up to date.
TEST(NvTreeSearchTest, KeysThatBeginAlikeTakeOneRead) {
  for (const uint32_t leaf_bytes : {512u, 4096u}) {
    constexpr uint64_t kKeys = 6000;
    const KeyOrder order(BytewiseComparator());
    Names names(&order);
    const CountingKeys keys(&names);
    TreeStore store(1, leaf_bytes, &keys, &order);
    Random random(leaf_bytes);
    const auto name = [](uint64_t i) { return "user:" + NumberedKey(i); };
    std::vector<LeafChange> all;
    for (uint64_t i = 0; i < kKeys; ++i) all.push_back({names.Add(name(2 * i), 1)});
    ASSERT_OK(store.tree()->Apply(all));
    EXPECT_EQ(store.Forward().size(), kKeys);
    const auto reads_of_search = [&](const std::string& key) {
      const SearchKey target(order, key, kMaxSequence);
      const EpochManager::Guard guard = store.epochs()->Enter();
      const uint64_t before = keys.reads;
      uint64_t found = 0;
      store.tree()->VisitKey(target, [&](const Element& visited) {
        found += names.Of(visited).key == key;
        return Visited::kGoOn;
      });
      EXPECT_EQ(found, key.back() % 2 == 0 ? 1u : 0u) << key;
      return keys.reads - before;
    };
    const auto reads_of_seek = [&](const std::string& key, bool before_it) {
      const uint64_t before = keys.reads;
      LeafCursor cursor(store.tree());
      const SearchKey target(order, key, kMaxSequence);
      before_it ? cursor.SeekBefore(target) : cursor.Seek(target);
      for (int steps = 0; steps < 5 && cursor.element() != nullptr; ++steps) before_it ? cursor.Prev() : cursor.Next();
      return keys.reads - before;
    };
    // The first search in a leaf makes its order.
    for (uint64_t i = 0; i < kKeys; ++i) reads_of_search(name(2 * i));
    for (int round = 0; round < 500; ++round) {
      const uint64_t i = random.Uniform(kKeys);
      const Element old = all[i].element;
      all[i].element = names.Add(name(2 * i), 2 + static_cast<uint64_t>(round));
      ASSERT_OK(store.tree()->Apply(std::vector<LeafChange>{{all[i].element}, {old, true}}));
      names.Forget(old);
      reads_of_search(name(2 * i));  // if the leaf was replaced, and its order with it
      const uint64_t any = random.Uniform(2 * kKeys);
      EXPECT_LE(reads_of_search(name(2 * i)), 1u);
      reads_of_search(name(any));
      EXPECT_LE(reads_of_search(name(any)), 1u);
      // Two leaves, each with a search and a border.
      EXPECT_LE(reads_of_seek(name(any), round % 2 == 0), 4u);
    }
  }
}

// Keys of which one cannot be read.
class DamagedKeys final : public ElementKeys {
 public:
  explicit DamagedKeys(const ElementKeys* keys) : keys_(keys) {}
  SearchKey KeyOf(const Element& element) const override {
    return element.value == damaged ? SearchKey(element.key, Slice(), 0) : keys_->KeyOf(element);
  }
  void Prefetch(const Element&) const override {}
  uint64_t damaged = UINT64_MAX;

 private:
  const ElementKeys* const keys_;
};

// A scan over a damaged element ends, whether the leaf had an order before the damage or not. The caller learns of the damage, so
// the scan need not show all other elements.
TEST(NvTreeSearchTest, ScansOverADamagedElementEnd) {
  constexpr uint64_t kKeys = 300;
  const KeyOrder order(BytewiseComparator());
  for (const bool has_orders : {false, true}) {
    for (uint64_t damaged = 0; damaged < kKeys; damaged += 7) {
      SCOPED_TRACE(damaged);
      Names names(&order);
      DamagedKeys keys(&names);
      TreeStore store(1, 4096, &keys, &order);
      std::vector<LeafChange> all;
      for (uint64_t i = 0; i < kKeys; ++i) all.push_back({names.Add("user:" + NumberedKey(i), 1)});
      ASSERT_OK(store.tree()->Apply(all));
      if (has_orders) {
        ASSERT_EQ(store.Forward().size(), kKeys);
      }
      keys.damaged = all[damaged].element.value;
      for (const bool forward : {true, false}) {
        for (const uint64_t from : {uint64_t{0}, damaged, kKeys - 1}) {
          LeafCursor cursor(store.tree());
          const std::string key = "user:" + NumberedKey(from);
          const SearchKey target(order, key, forward ? kMaxSequence : 0);
          forward ? cursor.Seek(target) : cursor.SeekBefore(target);
          uint64_t steps = 0;
          for (; cursor.element() != nullptr && steps < 20 * kKeys; ++steps) {
            forward ? cursor.Next() : cursor.Prev();
          }
          EXPECT_LT(steps, 20 * kKeys) << from;
        }
      }
    }
  }
}

}  // namespace
}  // namespace braiddb::test
