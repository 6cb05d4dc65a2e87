#include "db/live_readers.h"

#include <algorithm>

#include "util/sync_point.h"

namespace braiddb {

int LiveReaders::Add(uint64_t connection, int pid) {
  std::unique_ptr<SharedMemory> memory = SharedMemory::Create(sizeof(ReaderSlot));
  if (memory == nullptr) return -1;
  auto* const slot = new (memory->base()) ReaderSlot();
  const std::lock_guard lock(mutex_);
  if (readers_.contains(connection)) return -1;
  // An epoch that is read under the lock, before MinEpoch can see the slot, is not larger than that of the next scan.
  slot->epoch.store(board_->epoch.load(std::memory_order_acquire), std::memory_order_release);
  Entry entry;
  entry.memory = std::move(memory);
  entry.slot = slot;
  entry.pid = pid;
  entry.since = std::chrono::system_clock::now();
  const auto added = readers_.emplace(connection, std::move(entry)).first;
  count_.store(readers_.size(), std::memory_order_release);
  return added->second.memory->fd();
}

void LiveReaders::Remove(uint64_t connection) {
  const std::lock_guard lock(mutex_);
  const auto it = readers_.find(connection);
  if (it == readers_.end()) return;
  // The process may live: the connection is also closed if it does not read.
  if (!keeps_all_) it->second.slot->expired.store(1, std::memory_order_seq_cst);
  readers_.erase(it);
  count_.store(readers_.size(), std::memory_order_release);
}

void LiveReaders::KeepAll() {
  const std::lock_guard lock(mutex_);
  keeps_all_ = true;
}

bool LiveReaders::StoreSnapshot(uint64_t connection, uint32_t element, uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  const auto it = readers_.find(connection);
  if (it == readers_.end() || element >= ReaderSlot::kMaxSnapshots) return false;
  it->second.slot->snapshots[element].store(sequence + 1, std::memory_order_seq_cst);
  return true;
}

std::vector<LiveReaders::Reader> LiveReaders::List() const {
  std::vector<Reader> list;
  const std::lock_guard lock(mutex_);
  for (const auto& [connection, entry] : readers_) {
    Reader reader{connection, entry.pid, entry.since, std::nullopt, entry.slot->expired.load(std::memory_order_relaxed) != 0};
    const uint32_t used = std::min(entry.slot->snapshots_used.load(std::memory_order_acquire), ReaderSlot::kMaxSnapshots);
    for (uint32_t i = 0; i < used; ++i) {
      const uint64_t snapshot = entry.slot->snapshots[i].load(std::memory_order_acquire);
      if (snapshot != 0) reader.oldest_snapshot = std::min(reader.oldest_snapshot.value_or(UINT64_MAX), snapshot - 1);
    }
    list.push_back(reader);
  }
  return list;
}

void LiveReaders::ExpireAll() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& [connection, entry] : readers_) entry.slot->expired.store(1, std::memory_order_seq_cst);
}

bool LiveReaders::IteratorsCame() noexcept {
  if (!Any()) return false;
  bool came = false;
  const std::lock_guard lock(mutex_);
  for (auto& [connection, entry] : readers_) came |= entry.slot->iterator_came.exchange(0, std::memory_order_relaxed) != 0;
  return came;
}

// ORDER  `expired` is stored before the caller reuses anything. A reader whose loads may meet reused memory checks the word after
//        them.
uint64_t LiveReaders::MinEpoch() noexcept {
  if (!Any()) return UINT64_MAX;
  constexpr std::chrono::milliseconds kReminderInterval{20};
  std::unique_lock lock(mutex_);
  const uint64_t now_epoch = board_->epoch.load(std::memory_order_acquire);
  const Clock::time_point now = Clock::now();
  auto patience = std::chrono::duration_cast<Clock::duration>(kPatience);
  BRAIDDB_SYNC_POINT_ARG("LiveReaders::MinEpoch:Patience", &patience);
  uint64_t min = UINT64_MAX;
  for (auto& [connection, entry] : readers_) {
    if (entry.slot->expired.load(std::memory_order_relaxed) != 0) continue;
    // A read-modify-write without a change, as in EpochManager::Observe.
    const uint64_t epoch = entry.slot->epoch.fetch_or(0, std::memory_order_acq_rel);
    if (epoch < now_epoch && entry.IsAsked() && now - entry.told_at > patience) {
      entry.slot->expired.store(1, std::memory_order_seq_cst);
      continue;
    }
    min = std::min(min, epoch);
  }
  const bool reminds = min < now_epoch && remind_ != nullptr && now - reminded_at_ > kReminderInterval;
  if (reminds) reminded_at_ = now;
  lock.unlock();
  if (reminds) remind_();
  return min;
}

std::vector<uint64_t> LiveReaders::ToTell() {
  std::vector<uint64_t> connections;
  if (!Any()) return connections;
  const std::lock_guard lock(mutex_);
  for (auto& [connection, entry] : readers_) {
    if (entry.IsAsked() || entry.slot->expired.load(std::memory_order_relaxed) != 0) continue;
    connections.push_back(connection);
    ++entry.told;
    entry.told_at = Clock::now();
  }
  return connections;
}

// ORDER  A reader stores its snapshot, then looks for newer visible writes (SnapshotChoice::IsState). These accesses and the
//        loads below are sequentially consistent. So a copy has the snapshot, or each write that was visible when the copy began
//        has a number up to the snapshot's.
template <class Visit>
void LiveReaders::ForEachSnapshot(const Visit& visit) {
  const std::lock_guard lock(mutex_);
  for (const auto& [connection, entry] : readers_) {
    if (entry.slot->expired.load(std::memory_order_relaxed) != 0) continue;
    const uint32_t used = std::min(entry.slot->snapshots_used.load(std::memory_order_seq_cst), ReaderSlot::kMaxSnapshots);
    for (uint32_t i = 0; i < used; ++i) {
      const uint64_t snapshot = entry.slot->snapshots[i].load(std::memory_order_seq_cst);
      if (snapshot != 0) visit(snapshot - 1);
    }
  }
}

void LiveReaders::AddSnapshots(std::vector<uint64_t>* sequences) {
  ForEachSnapshot([sequences](uint64_t sequence) { sequences->push_back(sequence); });
}

uint64_t LiveReaders::OldestSnapshot() {
  uint64_t oldest = UINT64_MAX;
  ForEachSnapshot([&oldest](uint64_t sequence) { oldest = std::min(oldest, sequence); });
  return oldest;
}

}  // namespace braiddb
