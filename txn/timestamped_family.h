// TimestampedFamily: the state of a column family with user-defined timestamps.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "braiddb/db.h"

namespace braiddb {

// Thread safety: all methods.
class TimestampedFamily {
 public:
  explicit TimestampedFamily(const Comparator* comparator)
      : comparator_(*comparator), timestamp_size_(comparator->timestamp_size()) {}
  TimestampedFamily(const TimestampedFamily&) = delete;
  TimestampedFamily& operator=(const TimestampedFamily&) = delete;

  const Comparator& comparator() const { return comparator_; }
  size_t timestamp_size() const { return timestamp_size_; }
  // Whether the keys, without timestamps, are equal.
  bool IsSameKey(Slice a, Slice b) const { return comparator_.CompareWithoutTimestamp(a, false, b, false) == 0; }

  // full_history_ts_low; empty if there is none. The caller of SetLimit makes sure that it only increases.
  std::string Limit() const;
  void SetLimit(Slice limit);
  // An error if the timestamp is below the limit. A reader calls this after it has its view: whatever is trimmed later is in the
  // view, and the limit of everything that was trimmed before is visible to the call.
  Status CheckReadable(Slice timestamp) const;

  // The database and the handle for HasOlder and HasNewer; both outlive the call of Detach. `handle`: of `base`.
  void Attach(DB* base, std::shared_ptr<ColumnFamilyHandle> handle);
  // Returns when no call of HasOlder or HasNewer uses them.
  void Detach();
  // Whether the key has a version that is older than `timestamp`. True if that is not known.
  bool HasOlder(Slice key, Slice timestamp) const;
  // Whether the key has a version that is newer than `timestamp` and not newer than `limit`. False if that is not known.
  bool HasNewer(Slice key, Slice timestamp, Slice limit) const;

  // Counts versions that the compaction filter has removed.
  void CountTrimmed() { trimmed_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t trimmed() const { return trimmed_.load(std::memory_order_relaxed); }

 private:
  const Comparator& comparator_;
  const size_t timestamp_size_;
  std::atomic<bool> has_limit_{false};
  mutable std::mutex limit_mutex_;
  std::string limit_;  // limit_mutex_
  mutable std::shared_mutex attach_mutex_;
  DB* base_ = nullptr;                          // attach_mutex_
  std::shared_ptr<ColumnFamilyHandle> handle_;  // attach_mutex_
  std::atomic<uint64_t> trimmed_{0};
};

}  // namespace braiddb
