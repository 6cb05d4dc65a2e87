#include "txn/lock_table.h"

#include <algorithm>
#include <unordered_set>

#include "util/check.h"

namespace braiddb {
namespace {

// An expired holder is noticed by whoever waits, who looks again after so long.
constexpr std::chrono::milliseconds kLookAgain{10};

}  // namespace

LockTable::LockTable(uint32_t stripes, uint64_t max_locks) : stripes_(std::max(1u, stripes)), max_locks_(max_locks) {}

LockTable::~LockTable() { BRAIDDB_CHECK(count() == 0); }

LockTable::Stripe& LockTable::StripeOf(Slice key) { return stripes_[KeyHash(key) % stripes_.size()]; }

// Owners that have outlived their time lose their locks here: this one, and at their next step the others.
void LockTable::DropExpired(Holders* holders, const LockOwner* except) {
  std::erase_if(holders->owners, [except](LockOwner* owner) {
    return owner != except && owner->IsExpired() && owner->Become(LockOwner::State::kLocksStolen);
  });
  std::erase_if(holders->owners, [except](const LockOwner* owner) {
    return owner != except && owner->state.load(std::memory_order_acquire) == LockOwner::State::kLocksStolen;
  });
}

// REQUIRES: the stripe's mutex.
LockTable::Attempt LockTable::Try(Stripe* stripe, LockOwner* owner, const std::string& key, bool exclusive,
                                  std::vector<uint64_t>* others) {
  const auto place = stripe->locks.find(key);
  if (place == stripe->locks.end()) {
    if (count_.fetch_add(1, std::memory_order_relaxed) >= max_locks_ && max_locks_ != 0) {
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
  others->clear();
  for (const LockOwner* holder : holders.owners) {
    if (holder != owner) others->push_back(holder->id);
  }
  return Attempt::kHeld;
}

Status LockTable::Lock(LockOwner* owner, Slice key, bool exclusive, int64_t timeout_ms) {
  const auto start = LockOwner::Clock::now();
  Stripe& stripe = StripeOf(key);
  const std::string name(key);
  std::vector<uint64_t> holders;
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
    const auto waited = LockOwner::Clock::now() - start;
    if (timeout_ms >= 0 && waited >= std::chrono::milliseconds(timeout_ms)) {
      return Status::TimedOut("Timeout waiting to lock key; another transaction holds it");
    }
    if (WaitWouldDeadlock(*owner, holders)) {
      return Status::Busy("Deadlock: the transaction that holds the key waits for this one; roll back and try again");
    }
    auto pause = LockOwner::Clock::duration(kLookAgain);
    if (timeout_ms >= 0) pause = std::min(pause, std::chrono::milliseconds(timeout_ms) - waited);
    stripe.changed.wait_for(lock, pause);
    EndWait(*owner);
  }
}

// A cycle is closed by the last one that begins to wait in it, which sees all the others here. `holders` is true of this moment,
// since the stripe's mutex is held; what others wait for may have been released already, then this is too careful.
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
  waits_for_[owner.id] = holders;
  return false;
}

void LockTable::EndWait(const LockOwner& owner) {
  std::lock_guard lock(waits_mutex_);
  waits_for_.erase(owner.id);
}

void LockTable::Unlock(LockOwner* owner, Slice key) {
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
