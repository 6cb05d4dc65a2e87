#include "txn/lock_table.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "util/check.h"
#include "util/perf.h"

namespace braiddb {
namespace {

// A waiter repeats its check after this time. It then finds an expired holder, and a deadlock that other transactions have
// closed.
constexpr std::chrono::milliseconds kLookAgain{10};

}  // namespace

LockTable::LockTable(uint32_t stripes, uint64_t max_locks) : stripes_(std::max(1u, stripes)), max_locks_(max_locks) {}

LockTable::~LockTable() { BRAIDDB_CHECK(count() == 0); }

LockTable::Stripe& LockTable::StripeOf(const FamilySlice& key) { return stripes_[FamilyKeyHasher()(key) % stripes_.size()]; }

// Takes the locks of expired owners. Here they lose the lock on this key, and at their next step all others.
void LockTable::DropExpired(Holders* holders, const LockOwner* except) {
  std::erase_if(holders->owners, [except](LockOwner* owner) {
    return owner != except && owner->IsExpired() && owner->Become(TransactionState::kStarted, TransactionState::kLocksStolen);
  });
  std::erase_if(holders->owners, [except](const LockOwner* owner) {
    return owner != except && owner->state.load(std::memory_order_acquire) == TransactionState::kLocksStolen;
  });
}

// Tries to lock the key without waiting. If other transactions hold the key, fills *others. REQUIRES: the stripe's mutex is held.
LockTable::Attempt LockTable::Try(Stripe* stripe, LockOwner* owner, const FamilyKey& key, bool exclusive, Others* others) {
  const auto place = stripe->locks.find(key);
  if (place == stripe->locks.end()) {
    if (count_.fetch_add(1, std::memory_order_relaxed) >= max_locks_ && max_locks_ != 0 && !owner->is_exempt) {
      count_.fetch_sub(1, std::memory_order_relaxed);
      return Attempt::kTooMany;
    }
    try {
      stripe->locks.emplace(key, Holders{exclusive, {owner}});
    } catch (...) {
      count_.fetch_sub(1, std::memory_order_relaxed);
      throw;
    }
    return Attempt::kTaken;
  }
  Holders& holders = place->second;
  DropExpired(&holders, owner);
  const bool has_it = std::find(holders.owners.begin(), holders.owners.end(), owner) != holders.owners.end();
  const bool alone = holders.owners.size() == (has_it ? 1 : 0);
  if (alone || (!exclusive && !holders.exclusive)) {
    if (!has_it) holders.owners.push_back(owner);
    if (alone) holders.exclusive = exclusive || (has_it && holders.exclusive);
    return Attempt::kTaken;
  }
  if (has_it && !exclusive) return Attempt::kTaken;
  others->ids.clear();
  others->may_expire = false;
  for (const LockOwner* holder : holders.owners) {
    if (holder == owner) continue;
    others->ids.push_back(holder->id);
    others->may_expire |= holder->MayExpire();
  }
  return Attempt::kHeld;
}

Status LockTable::Lock(LockOwner* owner, const FamilySlice& key, bool exclusive, int64_t timeout_ms) {
  const auto end = timeout_ms < 0 ? LockOwner::Clock::time_point::max() : LockOwner::Clock::now() + Milliseconds(timeout_ms);
  Stripe& stripe = StripeOf(key);
  const FamilyKey name = key.Copy();
  Others holders;
  bool waited = false;
  std::unique_lock lock(stripe.mutex);
  for (;;) {
    switch (Try(&stripe, owner, name, exclusive, &holders)) {
      case Attempt::kTaken:
        return Status::OK();
      case Attempt::kTooMany:
        return Status::Busy("more locks than TransactionDBOptions::max_locks; commit in smaller portions");
      case Attempt::kHeld:
        break;
    }
    const auto now = LockOwner::Clock::now();
    if (now >= end) return Status::TimedOut("Timeout waiting to lock key; another transaction holds it");
    if (owner->IsExpired()) return Status::Expired("the transaction has outlived its expiration; roll back and try again");
    if (WaitWouldDeadlock(*owner, holders.ids)) {
      return Status::Busy("Deadlock: the transaction that holds the key waits for this one; roll back and try again");
    }
    if (!waited) perf::Add(&PerfContext::key_lock_wait_count);
    waited = true;
    auto until = std::min(end, owner->expires);
    if (holders.may_expire || owner->detects_deadlocks) until = std::min(until, now + kLookAgain);
    const perf::Timer timed(&PerfContext::key_lock_wait_time);
    if (until == LockOwner::Clock::time_point::max()) {
      stripe.changed.wait(lock);
    } else {
      stripe.changed.wait_until(lock, until);
    }
    EndWait(*owner);
  }
}

// Whether waiting for `holders` would close a cycle in the wait-for graph. If not, enters the owner as waiting.
// WHY EVERY DEADLOCK IS FOUND  The last transaction that enters a cycle finds all other edges in waits_for_. If that transaction
//                              does not detect deadlocks, any other transaction in the cycle that does finds the cycle at its
//                              next check. The search follows at most `depth` edges.
// FALSE POSITIVES  `holders` is exact, because the stripe's mutex is held. Locks that other transactions wait for may be released
//                  already. Then the function may report a deadlock that no longer exists.
bool LockTable::WaitWouldDeadlock(const LockOwner& owner, const std::vector<uint64_t>& holders) {
  std::lock_guard lock(waits_mutex_);
  if (owner.detects_deadlocks) {
    std::unordered_set<uint64_t> seen;
    std::vector<uint64_t> round = holders;
    for (uint32_t depth = 0; depth < owner.depth && !round.empty(); ++depth) {
      std::vector<uint64_t> next;
      for (const uint64_t id : round) {
        if (id == owner.id) return true;
        const auto waits = waits_for_.find(id);
        if (!seen.insert(id).second || waits == waits_for_.end()) continue;
        next.insert(next.end(), waits->second.begin(), waits->second.end());
      }
      round = std::move(next);
    }
  }
  std::vector<uint64_t> edges = holders;
  waits_for_[owner.id] = std::move(edges);
  return false;
}

void LockTable::EndWait(const LockOwner& owner) {
  std::lock_guard lock(waits_mutex_);
  waits_for_.erase(owner.id);
}

void LockTable::Unlock(LockOwner* owner, const FamilySlice& key) {
  Stripe& stripe = StripeOf(key);
  const std::lock_guard lock(stripe.mutex);
  const auto place = stripe.locks.find(key);
  if (place == stripe.locks.end()) return;
  if (std::erase(place->second.owners, owner) == 0) return;
  if (place->second.owners.empty()) {
    stripe.locks.erase(place);
    count_.fetch_sub(1, std::memory_order_relaxed);
  }
  stripe.changed.notify_all();
}

}  // namespace braiddb
