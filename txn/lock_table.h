// LockTable: locks on keys, by transaction, and the wait-for graph of the waiting transactions.
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

// The part of a transaction that other transactions see through its locks.
struct LockOwner {
  using Clock = std::chrono::steady_clock;

  const uint64_t id = NewId();  // unique in this process; never 0
  bool detects_deadlocks = false;
  bool is_exempt = false;  // the limit of locks does not apply
  uint32_t depth = 0;      // maximum search depth of the deadlock detection
  Clock::time_point expires = Clock::time_point::max();
  std::atomic<TransactionState> state{TransactionState::kStarted};

  static uint64_t NewId() {
    static std::atomic<uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
  }
  bool MayExpire() const { return expires != Clock::time_point::max(); }
  bool IsExpired() const { return MayExpire() && Clock::now() >= expires; }
  // Changes the state only if it is `from`; otherwise returns false. So either the owner's step succeeds, or another transaction
  // takes the owner's locks, and never both.
  bool Become(TransactionState from, TransactionState to) {
    return state.compare_exchange_strong(from, to, std::memory_order_acq_rel);
  }
};

// Converts a time limit of the options. Limits the value to one year, so that sums do not overflow.
inline LockOwner::Clock::duration Milliseconds(int64_t ms) {
  return std::chrono::milliseconds(std::min<int64_t>(ms, 366ll * 24 * 3600 * 1000));
}

// Exclusive and shared locks on keys of column families. An owner needs no registration. It must release all its locks before it
// is destroyed.
// Fairness: none. The waiter that wakes first takes the lock.
// Thread safety: all methods may be called concurrently. Calls for one owner must not overlap.
class LockTable {
 public:
  // `max_locks`: 0 means no limit.
  LockTable(uint32_t stripes, uint64_t max_locks);
  ~LockTable();
  LockTable(const LockTable&) = delete;
  LockTable& operator=(const LockTable&) = delete;

  // `timeout_ms`: a negative value means no timeout. Returns OK also if the owner already has the lock; a shared lock becomes
  // exclusive if `exclusive` is set. Returns TimedOut; Busy after a deadlock or if there are too many locks; Expired if the owner
  // expired while it waited. May throw std::bad_alloc. The owner then has only the locks that it had before.
  Status Lock(LockOwner* owner, const FamilySlice& key, bool exclusive, int64_t timeout_ms);
  // No effect if the owner does not hold the lock.
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
  // The other holders of a lock.
  struct Others {
    std::vector<uint64_t> ids;
    bool may_expire = false;  // at least one of them can expire
  };
  Attempt Try(Stripe* stripe, LockOwner* owner, const FamilyKey& key, bool exclusive, Others* others);
  static void DropExpired(Holders* holders, const LockOwner* except);
  // Returns true if one of `holders` waits for the owner, directly or indirectly. Otherwise enters the owner as waiting.
  bool WaitWouldDeadlock(const LockOwner& owner, const std::vector<uint64_t>& holders);
  void EndWait(const LockOwner& owner);

  std::vector<Stripe> stripes_;
  const uint64_t max_locks_;
  std::atomic<uint64_t> count_{0};

  std::mutex waits_mutex_;                                         // locked while a stripe's mutex is held
  std::unordered_map<uint64_t, std::vector<uint64_t>> waits_for_;  // wait-for graph, by transaction id
};

}  // namespace braiddb
