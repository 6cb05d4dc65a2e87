#include "levels/hybrid/hybrid_level.h"

#include <new>
#include <utility>

#include "levels/hybrid/hybrid_media.h"
#include "util/format.h"

namespace braiddb {
namespace {

// When jobs have removed one in so many entries of the level, small pages are joined.
constexpr uint64_t kRemovedToShrink = 8;

}  // namespace

constinit const LevelKind HybridLevel::kKind = {
    .id = L1Kind::kHybrid,
    .name = "hybrid",
    .constant = "kHybrid",
    .dram = LevelDram::kGrows,
    .create = [](const Options&, RegionSet* regions, SegmentAllocator* segments,
                 const LevelPlace& place) { return HashIndex::Create(regions, segments, place); },
    .open = Open,
    .new_media = []() -> std::unique_ptr<LevelMedia> { return std::make_unique<HybridMedia>(); },
};

// Opens the hash index. An interrupted merge is run again by the caller.
Status HybridLevel::Open(const Options& options, const Parts& parts, uint64_t job, std::unique_ptr<LastLevel>* result) {
  std::unique_ptr<HybridLevel> level(new HybridLevel(options, parts, job));
  std::unique_ptr<HashIndex> hash;
  Status status =
      HashIndex::Open({parts.regions, parts.segments, parts.epochs, &level->keys_, parts.place}, options.recovery_threads, &hash);
  if (!status.ok()) return status;
  level->hash_ = std::move(hash);
  level->view_ = level->NewView(nullptr);
  *result = std::move(level);
  return status;
}

std::shared_ptr<const HybridView> HybridLevel::NewView(std::shared_ptr<const OrderedIndex> index) const {
  return std::make_shared<HybridView>(HybridView::Parts{parts_.regions, parts_.epochs, parts_.order, hash_, threads_},
                                      std::move(index));
}

void HybridLevel::Install(std::shared_ptr<const HybridView> view) {
  const std::lock_guard lock(mutex_);
  view_.swap(view);
}

// If no DRAM is available, the view has no ordered index, and the first cursor tries again.
void HybridLevel::Refresh(uint64_t /*l1_entries*/) {
  if (!is_current_) {
    std::shared_ptr<const OrderedIndex> index;
    try {
      if (before_ != nullptr) index = OrderedIndex::Apply(*before_, changes_, *parts_.regions, *parts_.order);
    } catch (const std::bad_alloc&) {
    }
    before_.reset();
    changes_ = {};
    Install(NewView(std::move(index)));  // if this throws, the level stays as it is, and so does the database's view
    is_current_ = true;
  }
  try {
    if (index_bytes_ > 0) (void)Current()->BuildIndex(parts_.stop);
  } catch (const std::bad_alloc&) {
  }
}

// A killed process may have stored slots without their flushes. The job decides by what it finds, so that must be durable.
// [CC-46]
Status HybridLevel::Begin(const MergeJob& job, bool needs_index, std::shared_ptr<const HybridView>* view, bool* records) {
  if (job.id == resumed_job_) {
    if (Status status = hash_->FlushAll(); !status.ok()) return status;
  }
  before_.reset();
  changes_.clear();
  *view = std::exchange(is_current_, false) ? Current() : NewView(nullptr);
  if (needs_index && !(*view)->BuildIndex(job.stop)) return Status::Aborted("stopped");
  before_ = (*view)->BuiltIndex();
  *records = before_ != nullptr;
  return Status::OK();
}

// After an error the changes are not known, and the next Refresh builds the ordered index anew.
Status HybridLevel::Merge(const MergeJob& job, const std::vector<const PmTable*>& tables, MergeStats* stats) {
  // Versions that an interrupted sweep has marked dead stay in the index until it is swept again.
  if (tables.empty()) return Sweep(job, {KeyRange()}, stats);
  std::shared_ptr<const HybridView> view;
  bool records = false;
  Status status = Begin(job, !parts_.order->equal_means_same(), &view, &records);
  if (status.ok()) status = RunHybridMerge(parts_, *view, job, tables, stats, records ? &changes_ : nullptr);
  if (status.ok()) status = ShrinkIfDue(job, *stats);
  if (!status.ok()) before_.reset();
  return status;
}

Status HybridLevel::Sweep(const MergeJob& job, const KeyRanges& ranges, MergeStats* stats) {
  std::shared_ptr<const HybridView> view;
  bool records = false;
  Status status = Begin(job, true, &view, &records);
  if (status.ok()) status = SweepHybrid(parts_, *view, job, ranges, stats, &changes_);
  if (status.ok()) status = ShrinkIfDue(job, *stats);
  if (!status.ok()) before_.reset();
  return status;
}

// COST  A shrink reads all pages, so many entries must have gone since the last one.
Status HybridLevel::ShrinkIfDue(const MergeJob& job, const MergeStats& stats) {
  removed_ += stats.unlinked;
  if (removed_ <= job.l1_entries / kRemovedToShrink) return Status::OK();
  removed_ = 0;
  return hash_->Shrink();
}

uint64_t HybridLevel::DramBytes() const {
  const std::shared_ptr<const OrderedIndex> index = Current()->BuiltIndex();
  return hash_->DramBytes() + (index == nullptr ? 0 : index->bytes());
}

std::string HybridLevel::Describe() const {
  const HashIndex::Stats stats = hash_->GetStats();
  const std::shared_ptr<const OrderedIndex> index = Current()->BuiltIndex();
  return Format(
      "hybrid, hash index of %llu pages of %u bytes, %llu of them overflow pages, and %llu free; %llu splits, %llu joins; "
      "directories: %llu bytes; ordered index: %llu entries, %llu bytes\n",
      static_cast<unsigned long long>(stats.pages), HashPage::kBytes, static_cast<unsigned long long>(stats.overflow_pages),
      static_cast<unsigned long long>(stats.free_pages), static_cast<unsigned long long>(stats.splits),
      static_cast<unsigned long long>(stats.joins), static_cast<unsigned long long>(hash_->DramBytes()),
      static_cast<unsigned long long>(index == nullptr ? 0 : index->nodes().nodes.nodes()),
      static_cast<unsigned long long>(index == nullptr ? 0 : index->bytes()));
}

}  // namespace braiddb
