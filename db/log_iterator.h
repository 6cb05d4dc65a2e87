// LogIterator: the entries of all log segments, merged by their sequence numbers.
//
// A segment that a thread writes has ascending numbers, so this is a merge of sorted runs. It goes in windows: what was written
// up to a bound, then what was written meanwhile, and so on.
//
// WHY NOTHING IS LEFT OUT
//   - of what was written: at the bound all writes are published (ChooseLogBound), so each is below used_bytes of its segment. A
//     batch never lies on both sides of it, since its numbers are drawn at once;
//   - of what was released: whoever releases a segment first raises DBImpl::log_floor_ to its last number, then retires it. Who
//     pins first and looks at the floor then sees that it was raised, or the segment stays until the pin goes. Above the floor,
//     every entry is where it was written;
//   - of what an earlier session released: the floor begins below the log boundary, above which nothing is ever released.
// WHY NOTHING COMES TWICE  Copies of relocations have numbers of originals, or values that operands were made into. Segments of
//   them are not read; those of earlier sessions lie below the floor.
// WHY WHAT IS READ IS RIGHT  An entry does not change but for its links, and its checksum is verified.
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
  // Stands before `first`. REQUIRES: first > 0.
  LogIterator(DBImpl* db, uint64_t first) : db_(db), next_(first) {}
  ~LogIterator() override;

  bool Valid() const override { return is_valid_; }
  void Next() override;
  Status status() const override { return status_; }
  LoggedBatch GetBatch() override;

 private:
  // Stands at a batch of a segment.
  struct Run {
    const Segment* segment;
    uint64_t limit;   // bytes that may be read
    uint64_t offset;  // of the batch
    uint64_t first;   // its number
    // For a heap with the smallest number on top.
    bool operator<(const Run& other) const { return first > other.first; }
  };

  // Also to a write of the database's own, of which users see no update.
  void NextWrite();
  bool FillWindow();
  bool AddRun(const Segment* segment);
  bool FindBatch(Run* run, uint64_t from);
  bool ReadBatch(const Run& run, uint64_t* end);
  bool IsShown(const LogEntry& entry) const;
  void Unpin();
  bool Damaged(const Segment& segment, uint64_t offset);

  DBImpl* const db_;
  uint64_t next_;       // the batch that has this number, or begins behind it, is the next one
  uint64_t bound_ = 0;  // of the window; 0: there is none
  uint64_t pin_ = 0;
  bool is_pinned_ = false;
  std::vector<Run> runs_;  // a heap
  bool is_valid_ = false;
  LoggedBatch batch_;  // without updates: it was taken
  Status status_;
};

}  // namespace braiddb
