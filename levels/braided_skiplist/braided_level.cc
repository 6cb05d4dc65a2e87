#include "levels/braided_skiplist/braided_level.h"

#include <new>
#include <optional>
#include <utility>

#include "levels/braided_skiplist/braided_media.h"
#include "util/format.h"
#include "util/sync_point.h"

namespace braiddb {

constinit const LevelKind BraidedLevel::kKind = {
    .id = L1Kind::kBraidedSkipList,
    .name = "braided_skiplist",
    .constant = "kBraidedSkipList",
    .relinks_entries = true,
    .indexes_all_nodes = true,
    .create = [](const Options&, RegionSet* regions, SegmentAllocator*,
                 const LevelPlace& place) { return Create(regions, place); },
    .open = Open,
    .attach = Attach,
    .attach_index = AttachIndex,
    .new_media = []() -> std::unique_ptr<LevelMedia> { return std::make_unique<BraidedMedia>(); },
};

Status BraidedLevel::Create(RegionSet* regions, const LevelPlace& place) {
  Status status = BraidedSkipList::Create(regions, place);
  const bool has_journal = regions->Metadata(0, MetadataSlot::kMergeJournal) != nullptr;
  return status.ok() && !has_journal ? MergeJournal::Create(regions) : status;
}

// 1. Open the journal, unless the database shares its journal with the level.
// 2. Open the list.
// 3. Repeat the newest journal batch of the interrupted job, if any. This is the first store to the list.
// 4. Verify the heads. The order matters: before step 3 a head may lack a store of the batch and not match its checksum.
Status BraidedLevel::Open(const Options& options, const Parts& parts, uint64_t job, std::unique_ptr<LastLevel>* result) {
  std::unique_ptr<BraidedLevel> level(new BraidedLevel(options, parts));
  Status status;
  level->journal_ = parts.journal;
  if (level->journal_ == nullptr) {
    level->journal_ = std::make_shared<MergeJournal>();
    status = MergeJournal::Open(parts.regions, level->journal_.get());
  }
  std::shared_ptr<const BraidedSkipList> list;
  if (status.ok()) status = BraidedSkipList::Open(parts.regions, parts.order, &list, parts.place);
  // A shared journal was read by its owner already (Redo(0)). So only the level with the running job repeats a batch.
  if (status.ok() && (parts.journal == nullptr || job != 0)) status = level->journal_->Redo(job, &level->progress_);
  if (status.ok()) status = list->VerifyHeads();
  if (!status.ok()) return status;
  level->resumed_job_ = job;
  level->is_count_lost_ = job != 0;
  level->list_ = std::move(list);
  *result = std::move(level);
  return Status::OK();
}

// A reader of another process sees each store of a merge. The index that it uses, if any, belongs to its view.
Status BraidedLevel::Attach(const RegionSet& regions, const KeyOrder& order, const LevelPlace& place,
                            std::shared_ptr<const OrderedLevel>* level) {
  std::shared_ptr<const BraidedSkipList> list;
  const Status status = BraidedSkipList::Open(&regions, &order, &list, place);
  *level = std::move(list);
  return status;
}

std::shared_ptr<const OrderedLevel> BraidedLevel::AttachIndex(const OrderedLevel& attached, const SharedMemory& memory,
                                                              std::span<const uint64_t> shared) {
  const auto& list = static_cast<const BraidedSkipList&>(attached);
  return list.With(TallIndex::Attach(list.list(), memory, shared));
}

std::shared_ptr<const OrderedLevel> BraidedLevel::View() const { return Current(); }

// If no DRAM is available, the view has no index. Reads are then slower but correct.
// Builds the index outside of the mutex, since View must not wait for it. The old list object is destroyed after the mutex is
// released.
void BraidedLevel::Refresh(uint64_t l1_entries) {
  std::shared_ptr<const BraidedSkipList> fresh =
      Current()->WithIndex(l1_entries, index_bytes_, changes_.get(), parts_.stop, shared_heap());
  changes_.reset();
  is_count_lost_ = false;  // whoever calls this has asked before
  index_is_current_ = true;
  index_was_stopped_ = parts_.stop != nullptr && parts_.stop->load(std::memory_order_acquire);
  BRAIDDB_SYNC_POINT_ARG("BraidedLevel::Refresh", fresh.get());
  Install(std::move(fresh));
  // An index stays private if the heap had no room, and so do the ones that are made of it, until it is copied.
  try {
    (void)Share();
  } catch (const std::bad_alloc&) {  // the next Refresh tries again
  }
}

// A merge that was cut short, by a kill or by an error, has linked entries that nobody has counted.
std::optional<uint64_t> BraidedLevel::Entries() const {
  return is_count_lost_ ? std::optional(Current()->list().EstimateEntries()) : std::nullopt;
}

bool BraidedLevel::LoadIndex(const BlockFileReader& file, uint64_t offset) {
  const std::shared_ptr<const BraidedSkipList> now = Current();
  std::optional<TallIndex> index = TallIndex::Load(now->list(), file, offset, index_bytes_, threads_, shared_heap());
  if (!index) return false;
  Install(now->With(std::move(*index)));
  index_is_current_ = true;
  index_was_stopped_ = false;
  return true;
}

// A copy has the nodes of the original, so a merge or Refresh goes on with it.
bool BraidedLevel::Share() {
  const std::shared_ptr<const BraidedSkipList> now = Current();
  if (shared_heap() == nullptr || now->index().IsShared()) return false;
  std::optional<TallIndex> copy = now->index().CopyTo(shared_heap());
  if (!copy) return false;
  Install(now->With(std::move(*copy)));
  return true;
}

void BraidedLevel::Install(std::shared_ptr<const BraidedSkipList> fresh) {
  std::lock_guard lock(mutex_);
  list_.swap(fresh);
}

ZipperContext BraidedLevel::ContextFor(const MergeJob& job) {
  return {parts_.regions, parts_.order, parts_.segments, &Current()->list(), job.l1_entries, journal_.get(),
          job.filter,     job.threads,  job.stop,        job.settled,        job.moved};
}

std::unique_ptr<EntryFilter> BraidedLevel::NewFilter(const MergeJob& job) {
  return job.entry_filters == nullptr ? nullptr : job.entry_filters->NewFilter();
}

// 1. Begin the job in the journal.
// 2. If the index describes the current list, use it for the scans, and record the changes for the next index.
// 3. Run the zipper, from the recorded progress if the job is resumed.
// After an error the changes are incomplete. They are dropped, and the next Refresh walks the list.
Status BraidedLevel::Merge(const MergeJob& job, const std::vector<const PmTable*>& tables, MergeStats* stats) {
  journal_->Begin(job.id);
  // The changes of a resumed merge are incomplete: its earlier run recorded none for this index.
  const bool is_resumed = job.id == resumed_job_;
  if (!index_is_current_ && !is_resumed && Current()->list().First() == nullptr) Refresh(0);  // first merge into an empty list
  const std::unique_ptr<EntryFilter> entry_filter = NewFilter(job);
  ZipperContext context = ContextFor(job);
  context.entry_filter = entry_filter.get();
  context.order_of_tables = job.order.get();
  changes_.reset();
  std::unique_ptr<IndexChanges> changes;
  if (std::exchange(index_is_current_, false) && !is_resumed) {
    context.index = &Current()->index();
    changes = std::make_unique<IndexChanges>(context.index->NewChanges());
  }
  context.index_changes = changes.get();
  // A filter in use has all keys of the last level. A filter under construction may lack some of them.
  context.knows_keys_below = job.key_filters[1] == nullptr;
  KeyFilterWriter keys(job.key_filters[0], job.key_filters[1], context.knows_keys_below);
  context.keys = &keys;
  Status status = RunZipper(context, tables, is_resumed ? progress_ : PmPtr(), stats);
  if (status.ok()) changes_ = std::move(changes);
  is_count_lost_ |= !status.ok();
  return status;
}

// Records the changes for the next index, as a merge. So a sweep of few keys costs little, whatever the size of the list.
Status BraidedLevel::Sweep(const MergeJob& job, const KeyRanges& ranges, MergeStats* stats) {
  journal_->Begin(job.id);
  const std::unique_ptr<EntryFilter> entry_filter = NewFilter(job);
  ZipperContext context = ContextFor(job);
  context.entry_filter = entry_filter.get();
  changes_.reset();
  std::unique_ptr<IndexChanges> changes;
  if (std::exchange(index_is_current_, false)) changes = std::make_unique<IndexChanges>(Current()->index().NewChanges());
  context.index_changes = changes.get();
  Status status = SweepLastLevel(context, ranges, stats);
  is_count_lost_ |= !status.ok();
  if (!status.ok() || changes == nullptr) return status;
  changes->SortRemoved(*parts_.order);
  changes_ = std::move(changes);
  return status;
}

uint64_t BraidedLevel::DramBytes() const { return Current()->index().bytes(); }

std::string BraidedLevel::Describe() const {
  return Format("braided skiplist, index over tall nodes: %llu bytes\n", static_cast<unsigned long long>(DramBytes()));
}

}  // namespace braiddb
