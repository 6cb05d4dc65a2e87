// Family: the state of one column family in an open database.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/column_family.h"
#include "braiddb/event_listener.h"
#include "compaction/last_level.h"
#include "db/hidden_family.h"
#include "index/key_hash.h"
#include "index/key_order.h"
#include "index/level_kind.h"
#include "index/level_place.h"
#include "index/ordered_level.h"
#include "index/range_tombstones.h"

namespace braiddb {

// Lives until the database is closed, or as long as a handle if that is longer. A dropped family also stays, so code that found a
// family by its id needs no guard.
struct Family {
  Family(uint32_t family_id, uint64_t family_number, std::string family_name, const ColumnFamilyOptions& family_options)
      : id(family_id),
        hash_salt(FamilyHash(family_id)),
        number(family_number),
        name(std::move(family_name)),
        is_hidden(IsHiddenFamily(name)),
        options(family_options),
        kind(FindLevelKind(family_options.l1)),
        order(family_options.comparator),
        is_hashed(order.equal_means_same()),
        has_filter(family_options.compaction_filter != nullptr || family_options.compaction_filter_factory != nullptr),
        looks_closer(has_filter) {}
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  LevelPlace place() const { return {id, number}; }
  uint64_t HashOf(Slice key) const { return KeyHash(key) ^ hash_salt; }

  const uint32_t id;
  const uint64_t hash_salt;
  const uint64_t number;
  const std::string name;
  const bool is_hidden;  // only the library itself writes to the family
  const ColumnFamilyOptions options;
  const LevelKind* const kind;  // of the last level; null only in a database whose open is refused
  const KeyOrder order;
  const bool is_hashed;   // its keys are in the structures that find keys by hash (lookup cache, filter, L0 index)
  const bool has_filter;  // an entry that the lookup cache returns may have been dropped by the filter

  // The live range tombstones; null if there are none. Loaded inside an epoch guard, and after the entry that they may hide. Code
  // that needs the set for longer keeps a shared_ptr. [CC-54]
  std::atomic<const RangeTombstones*> ranges{nullptr};
  std::shared_ptr<const RangeTombstones> current_ranges;  // owns *ranges; DBImpl::ranges_mutex_
  // Whether the result of a lookup needs another check: the family has a compaction filter or range tombstones. Set after
  // `ranges`.
  std::atomic<bool> looks_closer;

  // Read under compaction_mutex_; changed under compaction_mutex_ and view_mutex_. Readers use the level of their view. Null
  // after the family was purged.
  std::shared_ptr<LastLevel> last_level;
  // Instead of last_level, if another process has the database open for writing.
  std::shared_ptr<const OrderedLevel> attached_level;
  // The same level with the newest index of that process, and what describes the index; DBImpl::follow_mutex_.
  std::shared_ptr<const OrderedLevel> indexed_level;
  std::vector<uint64_t> index_words;
  std::atomic<uint64_t> l1_entries{0};  // estimate
  // For a family with listed tables: every live entry with a smaller number is in the last level. 0: not known yet.
  // manifest_mutex_
  uint64_t merged_boundary = 0;
  // Nothing was merged since a sweep of the whole level that had to leave nothing, so another sweep would find nothing.
  // compaction_mutex_
  bool is_swept = false;
  bool is_indexed = false;  // since the open, its last level has an index; compaction_mutex_
  // The number of oldest tables of L0 that are being merged, and leave the view together; DBImpl::view_mutex_.
  size_t merging_tables = 0;
  bool merges_orders = false;        // the merge reads one sorted run of all these tables, or creates it; DBImpl::view_mutex_
  std::atomic<bool> dropped{false};  // the family takes no writes, unless the drop fails
  std::atomic<bool> is_gone{false};  // the MANIFEST lists the family as dropped
  mutable std::atomic<uint32_t> handles{0};  // existing handles and iterators
  // For a dropped family without handles. 0: still in the view. 1: no new view has the family. 2: no reader uses the family.
  std::atomic<int> leaving{0};
};

// The implementation of ColumnFamilyHandle.
class FamilyHandle final : public ColumnFamilyHandle {
 public:
  // `db`: the database that the handle belongs to.
  FamilyHandle(const void* db, std::shared_ptr<Family> family) : db_(db), family_(std::move(family)) {
    family_->handles.fetch_add(1, std::memory_order_relaxed);
  }
  // release: reads through the handle come before the purge that may follow its end.
  ~FamilyHandle() override {
    for (const auto& listener : listeners_) listener->OnColumnFamilyHandleDeletionStarted(this);
    family_->handles.fetch_sub(1, std::memory_order_release);
  }
  // Sets the listeners that are called when the handle is deleted: those of the database, if a user gets the handle. The handle
  // may outlive the database.
  void TellOfDeletion(const std::vector<std::shared_ptr<EventListener>>& listeners) { listeners_ = listeners; }

  const std::string& GetName() const override { return family_->name; }
  uint32_t GetID() const override { return family_->id; }
  const ColumnFamilyOptions& GetOptions() const override { return family_->options; }

  const void* db() const { return db_; }
  Family* family() const { return family_.get(); }

 private:
  const void* const db_;
  const std::shared_ptr<Family> family_;
  std::vector<std::shared_ptr<EventListener>> listeners_;
};

}  // namespace braiddb
