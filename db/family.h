// Family: a column family of an open database, as its engine has it.
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
#include "index/level_place.h"
#include "index/range_tombstones.h"

namespace braiddb {

// Lives until the database is closed, or longer if a handle does, also when it was dropped: who found it by its id needs no
// guard.
struct Family {
  Family(uint32_t family_id, uint64_t family_number, std::string family_name, const ColumnFamilyOptions& family_options)
      : id(family_id),
        hash_salt(FamilyHash(family_id)),
        number(family_number),
        name(std::move(family_name)),
        is_hidden(IsHiddenFamily(name)),
        options(family_options),
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
  const bool is_hidden;  // only code of the library writes to the family
  const ColumnFamilyOptions options;
  const KeyOrder order;
  const bool is_hashed;   // structures that find keys by hash know its keys
  const bool has_filter;  // a hit of the lookup cache may be an entry that the filter has dropped

  // Range tombstones that live, null if there are none: loaded inside an epoch guard, and after the entry that they may hide. Who
  // needs them for longer keeps a shared_ptr. [CC-54]
  std::atomic<const RangeTombstones*> ranges{nullptr};
  std::shared_ptr<const RangeTombstones> current_ranges;  // owns *ranges; DBImpl::ranges_mutex_
  // What is found, or not found, may not be the answer: there is a filter, or there are range tombstones. Set after `ranges`.
  std::atomic<bool> looks_closer;

  // compaction_mutex_, and to change it view_mutex_, too; readers take the view's. Null when it was taken away.
  std::shared_ptr<LastLevel> last_level;
  std::atomic<uint64_t> l1_entries{0};  // estimate
  // Of a family with listed tables: what is smaller and lives is in the last level; 0: not known yet. manifest_mutex_
  uint64_t merged_boundary = 0;
  size_t merging_tables = 0;                 // the oldest of L0, which leave the view together; DBImpl::view_mutex_
  bool merges_orders = false;                // the merge of these makes one of their orders, or has; as merging_tables
  std::atomic<bool> dropped{false};          // nothing is written to it any more, unless dropping it fails
  std::atomic<bool> is_gone{false};          // the MANIFEST says that it was dropped
  mutable std::atomic<uint32_t> handles{0};  // that were given out and not destroyed, and iterators
  // Of one that was dropped and has no handle: 0 not yet 1 no new view has it 2 nor has any reader.
  std::atomic<int> leaving{0};
};

// What users hold.
class FamilyHandle final : public ColumnFamilyHandle {
 public:
  // `db`: whose it is.
  FamilyHandle(const void* db, std::shared_ptr<Family> family) : db_(db), family_(std::move(family)) {
    family_->handles.fetch_add(1, std::memory_order_relaxed);
  }
  // release: what was read through the handle comes before what follows from its end.
  ~FamilyHandle() override {
    for (const auto& listener : listeners_) listener->OnColumnFamilyHandleDeletionStarted(this);
    family_->handles.fetch_sub(1, std::memory_order_release);
  }
  // These are told of its deletion: the database's, if it is the user's. The handle may outlive the database.
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
