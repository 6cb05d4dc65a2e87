#include "txn/named_transactions.h"

#include <algorithm>
#include <utility>

namespace braiddb {

HeldTransaction::~HeldTransaction() {
  if (transaction_ != nullptr) names_->Leave(*transaction_);
}

bool NamedTransactions::Add(Pointer transaction, uint32_t handles) {
  const std::lock_guard lock(mutex_);
  const std::string& name = transaction->GetName();
  return entries_.try_emplace(name, Entry{std::move(transaction), handles}).second;
}

void NamedTransactions::Remove(const PessimisticTransaction& transaction) noexcept {
  if (transaction.GetName().empty()) return;
  Pointer removed;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  const auto place = entries_.find(transaction.GetName());
  if (place == entries_.end() || place->second.transaction.get() != &transaction) return;
  removed = std::move(place->second.transaction);
  entries_.erase(place);
}

void NamedTransactions::Clear() {
  std::map<std::string, Entry> all;
  const std::lock_guard lock(mutex_);
  all.swap(entries_);
}

HeldTransaction NamedTransactions::Find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto place = entries_.find(name);
  if (place == entries_.end()) return {nullptr, this};
  ++place->second.handles;
  return {place->second.transaction, this};
}

std::vector<HeldTransaction> NamedTransactions::FindPrepared() {
  std::vector<HeldTransaction> prepared;
  const std::lock_guard lock(mutex_);
  prepared.reserve(entries_.size());  // no later statement can fail
  for (auto& [name, entry] : entries_) {
    if (entry.transaction->GetState() != TransactionState::kPrepared) continue;
    ++entry.handles;
    prepared.emplace_back(entry.transaction, this);
  }
  return prepared;
}

// If no handle can read through a snapshot any more, the snapshot would keep old versions until the transaction is decided.
void NamedTransactions::Leave(const PessimisticTransaction& transaction) noexcept {
  if (transaction.GetName().empty()) return;
  Pointer removed;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  const auto place = entries_.find(transaction.GetName());
  if (place == entries_.end() || place->second.transaction.get() != &transaction) return;
  if (--place->second.handles != 0) return;
  if (transaction.has_record()) {
    place->second.transaction->ClearSnapshot();
  } else {
    removed = std::move(place->second.transaction);
    entries_.erase(place);
  }
}

bool NamedTransactions::BeginPrepare(PessimisticTransaction* transaction) {
  const std::lock_guard lock(mutex_);
  const auto& families = transaction->used_families();
  if (std::any_of(dropped_.begin(), dropped_.end(), [&](uint32_t family) { return families.contains(family); })) return false;
  transaction->set_has_record(true);
  return true;
}

void NamedTransactions::CancelPrepare(PessimisticTransaction* transaction) noexcept {
  const std::lock_guard lock(mutex_);
  transaction->set_has_record(false);
}

bool NamedTransactions::BeginDrop(uint32_t family) {
  const std::lock_guard lock(mutex_);
  const bool is_used = std::any_of(entries_.begin(), entries_.end(), [family](const auto& named) {
    const PessimisticTransaction& transaction = *named.second.transaction;
    return transaction.has_record() && transaction.used_families().contains(family);
  });
  return !is_used && dropped_.insert(family).second;
}

void NamedTransactions::EndDrop(uint32_t family) noexcept {
  const std::lock_guard lock(mutex_);
  dropped_.erase(family);
}

}  // namespace braiddb
