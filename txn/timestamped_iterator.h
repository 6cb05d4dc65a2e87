// TimestampedIterator: the versions of a family with timestamps, one for each key or all in a range of timestamps.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "braiddb/iterator.h"
#include "db/timestamped_entry.h"
#include "txn/timestamped_family.h"

namespace braiddb {

// POSITION  If the iterator is valid, `base` stands on the stored entry of the current version.
// COST      A step forward steps over the other versions of the key, and seeks behind kMaxSteps of them. A step backward seeks
//           twice for each key.
class TimestampedIterator final : public Iterator {
 public:
  // `base`: over stored entries, as NewBase makes it. `start`: as ReadOptions::iter_start_ts.
  TimestampedIterator(std::shared_ptr<const TimestampedFamily> family, std::unique_ptr<Iterator> base, Slice timestamp,
                      std::optional<Slice> start);

  // An iterator of `db` with the bounds of `options`, as bounds of stored keys.
  static std::unique_ptr<Iterator> NewBase(DB* db, ColumnFamilyHandle* handle, const TimestampedFamily& family,
                                           const ReadOptions& options);

  bool Valid() const override { return valid_; }
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(Slice target) override;
  void SeekForPrev(Slice target) override;
  void Next() override;
  void Prev() override;
  Slice key() const override { return start_ ? Slice(internal_key_) : Version().key; }
  Slice value() const override { return SplitValue(base_->value()).value; }
  Status status() const override { return status_.ok() ? base_->status() : status_; }
  Slice timestamp() const override { return Version().timestamp; }

 private:
  static constexpr int kMaxSteps = 8;

  SplitKey Version() const { return {base_->key(), family_->timestamp_size()}; }
  int AgainstRead() const { return family_->comparator().CompareTimestamp(Version().timestamp, timestamp_); }
  // Whether the base's version is to be shown, if it is the newest of its key that the timestamp sees.
  bool IsShown() const;
  // Whether the base stands on a version. False at its end, and for a damaged entry, which status_ then reports.
  bool IsOnVersion();
  bool IsOn(Slice key) { return IsOnVersion() && family_->IsSameKey(Version().key, key); }
  // From the base's position on, finds the next version to show.
  void FindForward();
  void FindBackward();
  void FindVersionBackward();
  // Moves the base behind all versions of `key_`, or before all of them.
  void PassKey();
  void PassKeyBackward();
  void Found();

  const std::shared_ptr<const TimestampedFamily> family_;
  const std::unique_ptr<Iterator> base_;
  const std::string timestamp_;
  const std::optional<std::string> start_;
  bool valid_ = false;
  Status status_;             // a damaged entry
  std::string key_;           // of the user; the key that a movement passes
  std::string internal_key_;  // of the current version; with start_ only
};

}  // namespace braiddb
