// Iterators: every movement, in every level and mixture of levels, against a reference on a sorted vector.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <condition_variable>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "tests/model/reference_iterator.h"
#include "tests/support/db_test_util.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

// Orders by the last byte, then by the whole: nothing like the bytewise order.
class LastByteComparator : public Comparator {
 public:
  int Compare(Slice a, Slice b) const override {
    const int last_a = a.empty() ? -1 : static_cast<unsigned char>(a.back());
    const int last_b = b.empty() ? -1 : static_cast<unsigned char>(b.back());
    return last_a != last_b ? last_a - last_b : a.compare(b);
  }
  const char* Name() const override { return "test.LastByte"; }
};

// Upper and lower case are the same letter: keys that are equal without being the same bytes.
class CaseInsensitiveComparator : public Comparator {
 public:
  int Compare(Slice a, Slice b) const override {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      const int difference = std::tolower(static_cast<unsigned char>(a[i])) - std::tolower(static_cast<unsigned char>(b[i]));
      if (difference != 0) return difference;
    }
    return a.size() < b.size() ? -1 : a.size() > b.size();
  }
  const char* Name() const override { return "test.CaseInsensitive"; }
};

// Where the data lies when the iterator is made.
enum class Place { kMemtable, kImmutable, kL0, kL0Many, kL1, kAllLevels, kAllLevelsWithTombstones };

struct PlaceCase {
  const char* name;
  Place place;
  uint32_t regions;
};

void PrintTo(const PlaceCase& test, std::ostream* out) { *out << test.name; }

// Holds flushes just before a flushed table takes the memtable's place, so that immutable memtables stay.
class FlushGate {
 public:
  ~FlushGate() {
    Open();
    SyncPoints::Instance().Clear();
  }
  void Close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    SyncPoints::Instance().SetCallback("DBImpl::FlushOne:Linked", [this](void*) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !closed_; });
    });
    SyncPoints::Instance().Enable();
  }
  void Open() {
    std::lock_guard lock(mutex_);
    closed_ = false;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
};

class DbIteratorTest : public testing::TestWithParam<PlaceCase> {
 protected:
  void SetUp() override {
    options_ = TinyOptions(GetParam().regions);
    options_.disable_auto_compaction = true;  // data stays where the test puts it
    options_.max_immutable_memtables = 1000;
    Open();
  }
  void TearDown() override { gate_.Open(); }
  void Open() {
    gate_.Open();
    db_.reset();
    ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
    db_ = OpenOrFail(options_, directory_.File("db"));
    ASSERT_NE(db_, nullptr);
  }

  void Put(const std::string& key, const std::string& value) {
    ASSERT_OK(db_->Put({}, key, value));
    content_[key] = value;
  }
  void Delete(const std::string& key) {
    ASSERT_OK(db_->Delete({}, key));
    content_.erase(key);
  }
  Status Flush() {
    gate_.Open();
    return db_->Flush();
  }
  Status Merge() {
    gate_.Open();
    return db_->CompactRange({}, nullptr, nullptr);
  }

  // Writes `keys` (in the order given) so that they end up in the place of this case.
  void Load(const std::vector<std::string>& keys) {
    keys_ = keys;
    if (GetParam().place == Place::kImmutable) gate_.Close();
    Random random(keys.size());
    const bool all = GetParam().place == Place::kAllLevels || GetParam().place == Place::kAllLevelsWithTombstones;
    if (!all) {
      for (size_t i = 0; i < keys.size(); ++i) {
        Put(keys[i], PatternedValue(i, 10 + random.Uniform(100)));
        if (GetParam().place == Place::kL0Many && i % 37 == 36) {
          ASSERT_OK(Flush());
        }
      }
    } else {
      // Four layers of versions; each covers a random third of the keys, the lowest all of them.
      for (int layer = 0; layer < 4; ++layer) {
        for (size_t i = 0; i < keys.size(); ++i) {
          if (layer > 0 && !random.OneIn(3)) continue;
          if (GetParam().place == Place::kAllLevelsWithTombstones && layer > 0 && random.OneIn(2)) {
            Delete(keys[i]);
          } else {
            Put(keys[i], PatternedValue(i * 10 + layer, 10 + random.Uniform(100)));
          }
        }
        if (layer == 0) {
          ASSERT_OK(Merge());
        }
        if (layer == 1 || layer == 2) {
          ASSERT_OK(Flush());
        }
      }
    }
    if (GetParam().place == Place::kImmutable) RotateWithoutFlush();
    if (GetParam().place == Place::kL0) {
      ASSERT_OK(Flush());
    }
    if (GetParam().place == Place::kL1) {
      ASSERT_OK(Merge());
    }
    if (keys.size() < 100) return;  // too few to be spread
    if (GetParam().place == Place::kImmutable) {
      ASSERT_GT(IntProperty(db_.get(), "braiddb.num-immutable-mem-table"), 0u);
    }
    if (GetParam().place == Place::kL0Many) {
      ASSERT_GT(IntProperty(db_.get(), "braiddb.num-l0-tables"), 1u);
    }
    if (all) {
      ASSERT_GE(IntProperty(db_.get(), "braiddb.num-l0-tables"), 2u);
    }
  }

  // Fills up the memtable with versions of one key, which in the end is deleted or as before.
  void RotateWithoutFlush() {
    const std::string filler = "filler that goes";
    const uint64_t rotations = db_->GetStatistics().rotations;
    for (int i = 0; db_->GetStatistics().rotations < rotations + 1 && i < 10'000; ++i) {
      ASSERT_OK(db_->Put({}, filler, PatternedValue(i, 1000)));
    }
    ASSERT_OK(db_->Delete({}, filler));
  }

  // Numbered keys in a scattered order.
  static std::vector<std::string> ScatteredKeys(int count) {
    std::vector<std::string> keys;
    for (int i = 0; i < count; ++i) keys.push_back(NumberedKey(i * 389 % count * 2));
    return keys;
  }

  ReferenceIterator Expected(const ReadOptions& options = {}) const {
    return ReferenceIterator(VisiblePairs(content_, options, options_.comparator), options_.comparator);
  }

  FlushGate gate_;
  TestDirectory directory_;
  Options options_;
  std::unique_ptr<DB> db_;
  std::vector<std::string> keys_;
  std::map<std::string, std::string> content_;
};

INSTANTIATE_TEST_SUITE_P(Places, DbIteratorTest,
                         testing::Values(PlaceCase{"Memtable1", Place::kMemtable, 1}, PlaceCase{"Memtable2", Place::kMemtable, 2},
                                         PlaceCase{"Immutable2", Place::kImmutable, 2}, PlaceCase{"L0In1", Place::kL0, 1},
                                         PlaceCase{"L0In2", Place::kL0, 2}, PlaceCase{"L0Many2", Place::kL0Many, 2},
                                         PlaceCase{"L1In1", Place::kL1, 1}, PlaceCase{"L1In2", Place::kL1, 2},
                                         PlaceCase{"AllLevels1", Place::kAllLevels, 1},
                                         PlaceCase{"AllLevels2", Place::kAllLevels, 2},
                                         PlaceCase{"Tombstones1", Place::kAllLevelsWithTombstones, 1},
                                         PlaceCase{"Tombstones3", Place::kAllLevelsWithTombstones, 3}),
                         [](const auto& test) { return test.param.name; });

TEST_P(DbIteratorTest, EmptyDatabaseHasNoPosition) {
  auto iterator = db_->NewIterator({});
  EXPECT_FALSE(iterator->Valid());
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  iterator->SeekToLast();
  EXPECT_FALSE(iterator->Valid());
  iterator->Seek("");
  EXPECT_FALSE(iterator->Valid());
  iterator->SeekForPrev("x");
  EXPECT_FALSE(iterator->Valid());
  EXPECT_OK(iterator->status());
}

TEST_P(DbIteratorTest, FreshIteratorIsNotValid) {
  ASSERT_NO_FATAL_FAILURE(Load({"a"}));
  EXPECT_FALSE(db_->NewIterator({})->Valid());
}

TEST_P(DbIteratorTest, ScansBothWays) {
  ASSERT_NO_FATAL_FAILURE(Load(ScatteredKeys(400)));
  EXPECT_TRUE(HoldsExactly(db_.get(), content_));
}

TEST_P(DbIteratorTest, ScansKeysOfEveryShape) {
  Random random(3);
  ASSERT_NO_FATAL_FAILURE(Load(MakeKeyUniverse(&random, 300, true)));
  EXPECT_TRUE(HoldsExactly(db_.get(), content_));
}

TEST_P(DbIteratorTest, SeeksToEveryKeyAndEveryGap) {
  ASSERT_NO_FATAL_FAILURE(Load(ScatteredKeys(120)));
  auto actual = db_->NewIterator({});
  auto expected = Expected();
  for (int number = 0; number <= 240; ++number) {  // the even ones were written
    for (const auto& target : {NumberedKey(number), NumberedKey(number) + '\0', NumberedKey(number).substr(0, 8)}) {
      SCOPED_TRACE(Printable(target));
      expected.Seek(target);
      actual->Seek(target);
      ASSERT_TRUE(SamePosition(expected, *actual));
      expected.SeekForPrev(target);
      actual->SeekForPrev(target);
      ASSERT_TRUE(SamePosition(expected, *actual));
    }
  }
  for (const std::string target : {"", "a", "z", "\xff\xff"}) {
    SCOPED_TRACE(Printable(target));
    expected.Seek(target);
    actual->Seek(target);
    ASSERT_TRUE(SamePosition(expected, *actual));
    expected.SeekForPrev(target);
    actual->SeekForPrev(target);
    ASSERT_TRUE(SamePosition(expected, *actual));
  }
}

TEST_P(DbIteratorTest, TurnsRoundAtEveryPosition) {
  ASSERT_NO_FATAL_FAILURE(Load(ScatteredKeys(100)));
  auto actual = db_->NewIterator({});
  for (int steps = 0; steps < 100; ++steps) {
    auto expected = Expected();
    expected.SeekToFirst();
    actual->SeekToFirst();
    for (int i = 0; i < steps && expected.Valid(); ++i) {
      expected.Next();
      actual->Next();
    }
    // forward, back, forward again
    for (const bool forward : {false, true, true, false, false, true}) {
      if (!expected.Valid()) break;
      forward ? expected.Next() : expected.Prev();
      forward ? actual->Next() : actual->Prev();
      ASSERT_TRUE(SamePosition(expected, *actual)) << "after " << steps << " steps";
    }
  }
}

TEST_P(DbIteratorTest, RandomWalks) {
  Random random(17);
  ASSERT_NO_FATAL_FAILURE(Load(MakeKeyUniverse(&random, 200, false)));
  for (int walk = 0; walk < 20 / kSlowdown + 1; ++walk) {
    auto expected = Expected();
    auto actual = db_->NewIterator({});
    ASSERT_TRUE(WalkTogether(&expected, actual.get(), keys_, 200, &random)) << "walk " << walk;
  }
}

TEST_P(DbIteratorTest, BoundsAndPrefixes) {
  Random random(23);
  std::vector<std::string> keys = ScatteredKeys(100);
  for (const auto& key : MakeKeyUniverse(&random, 100, false)) keys.push_back(key);
  for (int i = 0; i < 20; ++i) keys.push_back("\xff\xff" + std::string(i, 'x'));
  ASSERT_NO_FATAL_FAILURE(Load(keys));
  struct Range {
    std::optional<std::string> lower, upper, prefix;
  };
  std::vector<Range> ranges = {
      {"key000020", "key000100", {}},
      {"key000021", "key000101", {}},
      {{}, "key000050", {}},
      {"key000150", {}, {}},
      {"key000050", "key000050", {}},
      {"key000060", "key000050", {}},
      {"zzz", {}, {}},
      {{}, "", {}},
      {"", {}, {}},
      {{}, {}, "key"},
      {{}, {}, "key0001"},
      {{}, {}, "key000100"},
      {{}, {}, ""},
      {{}, {}, "\xff"},
      {{}, {}, "\xff\xff"},
      {{}, {}, "nothing like it"},
      {"key000020", "key000120", "key0001"},
      {{}, {}, std::string(300, 'p')},
      {"\xff", {}, std::string(1, '\0')},
  };
  for (int i = 0; i < 20; ++i) ranges.push_back({keys[random.Uniform(keys.size())], keys[random.Uniform(keys.size())], {}});
  for (const auto& range : ranges) {
    ReadOptions options;
    if (range.lower) options.iterate_lower_bound = *range.lower;
    if (range.upper) options.iterate_upper_bound = *range.upper;
    if (range.prefix) options.prefix = *range.prefix;
    SCOPED_TRACE((range.lower ? "from " + Printable(*range.lower) : "") + (range.upper ? " to " + Printable(*range.upper) : "") +
                 (range.prefix ? " prefix " + Printable(*range.prefix) : ""));
    const Pairs visible = VisiblePairs(content_, options);
    EXPECT_EQ(ScanForward(db_.get(), options), visible);
    Pairs backward = ScanBackward(db_.get(), options);
    std::reverse(backward.begin(), backward.end());
    EXPECT_EQ(backward, visible);
    auto expected = Expected(options);
    auto actual = db_->NewIterator(options);
    ASSERT_TRUE(WalkTogether(&expected, actual.get(), keys_, 100, &random));
  }
}

TEST_P(DbIteratorTest, BoundsAreCopied) {
  ASSERT_NO_FATAL_FAILURE(Load(ScatteredKeys(100)));
  auto lower = std::make_unique<std::string>("key000050");
  auto upper = std::make_unique<std::string>("key000060");
  ReadOptions options;
  options.iterate_lower_bound = *lower;
  options.iterate_upper_bound = *upper;
  const Pairs visible = VisiblePairs(content_, options);
  auto iterator = db_->NewIterator(options);
  lower->assign("zzzzzzzzz");
  upper->assign("aaaaaaaaa");
  lower.reset();
  upper.reset();
  Pairs seen;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) seen.emplace_back(iterator->key(), iterator->value());
  EXPECT_EQ(seen, visible);
}

TEST_P(DbIteratorTest, SeesOneViewWhateverHappensLater) {
  ASSERT_NO_FATAL_FAILURE(Load(ScatteredKeys(200)));
  const auto frozen = content_;
  const Snapshot* snapshot = db_->GetSnapshot();
  ReadOptions at_snapshot;
  at_snapshot.snapshot = snapshot;
  auto before = db_->NewIterator({});
  Random random(29);
  ReferenceIterator expected(VisiblePairs(frozen, {}), BytewiseComparator());
  for (int round = 0; round < 6; ++round) {
    ASSERT_TRUE(WalkTogether(&expected, before.get(), keys_, 40, &random)) << "round " << round;
    ASSERT_EQ(ScanForward(db_.get(), at_snapshot), VisiblePairs(frozen, {})) << "round " << round;
    for (int i = 0; i < 100; ++i) {
      const std::string key = NumberedKey(random.Uniform(400));
      random.OneIn(3) ? Delete(key) : Put(key, PatternedValue(random.Next(), 100));
    }
    if (round % 3 == 0) {
      ASSERT_OK(Flush());
    }
    if (round % 3 == 1) {
      ASSERT_OK(Merge());
    }
  }
  before.reset();
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(Merge());
  EXPECT_TRUE(HoldsExactly(db_.get(), content_));
}

TEST_P(DbIteratorTest, ValuesStayReadableUntilTheIteratorMoves) {
  ASSERT_NO_FATAL_FAILURE(Load(ScatteredKeys(50)));
  auto iterator = db_->NewIterator({});
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  const Slice key = iterator->key();
  const Slice value = iterator->value();
  const std::string key_copy(key);
  const std::string value_copy(value);
  for (int i = 0; i < 2000 / kSlowdown; ++i) Put(key_copy, PatternedValue(i, 500));
  ASSERT_OK(Merge());
  EXPECT_EQ(key, key_copy);
  EXPECT_EQ(value, value_copy);
}

TEST_P(DbIteratorTest, LongRunsOfTombstonesAndOldVersions) {
  // Two keys that stay, and between them thousands of entries that nobody sees.
  std::vector<std::string> keys = {"a", "z"};
  for (int i = 0; i < 300; ++i) keys.push_back("m" + NumberedKey(i));
  ASSERT_NO_FATAL_FAILURE(Load(keys));
  Put("a", "first");
  Put("z", "last");
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 300; ++i) Put("m" + NumberedKey(i), "version");
    for (int i = 0; i < 300; ++i) Delete("m" + NumberedKey(i));
    if (round == 0) {
      ASSERT_OK(Flush());
    }
  }
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "first"}, {"z", "last"}}));
  auto iterator = db_->NewIterator({});
  iterator->Seek("m");
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "z");
  iterator->Prev();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "a");
  iterator->Next();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "z");
  iterator->SeekForPrev("y");
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "a");
  iterator->Prev();
  EXPECT_FALSE(iterator->Valid());
}

TEST_P(DbIteratorTest, CustomComparators) {
  static const LastByteComparator last_byte;
  for (const Comparator* comparator : std::initializer_list<const Comparator*>{ReverseBytewiseComparator(), &last_byte}) {
    SCOPED_TRACE(comparator->Name());
    content_.clear();
    options_.comparator = comparator;
    ASSERT_NO_FATAL_FAILURE(Open());
    Random random(31);
    ASSERT_NO_FATAL_FAILURE(Load(MakeKeyUniverse(&random, 200, false)));
    EXPECT_TRUE(HoldsExactly(db_.get(), VisiblePairs(content_, {}, comparator)));
    auto expected = Expected();
    auto actual = db_->NewIterator({});
    ASSERT_TRUE(WalkTogether(&expected, actual.get(), keys_, 500, &random));
    for (int i = 0; i < 10; ++i) {
      ReadOptions options;
      const std::string lower = keys_[random.Uniform(keys_.size())];
      const std::string upper = keys_[random.Uniform(keys_.size())];
      options.iterate_lower_bound = lower;
      options.iterate_upper_bound = upper;
      EXPECT_EQ(ScanForward(db_.get(), options), VisiblePairs(content_, options, comparator));
    }
  }
}

TEST_P(DbIteratorTest, KeysThatAreEqualWithoutBeingTheSameBytes) {
  static const CaseInsensitiveComparator comparator;
  options_.comparator = &comparator;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Load({"Alpha", "beta"}));
  Put("Alpha", "newer");
  ASSERT_OK(db_->Put({}, "ALPHA", "newest"));
  ASSERT_OK(db_->Put({}, "Gamma", "3"));
  ASSERT_OK(db_->Delete({}, "gAMMA"));
  for (int stage = 0; stage < 3; ++stage) {
    SCOPED_TRACE(stage);
    EXPECT_EQ(GetOrText(db_.get(), "alpha"), "newest");
    EXPECT_EQ(GetOrText(db_.get(), "gamma"), "<not found>");
    const Pairs pairs = ScanForward(db_.get());
    ASSERT_EQ(pairs.size(), content_.size());
    EXPECT_EQ(pairs.front().second, "newest");
    ASSERT_OK(stage == 0 ? Flush() : Merge());
  }
}

// ---- With background work going on

TEST(DbIteratorUnderWork, ManyIteratorsEachWithItsOwnView) {
  TestDirectory directory;
  auto db = OpenOrFail(TinyOptions(2), directory.File("db"));
  ASSERT_NE(db, nullptr);
  struct View {
    std::unique_ptr<Iterator> iterator;
    ReferenceIterator expected;
  };
  std::vector<View> views;
  std::map<std::string, std::string> content;
  std::vector<std::string> keys;
  for (int i = 0; i < 200; ++i) keys.push_back(NumberedKey(i));
  Random random(37);
  for (int i = 0; i < 8000 / kSlowdown; ++i) {
    const auto& key = keys[random.Uniform(keys.size())];
    if (random.OneIn(4)) {
      ASSERT_OK(db->Delete({}, key));
      content.erase(key);
    } else {
      content[key] = PatternedValue(i, random.Uniform(200));
      ASSERT_OK(db->Put({}, key, content[key]));
    }
    if (i % 100 == 0) {
      if (views.size() == 10) views.erase(views.begin() + static_cast<int>(random.Uniform(10)));
      views.push_back({db->NewIterator({}), ReferenceIterator(VisiblePairs(content, {}))});
    }
    if (i % 20 == 0) {
      auto& view = views[random.Uniform(views.size())];
      ASSERT_TRUE(WalkTogether(&view.expected, view.iterator.get(), keys, 30, &random)) << "after " << i << " writes";
    }
  }
  EXPECT_GT(db->GetStatistics().compactions, 5u);
  for (auto& view : views) {
    EXPECT_TRUE(WalkTogether(&view.expected, view.iterator.get(), keys, 300, &random));
  }
}

}  // namespace
}  // namespace braiddb::test
