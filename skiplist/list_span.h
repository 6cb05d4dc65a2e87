// ListSpan: entries of a braided list that follow each other, found by several walks at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "skiplist/braided_list.h"
#include "skiplist/tall_index.h"

namespace braiddb {

// The bottom list alone is one cache miss after the other. A tall index knows nodes that lie a few entries apart, so the
// stretches from one to the next are walked in rounds, a step in each, and every step fetches an entry that is looked at a round
// later. The order among stretches is the index's. While the reader goes through one span, it takes the rounds of the next one.
//
// WHY IT IS WHAT ONE WALK SEES  Each walk begins at a node from which everything behind it is reachable, also if it was unlinked
//     since the index was made (TallIndex), and ends before the first entry that is at or after the next walk's first node. So
//     together they are strictly in order, and leave nothing out that a reader of the view finds nowhere else. Entries are found
//     earlier than the reader comes to them: what changes meanwhile only marks them, or links what is in tables that the view
//     holds, too; so marks have to be looked at when the reader is there. Their memory is the pin's of the view.
// COST  The first span has some kFirst entries, each one behind it twice as many, up to kMost; of the last two some are read in
//       vain. No branch of a round depends on the data.
// Thread safety: one thread at a time, concurrent with any change of the list.
class ListSpan {
 public:
  ListSpan(const BraidedList* list, const TallIndex* index) : list_(list), index_(index) {}

  // Forgets everything; the next span is a first one.
  void Clear();

  // The walks behind the entry begin, or take a round.
  void RoundAfter(const LogEntry& entry) {
    if (begun_) {
      walking_ = DoRound(walking_);
    } else {
      BeginAfter(entry);
    }
  }
  // Takes the rounds that are left: the span is what they find. Empty if there is nothing behind the entry, or the list is
  // damaged, or the index is of no use: then it is for the caller to go on alone.
  void FinishAfter(const LogEntry& entry);
  // The span is what comes before the entry; empty as above.
  void CollectBefore(const LogEntry& entry);

  size_t size() const { return entries_.size(); }
  const LogEntry* operator[](size_t i) const { return entries_[i]; }

 private:
  static constexpr uint64_t kFirst = 16;
  static constexpr uint64_t kMost = 64;
  static constexpr size_t kMostLanes = kMost / kBranching;
  static constexpr uint64_t kUnknown = UINT64_MAX;

  // A walk.
  struct Lane {
    const LogEntry* at;      // fetched, not looked at; null: at the list's end
    const LogEntry* end;     // null: the list's
    uint64_t end_prefix;     // of its key
    const LogEntry** found;  // room for capacity_ + 1
    size_t count;
    bool is_cut;
  };

  void BeginAfter(const LogEntry& entry);
  // Lanes that the walks of now have; the next have more.
  size_t Width();
  void BeginLane(size_t lane, const LogEntry* first, const LogEntry* end, uint64_t end_prefix);
  // Of the first `count` of running_: how many still run.
  size_t DoRound(size_t count);

  const BraidedList* const list_;
  const TallIndex* const index_;
  bool begun_ = false;
  uint32_t reader_ = 0;        // the reader's region
  uint64_t wanted_ = kFirst;   // entries
  uint64_t place_ = kUnknown;  // of the end of the next walks' first lane
  uint64_t distance_ = 0;      // from one lane's end to the next one's, about, in entries
  size_t capacity_ = 0;        // of a lane; where nodes lie farther apart, it is cut
  size_t begun_lanes_ = 0;
  size_t walking_ = 0;
  uint8_t running_[kMostLanes];
  Lane lanes_[kMostLanes];
  std::vector<const LogEntry*> room_;  // the lanes'
  std::vector<const LogEntry*> entries_;
};

}  // namespace braiddb
