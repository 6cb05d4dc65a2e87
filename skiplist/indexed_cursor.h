// IndexedCursor: an EntryCursor over a braided list of which a tall index has every node.
#pragma once

#include <cstddef>
#include <cstdint>

#include "index/cursor.h"
#include "skiplist/braided_list.h"
#include "skiplist/tall_index.h"

namespace braiddb {

// It follows the list, and the index says what to fetch long before the list leads there: so a step waits for no memory, and
// nothing depends on what the index has. Backward, where a list does not lead, the index says where to begin; the list, where to
// end.
//
// WHY A STALE INDEX IS SAFE  As for a search (TallIndex). Forward it decides nothing. Backward the node before is one that leads
//     on to where the cursor stands, or one that a search from there has found; of an entry that was relocated it may be the
//     original, which is the same entry once more.
// COST  A step fetches two lines at least, kMost entries ahead; behind a seek that distance grows from kFirst, so that of a
//     short scan few are fetched in vain. What was linked since the index was made is not fetched ahead; tables of the view have
//     it, too.
// Thread safety: one thread at a time, concurrent with any change of the list. The list and the index must outlive the cursor.
class IndexedCursor final : public EntryCursor {
 public:
  // REQUIRES: index->HasEveryNode(list->Home().reader).
  IndexedCursor(const BraidedList* list, const TallIndex* index)
      : list_(list), index_(index), reader_(list->Home().reader), nodes_(index->size(reader_)) {}

  void FetchForSeek(const SearchKey& target) override;
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(const SearchKey& target) override;
  void SeekBefore(const SearchKey& target) override;
  void Next() override;
  void Prev() override;

 private:
  static constexpr uint64_t kFirst = 2;
  static constexpr uint64_t kGrowth = 2;  // with each step
  static constexpr uint64_t kMost = 16;
  // So far ahead it is known by then where an entry ends, and that is fetched, too.
  static constexpr uint64_t kEndAhead = 4;

  // The place of the first node at or after the target.
  uint64_t TakePlace(const SearchKey& target) { return has_found_ ? found_ : index_->Find(reader_, target); }
  // Stands there. `place`: of the first node behind it, about.
  void Set(const LogEntry* entry, uint64_t place);
  bool IsBehind(uint64_t place, uint64_t prefix) const;
  void FetchForward();
  void FetchBackward();

  const BraidedList* const list_;
  const TallIndex* const index_;
  const uint32_t reader_;
  const uint64_t nodes_;
  uint64_t place_ = 0;      // of the first node behind entry_
  uint64_t fetched_ = 0;    // the first place that is not fetched; going backward, the last one that is
  uint64_t distance_ = 0;   // how far ahead it fetches
  bool goes_back_ = false;  // the way in which it fetches
  bool has_found_ = false;  // for the next seek,
  uint64_t found_ = 0;      // the place of the first node at or after its target
};

}  // namespace braiddb
