// ListSpan: consecutive entries of a braided list, found by several walks side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "skiplist/braided_list.h"
#include "skiplist/tall_index.h"

namespace braiddb {

//   index    N0 ──────────────► N1 ──────────────► N2 ──────────────► N3
//   list     N0 → a → b → c → d → N1 → e → f → N2 → g → h → i → N3 → …
//   lanes    [lane 0            ) [lane 1     ) [lane 2         )         one step of each lane per round
//
// GOAL   A walk along the bottom list is a chain of cache misses. A span overlaps the misses of several walks.
// STEPS  1 take nodes of the tall index, which lie a few entries apart, as the beginnings of lanes  2 in rounds, each lane
//        steps to the entry that it has prefetched in the round before, and prefetches the next one  3 a lane ends at the first
//        node of the next lane  4 the entries of all lanes, one lane after the other, are the span. The cursor spreads the
//        rounds of a span over its way through the span before.
// WHY IT EQUALS ONE WALK  A lane begins at a node from which all its successors are reachable, even if the node was unlinked
//        after the index was made (TallIndex). It ends before the first entry that is at or after the next lane's first node.
//        So the entries of the lanes are strictly ascending, and every entry that the view has only here is among them.
// WHAT A READER SEES  Entries are found before the cursor reaches them. Meanwhile a merge may mark them, or link entries that
//        are also in tables of the view. So the reader checks marks when it reaches an entry.
// LIFETIME  The entries stay readable while the pin of the view exists.
// COST   The first span has about kFirst entries, and each further one twice as many, up to kMost. If the cursor stops, some
//        entries of the last two spans were read in vain. No branch of a round depends on the data, except at a lane's end with
//        equal prefixes.
// Thread safety: one thread at a time, concurrent with any change of the list.
class ListSpan {
 public:
  ListSpan(const BraidedList* list, const TallIndex* index) : list_(list), index_(index) {}

  // Forgets the span and the walks; the next span is a first one.
  void Clear();

  // Begins the walks behind `entry`, or advances them by one round. Calls for one span pass the same or later entries.
  void RoundAfter(const LogEntry& entry) {
    if (begun_) {
      walking_ = DoRound(walking_);
    } else {
      BeginAfter(entry);
    }
  }
  // Finishes the walks; their entries become the span. The span is empty if no entry is behind `entry`, the list is damaged, or
  // the index has no nodes. Then the caller continues along the list.
  void FinishAfter(const LogEntry& entry);
  // Collects the entries before `entry`, in ascending order, as the span. Empty as in FinishAfter.
  void CollectBefore(const LogEntry& entry);

  // The entries of the span, in ascending order. They are those of the last FinishAfter or CollectBefore.
  size_t size() const { return entries_.size(); }
  const LogEntry* operator[](size_t i) const { return entries_[i]; }

 private:
  static constexpr uint64_t kFirst = 16;  // wanted entries of a first span
  static constexpr uint64_t kMost = 64;   // wanted entries of the largest span
  static constexpr size_t kMostLanes =
      kMost / kBranching;  // nodes of the lowest indexed layer are about kBranching entries apart, or more
  static constexpr uint64_t kUnknown = UINT64_MAX;

  // One walk.
  struct Lane {
    const LogEntry* at;      // prefetched, not read yet; null at the end of the list
    const LogEntry* end;     // the first node of the next lane; null: the end of the list
    uint64_t end_prefix;     // prefix of the key of `end`
    const LogEntry** found;  // the lane's entries; room for capacity_ + 1
    size_t count;            // number of entries
    bool is_cut;             // the lane had no room before its end
  };

  // Begins the lanes of the span behind `entry`.
  void BeginAfter(const LogEntry& entry);
  // Returns the number of lanes of this span, and doubles the size of the next one.
  size_t Width();
  // Begins a walk from `first` to `end`. A null `first` is an empty lane.
  void BeginLane(size_t lane, const LogEntry* first, const LogEntry* end, uint64_t end_prefix);
  // Advances the first `count` lanes of running_ by one step. Returns how many still run; running_ begins with these.
  size_t DoRound(size_t count);

  const BraidedList* const list_;
  const TallIndex* const index_;
  bool begun_ = false;
  uint32_t reader_ = 0;        // the reader's region
  uint64_t wanted_ = kFirst;   // entries
  uint64_t place_ = kUnknown;  // place in the index where the next span's first lane ends
  uint64_t distance_ = 0;      // average entries between two nodes of the index
  size_t capacity_ = 0;        // entries of a lane; a longer lane is cut
  size_t begun_lanes_ = 0;
  size_t walking_ = 0;
  uint8_t running_[kMostLanes];
  Lane lanes_[kMostLanes];
  std::vector<const LogEntry*> room_;  // the lanes'
  std::vector<const LogEntry*> entries_;
};

}  // namespace braiddb
