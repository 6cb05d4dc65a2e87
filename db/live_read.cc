// A database that another process has open for writing, as this process reads it. docs/design/0024-live-readers.md
//
// WHAT THIS PROCESS HAS  The regions, mapped shared and for reading only. Copies of the owner's read view and of its range
//                        tombstones. The memtables and indexes of the view are those in the owner's heap. This process stores to
//                        nothing that the owner uses, except for its slot.
// A CALL   LiveDB (live_db.h) follows the owner before each call, and checks after it that what was read was valid.
// HOLDS    A copy of a view holds an epoch of the owner from before the view's pointer is loaded until the copy is freed.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "db/db_impl.h"
#include "db/live_view.h"
#include "db/snapshot_choice.h"
#include "index/level_kind.h"
#include "lsm/memtable_type.h"
#include "util/comparator_name.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// Words of the heap from `offset` on.
const uint64_t* BlockAt(const SharedMemory& heap, uint64_t offset, uint64_t* words) {
  if (offset >= heap.bytes() || offset % sizeof(uint64_t) != 0) {
    *words = 0;
    return nullptr;
  }
  *words = (heap.bytes() - offset) / sizeof(uint64_t);
  return reinterpret_cast<const uint64_t*>(heap.base() + offset);
}

// The last level of a family that the owner has purged.
class EmptyLevel final : public OrderedLevel {
 public:
  const LogEntry* Find(const SearchKey&, LookupTrace*) const override { return nullptr; }
  std::unique_ptr<EntryCursor> NewCursor() const override { return std::make_unique<Cursor>(); }

 private:
  class Cursor final : public EntryCursor {
   public:
    void SeekToFirst() override {}
    void SeekToLast() override {}
    void Seek(const SearchKey&) override {}
    void SeekBefore(const SearchKey&) override {}
    void Next() override {}
    void Prev() override {}
  };
};

// The tables of the last view, most of which the next view lists in the same order.
class KnownTables {
 public:
  // `levels`: null if there are none. It must outlive the object.
  explicit KnownTables(const FamilyView* levels) : levels_(levels) {}
  // The table with this content; null if it is not among the next ones.
  std::shared_ptr<PmTable> Find(const LiveTable& listed) {
    if (levels_ == nullptr) return nullptr;
    const size_t end = std::min(next_ + kAhead, levels_->l0.size());
    for (size_t at = next_; at < end; ++at) {
      const PmTable& known = *levels_->l0[at];
      if (known.id() != listed.id || known.boundary() != listed.boundary || known.begin != listed.begin ||
          known.entries != listed.entries || (known.index() != nullptr) != (listed.index_offset != 0) ||
          known.heads() != listed.heads)
        continue;
      next_ = at + 1;
      return levels_->l0[at];
    }
    return nullptr;
  }

 private:
  static constexpr size_t kAhead = 8;
  const FamilyView* const levels_;
  size_t next_ = 0;
};

Status BadView() {
  return Status::Corruption("the process that writes the database shares a view that cannot be read; use the same version");
}

}  // namespace

// ---- Open

// STEPS  1 get a place from the owner, which holds an epoch for this process from then on  2 map the regions  3 read the view  4
//        compare the options with it. FollowOwner copies the view.
Status DBImpl::AttachToOwner(const std::vector<ColumnFamilyDescriptor>& families) {
  Status status = LiveReader::Attach(path_, &live_reader_);
  if (!status.ok()) return status;
  if (options_.info_log) logger_ = MakeUsersLogger();
  BRAIDDB_SYNC_POINT("DBImpl::AttachToOwner:Attached");
  status = RegionSet::OpenLive(MakeRegionOptions(), &regions_);
  if (status.IsNotFound()) status = Status::Aborted(std::string(status.message()));
  if (!status.ok()) return status;
  options_.regions = regions_->count();
  options_.lookup_cache_size = 0;
  options_.filter_bits_per_key = 0;
  options_.dram_budget = 0;
  dram_ = DramBudget::Share(&options_);
  changing_.Begin(options_);
  next_sequence_ = const_cast<std::atomic<uint64_t>*>(&live_reader_->board().next_sequence);
  barriers_ = const_cast<std::atomic<uint64_t>*>(&live_reader_->board().barriers);
  snapshots_.SetMirror([this](uint64_t sequence) { live_reader_->AddSnapshot(sequence); },
                       [this](uint64_t sequence) { live_reader_->DropSnapshot(sequence); });
  LiveView view;
  {
    const LiveHold hold(live_reader_.get());
    status = LoadView(live_reader_->board().view.load(std::memory_order_acquire), &view);
  }
  if (!status.ok()) return status;
  if (view.regions != regions_->count() || view.database_id != regions_->database_id() || view.families.empty() ||
      view.runs.size() != regions_->count())
    return Status::Aborted("the database in " + path_ + " was replaced during the open; open it again");
  for (uint32_t i = 0; i < regions_->count(); ++i) writer_runs_.ids[i] = view.runs[i];
  if (Status valid = CheckLive(); !valid.ok()) return Status::Aborted(std::string(valid.message()));
  options_.list_kind = static_cast<ListKind>(view.list_kind);
  regions_->SetListKind(options_.list_kind);
  return TakeFamilies(view, families);
}

// The view's families stand in for those of the MANIFEST.
Status DBImpl::TakeFamilies(const LiveView& view, const std::vector<ColumnFamilyDescriptor>& descriptors) {
  const LiveFamily& own = view.families.front();
  if (Status status = CheckDefaultFamily(own.comparator, own.l1_kind); !status.ok()) return status;
  manifest_state_.families.clear();
  for (size_t i = 1; i < view.families.size(); ++i) {
    const LiveFamily& from = view.families[i];
    ManifestState::Family family;
    family.id = from.id;
    family.number = from.number;
    family.name = from.name;
    family.comparator = from.comparator;
    family.l1_kind = from.l1_kind;
    family.l1_entries = from.l1_entries;
    family.dropped = from.is_dropped;
    manifest_state_.families.push_back(std::move(family));
  }
  Status status = FindFamilies(descriptors);
  if (!status.ok()) return status;
  for (size_t i = 1; i < view.families.size(); ++i) {
    const LiveFamily& from = view.families[i];
    if (FindFamily(from.id) == nullptr) families_not_given_.emplace(from.id, from.number);
  }
  status = AttachLevel(&default_family_);
  for (const auto& family : families_) {
    if (status.ok()) status = AttachLevel(family.get());
  }
  return status;
}

Status DBImpl::AttachLevel(Family* family) {
  if (family->kind == nullptr || family->kind->attach == nullptr) {
    return Status::NotSupported("column family '" + family->name + "' has the last level " +
                                NameOfL1(static_cast<uint8_t>(family->options.l1)) +
                                ", which other processes cannot read while the database is open for writing");
  }
  return family->kind->attach(*regions_, family->order, family->place(), &family->attached_level);
}

void DBImpl::StartFollowing() {
  background_error_ = Status::NotSupported("Not supported operation in read only mode.");  // RocksDB's text
  write_failed_.store(true, std::memory_order_release);
  if (options_.info_log) events_ = std::make_unique<EventQueue>(std::vector<std::shared_ptr<EventListener>>());
  closed_ = false;
  live_reader_->Follow([this] {
    try {
      FollowNews();
    } catch (const LiveFailure&) {     // the next call finds the failure
    } catch (const std::bad_alloc&) {  // the next call follows
    }
    try {
      epochs_.Reclaim();
    } catch (const std::bad_alloc&) {  // the next news reclaim
    }
  });
}

Status DBImpl::CloseLive() {
  stopping_.store(true, std::memory_order_release);
  Log("close: " + path_ + " was read while another process had it open");
  // Functions that are told of the lines may read, so the process that writes keeps what this one reads until then.
  if (events_ != nullptr) events_->Stop();
  live_reader_->StopFollowing();
  epochs_.Reclaim();
  return Status::OK();
}

// ---- Following

Status DBImpl::LoadView(uint64_t offset, LiveView* view) const {
  if (offset == 0)
    return Status::Expired("the process that writes the database cannot share its state any more; open the database again");
  uint64_t words = 0;
  const uint64_t* const block = BlockAt(live_reader_->heap(), offset, &words);
  return block == nullptr ? BadView() : LiveView::Decode(block, words, view);
}

// The owner keeps what this process reads, and no other process has opened the database for writing.
Status DBImpl::CheckLive() const {
  if (__builtin_expect(IsLive(), 1)) return Status::OK();
  if (!live_reader_->has_expired())
    return Status::Expired("another process has opened " + path_ + " for writing; open the database again");
  return Status::Expired("the process that writes " + path_ + " waited too long for this reader, and reuses what it held; " +
                         "open the database again");
}

Status DBImpl::FollowOwner() {
  if (__builtin_expect(HasNewest(), 1)) return CheckLive();
  return fork_mark_.is_in_child() ? InChild() : FollowChanges();
}

// ORDER  The version is loaded first, then the pointers, so what is installed is at least as new as the version. The hold comes
//        before the pointers.
Status DBImpl::FollowChanges() {
  const std::lock_guard lock(follow_mutex_);
  return FollowLocked();
}

// Waits for no thread: one that follows without a pause could keep the mutex until this reader expires.
void DBImpl::FollowNews() {
  const std::unique_lock lock(follow_mutex_, std::try_to_lock);
  if (lock.owns_lock()) (void)FollowLocked();  // the next call finds an error as well
}

// REQUIRES: follow_mutex_.
Status DBImpl::FollowLocked() {
  Status status = CheckLive();
  if (!status.ok()) return status;
  const LiveBoard& board = live_reader_->board();
  const uint64_t growths = board.growths.load(std::memory_order_seq_cst);
  if (growths != followed_growths_.load(std::memory_order_relaxed)) {
    status = regions_->MapNewParts();
    if (!status.ok()) return status;
    regions_->ClearDamage();  // pointers into the new parts looked like damage; LiveDB repeats the reads
    followed_growths_.store(growths, std::memory_order_release);
  }
  const uint64_t version = board.version.load(std::memory_order_seq_cst);
  RetireOldViews();
  if (version == followed_version_.load(std::memory_order_relaxed)) return Status::OK();
  const auto hold = std::make_shared<LiveHold>(live_reader_.get());
  const uint64_t ranges = board.ranges.load(std::memory_order_acquire);
  const uint64_t view = board.view.load(std::memory_order_acquire);
  const bool has_new_ranges = ranges != followed_ranges_;
  // Should the next steps fail, nothing holds the block of the old set any more, and its place may be that of a newer set.
  if (has_new_ranges) followed_ranges_ = 0;
  if (view != followed_view_) status = InstallForeignView(view, hold);
  // After the view: an older set with a newer view is right, since it has all tombstones that hide entries of the view.
  bool has_no_memory = false;
  BRAIDDB_SYNC_POINT_ARG("DBImpl::FollowChanges:Between", &has_no_memory);
  if (has_no_memory) throw std::bad_alloc();
  if (status.ok() && has_new_ranges) status = InstallForeignRanges(ranges);
  if (!status.ok()) return status;
  followed_version_.store(version, std::memory_order_release);
  epochs_.Reclaim();
  return Status::OK();
}

// A family that the owner has created since the open has the merge operator of the default family, and otherwise default options.
// Null: the family was not given at the open, or this process cannot read it.
Family* DBImpl::FollowFamily(const LiveFamily& from) {
  Family* family = FindFamily(from.id);
  if (family != nullptr && family->number == from.number) return family;
  if (const auto known = families_not_given_.find(from.id); known != families_not_given_.end() && known->second == from.number)
    return nullptr;
  ColumnFamilyOptions options;
  options.merge_operator = options_.merge_operator;
  options.l1 = static_cast<L1Kind>(from.l1_kind);
  if (from.comparator != StoredName(*options.comparator) || FindLevelKind(options.l1) == nullptr) return nullptr;
  const auto fresh = std::make_shared<Family>(from.id, from.number, from.name, options);
  if (!AttachLevel(fresh.get()).ok()) return nullptr;
  const std::lock_guard lock(families_mutex_);
  replaced_families_.reserve(replaced_families_.size() + 1);  // no step after the next one fails
  families_.push_back(fresh);
  by_id_[from.id].store(fresh.get(), std::memory_order_release);
  if (family == nullptr) return fresh.get();
  EndFamily(family);
  // Views and handles of before have the family; families_ does not keep each that was ever there.
  const auto replaced =
      std::find_if(families_.begin(), families_.end(), [family](const auto& known) { return known.get() == family; });
  if (replaced != families_.end()) {
    replaced_families_.push_back(std::move(*replaced));
    families_.erase(replaced);
  }
  return fresh.get();
}

// The owner has purged the family, or has given its id to another one.
void DBImpl::EndFamily(Family* family) {
  family->dropped.store(true, std::memory_order_release);
  family->is_gone.store(true, std::memory_order_release);
}

std::shared_ptr<Memtable> DBImpl::AttachForeign(const LiveMemtable& from, MemtableKind kind) {
  const SharedMemory* const heap = &live_reader_->heap();
  const auto attach = [this, heap, kind, id = from.id](uint32_t family, uint64_t offset,
                                                       uint64_t bytes) -> std::unique_ptr<Memtable> {
    const Family* const known = FindFamily(family);
    if (known == nullptr || offset >= heap->bytes() || bytes > heap->bytes() - offset) return nullptr;
    std::unique_ptr<Arena> arena = Arena::Attach(heap, offset, bytes);
    if (arena == nullptr) throw std::bad_alloc();
    return AttachMemtable(kind, {id, regions_.get(), &known->order, std::move(arena), 0, 0});
  };
  std::shared_ptr<Memtable> memtable = attach(0, from.heap_offset, from.first_bytes);
  if (memtable != nullptr) memtable->FollowSiblings(heap, attach);
  return memtable;
}

// Arrays that the last view has already are taken over, with their steps. `before`: null if there is no such view. Returns false
// if the arrays do not fit the tables of *levels.
bool DBImpl::AttachOrders(const LiveFamily& from, const FamilyView* before, FamilyView* levels) const {
  std::unordered_map<uint64_t, std::shared_ptr<const TableOrder>> known;
  if (before != nullptr) {
    for (const auto& [order, tables] : before->orders) {
      if (order != nullptr) known.emplace(order->id(), order);
    }
  }
  size_t left = levels->l0.size();
  for (const LiveOrder& listed : from.orders) {
    if (listed.tables == 0 || listed.tables > left) return false;
    left -= listed.tables;
    std::shared_ptr<const TableOrder> order;
    if (const auto it = known.find(listed.id); it != known.end() && listed.offset != 0) order = it->second;
    if (order == nullptr && listed.offset != 0) {
      order =
          TableOrder::Attach(live_reader_->heap(), {listed.id, listed.offset, listed.entries, listed.fetch_bytes, listed.alike});
      if (order == nullptr) return false;
    }
    if (order != nullptr) {
      levels->orders.push_back({std::move(order), listed.tables});
    } else {
      levels->orders.insert(levels->orders.end(), listed.tables, {nullptr, 1});
    }
  }
  return left == 0;
}

// The index of the last view is taken over if this view has the same.
std::shared_ptr<const OrderedLevel> DBImpl::AttachIndex(const LiveFamily& from, Family* family) const {
  if (from.level.empty() || family->kind->attach_index == nullptr) return family->attached_level;
  if (family->index_words != from.level) {
    family->indexed_level = family->kind->attach_index(*family->attached_level, live_reader_->heap(), from.level);
    family->index_words = from.level;
  }
  return family->indexed_level == nullptr ? family->attached_level : family->indexed_level;
}

// The block and what it names may be in other use if this reader has expired. So that is checked after each read of the heap.
Status DBImpl::InstallForeignView(uint64_t offset, const std::shared_ptr<LiveHold>& hold) {
  LiveView from;
  Status status = LoadView(offset, &from);
  if (Status valid = CheckLive(); !valid.ok()) return valid;
  if (!status.ok()) return status;
  const auto kind = static_cast<MemtableKind>(from.memtable_kind);
  if (from.memtables.empty() || FindMemtableType(kind) == nullptr) return BadView();
  auto view = std::make_unique<ReadView>();
  for (const LiveMemtable& each : from.memtables) {
    std::shared_ptr<Memtable> memtable;
    // A memtable that the last view has already is taken over, with its runs.
    if (current_view_ != nullptr) {
      const auto is_same = [&each](const std::shared_ptr<Memtable>& known) { return known->id() == each.id; };
      if (is_same(current_view_->active)) memtable = current_view_->active;
      for (const auto& known : current_view_->immutables) {
        if (is_same(known)) memtable = known;
      }
    }
    if (memtable == nullptr) memtable = AttachForeign(each, kind);
    if (memtable == nullptr) return BadView();
    if (view->active == nullptr) {
      view->active = std::move(memtable);
    } else {
      view->immutables.push_back(std::move(memtable));
    }
  }
  std::map<uint64_t, std::shared_ptr<L0Index>> indexes;
  std::vector<bool> is_listed(kMaxFamilies);
  for (const LiveFamily& each : from.families) {
    if (each.id >= kMaxFamilies) return BadView();
    const Family* const before = FindFamily(each.id);
    Family* const family = FollowFamily(each);
    if (family == nullptr) continue;  // this process cannot read the family
    const bool is_known = before == family && current_view_ != nullptr && current_view_->Of(each.id) != nullptr;
    KnownTables known(is_known ? current_view_->Of(each.id) : nullptr);
    is_listed[each.id] = true;
    if (each.is_dropped) family->dropped.store(true, std::memory_order_release);
    family->l1_entries.store(each.l1_entries, std::memory_order_relaxed);
    FamilyView levels;
    levels.l1 = AttachIndex(each, family);
    for (const LiveTable& listed : each.tables) {
      if (std::shared_ptr<PmTable> same = known.Find(listed)) {
        levels.l0.push_back(std::move(same));
        continue;
      }
      auto table = std::make_shared<PmTable>(listed.id, listed.boundary, regions_.get(), &family->order, each.id);
      if (listed.heads.size() != table->heads().size()) return BadView();
      table->heads() = listed.heads;
      for (uint32_t region = 0; region < regions_->count(); ++region)
        table->list.SetHead(region, &table->heads()[region * kMaxHeight]);
      table->begin = listed.begin;
      table->entries = listed.entries;
      table->in_filter = false;  // the view's filter may be older than the table
      table->checkpointed.store(true, std::memory_order_relaxed);
      if (listed.index_offset != 0) {
        std::shared_ptr<L0Index>& index = indexes[listed.index_offset];
        if (index == nullptr)
          index = L0Index::Attach(regions_.get(), live_reader_->heap(), listed.index_offset, listed.index_buckets);
        table->SetIndex({index, static_cast<uint32_t>(listed.index_column)});
      }
      levels.l0.push_back(std::move(table));
    }
    if (!AttachOrders(each, is_known ? current_view_->Of(each.id) : nullptr, &levels)) return BadView();
    view->Alter(each.id, [&levels](FamilyView* of_view) { *of_view = std::move(levels); });
  }
  // A dropped family that the owner has purged stays in this view, empty, for its handles.
  for (const auto& family : families_) {
    if (is_listed[family->id] || FindFamily(family->id) != family.get()) continue;
    EndFamily(family.get());
    view->Alter(family->id, [](FamilyView* of_view) { of_view->l1 = std::make_shared<EmptyLevel>(); });
  }
  if (Status valid = CheckLive(); !valid.ok()) return valid;
  std::shared_ptr<const LookupCache::ForeignTable> cache;
  if (from.lookup_cache.offset != 0) {
    if (!LookupCache::ForeignTable::IsTable(live_reader_->heap(), from.lookup_cache)) return BadView();
    cache = std::make_shared<LookupCache::ForeignTable>(regions_.get(), live_reader_->heap(), from.lookup_cache,
                                                        &live_reader_->board().cache_limit_complement);
  }
  const std::shared_ptr<const KeyFilter> filter = KeyFilter::Attach(live_reader_->heap(), from.filter);
  if (filter == nullptr && !from.filter.empty()) return BadView();
  BRAIDDB_SYNC_POINT_ARG("DBImpl::InstallForeignView:Filter", const_cast<KeyFilter*>(filter.get()));
  // What the view names lives as long as the view.
  std::shared_ptr<ReadView> fresh(view.release(), [hold, cache, filter, families = families_](ReadView* dying) { delete dying; });
  const auto replaced = std::make_shared<std::vector<std::shared_ptr<Family>>>();
  std::lock_guard lock(view_mutex_);
  unretired_views_.reserve(unretired_views_.size() + 1);  // no step after this one fails
  replaced->swap(replaced_families_);
  // Before the view: a read that gets the view gets its filter, or a newer one (filter.cc).
  filter_.store(filter.get(), std::memory_order_release);
  std::shared_ptr<const ReadView> old = std::exchange(current_view_, std::move(fresh));
  view_.store(current_view_.get(), std::memory_order_release);
  foreign_cache_.store(cache.get(), std::memory_order_release);
  active_.store(current_view_->active.get(), std::memory_order_release);
  followed_view_ = offset;
  if (old != nullptr) unretired_views_.push_back({std::move(old), replaced});
  RetireLocked();
  return Status::OK();
}

void DBImpl::RetireOldViews() {
  std::lock_guard lock(view_mutex_);
  RetireLocked();
}

// Without memory, the next call goes on: each view holds what the owner had at its time. Pinned slices are in segments that an
// old view holds.
// REQUIRES: view_mutex_.
void DBImpl::RetireLocked() try {
  for (; !unretired_views_.empty(); unretired_views_.pop_back()) {
    epochs_.RetirePinned([kept = unretired_views_.back()]() mutable {
      kept.view.reset();
      kept.families->clear();
    });
  }
} catch (const std::bad_alloc&) {
}

// ORDER  A tombstone leaves the owner's set when its sweep is over. A read of this process may have begun before; it must not
//        meet an entry that the tombstone hides, and then a set without it. So the reads of before end first.
Status DBImpl::InstallForeignRanges(uint64_t offset) {
  uint64_t words = 0;
  const uint64_t* const block = BlockAt(live_reader_->heap(), offset, &words);
  LiveRanges from;
  if (block == nullptr) return BadView();
  Status status = LiveRanges::Decode(block, words, &from);
  if (Status valid = CheckLive(); !valid.ok()) return valid;
  if (!status.ok()) return status;
  epochs_.Synchronize();
  std::lock_guard lock(ranges_mutex_);
  std::vector<std::shared_ptr<const RangeTombstones>> sets(kMaxFamilies);
  for (const LiveRanges::OfFamily& each : from.families) {
    const Family* const family = each.family < kMaxFamilies ? FindFamily(each.family) : nullptr;
    if (family == nullptr) continue;
    std::vector<RangeTombstones::Tombstone> tombstones;
    for (const LiveRange& range : each.ranges) {
      auto tombstone = std::make_shared<RangeTombstone>();
      tombstone->begin = range.begin;
      tombstone->end = range.end;
      tombstone->sequence = range.sequence;
      tombstone->record = range.record;
      tombstones.push_back(std::move(tombstone));
    }
    sets[each.family] = RangeTombstones::With(nullptr, std::move(tombstones), family->order);
  }
  for (uint32_t id = 0; id < kMaxFamilies; ++id) {
    Family* const family = FindFamily(id);
    if (family == nullptr || (sets[id] == nullptr && family->current_ranges == nullptr)) continue;
    InstallRanges(family, &sets[id]);
    RetireRanges(std::move(sets[id]));
  }
  followed_ranges_ = offset;
  return Status::OK();
}

bool DBImpl::IsNewestView(const ReadView& view) {
  if (live_reader_ != nullptr) {
    if (Status status = FollowOwner(); !status.ok()) throw LiveFailure{status};
  }
  return view_.load(std::memory_order_acquire) == &view;
}

// ---- Snapshots

// As DBImpl::RegisterSnapshot. This process cannot make a barrier, for which no writer would wait. So after many failures it asks
// the owner for a snapshot.
uint64_t DBImpl::RegisterLiveSnapshot() {
  constexpr int kTries = 100;
  std::optional<SnapshotRegistration> registration;
  uint64_t sequence = 0;
  bool is_state = false;
  SnapshotChoice choice(live_reader_->board());
  for (int i = 0; i < kTries && !is_state; ++i) {
    registration.reset();
    const uint64_t candidate = choice.Candidate();
    sequence = snapshots_.Register([&](uint64_t least) {
      const uint64_t chosen = std::max(least, candidate);
      live_reader_->AddSnapshot(chosen);
      return chosen;
    });
    registration.emplace(&snapshots_, sequence);
    live_reader_->WaitWriters(sequence);
    is_state = choice.IsState(sequence);
  }
  if (!is_state) {
    registration.reset();
    uint32_t element = 0;
    if (Status status = live_reader_->AskForSnapshot(&sequence, &element); !status.ok()) throw LiveFailure{status};
    const auto free = [this](const uint32_t* taken) { live_reader_->FreeElement(*taken); };
    const std::unique_ptr<const uint32_t, decltype(free)> taken(&element, free);
    snapshots_.RegisterAgain(sequence);
    registration.emplace(&snapshots_, sequence);
  }
  // The view and the tombstones must be at least as new as the number.
  if (Status status = FollowOwner(); !status.ok()) throw LiveFailure{status};
  registration->Leave();
  return sequence;
}

}  // namespace braiddb
