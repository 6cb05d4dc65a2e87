// DBIterator: merges the cursors of all levels into the visible keys of one snapshot.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braiddb/iterator.h"
#include "braiddb/slice_transform.h"
#include "db/db_impl.h"
#include "db/turn_heap.h"

namespace braiddb {

// POSITION  kForward: every cursor stands on its first entry behind all versions of keys before the current one (the current
//           key's own entries included or passed). kBackward: every cursor stands on its last entry before all versions of the
//           current key.
// The levels may show an entry twice (a table of L0 leads into the last level once it is merged); equal keys are taken once.
class DBIterator final : public Iterator {
 public:
  // `sequence` is registered in the snapshot list, `pin` is held in the epochs, both by the caller for this object, which gives
  // them back.
  // `ranges`: loaded in one guard with the view; may be null.
  DBIterator(DBImpl* db, const Family& family, std::shared_ptr<const ReadView> view,
             std::shared_ptr<const RangeTombstones> ranges, const ReadOptions& options, uint64_t sequence, uint64_t pin);
  ~DBIterator() override;

  bool Valid() const override { return current_ != nullptr; }
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(Slice target) override;
  void SeekForPrev(Slice target) override;
  void Next() override;
  void Prev() override;
  Slice key() const override;
  Slice value() const override;
  Status status() const override { return status_; }
  // Limits movements to keys with one prefix: that of a seek's target. As in RocksDB, SeekToFirst seeks the lower bound and
  // SeekToLast the upper bound; without a bound, the prefix is that of the key they find. The first key with another prefix ends
  // a movement, even if that key is deleted. `extractor`: null for no limit. REQUIRES: the iterator has not moved yet.
  void StayInPrefix(std::shared_ptr<const SliceTransform> extractor);
  // The prefix that movements from here on are limited to, for another iterator that takes this one's place; none: no limit.
  std::optional<std::string> prefix_limit() const { return has_prefix_ ? std::optional<std::string>(prefix_) : std::nullopt; }
  void SetPrefixLimit(const std::optional<std::string>& prefix);
  // Another iterator of the same view and snapshot, at no position. `options`: those of this one.
  std::unique_ptr<DBIterator> Again(const ReadOptions& options) const;
  // Of the current entry. REQUIRES: Valid.
  uint64_t sequence() const { return current_->sequence(); }

 private:
  enum class Direction : uint8_t { kForward, kBackward };

  // The movements, as they are when nobody measures them.
  void MoveToFirst();
  void MoveToLast();
  void MoveTo(Slice target);
  void MoveToOrBefore(Slice target);
  void StepForward();
  void StepBackward();
  // As StepForward, where nothing but keys is to be looked at (is_plain_) and nobody counts.
  void StepPlainly();
  // The same, measured.
  template <class Move>
  void ObserveSeek(const Move& move);
  template <class Step>
  void ObserveStep(const Step& step);
  void NoteArrival() const;
  // Whether it is a memtable's or another's; a seek of the child is timed while the result lives.
  perf::Timer NoteSeek(size_t child) const;
  using Child = LevelCursor;

  void SetBounds(const ReadOptions& options);
  // Sets the prefix that movements are limited to; a key without a prefix sets no limit.
  void KeepPrefixOf(Slice key);
  bool LeavesPrefix(Slice key) const { return __builtin_expect(has_prefix_, 0) && HasOtherPrefix(key); }
  bool HasOtherPrefix(Slice key) const;
  void SetReadAhead();
  void Load(Child* child);
  // One step forward.
  void Advance(Child* child);
  bool GoesInCircles();
  // The entry, or null and an error in status_ if it is damaged.
  const LogEntry* Verified(const LogEntry* entry);
  // Before the children search: so that they do not wait for memory one after the other. The tables of L0 are many, and their
  // searches alike.
  void FetchForSeek(const SearchKey& target);
  // Forgets it before the children move: whoever's memory runs out half way has an iterator that is not valid.
  void LeavePosition(Direction direction);
  void SeekChildren(const SearchKey& target);
  void SeekChildrenBefore(const SearchKey& target);
  // The child whose entry comes last in entry order; null when all are at their end.
  Child* Last();
  // Puts the children in order, wherever they stand.
  void TakeTurns() { turns_.Take(&children_); }
  // Of the tables that have come to the entry of the first one, that one alone goes on: while a merge into a skiplist runs, each
  // of its tables leads into the last level where it has been merged, and from one entry on there is one list.
  void LeaveShared() { has_left_shared_ |= turns_.EndTwins(); }
  // Whether each version that is skipped is to be seen.
  bool LooksAtVersions() const { return verify_ || most_skipped_ != 0 || perf::Counts(); }
  // The first child goes on, to another key if its cursor can and no version is to be looked at.
  void PassFirst();
  // Forward, behind all versions of the key, which is the first child's or comes before it.
  void SkipKey(Slice key, uint64_t prefix);
  void SkipVersions(Slice key, uint64_t prefix);
  void CountSkipped() {
    if (__builtin_expect(most_skipped_ != 0, 0) && ++skipped_ > most_skipped_) SkippedTooMany();
  }
  void NoteSkipped(const LogEntry& entry) {
    CountSkipped();
    perf::Add(entry.type() == EntryType::kDelete ? &PerfContext::internal_delete_skipped_count
                                                 : &PerfContext::internal_key_skipped_count);
  }
  void SkippedTooMany();
  bool GaveUp() const { return __builtin_expect(most_skipped_ != 0, 0) && !status_.ok(); }
  // An error that belongs to the position: a merge operator's, or too many skipped entries. The next seek forgets it.
  void FailHere(Status status);
  // A seek begins. False: the iterator has met damage, or its options are wrong, and it stays invalid.
  bool Begin();
  void PassUncounted();
  // Forward: all children go to the first entry at or after the target.
  void SeekAllTo(const SearchKey& target);
  bool StandsForOthers(const Child& child) const { return child.is_list && has_left_shared_; }
  class HiddenKeys;
  // From the children's position on, sets current_ to the next visible key. FindForward: and current_prefix_.
  void FindForward();
  void FindBackward();
  // Backward: collects the child's visible versions of the key, and moves the child before all versions. CollectBackward steps
  // over a few versions, and calls CollectBySearch if there are more. *newest: the newest visible version so far.
  void CollectVersion(const LogEntry* entry, const LogEntry** newest);
  void CollectBackward(Child* child, Slice key, uint64_t prefix, const LogEntry** newest);
  void CollectBySearch(Child* child, Slice key, uint64_t prefix, const LogEntry** newest);
  // Whether a list ended at a damaged pointer; then status_ says so.
  bool MetDamage();
  bool Counts(const LogEntry& entry) const;
  // Whether a range tombstone hides it, and with it all older versions of its key.
  bool IsHidden(const LogEntry& entry) const {
    return ranges_ != nullptr && ranges_->Hides(entry.key(), entry.sequence(), sequence_);
  }
  uint64_t FloorOf(Slice key) const { return ranges_ == nullptr ? 0 : ranges_->Newest(key, sequence_); }
  bool SameKey(const Child& child, Slice key, uint64_t prefix) const;
  // The current key's newest version is this operand: makes its value. False if there is none, or an error in status_.
  bool MakeCurrent(const LogEntry* newest);
  // False: the child has to be looked at version by version.
  bool AddRunOf(const Child& child, Slice key, uint64_t prefix);
  // Collects the operands of a key, and what they are applied to, from the children's position on.
  void CollectForward(Slice key, uint64_t prefix);

  DBImpl* const db_;
  const Family& family_;
  const KeyOrder& order_;
  const std::shared_ptr<const ReadView> view_;
  const std::shared_ptr<const RangeTombstones> ranges_;
  const uint64_t sequence_;
  const bool verify_;
  const uint64_t most_skipped_;  // by one movement; 0: no limit
  uint64_t skipped_ = 0;
  const uint64_t pin_;
  std::vector<Child> children_;
  std::vector<const BraidedList*> lists_;  // those that children follow, of tables
  bool is_plain_ = false;                  // no checksums, no limit of what is skipped, no range tombstones, no prefix
  uint64_t plain_until_ = UINT64_MAX;      // … and with a prefix that is not greater, no bound
  bool has_lower_ = false;
  bool has_upper_ = false;
  std::string lower_;                                // inclusive
  std::string upper_;                                // exclusive
  std::shared_ptr<const SliceTransform> extractor_;  // of prefixes; null: no limit
  bool has_prefix_ = false;                          // movements are limited to keys with prefix_
  std::string prefix_;
  Direction direction_ = Direction::kForward;
  const LogEntry* current_ = nullptr;
  uint64_t current_prefix_ = 0;   // of its key; forward only
  TurnHeap turns_;                // forward only
  bool has_left_shared_ = false;  // LeaveShared has taken one out since the last seek of all
  MergeContext merge_;
  std::string merged_value_;  // of current_, if that is an operand
  Status status_;
  bool is_of_position_ = false;  // status_ belongs to the position: the next seek forgets it
  uint32_t steps_ = 0;           // of a live reader
};

}  // namespace braiddb
