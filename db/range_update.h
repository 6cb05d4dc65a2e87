// RangeUpdate: the deletions of ranges of one batch.
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

// STEPS   1 Add, of each range, while the batch is collected  2 Prepare, when its number is drawn: the sets with its ranges
//         3 Install, when it is durable: readers find the sets  4 what is visible of it becomes so  5 End.
// ORDER   3 before 4. [CC-54]
// From 2 to 3 it has ranges_mutex_, and then allocates nothing.
// Thread safety: none; one thread's.
class RangeUpdate {
 public:
  explicit RangeUpdate(DBImpl* db) : db_(*db) {}

  // `update`: how many updates of the batch, ranges included, come before. `record`: key and value of what is to be written,
  // which live as long as this object.
  Status Add(uint32_t family, Slice begin, Slice end, size_t update, std::string_view record[2], bool* is_empty);
  // Of the records. REQUIRES: Add was OK, and the range was not empty.
  uint32_t family() const { return family_; }

  // `first`: the number of the batch's first update. False: refusal() says why.
  bool Prepare(uint64_t first);
  void Install();
  // REQUIRES: the write is not announced any more.
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
  std::deque<std::string> bytes_;  // of the records
  std::vector<Range> ranges_;
  // Of each family; from Install on the set that was replaced.
  std::vector<std::pair<Family*, std::shared_ptr<const RangeTombstones>>> sets_;
  std::unique_lock<std::mutex> lock_;
  bool is_first_ = false;  // that the compaction thread is told of
  Status refusal_;
};

}  // namespace braiddb
