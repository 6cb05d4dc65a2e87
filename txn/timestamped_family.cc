#include "txn/timestamped_family.h"

#include <utility>

#include "db/timestamped_entry.h"

namespace braiddb {
namespace {

std::string Hexadecimal(Slice bytes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  for (const char byte : bytes) {
    const auto number = static_cast<uint8_t>(byte);
    text.push_back(kDigits[number >> 4]);
    text.push_back(kDigits[number & 15]);
  }
  return text;
}

}  // namespace

std::string TimestampedFamily::Limit() const {
  const std::lock_guard lock(limit_mutex_);
  return limit_;
}

// release: pairs with CheckReadable. A thread that sees a trim, which follows this store, sees the limit.
void TimestampedFamily::SetLimit(Slice limit) {
  const std::lock_guard lock(limit_mutex_);
  limit_.assign(limit);
  has_limit_.store(true, std::memory_order_release);
}

Status TimestampedFamily::CheckReadable(Slice timestamp) const {
  if (!has_limit_.load(std::memory_order_acquire)) return Status::OK();
  const std::string limit = Limit();
  if (comparator_.CompareTimestamp(timestamp, limit) >= 0) return Status::OK();
  return Status::InvalidArgument("Read timestamp: " + Hexadecimal(timestamp) +
                                 " is smaller than full_history_ts_low: " + Hexadecimal(limit));  // RocksDB's text
}

void TimestampedFamily::Attach(DB* base, std::shared_ptr<ColumnFamilyHandle> handle) {
  const std::unique_lock lock(attach_mutex_);
  base_ = base;
  handle_ = std::move(handle);
}

void TimestampedFamily::Detach() {
  const std::unique_lock lock(attach_mutex_);
  base_ = nullptr;
  handle_.reset();
}

bool TimestampedFamily::HasOlder(Slice key, Slice timestamp) const {
  const std::shared_lock lock(attach_mutex_);
  if (base_ == nullptr) return true;
  const auto versions = base_->NewIterator({}, handle_.get());
  const std::string from = StoredKey(key, timestamp);
  versions->Seek(from);
  if (versions->Valid() && comparator_.Compare(versions->key(), from) == 0) versions->Next();
  if (!versions->Valid()) return !versions->status().ok();
  const Slice next = versions->key();
  return next.size() < timestamp_size_ || IsSameKey(SplitKey(next, timestamp_size_).key, key);
}

bool TimestampedFamily::HasNewer(Slice key, Slice timestamp, Slice limit) const {
  const std::shared_lock lock(attach_mutex_);
  if (base_ == nullptr) return false;
  const auto versions = base_->NewIterator({}, handle_.get());
  versions->Seek(StoredKey(key, limit));
  if (!versions->Valid() || versions->key().size() < timestamp_size_) return false;
  const SplitKey newest(versions->key(), timestamp_size_);
  return IsSameKey(newest.key, key) && comparator_.CompareTimestamp(newest.timestamp, timestamp) > 0;
}

}  // namespace braiddb
