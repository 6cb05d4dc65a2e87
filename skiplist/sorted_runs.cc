#include "skiplist/sorted_runs.h"

#include <xxhash.h>

#include <algorithm>
#include <new>
#include <unordered_set>
#include <utility>

#include "util/mutant.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// Returns the Corruption of the level, with advice.
Status Damaged(const char* what) {
  return Status::Corruption(std::string("the last level is damaged (") + what +
                            "); restore the database from a copy, or save what is intact with braiddb repair");
}

}  // namespace

// ---- On media

uint64_t RootChecksum(const RunsRoot& root, uint64_t database_id) {
  return XXH3_64bits_withSeed(&root.magic, offsetof(RunsRoot, checksum) - offsetof(RunsRoot, magic), database_id);
}

bool IsRunsRoot(const RunsRoot& root, uint64_t database_id, uint64_t number) {
  return root.magic == RunsRoot::kMagic && root.number == number && root.checksum == RootChecksum(root, database_id);
}

// Covers the record behind its link, which changes, with the heads and the list of segments. REQUIRES: the sizes are verified.
uint64_t RecordChecksum(const RunRecord& record) {
  return XXH3_64bits(&record.magic, RunRecordBytes(record.regions, record.segments) - offsetof(RunRecord, magic));
}

// The fields regions and segments are checked before they bound the bytes of the checksum, so a damaged record is never read
// behind its room.
bool IsRunRecord(const RunRecord& record, PmPtr place, uint64_t room, uint64_t generation, uint64_t number, uint32_t regions) {
  return room >= sizeof(RunRecord) && record.magic == RunRecord::kMagic && record.regions == regions && record.segments > 0 &&
         RunRecordBytes(record.regions, record.segments) <= room && record.checksum == RecordChecksum(record) &&
         record.number == number && record.place == place.raw() && record.generation == generation;
}

// ---- A run

// The heads of a run lie behind its record, and never change once the run is linked.
BraidedList SortedRun::MakeList(const RegionSet* regions, const KeyOrder* order, RunRecord* record) {
  BraidedList list(regions, order);
  for (uint32_t region = 0; region < regions->count(); ++region)
    list.SetHead(region, HeadsOf(record) + uint64_t{region} * kMaxHeight);
  return list;
}

// The first entry is found once: RunList::FindRun compares it, and an empty or damaged list has none.
SortedRun::SortedRun(const RegionSet* regions, const KeyOrder* order, RunRecord* record, std::vector<Segment*> segments,
                     uint64_t index_bytes)
    : record_(record),
      entries_(record->entries),
      segments_(std::move(segments)),
      list_(MakeList(regions, order, record)),
      index_(index_bytes == 0 ? TallIndex(list_) : TallIndex(list_, record->entries, index_bytes)),
      has_index_(index_bytes != 0),
      first_(list_.First()),
      first_prefix_(first_ == nullptr ? 0 : order->Prefix(first_->key())) {
  for (uint32_t i = 0; i < record->segments; ++i) bytes_ += SegmentsOf(record)[i].bytes;
}

SortedRun::SortedRun(const SortedRun& run, uint64_t index_bytes)
    : SortedRun(&run.list_.regions(), &run.list_.order(), run.record_, run.segments_, index_bytes) {}

// Returns the last run whose first key is not larger than the target's key. Versions of one key never lie in two runs.
size_t RunList::FindRun(const KeyOrder& order, const SearchKey& target) const {
  const auto is_before = [&](const std::shared_ptr<const SortedRun>& run) {
    if (run->first_prefix() != target.prefix) return run->first_prefix() < target.prefix;
    return order.Compare(run->first()->key(), target.key) <= 0;
  };
  const auto behind = std::partition_point(runs.begin(), runs.end(), is_before);
  return behind == runs.begin() ? 0 : static_cast<size_t>(behind - runs.begin()) - 1;
}

// ---- Creating and opening

// CRASH  before the persist: the MANIFEST does not list the family yet, so nothing reads the root.
Status SortedRuns::Create(RegionSet* regions, const LevelPlace& place) {
  void* object = nullptr;
  if (Status status = place.Take(regions, 0, sizeof(RunsRoot), &object); !status.ok()) return status;
  auto* const root = static_cast<RunsRoot*>(object);
  root->magic = RunsRoot::kMagic;
  root->number = place.number;
  root->checksum = RootChecksum(*root, regions->database_id());
  StoreRelease(&root->first, MakeLink(root->checksum, PmPtr()));
  return regions->persistence()->Persist(root, sizeof(*root)) ? Status::OK() : regions->persistence()->error();
}

// STEPS  1 find and verify the root  2 follow the runs (FindRuns)  3 publish the list. No reader exists yet.
Status SortedRuns::Open(RegionSet* regions, SegmentAllocator* segments, EpochManager* epochs, const KeyOrder* order,
                        const LevelPlace& place, std::shared_ptr<SortedRuns>* result) {
  std::shared_ptr<SortedRuns> level(new SortedRuns(regions, segments, epochs, order));
  level->root_ = static_cast<RunsRoot*>(place.Find(*regions, 0, sizeof(RunsRoot)));
  if (level->root_ == nullptr || !IsRunsRoot(*level->root_, regions->database_id(), place.number))
    return Damaged("the root of the runs is missing");
  if (Status status = level->FindRuns(place.number); !status.ok()) return status;
  *result = std::move(level);
  return Status::OK();
}

SortedRuns::~SortedRuns() = default;

// STEPS  For each link from the root on: 1 verify the link  2 flush it (ORDER below)  3 find the segment that has the record  4
//        verify the record and its segments  5 check that the run begins behind the first key of the run before. One drain at
//        the end.
Status SortedRuns::FindRuns(uint64_t number) {
  Persistence* const persistence = regions_->persistence();
  auto found = std::make_shared<RunList>();
  std::unordered_set<const Segment*> taken;
  const uint64_t* link = &root_->first;
  uint64_t owner = root_->checksum;
  for (;;) {
    const uint64_t word = LoadRelaxed(link);
    if (!IsLink(owner, word)) return Damaged("a link to a run");
    // ORDER: a link is durable before a segment that it removes from the level is released. A killed process may have left the
    // link in the caches. [CC-46]
    if (!BRAIDDB_MUTANT("found-runs-not-flushed")) persistence->Flush(link, sizeof(*link));
    const PmPtr place = LinkTarget(word);
    if (!place) break;
    const Segment* const home = allocator_->Find(place);
    if (place.raw() % kCacheLine != 0 || home == nullptr || home->state() != SegmentState::kIndex)
      return Damaged("a link that leads to no run");
    auto* const record = regions_->Resolve<RunRecord>(place);
    if (!IsRunRecord(*record, place, home->capacity() - home->OffsetOf(place), home->generation(), number, regions_->count()))
      return Damaged("the record of a run");
    std::vector<Segment*> segments;
    if (Status status = FindSegments(record, &segments); !status.ok()) return status;
    for (const Segment* segment : segments) {
      if (!taken.insert(segment).second) return Damaged("a segment of two runs");
    }
    auto run = std::make_shared<const SortedRun>(regions_, order_, record, std::move(segments), 0);
    if (run->first() == nullptr ||
        (!found->runs.empty() && order_->Compare(found->runs.back()->first()->key(), run->first()->key()) >= 0))
      return Damaged("the order of the runs");
    found->runs.push_back(std::move(run));
    link = &record->next;
    owner = place.raw();
  }
  if (!persistence->Drain()) return persistence->error();
  Publish(std::move(found));
  return Status::OK();
}

// A listed segment must be kIndex with the recorded generation: otherwise it was released and used again, which is damage.
Status SortedRuns::FindSegments(RunRecord* record, std::vector<Segment*>* segments) const {
  for (uint32_t i = 0; i < record->segments; ++i) {
    const RunSegment& listed = SegmentsOf(record)[i];
    Segment* const segment = allocator_->Find(PmPtr(listed.start));
    if (segment == nullptr || segment->OffsetOf(PmPtr(listed.start)) != 0 || segment->state() != SegmentState::kIndex ||
        segment->generation() != listed.generation || listed.bytes > segment->capacity()) {
      return Damaged("a segment of a run");
    }
    segments->push_back(segment);
  }
  return Status::OK();
}

// ---- Reading

// WHAT A READER SEES  The runs of one moment. A run that is replaced meanwhile stays readable, since the reader holds a guard.
const LogEntry* SortedRuns::Find(const SearchKey& target, LookupTrace* trace) const {
  // acquire: pairs with the release in Publish.
  const RunList& all = *published_.load(std::memory_order_acquire);
  if (all.runs.empty()) return nullptr;
  const SortedRun& run = *all.runs[all.FindRun(*order_, target)];
  const BraidedList& list = run.list();
  return list.PickLive(list.FindFrom(run.index().Start(list.Home().reader, target), target, trace), target, trace);
}

namespace {

// Moves along the runs, one after the other. The entries of a run lie in key order in memory, so the hardware prefetcher makes
// a walk along the bottom list fast.
class RunsCursor final : public EntryCursor {
 public:
  RunsCursor(const RunList* all, const KeyOrder* order) : runs_(all->runs), all_(*all), order_(*order) {}

  void SeekToFirst() override { EnterForward(0); }
  void SeekToLast() override { EnterBackward(runs_.size()); }
  void Seek(const SearchKey& target) override {
    entry_ = nullptr;
    if (runs_.empty()) return;
    at_ = all_.FindRun(order_, target);
    entry_ = List().FindFrom(StartFor(target), target, nullptr);
    if (entry_ == nullptr) EnterForward(at_ + 1);
  }
  void SeekBefore(const SearchKey& target) override {
    entry_ = nullptr;
    if (runs_.empty()) return;
    at_ = all_.FindRun(order_, target);
    entry_ = List().FindLessFrom(StartFor(target), target);
    if (entry_ == nullptr) EnterBackward(at_);
  }
  void Next() override {
    entry_ = List().Next(entry_);
    if (entry_ == nullptr) EnterForward(at_ + 1);
  }
  void Prev() override { SeekBefore(SearchKey(order_, entry_->key(), entry_->sequence())); }

 private:
  const BraidedList& List() const { return runs_[at_]->list(); }
  BraidedList::Start StartFor(const SearchKey& target) const { return runs_[at_]->index().Start(List().Home().reader, target); }
  void EnterForward(size_t run) {
    entry_ = nullptr;
    if (run >= runs_.size()) return;
    at_ = run;
    entry_ = List().First();
  }
  // Moves to the last entry of the run before `behind`.
  void EnterBackward(size_t behind) {
    entry_ = nullptr;
    if (behind == 0) return;
    at_ = behind - 1;
    entry_ = List().FindLast();
  }

  const std::vector<std::shared_ptr<const SortedRun>>& runs_;
  const RunList& all_;
  const KeyOrder& order_;
  size_t at_ = 0;
};

}  // namespace

// acquire: pairs with the release in Publish. The caller's pin keeps the list alive.
std::unique_ptr<EntryCursor> SortedRuns::NewCursor() const {
  return std::make_unique<RunsCursor>(published_.load(std::memory_order_acquire), order_);
}

// ---- Changing

// STEPS  1 make the new list in DRAM  2 store and flush the links of the new records  3 drain  4 store the link before them,
//        flush, drain  5 publish the list. CRASH after 2 or 3: the old runs count. After the store of 4: either, by what is
//        durable.
Status SortedRuns::Commit(size_t begin, size_t end, const std::vector<std::shared_ptr<const SortedRun>>& runs,
                          std::shared_ptr<const RunList>* old) {
  auto fresh = std::make_shared<RunList>();
  const auto& before = runs_->runs;
  fresh->runs.reserve(before.size() - (end - begin) + runs.size());
  fresh->runs.insert(fresh->runs.end(), before.begin(), before.begin() + static_cast<std::ptrdiff_t>(begin));
  fresh->runs.insert(fresh->runs.end(), runs.begin(), runs.end());
  fresh->runs.insert(fresh->runs.end(), before.begin() + static_cast<std::ptrdiff_t>(end), before.end());

  Persistence* const persistence = regions_->persistence();
  const PmPtr behind = end < before.size() ? before[end]->place() : PmPtr();
  for (size_t i = 0; i < runs.size(); ++i) {
    uint64_t* const next = &runs[i]->record()->next;
    StoreRelease(next, MakeLink(runs[i]->place().raw(), i + 1 < runs.size() ? runs[i + 1]->place() : behind));
    persistence->Flush(next, sizeof(*next));
  }
  uint64_t* const link = begin == 0 ? &root_->first : &before[begin - 1]->record()->next;
  const uint64_t owner = begin == 0 ? root_->checksum : before[begin - 1]->place().raw();
  // ORDER: the complete new runs before the link that leads to them. [CC-52]
  if (!BRAIDDB_MUTANT("runs-not-fenced") && !persistence->Drain()) return persistence->error();
  BRAIDDB_SYNC_POINT("SortedRuns::Commit:Written");
  StoreRelease(link, MakeLink(owner, runs.empty() ? behind : runs.front()->place()));
  // ORDER: the link before the segments of the old runs are reused, and before the MANIFEST forgets the tables. [CC-52]
  if (!BRAIDDB_MUTANT("run-link-not-flushed")) persistence->Flush(link, sizeof(*link));
  if (!persistence->Drain()) return persistence->error();
  BRAIDDB_SYNC_POINT("SortedRuns::Commit:Linked");
  *old = Publish(std::move(fresh));
  return Status::OK();
}

// Makes `fresh` the list that readers find. Returns the list before, which readers may still use.
std::shared_ptr<const RunList> SortedRuns::Publish(std::shared_ptr<const RunList> fresh) {
  // release: pairs with the acquire in Find and NewCursor; the runs are complete.
  published_.store(fresh.get(), std::memory_order_release);
  const std::lock_guard lock(mutex_);
  return std::exchange(runs_, std::move(fresh));
}

// Releases the segments of the runs [begin, end) of the old list, after all earlier guards and pins have ended. If there is no
// memory to wait for them, the segments stay until the next open, which releases segments of no run.
void SortedRuns::Retire(const std::shared_ptr<const RunList>& old, size_t begin, size_t end) {
  try {
    epochs_->RetirePinned([old, begin, end, allocator = allocator_] {
      for (size_t i = begin; i < end; ++i) {
        for (Segment* segment : old->runs[i]->segments()) {
          try {
            const Status ignored = allocator->Release(segment);  // after a failure the next open releases the segment
            (void)ignored;
          } catch (const std::bad_alloc&) {
          }
        }
      }
    });
  } catch (const std::bad_alloc&) {
    runs_->before = old;  // until the next open
  }
}

// The bytes of all indexes are divided by the runs' numbers of entries. The new run counts in addition to those it may replace,
// so its share is slightly too small at first.
uint64_t SortedRuns::IndexShare(uint64_t index_bytes, uint64_t entries) const {
  uint64_t all = entries;
  for (const auto& run : runs_->runs) all += run->entries();
  return static_cast<uint64_t>(static_cast<double>(index_bytes) * static_cast<double>(entries) / static_cast<double>(all));
}

// A run's share shrinks when the level gets more entries. An index of more than twice its share is rebuilt.
void SortedRuns::Refresh(uint64_t index_bytes, const std::atomic<bool>* stop) {
  if (index_bytes == 0 || runs_->runs.empty()) return;
  uint64_t all = 0;
  for (const auto& run : runs_->runs) all += run->entries();
  auto fresh = std::make_shared<RunList>();
  bool changed = false;
  for (const auto& run : runs_->runs) {
    if (stop != nullptr && stop->load(std::memory_order_acquire)) return;
    const auto share =
        static_cast<uint64_t>(static_cast<double>(index_bytes) * static_cast<double>(run->entries()) / static_cast<double>(all));
    const bool is_right = run->has_index() && run->index().bytes() <= 2 * share;
    changed |= !is_right;
    fresh->runs.push_back(is_right || share == 0 ? run : std::make_shared<const SortedRun>(*run, share));
  }
  if (!changed) return;
  const std::shared_ptr<const RunList> old = Publish(std::move(fresh));
  Retire(old, 0, 0);
}

// ---- Its segments

// For relocation and statistics; linear in the number of segments.
bool SortedRuns::Owns(const Segment* segment) const {
  return std::any_of(runs_->runs.begin(), runs_->runs.end(), [segment](const auto& run) {
    return std::find(run->segments().begin(), run->segments().end(), segment) != run->segments().end();
  });
}

// CRASH  in between: the segments that are left belong to no family, and the next open releases them.
Status SortedRuns::ReleaseSegments() {
  for (const auto& run : runs_->runs) {
    for (Segment* segment : run->segments()) {
      if (Status status = allocator_->Release(segment); !status.ok()) return status;
    }
  }
  Publish(std::make_shared<RunList>());
  return Status::OK();
}

// Any thread: the list is copied under the mutex, and then read without it.
SortedRuns::Stats SortedRuns::GetStats() const {
  std::shared_ptr<const RunList> all;
  {
    const std::lock_guard lock(mutex_);
    all = runs_;
  }
  Stats stats;
  stats.runs = all->runs.size();
  for (const auto& run : all->runs) {
    stats.entries += run->entries();
    stats.index_bytes += run->index().bytes();
    for (const Segment* segment : run->segments()) stats.bytes += segment->capacity();
  }
  return stats;
}

}  // namespace braiddb
