// RangeUpdate: the range deletions of one batch.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braiddb/status.h"
#include "db/family.h"
#include "index/range_tombstones.h"

namespace braiddb {

class DBImpl;

// STEPS   1 Add, for each range, while the updates of the batch are collected  2 Prepare, when the batch's number is drawn:
//         builds the sets that include its ranges  3 Install, when the batch is durable: readers find the sets  4 the caller
//         publishes the updates  5 End.
// ORDER   3 before 4. [CC-54]
// From Prepare to Install the object holds ranges_mutex_ and allocates no memory.
// Thread safety: none; one thread uses the object.
class RangeUpdate {
 public:
  explicit RangeUpdate(DBImpl* db) : db_(*db) {}

  // Adds a range. `update`: the number of updates of the batch before this range, ranges included. `record`: set to key and value
  // of the record to be written, which live as long as this object. *is_empty: the range is empty, and no record is written.
  Status Add(uint32_t family, Slice begin, Slice end, size_t update, std::string_view record[2], bool* is_empty);
  // The family of the records. REQUIRES: Add was OK, and the range was not empty.
  uint32_t family() const { return family_; }

  // `first`: the number of the batch's first update. False: the batch is refused, and refusal() has the reason.
  bool Prepare(uint64_t first);
  void Install();
  // Retires the replaced sets, or gives the lock back if nothing was installed. REQUIRES: the write is not announced any more.
  void End();
  const Status& refusal() const { return refusal_; }

 private:
  struct Range {
    Family* family;
    size_t update;
    std::shared_ptr<RangeTombstone> tombstone;
  };
  void MakeSets(uint64_t first);

  DBImpl& db_;
  uint32_t family_ = 0;
  std::deque<std::string> bytes_;  // keys and values of the records
  std::vector<Range> ranges_;
  // One set for each family: the new set; from Install on, the set that was replaced.
  std::vector<std::pair<Family*, std::shared_ptr<const RangeTombstones>>> sets_;
  std::unique_lock<std::mutex> lock_;
  bool is_first_ = false;  // the sets were the first that wait for a sweep, so the compaction thread is woken
  Status refusal_;
};

}  // namespace braiddb
