// LogIterator: merges the entries of all log segments by sequence number.
//
// A segment is written by one thread at a time and has ascending numbers, so the log is a set of sorted runs. The merge proceeds
// in windows: the first has everything that was written up to a bound, the next has what was written meanwhile, and so on.
//
// WHY THE ITERATOR IS COMPLETE
//   - Written entries: at the bound all writes are published (ChooseLogBound), so each is below used_bytes of its segment. A
//     batch is never on both sides of the bound, since all its numbers are drawn at once.
//   - Released segments: before a segment is retired, DBImpl::log_floor_ is raised to its last number. A thread that pins first
//     and then loads the floor sees the raised floor, or the segment stays until the pin ends. Above the floor, every entry is
//     where it was written.
//   - Segments that an earlier session released: the floor starts just below the log boundary, and no segment above the boundary
//     is ever released.
// WHY NO ENTRY IS RETURNED TWICE  Copies of a relocation or a collapse have the numbers of other entries. Their segments are
//   skipped; those of earlier sessions are below the floor.
// WHY THE DATA IS RIGHT  An entry never changes except for its links, and its checksum is verified.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braiddb/transaction_log.h"
#include "log/log_reader.h"
#include "util/epoch.h"

namespace braiddb {

class DBImpl;

// Thread safety: one thread at a time.
class LogIterator final : public TransactionLogIterator {
 public:
  // Positioned before `first`. REQUIRES: first > 0.
  LogIterator(DBImpl* db, uint64_t first) : db_(db), next_(first) {}
  ~LogIterator() override;

  bool Valid() const override { return is_valid_; }
  void Next() override;
  Status status() const override { return status_; }
  LoggedBatch GetBatch() override;

 private:
  // A position at a batch of a segment.
  struct Run {
    const Segment* segment;
    uint64_t limit;   // bytes that may be read
    uint64_t offset;  // of the batch
    uint64_t first;   // the batch's first number
    // Orders a heap whose top is the smallest number.
    bool operator<(const Run& other) const { return first > other.first; }
  };

  // Moves to the next write. The write may be one of the database's own, without visible updates.
  void NextWrite();
  bool FillWindow();
  bool AddRun(const Segment* segment);
  bool FindBatch(Run* run, uint64_t from);
  bool ReadBatch(const Run& run, uint64_t* end);
  bool IsShown(const LogEntry& entry) const;
  void Unpin();
  bool Damaged(const Segment& segment, uint64_t offset);

  DBImpl* const db_;
  uint64_t next_;       // the next batch contains this number, or is the first after it
  uint64_t bound_ = 0;  // of the window; 0: no window
  uint64_t pin_ = 0;
  uint64_t floor_ = 0;  // DBImpl::log_floor_ after the pin
  bool is_pinned_ = false;
  std::vector<Run> runs_;  // a heap
  bool is_valid_ = false;
  LoggedBatch batch_;  // without updates: the caller has taken them
  Status status_;
};

}  // namespace braiddb
