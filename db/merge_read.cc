// Reads of keys that have merge operands.
#include <algorithm>
#include <new>

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

// Adds the versions from the target on, down to the first that is no operand.
void DBImpl::AddVersions(const KeyOrder& order, EntryCursor* cursor, const SearchKey& target, MergeContext* merge) const {
  uint64_t sequence = UINT64_MAX;
  for (cursor->Seek(target); cursor->entry() != nullptr && !merge->has_base(); cursor->Next()) {
    const LogEntry* const entry = cursor->entry();
    if (order.Prefix(entry->key()) != target.prefix || !order.Same(entry->key(), target.key)) return;
    if (entry->sequence() >= sequence) return regions_->NoteDamage();  // the list is a circle
    sequence = entry->sequence();
    merge->Add(entry);
  }
}

namespace {

// Combines the operands of `versions`, which were collected from the table, into one run. False if there are few operands. While
// several tables are merged at once, the list of an older one may lead to versions of a newer one: false then, too. Behind the
// table's first version of the key the list has all others of the table, since their numbers are smaller than those of newer
// tables.
bool MakeRun(const PmTable& table, const MergeOperator& merge, Slice key, std::span<const LogEntry* const> versions,
             OperandRun* run) {
  std::vector<Slice> operands;
  for (const LogEntry* const entry : versions) {
    if (entry->sequence() >= table.boundary()) return false;
    if (entry->sequence() < table.begin) break;  // the list leads into the last level, because the table is being merged
    if (!entry->is_operand()) {
      run->base = entry;
      break;
    }
    if (run->newest == nullptr) run->newest = entry;
    run->oldest = entry->sequence();
    operands.push_back(entry->value());
  }
  if (operands.size() <= OperandRuns::kFewOperands) return false;
  std::reverse(operands.begin(), operands.end());
  constexpr size_t kMostBytes = OperandRuns::kMostBytes / 16;
  run->is_one = PartialMerge(merge, key, operands, &run->operand) && run->operand.size() <= kMostBytes;
  if (!run->is_one) run->operand = std::string();
  return true;
}

}  // namespace

// Adds the table's versions of the key. A read that sees all versions that were flushed to the table remembers them as a run for
// later reads. A range tombstone may hide some versions; then nothing is remembered.
void DBImpl::AddFromTable(const PmTable& table, const Family& family, const SearchKey& target, bool verify,
                          MergeContext* merge) const {
  const MergeOperator* const merge_operator = family.options.merge_operator.get();
  const bool sees_all = merge->floor() == 0 && target.sequence >= table.boundary() && table.begin != 0 && family.is_hashed &&
                        merge_operator != nullptr;
  std::shared_ptr<const OperandRun> known;
  if (sees_all && !verify) known = table.operand_runs.Find(target.key);
  if (known != nullptr && known->is_one) return merge->AddRun(std::move(known));
  const size_t before = merge->versions().size();
  const bool met_dead = merge->met_dead();
  BraidedCursor cursor(&table.list, nullptr);
  AddVersions(family.order, &cursor, target, merge);
  const std::span<const LogEntry* const> versions(merge->versions());
  if (!sees_all || verify || known != nullptr || merge->met_dead() != met_dead || regions_->damage_seen()) return;
  if (versions.size() - before <= OperandRuns::kFewOperands) return;
  try {
    OperandRun run;
    if (MakeRun(table, *merge_operator, target.key, versions.subspan(before), &run))
      table.operand_runs.Remember(target.key, std::move(run));
  } catch (const std::bad_alloc&) {  // a later read tries again
  }
}

void DBImpl::CollectOperands(const ReadView& all, const Family& family, const SearchKey& target, uint64_t hash, bool verify,
                             MergeContext* merge) const {
  const auto in_memtable = [&](const Memtable& set) {
    const Memtable* const memtable = set.Of(family.id);
    if (memtable == nullptr) return false;
    const perf::Timer timed(&PerfContext::get_from_memtable_time);
    perf::Add(&PerfContext::get_from_memtable_count);
    memtable->FindOperands(target, hash, merge->memtable_versions());
    merge->EndMemtable();
    return merge->has_base();
  };
  if (in_memtable(*all.active)) return;
  for (const auto& memtable : all.immutables) {
    if (in_memtable(*memtable)) return;
  }
  const perf::Timer timed(&PerfContext::get_from_output_files_time);
  const FamilyView& view = *all.Of(family.id);
  for (const auto& table : view.l0) {
    const perf::Timer timed_l0(&PerfContext::get_from_l0_time);
    const L0Index* const index = table->index();
    perf::Add(index != nullptr ? &PerfContext::l0_index_search_count : &PerfContext::l0_list_search_count);
    if (index != nullptr) {
      LookupTrace trace;
      const bool found = index->Find(target, hash, 1u << table->column(), &trace) != nullptr;
      if (trace.met_dead) merge->NoteDead();
      if (!found) continue;
    }
    AddFromTable(*table, family, target, verify, merge);
    if (merge->has_base()) return;
  }
  const perf::Timer timed_last(&PerfContext::get_from_last_level_time);
  perf::Add(&PerfContext::last_level_search_count);
  AddVersions(family.order, view.l1->NewCursor().get(), target, merge);
}

// Reads in a pinned view, as iterators do: cursors enter epoch guards of their own, and the operator may take long.
Status DBImpl::ReadMerged(const Family& family, const SearchKey& target, uint64_t hash, bool verify, std::string* value) {
  const MergeOperator* const merge_operator = family.options.merge_operator.get();
  if (merge_operator == nullptr) return Status::InvalidArgument("merge_operator is not properly initialized.");
  // Loaded before the view. A sweep removes hidden versions before their tombstone is forgotten, so the view has no version that
  // is hidden only by a tombstone which this set does not have.
  const std::shared_ptr<const RangeTombstones> ranges = RangesOf(family);
  const uint64_t floor = ranges == nullptr ? 0 : ranges->Newest(target.key, target.sequence);
  for (MergeContext merge;;) {
    const PinnedView pinned(this);
    merge.Clear(floor);
    CollectOperands(pinned.view(), family, target, hash, verify, &merge);
    if (__builtin_expect(regions_->damage_seen(), 0)) return RegionSet::DamagedList();
    // The marks that were met belong to merges that this view knows, if it is still the current view. [CC-50]
    if (!merge.Settle() && !IsNewestView(pinned.view())) continue;
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
