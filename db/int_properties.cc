// Properties with numbers: a table with one row for each property.
#include <algorithm>

#include "db/db_impl.h"
#include "db/property.h"

namespace braiddb {

std::string_view StripPropertyPrefix(std::string_view property) {
  for (const std::string_view prefix : {"braiddb.", "rocksdb."}) {
    if (property.starts_with(prefix)) return property.substr(prefix.size());
  }
  return {};
}

uint64_t EntriesIn(const Memtable& set, const Family& family, uint64_t uncharged) {
  const Memtable* const memtable = set.Of(family.id);
  uint64_t entries = memtable == nullptr ? 0 : memtable->entry_count.load(std::memory_order_relaxed);
  if (family.id != 0) return entries;
  entries += uncharged;
  set.ForEachSibling([&](uint32_t, const Memtable* sibling) {
    entries -= std::min(entries, sibling->entry_count.load(std::memory_order_relaxed));
  });
  return entries;
}

namespace {

// The state that a property is computed from, at the time of the call.
struct State {
  const Family& family;
  const ReadView& view;
  const FamilyView& levels;
  const RegionSet& regions;
  SegmentAllocator* segments;  // null in a live reader

  uint64_t EntriesInImmutables() const {
    uint64_t sum = 0;
    for (const auto& memtable : view.immutables) sum += EntriesIn(*memtable, family);
    return sum;
  }
  uint64_t EntriesInL0() const {
    uint64_t sum = 0;
    for (const auto& table : levels.l0) sum += table->entries;
    return sum;
  }
  uint64_t EntriesInL1() const { return family.l1_entries.load(); }
  uint64_t BytesOf(const Memtable& set) const {
    const Memtable* const memtable = set.Of(family.id);
    return memtable == nullptr ? 0 : memtable->DramBytes();
  }
  uint64_t BytesOfImmutables() const {
    uint64_t sum = 0;
    for (const auto& memtable : view.immutables) sum += BytesOf(*memtable);
    return sum;
  }
  uint64_t ReservedBytes() const {
    uint64_t sum = 0;
    for (uint32_t region = 0; region < regions.count(); ++region) sum += regions.ReservedBytes(region);
    return sum;
  }
  uint64_t Usage(uint64_t SegmentAllocator::Usage::*field) const {
    uint64_t sum = 0;
    for (uint32_t region = 0; region < regions.count(); ++region) sum += segments->GetUsage(region).*field;
    return sum;
  }
  uint64_t LiveLogBytes() const {
    uint64_t sum = 0;
    segments->ForEachLog([&sum](Segment* segment) {
      const uint64_t used = segment->state() == SegmentState::kSealed ? segment->sealed_bytes() : segment->used_bytes.load();
      sum += used - std::min(used, segment->dead_bytes.load());
    });
    return sum;
  }
  uint64_t IndexSegmentBytes() const {
    uint64_t sum = 0;
    segments->ForEachIndex([&sum](Segment* segment) { sum += segment->capacity(); });
    return sum;
  }
};

}  // namespace

// Threads charge their entries to the memtable in portions.
uint64_t DBImpl::EntriesInActive(const ReadView& view, const Family& family) const {
  uint64_t uncharged = 0;
  threads_.ForEach([&](const ThreadState& thread) {
    if (thread.uncharged_owner.value() == view.active->id()) uncharged += thread.uncharged_entries.value();
  });
  return EntriesIn(*view.active, family, uncharged);
}

bool DBImpl::IntProperty(const Family& family, std::string_view property, uint64_t* value) {
  struct Row {
    std::string_view name;
    uint64_t (*compute)(DBImpl& db, const State& state);
  };
  using Usage = SegmentAllocator::Usage;
  static constexpr Row kRows[] = {
      {"num-immutable-mem-table", [](DBImpl&, const State& state) -> uint64_t { return state.view.immutables.size(); }},
      {"num-l0-tables", [](DBImpl&, const State& state) -> uint64_t { return state.levels.l0.size(); }},
      {"num-files-at-level0", [](DBImpl&, const State& state) -> uint64_t { return state.levels.l0.size(); }},
      {"estimate-num-keys",
       [](DBImpl& db, const State& state) {
         return state.EntriesInL1() + db.EntriesInActive(state.view, state.family) + state.EntriesInImmutables() +
                state.EntriesInL0();
       }},
      {"num-entries-active-mem-table",
       [](DBImpl& db, const State& state) { return db.EntriesInActive(state.view, state.family); }},
      {"num-entries-imm-mem-tables", [](DBImpl&, const State& state) { return state.EntriesInImmutables(); }},
      {"num-entries-l0", [](DBImpl&, const State& state) { return state.EntriesInL0(); }},
      {"num-entries-l1", [](DBImpl&, const State& state) { return state.EntriesInL1(); }},
      {"cur-size-active-mem-table", [](DBImpl&, const State& state) { return state.BytesOf(*state.view.active); }},
      {"cur-size-all-mem-tables",
       [](DBImpl&, const State& state) { return state.BytesOf(*state.view.active) + state.BytesOfImmutables(); }},
      {"pm-bytes-reserved", [](DBImpl&, const State& state) { return state.ReservedBytes(); }},
      {"pm-bytes-in-segments", [](DBImpl&, const State& state) { return state.Usage(&Usage::segment_bytes); }},
      {"pm-bytes-punched", [](DBImpl&, const State& state) { return state.Usage(&Usage::punched_bytes); }},
      {"pm-bytes-live", [](DBImpl&, const State& state) { return state.LiveLogBytes(); }},
      {"num-segments", [](DBImpl&, const State& state) { return state.Usage(&Usage::segments); }},
      {"num-free-segments", [](DBImpl&, const State& state) { return state.Usage(&Usage::free_segments); }},
      {"l1-dram-bytes",
       [](DBImpl& db, const State& state) {
         const std::shared_ptr<const LastLevel> level = db.LevelOf(state.family);
         return level == nullptr ? uint64_t{0} : level->DramBytes();
       }},
      {"dram-bytes", [](DBImpl& db, const State&) { return db.DramBytes(); }},
      {"lookup-cache-bytes",
       [](DBImpl& db, const State&) { return db.lookup_cache_ == nullptr ? uint64_t{0} : db.lookup_cache_->bytes(); }},
      {"filter-bytes",
       [](DBImpl& db, const State&) {
         const auto guard = db.epochs_.Enter();
         const KeyFilter* const filter = db.filter_.load(std::memory_order_acquire);
         return filter == nullptr ? uint64_t{0} : filter->bytes();
       }},
      {"l1-pm-bytes", [](DBImpl&, const State& state) { return state.IndexSegmentBytes(); }},
      {"num-range-tombstones", [](DBImpl& db, const State&) { return db.CountRanges(); }},
      {"num-running-flushes",
       [](DBImpl& db, const State&) -> uint64_t {
         const std::lock_guard lock(db.work_mutex_);
         return db.flush_running_ ? 1 : 0;
       }},
      {"num-running-compactions",
       [](DBImpl& db, const State&) -> uint64_t {
         const std::lock_guard lock(db.work_mutex_);
         return db.compaction_running_ ? 1 : 0;
       }},
      {"oldest-snapshot-sequence",
       [](DBImpl& db, const State&) {
         const uint64_t oldest = db.snapshots_.Oldest();
         return oldest == UINT64_MAX ? uint64_t{0} : oldest;
       }},
      {"num-snapshots", [](DBImpl& db, const State&) -> uint64_t { return db.snapshots_.size(); }},
      {"num-live-readers", [](DBImpl& db, const State&) -> uint64_t { return db.live_readers_.size(); }},
      {"last-sequence-number", [](DBImpl& db, const State&) { return db.GetLatestSequenceNumber(); }},
      {"background-errors", [](DBImpl& db, const State&) -> uint64_t { return db.write_failed_ && !db.is_read_only() ? 1 : 0; }},
      {"is-write-stopped", [](DBImpl& db, const State&) -> uint64_t { return db.write_failed_ && !db.is_read_only() ? 1 : 0; }},
  };
  const std::string_view name = StripPropertyPrefix(property);
  const Row* const row =
      std::find_if(std::begin(kRows), std::end(kRows), [name](const Row& other) { return other.name == name; });
  if (row == std::end(kRows)) return false;
  std::shared_ptr<const ReadView> view;
  {
    std::lock_guard lock(view_mutex_);
    view = current_view_;
  }
  *value = row->compute(*this, {family, *view, *view->Of(family.id), *regions_, segments_.get()});
  return true;
}

}  // namespace braiddb
