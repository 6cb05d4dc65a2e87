// LogTail: reads the updates that another process writes to a database, from the segments of its log, without its help.
//
// GOAL   Return each update once, soon after it was written. No lock is taken and no file is changed: the writer pays nothing.
// STEPS  Start: 1 list the segments  2 read the log boundary. Poll: 1 list the segments  2 read what each segment of the log has
//        gained since the last poll  3 find segments that were released before they were read to their end  4 return the updates
//        with numbers up to the largest number of the last poll.
// WHY NOTHING IS MISSED AT THE START  A segment is released only when all of its numbers are below the log boundary (CC-7). The
//        boundary is read after the list, so every update from the boundary on is in a listed segment or in a later one.
// WHAT MAY BE MISSED LATER  The entries of a segment are a prefix (CC-6), and the tail remembers how far it has read. A segment
//        that was being written at the last poll and is released now may have had more: it is counted. A segment that was taken,
//        filled, merged and released between two polls is not noticed.
// WHY NO COPY IS RETURNED  Copies of relocations and collapses have the numbers of older entries, in segments of their own.
//        1 A segment that was seen as kCopies or kFlushed is never read, and a segment that was seen as kOpen has no copies.
//        2 A segment that is first seen as kSealed may be either. A writer takes its segment first and draws numbers then, in
//        ascending order. So the segment has copies if its numbers do not ascend, or if it was not in the list of the last poll
//        and one of its numbers was known two polls ago. None of its entries is returned.
//        3 Each update has a number of its own. An entry whose number was returned before is a copy. Of two found entries with
//        one number, the operand is the original.
// ORDER  Threads draw numbers first and write later, so a poll may miss an update with a smaller number than another one that it
//        finds. The next poll finds it, unless the write takes longer than the time between two polls. Then the update is
//        returned later, out of order.
// WHY WHAT IS READ IS RIGHT  Entries have checksums, seeded with a random number of each use of a segment. A batch is returned
//        only when all of its entries are valid.
// WHAT IS NOT THERE  Copies of entries, and records of prepared transactions. An update may be returned before it is durable and
//        acknowledged.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "braiddb/options.h"
#include "braiddb/status.h"
#include "log/log_entry.h"
#include "log/log_reader.h"
#include "pmem/pool_files.h"

namespace braiddb {

// Thread safety: one thread at a time.
class LogTail {
 public:
  enum class Kind : uint8_t { kPut, kDelete, kMerge, kDeleteRange };
  struct Update {
    uint64_t sequence;
    uint32_t family;  // id
    Kind kind;
    std::string key;    // kDeleteRange: begin of the range
    std::string value;  // kDeleteRange: end of the range
  };

  // `options`: region_paths are those of the database.
  LogTail(const Options& options, std::string path) : options_(options), path_(std::move(path)) {}

  // Begins with sequence number `since`; 0: with the oldest number from which the log is known to be complete.
  //   NotFound  there is no database, or writes from `since` on may have been reclaimed
  Status Start(uint64_t since);
  // Appends updates, ordered by their sequence numbers. An update that the call finds is returned by the next call.
  //   NotFound    the database was removed
  //   Corruption  a segment is damaged
  // REQUIRES: Start has returned OK.
  Status Poll(std::vector<Update>* updates);
  // Appends the updates that were found and not returned yet.
  void TakeRest(std::vector<Update>* updates) { TakeUpTo(UINT64_MAX, updates); }
  // The number of segments that were released before they were seen to be full. Their last updates may be missing.
  uint64_t missed_segments() const { return missed_segments_; }

 private:
  // What was read of a segment.
  struct Progress {
    uint64_t end = 0;            // bytes of valid entries
    uint64_t last = UINT64_MAX;  // sealed: largest sequence number in it
    bool is_writers = false;     // has no copies
    bool is_whole = false;       // nothing is left to read in it
    bool is_short = false;       // it was sealed and an entry was not valid: it was released meanwhile, or it is damaged
    bool is_listed = false;      // in the newest list
  };
  struct Region {
    std::string directory;
    std::unordered_map<uint64_t, Progress> progress;  // by generation
  };

  Status ReadFamilies(uint64_t* log_boundary);
  Status OpenRegions();
  Status PollRegion(Region* region);
  // `is_new`: the segment was not in the list of the last poll.
  Status ReadSegment(const PoolFiles& files, const ListedSegment& segment, bool is_new, Progress* progress);
  // Returns true if the entries that `reader` has not read yet are copies. `is_new`: as in ReadSegment.
  bool HasCopies(LogReader reader, bool is_new) const;
  void Add(const LogEntry& entry);
  // Returns false if users do not see the update. Turns a record of a deleted range into the deletion.
  bool Show(Update* update) const;
  // Forgets segments that are not listed any more. Counts those that were not read to their end.
  void FindMissed(Region* region);
  bool WasReturned(uint64_t sequence) const;
  void SetReturned(uint64_t sequence);
  // Moves found updates with numbers up to `last` to *updates.
  void TakeUpTo(uint64_t last, std::vector<Update>* updates);

  const Options options_;
  const std::string path_;
  std::vector<Region> regions_;
  uint64_t database_id_ = 0;
  uint32_t range_family_ = 0;     // of range tombstones; 0: there is none
  uint32_t prepared_family_ = 0;  // of prepared transactions; 0: there is none
  uint64_t since_ = 0;
  uint64_t largest_ = 0;       // largest number that was found
  uint64_t last_ = 0;          // largest_ at the end of the last poll
  uint64_t horizon_ = 0;       // largest_ at the end of the poll before
  std::vector<Update> found_;  // not returned yet
  // Ranges of numbers that were returned, or that users do not see: the last number of each range by the first.
  std::map<uint64_t, uint64_t> returned_;
  uint64_t missed_segments_ = 0;
  std::vector<uint64_t> buffer_;
};

}  // namespace braiddb
