// BaseDeltaIterator: what an iterator of a database would show if a batch had been written.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "braiddb/write_batch_with_index.h"

namespace braiddb {

// STATE  Forward: both cursors are at their first key at or behind the current one. Backward: at their last key at or before it.
//        The current entry is the delta's where both have the key; a deletion in the delta hides the base's.
class [[gnu::visibility("hidden")]] BaseDeltaIterator final : public Iterator {
 public:
  // `comparator`: of the column family `family`.
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

  // The batch may have met the family since the last step, or have a new index for it.
  void FindIndex();
  // Of the delta: the first update with a key >= target, and the last with one <= target (end() if there is none).
  void SeekDelta(Slice target);
  void SeekDeltaForPrev(Slice target);
  void StepDelta();
  bool DeltaValid() const;
  // Compares base and delta in the direction of travel; < 0: the base's key comes first.
  int CompareCursors() const;
  void FindNext();
  // The delta's entry becomes the current one.
  void TakeDelta();

  const WriteBatchWithIndex* const batch_;
  const uint32_t family_;
  const Comparator* const comparator_;
  const Index empty_;  // of a family that the batch has nothing of
  const Index* index_ = &empty_;
  const std::unique_ptr<Iterator> base_;
  const std::shared_ptr<const MergeOperator> merge_;
  Status merge_status_;  // of the last step
  std::optional<std::string> lower_;
  std::optional<std::string> upper_;
  Index::const_iterator delta_;
  bool forward_ = true;
  Current current_ = Current::kNone;
  // Of the delta's entry: the batch may be changed while the iterator stands there.
  std::string delta_key_;
  std::string delta_value_;
};

}  // namespace braiddb
