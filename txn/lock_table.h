// LockTable: which transactions hold which keys, and who waits for whom.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "braiddb/status.h"
#include "braiddb/transaction.h"
#include "txn/family_key.h"

namespace braiddb {

// The part of a transaction that others see through its locks.
struct LockOwner {
  using Clock = std::chrono::steady_clock;

  const uint64_t id = NewId();  // unique in this process, not 0
  bool detects_deadlocks = false;
  bool is_exempt = false;  // from the limit of locks
  uint32_t depth = 0;      // of the search for a deadlock
  Clock::time_point expires = Clock::time_point::max();
  std::atomic<TransactionState> state{TransactionState::kStarted};

  static uint64_t NewId() {
    static std::atomic<uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
  }
  bool MayExpire() const { return expires != Clock::time_point::max(); }
  bool IsExpired() const { return MayExpire() && Clock::now() >= expires; }
  // False, and nothing changes, if it is not `from`: only one of the owner's steps and others' taking of its locks succeeds.
  bool Become(TransactionState from, TransactionState to) {
    return state.compare_exchange_strong(from, to, std::memory_order_acq_rel);
  }
};

// A time in the options; what is longer than a year is as good as a year, and does not overflow.
inline LockOwner::Clock::duration Milliseconds(int64_t ms) {
  return std::chrono::milliseconds(std::min<int64_t>(ms, 366ll * 24 * 3600 * 1000));
}

// Exclusive and shared locks on keys of column families. Owners register nothing and must release all locks before they are
// destroyed.
// Fairness: none; whoever wakes first takes the lock.
// Thread safety: every method may be called concurrently; calls for one owner one at a time.
class LockTable {
 public:
  // `max_locks` 0: no limit.
  LockTable(uint32_t stripes, uint64_t max_locks);
  ~LockTable();
  LockTable(const LockTable&) = delete;
  LockTable& operator=(const LockTable&) = delete;

  // `timeout_ms`: negative: for ever. OK also if the owner has the lock already (then a shared one becomes exclusive if asked).
  // TimedOut; Busy: a deadlock, or too many locks; Expired: the owner has, while it waited. Throws std::bad_alloc, and has no
  // lock then that it did not have before.
  Status Lock(LockOwner* owner, const FamilySlice& key, bool exclusive, int64_t timeout_ms);
  // Nothing happens if the owner does not hold it (any more).
  void Unlock(LockOwner* owner, const FamilySlice& key);

  uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Holders {
    bool exclusive = false;
    std::vector<LockOwner*> owners;
  };
  struct Stripe {
    std::mutex mutex;
    std::condition_variable changed;
    std::unordered_map<FamilyKey, Holders, FamilyKeyHasher, FamilyKeyEqual> locks;
  };
  enum class Attempt : uint8_t { kTaken, kHeld, kTooMany };

  Stripe& StripeOf(const FamilySlice& key);
  // Who else holds a lock.
  struct Others {
    std::vector<uint64_t> ids;
    bool may_expire = false;  // one of them
  };
  Attempt Try(Stripe* stripe, LockOwner* owner, const FamilyKey& key, bool exclusive, Others* others);
  static void DropExpired(Holders* holders, const LockOwner* except);
  // True, and the owner is not entered as waiting, if one of `holders` waits for it.
  bool WaitWouldDeadlock(const LockOwner& owner, const std::vector<uint64_t>& holders);
  void EndWait(const LockOwner& owner);

  std::vector<Stripe> stripes_;
  const uint64_t max_locks_;
  std::atomic<uint64_t> count_{0};

  std::mutex waits_mutex_;                                         // taken inside a stripe's
  std::unordered_map<uint64_t, std::vector<uint64_t>> waits_for_;  // transactions by their numbers
};

}  // namespace braiddb
