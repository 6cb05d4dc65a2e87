// LevelEntries: judges the entries of a last level that keeps them in the log, in entry order.
#pragma once

#include <vector>

#include "check/level_media.h"

namespace braiddb {

// GOAL   Finds every violation of these rules. Entries ascend. Each has a sequence number below the log boundary. No entry is
//        marked; during a merge or sweep, versions that a newer one hides may be marked, and newest tombstones that hide no other
//        version. A newest version that a deleted range hides may be marked before older ones, if the range hides those too.
// STEPS  The caller resolves the addresses and calls Visit for each entry in entry order, then Finish. The entries of merging
//        tables are joined with them.
// Thread safety: one thread at a time.
class LevelEntries {
 public:
  explicit LevelEntries(const LevelCheck& check);

  // An entry that is valid and belongs to the family. `segment`: its number in Media::segments(). Adds it to LevelCheck::reached,
  // unless it is marked.
  void Visit(const LogEntry& entry, PmPtr place, size_t segment);
  void Finish();

  const LevelCounts& counts() const { return counts_; }
  // A finding was added for an entry out of order or of a sequence number that does not belong there.
  bool is_broken() const { return is_broken_; }

 private:
  void Bad(const char* what, PmPtr place);
  void JudgeMark(const LogEntry& entry);
  void EndKey();
  // Whether a deleted range hides the live older versions of the key. Reads the whole log, so it is for what looks like damage.
  bool RangeHidesOlder() const;

  const LevelCheck& check_;
  std::vector<const LogEntry*> merging_;  // in entry order
  size_t next_merging_ = 0;
  const LogEntry* previous_ = nullptr;
  const LogEntry* newest_ = nullptr;  // newest version of the key in JudgeMark
  bool older_is_live_ = false;
  uint64_t live_sequence_ = 0;  // of the newest live older version
  bool is_broken_ = false;
  LevelCounts counts_;
};

}  // namespace braiddb
