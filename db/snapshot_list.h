// SnapshotList: the sequence numbers that somebody reads at.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
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

// Snapshots, iterators and MultiGets register here, so that flush and compaction keep what they see.
// Thread safety: all methods may be called concurrently.
class SnapshotList {
 public:
  // Registers the sequence number that `choose` returns. Chosen and registered under one lock: whoever copies the list
  // without it may rely on its being at least as new as everything that was written before the copy.
  template <class Choose>
  uint64_t Register(const Choose& choose) {
    std::lock_guard lock(mutex_);
    const uint64_t sequence = choose();
    sequences_.push_back(sequence);
    return sequence;
  }
  void Unregister(uint64_t sequence) {
    std::lock_guard lock(mutex_);
    // From the end: most are given back soon.
    const auto it = std::find(sequences_.rbegin(), sequences_.rend(), sequence);
    BRAIDDB_CHECK(it != sequences_.rend());
    *it = sequences_.back();
    sequences_.pop_back();
  }
  // In any order.
  std::vector<uint64_t> Copy() const {
    std::lock_guard lock(mutex_);
    return sequences_;
  }
  // UINT64_MAX if there is none.
  uint64_t Oldest() const {
    std::lock_guard lock(mutex_);
    const auto oldest = std::min_element(sequences_.begin(), sequences_.end());
    return oldest == sequences_.end() ? UINT64_MAX : *oldest;
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return sequences_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<uint64_t> sequences_;
};

// Unregisters at its end, unless somebody else will. `list` null: does nothing.
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
