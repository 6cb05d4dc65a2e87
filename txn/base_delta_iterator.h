// BaseDeltaIterator: iterates over a database as if a batch had been written to it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "braiddb/write_batch_with_index.h"

namespace braiddb {

// STATE  Forward: base and delta cursor are at their first key at or after the current key. Backward: at their last key at or
//        before the current key. If both have the current key, the current entry is the delta's. A deletion in the delta hides
//        the base's entry.
class BaseDeltaIterator final : public Iterator {
 public:
  // `comparator`: the comparator of column family `family`.
  BaseDeltaIterator(const WriteBatchWithIndex* delta, uint32_t family, const Comparator* comparator,
                    std::unique_ptr<Iterator> base, const ReadOptions& options, std::shared_ptr<const MergeOperator> merge);

  bool Valid() const override { return current_ != Current::kNone; }
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(Slice target) override;
  void SeekForPrev(Slice target) override;
  void Next() override;
  void Prev() override;
  Slice key() const override { return current_ == Current::kBase ? base_->key() : Slice(delta_key_); }
  Slice value() const override { return current_ == Current::kBase ? base_->value() : Slice(delta_value_); }
  Status status() const override { return merge_status_.ok() ? base_->status() : merge_status_; }

 private:
  using Index = WriteBatchWithIndex::Index;
  enum class Current : uint8_t { kNone, kBase, kDelta };

  // Looks up the batch's index of the family. Since the last step the batch may have received its first update of the family, or
  // a new index.
  void FindIndex();
  // Positions the delta cursor. SeekDelta: first update with a key >= target. SeekDeltaForPrev: last update with a key <= target,
  // or end().
  void SeekDelta(Slice target);
  void SeekDeltaForPrev(Slice target);
  void StepDelta();
  bool DeltaValid() const;
  // Compares the two cursors in the current direction. Negative: the base's key comes first.
  int CompareCursors() const;
  void FindNext();
  // Makes the delta's entry the current entry.
  void TakeDelta();

  const WriteBatchWithIndex* const batch_;
  const uint32_t family_;
  const Comparator* const comparator_;
  const Index empty_;  // the index of a family without updates in the batch
  const Index* index_ = &empty_;
  const std::unique_ptr<Iterator> base_;
  const std::shared_ptr<const MergeOperator> merge_;
  Status merge_status_;  // status of the last step
  std::optional<std::string> lower_;
  std::optional<std::string> upper_;
  Index::const_iterator delta_;
  bool forward_ = true;
  Current current_ = Current::kNone;
  // Copy of the delta's entry, because the batch may change while the iterator stands on the entry.
  std::string delta_key_;
  std::string delta_value_;
};

}  // namespace braiddb
