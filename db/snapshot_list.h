// SnapshotList: the sequence numbers at which readers read.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "util/check.h"

namespace braiddb {

class SnapshotImpl final : public Snapshot {
 public:
  explicit SnapshotImpl(uint64_t sequence) : sequence_(sequence) {}
  uint64_t GetSequenceNumber() const override { return sequence_; }

 private:
  const uint64_t sequence_;
};

// Snapshots, iterators and MultiGets register here, so that flush and compaction keep the versions that they see.
// Cost: registering and unregistering take constant time, plus a binary search if the number is not the newest one.
// Thread safety: all methods may be called concurrently.
class SnapshotList {
 public:
  // From now on calls `add` for a number that is registered by RegisterAgain and was not in use, and `drop` for a number that is
  // not in use any more, under the lock of the list. A number that Register chooses is not passed to `add`. `add` may throw.
  void SetMirror(std::function<void(uint64_t)> add, std::function<void(uint64_t)> drop) {
    add_ = std::move(add);
    drop_ = std::move(drop);
  }
  // Registers the sequence number that `choose` returns. `choose` is called with the largest number of the list, or 0, and
  // returns no smaller one. The number is chosen and registered under one lock. So if `choose` returns the newest number that was
  // drawn, and a copy of the list does not have it, it is at least as large as every number that was drawn before the copy.
  template <class Choose>
  uint64_t Register(const Choose& choose) {
    std::lock_guard lock(mutex_);
    const uint64_t sequence = choose(numbers_.empty() ? 0 : numbers_.back().sequence);
    if (numbers_.empty() || numbers_.back().sequence != sequence) {
      BRAIDDB_DCHECK(numbers_.empty() || numbers_.back().sequence < sequence);
      try {
        numbers_.push_back({sequence, 0, CoarseSeconds()});
      } catch (const std::bad_alloc&) {
        if (drop_ != nullptr) drop_(sequence);
        throw;
      }
      ++used_;
    }
    ++numbers_.back().count;
    ++size_;
    return sequence;
  }
  // Adds one registration to a number that is registered, or was.
  void RegisterAgain(uint64_t sequence) {
    std::lock_guard lock(mutex_);
    auto it = Find(sequence);
    if (add_ != nullptr && (it == numbers_.end() || it->sequence != sequence || it->count == 0)) add_(sequence);
    if (it == numbers_.end() || it->sequence != sequence) it = numbers_.insert(it, {sequence, 0, 0});
    if (it->count++ == 0) {
      it->registered = CoarseSeconds();
      ++used_;
    }
    ++size_;
  }
  void Unregister(uint64_t sequence) {
    std::lock_guard lock(mutex_);
    const auto it = Find(sequence);
    BRAIDDB_CHECK(it != numbers_.end() && it->sequence == sequence && it->count != 0);
    --size_;
    if (--it->count == 0) {
      if (drop_ != nullptr) drop_(sequence);
      --used_;
      RemoveUnused();
    }
  }
  // Each number once, in ascending order.
  std::vector<uint64_t> Copy() const {
    std::lock_guard lock(mutex_);
    std::vector<uint64_t> sequences;
    sequences.reserve(used_);
    for (const Number& number : numbers_) {
      if (number.count != 0) sequences.push_back(number.sequence);
    }
    return sequences;
  }
  // UINT64_MAX if there is none.
  uint64_t Oldest() const {
    std::lock_guard lock(mutex_);
    return numbers_.empty() ? UINT64_MAX : numbers_.front().sequence;
  }
  // The time since the oldest number was registered first; seconds, with a resolution of some milliseconds. 0 if there is none.
  double OldestAge() const {
    std::lock_guard lock(mutex_);
    return numbers_.empty() ? 0 : std::max(0.0, CoarseSeconds() - numbers_.front().registered);
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return size_;
  }

 private:
  struct Number {
    uint64_t sequence;
    uint64_t count;     // the number of registrations; 0: the number is unused
    double registered;  // CoarseSeconds of the first registration
  };

  // Monotonic. The kernel keeps this clock by its ticks, so a read costs a few nanoseconds.
  static double CoarseSeconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
  }

  // The first number that is not smaller. Most registrations are of the newest number, so it is checked first.
  std::deque<Number>::iterator Find(uint64_t sequence) {
    if (!numbers_.empty() && numbers_.back().sequence == sequence) return std::prev(numbers_.end());
    return std::lower_bound(numbers_.begin(), numbers_.end(), sequence,
                            [](const Number& number, uint64_t wanted) { return number.sequence < wanted; });
  }
  // Keeps this invariant: the first and the last number are in use, and at most about half of the numbers are unused. Takes
  // constant amortized time.
  void RemoveUnused() {
    constexpr size_t kFew = 16;
    while (!numbers_.empty() && numbers_.back().count == 0) numbers_.pop_back();
    while (!numbers_.empty() && numbers_.front().count == 0) numbers_.pop_front();
    if (numbers_.size() > 2 * used_ + kFew) std::erase_if(numbers_, [](const Number& number) { return number.count == 0; });
  }

  mutable std::mutex mutex_;
  std::deque<Number> numbers_;  // ascending
  size_t used_ = 0;             // numbers that are in use
  size_t size_ = 0;             // the sum of counts
  std::function<void(uint64_t)> add_, drop_;
};

// Unregisters the number in its destructor, if Leave was not called. `list` null: does nothing.
class SnapshotRegistration {
 public:
  SnapshotRegistration(SnapshotList* list, uint64_t sequence) : list_(list), sequence_(sequence) {}
  ~SnapshotRegistration() {
    if (list_ != nullptr) list_->Unregister(sequence_);
  }
  SnapshotRegistration(const SnapshotRegistration&) = delete;
  SnapshotRegistration& operator=(const SnapshotRegistration&) = delete;

  void Leave() { list_ = nullptr; }

 private:
  SnapshotList* list_;
  const uint64_t sequence_;
};

}  // namespace braiddb
