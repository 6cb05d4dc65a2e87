// The filter over the keys of the last level and of some tables of L0. Merges and flushes add keys to it. The compaction thread
// rebuilds it after an open, and when many of its keys no longer exist.
//
// WHY "NO" IS RIGHT  A get loads the view first and the filter second. It searches the tables of the view whose keys are not in
//   the filter (PmTable::in_filter) whatever the filter says. A filter in use has every key that the other tables or the last
//   level can answer for:
//   - Tables that merges take by themselves: the merge adds the keys that come to the last level to the filter in use, and to the
//     filter that is being built. It does so before the view without these tables is installed. The steps of a rebuild run
//     between merges. So the key of every entry that is linked in the last level, tombstones and hidden versions included, is in
//     the filter in use. While no filter is being built, the merge of the braided skiplist skips keys that the level already has.
//   - Other tables that were flushed since the rebuild began: the flush adds their keys to both filters before it installs the
//     table. It holds filter_mutex_ from before its first key until the table is in the view. So a rebuild begins before the
//     flush adds keys, or finds the table in the view.
//   - Other tables that were in the view when the rebuild began, such as restored tables: the rebuild walks them under a pin.
//   - The last level: the rebuild walks it afterwards, one family after the other. If it began with the filter of INDEX, that has
//     these keys already (index_file.cc). Families that are created during the walk add entries by merges only. A walk meets all
//     entries that were in the level when the walk began, except for those that a merge
//     removes during the walk. If a newer version replaced such an entry, that version has the same key and came from a table. If
//     a tombstone removed it, no reader needs the entry: the merge keeps every version that a registered snapshot sees.
//   - Live readers get the parts that the filter in use has when a view is published, which is after the keys that come to the
//     last level with the view. A reader stores the filter of a view before the view, and a filter lives as long as the views of
//     readers that name it.
#include <algorithm>
#include <utility>

#include "db/db_impl.h"
#include "index/key_hash.h"
#include "skiplist/braided_cursor.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// Entries that one step adds, and entries between two checks whether the database is being closed.
constexpr uint64_t kEntriesPerStep = 1 << 14;
constexpr uint64_t kKeysPerCheck = 1 << 12;
// A filter has room for at least this number of keys beyond the present ones, so that a growing database has few parts.
constexpr uint64_t kMinRoom = 1 << 20;
// Keys for which the first part of a filter has room. A second part costs each get another cache line, and doubles the rate of
// false positives. The room is the number of keys that the lookup cache has room for, at most kUsualRoom, since small databases
// have small caches.
constexpr uint64_t kCacheBytesPerKey = 8;
constexpr uint64_t kUsualRoom = 4 << 20;
// If the database has at most half this number of entries, its filter has room for this number: 20 KiB at 10 bits a key. When the
// database has more, a filter of the usual size replaces the small one. The walk along so few entries takes milliseconds.
constexpr uint64_t kSmallRoom = 1 << 14;
// A filter with more than this number of keys that no longer exist is rebuilt.
constexpr uint64_t kFewKeys = 1 << 12;

}  // namespace

DBImpl::PinnedView::PinnedView(DBImpl* db) : db_(db) {
  const auto guard = db->epochs_.Enter();
  view_ = db->view_.load(std::memory_order_acquire)->shared_from_this();
  pin_ = db->epochs_.Pin();
}

DBImpl::PinnedView::~PinnedView() { db_->epochs_.Unpin(pin_); }

// While a merge waits to be resumed, no filter is built: the lists of half-merged tables lead into the last level.
bool DBImpl::FilterWanted() const {
  if (filter_must_go_.load(std::memory_order_relaxed)) return true;
  if (filter_given_up_ || resume_merge_.load(std::memory_order_acquire)) return false;
  const KeyFilter* const filter = filter_.load(std::memory_order_acquire);
  if (filter == nullptr) return uses_filter_;
  if (filter->is_full()) return true;
  const uint64_t entries = counters_.l1_entries.load(std::memory_order_relaxed) + l0_load_.entries();
  if (KeysThatFit(filter->bytes()) < entries) return false;  // there is room for one filter only, and the present one is useful
  if (entries > filter_room_) return true;
  if (compaction_idle_ && filter->parts() > 1) return true;
  return filter->keys() > 2 * std::max(entries, filter_built_keys_) + kFewKeys;  // half of its keys no longer exist
}

// REQUIRES: compaction_mutex_
bool DBImpl::BuildFilter(std::chrono::steady_clock::duration at_least) try {
  if (filter_must_go_.exchange(false)) {
    Log("dram_budget: inner nodes of the last level take the memory of the filter; gets of absent keys search all levels");
    GiveUpFilter();
    ReplaceFilter(nullptr);
  }
  if (next_filter_ == nullptr && !FilterWanted()) return false;
  const auto start = std::chrono::steady_clock::now();
  FilterStep done;
  do {
    done = next_filter_ == nullptr ? BeginFilter() : AddLastLevel();
  } while (done == FilterStep::kMore && std::chrono::steady_clock::now() - start < at_least);
  if (done == FilterStep::kEnd) EndFilter();
  if (done == FilterStep::kFailed && !stopping_.load(std::memory_order_acquire)) GiveUpFilter();
  return done == FilterStep::kMore;
} catch (const std::bad_alloc&) {
  GiveUpFilter();
  return false;
}

// A filter that is in use stays in use.
void DBImpl::GiveUpFilter() {
  filter_given_up_ = true;
  stored_filter_.reset();
  std::lock_guard lock(filter_mutex_);
  next_filter_.reset();
}

// The number of keys for which a new filter has room beside filters of `in_use` bytes.
uint64_t DBImpl::KeysThatFit(uint64_t in_use) const {
  if (!dram_.is_set()) return UINT64_MAX;
  const uint64_t room = dram_.filter - std::min(dram_.filter, in_use);
  return room / 64 * 64 * 8 / std::max(1u, options_.filter_bits_per_key);
}

DBImpl::FilterStep DBImpl::BeginFilter() {
  BRAIDDB_SYNC_POINT("DBImpl::BeginFilter");
  const uint64_t entries = counters_.l1_entries.load(std::memory_order_relaxed) + l0_load_.entries();
  uint64_t in_use = current_filter_ == nullptr ? 0 : current_filter_->bytes();
  if (in_use > 0 && KeysThatFit(in_use) < entries) {
    ReplaceFilter(nullptr);  // there is room for one filter only, and the present one is full
    in_use = 0;
  }
  if (in_use > 0 && dram_.is_set()) current_filter_->LimitBytes(in_use);
  const uint64_t fit = KeysThatFit(in_use);
  std::shared_ptr<KeyFilter> filter = std::exchange(stored_filter_, nullptr);
  const bool is_stored = filter != nullptr;
  if (!is_stored && fit >= entries) {
    uint64_t usual = std::min(kUsualRoom, options_.lookup_cache_size / kCacheBytesPerKey);
    BRAIDDB_SYNC_POINT_ARG("DBImpl::BeginFilter:Room", &usual);
    usual = std::min(usual, KeyFilter::KeysOfFirstPart(options_.filter_bits_per_key, dram_.filter - in_use));
    const bool is_small = entries <= kSmallRoom / 2 && usual > kSmallRoom;
    filter_room_ = is_small ? kSmallRoom : UINT64_MAX;
    const uint64_t keys = std::min(fit, is_small ? kSmallRoom : std::max(entries + entries / 4 + kMinRoom, usual));
    filter =
        KeyFilter::Create(options_.filter_bits_per_key, keys, dram_.filter - in_use, live_heap_.load(std::memory_order_acquire));
  }
  if (filter == nullptr) {
    Log("filter: no room; gets of absent keys search all levels");
    return FilterStep::kFailed;
  }
  {
    std::lock_guard lock(filter_mutex_);
    next_filter_ = filter;
  }
  const PinnedView pinned(this);
  KeyFilterWriter writer(filter.get(), nullptr);
  bool complete = true;
  pinned.view().ForEach([&](uint32_t id, const FamilyView& levels) {
    const Family& family = *FindFamily(id);
    size_t first = 0;
    for (const auto& [order, tables] : levels.orders) {
      if (!complete || !family.is_hashed) break;
      const auto table = levels.l0.begin() + static_cast<ptrdiff_t>(std::exchange(first, first + tables));
      if (std::none_of(table, table + static_cast<ptrdiff_t>(tables), [](const auto& one) { return one->in_filter; })) continue;
      // A cursor over a sorted run prefetches the next entries; a cursor along a list waits for each entry.
      const std::unique_ptr<EntryCursor> cursor = order != nullptr ? order->NewCursor(regions_.get(), &family.order)
                                                                   : std::make_unique<BraidedCursor>(&(*table)->list, nullptr);
      cursor->SeekToFirst();
      complete = AddEntries(family.order, cursor.get(), UINT64_MAX, &writer);
    }
  });
  if (!complete) return FilterStep::kFailed;
  writer.Finish();
  filter_family_ = is_stored ? kMaxFamilies : 0;  // a stored filter has the keys of all last levels
  filter_position_.reset();
  return FilterStep::kMore;
}

DBImpl::FilterStep DBImpl::AddLastLevel() {
  BRAIDDB_SYNC_POINT("DBImpl::AddLastLevel");
  const PinnedView pinned(this);
  const FamilyView* levels = pinned.view().Of(filter_family_);
  while (levels == nullptr || !FindFamily(filter_family_)->is_hashed) {  // the family was dropped, or its keys are not in filters
    filter_position_.reset();
    if (++filter_family_ >= pinned.view().others.size()) return FilterStep::kEnd;
    levels = pinned.view().Of(filter_family_);
  }
  const KeyOrder& order = FindFamily(filter_family_)->order;
  const std::unique_ptr<EntryCursor> cursor = levels->l1->NewCursor();
  if (filter_position_) {
    cursor->Seek(SearchKey(order, *filter_position_, filter_sequence_));
  } else {
    cursor->SeekToFirst();
  }
  KeyFilterWriter writer(next_filter_.get(), nullptr);
  if (!AddEntries(order, cursor.get(), kEntriesPerStep, &writer)) return FilterStep::kFailed;
  writer.Finish();
  if (cursor->entry() == nullptr) {
    filter_position_.reset();
    return ++filter_family_ >= pinned.view().others.size() ? FilterStep::kEnd : FilterStep::kMore;
  }
  filter_position_ = cursor->entry()->key();
  filter_sequence_ = cursor->entry()->sequence();
  return FilterStep::kMore;
}

// Adds the keys of up to `count` entries. False if the database is being closed, or if the list is damaged. The list must be in
// ascending order, so the loop ends. The entry at which the loop stops was checked as well. Some versions of a key may be
// skipped: all have one hash.
bool DBImpl::AddEntries(const KeyOrder& order, EntryCursor* cursor, uint64_t count, KeyFilterWriter* writer) const {
  const LogEntry* before = nullptr;
  for (uint64_t i = 0;; ++i, cursor->NextKey()) {
    const LogEntry* const entry = cursor->entry();
    if (entry == nullptr) break;
    if (i % kKeysPerCheck == 0 && stopping_.load(std::memory_order_acquire)) return false;
    const PmPtr place = regions_->Find(entry);
    if (!place || entry->height() > kMaxHeight ||
        !regions_->Holds(place + (LogEntrySize(entry->height(), entry->key_size(), 0) - 8)) ||
        (before != nullptr && CompareEntries(order, *before, *entry) >= 0)) {
      Log("filter: a list is damaged; gets of absent keys search all levels");
      return false;
    }
    if (i == count) break;
    writer->Add(KeyHash(*entry));
    before = entry;
  }
  return !regions_->damage_seen();
}

void DBImpl::EndFilter() {
  filter_built_keys_ = next_filter_->keys();
  next_filter_->LimitBytes(dram_.filter);
  ReplaceFilter(next_filter_);
}

// Puts `filter`, which is next_filter_, or null for none, in the place of the filter in use.
void DBImpl::ReplaceFilter(std::shared_ptr<KeyFilter> filter) {
  std::shared_ptr<KeyFilter> old;
  {
    std::lock_guard lock(filter_mutex_);
    if (filter != nullptr) next_filter_.reset();
    old = std::exchange(current_filter_, std::move(filter));
    // release: all keys were added before.
    filter_.store(current_filter_.get(), std::memory_order_release);
  }
  RetireFilter(std::move(old));
}

// A filter that readers of other processes may use lives until they have left the views that name it. Until the views name the
// filter in use, they name the one before: then no merge has added a key yet, and readers search all tables.
void DBImpl::RetireFilter(std::shared_ptr<KeyFilter> old) {
  if (live_heap_.load(std::memory_order_acquire) != nullptr) {
    std::lock_guard lock(view_mutex_);
    shared_filter_ = current_filter_;
    PublishView();
  }
  if (old == nullptr) return;
  try {
    epochs_.RetireShared([kept = old]() mutable { kept.reset(); });
  } catch (const std::bad_alloc&) {  // no reader uses the old filter when it is freed
    GiveUpReaders();
    epochs_.Synchronize();
  }
  old.reset();
  epochs_.Reclaim();
}

// Copies the filters that were made before there was a shared heap to that heap. Without room they stay where they are.
// REQUIRES: compaction_mutex_, so that only flushes add keys.
void DBImpl::ShareFilter() {
  SharedHeap* const heap = live_heap_.load(std::memory_order_acquire);
  std::shared_ptr<KeyFilter> old;
  {
    std::lock_guard lock(filter_mutex_);
    if (next_filter_ != nullptr) {
      if (std::shared_ptr<KeyFilter> copy = next_filter_->CopyTo(heap)) next_filter_ = std::move(copy);
    }
    if (current_filter_ == nullptr) return;
    std::shared_ptr<KeyFilter> copy = current_filter_->CopyTo(heap);
    if (copy == nullptr) return;
    old = std::exchange(current_filter_, std::move(copy));
    filter_.store(current_filter_.get(), std::memory_order_release);
  }
  RetireFilter(std::move(old));
}

}  // namespace braiddb
