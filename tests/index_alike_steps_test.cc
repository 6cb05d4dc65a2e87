// AlikeSteps: the range always has the first item at or after the target, and is short where keys differ.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "index/alike_steps.h"
#include "index/bit_tree.h"
#include "tests/support/key_kinds.h"

namespace braiddb::test {
namespace {

class AlikeStepsTest : public testing::Test {
 protected:
  AlikeSteps Build(const KeyOrder& order) {
    std::sort(keys_.begin(), keys_.end(), [&](const auto& a, const auto& b) { return order.Compare(a, b) < 0; });
    are_distinct_ = std::adjacent_find(keys_.begin(), keys_.end()) == keys_.end();
    AlikeSteps steps;
    steps.Build(ArrayOfKeys(order), order, heap_.get());
    EXPECT_LE(steps.bytes(), 5.2 * static_cast<double>(keys_.size()) + 400);
    return steps;
  }
  AlikeSteps::Array ArrayOfKeys(const KeyOrder& order) const {
    return {keys_.size(), [&](size_t i) { return order.Prefix(keys_.at(i)); }, [&](size_t i) { return Slice(keys_.at(i)); },
            [](size_t) {}};
  }
  // The steps of another process, which maps the memory elsewhere.
  AlikeSteps Attached(const AlikeSteps& steps) const { return AlikeSteps::Attach(*mapped_, steps.shared(), keys_.size()); }
  // The steps of a search of several arrays find what Narrow finds. By the bits, one key is read. Returns whether there were
  // bits.
  bool SearchByBits(const AlikeSteps& steps, const KeyOrder& order, const std::string& target, size_t first) const {
    const SearchKey sought(order, target, kMaxSequence);
    const AlikeSteps::Top* const top = steps.TopOf(sought.prefix);
    if (top == nullptr) return false;
    EXPECT_TRUE(top->begin == 0 || order.Prefix(keys_.at(top->begin - 1)) != sought.prefix);
    const size_t past = top->begin + top->items;
    EXPECT_TRUE(past == keys_.size() || order.Prefix(keys_.at(past)) != sought.prefix);
    size_t at = top->begin, end = past, near = at, far = end;
    const size_t group = steps.FindGroup(order, sought, *top, steps.FindAbove(order, sought, *top));
    steps.NarrowFrom(order, sought, *top, group, &at, &end);
    steps.Narrow(order, sought, &near, &far);
    EXPECT_TRUE(at == near && end == far);
    const uint16_t* const bits = steps.BitsOf(*top, at, end);
    if (bits == nullptr || at == end) return false;
    const BitTree tree(bits, static_cast<uint32_t>(end - at));
    size_t reads = 0;
    bool has_key = false;
    const auto key_at = [&](uint32_t i) {
      ++reads;
      return SearchKey(order, keys_.at(at + i), 1);
    };
    const uint32_t found = tree.FirstNotBefore(order, sought, tree.Candidate(sought.key, order.is_reverse()), key_at, &has_key);
    EXPECT_EQ(at + found, first) << Printable(target);
    EXPECT_EQ(has_key, first < keys_.size() && keys_[first] == target);
    EXPECT_TRUE(reads == 1 || !are_distinct_);
    return true;
  }
  // The length of the range, which has the target's place in it.
  size_t LengthFor(const AlikeSteps& steps, const KeyOrder& order, const std::string& target) {
    const auto before = [&](const auto& a, const auto& b) { return order.Compare(a, b) < 0; };
    const auto first = std::lower_bound(keys_.begin(), keys_.end(), target, before) - keys_.begin();
    size_t at = 0, end = keys_.size();
    steps.Narrow(order, SearchKey(order, target, kMaxSequence), &at, &end);
    EXPECT_LE(at, static_cast<size_t>(first)) << Printable(target);
    EXPECT_GE(end, static_cast<size_t>(first)) << Printable(target);
    by_bits_ += SearchByBits(steps, order, target, static_cast<size_t>(first)) ? 1 : 0;
    return end - at;
  }

  const KeyOrder bytewise_{BytewiseComparator()};
  const KeyOrder reverse_{ReverseBytewiseComparator()};
  const std::unique_ptr<SharedHeap> heap_ = SharedHeap::Create();
  const std::unique_ptr<SharedMemory> mapped_ = SharedMemory::Attach(heap_->memory().OpenToRead(), false, 1);
  Random random_{5};
  std::vector<std::string> keys_;
  bool are_distinct_ = false;
  size_t by_bits_ = 0;  // searches that used bits
};

TEST_F(AlikeStepsTest, NarrowsKeysOfAnyKind) {
  std::vector<KeyKind> kinds(std::begin(kKeyKinds), std::end(kKeyKinds));
  kinds.insert(kinds.end(), std::begin(kAlikeKinds), std::end(kAlikeKinds));
  kinds.push_back({"Tenants", [](Random* random) {
                     return "tenant-" + std::to_string(1000 + random->Uniform(10)) + "/object/" +
                            NumberedKey(random->Uniform(1000));
                   }});
  kinds.push_back({"Nested", [](Random* random) {
                     return "nested: " + std::string(8 * random->Uniform(40), 'n') + std::to_string(random->Uniform(1000));
                   }});
  for (const KeyKind& kind : kinds) {
    SCOPED_TRACE(kind.name);
    for (const KeyOrder* order : {&bytewise_, &reverse_}) {
      for (const size_t count : {0, 1, 127, 128, 129, 3000, 20000}) {
        if (count > 3000 && keys_.size() > 0 && keys_[0].size() > 3000) continue;
        keys_.clear();
        for (size_t i = 0; i < count; ++i) keys_.push_back(kind.draw(&random_));
        const AlikeSteps steps = Build(*order);
        const AlikeSteps copy = steps.CopyTo(nullptr);
        const AlikeSteps attached = Attached(steps);
        EXPECT_TRUE(attached.empty() == steps.empty() && copy.empty() == steps.empty());
        EXPECT_TRUE(Attached(copy).empty());
        for (int i = 0; i < 500; ++i) {
          std::string target = kind.draw(&random_);
          if (i % 3 == 0) target.resize(random_.Uniform(target.size() + 1));
          if (i % 5 == 0) target.append(random_.Uniform(10), random_.OneIn(2) ? '\0' : '\xff');
          if (i % 7 == 0 && !target.empty()) ++target[random_.Uniform(target.size())];
          const size_t length = LengthFor(steps, *order, target);
          EXPECT_EQ(LengthFor(attached, *order, target), length);
          EXPECT_EQ(LengthFor(copy, *order, target), length);
        }
      }
    }
  }
}

// A reader that has expired may find anything in the memory. A search must come to an end, with a range of the array.
TEST_F(AlikeStepsTest, MemoryInOtherUseIsRead) {
  for (const KeyKind& kind : kAlikeKinds) {
    SCOPED_TRACE(kind.name);
    keys_.clear();
    for (size_t i = 0; i < 2000; ++i) keys_.push_back(kind.draw(&random_));
    const AlikeSteps steps = Build(bytewise_);
    const AlikeSteps before = Attached(steps);
    const AlikeSteps::Shared shared = steps.shared();
    const auto search = [&](const AlikeSteps& attached) {
      for (int i = 0; i < 20; ++i) {
        const std::string target = kind.draw(&random_);
        const SearchKey sought(bytewise_, target, kMaxSequence);
        size_t at = random_.Uniform(keys_.size() + 1);
        size_t end = at + random_.Uniform(keys_.size() - at + 1);
        const AlikeSteps::Top* const top = attached.TopOf(sought.prefix);
        if (top != nullptr && random_.OneIn(2)) {
          at = top->begin;
          end = at + top->items;
        }
        const size_t least = at, most = end;
        attached.Narrow(bytewise_, sought, &at, &end);
        ASSERT_TRUE(least <= at && at <= end && end <= most && most <= keys_.size());
        const uint16_t* const bits = top == nullptr ? nullptr : attached.BitsOf(*top, at, end);
        if (bits == nullptr || at == end) continue;
        const BitTree tree(bits, static_cast<uint32_t>(end - at));
        ASSERT_LT(tree.Candidate(sought.key, false), end - at);
      }
    };
    search(before);
    for (uint64_t round = 0; round < 300 / kSlowdown && shared.offset != 0; ++round) {
      for (int i = 0; i < 16; ++i) {
        const uint64_t word = random_.OneIn(2) ? random_.Next() : random_.Uniform(4096);
        std::memcpy(heap_->At(shared.offset + 8 * random_.Uniform(2000)), &word, sizeof(word));
      }
      ASSERT_NO_FATAL_FAILURE(search(before));
      AlikeSteps::Shared other = shared;
      uint64_t* const fields[] = {&other.offset, &other.nodes, &other.tops, &other.words, &other.bits, &other.shared_bytes};
      if (random_.OneIn(2)) *fields[random_.Uniform(6)] = random_.OneIn(2) ? random_.Next() : random_.Uniform(1 << 16);
      ASSERT_NO_FATAL_FAILURE(search(AlikeSteps::Attach(*mapped_, other, keys_.size())));
    }
  }
}

TEST_F(AlikeStepsTest, OfDistinctKeysTheRangeIsShort) {
  const auto longest_range = [this](const KeyOrder& order) {
    const AlikeSteps steps = Build(order);
    size_t longest = 0;
    for (const std::string& key : keys_) longest = std::max(longest, LengthFor(steps, order, key));
    return longest;
  };
  for (const KeyOrder* order : {&bytewise_, &reverse_}) {
    keys_.clear();
    for (int i = 0; i < 20000; ++i) keys_.push_back("user:" + NumberedKey(i));
    EXPECT_LE(longest_range(*order), 2 * AlikeSteps::kSampled);
    keys_.clear();
    for (int i = 0; i < 20000; ++i) keys_.push_back("tenant-" + std::to_string(1000 + i % 20) + "/the objects/" + NumberedKey(i));
    EXPECT_LE(longest_range(*order), 2 * AlikeSteps::kSampled);
    keys_.clear();
    for (int i = 0; i < 3000; ++i) keys_.push_back(std::string(2000, 'k') + NumberedKey(i));
    EXPECT_LE(longest_range(*order), 2 * AlikeSteps::kSampled);
    // Eight of a kind differ in the words that are compared, and their own differences are left to the caller.
    keys_.clear();
    for (int i = 0; i < 20000; ++i) keys_.push_back("group of" + NumberedKey(i / 100) + " " + NumberedKey(i));
    EXPECT_LE(longest_range(*order), AlikeSteps::kSampled * (AlikeSteps::kLeast + 1));
  }
}

// Duplicates stand for versions of one key. Keys that differ too far behind have no bits; other prefixes keep theirs.
TEST_F(AlikeStepsTest, BitsEndTheSearch) {
  for (const KeyOrder* order : {&bytewise_, &reverse_}) {
    keys_.clear();
    for (int i = 0; i < 3000; ++i) keys_.push_back("user:0000" + NumberedKey(random_.Uniform(1 << 20)));
    for (int i = 0; i < 300; ++i) keys_.push_back("versions" + NumberedKey(i / 5));
    for (int i = 0; i < 100; ++i) keys_.push_back("far away" + std::string(5000, 'f') + NumberedKey(i));
    const AlikeSteps steps = Build(*order);
    by_bits_ = 0;
    for (const std::string& key : std::vector<std::string>(keys_)) (void)LengthFor(steps, *order, key);
    EXPECT_GE(by_bits_, 3000u);
    EXPECT_LE(by_bits_, 3300u);
  }
}

TEST(BitTreeTest, LongKeysThatMayBeEqualHaveNoPosition) {
  uint16_t bit = 0;
  const std::string most(BitTree::kMostBytes, 'k');
  EXPECT_TRUE(BitTree::Differ(most, most, &bit));
  EXPECT_EQ(bit, BitTree::kSame);
  EXPECT_TRUE(BitTree::Differ(most, most + "x", &bit));
  EXPECT_EQ(bit, KeyBits::kPerByte * BitTree::kMostBytes);
  EXPECT_TRUE(BitTree::Differ(most + "a", most + "b", &bit));
  EXPECT_LE(bit, BitTree::kMostPosition);
  EXPECT_TRUE(BitTree::Differ(most + "x", most + "x", &bit));
  EXPECT_EQ(bit, BitTree::kSame);
  EXPECT_FALSE(BitTree::Differ(most + "x", most + "xy", &bit));
  EXPECT_FALSE(BitTree::Differ(most + "xa", most + "xb", &bit));
  EXPECT_FALSE(BitTree::Differ(most + "xy", most + "xy", &bit));
  EXPECT_TRUE(BitTree::Differ(most + "xy", "k" + std::string(70000, 'l'), &bit));
}

// No memory is taken where prefixes tell keys apart, or where only the comparator does.
TEST_F(AlikeStepsTest, IsEmptyWhereItIsOfNoUse) {
  for (int i = 0; i < 5000; ++i) keys_.push_back(PatternedValue(random_.Next(), 16));
  EXPECT_TRUE(Build(bytewise_).empty());
  keys_.clear();
  for (int i = 0; i < 5000; ++i) keys_.push_back("all the same " + NumberedKey(i));
  EXPECT_FALSE(Build(bytewise_).empty());
  class Backward final : public Comparator {
   public:
    const char* Name() const override { return "test.Backward"; }
    int Compare(Slice a, Slice b) const override { return b.compare(a); }
  };
  const Backward backward;
  EXPECT_TRUE(Build(KeyOrder(&backward)).empty());
}

}  // namespace
}  // namespace braiddb::test
