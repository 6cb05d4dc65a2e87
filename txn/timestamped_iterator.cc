#include "txn/timestamped_iterator.h"

#include <bit>
#include <utility>

#include "db/db_iterator.h"

namespace braiddb {
namespace {

std::optional<std::string> CopyOf(std::optional<Slice> bytes) {
  if (!bytes) return std::nullopt;
  return std::string(*bytes);
}

}  // namespace

TimestampedIterator::TimestampedIterator(std::shared_ptr<const TimestampedFamily> family, std::unique_ptr<Iterator> base,
                                         Slice timestamp, std::optional<Slice> start)
    : family_(std::move(family)), base_(std::move(base)), timestamp_(timestamp), start_(CopyOf(start)) {}

// The first stored key of a bound is before all its versions: a lower bound includes them, and an upper bound excludes them.
std::unique_ptr<Iterator> TimestampedIterator::NewBase(DB* db, ColumnFamilyHandle* handle, const TimestampedFamily& family,
                                                       const ReadOptions& options) {
  ReadOptions stored = options;
  stored.timestamp.reset();
  stored.iter_start_ts.reset();
  stored.prefix_same_as_start = false;
  std::string lower;
  std::string upper;
  if (options.iterate_lower_bound) {
    lower = FirstStoredKey(*options.iterate_lower_bound, family.timestamp_size());
    stored.iterate_lower_bound = lower;
  }
  if (options.iterate_upper_bound) {
    upper = FirstStoredKey(*options.iterate_upper_bound, family.timestamp_size());
    stored.iterate_upper_bound = upper;
  }
  return db->NewIterator(stored, handle);
}

void TimestampedIterator::SeekToFirst() {
  base_->SeekToFirst();
  FindForward();
}

void TimestampedIterator::SeekToLast() {
  base_->SeekToLast();
  FindBackward();
}

void TimestampedIterator::Seek(Slice target) {
  base_->Seek(StoredKey(target, timestamp_));
  FindForward();
}

void TimestampedIterator::SeekForPrev(Slice target) {
  base_->SeekForPrev(LastStoredKey(target, family_->timestamp_size()));
  FindBackward();
}

void TimestampedIterator::Next() {
  if (start_) {
    base_->Next();
  } else {
    key_.assign(Version().key);
    PassKey();
  }
  FindForward();
}

void TimestampedIterator::Prev() {
  if (start_) {
    base_->Prev();
  } else {
    key_.assign(Version().key);
    PassKeyBackward();
  }
  FindBackward();
}

bool TimestampedIterator::IsOnVersion() {
  if (!base_->Valid()) return false;
  if (IsTimestamped(base_->key(), base_->value(), family_->timestamp_size())) return true;
  status_ = NotTimestamped();
  return false;
}

bool TimestampedIterator::IsShown() const {
  if (start_) return family_->comparator().CompareTimestamp(Version().timestamp, *start_) >= 0;
  return SplitValue(base_->value()).kind == VersionKind::kPut;
}

void TimestampedIterator::FindForward() {
  valid_ = false;
  status_ = Status::OK();
  for (int steps = 0; IsOnVersion();) {
    if (AgainstRead() > 0) {
      if (++steps < kMaxSteps) {
        base_->Next();
      } else {
        base_->Seek(StoredKey(Version().key, timestamp_));
      }
      continue;
    }
    steps = 0;
    if (IsShown()) return Found();
    key_.assign(Version().key);
    PassKey();
  }
}

void TimestampedIterator::FindBackward() {
  valid_ = false;
  status_ = Status::OK();
  if (start_) return FindVersionBackward();
  while (IsOnVersion()) {
    key_.assign(Version().key);
    base_->Seek(StoredKey(key_, timestamp_));
    if (IsOn(key_) && IsShown()) return Found();
    const bool has_failed = !base_->Valid() && !base_->status().ok();
    if (has_failed || !status_.ok()) return;
    PassKeyBackward();
  }
}

void TimestampedIterator::FindVersionBackward() {
  while (IsOnVersion()) {
    if (AgainstRead() <= 0 && IsShown()) return Found();
    base_->Prev();
  }
}

void TimestampedIterator::PassKey() {
  for (int steps = 0; steps < kMaxSteps; ++steps) {
    if (!IsOn(key_)) return;
    base_->Next();
  }
  if (!IsOn(key_)) return;
  base_->Seek(LastStoredKey(key_, family_->timestamp_size()));
  while (IsOn(key_)) base_->Next();
}

// The seek finds the first version of the key, or its successor if the bytes 0xff are not the newest timestamp's.
void TimestampedIterator::PassKeyBackward() {
  base_->Seek(FirstStoredKey(key_, family_->timestamp_size()));
  if (base_->Valid()) {
    base_->Prev();
  } else if (base_->status().ok()) {
    base_->SeekToLast();
  }
}

void TimestampedIterator::Found() {
  valid_ = true;
  if (!start_) return;
  static_assert(std::endian::native == std::endian::little, "the number is copied as it is in memory");
  const auto* const entries = dynamic_cast<const DBIterator*>(base_.get());
  const uint64_t sequence = entries == nullptr ? 0 : entries->sequence();
  const uint64_t packed = sequence << 8 | static_cast<uint8_t>(SplitValue(base_->value()).kind);
  internal_key_.assign(base_->key());
  internal_key_.append(reinterpret_cast<const char*>(&packed), sizeof packed);
}

}  // namespace braiddb
