// The choice of a snapshot's number from the announcements of writers. The argument is in db/visibility.cc, "SNAPSHOTS WITHOUT A
// BARRIER".
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "db/live_board.h"

namespace braiddb {

// STEPS   1 Candidate() chooses a number.  2 The caller registers the number, and waits until no write with a number up to it is
//         under way.  3 IsState() looks whether the number is a state of the database. If not, the caller begins again.
// COST    Each step loads one cache line for each thread that has written.
// Thread safety: one thread uses an object. Other threads and processes may write meanwhile.
class SnapshotChoice {
 public:
  explicit SnapshotChoice(const LiveBoard& board) : board_(board) {}

  // The number before the first write that is under way, or the last number that was drawn. At least the number of every write
  // that an earlier IsState() has found visible.
  uint64_t Candidate() const {
    uint64_t sequence = board_.next_sequence.load(std::memory_order_seq_cst) - 1;
    ForEachAnnounced(board_, [&sequence](const Announcements& thread) {
      const uint64_t number = thread.in_flight.value();
      if (number <= sequence) sequence = number - 1;
    });
    return std::max(sequence, visible_);
  }

  // True if there was an instant after the wait at which exactly the writes up to `sequence` were visible.
  bool IsState(uint64_t sequence) {
    ForEachAnnounced(board_, [this](const Announcements& thread) {
      visible_ = std::max(visible_, thread.last_visible.load(std::memory_order_seq_cst));
    });
    return visible_ <= sequence;
  }

 private:
  const LiveBoard& board_;
  uint64_t visible_ = 0;  // the largest number that may be visible
};

}  // namespace braiddb
