// Reading keys that have operands.
#include "db/db_impl.h"
#include "db/merge_context.h"
#include "db/no_memory.h"
#include "skiplist/braided_cursor.h"

namespace braiddb {

namespace {

Status CheckOperator(const Family& family) {
  return family.options.merge_operator == nullptr ? Status::NotSupported("Provide a merge_operator when opening DB")
                                                  : Status::OK();
}

}  // namespace

Status DBImpl::Merge(const WriteOptions& options, Slice key, Slice operand) try {
  Status status = CheckOperator(default_family_);
  return status.ok() ? WriteOne(options, EntryType::kMerge, 0, key, operand) : status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status DBImpl::Merge(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice operand) try {
  Status status;
  const Family* const known = FamilyOf(family, &status);
  if (known == nullptr) return status;
  status = CheckOperator(*known);
  return status.ok() ? WriteOne(options, EntryType::kMerge, known->id, key, operand) : status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// The versions from the target on, down to one that is no operand.
void DBImpl::AddVersions(const KeyOrder& order, EntryCursor* cursor, const SearchKey& target, MergeContext* merge) const {
  uint64_t sequence = UINT64_MAX;
  for (cursor->Seek(target); cursor->entry() != nullptr && !merge->has_base(); cursor->Next()) {
    const LogEntry* const entry = cursor->entry();
    if (order.Prefix(entry->key()) != target.prefix || !order.Same(entry->key(), target.key)) return;
    if (entry->sequence() >= sequence) return regions_->NoteDamage();  // it goes in a circle
    sequence = entry->sequence();
    merge->Add(entry);
  }
}

void DBImpl::CollectOperands(const ReadView& all, const Family& family, const SearchKey& target, uint64_t hash,
                             MergeContext* merge) const {
  const auto in_memtable = [&](const Memtable& set) {
    const Memtable* const memtable = set.Of(family.id);
    if (memtable == nullptr) return false;
    memtable->FindOperands(target, hash, merge->memtable_versions());
    merge->EndMemtable();
    return merge->has_base();
  };
  if (in_memtable(*all.active)) return;
  for (const auto& memtable : all.immutables) {
    if (in_memtable(*memtable)) return;
  }
  const FamilyView& view = *all.Of(family.id);
  for (const auto& table : view.l0) {
    if (table->indexed.index != nullptr) {
      LookupTrace trace;
      const bool found = table->indexed.index->Find(target, hash, 1u << table->indexed.column, &trace) != nullptr;
      if (trace.met_dead) merge->NoteDead();
      if (!found) continue;
    }
    BraidedCursor cursor(&table->list, nullptr);
    AddVersions(family.order, &cursor, target, merge);
    if (merge->has_base()) return;
  }
  AddVersions(family.order, view.l1->NewCursor().get(), target, merge);
}

// As iterators do, it reads in a view that it keeps, and pins: cursors enter epoch guards of their own, and the operator may take
// long.
Status DBImpl::ReadMerged(const Family& family, const SearchKey& target, uint64_t hash, bool verify, std::string* value) {
  const MergeOperator* const merge_operator = family.options.merge_operator.get();
  if (merge_operator == nullptr) return Status::InvalidArgument("merge_operator is not properly initialized.");
  // Before the view, in which nothing is that a tombstone hid which this does not have.
  const std::shared_ptr<const RangeTombstones> ranges = RangesOf(family);
  const uint64_t floor = ranges == nullptr ? 0 : ranges->Newest(target.key, target.sequence);
  for (MergeContext merge;;) {
    const PinnedView pinned(this);
    merge.Clear(floor);
    CollectOperands(pinned.view(), family, target, hash, &merge);
    if (__builtin_expect(regions_->damage_seen(), 0)) return RegionSet::DamagedList();
    // Marks that are seen by now are those of merges that this view knows of, if it still is the one of now. [CC-50]
    if (!merge.Settle() && view_.load(std::memory_order_acquire) != &pinned.view()) continue;
    for (size_t i = 0; verify && i < merge.versions().size(); ++i) {
      if (Status status = VerifyEntry(merge.versions()[i]); !status.ok()) return status;
    }
    size_t applied = 0;
    Status status = merge.Apply(*merge_operator, target.key, value, &applied);
    Measure(HistogramKind::kMergeOperands, applied);
    return status;
  }
}

}  // namespace braiddb
