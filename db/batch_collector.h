// BatchCollector: turns a WriteBatch into the updates that are written to the log.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "braiddb/write_batch.h"
#include "db/family.h"
#include "db/range_update.h"
#include "db/thread_state.h"

namespace braiddb {

// The handler of WriteBatch::Iterate that appends each update to ThreadState::updates. An update that may not be written ends the
// iteration with an error: its family does not exist, belongs to the database, or has no merge operator, or its key or value is
// too long. A deletion of a range becomes a RangeUpdate and the put of a record.
// Thread safety: none; the thread of `thread` uses the object.
class BatchCollector final : public WriteBatch::Handler {
 public:
  struct Families {
    const Family* Find(uint32_t id) const { return by_id[id].load(std::memory_order_acquire); }

    std::span<const std::atomic<Family*>> by_id;  // null: the family does not exist
    const std::atomic<Family*>* of_ranges;        // the family of range tombstones; null if there is none
    bool takes_hidden;                            // whether the batch may write to hidden families
  };

  // `ignores_missing`: updates of families that do not exist are skipped.
  BatchCollector(DBImpl* db, const Families& families, bool ignores_missing, ThreadState* thread)
      : db_(db), families_(families), ignores_missing_(ignores_missing), thread_(*thread) {}

  // The number of updates that were skipped because their family does not exist.
  size_t skipped() const { return skipped_; }
  // The number of updates up to the last one of a user's family.
  size_t shown() const { return shown_; }
  // The range deletions; null if there are none.
  RangeUpdate* ranges() const { return ranges_.get(); }

  // Never called: the functions below handle all updates.
  void Put(Slice, Slice) override {}
  void Delete(Slice) override {}
  void Merge(Slice, Slice) override {}
  Status PutCF(uint32_t family, Slice key, Slice value) override;
  Status DeleteCF(uint32_t family, Slice key) override;
  Status MergeCF(uint32_t family, Slice key, Slice operand) override;
  Status DeleteRangeCF(uint32_t family, Slice begin, Slice end) override;

 private:
  // Whether the update is skipped, because users see no such family. Counts the update then.
  bool Skips(uint32_t family);
  // Adds an update of a user. Refuses the family of range tombstones: an open takes every entry there for the record of a range.
  Status AddUsers(EntryType type, uint32_t family, Slice key, Slice value);
  Status Add(EntryType type, uint32_t family, Slice key, Slice value);
  Status Take(EntryType type, uint32_t family, Slice key, Slice value);

  DBImpl* const db_;
  const Families families_;
  const bool ignores_missing_;
  ThreadState& thread_;
  size_t skipped_ = 0;
  size_t shown_ = 0;
  std::unique_ptr<RangeUpdate> ranges_;
};

}  // namespace braiddb
