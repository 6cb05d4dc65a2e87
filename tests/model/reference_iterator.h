// What an iterator must do, said on a sorted vector: the oracle of the iterator and the model tests.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/comparator.h"
#include "braiddb/iterator.h"
#include "braiddb/options.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

// The pairs of `content` (any order) that an iterator with these options yields, in its order.
template <class Content>
Pairs VisiblePairs(const Content& content, const ReadOptions& options, const Comparator* comparator = BytewiseComparator()) {
  Pairs pairs;
  for (const auto& [key, value] : content) {
    const Slice slice = key;
    if (options.iterate_lower_bound && comparator->Compare(slice, *options.iterate_lower_bound) < 0) continue;
    if (options.iterate_upper_bound && comparator->Compare(slice, *options.iterate_upper_bound) >= 0) continue;
    if (options.prefix && !slice.starts_with(*options.prefix)) continue;
    pairs.emplace_back(key, value);
  }
  std::sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) { return comparator->Compare(a.first, b.first) < 0; });
  return pairs;
}

class ReferenceIterator {
 public:
  explicit ReferenceIterator(Pairs pairs, const Comparator* comparator = BytewiseComparator())
      : pairs_(std::move(pairs)), comparator_(comparator), position_(pairs_.size()) {}

  bool Valid() const { return position_ < pairs_.size(); }
  void SeekToFirst() { position_ = 0; }
  void SeekToLast() { position_ = pairs_.size() - 1; }  // of none: invalid, as SIZE_MAX
  void Seek(Slice target) {
    position_ = 0;
    while (Valid() && comparator_->Compare(pairs_[position_].first, target) < 0) ++position_;
  }
  void SeekForPrev(Slice target) {
    SeekToLast();
    while (Valid() && comparator_->Compare(pairs_[position_].first, target) > 0) --position_;
  }
  void Next() { ++position_; }
  void Prev() { --position_; }  // before the first: invalid
  const std::string& key() const { return pairs_[position_].first; }
  const std::string& value() const { return pairs_[position_].second; }

 private:
  Pairs pairs_;
  const Comparator* comparator_;
  size_t position_;
};

// Both at the same pair, or both at none.
inline testing::AssertionResult SamePosition(const ReferenceIterator& expected, const Iterator& actual) {
  if (!actual.status().ok()) return testing::AssertionFailure() << "iterator failed: " << actual.status().ToString();
  if (expected.Valid() != actual.Valid()) {
    return testing::AssertionFailure() << (actual.Valid() ? "iterator at " + Printable(actual.key()) + ", expected the end"
                                                          : "iterator at the end, expected " + Printable(expected.key()));
  }
  if (!expected.Valid()) return testing::AssertionSuccess();
  if (expected.key() != actual.key()) {
    return testing::AssertionFailure() << "iterator at " << Printable(actual.key()) << ", expected " << Printable(expected.key());
  }
  if (expected.value() != actual.value()) {
    return testing::AssertionFailure() << Printable(expected.key()) << " has value " << Printable(actual.value()) << ", expected "
                                       << Printable(expected.value());
  }
  return testing::AssertionSuccess();
}

// A random walk of `steps` over both, with seeks to keys of `targets` and to their neighbours, and with changes of direction.
// Returns the first difference, with the steps that led there.
inline testing::AssertionResult WalkTogether(ReferenceIterator* expected, Iterator* actual,
                                             const std::vector<std::string>& targets, int steps, Random* random) {
  std::string trail;
  const auto note = [&](const std::string& step) { trail += (trail.empty() ? "" : ", ") + step; };
  for (int i = 0; i < steps; ++i) {
    const uint64_t choice = expected->Valid() ? random->Uniform(20) : random->Uniform(4);
    if (choice == 0) {
      note("SeekToFirst");
      expected->SeekToFirst();
      actual->SeekToFirst();
    } else if (choice == 1) {
      note("SeekToLast");
      expected->SeekToLast();
      actual->SeekToLast();
    } else if (choice <= 3) {
      std::string target = targets.empty() ? "x" : targets[random->Uniform(targets.size())];
      if (random->OneIn(4)) target += '\0';
      if (random->OneIn(4) && !target.empty()) target.pop_back();
      if (random->OneIn(4) && !target.empty()) target.back() = static_cast<char>(target.back() - 1);
      note((choice == 2 ? "Seek " : "SeekForPrev ") + Printable(target));
      choice == 2 ? expected->Seek(target) : expected->SeekForPrev(target);
      choice == 2 ? actual->Seek(target) : actual->SeekForPrev(target);
    } else {
      const bool forward = choice < 12;
      note(forward ? "Next" : "Prev");
      forward ? expected->Next() : expected->Prev();
      forward ? actual->Next() : actual->Prev();
    }
    if (auto result = SamePosition(*expected, *actual); !result) {
      const size_t shown = std::min<size_t>(trail.size(), 600);
      return result << "; last steps: … " << trail.substr(trail.size() - shown);
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace braiddb::test
